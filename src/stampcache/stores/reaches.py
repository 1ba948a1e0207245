"""Which answers are in reach of written chunks: the reaches of one corpus as matrices.

What a store keeps in rows is kept here a second time, so that a written chunk is scored against all
answers of its corpus by one product. Not thread-safe: its store holds a lock.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from stampcache.corpora import Chunk, Difference, Metric, Reach, Written
from stampcache.model import Vector
from stampcache.reaching import Space, as_vector

_FIRST_ROWS = 16
_SCORED_AT_ONCE = 256
"""So many chunks are scored at once: with 100,000 answers that takes 100 MB."""

Key = TypeVar("Key", bound=Hashable)
Touched: TypeAlias = dict[Key, list[Difference]]


class _Block(Generic[Key]):
    """Questions of one dimension under one metric, with their floors."""

    def __init__(self, space: Space, columns: int) -> None:
        self.space = space
        self._rows: Vector = np.empty((_FIRST_ROWS, columns), np.float32)
        self._floors: NDArray[np.float32] = np.empty(_FIRST_ROWS, np.float32)
        self.keys: list[Key] = []
        self.at: dict[Key, int] = {}

    def set(self, key: Key, question: Vector, floor: float) -> None:
        at = self.at.get(key)
        if at is None:
            at = len(self.keys)
            if at == len(self._rows):
                self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
                self._floors = np.concatenate([self._floors, np.empty_like(self._floors)])
            self.keys.append(key)
            self.at[key] = at
        self._rows[at], self._floors[at] = question, floor

    def drop(self, key: Key) -> None:
        at = self.at.pop(key)
        last = self.keys.pop()
        if last != key:
            end = len(self.keys)
            self._rows[at], self._floors[at] = self._rows[end], self._floors[end]
            self.keys[at] = last
            self.at[last] = at

    def reached(self, rows: Vector) -> Iterator[tuple[int, Mapping[Key, float]]]:
        """Yield for each row of chunks, by its place, the questions that it reaches, with scores."""
        count = len(self.keys)
        questions, floors = self._rows[:count], self._floors[:count]
        for start in range(0, len(rows), _SCORED_AT_ONCE):
            scored = rows[start : start + _SCORED_AT_ONCE] @ questions.T
            for at, row in enumerate(scored):
                hit = np.flatnonzero(row >= floors)
                if hit.size:
                    yield start + at, {self.keys[one]: float(row[one]) for one in hit}


class Reaches(Generic[Key]):
    """The reaches of the answers from one corpus."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[Metric, int], _Block[Key]] = {}
        self._home: dict[Key, tuple[Metric, int]] = {}
        self._any: set[Key] = set()

    def __len__(self) -> int:
        return len(self._home) + len(self._any)

    def set(self, key: Key, reach: Reach) -> None:
        """Add or replace the reach of an answer."""
        self.drop(key)
        if not reach.question:
            self._any.add(key)
            return
        question = as_vector(reach.question)
        home = (reach.metric, len(question))
        block = self._blocks.get(home)
        row = Space(*home).questions(question[None])[0]
        if block is None:
            block = self._blocks[home] = _Block(Space(*home), len(row))
        block.set(key, row, reach.floor)
        self._home[key] = home

    def drop(self, key: Key) -> None:
        """Forget an answer, if it is there."""
        self._any.discard(key)
        home = self._home.pop(key, None)
        if home is not None:
            self._blocks[home].drop(key)

    def touched(self, done: Written) -> Touched[Key]:
        """Return the answers that a write reaches, with what came and went within reach of each.

        A chunk that was replaced by its like comes and goes at once, in this order.
        """
        found: Touched[Key] = {}
        for chunks, added in ((done.removed, False), (done.added, True)):
            if chunks:
                self._compare(chunks, added, found)
        return found

    def everything(self) -> list[Key]:
        """Return all answers."""
        return [*self._any, *self._home]

    def _compare(self, chunks: Sequence[Chunk], added: bool, found: Touched[Key]) -> None:
        for key in self._any:
            differences = [Difference(chunk.digest, None, added) for chunk in chunks]
            found.setdefault(key, []).extend(differences)
        for (metric, dimension), block in self._blocks.items():
            size = dimension * 4
            usable = [chunk for chunk in chunks if len(chunk.vector) == size]
            if usable and block.keys:
                rows = np.stack([as_vector(chunk.vector) for chunk in usable])
                for at, keys in block.reached(Space(metric, dimension).chunks(rows)):
                    for key, score in keys.items():
                        one = Difference(usable[at].digest, score, added)
                        found.setdefault(key, []).append(one)
            for chunk in chunks:
                if len(chunk.vector) != size:  # not seen, or of another embedder: anywhere
                    for key in block.keys:
                        found.setdefault(key, []).append(Difference(chunk.digest, None, added))
