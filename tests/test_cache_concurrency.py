"""Threads, tasks and loops on one cache (cases F17 and J); no test sleeps for a time."""

import asyncio
import gc
import sqlite3
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import stampcache
from stampcache import Answer, AsyncCache, Cache, Hit, Request, Stored
from stampcache.model import Candidate, Entry, Vector
from stampcache.ports import AsyncStore, Receipt
from stampcache.stores.aio import ThreadedStore
from stampcache.stores.memory import MemoryStore
from stampcache.testing import AngleEmbedder
from stampcache.testing.contract import in_threads
from tests.flights import GUARD_S, turn, wait_for_followers

ASKED = Request(question="What is a map?")


@pytest.fixture
def cache(url: str) -> Cache:
    return stampcache.open_cache(url)


# -- one making ------------------------------------------------------------------------------------


def test_j8_j10_a_hundred_equal_tasks_embed_and_make_once(url: str) -> None:
    embedder = AngleEmbedder({ASKED.question: 0.0})
    cache = AsyncCache(url, embedder=embedder, calibration=0.9)
    made: list[str] = []
    embedder.calls = 0  # since the canaries

    async def make() -> str:
        made.append("call")
        await turn()
        return "An image."

    async def body() -> set[str]:
        asked = [cache.get_or_create(ASKED, make) for _ in range(100)]
        return {answer.text for answer in await asyncio.gather(*asked)}

    assert asyncio.run(body()) == {"An image."}
    assert (len(made), embedder.calls) == (1, 1)
    assert len(cache.core.flights) == 0
    cache.sync.close()


def test_f17_equal_requests_of_threads_and_tasks_make_once(cache: Cache) -> None:
    made: list[str] = []
    let = threading.Event()
    all_here = threading.Barrier(9)

    def make() -> str:
        made.append("call")
        assert let.wait(GUARD_S)
        return "An image."

    async def amake() -> str:
        return await asyncio.to_thread(make)

    def thread() -> str:
        all_here.wait(GUARD_S)
        return cache.get_or_create(ASKED, make).text

    async def tasks() -> list[str]:
        asked = [asyncio.create_task(cache.aio.get_or_create(ASKED, amake)) for _ in range(10)]
        await asyncio.to_thread(all_here.wait, GUARD_S)
        let.set()
        return [answer.text for answer in await asyncio.gather(*asked)]

    with ThreadPoolExecutor(8) as pool:
        threads = [pool.submit(thread) for _ in range(8)]
        texts = asyncio.run(tasks()) + [one.result(GUARD_S) for one in threads]
    assert set(texts) == {"An image."}
    assert len(made) == 1
    cache.close()


def test_requests_that_share_an_answer_do_not_share_the_object() -> None:
    cache = stampcache.open_cache("memory://")
    settings = stampcache.Settings(seam=stampcache.Seam.MODEL)
    request = Request(question="q", settings=settings)

    async def make() -> Answer:
        await turn()
        return Answer(text="", tool_calls=({"name": "t", "args": {}},))

    async def body() -> list[Answer]:
        return await asyncio.gather(*(cache.aio.get_or_create(request, make) for _ in range(3)))

    first, *others = asyncio.run(body())
    first.tool_calls[0]["args"]["spoilt"] = True  # type: ignore[index]
    assert all(other.tool_calls[0]["args"] == {} for other in others)


def test_threads_that_share_an_answer_do_not_share_the_object() -> None:
    cache = stampcache.open_cache("memory://")
    request = Request(question="q", settings=stampcache.Settings(seam=stampcache.Seam.MODEL))
    begun, let = threading.Event(), threading.Event()

    def make() -> Answer:
        begun.set()
        assert let.wait(GUARD_S)
        return Answer(text="", tool_calls=({"name": "t", "args": {}},))

    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(cache.get_or_create, request, make)
        assert begun.wait(GUARD_S)
        (key,) = cache.core.flights._flights
        follower = pool.submit(cache.get_or_create, request, lambda: pytest.fail("made twice"))
        wait_for_followers(cache.core.flights, key, 1)
        let.set()
        first, second = leader.result(GUARD_S), follower.result(GUARD_S)
    first.tool_calls[0]["args"]["spoilt"] = True  # type: ignore[index]
    assert second.tool_calls[0]["args"] == {}


# -- threads ---------------------------------------------------------------------------------------


def test_j3_j4_sixteen_threads_write_the_same_key(cache: Cache) -> None:
    def work(worker: int) -> None:
        for _ in range(5):
            outcome = cache.lookup(ASKED)
            assert isinstance(cache.update(ASKED, f"by {worker}", outcome=outcome), Stored)
            assert isinstance(cache.lookup(ASKED), Hit)

    in_threads(work, count=16)
    assert cache.stats().entries == 1
    assert cache.stats().requests == 16 * 5 * 2
    cache.close()


def test_threads_of_different_tenants_never_meet(cache: Cache) -> None:
    def work(worker: int) -> None:
        with stampcache.scope(tenant=f"t{worker}"):
            for at in range(10):
                request = Request(question=f"q{at}")
                answer = cache.get_or_create(request, lambda: f"of {worker}")
                assert answer.text == f"of {worker}"

    in_threads(work, count=8)
    assert cache.stats(everything=True).entries == 80
    cache.close()


# -- the event loop --------------------------------------------------------------------------------


class Slow(MemoryStore):
    """A store whose verbs wait until they are let; in tasks it runs in threads."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.let = threading.Event()

    def _wait(self) -> None:
        self.entered.set()
        assert self.let.wait(GUARD_S)

    def peek(self, partition: str, key: str) -> Entry | None:
        return None

    def fetch(self, partition: str, key: str) -> Entry | None:
        self._wait()
        return super().fetch(partition, key)

    def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        self._wait()
        return super().nearest(partition, vector, k, asked=asked, now=now)

    def put(self, entry: Entry, vector: Vector | None, fence: int) -> Receipt:
        self._wait()
        return super().put(entry, vector, fence)

    def sequence(self) -> int:
        self._wait()
        return super().sequence()

    def clear(self, scope: str) -> int:
        self._wait()
        return super().clear(scope)

    def aio(self) -> AsyncStore:
        return ThreadedStore(self)


class SlowEmbedder(AngleEmbedder):
    """An embedder that waits with its store."""

    def __init__(self, store: Slow) -> None:
        super().__init__({})
        self._store = store

    def embed(self, texts: Sequence[str]) -> Vector:
        self._store._wait()
        return super().embed(texts)


@pytest.mark.parametrize("verb", ["lookup", "update", "get_or_create", "clear"])
async def test_j1_j6_j7_a_store_that_blocks_does_not_block_the_loop(verb: str) -> None:
    store = Slow()
    cache = AsyncCache(store, embedder=SlowEmbedder(store), calibration=0.9)

    async def make() -> str:
        return "x"

    coroutine = {
        "lookup": lambda: cache.lookup(ASKED),
        "update": lambda: cache.update(ASKED, "x"),
        "get_or_create": lambda: cache.get_or_create(ASKED, make),
        "clear": cache.clear,
    }[verb]()
    task = asyncio.create_task(coroutine)
    assert await asyncio.to_thread(store.entered.wait, GUARD_S)
    await turn()  # reached only while the loop goes on
    assert not task.done()
    store.let.set()
    await task


async def test_j6_a_locked_sqlite_file_does_not_block_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    cache = AsyncCache(f"sqlite:///{path}")
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    update = asyncio.create_task(cache.update(ASKED, "x"))
    await turn()
    assert not update.done()
    blocker.execute("ROLLBACK")  # never reached if the update held the loop
    assert isinstance(await update, Stored)
    blocker.close()
    await cache.close()


# -- nothing grows ---------------------------------------------------------------------------------


def test_j13_nothing_grows_with_loops_and_threads(cache: Cache) -> None:
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def body(at: int) -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))

        async def make() -> str:
            await asyncio.sleep(0)
            return "x"

        request = Request(question=f"q{at % 2}")
        await asyncio.gather(*(cache.aio.get_or_create(request, make) for _ in range(5)))

    def look(worker: int) -> None:
        cache.lookup(Request(question="q0"))

    def threads() -> int:
        in_threads(look, count=4)
        return threading.active_count()

    for at in range(6):
        asyncio.run(body(at))
        assert threads() == threading.active_count()
    gc.collect()
    assert not any(loop() for loop in loops)
    assert len(cache.core.flights) == 0
    assert len(cache.core.intake._realms) == 1
    cache.close()


def test_j13_an_entry_that_went_while_it_was_served_leaves_nothing() -> None:
    cache = stampcache.open_cache("memory://")
    cache.update(ASKED, "x")
    hit = cache.lookup(ASKED)
    assert isinstance(hit, Hit)
    cache.clear()
    cache.core.store.touch(hit.entry, "asked")
    cache.core.store.touch(hit.entry, hit.entry.identity.key)
    assert cache.core.store.stats().hits == 0
    store = cache.core.store
    assert isinstance(store, MemoryStore)
    assert not store._hits


def test_j15_two_caches_share_no_state() -> None:
    one, other = stampcache.open_cache("memory://"), stampcache.open_cache("memory://")
    with stampcache.scope(tenant="acme"):
        one.update(ASKED, "x")
    assert other.lookup(ASKED).reason is stampcache.Reason.NOT_FOUND
    assert other.stats(everything=True).counters == {"miss.not_found": 1}


def test_vectors_of_a_miss_are_not_the_stores_own() -> None:
    embedder = AngleEmbedder({ASKED.question: 0.0, "what is the map": 3.0})
    cache = stampcache.open_cache("memory://", embedder=embedder, calibration=0.9)
    miss = cache.lookup(ASKED)
    assert isinstance(miss, stampcache.Miss) and miss.vector is not None
    cache.update(ASKED, "x", outcome=miss)
    miss.vector[:] = np.nan
    assert isinstance(cache.lookup(Request(question="what is the map")), Hit)
