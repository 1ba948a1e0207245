"""What the Lua verbs of a Redis store reply, as values."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from stampcache.corpora import Reach, Trace
from stampcache.errors import CodecError
from stampcache.model import Entry, Selector
from stampcache.reaching import is_reached
from stampcache.stores.redis import records
from stampcache.stores.redis.keeping import Keeper
from stampcache.stores.redis.replica import Closing, News, Told
from stampcache.stores.selection import BEING_WRITTEN, FORGOTTEN, Logged, refused


class Head(Struct, frozen=True):
    """The sequence and the era as of which something was read, and what that is."""

    sequence: int
    era: int
    rest: bytes


def head_of(raw: bytes) -> Head:
    """Return what a reply begins with, and the rest."""
    return Head(int(raw[:16]), int(raw[16:32]), raw[32:])


def news_of(reply: Sequence[Any], keeper: Keeper) -> News:
    """Return what changed."""
    sequence, era = int(reply[0]), int(reply[1])
    if len(reply) == 2:
        return News(sequence, era)
    closing = _closing(reply[2], keeper)
    if reply[3] in (b"lost", b"forgotten"):
        forgotten = reply[3] == b"forgotten"
        return News(sequence, era, lost=True, forgotten=forgotten, closing=closing)
    time_us = int(reply[3])
    items, corpora, partitions = reply[4:]
    told = [
        Told((p.decode(), k.decode()), int(at), (time_us - int(made)) / 1e6)
        for p, k, at, made in zip(items[::4], items[1::4], items[2::4], items[3::4], strict=True)
    ]
    return News(
        sequence,
        era,
        told=told,
        corpora=[one.decode() for one in corpora],
        partitions=[one.decode() for one in partitions],
        closing=closing,
    )


def _closing(raw: Sequence[bytes], keeper: Keeper) -> Sequence[Closing]:
    """Return the invalidations that are swept now; one that cannot be read touches everything."""
    found = []
    for sequence, body in zip(raw[::2], raw[1::2], strict=True):
        selector: Logged | None = None
        with suppress(CodecError):
            (selector,) = records.logged([sequence, body], keeper)
        found.append(Closing(int(sequence), selector if isinstance(selector, Selector) else None))
    return sorted(found, key=lambda one: one.sequence)


def reach_words(reach: Reach | None) -> dict[str, object]:
    """Return what a store must know of a reach beside its body."""
    if reach is None:
        return {"corpus": "", "settings": "", "doubts": [], "reached": "0"}
    return {
        "corpus": reach.corpus,
        "settings": reach.settings,
        "doubts": list(reach.doubts),
        "reached": "1",
    }


def refusal(reply: Sequence[object], entry: Entry, reach: Reach | None, keeper: Keeper) -> str:
    """Say what refuses an entry; empty where nothing does of what is told."""
    if reply[0] == b"forgotten":
        return FORGOTTEN
    if reply[0] == b"written":
        assert reach is not None
        return BEING_WRITTEN.format(reach.corpus)
    items, chunks = reply[2], reply[3]
    assert isinstance(items, list) and isinstance(chunks, list)
    change = refused(records.logged(items, keeper), entry, reach)
    if change is not None:
        return str(change)
    if reach is None:
        return ""
    if len(reply) > 4 and reply[4]:
        return BEING_WRITTEN.format(reach.corpus)
    if is_reached(reach, [records.chunk_of(raw) for raw in chunks]):
        return str(Trace(corpus=reach.corpus))
    return ""
