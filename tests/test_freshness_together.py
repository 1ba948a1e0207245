"""Freshness among threads, caches and processes on one store; and what its journal keeps."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from stampcache import AsyncCache, Cache, Freshness, Hit, Reason, Request, Stale, open_cache, scope
from stampcache.due import KEPT, Due
from stampcache.journal import Observation
from stampcache.model import EARLY
from stampcache.stores.memory import MemoryStore
from stampcache.stores.sqlite import SqliteStore
from stampcache.testing import FakeClock
from stampcache.testing.contract import NOW, in_threads, make_entry
from stampcache.testing.contract_journal import make_verdict
from stampcache.ttl import HOUR_S
from stampcache.working import Work
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


# -- what a process knows of the list ---------------------------------------------------------------

DOUBTFUL = replace(make_entry("k"), doubtful_at=NOW, created_at=NOW - 100.0)
LATER = replace(DOUBTFUL, doubtful_at=NOW + 9.0)
SURE, NEVER = Freshness(beta=9e9), Freshness(beta=0.0)


def test_a_process_lists_an_entry_once_for_each_doubt() -> None:
    due, at = Due(SURE, has_judge=True), NOW - 1.0
    assert [due.late(DOUBTFUL) for _ in range(3)] == [True, False, False]
    assert [due.late(LATER) for _ in range(2)] == [True, False]
    assert [due.early(DOUBTFUL, at) for _ in range(3)] == [True, False, False]
    assert [due.early(LATER, at + 9.0) for _ in range(2)] == [True, False]
    assert not due.early(make_entry("k"), at), "nobody doubts it"
    other = replace(DOUBTFUL, id="o")
    assert not due.early(other, at - EARLY * 100.0), "too early, whatever is drawn"
    assert not Due(NEVER, has_judge=True).early(other, at)
    assert not Due().early(other, at)
    assert due.early(other, at)


def test_what_it_has_listed_is_proved_once() -> None:
    due = Due(SURE, has_judge=True)
    assert not due.proved(DOUBTFUL)
    assert not due.proved(make_entry("k"))
    assert due.late(DOUBTFUL)
    assert [due.proved(DOUBTFUL) for _ in range(2)] == [True, False]
    assert not due.proved(LATER)
    assert due.early(LATER, NOW + 8.0) and due.proved(LATER)


def test_one_worker_has_an_entry_at_a_time() -> None:
    due = Due()
    assert [due.take("a"), due.take("a"), due.take("b")] == [True, False, True]
    due.end("a")
    assert due.take("a")


def test_what_it_knows_is_bounded() -> None:
    due = Due()
    for at in range(KEPT + 1):
        assert due.late(replace(DOUBTFUL, id=str(at)))
    assert due.late(replace(DOUBTFUL, id="0")), "forgotten; the store has not"
    assert not due.late(replace(DOUBTFUL, id=str(KEPT)))


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


def test_those_who_wait_for_an_equal_request_share_no_doubted_answer(tmp_path: Path) -> None:
    """It is served once more, to one; the others share what is made anew."""
    clock, made = FakeClock(), list[str]()

    async def make() -> str:
        made.append("anew")
        return "anew"

    async def ask(cache: AsyncCache) -> list[str]:
        asked = [cache.get_or_create(ASKED, make) for _ in range(8)]
        return sorted(one.text for one in await asyncio.gather(*asked))

    with aged(tmp_path / "c.db", clock) as cache:
        cache.update(ASKED, "old", outcome=cache.lookup(ASKED))
        clock.advance(DOUBT_S + 1.0)
        assert asyncio.run(ask(cache.aio)) == ["anew"] * 7 + ["old"]
        assert made == ["anew"]


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
        assert cache.core.store.journal.waiting(now=clock.now()) == 0


# -- caches and processes on one file --------------------------------------------------------------


def test_what_one_process_confirms_another_serves(tmp_path: Path) -> None:
    clock = FakeClock()
    path = tmp_path / "c.db"
    mine, theirs = aged(path, clock, lambda _: FRESH), aged(path, clock, lambda _: FRESH)
    mine.update(ASKED, "a", outcome=mine.lookup(ASKED))
    clock.advance(DOUBT_S + 1.0)
    assert isinstance(mine.lookup(ASKED), Hit)
    assert theirs.lookup(ASKED).reason is Reason.DOUBTFUL, "once, whichever process it is"
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
    assert isinstance(theirs.lookup(ASKED), Hit)
    assert mine.work() == Work(not_fresh=1), "what another process was asked for"
    assert theirs.lookup(ASKED).reason is Reason.JUDGED
    assert theirs.work() == Work()
    mine.close()
    theirs.close()


WORKER = """
    import sys
    from stampcache import Freshness, open_cache
    from stampcache.testing import FakeClock
    cache = open_cache(f"sqlite:///{sys.argv[1]}", judge=lambda _: sys.argv[3],
                       freshness=Freshness(limit=0.2, beta=0.0), ttl_s=36_000.0,
                       clock=FakeClock(float(sys.argv[2])))
    seen = []
    print(cache.work(refresh=lambda due: seen.append(due)))
    print([(due.entry.question, due.scope.tenant, due.scope.audience) for due in seen])
    cache.close()
"""


def test_a_process_that_serves_nobody_works(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "c.db"
    with aged(path, clock) as cache, scope(tenant="acme", audience="7"):
        cache.update(ASKED, "a", outcome=cache.lookup(ASKED))
        clock.advance(DOUBT_S + 1.0)
        assert [isinstance(cache.lookup(ASKED), Hit) for _ in range(2)] == [True, False]
        assert "fresh=1" in succeed(WORKER, str(path), str(clock.now()), FRESH)
        clock.advance(DOUBT_S + 1.0)
        assert [isinstance(cache.lookup(ASKED), Hit) for _ in range(2)] == [True, False]
        told = succeed(WORKER, str(path), str(clock.now()), GONE)
        assert "not_fresh=1" in told and "refreshed=1" in told
        assert "('What is a map?', 'acme', '7')" in told
        assert cache.lookup(ASKED).reason is Reason.JUDGED


def test_of_processes_that_work_at_once_each_entry_is_judged_by_one(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "c.db"
    prompts, lock = list[str](), threading.Lock()

    def judge(prompt: str) -> str:
        with lock:
            prompts.append(prompt)
        return FRESH

    fresh = {"calls_per_minute": 999, "deadline_s": 30.0}
    caches = [aged(path, clock, judge, **fresh) for _ in range(3)]
    requests = [Request(question=f"What is {at}?") for at in range(6)]
    for request in requests:
        caches[0].update(request, "a", outcome=caches[0].lookup(request))
    clock.advance(DOUBT_S + 1.0)
    assert all(isinstance(caches[0].lookup(request), Hit) for request in requests)
    done: list[Work] = []
    in_threads(lambda at: done.append(caches[at].work()), count=3)
    assert sum(one.fresh for one in done) == len(prompts) == 6
    for cache in caches:
        cache.close()


@pytest.mark.parametrize("url", ["memory://", "sqlite"])
def test_what_a_cancelled_task_looked_after_is_looked_after_by_the_next(
    tmp_path: Path, url: str
) -> None:
    begun, clock = asyncio.Event(), FakeClock()
    hangs = [True, False]

    async def judge(prompt: str) -> str:
        begun.set()
        if hangs.pop(0):
            await asyncio.Event().wait()
        return FRESH

    async def main() -> Work:
        fresh = Freshness(limit=0.2, beta=0.0, deadline_s=30.0)
        where = url if url == "memory://" else f"sqlite:///{tmp_path / 'c.db'}"
        cache = AsyncCache(
            where, judge=judge, freshness=fresh, ttl_s=HOURS * HOUR_S, clock=clock, strict=True
        )
        await cache.update(ASKED, "a", outcome=await cache.lookup(ASKED))
        clock.advance(DOUBT_S + 1.0)
        assert isinstance(await cache.lookup(ASKED), Hit)
        task = asyncio.create_task(cache.work())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        done = await cache.work()
        await cache.close()
        assert len(asyncio.all_tasks()) == 1, "nothing goes on behind"
        return done

    assert asyncio.run(main()) == Work(fresh=1)


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
