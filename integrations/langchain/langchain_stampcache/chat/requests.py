"""From a call of a chat model to a Request: all that the model would be told, and nothing secret."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableBinding
from msgspec.structs import replace

from langchain_stampcache import prompt as prompts
from langchain_stampcache.chat.call import ChatCall, is_choices
from langchain_stampcache.fingerprint import Fingerprint, Running
from langchain_stampcache.keyed import of_model
from langchain_stampcache.llm_cache.calling import endpoints_of
from langchain_stampcache.llm_cache.calls import Call, Calls
from langchain_stampcache.llm_cache.finding import Finder, Variables
from langchain_stampcache.parameters import MODEL_NAMES, first_text
from stampcache import ConfigError, Seam, Settings, Stamps
from stampcache.adapters import CanonicalError, Core, KnownSettings, Validity

# How an answer is handed over, or only traced: the model's answer is the same.
NOT_KEYED = frozenset({
    "ls_structured_output_format", "stream", "stream_options", "stream_usage",
    "structured_output_format",
})  # fmt: skip


class ChatRequests:
    """Makes the requests of one cached chat model; its settings are read anew for each call."""

    def __init__(self, core: Core, *, version: str | None, stamps: Stamps, kind: str) -> None:
        finder = Finder(template=None, variables=Variables(), extract=None, corpus="")
        self._calls = Calls(core, finder, Validity())
        self._fingerprint = Fingerprint(version=version)
        self._unversioned = Fingerprint(version=None)
        self._known = KnownSettings()
        self._version = version
        self._stamps = stamps
        self._kind = kind

    def check(self, inner: BaseChatModel) -> None:
        """Refuse at construction what could never be cached.

        Raises:
            ConfigError: the model has no identity.
        """
        try:
            self.settings(inner, {})
        except CanonicalError as error:
            raise ConfigError(
                f"This model cannot be told from another one: {error}. Pass version= (any text that"
                " you change whenever that part changes), or use plain functions and data there."
            ) from error

    def of(self, call: ChatCall) -> Call:
        """Return what a call asks, and what its answer is made from by the scope in force.

        Raises:
            CanonicalError: it cannot be cached; the message names the part.
        """
        settings = self.settings(call.inner, {**call.options, "stop": call.stop})
        chat = prompts.of_messages(call.messages)
        caller = call.called.caller
        if self._kind and not caller.kind:
            caller = replace(caller, kind=self._kind)
        return self._calls.of(chat, settings, caller)

    def settings(self, inner: BaseChatModel, options: Mapping[str, Any]) -> Settings:
        """Return what would be run with these call options, as the model is now.

        Raises:
            CanonicalError: a part of it has no canonical form.
        """
        keyed = {
            name: value
            for name, value in options.items()
            if name not in NOT_KEYED and not (name == "stop" and value is None)
        }
        called = endpoints_of(inner)
        state = [called, keyed, *self._fingerprint.state_of(inner)]
        return self._known.of_state(type(inner), state, lambda: self._read(inner, keyed, called))

    def _read(
        self, inner: BaseChatModel, keyed: Mapping[str, Any], called: Sequence[str]
    ) -> Settings:
        """Return the settings of a model and of options that were not seen like this before."""
        if self._version is not None:  # it stands for parts of the model, not for what a call says
            said = {name: value for name, value in keyed.items() if of_model(name, value)}
            self._unversioned.read(said, None)
        bound: RunnableBinding[Any, Any] = RunnableBinding(bound=inner, kwargs=keyed, config={})
        running = self._fingerprint.read(bound, None)
        params = {
            "framework": "langchain.chat",
            "version": self._version,
            "called": called,
            "model": _without_choices(running),
        }
        return self._known.of(
            params,
            lambda: Settings(
                model=first_text(keyed, MODEL_NAMES) or running.model,
                endpoint=running.endpoint,
                params=params,
                stamps=self._stamps,
                seam=Seam.MODEL,
            ),
        )


def _without_choices(running: Running) -> object:
    """Return the description without ``n``: an answer to more choices holds fewer, too (B13)."""
    described = running.described
    if not isinstance(described, dict):
        return described
    bound = described.get("bound")
    model = dict(bound) if isinstance(bound, dict) else {"bound": bound}
    for part in ("params", "fields"):
        model[part] = _settings_without_choices(model.get(part))
    return {"bound": model, "with": _no_choices(described.get("with"))}


def _settings_without_choices(parameters: object) -> object:
    kept = _no_choices(parameters)
    if isinstance(kept, dict) and "model_kwargs" in kept:
        kept["model_kwargs"] = _no_choices(kept["model_kwargs"])
    return kept


def _no_choices(parameters: object) -> object:
    if not isinstance(parameters, dict):
        return parameters
    kept = {
        name: value for name, value in parameters.items() if name != "n" or not is_choices(value)
    }
    if kept.get("n", ...) is None:  # as if it were not said
        del kept["n"]
    return kept
