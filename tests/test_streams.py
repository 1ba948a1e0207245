"""One making of a stream, read by many: threads, tasks, those that leave, and those that fail.

No test sleeps for a time. Where threads must be known to wait, the events of the source say so.
"""

import asyncio
import contextlib
import gc
import os
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache import scope
from stampcache.scope import current_scope
from stampcache.streams import AsyncOpened, AsyncReader, HandedOver, Opened, Reader, Streams
from tests.flights import GUARD_S, SHORT_S, turn

Said = list[str]


def streams(timeout_s: float = GUARD_S) -> Streams:
    return Streams(timeout_s=timeout_s)


class Source:
    """A source of items that counts how often it was begun, and notes how it ended."""

    def __init__(self, items: str = "abc", failure: BaseException | None = None) -> None:
        self.items = items
        self.failure = failure
        self.begun = 0
        self.given: Said = []
        self.closed = 0

    def begin(self) -> Opened[str, str]:
        self.begun += 1
        return Opened(f"head {self.begun}", self._run())

    def _run(self) -> Iterator[str]:
        try:
            for item in self.items:
                self.given.append(item)
                yield item
            if self.failure is not None:
                raise self.failure
        finally:
            self.closed += 1

    async def abegin(self) -> AsyncOpened[str, str]:
        self.begun += 1
        await asyncio.sleep(0)
        return AsyncOpened(f"head {self.begun}", self._arun())

    async def _arun(self) -> AsyncIterator[str]:
        try:
            for item in self.items:
                self.given.append(item)
                yield item
            if self.failure is not None:
                raise self.failure
        finally:
            self.closed += 1


def never() -> Opened[str, str]:
    raise AssertionError("a second making")


async def anever() -> AsyncOpened[str, str]:
    return AsyncOpened(never().head, anyone())


async def anyone() -> AsyncIterator[str]:
    yield ""


async def all_of(reader: AsyncReader[str, str]) -> str:
    return "".join([item async for item in reader])


# -- threads ---------------------------------------------------------------------------------------


def test_a_later_reader_gets_the_whole_of_it() -> None:
    live, source = streams(), Source()
    first = live.read("k", 0, source.begin)
    assert next(first) == "a"
    second = live.read("k", 0, never)
    assert (second.head(), second.led) == ("head 1", False)
    assert (first.head(), first.led) == ("head 1", True)
    assert "".join(second) == "abc"
    assert "".join(first) == "bc"
    assert (source.begun, source.closed, len(live)) == (1, 1, 0)


def test_what_has_ended_is_not_joined() -> None:
    live, source = streams(), Source()
    first = live.read("k", 0, source.begin)
    assert "".join(first) == "abc"
    assert "".join(live.read("k", 0, source.begin)) == "abc"
    assert source.begun == 2
    assert list(first) == []


def test_two_equal_streams_in_one_thread_do_not_hang() -> None:
    live, source = streams(), Source()
    pair = zip(live.read("k", 0, source.begin), live.read("k", 0, never), strict=True)
    assert list(pair) == [("a", "a"), ("b", "b"), ("c", "c")]
    assert len(live) == 0


def test_other_keys_and_unknown_sequences_share_with_nobody() -> None:
    live, source = streams(), Source()
    readers = [
        live.read("k", 0, source.begin),
        live.read("other", 0, source.begin),
        live.read("k", None, source.begin),
        live.read("k", None, source.begin),
    ]
    assert ["".join(reader) for reader in readers] == ["abc"] * 4
    assert (source.begun, len(live)) == (4, 0)


def test_who_asks_after_a_change_does_not_join_an_older_stream() -> None:
    live, old, new = streams(), Source("old"), Source("new")
    before = live.read("k", 1, old.begin)
    assert next(before) == "o"
    after = live.read("k", 2, new.begin)
    also_after = live.read("k", 2, never)
    assert ("".join(after), "".join(also_after), "".join(before)) == ("new", "new", "ld")
    assert len(live) == 0


def test_reading_stops_where_nobody_wants_more_and_abandoning_closes_the_source() -> None:
    live, source = streams(), Source()
    reader, slow = live.read("k", 0, source.begin), live.read("k", 0, never)
    assert (next(reader), next(slow)) == ("a", "a")
    reader.close()
    reader.close()
    assert (source.given, source.closed, len(live)) == (["a"], 0, 1)
    slow.close()
    assert (source.given, source.closed, len(live)) == (["a"], 1, 0)
    assert (list(reader), list(slow)) == ([], [])


def test_a_reader_that_was_forgotten_leaves() -> None:
    live, source = streams(), Source()
    never_started = live.read("k", 0, source.begin)
    assert len(live) == 1
    del never_started
    assert (len(live), source.begun) == (0, 0)
    started = live.read("k", 0, source.begin)
    cycle: list[Any] = [started]
    cycle.append(cycle)
    assert next(started) == "a"
    del started, cycle
    gc.collect()
    assert (len(live), source.closed) == (0, 1)


def test_a_reader_that_does_not_start_keeps_nobody_waiting() -> None:
    live, source = streams(), Source()
    idle = live.read("k", 0, source.begin)
    assert "".join(live.read("k", 0, never)) == "abc"
    assert len(live) == 0
    assert "".join(idle) == "abc"


@pytest.mark.parametrize("failure", [ValueError("bad"), TimeoutError("of the model")])
def test_a_failure_is_everybodys_after_what_came_before_it(failure: Exception) -> None:
    live, source = streams(), Source("ab", failure)
    first, second = live.read("k", 0, source.begin), live.read("k", 0, never)
    for reader in (first, second):
        assert [next(reader), next(reader)] == ["a", "b"]
        with pytest.raises(type(failure)):
            next(reader)
        assert list(reader) == []
    assert len(live) == 0


def test_a_failure_to_begin_is_everybodys() -> None:
    live = streams()

    def begin() -> Opened[str, str]:
        raise ValueError("no model")

    first, second = live.read("k", 0, begin), live.read("k", 0, never)
    for reader in (first, second):
        with pytest.raises(ValueError, match="no model"):
            reader.head()
    assert len(live) == 0


def test_a_making_that_runs_out_is_no_empty_stream() -> None:
    def begin() -> Opened[str, str]:
        return next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        list(streams().read("k", 0, begin))


def test_a_stream_inside_of_its_own_making_does_not_hang() -> None:
    live, inner = streams(), Source("xy")

    def begin() -> Opened[str, str]:
        def run() -> Iterator[str]:
            yield "<"
            yield from live.read("k", 0, inner.begin)
            yield ">"

        return Opened("outer", run())

    assert "".join(live.read("k", 0, begin)) == "<xy>"
    assert len(live) == 0


def test_a_reader_that_its_own_making_reads_is_an_error_and_no_hang() -> None:
    live = streams()
    readers: list[Reader[str, str]] = []

    def begin() -> Opened[str, str]:
        return Opened("", (item for item in [next(readers[0])]))

    readers.append(live.read("k", 0, begin))
    with pytest.raises(RuntimeError, match="inside of its own making"):
        next(readers[0])
    assert len(live) == 0


def test_a_reader_closed_inside_of_its_own_making_closes_the_source_afterwards() -> None:
    live = streams()
    readers: list[Reader[str, str]] = []
    closed: Said = []

    def run() -> Iterator[str]:
        try:
            readers[0].close()
            yield "a"
            yield "b"
        finally:
            closed.append("closed")

    readers.append(live.read("k", 0, lambda: Opened("", run())))
    next(readers[0], None)
    assert closed == ["closed"]
    assert len(live) == 0


def test_threads_read_one_making() -> None:
    live, source = streams(), Source("a" * 200)
    together = threading.Barrier(8)

    def read() -> str:
        reader = live.read("k", 0, source.begin)
        together.wait(GUARD_S)
        return "".join(reader)

    with ThreadPoolExecutor(8) as pool:
        read_by = [pool.submit(read) for _ in range(8)]
        assert {one.result(GUARD_S) for one in read_by} == {"a" * 200}
    assert (source.begun, len(source.given), len(live)) == (1, 200, 0)


def test_a_thread_that_waits_for_the_source_does_not_keep_those_behind_it() -> None:
    live = streams()
    asked, let = threading.Event(), threading.Event()

    def run() -> Iterator[str]:
        yield "a"
        yield "b"
        asked.set()
        assert let.wait(GUARD_S)
        yield "c"

    fast, slow = (live.read("k", 0, lambda: Opened("", run())) for _ in range(2))
    with ThreadPoolExecutor(1) as pool:
        whole = pool.submit("".join, fast)
        assert asked.wait(GUARD_S)
        assert (slow.head(), next(slow), next(slow)) == (
            "",
            "a",
            "b",
        )  # while the source is waited for
        slow.close()
        let.set()
        assert whole.result(GUARD_S) == "abc"
    assert len(live) == 0


def test_closing_from_another_thread_waits_for_nothing() -> None:
    live = streams()
    asked, let = threading.Event(), threading.Event()
    closed: Said = []

    def run() -> Iterator[str]:
        try:
            asked.set()
            assert let.wait(GUARD_S)
            yield "a"
            yield "b"
        finally:
            closed.append("closed")

    reader = live.read("k", 0, lambda: Opened("", run()))
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(list, reader)
        assert asked.wait(GUARD_S)
        reader.close()
        assert closed == []
        let.set()
        read.result(GUARD_S)
    assert (closed, len(live)) == (["closed"], 0)


def test_an_interrupted_thread_hands_over_to_who_was_given_nothing() -> None:
    live, source = streams(), Source("ab", KeyboardInterrupt())
    first, second, late = (live.read("k", 0, source.begin) for _ in range(3))
    assert next(second) == "a"
    with pytest.raises(KeyboardInterrupt):
        list(first)
    assert next(second) == "b"
    with pytest.raises(HandedOver, match="interrupted"):
        next(second)
    assert late.head() == "head 1"  # it began: its reader is told so, as it may have been used
    with pytest.raises(HandedOver):
        list(late)
    assert len(live) == 0


def test_an_interrupted_beginning_is_begun_anew_by_the_next() -> None:
    live, source = streams(), Source()

    def interrupted() -> Opened[str, str]:
        raise KeyboardInterrupt

    first, second = live.read("k", 0, interrupted), live.read("k", 0, source.begin)
    with pytest.raises(KeyboardInterrupt):
        next(first)
    assert "".join(second) == "abc"
    assert (second.led, len(live)) == (True, 0)


def test_who_waited_too_long_for_a_beginning_makes_its_own() -> None:
    live, source = streams(SHORT_S), Source()
    asked, let = threading.Event(), threading.Event()

    def stuck() -> Opened[str, str]:
        asked.set()
        assert let.wait(GUARD_S)
        return Opened("late", iter("late"))

    first, second = live.read("k", 0, stuck), live.read("k", 0, source.begin)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit("".join, first)
        assert asked.wait(GUARD_S)
        assert ("".join(second), second.led) == ("abc", True)
        let.set()
        assert late.result(GUARD_S) == "late"
    assert len(live) == 0


def test_the_source_runs_in_a_context_of_its_own_whoever_reads_it() -> None:
    live = streams()
    var: ContextVar[str] = ContextVar("var", default="")

    def run() -> Iterator[str]:
        token = var.set("inside")
        with scope(tenant="inner"):
            yield var.get()
            yield (current_scope() or pytest.fail()).tenant
        var.reset(token)
        yield var.get()

    with scope(tenant="outer"):
        first = live.read("k", 0, lambda: Opened("", run()))
        assert next(first) == "inside"
        assert (current_scope() or pytest.fail()).tenant == "outer"
    second = live.read("k", 0, never)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(list, second).result(GUARD_S) == ["inside", "inner", ""]
    assert (var.get(), current_scope()) == ("", None)
    assert list(first) == ["inner", ""]


@given(st.text("ab", max_size=6), st.booleans(), st.lists(st.integers(0, 11), max_size=60))
def test_however_readers_come_and_go_each_gets_a_beginning_of_the_whole(
    items: str, fails: bool, moves: list[int]
) -> None:
    live, source = streams(), Source(items, ValueError("bad") if fails else None)
    readers: dict[int, Reader[str, str]] = {}
    got: dict[int, str] = {}
    for move in moves:
        which, what = divmod(move, 3)
        if what == 0 and which not in readers:
            readers[which], got[which] = live.read("k", 0, source.begin), ""
        elif what == 1 and which in readers:
            try:
                got[which] += next(readers[which], "")
            except ValueError:
                assert fails and got.pop(which) == items
                del readers[which]
        elif what == 2 and which in readers:
            readers.pop(which).close()
            assert items.startswith(got.pop(which))
    for which, reader in readers.items():
        assert items.startswith(got[which])
        reader.close()
    assert (len(live), source.closed >= 0) == (0, True)


def test_a_forked_child_joins_no_stream_of_its_parent() -> None:
    live, source = streams(), Source()
    parents = live.read("k", 0, never)
    live._lock.acquire()
    live._pid = os.getpid() - 1  # as a child sees it
    with ThreadPoolExecutor(1) as pool:  # another thread than the one that holds the lock
        assert pool.submit(lambda: "".join(live.read("k", 0, source.begin))).result(GUARD_S)
    parents.close()


def test_a_reader_that_has_left_opens_nothing() -> None:
    live = streams()
    reader = live.read("k", 0, never)
    reader.close()
    with pytest.raises(HandedOver, match="left before it began"):
        reader.head()


async def test_a_reader_of_tasks_that_has_left_opens_nothing() -> None:
    live = streams()
    reader = live.aread("k", 0, anever)
    await reader.aclose()
    await reader.aclose()
    with pytest.raises(HandedOver, match="left before it began"):
        await reader.head()
    assert len(live) == 0


def test_a_source_that_cannot_be_closed_is_let_go() -> None:
    live = streams()
    first = live.read("k", 0, lambda: Opened("", iter("ab")))
    assert next(first) == "a"
    first.close()
    assert len(live) == 0


# -- tasks -----------------------------------------------------------------------------------------


async def test_tasks_read_one_making_and_a_later_one_gets_the_whole() -> None:
    live, source = streams(), Source()
    first = live.aread("k", 0, source.abegin)
    assert await anext(first) == "a"
    rest = [live.aread("k", 0, anever) for _ in range(20)]
    assert set(await asyncio.gather(*map(all_of, rest))) == {"abc"}
    assert await all_of(first) == "bc"
    assert [first.led, *(reader.led for reader in rest)] == [True] + [False] * 20
    assert (source.begun, source.closed, len(live)) == (1, 1, 0)


async def test_nothing_is_read_before_it_is_wanted() -> None:
    live, source = streams(), Source("a" * 1000)
    reader = live.aread("k", 0, source.abegin)
    assert await reader.head() == "head 1"
    await turn()
    assert source.given == []
    assert await anext(reader) == "a"
    await turn()
    assert len(source.given) == 1
    await reader.aclose()
    assert (source.closed, len(live)) == (1, 0)


async def test_tasks_other_keys_sequences_and_changes() -> None:
    live, source = streams(), Source()
    readers = [
        live.aread("k", 1, source.abegin),
        live.aread("other", 1, source.abegin),
        live.aread("k", None, source.abegin),
        live.aread("k", 2, source.abegin),
    ]
    assert [await all_of(reader) for reader in readers] == ["abc"] * 4
    assert (source.begun, len(live)) == (4, 0)


async def test_cancelling_one_reader_leaves_the_others_reading() -> None:
    live = streams()
    let = asyncio.Event()

    async def run() -> AsyncIterator[str]:
        yield "a"
        await let.wait()
        yield "b"

    async def begin() -> AsyncOpened[str, str]:
        return AsyncOpened("", run())

    tasks = [asyncio.create_task(all_of(live.aread("k", 0, begin))) for _ in range(3)]
    await turn()
    tasks[0].cancel()  # the one that opened it
    await turn()
    let.set()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError)
    assert done[1:] == ["ab", "ab"]
    assert len(live) == 0


async def test_when_the_last_reader_is_cancelled_the_source_is_closed() -> None:
    live, closed = streams(), asyncio.Event()

    async def run() -> AsyncIterator[str]:
        try:
            yield "a"
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def begin() -> AsyncOpened[str, str]:
        return AsyncOpened("", run())

    task = asyncio.create_task(all_of(live.aread("k", 0, begin)))
    await turn()
    task.cancel()
    await asyncio.wait_for(closed.wait(), GUARD_S)
    assert len(live) == 0


async def test_a_source_that_does_not_heed_its_cancelling_is_left_all_the_same() -> None:
    live, closed = streams(), asyncio.Event()

    async def run() -> AsyncIterator[str]:
        try:
            for item in "abc":
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0 if item == "a" else GUARD_S)
                yield item
        finally:
            closed.set()

    async def begin() -> AsyncOpened[str, str]:
        return AsyncOpened("", run())

    reader = live.aread("k", 0, begin)
    assert await anext(reader) == "a"
    waiting = asyncio.create_task(anext(reader))
    await turn()
    waiting.cancel()
    await asyncio.wait_for(closed.wait(), GUARD_S / 2)
    assert len(live) == 0


async def test_a_reader_of_tasks_that_was_forgotten_leaves() -> None:
    live, source = streams(), Source()
    reader = live.aread("k", 0, source.abegin)
    del reader
    await turn()
    assert (len(live), source.begun) == (0, 0)
    async for _ in live.aread("k", 0, source.abegin):
        break
    await turn()
    assert (len(live), source.closed) == (0, 1)


async def test_a_failure_is_that_of_all_tasks() -> None:
    live, source = streams(), Source("ab", ValueError("bad"))
    readers = [live.aread("k", 0, source.abegin) for _ in range(3)]
    done = await asyncio.gather(*map(all_of, readers), return_exceptions=True)
    assert [str(error) for error in done] == ["bad"] * 3
    assert [item async for item in readers[0]] == []
    assert len(live) == 0


@pytest.mark.parametrize("error", [ValueError("no model"), StopAsyncIteration("of an iterator")])
async def test_a_failure_to_begin_is_that_of_all_tasks(error: Exception) -> None:
    live = streams()

    async def begin() -> AsyncOpened[str, str]:
        raise error

    readers = [live.aread("k", 0, begin) for _ in range(2)]
    done = await asyncio.gather(*map(all_of, readers), return_exceptions=True)
    assert {type(one) for one in done} <= {ValueError, RuntimeError}
    assert len(live) == 0


@pytest.mark.parametrize("begun", [False, True])
async def test_a_source_that_is_cancelled_by_others_is_no_stream_that_has_ended(
    begun: bool,
) -> None:
    live, source = streams(), Source()
    reader = live.aread("k", 0, source.abegin)
    if begun:
        assert await anext(reader) == "a"
    asked = asyncio.create_task(all_of(reader))
    await asyncio.sleep(0)
    others = asyncio.all_tasks() - {asked, asyncio.current_task()}
    for task in others:
        task.cancel()
    await turn()
    assert others and asked.cancelled()
    assert len(live) == 0


async def test_a_stream_of_tasks_inside_of_its_own_making_does_not_hang() -> None:
    live, inner = streams(), Source("xy")

    async def run() -> AsyncIterator[str]:
        yield "<"
        async for item in live.aread("k", 0, inner.abegin):
            yield item
        yield ">"

    async def begin() -> AsyncOpened[str, str]:
        return AsyncOpened("", run())

    assert await all_of(live.aread("k", 0, begin)) == "<xy>"
    await turn()
    assert len(live) == 0


async def test_a_reader_of_tasks_that_its_own_making_reads_is_an_error_and_no_hang() -> None:
    live = streams()
    readers: list[AsyncReader[str, str]] = []

    async def begin() -> AsyncOpened[str, str]:
        return AsyncOpened(await readers[0].head(), anyone())

    readers.append(live.aread("k", 0, begin))
    with pytest.raises(RuntimeError, match="inside of its own making"):
        await anext(readers[0])


async def test_a_task_that_waited_too_long_for_a_beginning_makes_its_own() -> None:
    live, source = streams(SHORT_S), Source()
    let = asyncio.Event()

    async def stuck() -> AsyncOpened[str, str]:
        await let.wait()
        return AsyncOpened("late", source._arun())

    first = asyncio.create_task(all_of(live.aread("k", 0, stuck)))
    await turn()
    second = live.aread("k", 0, source.abegin)
    assert (await all_of(second), second.led) == ("abc", True)
    let.set()
    assert await first == "abc"
    await turn()
    assert len(live) == 0


async def test_threads_and_tasks_and_two_loops_do_not_meet() -> None:
    live, source = streams(), Source()
    mine = live.aread("k", 0, source.abegin)
    assert await anext(mine) == "a"

    async def other_loop() -> str:
        return await all_of(live.aread("k", 0, source.abegin))

    assert await asyncio.to_thread(lambda: asyncio.run(other_loop())) == "abc"
    assert await asyncio.to_thread(lambda: "".join(live.read("k", 0, source.begin))) == "abc"
    assert await all_of(mine) == "bc"
    assert (source.begun, len(live)) == (3, 0)


def test_a_reader_that_outlives_its_loop_leaves_nothing_behind() -> None:
    live, source = streams(), Source()

    async def unread() -> AsyncReader[str, str]:
        return live.aread("k", 0, source.abegin)

    reader = asyncio.run(unread())
    assert len(live) == 1
    del reader
    assert len(live) == 0


async def test_closing_a_reader_in_another_loop_leaves_the_stream_all_the_same() -> None:
    live, source = streams(), Source()
    reader = live.aread("k", 0, source.abegin)
    assert await anext(reader) == "a"
    await asyncio.to_thread(lambda: asyncio.run(reader.aclose()))
    await turn()
    assert (source.closed, len(live)) == (1, 0)
