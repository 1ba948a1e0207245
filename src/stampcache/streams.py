"""One making of a stream per key: whoever asks meanwhile reads along (ADR 0010, ADR 0016).

What the source gives is kept until it ends, so that a later reader gets the whole of it. Where readers
are threads, the one that is farthest ahead reads the source for all: a reader that stops early or goes on
slowly keeps nobody waiting. Where they are tasks, a task of its own reads the source, since an
asynchronous generator must not change the task it runs in. A failure of the source is everybody's.
When the last reader has left before the end, the source is closed; what it gave so far is lost.

Readers of threads and readers of a loop do not meet, nor do those of two loops. A request that came after
a change does not join a stream that began before it.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextvars import ContextVar
from typing import Any, Generic, Self, TypeVar

from msgspec import Struct

Head = TypeVar("Head")
Item = TypeVar("Item")
_READING: ContextVar[frozenset[int]] = ContextVar("stampcache_streams_read", default=frozenset())


class Opened(Struct, Generic[Head, Item], frozen=True):
    """A stream that has begun: what is known of it at once, and what is still to come."""

    head: Head
    items: Iterator[Item]


class AsyncOpened(Struct, Generic[Head, Item], frozen=True):
    """See `Opened`."""

    head: Head
    items: AsyncIterator[Item]


class Streams:
    """The streams under way in one process, by key; equal keys stand for streams of one type."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a reader may be forgotten, and so leave, at any point
        self._live: dict[Hashable, _Live[Any, Any] | _AsyncLive[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self._live)

    def read(
        self, key: Hashable, since: int | None, begin: Callable[[], Opened[Head, Item]]
    ) -> "Reader[Head, Item]":
        """Return a reader of the stream under way, or of the one that ``begin`` opens when it is read.

        Args:
            key: of the stream.
            since: the sequence of changes that the reader's request has seen; ``None``: it is unknown,
                so the reader shares with nobody.
            begin: opens the source; called by the first reader, at its first step.
        """
        return Reader(self._joined(("sync", key), since, lambda end: _Live(begin, since, end)))

    def aread(
        self,
        key: Hashable,
        since: int | None,
        begin: Callable[[], Awaitable[AsyncOpened[Head, Item]]],
    ) -> "AsyncReader[Head, Item]":
        """See `read`; for tasks of the running loop."""
        place = (id(asyncio.get_running_loop()), key)
        return AsyncReader(self._joined(place, since, lambda end: _AsyncLive(begin, since, end)))

    def _joined(
        self, place: Hashable, since: int | None, make: Callable[[Callable[[], None]], Any]
    ) -> Any:
        with self._lock:
            live = self._live.get(place)
            if live is not None and live.join(since):
                return live
            live = made = make(lambda: self._forget(place, made))
            made.join(since)
            if since is not None:
                self._live[place] = made
        return live

    def _forget(self, place: Hashable, live: object) -> None:
        with self._lock:
            if self._live.get(place) is live:
                del self._live[place]


class _Live(Generic[Head, Item]):
    """A stream that threads read together."""

    def __init__(
        self, begin: Callable[[], Opened[Head, Item]], since: int | None, end: Callable[[], None]
    ) -> None:
        self._begin = begin
        self._since = since
        self._forget = end
        self._lock = threading.Lock()
        self._readers_lock = threading.RLock()  # see `Streams`
        self._readers = 0
        self._source: Opened[Head, Item] | None = None
        self._items: list[Item] = []
        self._ended = False
        self._failure: BaseException | None = None

    def join(self, since: int | None) -> bool:
        """Add a reader, unless it must not be given this stream."""
        if id(self) in _READING.get():  # it would wait for itself
            return False
        with self._readers_lock:
            fits = self._readers == 0 or (None not in (since, self._since) and since == self._since)
            if self._ended or not fits:
                return False
            self._readers += 1
            return True

    def head(self) -> tuple[Head, bool]:
        """Return what is known at once, and whether this call has opened the stream."""
        opened = False
        with self._lock:
            if self._source is None and self._failure is None:
                opened = True
                with self._reading():
                    self._source = self._begin()
        if self._source is None:
            assert self._failure is not None
            raise self._failure
        return self._source.head, opened

    def item(self, position: int) -> Item:
        """Return the item at a position; raise `StopIteration` behind the last one."""
        if position >= len(self._items):
            with self._lock:
                if position >= len(self._items) and not self._ended:
                    self._advance()
        if position < len(self._items):
            return self._items[position]
        raise self._failure or StopIteration

    def _advance(self) -> None:
        assert self._source is not None
        with self._reading():
            try:
                self._items.append(next(self._source.items))
            except StopIteration:
                self._end(None)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Mark that this very thread reads the source, and end the stream with whatever fails there."""
        held = _READING.set(_READING.get() | {id(self)})
        try:
            yield
        except BaseException as error:
            self._end(error)
            raise
        finally:
            _READING.reset(held)

    def _end(self, failure: BaseException | None) -> None:
        self._failure, self._ended = failure, True
        self._forget()

    def leave(self) -> None:
        """Take a reader away; the last one closes a source that has not ended."""
        with self._readers_lock:
            self._readers -= 1
            abandoned = self._readers == 0 and not self._ended
            if abandoned:
                self._ended = True
        if abandoned:
            self._forget()
            close = getattr(self._source.items, "close", None) if self._source else None
            if close is not None:
                close()


class Reader(Generic[Head, Item]):
    """One reader of a stream; an iterator, that leaves the stream when it is closed or forgotten."""

    def __init__(self, live: _Live[Head, Item]) -> None:
        self._live = live
        self._position = 0
        self._left = False
        self.led = False

    def head(self) -> Head:
        """Return what is known before the first item; ``led`` tells then who opened the stream."""
        try:
            head, opened = self._live.head()
        except BaseException:
            self.close()
            raise
        self.led = self.led or opened
        return head

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        if self._left:
            raise StopIteration
        try:
            if self._position == 0:
                self.head()
            item = self._live.item(self._position)
        except BaseException:
            self.close()
            raise
        self._position += 1
        return item

    def close(self) -> None:
        """Leave the stream."""
        if not self._left:
            self._left = True
            self._live.leave()

    def __del__(self) -> None:
        self.close()


class _AsyncLive(Generic[Head, Item]):
    """A stream that tasks of one loop read together."""

    def __init__(
        self,
        begin: Callable[[], Awaitable[AsyncOpened[Head, Item]]],
        since: int | None,
        end: Callable[[], None],
    ) -> None:
        self._begin = begin
        self._since = since
        self._forget = end
        self._loop = asyncio.get_running_loop()
        self._readers = 0
        self._source: AsyncOpened[Head, Item] | None = None
        self._items: list[Item] = []
        self._ended = False
        self._failure: Exception | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None

    def join(self, since: int | None) -> bool:
        """See `_Live.join`."""
        if self._ended or id(self) in _READING.get():
            return False
        if self._readers and (None in (since, self._since) or since != self._since):
            return False
        self._readers += 1
        return True

    async def head(self) -> tuple[Head, bool]:
        """See `_Live.head`."""
        opened = self._task is None
        if self._task is None:
            self._task = self._loop.create_task(self._read())
        while self._source is None and not self._ended:
            await self._change()
        if self._source is None:
            raise self._failure or asyncio.CancelledError
        return self._source.head, opened

    async def item(self, position: int) -> Item:
        """See `_Live.item`; raises `StopAsyncIteration` behind the last one."""
        while position >= len(self._items):
            if self._ended:
                raise self._failure or StopAsyncIteration
            await self._change()
        return self._items[position]

    async def _change(self) -> None:
        news: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(news)
        await news

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for news in waiting:
            if not news.done():
                news.set_result(None)

    async def _read(self) -> None:
        _READING.set(_READING.get() | {id(self)})  # in this task's own context
        try:
            self._source = await self._begin()
            self._tell()
            async for item in self._source.items:
                self._items.append(item)
                self._tell()
        except Exception as error:  # noqa: BLE001 - it is raised to each reader
            self._failure = error
        finally:
            self._ended = True
            self._forget()
            self._tell()
            await self._close()

    async def _close(self) -> None:
        close = getattr(self._source.items, "aclose", None) if self._source else None
        if close is not None:
            await close()

    def leave(self) -> None:
        """See `_Live.leave`; may be called by any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        self._readers -= 1
        if self._readers == 0 and not self._ended:
            self._ended = True
            self._forget()
            if self._task is not None:
                self._task.cancel()


class AsyncReader(Generic[Head, Item]):
    """See `Reader`."""

    def __init__(self, live: _AsyncLive[Head, Item]) -> None:
        self._live = live
        self._position = 0
        self._left = False
        self.led = False

    async def head(self) -> Head:
        """See `Reader.head`."""
        try:
            head, opened = await self._live.head()
        except BaseException:
            self._leave()
            raise
        self.led = self.led or opened
        return head

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        if self._left:
            raise StopAsyncIteration
        try:
            if self._position == 0:
                await self.head()
            item = await self._live.item(self._position)
        except BaseException:
            self._leave()
            raise
        self._position += 1
        return item

    async def aclose(self) -> None:
        """Leave the stream."""
        self._leave()

    def _leave(self) -> None:
        if not self._left:
            self._left = True
            self._live.leave()

    def __del__(self) -> None:
        self._leave()
