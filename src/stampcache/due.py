"""Which entries are to be looked after by `Cache.work`; kept by each process for itself."""

import threading
from collections import OrderedDict
from itertools import islice
from typing import Any

from msgspec import Struct

from stampcache.model import Entry, Scope

KEPT = 10_000


class DueEntry(Struct, frozen=True):
    """An entry that is to be looked after, for the scope that it was asked in.

    ``early``: it is not doubted yet.
    """

    entry: Entry
    scope: Scope
    early: bool


class Due:
    """Entries by id, oldest first, at most 10,000; safe for threads.

    Beside them it is known which entries were served once although they are doubted, also after they
    were looked after in vain.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str, DueEntry] = OrderedDict()
        self._served: OrderedDict[str, float | None] = OrderedDict()
        self._taken: set[str] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def mark(self, entry: Entry, scope: Scope, *, early: bool) -> bool:
        """Put an entry on the list; tell whether it may be served (once more, if it is doubted)."""
        with self._lock:
            self._waiting[entry.id] = DueEntry(entry, scope, early)
            _bound(self._waiting)
            if early:
                return True
            since = self._served.get(entry.id)
            self._served[entry.id] = entry.doubtful_at  # another one after it was confirmed
            _bound(self._served)
            return since != entry.doubtful_at

    def forget(self, tenant: str) -> None:
        """Take all entries of a tenant, by its digest, from the list."""
        with self._lock:
            for due in list(self._waiting.values()):
                if due.entry.identity.tenant == tenant:
                    del self._waiting[due.entry.id]
                    self._served.pop(due.entry.id, None)

    def peek(self, count: int) -> list[DueEntry]:
        """Return the entries that wait for longest."""
        with self._lock:
            return list(islice(self._waiting.values(), max(0, count)))

    def take(self, due: DueEntry) -> bool:
        """Begin to look after an entry; tell whether nobody else does, or has."""
        with self._lock:
            free = due.entry.id in self._waiting and due.entry.id not in self._taken
            if free:
                self._taken.add(due.entry.id)
            return free

    def end(self, due: DueEntry, *, done: bool) -> None:
        """Take an entry from the list, or to its end for another attempt."""
        with self._lock:
            self._taken.discard(due.entry.id)
            if done:
                self._waiting.pop(due.entry.id, None)
            elif due.entry.id in self._waiting:
                self._waiting.move_to_end(due.entry.id)


def _bound(kept: "OrderedDict[str, Any]") -> None:
    if len(kept) > KEPT:
        kept.popitem(last=False)
