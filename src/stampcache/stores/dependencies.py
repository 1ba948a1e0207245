"""The memory store's index from parts of a corpus to the entries that depend on them.

It finds what may be touched without looking at everything, and decides nothing: whether an entry is
touched says `stampcache.stores.selection.touches` alone. Not thread-safe: its store holds a lock.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from stampcache.model import Entry, Selector
from stampcache.stores.pending_uses import Place
from stampcache.stores.selection import names_document

Value = TypeVar("Value")
_Places = set[Place]
_ByName = dict[str, dict[str, _Places]]
"""Corpus, then name of a source or a chunk in it; either may be empty, which stands for any."""


class DependencyIndex:
    """Places of entries by what they depend on: by source and by chunk, each within its corpus."""

    def __init__(self) -> None:
        self._sources: _ByName = {}
        self._chunks: _ByName = {}

    def add(self, entry: Entry) -> None:
        """Take up an entry; one at the same address must have been dropped before."""
        for part in entry.dependencies:
            _add(self._sources, part.corpus, part.source, entry.place)
            _add(self._chunks, part.corpus, part.chunk, entry.place)

    def drop(self, entry: Entry) -> None:
        """Forget an entry, if it is there."""
        for part in entry.dependencies:
            _drop(self._sources, part.corpus, part.source, entry.place)
            _drop(self._chunks, part.corpus, part.chunk, entry.place)

    def candidates(self, selector: Selector) -> set[Place] | None:
        """Return where all entries are that a change can touch, and maybe a few others.

        ``None`` where the selector names no part of a corpus, so that any entry may be touched.
        """
        if not names_document(selector):
            return None
        ways = [list(_found(self._sources, selector.corpus, selector.source))]
        if selector.chunk is not None:
            ways.append(list(_found(self._chunks, selector.corpus, selector.chunk)))
        fewest = min(ways, key=lambda found: sum(map(len, found)))
        return set().union(*fewest)


def _found(index: _ByName, corpus: str | None, name: str | None) -> Iterator[_Places]:
    corpora = index.values() if corpus is None else _either(index, corpus)
    for names in corpora:
        yield from names.values() if name is None else _either(names, name)


def _either(index: Mapping[str, Value], name: str) -> Iterator[Value]:
    """Yield what is kept under the name, and under the unknown name."""
    for known in {name, ""}:
        if known in index:
            yield index[known]


def _add(index: _ByName, corpus: str, name: str, place: Place) -> None:
    index.setdefault(corpus, {}).setdefault(name, set()).add(place)


def _drop(index: _ByName, corpus: str, name: str, place: Place) -> None:
    names = index.get(corpus, {})
    places = names.get(name, set())
    places.discard(place)
    if not places:
        names.pop(name, None)
    if not names:
        index.pop(corpus, None)
