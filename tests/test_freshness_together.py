"""Freshness among threads, caches and processes on one store; and what its journal keeps."""

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from stampcache import Cache, Freshness, Hit, Reason, Request, Stale, open_cache
from stampcache.core import Work
from stampcache.due import KEPT, Due
from stampcache.journal import Observation
from stampcache.model import Scope
from stampcache.stores.memory import MemoryStore
from stampcache.stores.sqlite import SqliteStore
from stampcache.testing import FakeClock
from stampcache.testing.contract import NOW, in_threads, make_entry
from stampcache.testing.contract_journal import make_verdict
from stampcache.ttl import HOUR_S
from tests.aging import DOUBT_S, FRESH, GONE, HOURS
from tests.test_processes import succeed

ASKED = Request(question="What is a map?")


def aged(path: Path, clock: FakeClock, judge: Any = None, **settings: Any) -> Cache:
    return open_cache(
        f"sqlite:///{path}",
        judge=judge,
        freshness=Freshness(**{"limit": 0.2, "beta": 0.0, **settings}),
        ttl_s=HOURS * HOUR_S,
        clock=clock,
    )


# -- the list --------------------------------------------------------------------------------------

DOUBTFUL = replace(make_entry("k"), doubtful_at=NOW)
ME = Scope()


def test_an_entry_is_served_once_for_each_doubt() -> None:
    due = Due()
    assert [due.mark(DOUBTFUL, ME, early=False) for _ in range(3)] == [True, False, False]
    later = replace(DOUBTFUL, doubtful_at=NOW + 9.0)
    assert [due.mark(later, ME, early=False) for _ in range(2)] == [True, False]
    assert len(due) == 1


def test_early_uses_up_nothing() -> None:
    due = Due()
    assert [due.mark(DOUBTFUL, ME, early=True) for _ in range(2)] == [True, True]
    assert [one.early for one in due.peek(9)] == [True]
    assert [due.mark(DOUBTFUL, ME, early=False) for _ in range(2)] == [True, False]
    assert [one.early for one in due.peek(9)] == [False]


def test_what_was_looked_after_in_vain_is_served_no_second_time() -> None:
    due = Due()
    due.mark(DOUBTFUL, ME, early=False)
    (one,) = due.peek(1)
    assert due.take(one)
    due.end(one, done=True)
    assert len(due) == 0
    assert not due.mark(DOUBTFUL, ME, early=False)
    assert len(due) == 1, "but it is looked after once more"


def test_one_worker_has_an_entry_at_a_time() -> None:
    due = Due()
    for key in "abc":
        due.mark(replace(make_entry(key), doubtful_at=NOW), ME, early=False)
    first, second, _ = due.peek(9)
    assert due.take(first) and not due.take(first)
    due.end(first, done=False)
    assert [one.entry.id for one in due.peek(9)] == ["p/b", "p/c", "p/a"], "to the end"
    assert due.take(first)
    due.end(first, done=True)
    assert not due.take(first), "it is off the list"
    assert due.take(second)
    assert [len(due.peek(count)) for count in (-1, 0, 1, 9)] == [0, 0, 1, 2]


def test_the_list_is_bounded() -> None:
    due = Due()
    for at in range(KEPT + 5):
        due.mark(replace(DOUBTFUL, id=str(at)), ME, early=False)
    assert len(due) == KEPT
    assert due.peek(1)[0].entry.id == "5"
    (oldest,) = due.peek(1)
    assert due.take(oldest)
    due.mark(replace(DOUBTFUL, id="one more"), ME, early=False)
    due.end(oldest, done=False)
    assert due.peek(1)[0].entry.id == "6", "what fell off the list meanwhile stays off"


# -- threads ---------------------------------------------------------------------------------------


def test_of_threads_that_ask_at_once_one_is_served(tmp_path: Path) -> None:
    clock = FakeClock()
    with aged(tmp_path / "c.db", clock) as cache:
        cache.update(ASKED, "a", outcome=cache.lookup(ASKED))
        clock.advance(DOUBT_S + 1.0)
        outcomes: list[object] = []
        in_threads(lambda _: outcomes.append(cache.lookup(ASKED)), count=16)
        assert sum(isinstance(one, Hit) for one in outcomes) == 1
        assert sum(isinstance(one, Stale) for one in outcomes) == 15


def test_of_workers_that_run_at_once_each_entry_is_judged_by_one(tmp_path: Path) -> None:
    clock, prompts, lock = FakeClock(), list[str](), threading.Lock()

    def judge(prompt: str) -> str:
        with lock:
            prompts.append(prompt)
        return FRESH

    requests = [Request(question=f"What is {at}?") for at in range(12)]
    fresh = {"calls_per_minute": 999, "deadline_s": 30.0}
    with aged(tmp_path / "c.db", clock, judge, **fresh) as cache:
        for request in requests:
            cache.update(request, "a", outcome=cache.lookup(request))
        clock.advance(DOUBT_S + 1.0)
        assert all(isinstance(cache.lookup(request), Hit) for request in requests)
        done: list[Work] = []
        in_threads(lambda _: done.append(cache.work()), count=6)
        assert sum(one.fresh for one in done) == len(prompts) == 12
        assert len(cache.core.due) == 0


# -- caches and processes on one file --------------------------------------------------------------


def test_what_one_process_confirms_another_serves(tmp_path: Path) -> None:
    clock = FakeClock()
    path = tmp_path / "c.db"
    mine, theirs = aged(path, clock, lambda _: FRESH), aged(path, clock, lambda _: FRESH)
    mine.update(ASKED, "a", outcome=mine.lookup(ASKED))
    clock.advance(DOUBT_S + 1.0)
    assert isinstance(mine.lookup(ASKED), Hit)
    assert isinstance(theirs.lookup(ASKED), Hit), "each process has a grace of its own"
    assert theirs.lookup(ASKED).reason is Reason.DOUBTFUL
    assert mine.work() == Work(fresh=1)
    assert [isinstance(theirs.lookup(ASKED), Hit) for _ in range(2)] == [True, True]
    assert theirs.work() == Work(), "it was confirmed meanwhile, so nobody is asked"
    assert theirs.core.store.stats().entries == 1
    told = theirs.explain(ASKED)
    assert told.verdict is not None and told.verdict.reason == "it names no date"
    mine.close()
    theirs.close()


def test_what_one_process_finds_untrue_no_other_serves(tmp_path: Path) -> None:
    clock = FakeClock()
    path = tmp_path / "c.db"
    mine, theirs = aged(path, clock, lambda _: GONE), aged(path, clock, lambda _: FRESH)
    mine.update(ASKED, "a", outcome=mine.lookup(ASKED))
    clock.advance(DOUBT_S + 1.0)
    for cache in (mine, theirs):
        assert isinstance(cache.lookup(ASKED), Hit)
    assert mine.work() == Work(not_fresh=1)
    assert theirs.lookup(ASKED).reason is Reason.JUDGED
    assert theirs.work() == Work()
    mine.close()
    theirs.close()


def test_another_process_works(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "c.db"
    worker = """
        import sys
        from stampcache import Freshness, Request, open_cache
        from stampcache.testing import FakeClock
        cache = open_cache(f"sqlite:///{sys.argv[1]}", judge=lambda _: sys.argv[3],
                           freshness=Freshness(limit=0.2, beta=0.0), ttl_s=36_000.0,
                           clock=FakeClock(float(sys.argv[2])))
        cache.lookup(Request(question="What is a map?"))
        print(cache.work())
        cache.close()
    """
    with aged(path, clock) as cache:
        cache.update(ASKED, "a", outcome=cache.lookup(ASKED))
        clock.advance(DOUBT_S + 1.0)
        assert [isinstance(cache.lookup(ASKED), Hit) for _ in range(2)] == [True, False]
        assert "fresh=1" in succeed(worker, str(path), str(clock.now()), FRESH)
        assert isinstance(cache.lookup(ASKED), Hit)
        clock.advance(DOUBT_S + 1.0)
        assert "not_fresh=1" in succeed(worker, str(path), str(clock.now()), GONE)
        assert cache.lookup(ASKED).reason is Reason.JUDGED


def test_a_hanging_judge_keeps_no_process_from_ending() -> None:
    program = """
        import asyncio, threading
        from stampcache import AsyncCache, Cache, Freshness, Request
        from stampcache.testing import FakeClock

        def hang(prompt):
            threading.Event().wait()

        clock = FakeClock()
        fresh = Freshness(on_path=True, deadline_s=0.01)
        cache = Cache("memory://", judge=hang, freshness=fresh, ttl_s=3600.0, clock=clock)
        request = Request(question="q")
        cache.update(request, "a", outcome=cache.lookup(request))
        clock.advance(1800.0)
        print(cache.lookup(request).detail)

        async def main():
            print((await cache.aio.lookup(request)).detail)

        asyncio.run(main())
    """
    assert succeed(program).splitlines() == ["not fresh: the deadline passed"] * 2


# -- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["memory", "sqlite"])
def test_the_latest_verdicts_stay(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"stampcache.stores.{name}_journal.VERDICTS_KEPT", 3)
    made: dict[str, Callable[[], Any]] = {
        "memory": MemoryStore,
        "sqlite": lambda: SqliteStore(tmp_path / "c.db"),
    }
    store = made[name]()
    for at in range(5):
        store.journal.judged(make_verdict(str(at)))
    assert [one.entry_id for one in store.journal.verdicts(9)] == ["4", "3", "2"]
    assert store.journal.verdict("1") is None
    store.close()


def test_saying_again_that_there_is_a_source_writes_nothing(tmp_path: Path) -> None:
    """A fill notes its sources; a transaction for each would cost more than the fill."""
    store = SqliteStore(tmp_path / "c.db")
    store.journal.observe([Observation("c", "a", False, 0.0)], now=NOW)
    with closing(sqlite3.connect(tmp_path / "c.db")) as other:
        version = "PRAGMA data_version"
        before = other.execute(version).fetchone()
        store.journal.observe([Observation("c", "a", False, 0.0)], now=NOW + 9.0)
        assert other.execute(version).fetchone() == before
        store.journal.observe([Observation("c", "a", False, 1.0)], now=NOW + 9.0)
        assert other.execute(version).fetchone() != before
    store.close()


def test_the_figures_of_a_judge_outlive_its_process(tmp_path: Path) -> None:
    clock = FakeClock()
    with aged(tmp_path / "c.db", clock, lambda _: FRESH) as cache:
        cache.update(ASKED, "a", outcome=cache.lookup(ASKED))
        clock.advance(DOUBT_S + 1.0)
        cache.lookup(ASKED)
        cache.work()
        cache.lookup(ASKED)
    store = SqliteStore(tmp_path / "c.db")
    kept = store.tallies()
    assert (kept["judge.fresh"], kept["judge.saved"]) == (1, 1)
    store.close()
