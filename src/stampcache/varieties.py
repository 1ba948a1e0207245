"""Which of a variety of answers comes next (``Controls.variety``, ADR 0016).

Answers of one question are numbered. Each request takes the next number, so that the first ones make
an answer each, and those after them are given one of these in turn.
"""

import os
import threading
from collections import OrderedDict

from stampcache.identity import Realm, of_variety
from stampcache.model import Identity
from stampcache.outcome import Hit

KEPT = 4_096


class Varieties:
    """Numbers by question, of those asked last; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._next: OrderedDict[tuple[str, str], int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._next)

    def _same_process(self) -> None:
        if os.getpid() != self._pid:  # whoever held the lock is not in a forked child
            self._lock, self._pid = threading.Lock(), os.getpid()

    def next(self, address: Identity, variety: int, *, take: bool) -> int:
        """Return the next number below ``variety`` for a question, and take it unless it only looks."""
        place = (address.partition, address.key)
        self._same_process()
        with self._lock:
            number = self._next.get(place, 0) % variety
            if take:
                self._next[place] = number + 1
                self._next.move_to_end(place)
                if len(self._next) > KEPT:
                    self._next.popitem(last=False)
            return number

    def forget(self) -> None:
        """Begin anew with the first number everywhere."""
        self._same_process()
        with self._lock:
            self._next.clear()

    def to_fill(self, address: Identity, where: Realm, variety: int, served: Hit | None) -> int:
        """Return the number of the answer that was served, else of the one that was looked up last."""
        if served is not None:
            kept_in = served.entry.identity.partition
            for slot in range(variety):
                if of_variety(address, slot, where).partition == kept_in:
                    return slot
        following = self._next.get((address.partition, address.key), 0)
        return (following - 1) % variety if following else 0
