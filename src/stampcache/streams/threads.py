"""A stream that threads read together: the one that is farthest ahead reads the source for all.

The source runs in a context of its own, whichever thread reads it. So a scope or a token that it sets in
one step is found in its next one, and no reader is left with it.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from typing import Generic, Self, TypeVar

from stampcache.streams.opened import INSIDE, HandedOver, Head, Item, Opened, may_share, no_end

Returned = TypeVar("Returned")


class Live(Generic[Head, Item]):
    """One making under way."""

    def __init__(
        self, begin: Callable[[], Opened[Head, Item]], since: int | None, end: Callable[[], None]
    ) -> None:
        self.since = since
        self._begin = begin
        self._forget = end
        self._inside = object()  # what `INSIDE` holds of it
        self._context: Context | None = None
        self._source_lock = threading.Lock()  # held by the thread that runs the source
        self._readers_lock = (
            threading.RLock()
        )  # a reader may be forgotten, and so leave, at any point
        self._readers = 0
        self._source: Opened[Head, Item] | None = None
        self._items: list[Item] = []
        self._ended = False
        self._abandoned = False
        self._failure: Exception | None = None

    def join(self, since: int | None) -> bool:
        """Add a reader, unless it must not be given this stream."""
        if self._inside in INSIDE.get():
            return False
        with self._readers_lock:
            if self._ended or (self._readers and not may_share(since, self.since)):
                return False
            self._readers += 1
            return True

    def head(self, timeout_s: float) -> tuple[Head, bool]:
        """Return what is known at once, and whether this call has opened the stream.

        Raises:
            HandedOver: the caller must make its own.
        """
        opened = False
        if self._source is None:
            with self._at_the_source(timeout_s):
                if self._source is None and not self._ended:
                    self._open()
                    opened = True
        if self._source is None:
            raise self._failure or HandedOver("the stream was left before it began")
        return self._source.head, opened

    def item(self, position: int) -> Item:
        """Return the item at a position; raise `StopIteration` behind the last one."""
        if position >= len(self._items):
            with self._at_the_source():
                if position >= len(self._items) and not self._ended:
                    self._advance()
        if position < len(self._items):
            return self._items[position]
        raise self._failure or StopIteration

    def leave(self) -> None:
        """Take a reader away; the last one closes a source that has not ended."""
        with self._readers_lock:
            self._readers -= 1
            if self._readers or self._ended:
                return
            self._ended = self._abandoned = True
        self._forget()
        self._close_if_abandoned()

    @classmethod
    def alone(cls, begin: Callable[[], Opened[Head, Item]]) -> Self:
        """Return one with a single reader, that nobody else finds."""
        live = cls(begin, None, lambda: None)
        live.join(None)
        return live

    @contextlib.contextmanager
    def _at_the_source(self, timeout_s: float = -1) -> Iterator[None]:
        if self._inside in INSIDE.get():
            raise RuntimeError("a stream is read inside of its own making")
        if not self._source_lock.acquire(timeout=min(timeout_s, threading.TIMEOUT_MAX)):
            raise HandedOver(f"an equal request has been at it for {timeout_s:g} s")
        try:
            yield
        finally:
            self._source_lock.release()
            self._close_if_abandoned()

    def _open(self) -> None:
        context = self._context = copy_context()
        context.run(INSIDE.set, INSIDE.get() | {self._inside})
        try:
            self._source = context.run(self._begin)
        except Exception as error:  # noqa: BLE001 - it is raised to each reader
            failure = no_end(error)
            self._end(failure)
            raise failure from failure.__cause__
        except BaseException:
            self._end(HandedOver("the request that began the stream was interrupted"))
            raise

    def _advance(self) -> None:
        assert self._source is not None and self._context is not None
        try:
            self._items.append(self._context.run(next, self._source.items))
        except StopIteration:
            self._end(None)
        except Exception as error:
            self._end(error)
            raise
        except BaseException:
            self._end(HandedOver("the request that read the stream for all was interrupted"))
            raise

    def _end(self, failure: Exception | None) -> None:
        self._failure, self._ended = failure, True
        self._forget()

    def _close_if_abandoned(self) -> None:
        """Close the source, unless a thread is inside of it: that one does so when it comes out."""
        while self._abandoned and self._source_lock.acquire(blocking=False):
            try:
                self._abandoned = False
                close = getattr(self._source.items, "close", None) if self._source else None
                if close is not None and self._context is not None:
                    self._context.run(close)
            finally:
                self._source_lock.release()


class Reader(Generic[Head, Item]):
    """One reader of a stream; an iterator, that leaves the stream when it is closed or forgotten."""

    def __init__(
        self, live: Live[Head, Item], alone: Callable[[], Live[Head, Item]], *, timeout_s: float
    ) -> None:
        self._live = live
        self._alone = alone
        self._timeout_s = timeout_s
        self._position = 0
        self._begun = False
        self._left = False
        self.led = False

    def head(self) -> Head:
        """Return what is known before the first item; ``led`` tells then who opened the stream."""
        try:
            try:
                head, opened = self._live.head(self._timeout_s)
            except HandedOver:
                if self._begun or self._left:
                    raise
                self._live.leave()
                self._live = self._alone()
                head, opened = self._live.head(self._timeout_s)
        except BaseException:
            self.close()
            raise
        self._begun = True
        self.led = self.led or opened
        return head

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        if self._left:
            raise StopIteration
        if not self._begun:
            self.head()
        try:
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
