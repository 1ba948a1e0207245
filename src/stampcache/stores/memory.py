"""The memory store: the executable specification that every other store is compared with.

It keeps nothing beyond the process. Its verbs take microseconds, so the async face is the same code.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from stampcache.corpora import Reach, Trace
from stampcache.errors import StoreError
from stampcache.eviction import Lru
from stampcache.model import Candidate, Entry, Selector, Vector
from stampcache.ports import AsyncStore, Forgotten, Receipt, StoreStats
from stampcache.stores import codec
from stampcache.stores.aio import InlineStore
from stampcache.stores.dependencies import DependencyIndex
from stampcache.stores.memory_corpora import MemoryCorpora
from stampcache.stores.memory_journal import MemoryJournal
from stampcache.stores.memory_log import MemoryLog
from stampcache.stores.memory_pairs import MemoryPairs
from stampcache.stores.memory_shelf import MemoryShelf
from stampcache.stores.memory_vectors import MemoryVectors
from stampcache.stores.pending_uses import Place, Uses
from stampcache.stores.selection import BEING_WRITTEN, touches, unmarked
from stampcache.stores.telling import Listeners
from stampcache.ttl import expired

CAPACITY = 100_000


class MemoryStore:
    """Entries in dictionaries behind one lock, which is reentrant: its holder may call any verb.

    At capacity those give way that have been invalidated for longest, then the least recently used.
    """

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        self.url = "memory://"
        self._capacity = capacity
        self.lock = threading.RLock()
        self._entries: dict[Place, Entry] = {}
        self._by_id: dict[str, Place] = {}
        self._vectors = MemoryVectors()
        self._dependencies = DependencyIndex()
        self._recency: Lru[Place] = Lru()
        self._stale: Lru[Place] = Lru()
        self._hits: Counter[Place] = Counter()
        self._uses = Uses()
        self._log = MemoryLog()
        self._pairs = MemoryPairs()
        self._suspended: dict[Place, Vector | None] = {}
        self._corpora = MemoryCorpora(self, self._open)
        self._journal = MemoryJournal(self._confirm, self.by_id, self._open)
        self._shelf = MemoryShelf(self._open, self._by_id.__contains__)
        self._facts: dict[str, str] = {}
        self._tallies: Counter[str] = Counter()
        self._listeners = Listeners()
        self._closed = False

    def fetch(self, partition: str, key: str) -> Entry | None:
        """See `Store.fetch`."""
        if self._closed:
            raise StoreError("The memory store is closed; open the cache again.")
        return self._entries.get((partition, key))

    @property
    def corpora(self) -> MemoryCorpora:
        """See `Store.corpora`."""
        return self._corpora

    @property
    def journal(self) -> MemoryJournal:
        """See `Store.journal`."""
        return self._journal

    @property
    def shelf(self) -> MemoryShelf:
        """See `Store.shelf`."""
        return self._shelf

    def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        """See `Store.nearest`."""
        with self._open():
            index = self._vectors.index(partition, len(vector))
            if index is None:
                return []
            bad = self._pairs.bad_in(partition)
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

    def put(
        self, entry: Entry, vector: Vector | None, fence: int, reach: Reach | None = None
    ) -> Receipt:
        """See `Store.put`."""
        with self._open():
            change = self._fenced(entry, fence, reach)
            if change:
                return Receipt(stored=False, change=change)
            self._apply_uses()
            self._drop(self._entries.get(entry.place))
            self._log.move_on()
            self._keep(unmarked(entry), vector)
            if reach is not None:
                self._corpora.keep(entry, reach)
            return Receipt(stored=True, evicted=self._evict())

    def fenced(self, entry: Entry, fence: int) -> str:
        """See `Store.fenced`."""
        with self._open():
            return self._fenced(entry, fence, None)

    def touch(self, entry: Entry, asked: str) -> None:
        """See `Store.touch`. It waits for nobody: while the lock is held, uses stay noted."""
        place = entry.place
        due = self._uses.add(place)
        if asked != place[1]:
            self._uses.serve((entry.id, *place, asked, entry.identity.tenant))
            due = True
        if due and self.lock.acquire(blocking=False):
            try:
                self._apply_uses()
            finally:
                self.lock.release()

    def renew(self, entry: Entry, expires_at: float) -> None:
        """See `Store.renew`."""
        with self._open():
            kept = self._entries.get(entry.place)
            if kept is not None and kept.id == entry.id and not kept.invalidated:
                self._entries[entry.place] = replace(kept, expires_at=expires_at)

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
            self._pairs.report(entry_id)
            place = self._by_id.get(entry_id)
            if place is None:
                return False
            self._drop(self._entries[place])
            return True

    def invalidate(self, selector: Selector) -> int:
        """See `Store.invalidate`."""
        with self._open():
            touched = self._touched(selector)
            self._log.note(selector)
            return self._mark_all(touched, str(selector))

    def clear(self, scope: str) -> int:
        """See `Store.clear`."""
        with self._open():
            gone = [entry for entry in self._entries.values() if entry.identity.scope == scope]
            self._log.note(Selector(scope=scope))
            return self._drop_all(gone)

    def forget(self, tenant: str) -> Forgotten:
        """See `Store.forget`."""
        with self._open():
            if not tenant:  # what is nobody's
                return Forgotten()
            gone = [entry for entry in self._entries.values() if entry.identity.tenant == tenant]
            size = sum(map(self._size, gone)) + self._journal.forget(tenant)
            size += self._shelf.forget(tenant)
            self._drop_all(gone)
            self._apply_uses()  # so that none is left that waits
            self._pairs.forget(tenant)
            self._log.begin_anew()
        self._listeners.tell(tenant)
        return Forgotten(len(gone), size)

    def when_forgotten(self, then: Callable[[str], None]) -> None:
        """See `stampcache.ports.Telling`."""
        self._listeners.add(then)

    def _size(self, entry: Entry) -> int:
        """Return how many bytes an entry takes with its vector and its reach."""
        vector = self._suspended.get(entry.place)
        if vector is None:
            vector = self._vectors.get(entry.place)
        size = len(codec.encode(entry)) + self._corpora.size(entry.id)
        return size + (0 if vector is None else vector.nbytes)

    def purge(self, now: float) -> int:
        """See `Store.purge`."""
        with self._open():
            entries = self._entries.values()
            gone = [one for one in entries if one.invalidated or expired(one.expires_at, now)]
            return self._drop_all(gone)

    def sequence(self) -> int:
        """See `Store.sequence`."""
        return self._log.sequence

    def claim(self, name: str, value: str) -> str:
        """See `Store.claim`."""
        with self.lock:
            return self._facts.setdefault(name, value)

    def tally(self, counts: Mapping[str, int]) -> None:
        """See `Store.tally`."""
        with self.lock:
            self._tallies.update(counts)

    def tallies(self) -> Mapping[str, int]:
        """See `Store.tallies`."""
        with self.lock:
            return dict(self._tallies)

    def stats(self, scope: str | None = None) -> StoreStats:
        """See `Store.stats`."""
        with self._open():
            self._apply_uses()
            every = [e for e in self._entries.values() if scope in (None, e.identity.scope)]
            mine = [entry for entry in every if not entry.invalidated]
            return StoreStats(
                entries=len(mine),
                vectors=sum(entry.place in self._vectors for entry in mine),
                answer_bytes=sum(len(e.answer.text.encode()) + len(e.answer.payload) for e in mine),
                hits=sum(self._hits[entry.place] for entry in mine),
                invalidated=len(every) - len(mine),
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

    def _confirm(self, entry: Entry, at: float, doubtful_at: float | None) -> bool:
        kept = self._entries.get(entry.place)
        if kept is None or kept.id != entry.id or kept.invalidated:
            return False
        if kept.doubtful_at != entry.doubtful_at:
            return False
        confirmed = replace(kept, confirmed_at=at, doubtful_at=doubtful_at)
        self._entries[entry.place] = confirmed
        return True

    # -- for the corpora beside the entries ----------------------------------------------------------

    def by_id(self, entry_id: str) -> Entry | None:
        """See `Entries.by_id`."""
        place = self._by_id.get(entry_id)
        return None if place is None else self._entries[place]

    def suspend(self, entry: Entry, change: str) -> None:
        """See `Entries.suspend`."""
        vector = self._vectors.get(entry.place)
        hits = self._hits[entry.place]
        self._mark(entry, change)
        self._suspended[entry.place] = vector
        self._hits[entry.place] = hits
        self._dependencies.add(entry)

    def restore(self, entry: Entry) -> None:
        """See `Entries.restore`."""
        vector = self._suspended.pop(entry.place)
        self._stale.drop(entry.place)
        self._log.move_on()
        self._keep(unmarked(entry), vector)

    def record(self, trace: Trace) -> int:
        """See `Entries.record`."""
        touched = {
            entry.place: entry
            for selector in trace.selectors
            for entry in self._touched(selector)
            if not self._corpora.has_reach(entry.id, trace.corpus)
        }
        self._mark_all([touched[place] for place in sorted(touched)], str(trace))
        return self._log.note(trace)

    def note(self, change: Trace) -> int:
        """See `Entries.note`."""
        return self._log.note(change)

    def _fenced(self, entry: Entry, fence: int, reach: Reach | None) -> str:
        change = self._log.refused(entry, fence, reach)
        if change:
            return change
        if reach is not None and self._corpora.is_written(reach.corpus):
            return BEING_WRITTEN.format(reach.corpus)
        if reach is not None and self._corpora.added_since(reach, fence):
            return str(Trace(corpus=reach.corpus))
        return ""

    def _touched(self, selector: Selector) -> list[Entry]:
        """Return the entries that hold, or may hold again, until this change, in order of marking."""
        places = self._dependencies.candidates(selector)
        among = self._entries if places is None else places
        found = (self._entries[place] for place in among)
        new = [one for one in found if not self._ended(one) and touches(selector, one)]
        return sorted(new, key=lambda entry: entry.place)

    def _ended(self, entry: Entry) -> bool:
        """Tell whether an entry will never hold again."""
        return bool(entry.invalidated) and entry.place not in self._suspended

    def _mark_all(self, entries: Sequence[Entry], change: str) -> int:
        """Make entries stale for good; return how many held until now."""
        holding = [entry for entry in entries if not entry.invalidated]
        for entry in entries:
            if entry.invalidated:
                self._end(entry)
            else:
                self._mark(entry, change)
                self._corpora.forget(entry.id)
        return len(holding)

    def _apply_uses(self) -> None:
        pending = self._uses.take()
        self._pairs.serve(pending.servings)
        for place, hits in pending.hits.items():
            if place in self._entries:
                self._recency.use(place)
                self._hits[place] += hits

    def _open(self) -> threading.RLock:
        if self._closed:
            raise StoreError("The memory store is closed; open the cache again.")
        return self.lock

    def _keep(self, entry: Entry, vector: Vector | None) -> None:
        self._entries[entry.place] = entry
        self._by_id[entry.id] = entry.place
        self._dependencies.add(entry)
        self._recency.add(entry.place)
        if vector is not None:
            self._vectors.set(entry.place, vector)

    def _end(self, entry: Entry) -> None:
        """Make sure that a suspended entry will not hold again."""
        self._suspended.pop(entry.place, None)
        self._hits.pop(entry.place, None)
        self._dependencies.drop(entry)
        self._corpora.forget(entry.id)

    def _mark(self, entry: Entry, change: str) -> None:
        self._retire(entry)
        self._entries[entry.place] = replace(entry, invalidated=change)
        self._stale.add(entry.place)

    def _evict(self) -> int:
        over = max(0, len(self._entries) - self._capacity)
        for _ in range(over):
            first = self._stale if len(self._stale) else self._recency
            self._drop(self._entries[first.victim()])
        return over

    def _drop_all(self, entries: Sequence[Entry]) -> int:
        for entry in entries:
            self._drop(entry)
        return len(entries)

    def _drop(self, entry: Entry | None) -> None:
        if entry is not None:
            self._retire(entry)
            self._end(entry)
            self._stale.drop(entry.place)
            del self._entries[entry.place]
            del self._by_id[entry.id]
            self._journal.deleted(entry.id)

    def _retire(self, entry: Entry) -> None:
        """Take the entry out of everything that serves it, counts it or makes it stale."""
        self._dependencies.drop(entry)
        self._recency.drop(entry.place)
        self._hits.pop(entry.place, None)
        self._vectors.drop(entry.place)
