"""How long a lookup takes: exact hits, long prompts, misses, semantic search, beside LangChain's caches.

    python -m benchmarks.latency [--quick] [--json FILE]

Everything runs in one process and one run, so the ratios hold on any machine; absolute times do not.
A row is the median and the 99th percentile of single calls, in microseconds.
"""

import gc
import random
import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from langchain_core.caches import BaseCache, InMemoryCache
from langchain_core.outputs import Generation

from benchmarks.report import Row, arguments, show, write
from langchain_stampcache import StampCache
from stampcache import Answer, Cache, Hit, Request, Settings, open_cache
from stampcache.model import Vector
from stampcache.stores.sqlite import SqliteStore

ANSWER_CHARS = 2_500
QUESTION_CHARS = 200
SHORT_CHARS = 60
PROMPT_CHARS = 8_000
DIMENSION = 384
SETTINGS = Settings(model="deepseek-chat", params={"temperature": 0, "max_tokens": 512})
TEXT = (
    "how do I configure the maximum number of concurrent connections for requests in staging"
    " environment when service restarts after deploy with limited memory and slow network"
)
WORDS = tuple(TEXT.split())


class Table:
    """An embedder that looks vectors up: what is measured is the cache without the embedding."""

    name = "table"

    def __init__(self) -> None:
        self._rows: dict[str, Vector] = {}
        self._random = np.random.default_rng(7)

    def place(self, text: str, beside: str | None = None) -> None:
        """Give a text a random direction, or nearly that of another text."""
        row = self._random.normal(size=DIMENSION)
        if beside is not None:
            row = self._rows[beside] + 0.1 * row
        self._rows[text] = row.astype(np.float32)

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.stack([self._rows[text] for text in texts])


def question(number: int, chars: int = QUESTION_CHARS) -> str:
    drawn = random.Random(number)
    words = [f"#{number}"]
    while sum(map(len, words)) + len(words) < chars:
        words.append(drawn.choice(WORDS))
    return " ".join(words)[:chars]


def answer(number: int) -> str:
    return f"answer {number} ".ljust(ANSWER_CHARS, "x")


def timed(name: str, calls: Sequence[Callable[[], object]]) -> Row:
    """Time each call once, in order; collect garbage before, not during."""
    gc.collect()
    gc.disable()
    spent = []
    for call in calls:
        start = time.perf_counter_ns()
        call()
        spent.append(time.perf_counter_ns() - start)
    gc.enable()
    microseconds = np.asarray(spent) / 1_000
    return {
        "what": name,
        "calls": len(calls),
        "p50 us": round(float(np.median(microseconds)), 2),
        "p99 us": round(float(np.percentile(microseconds, 99)), 2),
    }


def draws(count: int, calls: int) -> list[int]:
    return random.Random(7).choices(range(count), k=calls)


def short(number: int) -> str:
    """Return a question as long as people's are: those of banking77 have 54 characters on average."""
    return question(number, SHORT_CHARS)


def fill(cache: Cache, count: int, text: Callable[[int], str] = question) -> None:
    for number in range(count):
        request = Request(question=text(number), settings=SETTINGS)
        cache.update(request, Answer(text=answer(number)))


def hits(name: str, cache: Cache, count: int, calls: int) -> Row:
    requests = [Request(question=question(n), settings=SETTINGS) for n in draws(count, calls)]
    for request in requests:  # warms the near-cache and proves that these are hits
        assert isinstance(cache.lookup(request), Hit)
    return timed(name, [partial(cache.lookup, r) for r in requests])


def misses(name: str, cache: Cache, count: int, calls: int) -> Row:
    requests = [Request(question=question(count + n), settings=SETTINGS) for n in range(calls)]
    return timed(name, [partial(cache.lookup, r) for r in requests])


def long_prompts(name: str, cache: Cache, calls: int) -> Row:
    prompts = [question(n, PROMPT_CHARS) for n in range(100)]
    requests = [Request(prompt=prompt, settings=SETTINGS) for prompt in prompts]
    for number, request in enumerate(requests):
        cache.update(request, answer(number))
    picked = [requests[n] for n in draws(100, calls)]
    return timed(name, [partial(cache.lookup, r) for r in picked])


def peers(name: str, cache: BaseCache, count: int, calls: int) -> Row:
    for number in range(count):
        cache.update(question(number), "model", [Generation(text=answer(number))])
    prompts = [question(n) for n in draws(count, calls)]
    for prompt in prompts:
        assert cache.lookup(prompt, "model")
    return timed(name, [partial(cache.lookup, p, "model") for p in prompts])


@contextmanager
def sqlite_store(folder: Path, *, capacity: int) -> Iterator[SqliteStore]:
    """A store whose filling does not wait for the disk; what is measured only reads."""
    store = SqliteStore(folder / f"{capacity}.db", capacity=capacity)
    store._file.writer.execute("PRAGMA synchronous = OFF")
    yield store
    store.close()


def exact(folder: Path, count: int, calls: int) -> list[Row]:
    rows: list[Row] = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open_cache("memory://", capacity=count) as cache:
        fill(cache, count)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        label = f"memory, {count:,} entries"
        rows.append(hits(f"exact hit, {label}", cache, count, calls))
        rows.append(
            {
                "what": f"memory per entry of {ANSWER_CHARS:,} characters, bytes",
                "bytes": round(grown * 1024 / count),
            }
        )
        rows.append(misses(f"miss, {label}", cache, count, calls))
        rows.append(
            long_prompts(f"exact hit, {PROMPT_CHARS:,}-character prompt, memory", cache, calls)
        )
    with sqlite_store(folder, capacity=count) as store, open_cache(store) as cache:
        fill(cache, count)
        label = f"SQLite, {count:,} entries"
        rows.append(hits(f"exact hit, {label}, warm near-cache", cache, count, calls))
        rows.append(misses(f"miss, {label}", cache, count, calls))
        rows.append(
            long_prompts(f"exact hit, {PROMPT_CHARS:,}-character prompt, SQLite", cache, calls)
        )
    return rows


def semantic(count: int, calls: int) -> list[Row]:
    """The second level without the embedding: search, candidates, checks."""
    table = Table()
    near = {f"Please tell me {short(n)}": short(n) for n in draws(count, calls)}
    far = [short(count + n) for n in range(calls)]
    for number in range(count):
        table.place(short(number))
    for asked, stored in near.items():
        table.place(asked, beside=stored)
    for asked in far:
        table.place(asked)
    rows = []
    with open_cache("memory://", embedder=table, calibration=0.9, capacity=count) as cache:
        fill(cache, count, short)
        for name, asks in (("hit", list(near)), ("miss", far)):
            requests = [Request(question=asked, settings=SETTINGS) for asked in asks]
            for request in requests:  # warms what is remembered of entries, as above
                assert isinstance(cache.lookup(request), Hit) == (name == "hit")
            label = f"semantic {name} without the embedding, {count:,} entries"
            rows.append(timed(label, [partial(cache.lookup, r) for r in requests]))
    return rows


def beside_langchain(folder: Path, count: int, calls: int) -> list[Row]:
    from langchain_community.cache import SQLiteCache

    with sqlite_store(folder, capacity=count + 1) as store:
        caches: dict[str, BaseCache] = {
            "LangChain InMemoryCache": InMemoryCache(),
            "StampCache over memory": StampCache(open_cache("memory://", capacity=count)),
            "LangChain SQLiteCache": SQLiteCache(str(folder / "langchain.db")),
            "StampCache over SQLite": StampCache(open_cache(store)),
        }
        return [
            peers(f"{name}.lookup, {count:,} entries", cache, count, calls)
            for name, cache in caches.items()
        ]


def main() -> None:
    options = arguments(__doc__ or "")
    count, calls = (5_000, 5_000) if options.quick else (100_000, 50_000)
    few = 500 if options.quick else 2_000
    with tempfile.TemporaryDirectory() as named, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(named)
        rows = exact(folder, count, calls)
        rows += semantic(2_000 if options.quick else 10_000, 500)
        rows += beside_langchain(folder, few, min(calls, 2_000))
    show("Latency of single calls (one process, one run)", rows)
    write(options.json, rows)


if __name__ == "__main__":
    main()
