"""Whatever is written, an answer that is said to hold is what a fresh search would give.

A flat index is simulated by brute force, and every write to it is told. Chunks are of few vectors, so
that ties, duplicates and thresholds that just fit are the rule.
"""

from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from numpy.typing import NDArray

from stampcache.corpora import Change, Chunk, Metric, Reach, Reading
from stampcache.model import Entry, Evidence
from stampcache.reaching import reach_of
from stampcache.spaces import as_bytes, as_vector, scores
from stampcache.stores.memory import MemoryStore
from stampcache.testing.contract import NOW, make_entry

CORPUS = "c"
IDS = [f"i{number}" for number in range(7)]
GRID = st.tuples(*[st.integers(-2, 2)] * 3).filter(any)
FREE = st.tuples(*[st.integers(-1000, 1000)] * 3).filter(any)
VECTORS = (FREE | FREE | GRID).map(lambda numbers: as_bytes(np.asarray(numbers, np.float32)))
QUESTIONS = st.sampled_from([(1, 0, 0), (1, 2, 0), (3, -1, 2), (-1, -1, 1)]).map(as_bytes)
CHUNKS = st.builds(
    Chunk,
    id=st.sampled_from(IDS),
    source=st.sampled_from(["s1", "s2"]),
    digest=st.sampled_from("uvwxyz"),
    vector=VECTORS,
)


class Fill(NamedTuple):
    """An answer: how it was searched for, what was found, and what there was."""

    key: str
    question: bytes
    wanted: int
    threshold: float | None
    found: list[str]
    index: Counter[tuple[str, bytes]]
    reach: Reach


class Searching(RuleBasedStateMachine):
    """An index, its store, and answers from it."""

    @initialize(
        metric=st.sampled_from(Metric),
        order=st.sampled_from(["first", "last", "id"]),
        chunks=st.lists(CHUNKS, min_size=2, max_size=5),
    )
    def begin(self, metric: Metric, order: str, chunks: list[Chunk]) -> None:
        self.metric, self.order = metric, order
        self.store = MemoryStore()
        self.corpora = self.store.corpora
        self.index: dict[str, Chunk] = {}
        self.fills: list[Fill] = []
        self.corpora.declare(CORPUS, now=NOW, silence_s=None)
        self.tell(Change(emptied=True))
        self.write(chunks)

    # -- the index -----------------------------------------------------------------------------------

    def scores(self, question: bytes) -> dict[str, float]:
        """Return the score of each chunk, as an index computes it, with other numbers than ours."""
        asked = as_vector(question).astype(np.float64)
        return {one.id: self.score(asked, as_vector(one.vector)) for one in self.index.values()}

    def score(self, asked: NDArray[np.float64], vector: NDArray[np.float32]) -> float:
        match self.metric:
            case Metric.COSINE:
                return float(asked @ vector / np.linalg.norm(asked) / np.linalg.norm(vector))
            case Metric.DOT:
                return float(asked @ vector)
            case Metric.L2:
                return -float(np.square(asked - vector).sum())

    def search(self, question: bytes, wanted: int, threshold: float | None) -> list[Chunk]:
        """Return what is found: ties come by their place in the index, or by id."""
        ranked = self.scores(question)
        place = {one: at for at, one in enumerate(self.index)}
        if self.order == "last":
            place = {one: -at for one, at in place.items()}
        if self.order == "id":
            place = {one: IDS.index(one) for one in place}
        order = sorted(self.index, key=lambda one: (-round(ranked[one], 9), place[one]))
        found = [one for one in order if threshold is None or ranked[one] >= threshold]
        return [self.index[one] for one in found[:wanted]]

    def close_call(self, question: bytes, wanted: int, threshold: float | None) -> bool:
        """Tell whether chunks of other vectors score like the last one found, or like the threshold.

        Of that nothing is known when an answer is made (docs: ties).
        """
        found = self.search(question, wanted, threshold)
        edges = [] if threshold is None else [threshold]
        ranked = self.scores(question)
        if len(found) == wanted:
            edges.append(ranked[found[-1].id])
        same = {(one.vector, one.digest) for one in found} | {(one.vector, "") for one in found}
        beyond = [one for one in self.index.values() if one not in found]
        close = 1e-4 * max(1.0, *(abs(score) for score in ranked.values()), self.longest(question))
        return any(
            abs(ranked[one.id] - edge) <= close and (one.vector, "") not in same
            for one in beyond
            for edge in edges
        ) or (threshold is not None and any(abs(ranked[o.id] - threshold) <= close for o in found))

    def longest(self, question: bytes) -> float:
        norms = [float(np.linalg.norm(as_vector(one.vector))) for one in self.index.values()]
        return (float(np.linalg.norm(as_vector(question))) + max(norms, default=0.0)) ** 2

    # -- writes --------------------------------------------------------------------------------------

    def tell(self, change: Change) -> None:
        self.corpora.commit(CORPUS, "", change, now=NOW)

    @rule(chunks=st.lists(CHUNKS, min_size=1, max_size=2))
    def write(self, chunks: list[Chunk]) -> None:
        for chunk in chunks:
            self.index[chunk.id] = chunk
        self.tell(Change(added=tuple(chunks)))

    @rule(ids=st.lists(st.sampled_from(IDS), min_size=1, max_size=3))
    def remove(self, ids: list[str]) -> None:
        for one in ids:
            self.index.pop(one, None)
        self.tell(Change(removed=tuple(ids)))

    @rule(chunks=st.lists(CHUNKS, max_size=2))
    def empty(self, chunks: list[Chunk]) -> None:
        self.index = {chunk.id: chunk for chunk in chunks}
        self.tell(Change(added=tuple(chunks), emptied=True))

    @precondition(lambda self: self.index)
    @rule(at=st.integers(0, 6), new=st.sampled_from(IDS), at_once=st.booleans())
    def ingest_again(self, at: int, new: str, at_once: bool) -> None:
        """A chunk is deleted and written as it was, often under a new id."""
        one, chunk = list(self.index.items())[at % len(self.index)]
        if new in self.index:
            new = one
        again = Chunk(id=new, source=chunk.source, digest=chunk.digest, vector=chunk.vector)
        del self.index[one]
        if not at_once:
            self.tell(Change(removed=(one,)))
            self.entries_hold()
        self.index[new] = again
        self.tell(Change(added=(again,), removed=(one,) if at_once else ()))

    @precondition(lambda self: self.index)
    @rule(at=st.integers(0, 6), by=st.sampled_from([1e-7, -1e-7, 1e-3, -1e-3, -0.05, 0.2]))
    def move(self, at: int, by: float) -> None:
        """White space changed: the same digest, a vector that is nearly the same."""
        one, chunk = list(self.index.items())[at % len(self.index)]
        for _ in range(3):
            vector = as_vector(chunk.vector).copy()
            vector[0] += np.float32(by * float(np.linalg.norm(vector)))
            moved = Chunk(id=one, source=chunk.source, digest=chunk.digest, vector=as_bytes(vector))
            self.index[one] = chunk = moved
            self.tell(Change(added=(moved,)))
            self.entries_hold()

    @precondition(lambda self: self.fills)
    @rule(at=st.integers(0, 50))
    def undo(self, at: int) -> None:
        """All is as it was for some answer, though in another order and under other ids."""
        fill = self.fills[at % len(self.fills)]
        there = sorted(fill.index.elements(), reverse=bool(at % 2))
        new = [
            Chunk(id=one, digest=digest, vector=vector)
            for one, (digest, vector) in zip(IDS, there, strict=False)
        ]
        self.index = {chunk.id: chunk for chunk in new}
        self.tell(Change(added=tuple(new), emptied=True))

    # -- answers -------------------------------------------------------------------------------------

    @rule(question=QUESTIONS, wanted=st.integers(1, 4))
    def answer(self, question: bytes, wanted: int) -> None:
        self.ask(question, wanted, None, 1.0)

    @rule(
        question=QUESTIONS,
        wanted=st.integers(1, 6),
        cut=st.sampled_from([-50.0, -2.0, 0.0, 0.3, 0.7, 4.0]),
        scale=st.sampled_from([1.0, 0.5]),
    )
    def answer_above(self, question: bytes, wanted: int, cut: float, scale: float) -> None:
        self.ask(question, wanted, cut, scale)

    def ask(self, question: bytes, wanted: int, cut: float | None, scale: float) -> None:
        found = self.search(question, wanted, cut)
        if self.close_call(question, wanted, cut):
            return
        ranked = self.scores(question)
        reading = Reading(
            corpus=CORPUS,
            vector=question,
            metric=self.metric,
            chunks=tuple(chunk.id for chunk in found),
            digests=tuple(chunk.digest for chunk in found),
            wanted=wanted,
            threshold=None if cut is None else scale * cut + 3.0,
            relevances=() if cut is None else tuple(scale * ranked[c.id] + 3.0 for c in found),
        )
        known = self.corpora.alike(CORPUS, reading.chunks)
        reach = reach_of(CORPUS, [reading], reading.chunks, known)
        evidence = tuple(Evidence(corpus=CORPUS, chunk=one.id, text=one.digest) for one in found)
        key = str(len(self.fills))
        entry = make_entry(key, evidence=tuple(one.sealed() for one in evidence), corpus=CORPUS)
        assert self.store.put(entry, None, self.store.sequence(), reach).stored
        there = Counter((one.digest, one.vector) for one in self.index.values())
        digests = [chunk.digest for chunk in found]
        self.fills.append(Fill(key, question, wanted, cut, digests, there, reach))

    def entry(self, fill: Fill) -> Entry:
        entry = self.store.fetch("p", fill.key)
        assert entry is not None
        return entry

    @invariant()
    def entries_hold(self) -> None:
        for fill in getattr(self, "fills", ()):
            if not self.entry(fill).invalidated:
                fresh = self.search(fill.question, fill.wanted, fill.threshold)
                assert [chunk.digest for chunk in fresh] == fill.found, fill.reach

    @invariant()
    def what_is_undone_holds(self) -> None:
        for fill in getattr(self, "fills", ()):
            there = Counter((one.digest, one.vector) for one in self.index.values())
            if there == fill.index and fill.reach.question and self.apart(fill):
                assert not self.entry(fill).invalidated, fill.reach

    def apart(self, fill: Fill) -> bool:
        """Tell whether no two chunks score alike, so that there is no doubt which come first."""
        vectors = [chunk.vector for chunk in self.index.values()]
        ranked = sorted(scores(self.metric, fill.question, vectors))
        return all(high - low > 4 * fill.reach.within for low, high in pairwise(ranked))


TestSearching = Searching.TestCase
TestSearching.settings = settings(
    max_examples=150,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
