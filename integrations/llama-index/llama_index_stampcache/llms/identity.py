"""What one call of a model would run, read from the live model and from the call's own arguments.

Everything is keyed unless a list says that it does not change an answer; the model's ``to_dict()``,
which holds its key, is never used.
"""

from collections.abc import Mapping

from llama_index.core.llms import LLM

from llama_index_stampcache import keyed
from llama_index_stampcache.describing import Describer
from llama_index_stampcache.hidden import endpoint_of
from llama_index_stampcache.llms.forms import Call, Form
from llama_index_stampcache.llms.messages import keyed_messages
from llama_index_stampcache.parts import Position
from stampcache import Request, Seam, Settings
from stampcache.adapters import CanonicalError, KnownSettings, Validity, shaping, surroundings

# Arguments in which any name may be that of a property, which only looks like one of a secret.
_SCHEMAS = frozenset({"tools", "functions", "tool_choice", "function_call", "response_format"})


class LLMRequests:
    """Makes the requests of one model, whose parameters are read anew for each."""

    def __init__(self, inner: LLM, validity: Validity) -> None:
        self._inner = inner
        self._validity = validity
        self._describer = Describer(rechecked=False, index_named=True)
        self._known = KnownSettings()
        known = validity.version is not None
        self._position = Position(
            where=type(inner).__name__, opaque_ok=known, functions_ok=known, in_model=True
        )

    def of(self, call: Call, *, aio: bool) -> Request:
        """Return the request of one call.

        Raises:
            CanonicalError: a part of the model, a message or an argument has no identity.
        """
        said = surroundings()
        describer = Describer(rechecked=False, index_named=True)  # which keeps what it has seen
        return Request(
            prompt={
                "call": call.form.value,
                "stream": call.streamed,
                "formatted": call.formatted,
                "asked": _asked(call, describer),
                "with": _arguments(call.kwargs, describer),
            },
            settings=self.settings(aio=aio),
            kind=self._validity.kind,
            evidence=None if said is None else said.evidence,
        )

    def settings(self, *, aio: bool) -> Settings:
        """Return the settings in force, digested once for each state that they are in.

        Raises:
            CanonicalError: a part of the model has no identity; the message names it.
        """
        inner = self._inner
        params: dict[str, object] = {
            "framework": "llama-index",
            "version": self._validity.version,
            "llm": self._describer.describe(inner, self._position),
        }
        model, endpoint = inner.metadata.model_name, endpoint_of(inner, aio=aio)
        params |= {"model": model, "endpoint": endpoint}
        return self._known.of(params, lambda: self._digested(model, endpoint, params))

    def _digested(self, model: str, endpoint: str, params: dict[str, object]) -> Settings:
        return Settings(
            model=model,
            endpoint=endpoint,
            params=params,
            stamps=self._validity.stamps,
            seam=Seam.MODEL,
        )


def _asked(call: Call, describer: Describer) -> object:
    if call.form is Form.CHAT:
        return keyed_messages(call.messages, describer)
    if not isinstance(call.prompt, str):
        raise CanonicalError(f"The prompt is a {type(call.prompt).__qualname__}, no text.")
    return str.__str__(call.prompt)


def _arguments(kwargs: Mapping[str, object], describer: Describer) -> dict[str, object]:
    described: dict[str, object] = {}
    for name, value in kwargs.items():
        schema = name in _SCHEMAS
        shaped = value if schema else shaping(name, value)
        if schema or keyed.of_model(name, shaped):
            position = Position(where=name, in_model=not schema)
            described[name] = describer.describe(shaped, position)
    return described
