"""The shelves of the memory store; their verbs take the store's lock."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import islice

from stampcache.shelf import Record


class MemoryShelf:
    """Shelves in dictionaries, under the lock of their store."""

    def __init__(self, opened: Callable[[], AbstractContextManager[object]]) -> None:
        self._open = opened
        self._shelves: dict[str, dict[str, Record]] = {}

    def keep(self, shelf: str, records: Sequence[Record], *, most: int) -> None:
        """See `Shelf.keep`."""
        with self._open():
            kept = self._shelves.setdefault(shelf, {})
            for record in records:
                kept.pop(record.key, None)  # so that it becomes the newest
                kept[record.key] = record
            for key in list(islice(kept, max(0, len(kept) - most))):
                del kept[key]

    def kept(self, shelf: str, count: int) -> Sequence[Record]:
        """See `Shelf.kept`."""
        with self._open():
            return list(islice(reversed(self._shelves.get(shelf, {}).values()), count))

    def take(self, shelf: str, keys: Sequence[str]) -> Sequence[str]:
        """See `Shelf.take`."""
        with self._open():
            kept = self._shelves.get(shelf, {})
            return [key for key in dict.fromkeys(keys) if kept.pop(key, None) is not None]
