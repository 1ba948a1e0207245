"""Which answers are in reach of written chunks: the reaches of one corpus as matrices.

What a store keeps in rows is kept here a second time, so that a written chunk is scored against all
answers of its corpus by one product. Not thread-safe: its store holds a lock.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from stampcache.corpora import Chunk, Difference, Metric, Reach, Written
from stampcache.differing import LOST
from stampcache.model import Vector
from stampcache.spaces import Space, as_vector, imprint, within

_FIRST_ROWS = 16
_SCORED_AT_ONCE = 256
"""So many chunks are scored at once: with 100,000 answers that takes 100 MB."""

Key = TypeVar("Key", bound=Hashable)
Touched: TypeAlias = dict[Key, list[Difference]]


class _Block(Generic[Key]):
    """Questions of one dimension under one metric, with their floors."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._rows: Vector = np.empty((_FIRST_ROWS, space.columns), np.float32)
        self._lengths: NDArray[np.float32] = np.empty(_FIRST_ROWS, np.float32)
        self._floors: NDArray[np.float32] = np.empty(_FIRST_ROWS, np.float32)
        self.keys: list[Key] = []
        self.at: dict[Key, int] = {}

    def add(self, reaches: Mapping[Key, Reach]) -> None:
        start, end = len(self.keys), len(self.keys) + len(reaches)
        while end > len(self._rows):
            self._rows = _doubled(self._rows)
            self._lengths = _doubled(self._lengths)
            self._floors = _doubled(self._floors)
        self.keys.extend(reaches)
        self.at.update(zip(reaches, range(start, end), strict=True))
        questions = np.stack([as_vector(reach.question) for reach in reaches.values()])
        self._rows[start:end] = self.space.questions(questions)
        self._lengths[start:end] = np.linalg.norm(questions, axis=1)
        self._floors[start:end] = [reach.floor + reach.within for reach in reaches.values()]

    def drop(self, key: Key) -> None:
        at = self.at.pop(key)
        last = self.keys.pop()
        if last != key:
            end = len(self.keys)
            for array in (self._rows, self._lengths, self._floors):
                array[at] = array[end]
            self.keys[at] = last
            self.at[last] = at

    def reached(self, vectors: Vector) -> Iterator[tuple[int, Mapping[Key, float]]]:
        """Yield for each vector of a chunk, by its place, the questions that it reaches, with scores."""
        count = len(self.keys)
        questions, floors = self._rows[:count], self._floors[:count]
        for start in range(0, len(vectors), _SCORED_AT_ONCE):
            some = vectors[start : start + _SCORED_AT_ONCE]
            scored = self.space.chunks(some) @ questions.T
            for at, row in enumerate(scored):
                off = within(
                    self.space.metric, self._lengths[:count], float(np.linalg.norm(some[at]))
                )
                hit = np.flatnonzero(~(row < floors - off))  # what is no number is in reach
                if hit.size:
                    yield start + at, {self.keys[one]: float(row[one]) for one in hit}


def _doubled(array: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.concatenate([array, np.empty_like(array)])


class Reaches(Generic[Key]):
    """The reaches of the answers from one corpus."""

    def __init__(self, reaches: Mapping[Key, Reach] | None = None) -> None:
        self._blocks: dict[tuple[Metric, int], _Block[Key]] = {}
        self._home: dict[Key, tuple[Metric, int]] = {}
        self._any: set[Key] = set()
        self.update(reaches or {})

    def __len__(self) -> int:
        return len(self._home) + len(self._any)

    def update(self, reaches: Mapping[Key, Reach]) -> None:
        """Add or replace the reaches of answers."""
        by_home: dict[tuple[Metric, int], dict[Key, Reach]] = {}
        for key, reach in reaches.items():
            self.drop(key)
            if reach.question:
                home = (reach.metric, len(as_vector(reach.question)))
                by_home.setdefault(home, {})[key] = reach
                self._home[key] = home
            else:
                self._any.add(key)
        for home, some in by_home.items():
            if home not in self._blocks:
                self._blocks[home] = _Block(Space(*home))
            self._blocks[home].add(some)

    def drop(self, key: Key) -> None:
        """Forget an answer, if it is there."""
        self._any.discard(key)
        home = self._home.pop(key, None)
        if home is not None:
            self._blocks[home].drop(key)

    def touched(self, done: Written) -> Touched[Key]:
        """Return the answers that a write reaches, with what came and went within reach of each.

        A chunk that was replaced by its like goes and comes at once, in this order. One that goes
        unknown had been found by nobody who knows what was found, so it ends those that any write ends.
        """
        lost = self.everything() if done.unknown else self._any if done.unseen else ()
        found: Touched[Key] = {key: [LOST] for key in lost}
        for chunks, added in ((done.removed, False), (done.added, True)):
            if chunks:
                self._compare(chunks, added, found)
        return found

    def everything(self) -> list[Key]:
        """Return all answers."""
        return [*self._any, *self._home]

    def _compare(self, chunks: Sequence[Chunk], added: bool, found: Touched[Key]) -> None:
        anywhere = [Difference(chunk.digest, imprint(chunk.vector), added) for chunk in chunks]
        for key in self._any:
            found.setdefault(key, []).extend(anywhere)
        for (_, dimension), block in self._blocks.items():
            size = dimension * 4
            usable = [chunk for chunk in chunks if len(chunk.vector) == size]
            if usable and block.keys:
                vectors = np.stack([as_vector(chunk.vector) for chunk in usable])
                for at, keys in block.reached(vectors):
                    for key, score in keys.items():
                        one = Difference(usable[at].digest, score, added)
                        found.setdefault(key, []).append(one)
            for chunk in chunks:
                if len(chunk.vector) != size:  # not seen, or of another embedder: anywhere
                    for key in block.keys:
                        found.setdefault(key, []).append(Difference(chunk.digest, None, added))
