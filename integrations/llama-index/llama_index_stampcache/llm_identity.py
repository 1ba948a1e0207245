"""What one call of a model would run, read from the live model and from the call's own arguments.

Everything is keyed unless a list says that it does not change an answer; the model's ``to_dict()``,
which holds its key, is never used.
"""

import contextlib
from collections.abc import Mapping

import msgspec
from llama_index.core.llms import LLM
from msgspec import Struct
from pydantic import BaseModel

from llama_index_stampcache import keyed
from llama_index_stampcache.describing import Describer, Position
from llama_index_stampcache.llm_forms import Call, Form
from llama_index_stampcache.llm_messages import keyed_messages
from stampcache import Request, Seam, Settings
from stampcache.adapters import CanonicalError, Validity, shaping, surroundings

# Arguments in which any name may be that of a property, which only looks like one of a secret.
_SCHEMAS = frozenset({"tools", "functions", "tool_choice", "function_call", "response_format"})


class _Digested(Struct, frozen=True):
    written: bytes
    settings: Settings


class LLMRequests:
    """Makes the requests of one model, whose parameters are read anew for each."""

    def __init__(self, inner: LLM, validity: Validity) -> None:
        self._inner = inner
        self._validity = validity
        self._describer = Describer(rechecked=False, index_named=True)
        self._last: _Digested | None = None
        known = validity.version is not None
        self._position = Position(
            where=type(inner).__name__, opaque_ok=known, functions_ok=known, in_model=True
        )
        self._hidden = hidden_parts(inner, self._describer, self._position)

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
        """Return the settings in force, digested; the last ones are kept, since they rarely change.

        Raises:
            CanonicalError: a part of the model has no identity; the message names it.
        """
        inner = self._inner
        params: dict[str, object] = {
            "framework": "llama-index",
            "version": self._validity.version,
            "llm": self._describer.describe(inner, self._position),
            "hidden": self._hidden,
        }
        return self._digested(inner.metadata.model_name, endpoint_of(inner, aio=aio), params)

    def _digested(self, model: str, endpoint: str, params: dict[str, object]) -> Settings:
        try:
            written = msgspec.json.encode([model, endpoint, params])
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
            raise CanonicalError(f"The model's parameters are no JSON: {error}") from error
        last = self._last
        if last is not None and last.written == written:
            return last.settings
        settings = Settings(
            model=model,
            endpoint=endpoint,
            params=params,
            stamps=self._validity.stamps,
            seam=Seam.MODEL,
        )
        if settings.problem:
            raise CanonicalError(settings.problem)
        self._last = _Digested(written, settings)
        return settings


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


def hidden_parts(inner: LLM, describer: Describer, position: Position) -> dict[str, object]:
    """Return what private attributes tell of how a model is set, as they are when it is wrapped.

    Some models keep their parameters there, or a model of another framework. What they note later is
    their state, and what else they hold (clients, locks) is how they are asked.

    Raises:
        CanonicalError: a model inside of this one has no identity.
    """
    hidden: dict[str, object] = {}
    for name, value in (inner.__pydantic_private__ or {}).items():
        if not keyed.of_model(name.lstrip("_"), value):
            continue
        inside = position.inside(name)
        path = getattr(value, "name_or_path", None)  # of weights and tokenizers
        if isinstance(value, BaseModel):
            hidden[name] = describer.describe(value, inside)
        elif isinstance(value, str | int | float | Mapping):
            with contextlib.suppress(CanonicalError):  # it holds objects, so it is no setting
                hidden[name] = describer.describe(value, inside)
        elif isinstance(path, str):
            hidden[name] = path
    return hidden


def endpoint_of(inner: LLM, *, aio: bool) -> str:
    """Return where a model is asked: by the client that it was given, else by its ``api_base``."""
    client = getattr(inner, "_aclient" if aio else "_client", None)
    address = getattr(client, "base_url", None) or getattr(inner, "api_base", None)
    return str(address or "").rstrip("/")
