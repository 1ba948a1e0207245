"""Exact vector search over one partition: a dense matrix, one product per search, real deletion."""

from collections.abc import Iterable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stampcache.model import Vector

_FIRST_ROWS = 16
_SAMPLED = 16


class Neighbour(Struct, frozen=True):
    """A key and the cosine of its vector to the asked one, in [-1, 1]."""

    key: str
    similarity: float


class FlatIndex:
    """Unit vectors of one dimension by key. Not thread-safe: its store holds a lock."""

    def __init__(self, dimension: int) -> None:
        self._rows: NDArray[np.float32] = np.empty((_FIRST_ROWS, dimension), np.float32)
        self._keys: list[str] = []
        self._at: dict[str, int] = {}

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return int(self._rows.shape[1])

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._at

    def get(self, key: str) -> Vector | None:
        """Return the vector of a key, if it is there, as a copy."""
        at = self._at.get(key)
        return None if at is None else self._rows[at].copy()

    def set(self, key: str, vector: Vector) -> None:
        """Add or replace the unit vector of a key."""
        at = self._at.get(key)
        if at is None:
            at = len(self._keys)
            if at == len(self._rows):
                self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
            self._keys.append(key)
            self._at[key] = at
        self._rows[at] = vector

    def fill(self, keys: Iterable[str], vectors: Vector) -> None:
        """Take over many keys and their unit vectors (n, dimension) into an empty index."""
        self._keys = list(keys)
        self._at = {key: at for at, key in enumerate(self._keys)}
        spare = max(_FIRST_ROWS, len(self._keys) // 8)
        self._rows = np.concatenate([vectors, np.empty((spare, vectors.shape[1]), np.float32)])

    def remove(self, key: str) -> None:
        """Delete a key, if it is there; nothing of its vector is kept."""
        at = self._at.pop(key, None)
        if at is None:
            return
        last = self._keys.pop()
        if last != key:
            self._rows[at] = self._rows[len(self._keys)]
            self._keys[at] = last
            self._at[last] = at
        self._rows[len(self._keys)] = 0.0

    def search(self, vector: Vector, k: int) -> list[Neighbour]:
        """Return up to ``k`` neighbours by falling cosine, equal ones by key."""
        count = len(self._keys)
        if count == 0 or k <= 0:
            return []
        scores = self._rows[:count] @ vector
        best = _highest(scores, k) if k < count else np.arange(count)
        found = [Neighbour(self._keys[at], max(-1.0, min(1.0, float(scores[at])))) for at in best]
        return sorted(found, key=lambda one: (-one.similarity, one.key))


def _highest(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Return where the ``k`` highest scores are, in any order.

    Partitioning all scores costs as much as computing them. The k-th highest of a sample is a bound
    that at least ``k`` of all reach, so the ``k`` highest are among the few that reach it.
    """
    sample = scores[::_SAMPLED]
    if len(sample) > k:
        bound = np.partition(sample, len(sample) - k)[len(sample) - k]
        close = np.flatnonzero(scores >= bound)
    else:
        close = np.arange(len(scores))
    picked = scores[close]
    return close[np.argpartition(picked, len(close) - k)[len(close) - k :]]
