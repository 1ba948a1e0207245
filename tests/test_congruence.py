"""SQLite, seen through two stores on one file, agrees with memory after any history."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stampcache.model import Entry, Evidence, Selector, Stamps
from stampcache.ports import Store
from stampcache.stores.memory import MemoryStore
from stampcache.stores.sqlite import SqliteStore
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


class Histories(RuleBasedStateMachine):
    """Every verb goes to memory and to one of two SQLite stores; every answer must be equal."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "cache.db"
        self.memory = MemoryStore(capacity=CAPACITY)
        self.sides = [
            SqliteStore(path, capacity=CAPACITY),
            SqliteStore(path, capacity=CAPACITY, near_capacity=1, vector_capacity=1),
        ]
        self.fences = [(0, 0)]  # of memory, of SQLite
        self.number = 0

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
    ) -> None:
        self.number += 1
        entry = make_entry(
            key,
            partition=partition,
            scope=partition,
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
            store.put(entry, vector, seen)
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

    @staticmethod
    def told(entry: Entry) -> tuple[str, str]:
        return entry.id, entry.question

    def teardown(self) -> None:
        for store in self.sides:
            store.close()
        self.folder.cleanup()


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
