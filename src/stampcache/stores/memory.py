"""The memory store: the executable specification that every other store is compared with.

It keeps nothing beyond the process. Its verbs take microseconds, so the async face is the same code.
"""

import threading
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence

from msgspec import Struct

from stampcache.errors import StoreError
from stampcache.eviction import Lru
from stampcache.indexes.flat import FlatIndex
from stampcache.model import Candidate, Entry, Selector, Vector
from stampcache.ports import AsyncStore, Receipt, StoreStats
from stampcache.stores.aio import InlineStore
from stampcache.stores.selection import refused
from stampcache.stores.selection import touches as selects
from stampcache.stores.uses import Place, Serving, Uses
from stampcache.ttl import expired

CAPACITY = 100_000
_CHANGES_KEPT = 10_000
_SERVINGS_KEPT = 100_000


class _Change(Struct, frozen=True):
    sequence: int
    selector: Selector


class MemoryStore:
    """Entries in dictionaries behind one lock; least recently used entries give way at capacity."""

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        self.url = "memory://"
        self._capacity = capacity
        self._lock = threading.Lock()
        self._entries: dict[Place, Entry] = {}
        self._by_id: dict[str, Place] = {}
        self._indexes: dict[str, FlatIndex] = {}
        self._recency: Lru[Place] = Lru()
        self._hits: Counter[Place] = Counter()
        self._uses = Uses()
        self._sequence = 0
        self._forgotten = 0
        self._changes: deque[_Change] = deque()
        self._servings: deque[Serving] = deque(maxlen=_SERVINGS_KEPT)
        self._bad: defaultdict[str, set[frozenset[str]]] = defaultdict(set)
        self._facts: dict[str, str] = {}
        self._tallies: Counter[str] = Counter()
        self._closed = False

    def fetch(self, partition: str, key: str) -> Entry | None:
        """See `Store.fetch`."""
        if self._closed:
            raise StoreError("The memory store is closed; open the cache again.")
        return self._entries.get((partition, key))

    def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        """See `Store.nearest`."""
        with self._open():
            index = self._indexes.get(partition)
            if index is None or index.dimension != len(vector):
                return []
            bad = self._bad.get(partition, set())
            wanted = k
            while True:
                found = [
                    Candidate(entry, one.similarity, frozenset((asked, one.key)) in bad)
                    for one in index.search(vector, wanted)
                    if not expired((entry := self._entries[partition, one.key]).expires_at, now)
                ]
                if len(found) >= k or wanted >= len(index):
                    return found[:k]
                wanted *= 4

    def put(self, entry: Entry, vector: Vector | None, fence: int) -> Receipt:
        """See `Store.put`."""
        with self._open():
            later = (change.selector for change in self._changes if change.sequence > fence)
            if fence < self._forgotten or refused(later, entry):
                return Receipt(stored=False)
            self._apply_uses()
            self._drop(self._entries.get(entry.place))
            self._sequence += 1
            self._keep(entry, vector)
            evicted = 0
            while len(self._entries) > self._capacity:
                self._drop(self._entries[self._recency.victim()])
                evicted += 1
            return Receipt(stored=True, evicted=evicted)

    def touch(self, entry: Entry, asked: str) -> None:
        """See `Store.touch`."""
        place = entry.place
        full = self._uses.add(place)
        if full or asked != place[1]:
            with self._lock:
                self._apply_uses()
                if asked != place[1]:
                    self._servings.append((entry.id, *place, asked))

    def remove(self, entry: Entry) -> bool:
        """See `Store.remove`."""
        with self._open():
            kept = self._entries.get(entry.place)
            if kept is None or kept.id != entry.id:
                return False
            self._drop(kept)
            return True

    def report_bad(self, entry_id: str) -> bool:
        """See `Store.report_bad`."""
        with self._open():
            self._apply_uses()
            for served, partition, key, asked in self._servings:
                if served == entry_id:
                    self._bad[partition].add(frozenset((asked, key)))
            place = self._by_id.get(entry_id)
            if place is None:
                return False
            self._drop(self._entries[place])
            return True

    def invalidate(self, selector: Selector) -> int:
        """See `Store.invalidate`."""
        with self._open():
            gone = [entry for entry in self._entries.values() if selects(selector, entry)]
            for entry in gone:
                self._drop(entry)
            self._sequence += 1
            self._changes.append(_Change(self._sequence, selector))
            if len(self._changes) > _CHANGES_KEPT:
                self._forgotten = self._changes.popleft().sequence
            return len(gone)

    def clear(self, scope: str) -> int:
        """See `Store.clear`."""
        return self.invalidate(Selector(scope=scope))

    def sequence(self) -> int:
        """See `Store.sequence`."""
        return self._sequence

    def claim(self, name: str, value: str) -> str:
        """See `Store.claim`."""
        with self._lock:
            return self._facts.setdefault(name, value)

    def tally(self, counts: Mapping[str, int]) -> None:
        """See `Store.tally`."""
        with self._lock:
            self._tallies.update(counts)

    def tallies(self) -> Mapping[str, int]:
        """See `Store.tallies`."""
        with self._lock:
            return dict(self._tallies)

    def stats(self, scope: str | None = None) -> StoreStats:
        """See `Store.stats`."""
        with self._open():
            self._apply_uses()
            mine = [e for e in self._entries.values() if scope in (None, e.identity.scope)]
            indexes = self._indexes
            indexed = [e for e in mine if (i := indexes.get(e.place[0])) and e.place[1] in i]
            return StoreStats(
                entries=len(mine),
                vectors=len(indexed),
                answer_bytes=sum(len(e.answer.text.encode()) + len(e.answer.payload) for e in mine),
                hits=sum(self._hits[entry.place] for entry in mine),
            )

    def problems(self) -> Sequence[str]:
        """See `Store.problems`."""
        return ()

    def aio(self) -> AsyncStore:
        """See `Store.aio`."""
        return InlineStore(self)

    def close(self) -> None:
        """See `Store.close`."""
        self._closed = True

    def _apply_uses(self) -> None:
        pending = self._uses.take()
        self._servings.extend(pending.servings)
        for place, hits in pending.hits.items():
            if place in self._entries:
                self._recency.use(place)
                self._hits[place] += hits

    def _open(self) -> threading.Lock:
        if self._closed:
            raise StoreError("The memory store is closed; open the cache again.")
        return self._lock

    def _keep(self, entry: Entry, vector: Vector | None) -> None:
        partition, key = entry.place
        self._entries[partition, key] = entry
        self._by_id[entry.id] = entry.place
        self._recency.add(entry.place)
        if vector is not None:
            index = self._indexes.get(partition)
            if index is None or index.dimension != len(vector):
                index = self._indexes[partition] = FlatIndex(len(vector))
            index.set(key, vector)

    def _drop(self, entry: Entry | None) -> None:
        if entry is None:
            return
        partition, key = entry.place
        del self._entries[partition, key]
        del self._by_id[entry.id]
        self._recency.drop(entry.place)
        self._hits.pop(entry.place, None)
        index = self._indexes.get(partition)
        if index is not None:
            index.remove(key)
            if not len(index):
                del self._indexes[partition]
