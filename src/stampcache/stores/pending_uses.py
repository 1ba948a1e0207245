"""Uses of entries that wait to be written: noting one must cost a hit next to nothing."""

import threading
from collections.abc import Mapping, Sequence

from msgspec import Struct

Place = tuple[str, str]
"""Partition and ExactKey."""

Serving = tuple[str, str, str, str, str]
"""Entry id, partition, key of the entry, key of the question it was served to, tenant."""

_NOTED = 4_096
_PLACES = 4_096


class Pending(Struct, frozen=True):
    """Hits by place, least recently used first, and servings to other questions."""

    hits: Mapping[Place, int]
    servings: Sequence[Serving]


class Uses:
    """A list that takes uses without a lock, folded into counts when it grows long."""

    def __init__(self) -> None:
        self._folding = threading.Lock()
        self._noted: list[Place] = []
        self._hits: dict[Place, int] = {}
        self._servings: list[Serving] = []

    def __bool__(self) -> bool:
        return bool(self._noted or self._hits or self._servings)

    def add(self, place: Place) -> bool:
        """Note one use; tell whether so many entries were used that it is time to write them."""
        self._noted.append(place)
        if len(self._noted) <= _NOTED:
            return False
        with self._folding:
            self._fold()
            return len(self._hits) > _PLACES

    def serve(self, serving: Serving) -> None:
        """Note that an entry was served to another question than its own."""
        with self._folding:
            self._servings.append(serving)

    def pending(self) -> Pending:
        """Return everything noted; it stays noted until it is said to be `written`."""
        with self._folding:
            self._fold()
            return Pending(dict(self._hits), tuple(self._servings))

    def written(self, pending: Pending) -> None:
        """Forget what has been written; what was noted since stays."""
        with self._folding:
            self._fold()
            for place, hits in pending.hits.items():
                left = self._hits.pop(place, 0) - hits
                if left > 0:
                    self._hits[place] = left
            done = set(pending.servings)
            self._servings = [serving for serving in self._servings if serving not in done]

    def take(self) -> Pending:
        """Return everything noted and start anew."""
        pending = self.pending()
        self.written(pending)
        return pending

    def _fold(self) -> None:
        noted = self._noted
        count = len(noted)
        for place in noted[:count]:
            self._hits[place] = self._hits.pop(place, 0) + 1
        del noted[:count]
