"""A stream that the tasks of one loop read together.

A task of its own reads the source, since an asynchronous generator must not change the task it runs in.
It reads no item before a reader wants it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Self

from stampcache.streams.opened import INSIDE, AsyncOpened, HandedOver, Head, Item, may_share, no_end


class AsyncLive(Generic[Head, Item]):
    """One making under way."""

    def __init__(
        self,
        begin: Callable[[], Awaitable[AsyncOpened[Head, Item]]],
        since: int | None,
        end: Callable[[], None],
    ) -> None:
        self.since = since
        self._begin = begin
        self._forget = end
        self._inside = object()
        self.loop = asyncio.get_running_loop()
        self._readers = 0
        self._wanted = 0
        self._source: AsyncOpened[Head, Item] | None = None
        self._items: list[Item] = []
        self._ended = False
        self._failure: BaseException | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._demand: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def alone(cls, begin: Callable[[], Awaitable[AsyncOpened[Head, Item]]]) -> Self:
        """Return one with a single reader, that nobody else finds."""
        live = cls(begin, None, lambda: None)
        live.join(None)
        return live

    def join(self, since: int | None) -> bool:
        """See `threads.Live.join`."""
        if self._ended or self._inside in INSIDE.get():
            return False
        if self._readers and not may_share(since, self.since):
            return False
        self._readers += 1
        return True

    async def head(self, timeout_s: float) -> tuple[Head, bool]:
        """See `threads.Live.head`."""
        opened = self._task is None
        if self._task is None:
            self._task = self.loop.create_task(self._read())
            self._task.add_done_callback(self._over)
        while self._source is None and not self._ended:
            await self._change(None if opened else timeout_s)
        if self._source is None:
            raise self._failure or HandedOver("the stream was left before it began")
        return self._source.head, opened

    async def item(self, position: int) -> Item:
        """See `threads.Live.item`; raises `StopAsyncIteration` behind the last one."""
        self._wanted = max(self._wanted, position + 1)
        if self._demand is not None and not self._demand.done():
            self._demand.set_result(None)
        while position >= len(self._items):
            if self._ended:
                raise self._failure or StopAsyncIteration
            await self._change(None)
        return self._items[position]

    async def _change(self, timeout_s: float | None) -> None:
        if self._inside in INSIDE.get():
            raise RuntimeError("a stream is read inside of its own making")
        news: asyncio.Future[None] = self.loop.create_future()
        self._waiting.append(news)
        _, late = await asyncio.wait([news], timeout=timeout_s)
        if late:
            news.cancel()
            raise HandedOver(f"an equal request has been at it for {timeout_s:g} s")

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for news in waiting:
            if not news.done():
                news.set_result(None)

    async def _read(self) -> None:
        INSIDE.set(INSIDE.get() | {self._inside})  # in this task's own context
        try:
            await self._read_on()
        except Exception as error:  # noqa: BLE001 - it is raised to each reader
            self._end(no_end(error))
        else:
            self._end(None)
        finally:
            await self._close()

    async def _read_on(self) -> None:
        source = self._source = await self._begin()
        self._tell()
        items = aiter(source.items)
        while not self._ended:  # a source that does not heed its cancelling is left all the same
            while self._wanted <= len(self._items):
                self._demand = self.loop.create_future()
                await self._demand
            try:
                self._items.append(await anext(items))
            except StopAsyncIteration:
                return
            self._tell()

    async def _close(self) -> None:
        close = getattr(self._source.items, "aclose", None) if self._source else None
        if close is not None:
            await close()

    def _over(self, task: asyncio.Task[None]) -> None:
        """End what was cancelled, by whomever, also before it ran at all."""
        if task.cancelled() and not self._ended:
            self._end(asyncio.CancelledError())

    def _end(self, failure: BaseException | None) -> None:
        self._failure, self._ended = failure, True
        self._forget()
        self._tell()

    def leave(self) -> None:
        """Take a reader away, soon; may be called by any thread, and at any point."""
        try:
            self.loop.call_soon_threadsafe(self._leave)
        except RuntimeError:  # the loop is closed: nobody reads any more
            self._forget()

    async def left(self) -> None:
        """Take a reader away; when this returns, a source that nobody reads any more is closed."""
        if asyncio.get_running_loop() is not self.loop:
            self.leave()
            return
        self._leave()
        task = self._task
        if self._readers == 0 and task is not None and self._inside not in INSIDE.get():
            await asyncio.wait([task])

    def _leave(self) -> None:
        self._readers -= 1
        if self._readers == 0 and not self._ended:
            self._ended = True
            self._forget()
            if self._task is not None:
                self._task.cancel()


class AsyncReader(Generic[Head, Item]):
    """See `threads.Reader`."""

    def __init__(
        self,
        live: AsyncLive[Head, Item],
        alone: Callable[[], AsyncLive[Head, Item]],
        *,
        timeout_s: float,
    ) -> None:
        self._live = live
        self._alone = alone
        self._timeout_s = timeout_s
        self._position = 0
        self._begun = False
        self._left = False
        self.led = False

    async def head(self) -> Head:
        """See `threads.Reader.head`."""
        try:
            try:
                head, opened = await self._live.head(self._timeout_s)
            except HandedOver:
                if self._begun or self._left:
                    raise
                self._live.leave()
                self._live = self._alone()
                head, opened = await self._live.head(self._timeout_s)
        except BaseException:
            self._leave()
            raise
        self._begun = True
        self.led = self.led or opened
        return head

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        if self._left:
            raise StopAsyncIteration
        if asyncio.get_running_loop() is not self._live.loop:
            self._move_here()
        if not self._begun:
            await self.head()
        try:
            item = await self._live.item(self._position)
        except BaseException:
            self._leave()
            raise
        self._position += 1
        return item

    def _move_here(self) -> None:
        """Begin anew on this loop: the other one may be waiting for what is read here.

        So it is where sync code on a loop reads a stream of that loop in a thread.
        """
        if self._position:
            raise RuntimeError("This stream was begun on another event loop; read it there.")
        self._live.leave()
        self._live, self._begun = self._alone(), False

    async def aclose(self) -> None:
        """Leave the stream."""
        if not self._left:
            self._left = True
            await self._live.left()

    def _leave(self) -> None:
        if not self._left:
            self._left = True
            self._live.leave()

    def __del__(self) -> None:
        self._leave()
