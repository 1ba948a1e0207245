"""Responses as bytes: versioned JSON of the first chunk, and of what each later one changes in it.

A streamed response holds, in each of its chunks, all that was said so far. Kept one by one they would
grow with the square of its length; so of a text that was continued the new part is kept.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from llama_index_stampcache.llms.forms import Form, Tree, rebuilt
from stampcache import CodecError

FORMAT = "llama-index-llm/1"
Patch: TypeAlias = list[Any]
_MISSING = object()


class Stored(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The chunks of one response; a response that was not streamed is one chunk."""

    version: Literal[1] = 1
    form: Literal["chat", "completion"]
    first: dict[str, Any]
    then: list[Patch | None] = []


def encode(form: Form, trees: Sequence[Tree]) -> bytes:
    """Return the trees of a response's chunks as JSON.

    Raises:
        TypeError, ValueError: one of them is no JSON.
    """
    then = [difference(one, other) for one, other in pairwise(trees)]
    return msgspec.json.encode(Stored(form=form.value, first=trees[0], then=then))


def decode(data: bytes, form: Form) -> list[Tree]:
    """Return the trees of a response's chunks, which share what is equal in them.

    Raises:
        CodecError: they are damaged, of another form, or of a version that this code does not know.
    """
    try:
        stored = msgspec.json.decode(data, type=Stored)
        trees = list(_trees(stored))
        rebuilt(trees[-1])
    except (msgspec.DecodeError, LookupError, TypeError, ValueError) as error:
        raise CodecError(f"The stored response is unreadable: {error}") from error
    if stored.form != form.value:
        raise CodecError(f"The stored response is a {stored.form}, not a {form.value}.")
    return trees


def _trees(stored: Stored) -> Iterator[Tree]:
    tree = stored.first
    yield tree
    for patch in stored.then:
        tree = tree if patch is None else changed(tree, patch)
        yield tree


def difference(old: object, new: object) -> Patch | None:
    """Return what makes one piece of plain data another one; ``None`` where they are the same."""
    if isinstance(old, dict) and isinstance(new, dict):
        kept = {
            name: change
            for name, value in new.items()
            if (change := difference(old.get(name, _MISSING), value)) is not None
        }
        gone = [name for name in old if name not in new]
        return ["{", kept, gone] if kept or gone else None
    if isinstance(old, list) and isinstance(new, list):
        shared = min(len(old), len(new))
        changes = [difference(one, other) for one, other in zip(old, new, strict=False)]
        same = len(old) == len(new) and not any(changes)
        return None if same else ["[", changes, new[shared:]]
    if isinstance(old, str) and isinstance(new, str) and old and len(new) > len(old):
        if new.startswith(old):
            return ["+", new[len(old) :]]
    elif type(old) is type(new) and old == new:
        return None
    return ["=", new]


def changed(old: Any, patch: Patch) -> Any:
    """Return what a patch makes of a piece of data, which is left as it is.

    Raises:
        LookupError, TypeError, ValueError: the patch is none of this piece.
    """
    match patch:
        case ["=", new]:
            return new
        case ["+", str(more)] if isinstance(old, str):
            return old + more
        case ["{", dict(changes), list(gone)] if isinstance(old, dict):
            kept = {name: value for name, value in old.items() if name not in gone}
            return kept | {name: changed(old.get(name), change) for name, change in changes.items()}
        case ["[", list(changes), list(more)] if isinstance(old, list):
            items = zip(old, changes, strict=False)
            return [one if change is None else changed(one, change) for one, change in items] + more
    raise ValueError(f"{patch!r:.60} changes no {type(old).__name__}")
