"""Eviction policies: small exact structures that say which entry gives way (pure)."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Policy(Protocol[Key]):
    """Knows the keys of a store and which of them goes first when there are too many."""

    def add(self, key: Key) -> None:
        """A key was stored, or stored again."""
        ...

    def use(self, key: Key) -> None:
        """A known key was served."""
        ...

    def drop(self, key: Key) -> None:
        """A key is gone for another reason than eviction."""
        ...

    def victim(self) -> Key:
        """Return the key to evict next; it stays known until it is dropped."""
        ...


class Lru(Generic[Key]):
    """Least recently used first; every verb takes constant time."""

    def __init__(self) -> None:
        self._order: OrderedDict[Key, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._order)

    def add(self, key: Key) -> None:
        """Make the key the most recent one."""
        self._order[key] = None
        self._order.move_to_end(key)

    def use(self, key: Key) -> None:
        """Make the key the most recent one, if it is known."""
        if key in self._order:
            self._order.move_to_end(key)

    def drop(self, key: Key) -> None:
        """Forget the key."""
        self._order.pop(key, None)

    def victim(self) -> Key:
        """Return the least recently used key.

        Raises:
            KeyError: no key is known.
        """
        for key in self._order:
            return key
        raise KeyError("no key is known, so none can be evicted")
