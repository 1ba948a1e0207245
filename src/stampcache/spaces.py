"""How close vectors are, in words of our own: whatever the metric, higher is closer (pure).

Scores are computed here from vectors, never taken from an index, whose scale is its own affair.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stampcache.corpora import Metric
from stampcache.model import Vector

TOLERANCE = 1e-5
"""How far two computations of one score may be apart, as a share of the largest possible one."""

_LARGEST_SQUARE = 1e37
"""Of a vector's length: above it, squared distances would not be finite as float32."""


class Space(Struct, frozen=True):
    """Where scores of a metric are inner products, of questions on one side and chunks on the other."""

    metric: Metric
    dimension: int

    @property
    def columns(self) -> int:
        """How many numbers a row has."""
        return self.dimension + (2 if self.metric is Metric.L2 else 0)

    def questions(self, vectors: Vector) -> Vector:
        """Return questions (n, dimension) as rows that give scores with rows of `chunks`."""
        if self.metric is Metric.COSINE:
            return _unit(vectors)
        if self.metric is Metric.DOT:
            return vectors
        squares = np.square(vectors).sum(1, keepdims=True)
        ones = np.ones_like(squares)
        return np.concatenate([2 * vectors, -ones, -squares], axis=1)

    def chunks(self, vectors: Vector) -> Vector:
        """Return chunks (n, dimension) as rows that give scores with rows of `questions`."""
        if self.metric is Metric.COSINE:
            return _unit(vectors)
        if self.metric is Metric.DOT:
            return vectors
        squares = np.square(vectors).sum(1, keepdims=True)
        return np.concatenate([vectors, squares, np.ones_like(squares)], axis=1)


def as_vector(raw: bytes) -> Vector:
    """Return a vector that was kept as bytes."""
    return np.frombuffer(raw, np.float32)


def as_bytes(vector: Iterable[float] | NDArray[np.floating]) -> bytes:
    """Return a vector as it is kept; empty where it is none, or scores of it are not finite."""
    row = np.asarray(vector if isinstance(vector, np.ndarray) else list(vector), np.float64)
    with np.errstate(over="ignore"):
        usable = row.ndim == 1 and row.size > 0 and bool(np.square(row).sum() < _LARGEST_SQUARE)
    return row.astype(np.float32).tobytes() if usable else b""


def scores(metric: Metric, question: bytes, chunks: Sequence[bytes]) -> NDArray[np.float32]:
    """Return the score of each chunk for a question; not a number where it cannot be compared."""
    asked = as_vector(question)
    found = np.full(len(chunks), np.nan, np.float32)
    same = [at for at, raw in enumerate(chunks) if len(raw) == len(question)]
    if same:
        space = Space(metric, len(asked))
        rows = np.stack([as_vector(chunks[at]) for at in same])
        found[same] = space.chunks(rows) @ space.questions(asked[None])[0]
    return found


def within(metric: Metric, lengths: Vector, length: float) -> Vector:
    """Return how far scores may be off, of questions of these lengths with a chunk of that length."""
    if metric is Metric.COSINE:
        return np.full_like(lengths, TOLERANCE)
    asked, found = lengths, np.float32(length)
    largest = asked * found if metric is Metric.DOT else np.square(asked + found)
    off: Vector = TOLERANCE * np.maximum(largest, np.float32(1))
    return off


def length(raw: bytes) -> float:
    """Return the length of a vector."""
    return float(np.linalg.norm(as_vector(raw)))


def imprint(raw: bytes) -> float | None:
    """Return a number that tells a vector from others, though not from its like; ``None`` for none."""
    return float(as_vector(raw).sum(dtype=np.float64)) if raw else None


def _unit(vectors: Vector) -> Vector:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vector = (vectors / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    return unit
