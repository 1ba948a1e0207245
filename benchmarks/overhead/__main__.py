"""What a cache costs an application besides the framework's own work, at each seam of both frameworks.

    python -m benchmarks.overhead [--quick] [--json FILE]

The model is a stand-in that answers at once, so that what is left is the framework and the cache. Each
row compares two applications call by call, in turn: the one without a cache and the one with it.
``alone`` is the median of the first; ``miss`` and ``hit`` are medians of the differences to it, so they
are what the cache adds (below zero: a hit saves work of the framework, too). Under ``recheck`` the
retriever is asked on every call by both. Beside the agent stands one with a middleware that does nothing.
Microseconds; the last rows tell how many of many calls at once went wrong.
"""

import asyncio
import gc
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from benchmarks.overhead import langchain_apps, llama_index_apps
from benchmarks.overhead.pair import Pair
from benchmarks.report import Row, arguments, show, write

THREADS, TASKS = 8, 200
SEAMS = {**langchain_apps.SEAMS, **llama_index_apps.SEAMS}
Asked: TypeAlias = Callable[[str], Any]


class _Spent(Struct, frozen=True):
    alone: float
    added: float


def _once(ask: Asked, question: str) -> float:
    start = time.perf_counter_ns()
    ask(question)
    return (time.perf_counter_ns() - start) / 1_000


@contextmanager
def _quiet() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _compared(pair: Pair, questions: list[str]) -> _Spent:
    """Ask both applications each question, in turn, and return medians in microseconds."""
    alone, added = [], []
    with _quiet():
        for place, question in enumerate(questions):
            first, second = (pair.alone, pair.cached) if place % 2 else (pair.cached, pair.alone)
            spent = {first: _once(first, question), second: _once(second, question)}
            alone.append(spent[pair.alone])
            added.append(spent[pair.cached] - spent[pair.alone])
    return _Spent(float(np.median(alone)), float(np.median(added)))


def measured(name: str, make: Callable[[], Pair], calls: int) -> Row:
    """Return the row of one seam."""
    pair = make()
    numbers = itertools.count()
    fresh = [f"How long is leave number {next(numbers)}?" for _ in range(calls + 50)]
    for question in fresh[:50]:
        pair.alone(question)
        pair.cached(question)
    before = pair.made()
    miss = _compared(pair, fresh[50:])
    assert pair.made() - before == 2 * calls, f"{name}: a miss was a hit"
    hit = _compared(pair, [fresh[50 + place % 200] for place in range(calls)])
    assert pair.made() - before == 3 * calls, f"{name}: a hit was a miss"
    pair.close()
    return {
        "seam": name,
        "alone us": round(miss.alone, 1),
        "miss adds us": round(miss.added, 1),
        "hit adds us": round(hit.added, 1),
    }


def under_load(name: str, make: Callable[[], Pair], calls: int) -> Row:
    """Ask from 8 threads, then from 200 tasks; questions repeat, and every answer must fit."""
    pair = make()
    questions = [f"How long is leave number {place % 50}?" for place in range(calls)]

    ask = pair.apart or pair.cached

    def fits(question: str) -> bool:
        return pair.fits(question, ask(question))

    async def all_tasks() -> list[bool]:
        async def one(question: str) -> bool:
            return pair.fits(question, await pair.acached(question))

        gate = asyncio.Semaphore(TASKS)

        async def gated(question: str) -> bool:
            async with gate:
                return await one(question)

        return list(await asyncio.gather(*map(gated, questions)))

    with ThreadPoolExecutor(THREADS) as pool:
        by_threads = list(pool.map(fits, questions))
    by_tasks = asyncio.run(all_tasks())
    pair.close()
    return {
        "seam": f"{name}, {THREADS} threads, then {TASKS} tasks",
        "calls": 2 * calls,
        "wrong": by_threads.count(False) + by_tasks.count(False),
    }


def main() -> None:
    options = arguments(__doc__ or "")
    calls = 300 if options.quick else 2_000
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows += [measured(name, make, calls) for name, make in SEAMS.items()]
        rows += [under_load(name, make, calls) for name, make in SEAMS.items()]
    show("What the cache adds to one call (two applications in turn, one run)", rows)
    write(options.json, rows)


if __name__ == "__main__":
    main()
