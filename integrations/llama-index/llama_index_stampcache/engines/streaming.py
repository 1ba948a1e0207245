"""Answers that may be streams: made once, read by all that ask for them meanwhile, kept at their end.

An answer opens with all that is known of it at once (`Opening`); its texts follow. A whole answer has
none, so that it has ended when it has begun.
"""

import asyncio
import enum
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import NoReturn, TypeAlias

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from msgspec import Struct
from msgspec.structs import replace

from llama_index_stampcache.engines.making import NOT_STORABLE, Fresh
from llama_index_stampcache.engines.payload import Payload
from llama_index_stampcache.usage import Meter
from stampcache.adapters import AsyncReader, Begun, Reader, Step

STREAMS = (StreamingResponse, AsyncStreamingResponse)


class Opening(Struct, frozen=True):
    """What is known when an answer begins. ``fresh`` is set where it was made now.

    ``payload`` is ``None`` where it has no stored form: then nobody but its maker can be given it.
    """

    payload: Payload | None
    fresh: Fresh | None

    @property
    def streams(self) -> bool:
        """Whether texts follow."""
        if self.fresh is not None:
            return type(self.fresh.response) in STREAMS
        return self.payload is not None and self.payload.kind == "stream"


ThreadReader: TypeAlias = Reader[Begun[Opening], str]
TaskReader: TypeAlias = AsyncReader[Begun[Opening], str]


class _End(enum.Enum):
    """What stands for the end of a stream, since any text may be a chunk."""

    END = "end"


class Along:
    """One caller's place in an answer, for threads or for tasks."""

    def __init__(self, reader: ThreadReader | TaskReader) -> None:
        self._reader = reader

    @property
    def led(self) -> bool:
        """Whether this caller is the one for whom it was looked up or made."""
        return self._reader.led

    def head(self) -> Step[Begun[Opening]]:
        """Wait until it begins."""
        reader = self._reader
        if isinstance(reader, AsyncReader):
            return Step(sync=_never, aio=reader.head)
        return Step(sync=reader.head, aio=lambda: asyncio.to_thread(reader.head))

    def end(self) -> Step[None]:
        """Read it to its end, which stores it."""
        reader = self._reader
        if isinstance(reader, AsyncReader):
            return Step(sync=_never, aio=lambda: _aread(reader))
        return Step(sync=lambda: _read(reader), aio=lambda: asyncio.to_thread(_read, reader))

    def texts(self) -> Generator[str, None, None] | AsyncGenerator[str, None]:
        """Return what follows, as the framework has it."""
        if isinstance(self._reader, AsyncReader):
            return _given_async(self._reader)
        return _given(self._reader)

    def leave(self) -> Step[None]:
        """Take no further part."""
        reader = self._reader
        if isinstance(reader, AsyncReader):
            return Step(sync=_never, aio=reader.aclose)
        return Step(sync=reader.close, aio=lambda: asyncio.to_thread(reader.close))


def readable(fresh: Fresh) -> Fresh:
    """Return what was made, without its stored form where a thread cannot read it."""
    if type(fresh.response) is AsyncStreamingResponse:
        return replace(fresh, payload=None, unfit=NOT_STORABLE)
    return fresh


def source(fresh: Fresh) -> Iterator[str]:
    """Return the texts of an answer that a thread has asked for; a whole one has none."""
    response = fresh.response
    if type(response) is not StreamingResponse:
        return iter(())
    return _metered(response.response_gen, fresh.meter)


def asource(fresh: Fresh) -> AsyncIterator[str]:
    """Return the texts of an answer that a task has asked for."""
    response = fresh.response
    if type(response) is AsyncStreamingResponse:
        return _ametered(response.response_gen, fresh.meter)
    return _in_threads(source(fresh))


def _metered(inner: Iterator[str], meter: Meter) -> Generator[str, None, None]:
    steps = iter(inner)
    try:
        while (chunk := meter.call(lambda: next(steps, _End.END))) is not _End.END:
            yield chunk
    finally:
        if isinstance(inner, Generator):
            inner.close()


async def _ametered(inner: AsyncIterator[str], meter: Meter) -> AsyncGenerator[str, None]:
    steps = aiter(inner)

    async def step() -> str | _End:
        return await anext(steps, _End.END)

    try:
        while (chunk := await meter.acall(step)) is not _End.END:
            yield chunk
    finally:
        if isinstance(inner, AsyncGenerator):
            await inner.aclose()


def _read(reader: ThreadReader) -> None:
    for _ in reader:
        pass


async def _aread(reader: TaskReader) -> None:
    async for _ in reader:
        pass


async def _in_threads(inner: Iterator[str]) -> AsyncGenerator[str, None]:
    while (chunk := await asyncio.to_thread(next, inner, _End.END)) is not _End.END:
        yield chunk


def _given(reader: ThreadReader) -> Generator[str, None, None]:
    try:
        yield from reader
    finally:
        reader.close()


async def _given_async(reader: TaskReader) -> AsyncGenerator[str, None]:
    try:
        async for text in reader:
            yield text
    finally:
        await reader.aclose()


def _never() -> NoReturn:
    raise AssertionError("no thread reads what tasks read")  # pragma: no cover
