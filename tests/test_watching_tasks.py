"""A watch in tasks: a write that was begun is told of, whoever stops waiting for it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from stampcache import Cache, Hit, Reason, Stale
from stampcache.adapters import Change, IndexView, Step, Watch
from tests.watched_index import CORPUS, HANDBOOK, Asking, Shelf

LEAVE = "how many days of leave"
NOBODY = "nobody has any days of leave"


class Slow:
    """A shelf whose writes wait, in a thread, until they are let go on."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.shelf = Shelf(cache)
        self.shelf.watch.run(self.shelf.watch.open())
        self.shelf.write(**HANDBOOK)
        self.asking = Asking(cache, self.shelf)
        self.asking.ask(LEAVE)
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.landed = threading.Event()
        self.fails = False

    def _write(self, text: str) -> None:
        self.begun.set()
        assert self.go_on.wait(60)
        if self.fails:
            raise OSError("the disk is full")
        self.shelf.write_around(leave=text)
        self.landed.set()

    async def write(self, text: str) -> None:
        chunk = self.shelf.chunk("leave", text)
        step = Step(
            sync=lambda: self._write(text), aio=lambda: asyncio.to_thread(self._write, text)
        )
        writing = self.shelf.watch.writing(
            step, told=lambda _: Change(added=(chunk,)), ids=("leave",), planned=(chunk,)
        )
        await self.shelf.watch.arun(writing)

    async def has_begun(self) -> None:
        await asyncio.to_thread(self.begun.wait, 60)

    def is_blocked(self) -> bool:
        outcome = self.cache.lookup(self.asking.request(LEAVE))
        return isinstance(outcome, Stale) and outcome.reason is Reason.BEING_WRITTEN

    def is_hit(self) -> bool:
        outcome = self.cache.lookup(self.asking.request(LEAVE))
        if isinstance(outcome, Hit):
            assert outcome.answer.text == self.asking.fresh(LEAVE)
        return isinstance(outcome, Hit)

    def counted(self, name: str) -> int:
        return self.cache.core.counters.of(None).get(name, 0)


@pytest.fixture
def slow(url: str) -> Iterator[Slow]:
    with Cache(url) as cache:
        made = Slow(cache)
        yield made
        made.go_on.set()


async def ended(slow: Slow) -> None:
    while slow.shelf.watch._running:
        await asyncio.sleep(0)


async def test_both_faces_write(slow: Slow) -> None:
    slow.go_on.set()
    await slow.write(HANDBOOK["leave"])
    assert slow.is_hit()
    await slow.write(NOBODY)
    assert not slow.is_hit()
    await slow.shelf.watch.arun(slow.shelf.writing(leave=HANDBOOK["leave"]))
    assert slow.is_hit()


async def test_a_cancelled_task_leaves_its_write_to_end_and_be_told(slow: Slow) -> None:
    task = asyncio.create_task(slow.write(NOBODY))
    await slow.has_begun()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert slow.is_blocked()
    slow.go_on.set()
    await ended(slow)
    assert slow.landed.is_set()
    assert not slow.is_hit()
    assert not slow.is_blocked()
    assert slow.asking.ask(LEAVE) and slow.is_hit()


async def test_one_that_fails_then_is_counted_and_was_looked_at(slow: Slow) -> None:
    slow.fails = True
    task = asyncio.create_task(slow.write(NOBODY))
    await slow.has_begun()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    slow.go_on.set()
    await ended(slow)
    assert slow.is_hit()
    assert slow.counted("error.watch.unheard") == 1


async def test_tasks_write_at_once(slow: Slow) -> None:
    slow.go_on.set()
    writes = [slow.shelf.watch.arun(slow.shelf.writing(**{f"n{n}": f"note {n}"})) for n in range(9)]
    await asyncio.gather(*writes, slow.write(NOBODY))
    standing = slow.cache.standing(CORPUS)
    assert standing is not None
    assert (standing.intents, standing.chunks) == ((), 13)
    assert not slow.is_hit()


def torn(slow: Slow) -> None:
    """Close a loop while a write runs in a thread, which goes on."""
    pool = asyncio.new_event_loop()

    async def begin() -> None:
        writing = asyncio.ensure_future(slow.write(NOBODY))
        await slow.has_begun()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for one in tasks:  # as `asyncio.run` does at its end
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert writing.cancelled()

    try:
        pool.run_until_complete(begin())
    finally:
        pool.close()


def test_a_write_torn_off_its_loop_blocks_hits_until_the_index_was_taken_over(slow: Slow) -> None:
    torn(slow)
    assert slow.counted("watch.torn") == 1
    assert slow.is_blocked()
    slow.shelf.write(canteen="the canteen is closed in august")
    slow.shelf.watch.run(slow.shelf.watch.open())
    assert slow.is_blocked(), "its thread may go on, and does"
    slow.go_on.set()
    assert slow.landed.wait(60)
    assert slow.is_blocked()
    elsewhere = Watch(slow.cache.core, "another corpus", IndexView())
    elsewhere.run(elsewhere.resync())
    slow.shelf.write(canteen="closed")
    assert slow.is_blocked()
    another = Shelf(slow.cache, texts=slow.shelf.texts)
    another.watch.run(another.watch.resync())
    assert not slow.is_blocked()
    assert not slow.is_hit()
    slow.asking.ask(LEAVE)
    assert slow.is_hit()
    standing = slow.cache.standing(CORPUS)
    assert standing is not None and standing.intents == ()


def test_what_another_cache_sees_of_a_torn_write_is_a_write_under_way(slow: Slow) -> None:
    torn(slow)
    with Cache(slow.cache.core.store) as other:
        shelf = Shelf(other, texts=slow.shelf.texts)
        shelf.write(canteen="the canteen is closed in august")
        assert slow.is_blocked()


async def test_a_stream_of_writes_is_ended_in_the_middle(slow: Slow) -> None:
    slow.go_on.set()

    async def writes() -> AsyncIterator[str]:
        for text in (HANDBOOK["leave"], NOBODY, HANDBOOK["leave"]):
            await slow.write(text)
            yield text

    async for text in writes():
        if text == NOBODY:
            break
    assert not slow.is_hit()
    assert not slow.is_blocked()
