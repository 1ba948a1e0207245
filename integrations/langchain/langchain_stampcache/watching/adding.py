"""What one call adds to a store, and what came of it."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from langchain_stampcache.watching.chunks import ChunkForm, unlike
from langchain_stampcache.watching.views import Keeping
from stampcache.adapters import Change, Chunk, Step


class Addition(Struct, frozen=True, kw_only=True):
    """One call of a store that adds texts, and the arguments with which the store is called.

    ``ids`` are those of its texts as far as they are known; ``None`` where the store gives them.
    """

    texts: Sequence[str]
    metadatas: Sequence[Mapping[str, Any] | None]
    ids: Sequence[str | None] | None
    items: Sequence[Any]
    args: Sequence[Any]
    options: Mapping[str, Any]
    sync: Callable[..., list[str]]
    aio: Callable[..., Awaitable[list[str]]]

    @property
    def step(self) -> Step[list[str]]:
        """The call itself."""
        return Step(
            sync=lambda: self.sync(self.items, *self.args, **self.options),
            aio=lambda: self.aio(self.items, *self.args, **self.options),
        )

    @property
    def is_bound_by_place(self) -> bool:
        """Whether more than texts and metadata are given by their places, or ids by their name."""
        return len(self.args) > (self.items is self.texts) or "ids" in self.options

    @property
    def known_ids(self) -> tuple[str, ...] | None:
        """The ids of all that is added; ``None`` where one is not known, or given twice."""
        known = tuple(one for one in self.ids or () if one)
        is_each = len(known) == len(self.texts) == len(set(known))
        return known if is_each else None

    def given_ids(self) -> Sequence[str | None] | None:
        """Return the ids that stand among the arguments."""
        try:
            bound = inspect.signature(self.sync).bind(self.items, *self.args, **self.options)
        except TypeError:  # the call will say so
            return None
        options = bound.arguments.get("kwargs") or {}
        given = bound.arguments.get("ids", options.get("ids"))
        return given if isinstance(given, list | tuple) and given else None

    def chunks(self, form: ChunkForm, ids: Sequence[str], vectors: Sequence[bytes]) -> list[Chunk]:
        """Return what is added as chunks; vectors that are missing are not known."""
        seen = [*vectors, *[b""] * (len(ids) - len(vectors))]
        rows = zip(ids, self.texts, self.metadatas, seen, strict=False)
        return [form.chunk(*row) for row in rows]


class Landed(Struct, frozen=True):
    """What a store returned, and what it holds then under those ids; ``None`` where it was not read."""

    result: list[str]
    found: Sequence[Chunk] | None


def ids_in(result: object) -> list[str] | None:
    """Return the ids that a store returned; ``None`` where they are not each of another chunk."""
    if not isinstance(result, list) or not all(isinstance(one, str) and one for one in result):
        return None
    return result if len(set(result)) == len(result) else None


def told_of(
    form: ChunkForm,
    keeping: Keeping,
    addition: Addition,
    landed: Landed,
    vectors: Sequence[bytes],
) -> Change | None:
    """Return what a call added; ``None`` where that cannot be said."""
    ids = ids_in(landed.result)
    if ids is None or not len(ids) == len(addition.texts) == len(addition.metadatas):
        return None
    given = addition.chunks(form, ids, vectors)
    if keeping is Keeping.GIVEN or (landed.found is None and keeping is Keeping.UNKNOWN):
        return Change(added=tuple(given))
    if landed.found is None:
        return None
    there = {one.id: one for one in landed.found}
    return Change(added=tuple(_held(keeping, one, there.get(one.id)) for one in given))


def _held(keeping: Keeping, given: Chunk, there: Chunk | None) -> Chunk:
    """Return a chunk as its store holds it: where that is another one, it is like no other."""
    if there is None or there.digest == given.digest:  # what is not there yet will be seen later
        return given
    if keeping is Keeping.MERGED:
        return there
    return replace(given, digest=unlike(), vector=b"")
