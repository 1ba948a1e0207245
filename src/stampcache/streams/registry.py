"""The streams under way in one process, by key."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from stampcache.streams.opened import AsyncOpened, Head, Item, Opened
from stampcache.streams.tasks import AsyncLive, AsyncReader
from stampcache.streams.threads import Live, Reader


class Streams:
    """Streams by key; equal keys stand for streams of one type.

    Whoever has waited for ``timeout_s`` for another to begin a stream makes its own.
    """

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._lock = threading.RLock()  # a reader may be forgotten, and so leave, at any point
        self._live: dict[Hashable, Live[Any, Any] | AsyncLive[Any, Any]] = {}
        self._pid = os.getpid()

    def __len__(self) -> int:
        return len(self._live)

    def since(self, key: Hashable, *, aio: bool) -> int | None:
        """Return as of which change the stream is that one could join; ``None`` where there is none."""
        live = self._live.get(_place(key, aio=aio))
        return None if live is None else live.since

    def read(
        self, key: Hashable, since: int | None, begin: Callable[[], Opened[Head, Item]]
    ) -> Reader[Head, Item]:
        """Return a reader of the stream under way, or of the one that ``begin`` opens when it is read.

        Args:
            key: of the stream.
            since: the sequence of changes that the reader's request has seen; ``None``: it is unknown,
                so the reader shares with nobody.
            begin: opens the source; called by the first reader, at its first step.
        """
        place = _place(key, aio=False)
        live: Live[Head, Item] = self._joined(place, since, lambda end: Live(begin, since, end))
        return Reader(live, lambda: Live.alone(begin), timeout_s=self._timeout_s)

    def aread(
        self,
        key: Hashable,
        since: int | None,
        begin: Callable[[], Awaitable[AsyncOpened[Head, Item]]],
    ) -> AsyncReader[Head, Item]:
        """See `read`; for tasks of the running loop."""
        place = _place(key, aio=True)
        live: AsyncLive[Head, Item] = self._joined(
            place, since, lambda end: AsyncLive(begin, since, end)
        )
        return AsyncReader(live, lambda: AsyncLive.alone(begin), timeout_s=self._timeout_s)

    def _joined(
        self, place: Hashable, since: int | None, make: Callable[[Callable[[], None]], Any]
    ) -> Any:
        if os.getpid() != self._pid:  # a forked child has none of the readers' threads
            self._lock, self._live, self._pid = threading.RLock(), {}, os.getpid()
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


def _place(key: Hashable, *, aio: bool) -> Hashable:
    return (id(asyncio.get_running_loop()) if aio else "sync", key)
