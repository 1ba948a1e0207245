"""Streams that are handed on and taken down; only one that ran to its end is complete."""

import enum
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import TypeAlias

from llama_index.core.types import TokenAsyncGen, TokenGen

from llama_index_stampcache.usage import Meter

Ended: TypeAlias = Callable[[list[str]], None]
EndedAsync: TypeAlias = Callable[[list[str]], Awaitable[None]]


class _End(enum.Enum):
    """What stands for the end of a stream, since any text may be a chunk."""

    END = "end"


def tee(inner: TokenGen, meter: Meter, ended: Ended) -> Generator[str, None, None]:
    """Yield what ``inner`` yields; run ``ended`` with all of it when it is exhausted.

    A consumer that stops early, or an error of ``inner``, leaves nothing behind.
    """
    taken: list[str] = []
    steps = iter(inner)
    try:
        while True:
            chunk = meter.call(lambda: next(steps, _End.END))
            if chunk is _End.END:
                break
            taken.append(chunk)
            yield chunk
    finally:
        if isinstance(inner, Generator):
            inner.close()
    ended(taken)


async def atee(inner: TokenAsyncGen, meter: Meter, ended: EndedAsync) -> AsyncGenerator[str, None]:
    """Do the same for an async stream."""
    taken: list[str] = []
    steps = aiter(inner)

    async def step() -> str | _End:
        return await anext(steps, _End.END)

    try:
        while True:
            chunk = await meter.acall(step)
            if chunk is _End.END:
                break
            taken.append(chunk)
            yield chunk
    finally:
        if isinstance(inner, AsyncGenerator):
            await inner.aclose()
    await ended(taken)
