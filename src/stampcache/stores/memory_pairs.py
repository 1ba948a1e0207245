"""Which questions an entry of the memory store was served to, and which pairs were wrong.

Not thread-safe: its store holds a lock.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Set

from stampcache.stores.pending_uses import Serving

_SERVINGS_KEPT = 100_000


class MemoryPairs:
    """Pairs of keys by partition, with the tenant that the partition belongs to."""

    def __init__(self) -> None:
        self._servings: deque[Serving] = deque(maxlen=_SERVINGS_KEPT)
        self._bad: defaultdict[str, set[frozenset[str]]] = defaultdict(set)
        self._owners: dict[str, str] = {}

    def serve(self, servings: Iterable[Serving]) -> None:
        """Note to which questions entries were served."""
        self._servings.extend(servings)

    def report(self, entry_id: str) -> None:
        """Mark every question that an entry was served to as not the same as its own."""
        for served, partition, key, asked, tenant in self._servings:
            if served == entry_id:
                self._bad[partition].add(frozenset((asked, key)))
                self._owners[partition] = tenant

    def bad_in(self, partition: str) -> Set[frozenset[str]]:
        """Return the pairs of a partition that were wrong."""
        return self._bad.get(partition, frozenset())

    def forget(self, tenant: str) -> None:
        """Remove what is kept of a tenant."""
        for partition in [one for one, owner in self._owners.items() if owner == tenant]:
            del self._owners[partition], self._bad[partition]
        kept = [one for one in self._servings if one[4] != tenant]
        self._servings = deque(kept, maxlen=_SERVINGS_KEPT)
