"""The index of a watched world: one file that several processes search and write, and nothing more.

Search is flat and exact. A process can be killed before, amid and after each write. Chunks of one text
are equally close, as in any index; which of them comes first depends on when they were written.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tests.differential.world import WORDS, core_of

DEATHS_OF_WRITES = ("begun", "half", "written")
DIMENSION = 12
Halt = Callable[[str], None]
Vector = NDArray[np.float32]


class Row(Struct, frozen=True):
    """One chunk in the file."""

    id: str
    text: str
    metadata: dict[str, object]


def embed(text: str) -> Vector:
    """Return what its words say, and a little of its own: white space counts for nothing."""
    words = core_of(text).lower().replace("?", "").split()
    own = _random(" ".join(words))
    said = sum((_random(word) for word in words if word in WORDS), np.zeros(DIMENSION))
    return np.asarray(said + 0.05 * own, np.float32)


def _random(text: str) -> NDArray[np.float64]:
    seed = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return np.random.default_rng(list(seed)).normal(size=DIMENSION)


class IndexFile:
    """Chunks and their vectors in a file."""

    def __init__(self, path: Path, halt: Halt | None = None) -> None:
        self._path = path
        self._halt = halt or (lambda where: None)
        with self._opened() as file:
            file.execute(
                "CREATE TABLE IF NOT EXISTS chunks (place INTEGER PRIMARY KEY AUTOINCREMENT,"
                " id TEXT UNIQUE, text TEXT, metadata BLOB, vector BLOB)"
            )

    def add(self, rows: Sequence[Row], vectors: Iterable[Sequence[float]]) -> None:
        """Add or replace chunks, one after the other."""
        with self._opened() as file:
            self._halt("begun")
            for at, (row, vector) in enumerate(zip(rows, vectors, strict=True)):
                if at:
                    self._halt("half")
                file.execute(
                    "INSERT OR REPLACE INTO chunks (id, text, metadata, vector) VALUES (?, ?, ?, ?)",
                    (
                        row.id,
                        row.text,
                        msgspec.json.encode(row.metadata),
                        np.asarray(vector, np.float32).tobytes(),
                    ),
                )
            self._halt("written")

    def delete(self, ids: Sequence[str]) -> None:
        """Delete chunks, one after the other."""
        with self._opened() as file:
            self._halt("begun")
            for at, one in enumerate(ids):
                if at:
                    self._halt("half")
                file.execute("DELETE FROM chunks WHERE id = ?", (one,))
            self._halt("written")

    def rows(self) -> list[Row]:
        """Return all chunks, as they were written."""
        with self._opened() as file:
            found = file.execute("SELECT id, text, metadata FROM chunks ORDER BY place").fetchall()
        return [Row(row[0], row[1], msgspec.json.decode(row[2])) for row in found]

    def ids_of(self, source: str) -> list[str]:
        """Return the ids of what was cut from a document."""
        return [row.id for row in self.rows() if row.metadata["source"] == source]

    def search(self, vector: Sequence[float], k: int, source: str | None = None) -> list[Row]:
        """Return the k nearest chunks, of one source if it is given."""
        with self._opened() as file:
            found = file.execute(
                "SELECT id, text, metadata, vector FROM chunks ORDER BY place"
            ).fetchall()
        rows = [Row(row[0], row[1], msgspec.json.decode(row[2])) for row in found]
        asked = np.asarray(vector, np.float32)
        vectors = [np.frombuffer(row[3], np.float32) for row in found]
        scored = sorted((-cosine(asked, one), at) for at, one in enumerate(vectors))
        kept = [at for _, at in scored if source in (None, rows[at].metadata["source"])]
        return [rows[at] for at in kept[:k]]

    def _opened(self) -> "closing[sqlite3.Connection]":
        file = sqlite3.connect(self._path, isolation_level=None, timeout=30)
        file.execute("PRAGMA synchronous = OFF")  # processes die here, not machines
        return closing(file)


def cosine(one: Vector, other: Vector) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
