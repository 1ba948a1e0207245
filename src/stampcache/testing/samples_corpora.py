"""Chunks, reaches and answers for tests of watched corpora."""

import numpy as np

from stampcache.corpora import (
    Change,
    Chunk,
    Committed,
    Reach,
)
from stampcache.model import Entry, Evidence
from stampcache.ports import Receipt, Store
from stampcache.spaces import as_bytes
from stampcache.testing.samples import NOW, make_entry, unit

CORPUS = "handbook"
ANY = Reach(corpus=CORPUS, why="told so")


def vector(angle: float, *, length: float = 1.0, room: int = 0) -> bytes:
    """Return a vector at an angle (degrees) to the question of `reach`, as it is kept."""
    radians = np.radians(angle)
    return as_bytes([length * np.cos(radians), length * np.sin(radians), *[0.0] * room])


def chunk(name: str, angle: float, *, digest: str = "", source: str = "") -> Chunk:
    """Return a chunk at an angle to the question of `reach`."""
    return Chunk(id=name, source=source, digest=digest or f"text of {name}", vector=vector(angle))


def reach(*found: Chunk, angle: float = 0.0, wanted: int = 2, corpus: str = CORPUS) -> Reach:
    """Return the reach of an answer from these chunks, by rank, and as many as were wanted."""
    asked = np.frombuffer(vector(angle), np.float32)
    scores = [float(asked @ np.frombuffer(one.vector, np.float32)) for one in found]
    full = len(found) == wanted
    return Reach(
        corpus=corpus,
        question=vector(angle),
        floor=scores[-1] - 2e-5 if full else float("-inf"),
        least=scores[-1] if full else float("-inf"),
        within=1e-5,
        digests=tuple(one.digest for one in found),
        scores=tuple(scores),
    )


A, B = chunk("a", 10, source="a.md"), chunk("b", 20, source="b.md")
C, FAR = chunk("c", 15), chunk("far", 80, source="far.md")


def citing(*found: Chunk, key: str = "k", corpus: str = CORPUS) -> Entry:
    """Return an entry made from these chunks."""
    evidence = tuple(
        Evidence(corpus=corpus, source=one.source, chunk=one.id, text=one.digest).sealed()
        for one in found
    )
    return make_entry(key, evidence=evidence, corpus=corpus)


def write(
    store: Store, change: Change, *, intent: str = "", corpus: str = CORPUS, now: float = NOW
) -> Committed:
    """Commit a change."""
    return store.corpora.commit(corpus, intent, change, now=now)


def put(store: Store, entry: Entry, its: Reach) -> Receipt:
    """Store an entry that was made now."""
    return store.put(entry, unit(1, 0), store.sequence(), its)


def kept(store: Store, key: str = "k") -> Entry:
    """Return what the store has at (p, key)."""
    entry = store.fetch("p", key)
    assert entry is not None
    return entry


def near(store: Store) -> list[Entry]:
    """Return what is found by vector."""
    return [one.entry for one in store.nearest("p", unit(1, 0), 9, asked="x", now=NOW)]
