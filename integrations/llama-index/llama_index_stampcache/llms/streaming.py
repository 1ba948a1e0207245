"""The chunks of a model's stream: taken down as they come, and each reader's own when they are read."""

import contextlib
import copy
import enum
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import TypeAlias, TypeVar, cast

from msgspec import Struct

from llama_index_stampcache.llms.forms import Response, Tree, rebuilt, reported, settled, spared
from stampcache.adapters import CacheFields

Given = TypeVar("Given")
Taken: TypeAlias = Callable[[Response], Tree | None]


class _End(enum.Enum):
    """What stands for the end of a stream."""

    END = "end"


class Chunk(Struct, frozen=True):
    """A chunk of a stream: as plain data, where it has such a form, and as the model gave it."""

    tree: Tree | None
    fresh: Response | None


class Making:
    """How long the model took so far, without the time in which a reader of its stream paused."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0

    def call(self, make: Callable[[], Given]) -> Given:
        """Return what ``make`` returns."""
        started = time.perf_counter()
        try:
            return make()
        finally:
            self.elapsed_s += time.perf_counter() - started

    async def acall(self, make: Callable[[], Awaitable[Given]]) -> Given:
        """Await what ``make`` gives."""
        started = time.perf_counter()
        try:
            return await make()
        finally:
            self.elapsed_s += time.perf_counter() - started


def chunks_of(opened: Iterator[Response], making: Making, taken: Taken) -> Iterator[Chunk]:
    """Yield the chunks of a model's stream, which is closed in the end."""
    with _closed(opened):
        while (fresh := making.call(lambda: next(opened, _End.END))) is not _End.END:
            yield _chunk(fresh, taken(fresh))


async def achunks_of(
    opened: AsyncIterator[Response], making: Making, taken: Taken
) -> AsyncIterator[Chunk]:
    """See `chunks_of`."""

    async def step() -> Response | _End:
        return await anext(opened, _End.END)

    async with _aclosed(opened):
        while (fresh := await making.acall(step)) is not _End.END:
            yield _chunk(fresh, taken(fresh))


def own_chunk(chunk: Chunk, report: CacheFields, *, led: bool) -> Response:
    """Return a chunk as one reader's own; ``led``: that reader asked the model, and gets what it gave."""
    if chunk.tree is not None and (not led or chunk.fresh is None):  # it was looked up once more
        return reported(rebuilt(spared(chunk.tree)), report)
    fresh = cast(Response, chunk.fresh)  # a chunk has one of both
    return reported(fresh if led else copy.deepcopy(fresh), report)


def marked(chunks: Iterator[Response], report: CacheFields) -> Generator[Response, None, None]:
    """Yield the chunks of a stream in which the cache takes no part, with the report beside each."""
    with _closed(chunks):
        for chunk in chunks:
            yield reported(chunk, report)


async def amarked(
    chunks: AsyncIterator[Response], report: CacheFields
) -> AsyncGenerator[Response, None]:
    """See `marked`."""
    async with _aclosed(chunks):
        async for chunk in chunks:
            yield reported(chunk, report)


def _chunk(fresh: Response, tree: Tree | None) -> Chunk:
    return Chunk(tree, fresh if tree is None else settled(fresh, tree))


@contextlib.contextmanager
def _closed(source: Iterator[Response]) -> Iterator[None]:
    """Close a model's stream, where it can be closed, also if it was left before its end."""
    try:
        yield
    finally:
        close = getattr(source, "close", None)
        if close is not None:
            close()


@contextlib.asynccontextmanager
async def _aclosed(source: AsyncIterator[Response]) -> AsyncIterator[None]:
    """See `_closed`."""
    try:
        yield
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()
