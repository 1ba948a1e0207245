"""What one process keeps of a shared store: decoded entries and vectors that follow its change log.

A replica is a value store with sequence numbers, and does no IO. ``applied`` is the sequence up to
which it has seen the log. An entry is kept with the sequence of the commit that wrote it, so a row of
the log that is not newer changes nothing, and a write that the log has already reported is not kept.
"""

from collections import OrderedDict

from msgspec import Struct

from stampcache.eviction import Lru
from stampcache.indexes.flat import FlatIndex
from stampcache.model import Entry
from stampcache.stores.pending_uses import Place


class Kept(Struct, frozen=True, gc=False):
    """A decoded entry and the sequence of the commit that wrote it."""

    entry: Entry
    sequence: int


class NearCache:
    """At most ``capacity`` decoded entries by place; least recently read ones give way."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[Place, Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, place: Place) -> Entry | None:
        """Return the entry, as the most recently read one."""
        kept = self.kept(place)
        return None if kept is None else kept.entry

    def kept(self, place: Place) -> Kept | None:
        """Return the entry and its sequence, as the most recently read one."""
        kept = self._kept.get(place)
        if kept is not None:
            self._kept.move_to_end(place)
        return kept

    def has(self, place: Place) -> bool:
        """Tell whether an entry is kept, without counting it as read."""
        return place in self._kept

    def keep(self, entry: Entry, sequence: int) -> None:
        """Keep an entry as it was committed at this sequence."""
        place = entry.place
        self._kept[place] = Kept(entry, sequence)
        self._kept.move_to_end(place)
        if len(self._kept) > self._capacity:
            self._kept.popitem(last=False)

    def outdate(self, place: Place, sequence: int) -> None:
        """Forget the entry if it is older than a change at this sequence."""
        kept = self._kept.get(place)
        if kept is not None and kept.sequence < sequence:
            del self._kept[place]

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()


class LoadedIndexes:
    """Vector indexes of the partitions in use, together at most ``capacity`` vectors but always one."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._indexes: dict[str, FlatIndex] = {}
        self._recency: Lru[str] = Lru()

    def get(self, partition: str) -> FlatIndex | None:
        """Return the index of a partition, if it is loaded."""
        self._recency.use(partition)
        return self._indexes.get(partition)

    def load(self, partition: str, index: FlatIndex) -> None:
        """Keep an index that was read in full; indexes not used for longest give way."""
        self._indexes[partition] = index
        self._recency.add(partition)
        while len(self._indexes) > 1 and sum(map(len, self._indexes.values())) > self._capacity:
            oldest = self._recency.victim()
            self._recency.drop(oldest)
            del self._indexes[oldest]

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partitions whose indexes are loaded."""
        return tuple(self._indexes)

    def clear(self) -> None:
        """Forget everything."""
        self._indexes.clear()
        self._recency = Lru()
