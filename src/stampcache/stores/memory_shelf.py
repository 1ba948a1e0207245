"""The shelves of the memory store; their verbs take the store's lock."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import islice

from msgspec.structs import replace

from stampcache.shelf import Record


class MemoryShelf:
    """Shelves in dictionaries, under the lock of their store."""

    def __init__(
        self,
        opened: Callable[[], AbstractContextManager[object]],
        is_there: Callable[[str], bool],
    ) -> None:
        self._open = opened
        self._is_there = is_there
        self._shelves: dict[str, dict[str, Record]] = {}

    def keep(self, shelf: str, records: Sequence[Record], *, most: int) -> None:
        """See `Shelf.keep`."""
        with self._open():
            kept = self._shelves.setdefault(shelf, {})
            for record in records:
                if record.entry and not self._is_there(record.entry):
                    continue
                kept.pop(record.key, None)  # so that it becomes the newest
                kept[record.key] = replace(record, entry="")
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

    def forget(self, tenant: str) -> int:
        """Remove what holds words of a tenant; return how many bytes. The caller has the lock."""
        size = 0
        for kept in self._shelves.values():
            for record in [one for one in kept.values() if one.tenant == tenant]:
                size += len(kept.pop(record.key).body)
        return size
