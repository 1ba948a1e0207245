"""What a hit costs: in the near-cache, over the wire beside a GET of the same bytes, by 64 tasks."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import redis
import redis.asyncio

from benchmarks.stores.timing import TASKS, Row, answer, drawn, percentile, question, spent, told
from stampcache import Answer, Cache, Hit, Request, Settings, open_cache
from stampcache.ports import Store
from stampcache.stores.memory import MemoryStore
from stampcache.stores.redis.store import RedisStore
from stampcache.stores.sqlite import SqliteStore

SETTINGS = Settings(model="deepseek-chat", params={"temperature": 0, "max_tokens": 512})
SECRET = "the same in every process, 32 bytes"


def _request(number: int) -> Request:
    return Request(question=question(number), settings=SETTINGS)


@contextmanager
def _filled(store: Store, count: int) -> Iterator[Cache]:
    with open_cache(store, secret=SECRET) as cache:
        for number in range(count):
            cache.update(_request(number), Answer(text=answer(number)))
        yield cache


def _warm(cache: Cache, numbers: Sequence[int]) -> list[Request]:
    requests = [_request(number) for number in numbers]
    for request in requests:
        assert isinstance(cache.lookup(request), Hit)
    return requests


def near(url: str, count: int, calls: int) -> list[Row]:
    """Time hits of warm near-caches and misses, of every store in one run."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as named:
        stores: dict[str, Store] = {
            "memory": MemoryStore(capacity=count),
            "SQLite": SqliteStore(Path(named) / "cache.db", capacity=count),
            "Redis": RedisStore(url + "?prefix=near", capacity=count),
            "Redis, strict": RedisStore(url + "?prefix=strict&strict=1", capacity=count),
        }
        for name, store in stores.items():
            with _filled(store, count) as cache:
                asked = _warm(cache, drawn(count, calls))
                took = spent([partial(cache.lookup, one) for one in asked])
                rows.append(told(f"exact hit, {name}, near-cache warm", took))
                missing = [_request(count + number) for number in range(calls // 10)]
                took = spent([partial(cache.lookup, one) for one in missing])
                rows.append(told(f"miss, {name}", took))
    return rows


def remote(url: str, count: int, calls: int) -> list[Row]:
    """Time hits that nothing is kept near of, in turn with a GET of the same bytes."""
    plain = redis.Redis.from_url(url, protocol=2)
    store = RedisStore(url + "?prefix=remote", capacity=count, near_capacity=1)
    with _filled(store, count) as cache:
        keys = [key for key in plain.scan_iter("*{remote}:*") if plain.type(key) == b"string"]
        kept = [key for key in keys if plain.strlen(key) > 1_000]
        numbers = drawn(count, calls)
        asked = _warm(cache, numbers)
        hits, gets = [], []
        for number, request in zip(numbers, asked, strict=True):
            gets += spent([partial(plain.get, kept[number % len(kept)])], collect=False)
            hits += spent([partial(cache.lookup, request)], collect=False)
    plain.close()
    ratio = round(percentile(hits, 50) / percentile(gets, 50), 2)
    row = told("exact hit, Redis, nothing near", hits)
    return [told("a GET of the same bytes", gets), {**row, "of a GET": ratio}]


def at_once(url: str, count: int, calls: int) -> list[Row]:
    """Count hits per second of many tasks, beside as many tasks that only GET."""
    return asyncio.run(_at_once(url, count, calls))


async def _at_once(url: str, count: int, calls: int) -> list[Row]:
    rows: list[Row] = []
    numbers = drawn(count, calls)
    tasks = url + "?prefix=tasks&timeout_s=5"  # what is measured is no outage
    with tempfile.TemporaryDirectory() as named:
        stores: dict[str, Store] = {
            "memory": MemoryStore(capacity=count),
            "SQLite": SqliteStore(Path(named) / "cache.db", capacity=count),
            "Redis, near-cache warm": RedisStore(tasks, capacity=count),
            "Redis, nothing near": RedisStore(tasks, capacity=count, near_capacity=1),
        }
        for name, store in stores.items():
            with _filled(store, count) as cache:
                asked = _warm(cache, numbers)
                look = cache.aio.lookup
                rate = await _rate([partial(_hit, look, one) for one in asked])
            what = f"exact hits of {TASKS} tasks, {name}"
            rows.append({"what": what, "calls": calls, "per s": rate})
    return [*rows, await _plain(url, numbers)]


async def _hit(look: Callable[[Request], Awaitable[object]], request: Request) -> None:
    assert isinstance(await look(request), Hit)


async def _plain(url: str, numbers: Sequence[int]) -> Row:
    client = redis.asyncio.Redis.from_url(url, protocol=2, max_connections=TASKS)
    keys = [
        key async for key in client.scan_iter("*{tasks}:*") if await client.type(key) == b"string"
    ]
    kept = [key for key in keys if await client.strlen(key) > 1_000]
    rate = await _rate([partial(client.get, kept[number % len(kept)]) for number in numbers])
    await client.aclose()
    what = f"GETs of the same bytes, {TASKS} tasks"
    return {"what": what, "calls": len(numbers), "per s": rate}


async def _rate(calls: Sequence[Callable[[], Awaitable[object]]]) -> int:
    left = iter(calls)

    async def task() -> None:
        for call in left:
            await call()

    began = time.perf_counter()
    await asyncio.gather(*(task() for _ in range(TASKS)))
    return round(len(calls) / (time.perf_counter() - began))
