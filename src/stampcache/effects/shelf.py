"""Effects on the small records that a cache keeps besides entries (pure; ADR 0024)."""

from collections.abc import Sequence
from typing import TypeVar

from stampcache.effects.base import Effect
from stampcache.shelf import Record, Shelf

Result = TypeVar("Result")


class OnShelf(Effect[Result], frozen=True):
    """Something about the shelves of the store that may take its time."""

    def on(self, shelf: Shelf) -> Result:
        """Do it."""
        raise NotImplementedError


class Keep(OnShelf[None], frozen=True):
    """Keep records."""

    shelf: str
    records: Sequence[Record]
    most: int

    def on(self, shelf: Shelf) -> None:
        """See `Shelf.keep`."""
        shelf.keep(self.shelf, self.records, most=self.most)


class Kept(OnShelf[Sequence[Record]], frozen=True):
    """The newest records of a shelf."""

    shelf: str
    count: int

    def on(self, shelf: Shelf) -> Sequence[Record]:
        """See `Shelf.kept`."""
        return shelf.kept(self.shelf, self.count)


class Take(OnShelf[Sequence[str]], frozen=True):
    """Remove records that nobody else has taken."""

    shelf: str
    keys: Sequence[str]

    def on(self, shelf: Shelf) -> Sequence[str]:
        """See `Shelf.take`."""
        return shelf.take(self.shelf, self.keys)
