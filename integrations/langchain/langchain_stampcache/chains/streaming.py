"""The same path for streams: read along with an equal one, replayed, or made and passed on as it comes.

What is stored is what the chunks make, once the last one has come; a stream that fails, or that all
its readers leave, stores nothing. The chunks of one stream are given to several callers, and each gets
copies of its own.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    aclosing,
    asynccontextmanager,
    closing,
    nullcontext,
)
from typing import Any, TypeAlias, TypeVar

from langchain_stampcache.caller import Caller
from langchain_stampcache.chains.serving import Serving
from langchain_stampcache.chains.turn import Chunks, Documents, Turn, own, reset_all
from langchain_stampcache.pieces import Flowing, put_together
from stampcache import Hit, Level, Miss
from stampcache.adapters import (
    AsyncOpened,
    Begun,
    CanonicalError,
    Kept,
    Opened,
    Replay,
    Streaming,
    fields,
    readings,
)

Head: TypeAlias = Documents | None
Chunk = TypeVar("Chunk")


class ChainStreaming:
    """The streams of one chain."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._streaming = Streaming(serving.front)

    def stream(self, turn: Turn) -> Generator[Any, None, None]:
        """Yield the chunks of one answer."""
        serving = self._serving
        serving.tell()
        serving.front.run(serving.prepare(turn))
        ask = serving.ask(turn)
        chunks = turn.chunks(serving.parts.flow)
        if isinstance(ask, Miss):
            yield from self._past(turn, ask, chunks)
            return
        reader = self._streaming.stream(
            ask, self._replay(turn), lambda _: self._made(turn), recheck=serving.recheck(turn)
        )
        with closing(reader):
            begun = reader.head()
            yield from chunks.opening(_documents(turn, begun))
            for item in reader:
                yield from chunks.piece(_own(item, begun, led=reader.led))
            yield from chunks.closing(self._streaming.report(begun, led=reader.led))

    async def astream(self, turn: Turn) -> AsyncGenerator[Any, None]:
        """See `stream`."""
        serving = self._serving
        serving.tell()
        await serving.front.arun(serving.prepare(turn))
        ask = serving.ask(turn)
        chunks = turn.chunks(serving.parts.flow)
        if isinstance(ask, Miss):
            async with aclosing(self._apast(turn, ask, chunks)) as made:
                async for chunk in made:
                    yield chunk
            return
        reader = await self._streaming.astream(
            ask, self._replay(turn), lambda _: self._amade(turn), recheck=serving.recheck(turn)
        )
        async with aclosing(reader):
            begun = await reader.head()
            for chunk in chunks.opening(_documents(turn, begun)):
                yield chunk
            async for item in reader:
                for chunk in chunks.piece(_own(item, begun, led=reader.led)):
                    yield chunk
            for chunk in chunks.closing(self._streaming.report(begun, led=reader.led)):
                yield chunk

    def _past(self, turn: Turn, ask: Miss, chunks: Chunks) -> Iterator[Any]:
        """Yield the chunks of an answer in which the cache takes no part."""
        self._serving.front.bypassed(ask)
        made = self._made(turn)
        yield from chunks.opening(made.head)
        for item in made.items:
            yield from chunks.piece(item)
        yield from chunks.closing(fields(ask))

    async def _apast(self, turn: Turn, ask: Miss, chunks: Chunks) -> AsyncGenerator[Any, None]:
        """See `_past`."""
        self._serving.front.bypassed(ask)
        made = await self._amade(turn)
        for chunk in chunks.opening(made.head):
            yield chunk
        async with _aclosed(made.items) as items:
            async for item in items:
                for chunk in chunks.piece(item):
                    yield chunk
        for chunk in chunks.closing(fields(ask)):
            yield chunk

    def _replay(self, turn: Turn) -> Replay[Head, object]:
        def keep(head: Head, items: Sequence[object]) -> Kept | None:  # noqa: ARG001 - the turn has it
            try:
                raw = put_together(items, self._serving.parts.flow)
            except CanonicalError:
                return None
            return self._serving.kept(turn, raw)

        return Replay(read=turn.replayed, keep=keep)

    def _made(self, turn: Turn) -> Opened[Head, object]:
        self._serving.front.run(self._serving.ready(turn))
        return Opened(turn.documents, self._items(turn))

    async def _amade(self, turn: Turn) -> AsyncOpened[Head, object]:
        await self._serving.front.arun(self._serving.ready(turn))
        return AsyncOpened(turn.documents, self._aitems(turn))

    def _items(self, turn: Turn) -> Iterator[object]:
        """Yield the chunks of the chain; the time that it took for them is noted."""
        runnable = self._serving.parts.runnable
        since = time.perf_counter()
        if self._serving.parts.flow is Flowing.NOT:
            with self._hearing(turn):
                whole = runnable.invoke(turn.to_run(), turn.running())
            turn.latency_s += time.perf_counter() - since
            yield turn.shared(whole)
            return
        with closing(self._each(turn, runnable.stream(turn.to_run(), turn.running()))) as items:
            for item in items:
                turn.latency_s += time.perf_counter() - since
                yield turn.shared(item)
                since = time.perf_counter()
        turn.latency_s += time.perf_counter() - since

    async def _aitems(self, turn: Turn) -> AsyncIterator[object]:
        """See `_items`."""
        runnable = self._serving.parts.runnable
        since = time.perf_counter()
        if self._serving.parts.flow is Flowing.NOT:
            with self._hearing(turn):
                whole = await runnable.ainvoke(turn.to_run(), turn.running())
            turn.latency_s += time.perf_counter() - since
            yield turn.shared(whole)
            return
        source = runnable.astream(turn.to_run(), turn.running())
        async with aclosing(self._aeach(turn, source)) as items:
            async for item in items:
                turn.latency_s += time.perf_counter() - since
                yield turn.shared(item)
                since = time.perf_counter()
        turn.latency_s += time.perf_counter() - since

    def _hearing(self, turn: Turn) -> AbstractContextManager[object]:
        """Note the searches of the watched index that are made inside."""
        watched = self._serving.parts.validity.watched
        return readings(turn.heard) if watched else nullcontext()

    def _each(self, turn: Turn, chunks: Iterator[Chunk]) -> Generator[Chunk, None, None]:
        """Yield chunks; searches are noted while one is made, and not where it is read."""
        try:
            while True:
                with self._hearing(turn):
                    try:
                        chunk = next(chunks)
                    except StopIteration:
                        return
                yield chunk
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()

    async def _aeach(self, turn: Turn, chunks: AsyncIterator[Chunk]) -> AsyncGenerator[Chunk, None]:
        """See `_each`."""
        async with _aclosed(chunks):
            while True:
                with self._hearing(turn):
                    try:
                        chunk = await anext(chunks)
                    except StopAsyncIteration:
                        return
                yield chunk


def within(caller: Caller, chunks: Generator[Chunk, None, None]) -> Iterator[Chunk]:
    """Yield chunks, each made inside of the scope of who asked for the stream."""
    with closing(chunks):
        while True:
            with caller.inside():
                try:
                    chunk = next(chunks)
                except StopIteration:
                    return
            yield chunk


async def awithin(
    caller: Caller, chunks: AsyncGenerator[Chunk, None]
) -> AsyncGenerator[Chunk, None]:
    """See `within`."""
    async with aclosing(chunks):
        while True:
            with caller.inside():
                try:
                    chunk = await anext(chunks)
                except StopAsyncIteration:
                    return
            yield chunk


@asynccontextmanager
async def _aclosed(items: AsyncIterator[Any]) -> AsyncIterator[AsyncIterator[Any]]:
    """Close a source that can be closed, also where its reader leaves before its end."""
    try:
        yield items
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()


def _documents(turn: Turn, begun: Begun[Head]) -> Head:
    """Return the documents that an answer is made from; the turn's own where they are the same."""
    found = begun.outcome
    same = begun.made or (isinstance(found, Hit) and found.level is Level.EXACT)
    mine = same and turn.documents is not None
    copied: Head = own(turn.documents if mine else begun.head)
    return copied


def _own(item: object, begun: Begun[Head], *, led: bool) -> object:
    """Return a caller's own copy of a chunk; who only reads along has spent no tokens on it."""
    mine: object = own(item)
    if begun.made and not led and mine is not item:
        reset_all(mine)
    return mine
