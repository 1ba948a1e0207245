"""From the inputs of a chain to a Request: what is the question, what else changes the answer."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from msgspec import Struct

from langchain_stampcache.caller import Caller
from langchain_stampcache.conversation import is_history, turns_of
from langchain_stampcache.fingerprint import Fingerprint, Running
from langchain_stampcache.retrieving import Retrieving
from stampcache import ConfigError, Evidence, Request, Settings, Stamps, canonical
from stampcache.adapters import CanonicalError, Validity, seen_stamp

SETTINGS_KEPT = 256
_LEAVES = frozenset({str, int, float, bool, type(None)})


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
        self._known: dict[str, Settings] = {}

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
            settings=self.settings(config, others, form=asked.form),
            scope=asked.caller.scope,
            controls=asked.caller.controls,
        )

    def settings(
        self, config: RunnableConfig | None, others: Mapping[str, object], *, form: str = ""
    ) -> Settings:
        """Return the settings in force: the chain as it is now, and inputs besides the question.

        Raises:
            CanonicalError: a part of the chain, or an input, has no canonical form.
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
            "form": form,
        }
        place = _place(params)
        known = self._known.get(place)
        if known is None:
            known = Settings(
                model=running.model,
                endpoint=running.endpoint,
                params=params,
                stamps=self._stamps(running, retriever),
                corpus=self._validity.corpus,
                whole_corpus=self._validity.whole_corpus,
            )
            if known.problem:
                raise CanonicalError(known.problem)
            if len(self._known) >= SETTINGS_KEPT:
                self._known.clear()
            self._known[place] = known
        return known

    def _stamps(self, running: Running, retriever: object) -> Stamps:
        """Return the stamps: those given, here or to the cache, and what is seen for the others."""
        seen = Stamps(
            prompt="" if self._here.prompt else seen_stamp(running.prompts),
            index=seen_stamp([self._validity.corpus, retriever])
            if self._retrieving.retrieves and not self._here.index
            else "",
        )
        return self._validity.stamps.over(seen)


def _place(params: Mapping[str, object]) -> str:
    """Return a text that differs for different parameters; the digest is taken once for each."""
    try:
        text = json.dumps(params)
        if _has_text_keys(params):
            return text
    except (TypeError, ValueError, RecursionError):
        pass  # the canonical form is slower to take, and tells which part has none
    return canonical.value(params).decode("utf-8", "surrogatepass")


def _has_text_keys(data: object) -> bool:
    """Tell whether all keys in what JSON took are texts; it writes the key 1 as ``"1"``."""
    items: Iterable[object] = ()
    if isinstance(data, dict):
        for key in data:
            if not isinstance(key, str):
                return False
        items = data.values()
    elif isinstance(data, list | tuple):
        items = data
    return all(type(item) in _LEAVES or _has_text_keys(item) for item in items)
