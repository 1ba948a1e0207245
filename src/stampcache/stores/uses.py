"""Uses of entries that wait to be written: noting one must cost a hit next to nothing."""

import threading
from collections.abc import Mapping, Sequence

from msgspec import Struct

Place = tuple[str, str]
"""Partition and ExactKey."""

Serving = tuple[str, str, str, str]
"""Entry id, partition, key of the entry, key of the question it was served to."""

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

    def take(self) -> Pending:
        """Return everything noted and start anew."""
        with self._folding:
            self._fold()
            pending = Pending(self._hits, self._servings)
            self._hits, self._servings = {}, []
            return pending

    def _fold(self) -> None:
        noted = self._noted
        count = len(noted)
        for place in noted[:count]:
            self._hits[place] = self._hits.pop(place, 0) + 1
        del noted[:count]
