"""GPTCache with SQLite and FAISS, its own recommended pair, and with a map of equal texts.

    python -m benchmarks.stores.peers.gptcache QUICK

Runs in an environment of its own with ``gptcache``, ``sqlalchemy`` and ``faiss-cpu``, and prints its rows
as JSON. It has no tasks: threads stand for them.
"""

import json
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from gptcache import Cache, Config
from gptcache.adapter.api import get, put
from gptcache.manager import CacheBase, VectorBase, get_data_manager
from gptcache.processor.pre import get_prompt
from gptcache.similarity_evaluation import ExactMatchEvaluation
from gptcache.similarity_evaluation.distance import SearchDistanceEvaluation

from benchmarks.stores.timing import TASKS, Row, answer, drawn, question, timed

DIMENSION = 384


def direction(text: str, **_: object) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    """Return a unit vector of its own for each text: nothing is embedded."""
    chance = np.random.default_rng(abs(hash(text)))
    vector = chance.normal(size=DIMENSION).astype(np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def by_meaning(folder: Path) -> Cache:
    """Return the pair of SQLite and FAISS."""
    cache = Cache()
    kept = CacheBase("sqlite", sql_url=f"sqlite:///{folder / 'cache.db'}")
    vectors = VectorBase(
        "faiss", dimension=DIMENSION, index_path=str(folder / "cache.index"), top_k=1
    )
    cache.init(
        pre_embedding_func=get_prompt,
        embedding_func=direction,
        data_manager=get_data_manager(kept, vectors),
        similarity_evaluation=SearchDistanceEvaluation(),
        config=Config(similarity_threshold=0.8),
    )
    return cache


def by_text(folder: Path) -> Cache:
    """Return the map of texts in memory."""
    cache = Cache()
    kept = get_data_manager(data_path=str(folder / "map.txt"), max_size=100_000)
    cache.init(
        pre_embedding_func=get_prompt,
        data_manager=kept,
        similarity_evaluation=ExactMatchEvaluation(),
    )
    return cache


def hits(name: str, cache: Cache, count: int, calls: int) -> list[Row]:
    """Time hits, one by one and of many threads at once."""
    for number in range(count):
        put(question(number), answer(number), cache_obj=cache)
    picked = [question(number) for number in drawn(count, calls)]
    assert all(get(one, cache_obj=cache) for one in picked[:20])
    asks: list[Callable[[], object]] = [partial(get, one, cache_obj=cache) for one in picked]
    row = timed(f"{name}, hit", asks)
    began = time.perf_counter()
    with ThreadPoolExecutor(TASKS) as pool:
        failed = sum(done.exception() is not None for done in [pool.submit(ask) for ask in asks])
    rate = round(len(asks) / (time.perf_counter() - began))
    what = f"{name}, hits of {TASKS} threads"
    return [row, {"what": what, "calls": len(asks), "per s": rate, "wrong": failed}]


def main() -> None:
    """Measure, and print the rows."""
    quick = sys.argv[1] == "quick"
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)  # it writes to its files once more when they are gone
    count, calls = (200, 500) if quick else (1_000, 4_000)
    with tempfile.TemporaryDirectory() as named:
        os.chdir(named)
        folder = Path(named)
        rows = hits("GPTCache, map in memory", by_text(folder), count, calls)
        rows += hits("GPTCache, SQLite and FAISS", by_meaning(folder), count, calls // 10)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
