"""The two forms of a call, and responses as plain data: taken down, spared of their usage, rebuilt.

A response is taken down the moment that the model gives it, since providers go on changing the
objects inside of a streamed one. What would not come back equal is not taken.
"""

import dataclasses
import enum
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LogProb,
)
from msgspec import Struct
from pydantic import BaseModel

from stampcache.adapters import CacheFields

Response: TypeAlias = ChatResponse | CompletionResponse
Tree: TypeAlias = dict[str, Any]
Given = TypeVar("Given")
_PLAIN = (str, int, float, bool, type(None))
_CLASS = "__class__"  # marks an object of the provider's
_OBJECTS = "openai.types."  # whose classes may be rebuilt
_USAGE = frozenset({"usage", "usage_metadata", "usageMetadata"})
_COUNTS = frozenset({
    "completion_tokens", "eval_count", "input_tokens", "output_tokens", "prompt_eval_count",
    "prompt_tokens", "total_tokens",
})  # fmt: skip


class Form(enum.Enum):
    """What a model is asked for."""

    CHAT = "chat"
    COMPLETION = "completion"


class Call(Struct, frozen=True, kw_only=True):
    """One call of a model, as its caller wrote it."""

    form: Form
    messages: Sequence[ChatMessage] = ()
    prompt: str = ""
    formatted: bool = False
    streamed: bool = False
    kwargs: dict[str, Any]


class Untakable(ValueError):
    """A response holds something that has no plain form."""


def reported(response: Given, report: CacheFields) -> Given:
    """Return a response with the report beside it; its message is left as it is.

    What is none, as some models return it, is left alone.
    """
    if not isinstance(response, ChatResponse | CompletionResponse):
        return response
    additional = {**response.additional_kwargs, "cache": own(report)}
    return cast(Given, response.model_copy(update={"additional_kwargs": additional}))


def taken(response: Response) -> Tree:
    """Return a response as plain data.

    Raises:
        Untakable: its class, or something inside of it, has no plain form.
    """
    if type(response) not in (ChatResponse, CompletionResponse):
        raise Untakable(f"a response of the class {type(response).__qualname__} is not known")
    logprobs = response.logprobs
    tree: Tree = {
        "raw": described_raw(response.raw),
        "delta": response.delta,
        "logprobs": logprobs and [[one.model_dump() for one in each] for each in logprobs],
        "additional_kwargs": _kept(response.additional_kwargs),
    }
    if isinstance(response, CompletionResponse):
        return {"text": response.text, **tree}
    return {"message": _message(response.message), **tree}


def settled(response: Response, tree: Tree) -> Response:
    """Return a chunk of a stream that its provider does not go on changing.

    Some hand out one list of tool calls with each chunk, and fill it while the stream goes on.
    """
    if isinstance(response, CompletionResponse) or not response.message.additional_kwargs:
        return response
    beside = {"additional_kwargs": _again(tree["message"]["additional_kwargs"])}
    return response.model_copy(update={"message": response.message.model_copy(update=beside)})


def comes_back(response: Response, tree: Tree) -> bool:
    """Tell whether a response is equal to the one that is rebuilt of its tree; raw apart."""
    again = rebuilt(tree)
    return again.model_copy(update={"raw": None}) == response.model_copy(update={"raw": None})


def rebuilt(tree: Tree) -> Response:
    """Return a response of its tree, as its caller's own; nothing in it is shared with the tree.

    Raises:
        ValueError, LookupError, TypeError: the tree is none of a response.
    """
    logprobs = tree["logprobs"]
    known = {
        "raw": own(tree["raw"]),
        "delta": tree["delta"],
        "logprobs": logprobs and [[LogProb(**one) for one in each] for each in logprobs],
        "additional_kwargs": _again(tree["additional_kwargs"]),
    }
    if "text" in tree:
        return CompletionResponse(text=tree["text"], **known)
    written = tree["message"]
    message = ChatMessage(
        role=written["role"],
        blocks=own(written["blocks"]),
        additional_kwargs=_again(written["additional_kwargs"]),
    )
    return ChatResponse(message=message, **known)


def spared(tree: Tree) -> Tree:
    """Return the tree of a response that cost nothing: its usage is zero, what it was stands beside.

    The id of the provider's response is gone, as it was that of another request.
    """
    raw = tree["raw"]
    if isinstance(raw, Mapping):
        raw = _spared_raw(raw)
    told = tree["additional_kwargs"]
    additional = {name: 0 if _is_count(name, value) else value for name, value in told.items()}
    return {**tree, "raw": raw, "additional_kwargs": additional}


def described_raw(raw: object) -> Any:
    """Return a provider's raw response as plain data, without the parts that have none."""
    match raw:
        case str() | int() | float() | None:
            return raw
        case BaseModel():
            return described_raw(raw.model_dump(warnings=False))
        case Mapping():
            return {str(name): described_raw(value) for name, value in raw.items()}
        case list() | tuple():
            return [described_raw(value) for value in raw]
        case _ if dataclasses.is_dataclass(raw) and not isinstance(raw, type):
            fields = dataclasses.fields(raw)
            return {one.name: described_raw(getattr(raw, one.name)) for one in fields}
    return None


def own(value: Any) -> Any:
    """Return a copy of plain data."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {name: own(item) for name, item in value.items()}
    return [own(item) for item in value] if isinstance(value, list | tuple) else value


def _spared_raw(raw: Mapping[str, Any]) -> Tree:
    spared_raw = dict(raw)
    if raw.get("id") is not None:
        spared_raw["id"] = None
    for name, value in raw.items():
        if name in _USAGE and isinstance(value, Mapping):
            spared_raw[name] = _nothing_of(value)
            spared_raw[f"saved_{name}"] = value
        elif _is_count(name, value):
            spared_raw[name] = 0
    return spared_raw


def _nothing_of(usage: Any) -> Any:
    if isinstance(usage, Mapping):
        return {name: _nothing_of(value) for name, value in usage.items()}
    if isinstance(usage, list):
        return [_nothing_of(value) for value in usage]
    return 0 if isinstance(usage, int | float) and not isinstance(usage, bool) else usage


def _is_count(name: str, value: object) -> bool:
    return name in _COUNTS and isinstance(value, int)


def _message(message: ChatMessage) -> Tree:
    if type(message) is not ChatMessage:
        raise Untakable(f"a message of the class {type(message).__qualname__} is not known")
    try:
        blocks = [block.model_dump(mode="json", warnings=False) for block in message.blocks]
    except ValueError as error:  # bytes that are no text, an object that is no JSON
        raise Untakable(f"a block of the message is no JSON: {error}") from error
    return {
        "role": message.role.value,
        "blocks": blocks,
        "additional_kwargs": _kept(message.additional_kwargs),
    }


def _kept(value: Any) -> Any:
    """Return what comes back by `_again`: plain data, and objects of classes that are known."""
    match value:
        case dict() if _CLASS not in value and all(type(name) is str for name in value):
            return {name: _kept(item) for name, item in value.items()}
        case list():
            return [_kept(item) for item in value]
        case _ if type(value) in _PLAIN:
            return value
        case BaseModel() if type(value).__module__.startswith(_OBJECTS):
            kind = type(value)
            fields = value.model_dump(mode="json", exclude_unset=True, warnings=False)
            return {_CLASS: [kind.__module__, kind.__qualname__], "fields": fields}
    raise Untakable(f"a {type(value).__qualname__} beside the message has no plain form")


def _again(value: Any) -> Any:
    if isinstance(value, list):
        return [_again(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _CLASS in value:
        return _class(*value[_CLASS]).model_validate(own(value["fields"]))
    return {name: _again(item) for name, item in value.items()}


def _class(module: str, name: str) -> type[BaseModel]:
    """Return a class of the provider's package, which the model has imported.

    Raises:
        LookupError: there is no such class, or it is none that may be rebuilt.
    """
    kind = getattr(sys.modules.get(module), name, None) if module.startswith(_OBJECTS) else None
    if not isinstance(kind, type) or not issubclass(kind, BaseModel):
        raise LookupError(f"there is no class {module}.{name}")
    return kind
