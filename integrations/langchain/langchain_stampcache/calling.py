"""The call of a model from inside of which LangChain asks its cache, as far as two texts do not tell it.

LangChain hands a cache the prompt and ``llm_string``. Things that change the answer are in neither: the
options of one call of a text model, the endpoint of a ``ChatDeepSeek``, a field of a live ``ChatOpenAI``
that was changed after its first call. A key without them serves one model's answer for another's. So
they are read where they are: in the frame of LangChain's own method that asks. Where none of those
methods is running (somebody else asks), nothing is seen, and the texts are all there is.
"""

import functools
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from langchain_core.language_models import BaseChatModel, BaseLanguageModel, BaseLLM
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from msgspec import Struct
from pydantic_core import PydanticUndefined

from langchain_stampcache import keyed
from langchain_stampcache.llm_string import ENDPOINTS
from langchain_stampcache.parameters import MODEL_PARAMETERS, is_provider
from stampcache import ScopeError, canonical
from stampcache.adapters import (
    CALLING,
    CanonicalError,
    controls_in,
    kind_in,
    scope_in,
    shaping,
)

_OURS = ("langchain_stampcache.", "stampcache.")
_MODELS = "langchain_core.language_models."
_ASKING = frozenset({
    BaseChatModel._generate_with_cache.__code__, BaseChatModel._agenerate_with_cache.__code__,
    BaseLLM.generate.__code__, BaseLLM.agenerate.__code__,
})  # fmt: skip
_CLASSES_KEPT = 256
_CLIENTS = ("root_client", "root_async_client", "client", "async_client")
_EMPTY: tuple[object, ...] = (None, {}, [], ())
_OBJECT = object()
_NO_CONFIG = RunnableConfig()


class ModelCall(Struct, frozen=True):
    """A call that is being made: of which model, and what was said for this call alone.

    ``options`` are those of a text model; those of a chat model are in its ``llm_string``. ``metadata``
    is that of the run, which a config gives.
    """

    model: BaseLanguageModel[Any]
    options: Mapping[str, object]
    metadata: Mapping[str, object]


def model_call() -> ModelCall | None:
    """Return the call that asks the cache now, or ``None`` where somebody else asks.

    Raises:
        ScopeError: one call of a text model has prompts of different tenants, or under different
            controls: nobody knows which belong to the prompt that is asked for.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _module(frame).startswith(_OURS):
        frame = frame.f_back
    while frame is not None and _module(frame).startswith(_MODELS):
        if frame.f_code in _ASKING:
            return _call_in(frame.f_locals)
        frame = frame.f_back
    return None


def _module(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__')}."


def _call_in(local: Mapping[str, Any]) -> ModelCall | None:
    model, options = local.get("self"), local.get("kwargs")
    if isinstance(model, BaseChatModel):
        run_manager = local.get("run_manager")
        return ModelCall(model, {}, getattr(run_manager, "metadata", None) or {})
    if isinstance(model, BaseLLM) and isinstance(options, dict):
        return ModelCall(model, options, _one_metadata(local.get("metadata")))
    return None


def _one_metadata(given: object) -> Mapping[str, object]:
    several = given if isinstance(given, list) else [given]
    told = [(scope_in(each), controls_in(each), kind_in(each)) for each in several]
    if any(each != told[0] for each in told):
        raise ScopeError("the prompts of one call are for different tenants; ask them one by one.")
    return several[0] if several and isinstance(several[0], Mapping) else {}


def config_of(call: ModelCall | None) -> RunnableConfig:
    """Return the config of the running chain or graph, with the metadata of the call itself."""
    around = var_child_runnable_config.get() or _NO_CONFIG
    if call is None or not call.metadata:
        return around
    return {**around, "metadata": {**around.get("metadata", {}), **call.metadata}}


def unsaid(call: ModelCall, said: Mapping[str, object], *, is_fresh: bool) -> dict[str, object]:
    """Return what of a call is not in its ``llm_string``, or not any more.

    Args:
        call: the call.
        said: the parameters that the string names.
        is_fresh: whether it was made for this call; else a parameter may have changed since.

    Raises:
        CanonicalError: an option of the call has no canonical form.
    """
    model = call.model
    unsaid: dict[str, object] = {}
    for name, default in _parameters(type(model)):
        value = getattr(model, name, None)
        if name in said:
            if is_fresh or value == said[name]:
                continue
        elif value == default or (value in _EMPTY and default in _EMPTY):
            continue
        shaped = _plain(shaping(name, value))
        if shaped is _OBJECT or not keyed.of_model(name, value):
            continue
        if name not in said or not _same(shaped, said[name]):
            unsaid[name] = shaped
    called = endpoints_of(model)
    if called and not any(said.get(name) for name in ENDPOINTS):
        unsaid["called"] = called
    options = {
        name: shaping(name, value)
        for name, value in call.options.items()
        if keyed.of_model(name, value)
    }
    if options:
        canonical.value(options)
        unsaid["options"] = options
    return unsaid


def endpoints_of(model: BaseLanguageModel[Any]) -> list[str]:
    """Return where the clients of a model send its calls: the environment may have told them."""
    found: set[str] = set()
    for name in _CLIENTS:
        client = getattr(model, name, None)
        for holder in (client, getattr(client, "_client", None)):
            url = getattr(holder, "base_url", None)
            if isinstance(url, str) or type(url).__name__ == "URL":
                found.add(str(url))
    return sorted(found)


@functools.lru_cache(maxsize=_CLASSES_KEPT)
def _parameters(kind: type[BaseLanguageModel[Any]]) -> tuple[tuple[str, object], ...]:
    """Return the fields of a class that reach the model, with their defaults."""
    bases = [base for base in kind.__mro__ if is_provider(base)]
    known = MODEL_PARAMETERS.union(*(base.model_fields for base in bases)) - CALLING - {"name"}
    fields = ((name, field) for name, field in kind.model_fields.items() if name in known)
    return tuple(
        (name, None if field.default is PydanticUndefined else field.default)
        for name, field in fields
        if field.exclude is not True
    )


def _plain(value: object) -> object:
    """Return plain data, or a mark for an object, which nothing but LangChain's text can name."""
    try:
        held = sorted(value) if isinstance(value, set | frozenset) else value
        canonical.value(held)
    except (CanonicalError, TypeError):
        return _OBJECT
    return held


def _same(value: object, said: object) -> bool:
    """Tell whether a parameter still is what was said; of an object that cannot be told."""
    try:
        return canonical.value(value) == canonical.value(said)
    except CanonicalError:
        return True
