"""The change log of the memory store: what changed since a fill began. Its store holds a lock."""

from collections import deque
from itertools import takewhile

from msgspec import Struct

from stampcache.corpora import Reach
from stampcache.model import Entry
from stampcache.stores.selection import FORGOTTEN, Logged, refused

_CHANGES_KEPT = 10_000


class _Change(Struct, frozen=True):
    sequence: int
    logged: Logged


class MemoryLog:
    """The last changes, each with its sequence, which also counts what is stored."""

    def __init__(self) -> None:
        self.sequence = 0
        self._forgotten = 0
        self._changes: deque[_Change] = deque()

    def move_on(self) -> None:
        """Count something that refuses no fill."""
        self.sequence += 1

    def note(self, change: Logged) -> int:
        """Keep a change; return its sequence."""
        self.sequence += 1
        self._changes.append(_Change(self.sequence, change))
        if len(self._changes) > _CHANGES_KEPT:
            self._forgotten = self._changes.popleft().sequence
        return self.sequence

    def begin_anew(self) -> None:
        """Keep nothing of what was logged; whatever began before is refused."""
        self.sequence += 1
        self._forgotten = self.sequence
        self._changes.clear()

    def refused(self, entry: Entry, fence: int, reach: Reach | None) -> str:
        """Say which change after the fence refuses a fill; empty: none."""
        if fence < self._forgotten:
            return FORGOTTEN
        newest_first = takewhile(lambda change: change.sequence > fence, reversed(self._changes))
        later = [change.logged for change in newest_first][::-1]
        change = refused(later, entry, reach)
        return "" if change is None else str(change)
