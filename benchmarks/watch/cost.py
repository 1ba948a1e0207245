"""What it costs to tell a cache of many answers about a written chunk, beside embedding that chunk."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.progress import Progress

from benchmarks.report import Row
from stampcache.adapters import Change, Chunk, Metric, as_bytes
from stampcache.corpora import Reach
from stampcache.model import Answer, Entry, Evidence, Identity, Signature, Stamps, Vector
from stampcache.ports import Embedder, Store
from stampcache.stores.memory import MemoryStore
from stampcache.stores.sqlite import SqliteStore

CORPUS = "documents"
_NOW = 1_764_430_000.0
_FILLED_AT_ONCE = 1_000


def _entry(number: int) -> Entry:
    name = f"q{number}"
    return Entry(
        id=name,
        identity=Identity("p", name, "s", "t"),
        question=name,
        answer=Answer(text="answer"),
        signature=Signature("", "v1:00", int(_NOW)),
        evidence=(Evidence(corpus=CORPUS, source=name, chunk=name, digest="v1:00"),),
        stamps=Stamps(),
        created_at=_NOW,
        expires_at=None,
        corpus=CORPUS,
    )


def _reach(question: Vector, floor: float) -> Reach:
    return Reach(
        corpus=CORPUS,
        question=as_bytes(question),
        metric=Metric.COSINE,
        floor=floor,
        within=1e-5,
        scores=(floor,),
    )


@contextmanager
def _stores(count: int) -> Iterator[Sequence[Store]]:
    with tempfile.TemporaryDirectory() as folder:
        stores: list[Store] = [
            MemoryStore(capacity=count),
            SqliteStore(Path(folder) / "cache.db", capacity=count),
        ]
        yield stores
        for store in stores:
            store.close()


def measured(
    embedder: Embedder, texts: Sequence[str], count: int, rounds: int, progress: Progress
) -> list[Row]:
    """Return rows: milliseconds per chunk (median) to embed it and to tell caches of it.

    The questions of the ``count`` answers are chunks with some noise, and their floors so high that a
    chunk reaches about one answer in a thousand.
    """
    drawn = np.random.default_rng(7)
    sample = embedder.embed(texts[:256])
    sample /= np.linalg.norm(sample, axis=1, keepdims=True)
    embedding = [_milliseconds(lambda text=text: embedder.embed([text])) for text in texts[:rounds]]  # type: ignore[misc]  # mypy reads no lambda with a default
    rows: list[Row] = [_row("embed the chunk (MiniLM)", 1, embedding)]
    noise = 0.6 / np.sqrt(sample.shape[1])
    with _stores(count) as stores:
        for store in stores:
            store.corpora.declare(CORPUS, now=_NOW, silence_s=None)
            bar = progress.add_task(f"{count:,} answers, {type(store).__name__}", total=count)
            for number in range(count):
                row = sample[number % len(sample)] + noise * drawn.normal(size=sample.shape[1])
                reach = _reach(row.astype(np.float32), 0.9)
                store.put(_entry(number), None, store.sequence(), reach)
                progress.advance(bar)
            name = f"tell {type(store).__name__} of {count:,} answers"
            chunks = iter(range(10_000_000))
            first = _milliseconds(_commit(store, sample, chunks, 1))
            rows.append(_row(f"{name}, the first time", 1, [first]))
            for batch in (1, 100):
                many = max(3, rounds // batch)
                spent = [
                    _milliseconds(_commit(store, sample, chunks, batch)) / batch
                    for _ in range(many)
                ]
                rows.append(_row(name, batch, spent))
    return rows


def _commit(
    store: Store, sample: Vector, numbers: Iterator[int], batch: int
) -> Callable[[], object]:
    added = []
    for _ in range(batch):
        number = next(numbers)
        vector = np.roll(sample[number % len(sample)], number)  # near no question
        added.append(Chunk(id=f"n{number}", digest=f"v1:{number}", vector=as_bytes(vector)))
    change = Change(added=tuple(added))
    return lambda: store.corpora.commit(CORPUS, "", change, now=_NOW)


def _milliseconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return 1_000 * (time.perf_counter() - started)


def _row(what: str, batch: int, spent: Sequence[float]) -> Row:
    return {
        "part": "cost of a written chunk",
        "what": what,
        "chunks at once": batch,
        "ms per chunk": round(statistics.median(spent), 3),
        "highest": round(max(spent), 3),
        "times": len(spent),
    }
