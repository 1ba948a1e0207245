"""Which of a variety of answers comes next (``Controls.variety``, ADR 0016).

Answers of one question are numbered. Each request takes the next number, so that the first ones make
an answer each, and those after them are given one of these in turn.
"""

import threading
from collections import OrderedDict

KEPT = 4_096


class Varieties:
    """Numbers by question, of those asked last; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: OrderedDict[tuple[str, str], int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._next)

    def slot(self, partition: str, key: str, variety: int, *, take: bool) -> int:
        """Return the next number below ``variety`` for a question, and take it unless it only looks."""
        place = (partition, key)
        with self._lock:
            number = self._next.get(place, 0) % variety
            if take:
                self._next[place] = number + 1
                self._next.move_to_end(place)
                if len(self._next) > KEPT:
                    self._next.popitem(last=False)
            return number
