"""Streamed answers: whole ones cut into pieces, pieces put together, and the chunks that carry them.

The pieces of a stored answer add up to it, as the chunks of a model do. What cannot be put together
without a guess is not stored: text of a parser that repeats what it has said would be doubled (ADR 0018).
"""

import enum
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Self, TypeAlias

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, BaseMessageChunk
from langchain_core.output_parsers import (
    BaseCumulativeTransformOutputParser,
    BaseTransformOutputParser,
)
from langchain_core.runnables import Runnable, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.utils import AddableDict
from pydantic import BaseModel

from stampcache.adapters import CanonicalError

AnyRunnable: TypeAlias = Runnable[Any, Any]
_PIECE = re.compile(r"\s*\S{1,24}|\s+\Z")
_REASONING = "reasoning_content"


class Flowing(enum.Enum):
    """How the chunks of a runnable make its answer."""

    ADDED = enum.auto()
    """each one is a further piece"""
    GROWING = enum.auto()
    """each one is the whole so far, so the last one is the answer"""
    GUESSED = enum.auto()
    """it is not known; texts and messages are added, other objects replace each other"""
    NOT = enum.auto()
    """they are no parts of the answer (patches, steps of a graph), so it is made as one chunk"""


def flowing(runnable: AnyRunnable) -> Flowing:
    """Return how the chunks of a runnable make its answer."""
    match runnable:
        case RunnableBindingBase():
            return flowing(runnable.bound)
        case RunnableWithFallbacks():
            return _either(flowing(each) for each in (runnable.runnable, *runnable.fallbacks))
        case RunnableSequence():
            inner = any(flowing(step) is Flowing.NOT for step in runnable.steps)
            return Flowing.NOT if inner else flowing(runnable.last)
        case BaseCumulativeTransformOutputParser():
            return Flowing.NOT if runnable.diff else Flowing.GROWING
        case BaseTransformOutputParser() | BaseLanguageModel():
            return Flowing.ADDED
    is_graph = any(kind.__module__.startswith("langgraph.") for kind in type(runnable).__mro__)
    return Flowing.NOT if is_graph else Flowing.GUESSED


def _either(ways: Iterable[Flowing]) -> Flowing:
    """Return how chunks come that may come in any of these ways."""
    known = set(ways)
    if len(known) == 1:
        return known.pop()
    return Flowing.NOT if Flowing.NOT in known else Flowing.GUESSED


class Piece(AddableDict):
    """A chunk of a mapping; where ``whole`` is set, its entries replace those before it."""

    def __init__(self, entries: Mapping[str, Any], *, whole: bool = False) -> None:
        super().__init__(entries)
        self.whole = whole

    def __add__(self, other: Mapping[str, Any]) -> Self:
        sum_ = type(self)(self)
        for name, entry in other.items():
            replaces = name not in self or (isinstance(other, Piece) and other.whole)
            sum_[name] = entry if replaces else _added(self[name], entry)
        return sum_

    def __radd__(self, other: Mapping[str, Any]) -> Self:
        return type(self)(other) + self


def _added(before: object, after: Any) -> object:
    if before is None or after is None:
        return before if after is None else after
    if isinstance(before, BaseMessage) and not isinstance(before, BaseMessageChunk):
        return after  # two whole messages add up to a prompt
    try:
        return before + after
    except TypeError:
        return after


def put_together(items: Sequence[object], flow: Flowing) -> object:
    """Return what the chunks of a stream make.

    Raises:
        CanonicalError: there are none, or it cannot be told how they belong together.
    """
    given = [item for item in items if item is not None] or list(items)
    if not given:
        raise CanonicalError("a stream without chunks")
    if len(given) == 1 or flow is Flowing.GROWING:
        return given[-1]
    texts = [str(item) for item in given if isinstance(item, str) and item]
    added = flow is Flowing.ADDED
    if all(isinstance(item, str) for item in given) and (added or not _grows(texts)):
        return "".join(texts)
    if all(isinstance(item, BaseMessageChunk) for item in given):
        return _message_of([item for item in given if isinstance(item, BaseMessageChunk)])
    if all(isinstance(item, AddableDict) for item in given):
        return _mapping_of([item for item in given if isinstance(item, AddableDict)])
    parts = any(isinstance(item, BaseMessageChunk) for item in given)
    if not parts and all(isinstance(item, Mapping | BaseModel) for item in given):
        return given[-1]
    if added and all(isinstance(item, list) for item in given):
        return [one for item in given if isinstance(item, list) for one in item]
    raise CanonicalError(f"chunks of {type(given[-1]).__qualname__} that may be added, or not")


def _grows(texts: Sequence[str]) -> bool:
    """Tell whether each text may be the whole so far, as of a parser that nobody can see."""
    pairs = list(pairwise(texts))
    return bool(pairs) and all(later.startswith(text) for text, later in pairs)


def _message_of(chunks: Sequence[BaseMessageChunk]) -> BaseMessageChunk:
    first, *rest = _addable(chunks)
    if isinstance(first, AIMessageChunk):
        return first + rest  # all at once: each addition reads the calls of tools anew
    for chunk in rest:
        first = first + chunk
    return first


def _addable(chunks: Sequence[BaseMessageChunk]) -> list[BaseMessageChunk]:
    """Return chunks of texts without empty lists among them, after which LangChain drops texts."""
    if all(chunk.content == [] or isinstance(chunk.content, str) for chunk in chunks):
        return [
            chunk if chunk.content else chunk.model_copy(update={"content": ""}) for chunk in chunks
        ]
    return list(chunks)


def _mapping_of(chunks: Sequence[AddableDict]) -> dict[str, object]:
    entries: dict[str, list[object]] = {}
    for chunk in chunks:
        for name, entry in chunk.items():
            entries.setdefault(name, []).append(entry)
    return {name: put_together(parts, Flowing.GUESSED) for name, parts in entries.items()}


def pieces_of(answer: object) -> list[object]:
    """Return an answer as the pieces of a stream; what is neither text nor a reply is one piece."""
    match answer:
        case str():
            return list(_PIECE.findall(answer)) or [answer]
        case AIMessageChunk():
            return [answer]
        case AIMessage():
            return list(_chunks_of(answer))
    return [answer]


def _chunks_of(message: AIMessage) -> list[AIMessageChunk]:
    kwargs, content = dict(message.additional_kwargs), message.content
    # Without the message's name, which LangChain drops when it adds chunks.
    empty: str | list[Any] = "" if isinstance(content, str) else []
    thought = kwargs.pop(_REASONING, None)
    thoughts = pieces_of(thought) if isinstance(thought, str) and thought else []
    if thought is not None and not thoughts:
        kwargs[_REASONING] = thought
    said = pieces_of(content) if isinstance(content, str) and content else [content]
    return [
        *(AIMessageChunk(content=empty, additional_kwargs={_REASONING: each}) for each in thoughts),
        *(AIMessageChunk(content=each) for each in said),  # type: ignore[arg-type]  # texts or blocks
        _last_chunk(message, empty, kwargs),
    ]


def _last_chunk(
    message: AIMessage, empty: str | list[Any], kwargs: dict[str, Any]
) -> AIMessageChunk:
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    return AIMessageChunk(
        content=empty,
        additional_kwargs=kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        tool_call_chunks=[
            {
                "name": call["name"],
                "args": call["args"] if isinstance(call["args"], str) else json.dumps(call["args"]),
                "id": call["id"],
                "index": number,
                "type": "tool_call_chunk",
            }
            for number, call in enumerate(calls)
        ],
        chunk_position="last",
    )
