"""What is said in a chat, and the memory that it is read from and written to, as steps."""

from collections.abc import Sequence
from functools import partial

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemory
from llama_index.core.schema import NodeWithScore
from msgspec import Struct

from stampcache.adapters import Flow, Step


class Said(Struct, frozen=True, kw_only=True):
    """What a caller of a chat engine gives. Who only ``looks`` asks nothing, and writes no memory."""

    message: str
    history: list[ChatMessage] | None = None
    previous: list[NodeWithScore] | None = None
    streams: bool = False
    looks: bool = False


def written(memory: BaseMemory, messages: Sequence[ChatMessage]) -> Flow[None]:
    """Write messages to a memory, one after the other."""
    for message in messages:
        yield from Step(sync=partial(memory.put, message), aio=partial(memory.aput, message))


def history_for(memory: BaseMemory, said: Said) -> Flow[list[ChatMessage]]:
    """Return what a memory gives a model before this message."""
    if said.looks and said.history is not None:
        return said.history
    yield from overwritten(memory, said.history)
    return (yield from remembered(memory, said.message))


def overwritten(memory: BaseMemory, history: list[ChatMessage] | None) -> Flow[None]:
    """Begin a memory anew with a history that the caller gave."""
    if history is not None:
        yield from Step(sync=lambda: memory.set(history), aio=lambda: memory.aset(history))


def remembered(memory: BaseMemory, message: str) -> Step[list[ChatMessage]]:
    """Read what a memory shows a model for a message."""
    return Step(sync=lambda: memory.get(input=message), aio=lambda: memory.aget(input=message))
