"""From the inputs of a chain to a Request: what is the question, what else changes the answer."""

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from msgspec import Struct

from langchain_stampcache.caller import Caller
from langchain_stampcache.chains.conversation import is_history, turns_of
from langchain_stampcache.chains.retrieving import Retrieving
from langchain_stampcache.config import configured
from langchain_stampcache.fingerprint import Fingerprint, Running
from stampcache import ConfigError, Evidence, Request, Scope, Settings, Stamps
from stampcache.adapters import CanonicalError, KnownSettings, Validity, seen_stamp


class Asked(Struct, frozen=True, kw_only=True):
    """What one call asks: the question, the inputs beside it, and in which form they came."""

    question: str
    inputs: Mapping[str, object] = {}
    form: str = ""
    caller: Caller = Caller()


class Requests:
    """Makes the requests of one chain; what they share is digested once per state of the chain."""

    def __init__(
        self,
        runnable: Runnable[Any, Any],
        retrieving: Retrieving,
        validity: Validity,
        here: Stamps,
        *,
        framework: str,
        fingerprint: Fingerprint,
    ) -> None:
        """``here`` are the stamps that the cache itself gives to all that it keeps."""
        self._runnable = runnable
        self._retrieving = retrieving
        self._validity = validity
        self._here = here
        self._framework = framework
        self._fingerprint = fingerprint
        self._known = KnownSettings()

    def check(self) -> None:
        """Refuse at construction what could never be cached.

        Raises:
            ConfigError: a part of the chain has no identity.
        """
        try:
            self.settings(None, {})
        except CanonicalError as error:
            raise ConfigError(
                f"This chain cannot be told from another one: {error}. Pass version= (any text that"
                " you change whenever that part changes), or use plain functions and data there."
            ) from error

    def of(
        self,
        asked: Asked,
        config: RunnableConfig | None,
        evidence: tuple[Evidence, ...] | None,
    ) -> Request:
        """Return what is asked.

        Raises:
            CanonicalError: it cannot be cached; the message names the part.
            ScopeError, ConfigError: what is said of its caller makes no sense.
        """
        if asked.caller.problem is not None:
            raise asked.caller.problem
        others: dict[str, object] = {}
        history: list[object] = []
        for name, value in sorted(asked.inputs.items()):
            if is_history(name, value):
                history += turns_of(name, value)
            else:
                others[name] = value
        return Request(
            question=asked.question,
            history=history,
            evidence=evidence,
            kind=asked.caller.kind or self._validity.kind,
            settings=self.settings(config, others, form=asked.form, who=asked.caller.scope),
            scope=asked.caller.scope,
            controls=asked.caller.controls,
        )

    def settings(
        self,
        config: RunnableConfig | None,
        others: Mapping[str, object],
        *,
        form: str = "",
        who: Scope | None = None,
    ) -> Settings:
        """Return the settings in force: the chain as it is now, inputs besides the question, config.

        Raises:
            CanonicalError: a part of the chain, an input, or what is configured has no canonical form.
        """
        running = self._fingerprint.read(self._runnable, config)
        retriever = self._retrieving.described(config)
        params = {
            "framework": self._framework,
            "grounding": self._validity.grounding,
            "version": self._validity.version,
            "answer": running.described,
            "retriever": retriever,
            "inputs": others,
            "configurable": configured(config, who),
            "form": form,
        }
        return self._known.of(
            params,
            lambda: Settings(
                model=running.model,
                endpoint=running.endpoint,
                params=params,
                stamps=self._stamps(running, retriever),
                corpus=self._validity.corpus,
                whole_corpus=self._validity.whole_corpus,
                watched=self._validity.watched,
            ),
        )

    def _stamps(self, running: Running, retriever: object) -> Stamps:
        """Return the stamps: those given, here or to the cache, and what is seen for the others."""
        seen = Stamps(
            prompt="" if self._here.prompt else seen_stamp(running.prompts),
            index=seen_stamp([self._validity.corpus, retriever])
            if self._retrieving.retrieves and not self._here.index
            else "",
        )
        return self._validity.stamps.over(seen)
