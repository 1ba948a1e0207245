"""Pairs that this process has noticed: to be kept in the store, or for a report (ADR 0024)."""

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence

from stampcache.pairs import Pair

WAITING = 1_000
SERVED = 4_096
ASKERS = 32


class Noticed:
    """At most 1,000 pairs to keep, and the last 32 pairs of each of the 4,096 entries served last.

    Safe for threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generation = 0
        self._waiting: deque[Pair] = deque(maxlen=WAITING)
        self._served: OrderedDict[str, dict[tuple[str, str], Pair]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, pair: Pair, *, doubtful: bool, generation: int = 0) -> None:
        """Remember a pair: to be kept if it was drawn or is in doubt, for reports if it was served.

        Not one of a lookup that began before a tenant was forgotten: it may be that one's.
        """
        with self._lock:
            if generation != self._generation:
                return
            if pair.sampled or doubtful:
                self._waiting.append(pair)
            if pair.served:
                pairs = self._served.setdefault(pair.entry_id, {})
                pairs.pop((pair.asked, pair.stored), None)  # so that it becomes the newest
                pairs[pair.asked, pair.stored] = pair
                if len(pairs) > ASKERS:
                    del pairs[next(iter(pairs))]
                self._served.move_to_end(pair.entry_id)
                if len(self._served) > SERVED:
                    self._served.popitem(last=False)

    def take(self) -> Sequence[Pair]:
        """Return the pairs that wait to be kept; they no longer do."""
        with self._lock:
            pairs = list(self._waiting)
            self._waiting.clear()
            return pairs

    def served(self, entry_id: str) -> Sequence[Pair]:
        """Return the pairs in which an entry was served by this process, as far as it remembers."""
        with self._lock:
            return list(self._served.get(entry_id, {}).values())

    def let_go(self, tenant: str, generation: int) -> None:
        """Drop the pairs of a tenant (its digest), or all; a new generation of lookups begins."""
        with self._lock:
            self._generation = max(self._generation, generation)  # of two at once, the later one
            kept = [pair for pair in self._waiting if tenant and pair.tenant != tenant]
            self._waiting = deque(kept, maxlen=WAITING)
            for entry_id, pairs in list(self._served.items()):
                if not tenant or any(pair.tenant == tenant for pair in pairs.values()):
                    del self._served[entry_id]
