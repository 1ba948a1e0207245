"""Streams through a `Front`: read along with an equal one, replayed from the cache, or made and kept.

A stream is stored when its source has ended, before its last reader is told so; one that fails or is
abandoned is not stored. Readers get the very same items: an adapter whose items can be changed copies
them for each of its callers.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from stampcache.adapters.front import Found, Front, Kept, Recheck
from stampcache.adapters.reporting import CacheFields, fields, shared_fields, stale_fields
from stampcache.effects import Flow
from stampcache.flows import Ask
from stampcache.model import Answer
from stampcache.outcome import Miss, Outcome, Stale
from stampcache.ports import Ticket
from stampcache.streams import AsyncOpened, AsyncReader, Opened, Reader
from stampcache.turns import Turn, said

Head = TypeVar("Head")
Item = TypeVar("Item")


class Begun(Generic[Head]):
    """What is known of a stream when it begins; ``answer`` is set once it has ended and is stored."""

    def __init__(self, outcome: Outcome, head: Head, answer: Answer | None, *, made: bool) -> None:
        self.outcome = outcome
        self.head = head
        self.answer = answer
        self.made = made

    def report(self, *, led: bool) -> CacheFields:
        """Return the fields for one reader: who reads along with another's making is told so."""
        if isinstance(self.outcome, Stale) and not self.made:
            return stale_fields(self.outcome)
        if led or not self.made:
            return fields(self.outcome)
        return shared_fields(self.outcome, self.answer or Answer(text=""))


class Replay(Struct, Generic[Head, Item], frozen=True, kw_only=True):
    """How an adapter's streams are read from the cache, and kept.

    ``read`` gives a stored answer as a stream, or raises `CodecError`. ``keep`` gives what is stored of
    a stream that has ended, or ``None`` where that has no stored form.
    """

    read: Callable[[Answer], Opened[Head, Item]]
    keep: Callable[[Head, Sequence[Item]], Kept | None]


class Streaming:
    """The streams of one adapter."""

    def __init__(self, front: Front) -> None:
        self._front = front

    def stream(
        self,
        ask: Ask,
        replay: Replay[Head, Item],
        make: Callable[[Miss | Stale], Opened[Head, Item]],
        *,
        recheck: Recheck | None = None,
    ) -> Reader[Begun[Head], Item]:
        """Return a reader of the answer; nothing is looked up or made before it is read.

        Args:
            ask: what `Front.ask` returned for the request.
            replay: how it is read from the cache, and kept.
            make: begins to make it after a lookup that found none. Its failure is the readers'.
            recheck: see `Front.serve`.
        """
        front = self._front

        def begin() -> Opened[Begun[Head], Item]:
            found = front.run(self._look(ask, replay, recheck))
            if isinstance(found, Found):
                stored = found.output
                known = found.outcome.answer
                return Opened(Begun(found.outcome, stored.head, known, made=False), stored.items)
            turn = front.run(self._turn(ask, replay, recheck))
            if turn.found is not None:
                known = turn.found.outcome.answer
                begun = Begun(turn.found.outcome, turn.found.output.head, known, made=False)
                return Opened(begun, turn.found.output.items)
            made = making(found, turn.ticket)
            begun = Begun(found, made.head, None, made=True)
            return Opened(begun, keeping(begun, made.items, turn.ticket))

        def making(found: Miss | Stale, ticket: Ticket) -> Opened[Head, Item]:
            with self._told(ticket):
                return make(found)

        def keeping(begun: Begun[Head], items: Iterator[Item], ticket: Ticket) -> Iterator[Item]:
            given: list[Item] = []
            with self._told(ticket), _closed_after(items):
                for item in items:
                    given.append(item)
                    yield item
            front.run(self._keep(ask, replay, begun, given))
            front.run(turns.give(ticket, ""))

        turns = front.core.turns
        place = front.place(ask)
        since = front.run(self._since(ask, place, aio=False))
        return front.core.streams.read(place, since, begin)

    async def astream(
        self,
        ask: Ask,
        replay: Replay[Head, Item],
        make: Callable[[Miss | Stale], Awaitable[AsyncOpened[Head, Item]]],
        *,
        recheck: Recheck | None = None,
    ) -> AsyncReader[Begun[Head], Item]:
        """See `stream`; for the tasks of the running loop."""
        front = self._front

        async def begin() -> AsyncOpened[Begun[Head], Item]:
            found = await front.arun(self._look(ask, replay, recheck))
            if isinstance(found, Found):
                stored = found.output
                known = found.outcome.answer
                begun = Begun(found.outcome, stored.head, known, made=False)
                return AsyncOpened(begun, _one_by_one(stored.items))
            turn = await front.arun(self._turn(ask, replay, recheck))
            if turn.found is not None:
                known = turn.found.outcome.answer
                begun = Begun(turn.found.outcome, turn.found.output.head, known, made=False)
                return AsyncOpened(begun, _one_by_one(turn.found.output.items))
            async with self._atold(turn.ticket):
                made = await make(found)
            begun = Begun(found, made.head, None, made=True)
            return AsyncOpened(begun, keeping(begun, made.items, turn.ticket))

        async def keeping(
            begun: Begun[Head], items: AsyncIterator[Item], ticket: Ticket
        ) -> AsyncIterator[Item]:
            given: list[Item] = []
            async with self._atold(ticket), _aclosed_after(items):
                async for item in items:
                    given.append(item)
                    yield item
            await front.arun(self._keep(ask, replay, begun, given))
            await front.arun(turns.give(ticket, ""))

        turns = front.core.turns
        place = front.place(ask)
        since = await front.arun(self._since(ask, place, aio=True))
        return front.core.streams.aread(place, since, begin)

    def _turn(
        self, ask: Ask, replay: Replay[Head, Item], recheck: Recheck | None
    ) -> Flow[Turn[Found[Opened[Head, Item]]]]:
        """Wait for the turn to make a stream; another process's is found when it has ended."""

        def read(answer: Answer, report: CacheFields) -> Opened[Head, Item]:  # noqa: ARG001 - each reader has its own
            return replay.read(answer)

        front = self._front
        key = front.place(ask)
        return (yield from front.core.turn(ask, key, lambda: front.again(ask, recheck, read)))

    @contextlib.contextmanager
    def _told(self, ticket: Ticket) -> Iterator[None]:
        """Tell other processes of a failure, and leave the stream to them where it is abandoned."""
        turns = self._front.core.turns
        try:
            yield
        except Exception as error:
            self._front.run(turns.give(ticket, said(error)))
            raise
        except BaseException:
            turns.let_go(ticket)
            raise

    @contextlib.asynccontextmanager
    async def _atold(self, ticket: Ticket) -> AsyncIterator[None]:
        """See `_told`."""
        turns = self._front.core.turns
        try:
            yield
        except Exception as error:
            await self._front.arun(turns.give(ticket, said(error)))
            raise
        except BaseException:
            turns.let_go(ticket)
            raise

    def report(self, begun: Begun[Head], *, led: bool) -> CacheFields:
        """Return the fields for one reader, and count it if it read along."""
        if not led:
            self._front.followed(begun.outcome)
        return begun.report(led=led)

    def _since(self, ask: Ask, place: Hashable, *, aio: bool) -> Flow[int | None]:
        """Return as of which change the request asks: as of one under way, if none since can matter."""
        core = self._front.core
        now = yield from core.sequence()
        begun = core.streams.since(place, aio=aio)
        if now is None or begun is None or begun == now:
            return now
        return now if (yield from core.changed(ask, begun)) else begun

    def _look(
        self, ask: Ask, replay: Replay[Head, Item], recheck: Recheck | None
    ) -> Flow[Found[Opened[Head, Item]] | Miss | Stale]:
        def read(answer: Answer, report: CacheFields) -> Opened[Head, Item]:  # noqa: ARG001 - each reader has its own
            return replay.read(answer)

        return self._front.look(ask, recheck=recheck, read=read)

    def _keep(
        self, ask: Ask, replay: Replay[Head, Item], begun: Begun[Head], given: Sequence[Item]
    ) -> Flow[None]:
        kept = self._front.kept(lambda: replay.keep(begun.head, given))
        if kept is None:
            return
        begun.answer = kept.answer
        yield from self._front.update(ask.request, kept, outcome=begun.outcome)


@contextlib.contextmanager
def _closed_after(items: Iterator[object]) -> Iterator[None]:
    """Close a source that can be closed, also where its readers left before its end."""
    try:
        yield
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


@contextlib.asynccontextmanager
async def _aclosed_after(items: AsyncIterator[object]) -> AsyncIterator[None]:
    """See `_closed_after`."""
    try:
        yield
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()


async def _one_by_one(items: Iterator[Item]) -> AsyncIterator[Item]:
    for item in items:
        yield item
