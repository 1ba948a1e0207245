"""The call of a model from inside of which LangChain asks its cache, as far as two texts do not tell it.

LangChain hands a cache the prompt and ``llm_string``. Things that change the answer are in neither: the
options of one call of a text model, the endpoint of a ``ChatDeepSeek``, a field of a live ``ChatOpenAI``
that was changed after its first call. A key without them serves one model's answer for another's. So
they are read where they are: in the frame of the model's method that asks. Where none is found (somebody
else asks, or LangChain asks in another way), nothing is seen, and the texts are all there is (ADR 0019).
"""

import functools
import sys
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

from langchain_core.language_models import BaseChatModel, BaseLanguageModel, BaseLLM
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from msgspec import Struct
from pydantic_core import PydanticUndefined

from langchain_stampcache import keyed
from langchain_stampcache.llm_cache.custom import CustomModels
from langchain_stampcache.parameters import ENDPOINTS, MODEL_PARAMETERS, attribute_of, is_provider
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
_ASKING = (
    (BaseChatModel, "_generate_with_cache"),
    (BaseChatModel, "_agenerate_with_cache"),
    (BaseLLM, "generate"),
    (BaseLLM, "agenerate"),
)
_FRAMES_READ = 64
_CLASSES_KEPT = 256
_CLIENTS = ("root_client", "root_async_client", "client", "async_client")
_KINDS = (BaseChatModel, BaseLLM)
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


def model_call(llm_string: str) -> ModelCall | None:
    """Return the call that asks the cache now, or ``None`` where it is not found.

    Args:
        llm_string: what the cache was told. The method that asks has it, too; so a call further out,
            inside of which somebody else asks, is not taken for this one.

    Raises:
        ScopeError: one call of a text model has prompts of different tenants, or under different
            controls: nobody knows which belong to the prompt that is asked for.
    """
    is_direct, has_it = True, False
    for frame in _frames():
        code, is_theirs = frame.f_code, _module(frame).startswith(_MODELS)
        is_direct = is_direct and is_theirs
        names = code.co_varnames
        if not names or not (
            "llm_string" in names or (names[0] == "self" and (has_it or is_direct))
        ):
            continue
        local = frame.f_locals
        model = local.get("self")
        is_model = isinstance(model, _KINDS)
        said = local.get("llm_string")
        has_it = has_it or ((is_theirs or is_model) and type(said) is str and said == llm_string)
        if is_model and (has_it or (is_direct and code in _asking())):
            call = _call_in(local)
            if call is not None:  # else a method that is not told what the call was told
                return call
    return None


def takes_text(call: ModelCall | None) -> bool:
    """Tell whether the prompt of a call is known to be the text that a model reads, whatever is in it."""
    return call is not None and isinstance(call.model, BaseLLM)


def _frames() -> Iterator[FrameType]:
    """Give the frames of whoever asks, from the innermost that is none of ours."""
    read = getattr(sys, "_getframe", None)
    frame: FrameType | None = None if read is None else read(1)
    while frame is not None and _module(frame).startswith(_OURS):
        frame = frame.f_back
    for _ in range(_FRAMES_READ):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


@functools.cache
def _asking() -> frozenset[CodeType]:
    """Return the code of LangChain's own methods that ask, as far as this version has them."""
    methods = (getattr(kind, name, None) for kind, name in _ASKING)
    codes = (getattr(method, "__code__", None) for method in methods)
    return frozenset(code for code in codes if isinstance(code, CodeType))


def _module(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__')}."


def _call_in(local: Mapping[str, Any]) -> ModelCall | None:
    model, options = local["self"], local.get("kwargs")
    if isinstance(model, BaseChatModel):
        run_manager = local.get("run_manager")
        return ModelCall(model, {}, _mapping(getattr(run_manager, "metadata", None)))
    if isinstance(model, BaseLLM) and isinstance(options, dict):
        told = _one_metadata(local.get("metadata"))
        return ModelCall(model, options, {**told, **_mapping(model.metadata)})
    return None


def _mapping(given: object) -> Mapping[str, object]:
    return given if isinstance(given, Mapping) else {}


def _one_metadata(given: object) -> Mapping[str, object]:
    several = given if isinstance(given, list) else [given]
    told = [(scope_in(each), controls_in(each), kind_in(each)) for each in several]
    if any(each != told[0] for each in told):
        raise ScopeError("the prompts of one call are for different tenants; ask them one by one.")
    return _mapping(several[0]) if several else {}


def config_of(call: ModelCall | None) -> RunnableConfig:
    """Return the config of the running chain or graph, with the metadata of the call itself."""
    around = var_child_runnable_config.get() or _NO_CONFIG
    if call is None or not call.metadata:
        return around
    return {**around, "metadata": {**_mapping(around.get("metadata")), **call.metadata}}


def unsaid(
    call: ModelCall, said: Mapping[str, object], custom: CustomModels, *, is_fresh: bool
) -> dict[str, object]:
    """Return what of a call is not in its ``llm_string``, or not any more.

    Args:
        call: the call.
        said: the parameters that the string names.
        custom: reads the app's own models.
        is_fresh: whether it was made for this call; else a parameter may have changed since.

    Raises:
        CanonicalError: an option of the call has no canonical form, or a field of the app's own model
            that the string does not tell.
    """
    model = call.model
    unsaid: dict[str, object] = {}
    for name, default in _parameters(type(model)):
        value = getattr(model, name, None)
        if name in said:
            if is_fresh or _equal(value, said[name]):
                continue
        elif _equal(value, default) or (_is_empty(value) and _is_empty(default)):
            continue
        shaped = _plain(shaping(name, value))
        if shaped is _OBJECT or not keyed.of_model(name, value):
            continue
        if name not in said or not _same(shaped, said[name]):
            unsaid[name] = shaped
    own = custom.untold(model)
    if own:
        unsaid["custom"] = own
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
        client = attribute_of(model, name)
        if client is None:
            continue
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


def _equal(value: object, other: object) -> bool:
    """Tell whether two values are equal; objects whose comparing fails are not."""
    try:
        return bool(value == other)
    except Exception:  # noqa: BLE001 - whatever objects of the app do on being compared
        return False


def _is_empty(value: object) -> bool:
    return any(type(value) is type(empty) and value == empty for empty in _EMPTY)
