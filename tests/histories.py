"""Random histories of verbs: a store, seen through two objects on one truth, agrees with memory."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stampcache.corpora import Change, Chunk, Intent, Metric, Reach
from stampcache.model import Entry, Evidence, Selector, Stamps
from stampcache.ports import Store
from stampcache.spaces import as_bytes
from stampcache.stores.memory import MemoryStore
from stampcache.testing.contract import NOW, make_entry, unit

KEYS = st.sampled_from(["k1", "k2", "k3"])
PARTITIONS = st.sampled_from(["p", "p2"])
SIDES = st.sampled_from([0, 1])
CORPORA = st.sampled_from(["", "c", "d"])
TIMES = st.sampled_from([NOW - 1, NOW, NOW + 1.25])
CAPACITY = 4

EVIDENCE = st.none() | st.lists(
    st.builds(
        Evidence,
        corpus=CORPORA,
        source=st.sampled_from(["", "s1", "s2"]),
        chunk=st.sampled_from(["", "1", "2"]),
    ),
    max_size=2,
).map(tuple)
STAMPS = st.builds(
    Stamps, model=st.sampled_from(["", "m1", "m2"]), index=st.just("") | st.just("i")
)
DOCUMENTS = st.builds(
    Selector,
    corpus=st.none() | CORPORA,
    source=st.none() | st.sampled_from(["", "s1"]),
    chunk=st.none() | st.sampled_from(["", "1"]),
    scope=st.none() | PARTITIONS,
)
SELECTORS = DOCUMENTS | st.builds(
    Selector,
    corpus=st.none() | CORPORA,
    entry=st.none() | st.integers(1, 5).map(str),
    scope=st.none() | PARTITIONS,
    stamps=st.none() | STAMPS,
)

WATCHED = st.sampled_from(["c", "d"])
ANGLES = st.sampled_from([0, 20, 40, 80])
INTENTS = st.sampled_from(["1", "2", ""])
CHUNK_IDS = st.sampled_from(["1", "2", "3"])


def towards(angle: float) -> bytes:
    return as_bytes([float(np.cos(np.radians(angle))), float(np.sin(np.radians(angle)))])


CHUNKS = st.builds(
    Chunk,
    id=CHUNK_IDS,
    source=st.sampled_from(["", "s1", "s2"]),
    digest=st.sampled_from(["u", "v"]),
    vector=ANGLES.map(towards) | st.just(b""),
)
CHANGES = st.builds(
    Change,
    added=st.lists(CHUNKS, max_size=2).map(tuple),
    removed=st.lists(CHUNK_IDS, max_size=2).map(tuple),
    unknown=st.sampled_from([False] * 9 + [True]),
    emptied=st.sampled_from([False] * 5 + [True]),
)
REACHES = st.builds(
    Reach,
    corpus=WATCHED,
    question=st.just(b"") | ANGLES.map(towards),
    metric=st.sampled_from(Metric),
    floor=st.sampled_from([float("-inf"), -0.6, 0.5]),
    within=st.just(1e-5),
    digests=st.just(("u",)),
    scores=st.just((1.0,)),
    for_good=st.sampled_from([False, False, True]),
    settings=st.sampled_from(["m", "n"]),
)


class Histories(RuleBasedStateMachine):
    """Every verb goes to memory and to one of two stores on one truth; every answer must be equal."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = MemoryStore(capacity=CAPACITY)
        self.sides = self.open()
        self.fences = [(0, self.sides[0].sequence())]  # of memory, of the other one
        self.number = 0

    def open(self) -> Sequence[Store]:
        """Return two empty stores on one truth, of this capacity."""
        raise NotImplementedError

    def pair(self, side: int) -> tuple[Store, Store]:
        return self.memory, self.sides[side]

    @rule(
        side=SIDES,
        partition=PARTITIONS,
        key=KEYS,
        evidence=EVIDENCE,
        corpus=CORPORA,
        whole_corpus=st.booleans(),
        stamps=STAMPS,
        expires_at=st.none() | TIMES,
        angle=st.integers(0, 90),
        at=st.integers(0, 5),
        reach=st.none() | REACHES,
    )
    def put(
        self,
        side: int,
        partition: str,
        key: str,
        evidence: tuple[Evidence, ...] | None,
        corpus: str,
        whole_corpus: bool,
        stamps: Stamps,
        expires_at: float | None,
        angle: int,
        at: int,
        reach: Reach | None,
    ) -> None:
        self.number += 1
        entry = make_entry(
            key,
            partition=partition,
            scope=partition,
            tenant=partition,
            entry_id=str(self.number),
            evidence=evidence,
            stamps=stamps,
            expires_at=expires_at,
            corpus=corpus,
            whole_corpus=whole_corpus,
        )
        radians = np.radians(angle)
        vector = None if angle == 90 else unit(float(np.cos(radians)), float(np.sin(radians)))
        fence = self.fences[-1 - at % len(self.fences)]
        for store in self.sides:  # what was noted as used is written before eviction looks at it
            store.stats()
        first, second = (
            store.put(entry, vector, seen, reach)
            for store, seen in zip(self.pair(side), fence, strict=True)
        )
        assert first == second

    @rule(side=SIDES, partition=PARTITIONS, key=KEYS)
    def fetch_and_touch(self, side: int, partition: str, key: str) -> None:
        first, second = (store.fetch(partition, key) for store in self.pair(side))
        assert first == second
        if first is not None:
            for store in self.pair(side):
                store.touch(first, key)
            self.sides[side].stats()

    @rule(side=SIDES, partition=PARTITIONS, angle=st.integers(0, 89), asked=KEYS)
    def nearest(self, side: int, partition: str, angle: int, asked: str) -> None:
        vector = unit(float(np.cos(np.radians(angle))), float(np.sin(np.radians(angle))))
        first, second = (
            {
                self.told(one.entry): (one.reported_bad, pytest.approx(one.similarity, abs=1e-6))
                for one in store.nearest(partition, vector, CAPACITY, asked=asked, now=NOW)
            }
            for store in self.pair(side)
        )  # all of them: among equally near ones, which come first is not promised
        assert first == second

    @rule(side=SIDES, partition=PARTITIONS, key=KEYS, asked=KEYS)
    def report(self, side: int, partition: str, key: str, asked: str) -> None:
        entry = self.memory.fetch(partition, key)
        if entry is not None:
            for store in self.pair(side):
                store.touch(entry, asked)
            first, second = (store.report_bad(entry.id) for store in self.pair(side))
            assert first == second

    @rule(side=SIDES, selector=SELECTORS)
    def invalidate(self, side: int, selector: Selector) -> None:
        first, second = (store.invalidate(selector) for store in self.pair(side))
        assert first == second

    @rule(side=SIDES, now=TIMES)
    def purge(self, side: int, now: float) -> None:
        first, second = (store.purge(now) for store in self.pair(side))
        assert first == second

    @rule(side=SIDES, partition=PARTITIONS, key=KEYS, expires_at=TIMES)
    def renew(self, side: int, partition: str, key: str, expires_at: float) -> None:
        entry = self.memory.fetch(partition, key)
        if entry is not None:
            for store in self.pair(side):
                store.renew(entry, expires_at)

    @rule(side=SIDES, partition=PARTITIONS, key=KEYS)
    def remove(self, side: int, partition: str, key: str) -> None:
        entry = self.memory.fetch(partition, key)
        if entry is not None:
            assert all(store.remove(entry) for store in self.pair(side))

    @rule(side=SIDES, partition=PARTITIONS)
    def clear(self, side: int, partition: str) -> None:
        first, second = (store.clear(partition) for store in self.pair(side))
        assert first == second

    @rule(side=SIDES, partition=PARTITIONS)
    def forget(self, side: int, partition: str) -> None:
        first, second = (store.forget(partition) for store in self.pair(side))
        assert first.entries == second.entries

    @rule(side=SIDES, corpus=WATCHED, intent=INTENTS, change=CHANGES, now=TIMES)
    def commit(self, side: int, corpus: str, intent: str, change: Change, now: float) -> None:
        for store in self.sides:
            store.stats()
        first, second = (
            store.corpora.commit(corpus, intent, change, now=now) for store in self.pair(side)
        )
        assert first == second

    @rule(side=SIDES, corpus=WATCHED, intent=INTENTS.filter(bool), at=TIMES)
    def begin(self, side: int, corpus: str, intent: str, at: float) -> None:
        for store in self.pair(side):
            store.corpora.begin(corpus, Intent(id=corpus + intent, at=at))

    @rule(side=SIDES, corpus=WATCHED, intent=INTENTS, change=CHANGES, now=TIMES)
    def end(self, side: int, corpus: str, intent: str, change: Change, now: float) -> None:
        self.commit(side, corpus, corpus + intent, change, now)

    @rule(side=SIDES, corpus=WATCHED, now=TIMES, silence_s=st.none() | st.just(9.0))
    def declare(self, side: int, corpus: str, now: float, silence_s: float | None) -> None:
        first, second = (
            store.corpora.declare(corpus, now=now, silence_s=silence_s) for store in self.pair(side)
        )
        assert first == second

    @rule(side=SIDES, corpus=WATCHED, now=TIMES, problem=st.sampled_from(["", "bad"]))
    def note(self, side: int, corpus: str, now: float, problem: str) -> None:
        for store in self.pair(side):
            store.corpora.block(corpus, problem)
            store.corpora.swept(corpus, now=now, checked=2, drifted=1)
            store.corpora.heard(corpus, now=now + 1)

    @rule(
        side=SIDES, corpus=WATCHED, after=st.sampled_from(["", "2", "5"]), count=st.integers(1, 5)
    )
    def sample(self, side: int, corpus: str, after: str, count: int) -> None:
        first, second = (
            list(store.corpora.sample(corpus, "m", count, after=after)) for store in self.pair(side)
        )
        assert first == second

    @precondition(lambda self: self.number > 0)
    @rule()
    def remember_fence(self) -> None:
        self.fences.append((self.memory.sequence(), self.sides[0].sequence()))

    @invariant()
    def sizes_agree(self) -> None:
        first, second = self.memory.stats(), self.sides[0].stats()
        assert first == second
        assert first.entries + first.invalidated <= CAPACITY

    @invariant()
    def entries_agree(self) -> None:
        places = [(partition, key) for partition in ("p", "p2") for key in ("k1", "k2", "k3")]
        for place in places:
            first = self.memory.fetch(*place)
            assert all(side.fetch(*place) == first for side in self.sides)

    @invariant()
    def corpora_agree(self) -> None:
        first = self.memory.corpora
        for second in (side.corpora for side in self.sides):
            assert list(first.standings()) == list(second.standings())
            for corpus in ("c", "d"):
                assert first.standing(corpus) == second.standing(corpus)
                assert first.chunks(corpus, None) == second.chunks(corpus, None)
                ids = ["1", "2", "3"]
                assert first.alike(corpus, ids) == second.alike(corpus, ids)

    @invariant()
    def reaches_agree(self) -> None:
        for number in range(1, self.number + 1):
            entry = make_entry("k", entry_id=str(number))
            found = {str(store.corpora.reach(entry)) for store in (self.memory, *self.sides)}
            assert len(found) == 1

    @staticmethod
    def told(entry: Entry) -> tuple[str, str]:
        return entry.id, entry.question

    def teardown(self) -> None:
        for store in self.sides:
            store.close()
