"""What one process knows of the list of entries that `Cache.work` is to look after (ADR 0022).

The list itself is in the store, for all processes. Here it is kept from being asked for nothing: each
process puts an entry on it once for each doubt, early by chance, and knows which ones it looks after now.
"""

import random
import threading
from collections import OrderedDict

from msgspec import Struct

from stampcache import freshness
from stampcache.freshness import Freshness
from stampcache.model import Entry, Scope

KEPT = 10_000


class DueEntry(Struct, frozen=True):
    """An entry that is to be looked after, for the scope that it was asked in.

    ``early``: it was not doubted yet when it was asked for.
    """

    entry: Entry
    scope: Scope
    early: bool


class Due:
    """What this process has put on the list, the latest 10,000; safe for threads."""

    def __init__(self, settings: Freshness | None = None, *, has_judge: bool = False) -> None:
        self._freshness = settings
        self._has_judge = has_judge
        self._lock = threading.Lock()
        self._early: OrderedDict[str, float | None] = OrderedDict()
        self._late: OrderedDict[str, float | None] = OrderedDict()
        self._proved: OrderedDict[str, float | None] = OrderedDict()
        self._taken: set[str] = set()
        self._period_s = 0.0

    def paced(self, period_s: float) -> None:
        """Learn how much time is between two calls of `Cache.work`, wherever they run."""
        self._period_s = period_s

    def early(self, entry: Entry, now: float) -> bool:
        """Tell by chance whether this request puts an entry on the list before it is doubted, once."""
        ends_at, begins_at = entry.doubtful_at, entry.early_at
        if (
            ends_at is None or self._early.get(entry.id) == ends_at
        ):  # nearly always, once it is there
            return False
        fresh = self._freshness
        if fresh is None or begins_at is None or now < begins_at:
            return False
        since = entry.created_at if entry.confirmed_at is None else entry.confirmed_at
        ahead_s = self._period_s + freshness.ahead_of(
            fresh,
            self._has_judge,
            latency_s=entry.answer.latency_s,
            until_doubt_s=ends_at - since,
        )
        drawn = 1.0 - random.random()  # noqa: S311 - no secret
        if not freshness.early(ends_at, now, ahead_s, fresh.beta, drawn):
            return False
        return self._first(self._early, entry)

    def late(self, entry: Entry) -> bool:
        """Tell whether this process has not yet put a doubted entry on the list."""
        return self._first(self._late, entry)

    def proved(self, entry: Entry) -> bool:
        """Tell whether this process has put an entry on the list for this doubt; once."""
        at = entry.doubtful_at
        listed = at is not None and at in (self._early.get(entry.id), self._late.get(entry.id))
        return listed and self._first(self._proved, entry)

    def take(self, entry_id: str) -> bool:
        """Begin to look after an entry; tell whether nobody else in this process does."""
        with self._lock:
            free = entry_id not in self._taken
            self._taken.add(entry_id)
            return free

    def end(self, entry_id: str) -> None:
        """Look after it no longer."""
        with self._lock:
            self._taken.discard(entry_id)

    def _first(self, known: "OrderedDict[str, float | None]", entry: Entry) -> bool:
        """Remember an entry; tell whether that is new, as it is after it was confirmed."""
        with self._lock:
            if known.get(entry.id) == entry.doubtful_at:
                return False
            known[entry.id] = entry.doubtful_at
            known.move_to_end(entry.id)
            if len(known) > KEPT:
                known.popitem(last=False)
            return True
