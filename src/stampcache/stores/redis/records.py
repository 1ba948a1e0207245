"""What stands in a Redis store, as bytes: entries with their heads, chunks, changes, numbers.

The value of an entry is a head and its sealed body. The head is a letter that says whether something
beside the body has changed since, 16 digits of the sequence of its last change, and two that check both.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from stampcache.corpora import Chunk, Intent, Standing, Trace
from stampcache.errors import CodecError, StoreError
from stampcache.model import Entry, Selector, Stamps, stamp_values
from stampcache.stores import codec
from stampcache.stores.pending_uses import Pending, Place
from stampcache.stores.redis.keeping import Keeper
from stampcache.stores.redis.names import imprint
from stampcache.stores.selection import Logged, names_document

_HEAD, _CHECK_AT = 19, 17
AS_IS, _AMENDED = b"U", b"j"
_MODULUS, _AMENDED_BY = 97, 41
_MAP = range(0x80, 0x90)
_SELECTOR = msgspec.msgpack.Decoder(Selector)
_TRACE = msgspec.msgpack.Decoder(Trace)
INTENT = msgspec.msgpack.Decoder(Intent)


class Found(Struct, frozen=True):
    """An entry as it was read: the sequence of its last change, and whether more stands beside it."""

    entry: Entry
    sequence: int
    amended: bool


def pack(told: object) -> bytes:
    """Return something for a Lua verb as MessagePack: texts, lists and maps of them.

    Raises:
        StoreError: a text in it is no valid Unicode.
    """
    try:
        return msgspec.msgpack.encode(told)
    except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError, TypeError) as error:
        raise StoreError(f"Something cannot be stored ({error}).") from error


def number(value: float | None) -> str:
    """Return a number as text that gives the same number again; empty for none."""
    return "" if value is None else repr(float(value))


def as_number(raw: bytes) -> float | None:
    """Return a number from such a text."""
    return float(raw) if raw else None


def found(raw: bytes, place: Place, keeper: Keeper) -> Found:
    """Return what stands at an address.

    Raises:
        CodecError: it is damaged, forged, of another version, or another entry's.
    """
    head, body = raw[:_HEAD], raw[_HEAD:]
    flag, digits = head[:1], head[1:]
    amended = flag == _AMENDED
    if len(head) < _HEAD or not (amended or flag == AS_IS) or not digits.isdigit():
        raise CodecError("An entry has no readable head; it was dropped.")
    sequence = int(head[1:_CHECK_AT])
    if (sequence + _AMENDED_BY * amended) % _MODULUS != int(head[_CHECK_AT:]):
        raise CodecError("The head of an entry is damaged; it was dropped.")
    return Found(keeper.decode(body, place), sequence, amended)


def amended(entry: Entry, raw: Sequence[bytes | None], keeper: Keeper) -> Found | None:
    """Return an entry with what stands beside its body; ``None`` where that is of another entry."""
    if not raw or raw[0] != entry.id.encode():
        return None
    _, mark, expires, doubtful, confirmed, sequence = (one or b"" for one in raw)
    beside = codec.Beside(
        keeper.show_mark(mark), as_number(expires), as_number(doubtful), as_number(confirmed)
    )
    return Found(codec.amended(entry, beside), int(sequence), amended=True)


def told_of(entry: Entry) -> dict[str, object]:
    """Return what a store must know of an entry beside its body."""
    identity = entry.identity
    life = 0.0 if entry.expires_at is None else entry.expires_at - entry.created_at
    return {
        "p": identity.partition,
        "k": identity.key,
        "i": entry.id,
        "s": identity.scope,
        "t": identity.tenant,
        "a": str(len(entry.answer.text.encode()) + len(entry.answer.payload)),
        "x": number(entry.expires_at),
        "d": number(entry.doubtful_at),
        "c": number(entry.confirmed_at),
        "life": number(life),
        "st": list(stamp_values(entry.stamps)),
        "dp": [[one.corpus, one.source, one.chunk] for one in entry.dependencies],
    }


def uses(pending: Pending) -> dict[str, object]:
    """Return uses as a store is told of them."""
    return {
        "hits": [[*place, str(hits)] for place, hits in pending.hits.items()],
        "servings": [list(serving) for serving in pending.servings],
    }


def selecting(selector: Selector) -> dict[str, object] | None:
    """Return a selector as Lua reads it; ``None`` where it touches nothing."""
    if selector == Selector() or selector.stamps == Stamps():
        return None
    given = {
        "entry": selector.entry,
        "scope": selector.scope,
        "stamps": None if selector.stamps is None else list(stamp_values(selector.stamps)),
    }
    if names_document(selector):
        given |= {
            "corpus": selector.corpus,
            "source": selector.source,
            "chunk": selector.chunk,
        }
    return {name: value for name, value in given.items() if value is not None}


def logged(items: Sequence[bytes], keeper: Keeper) -> list[Logged]:
    """Return changes from stream ids and bodies by turns, in the order in which they were made."""
    pairs = zip(items[::2], items[1::2], strict=True)
    ordered = sorted((int(item.partition(b"-")[0]), body) for item, body in pairs)
    return [_change(keeper.unpack(body, "change")) for _, body in ordered]


def _change(raw: bytes) -> Logged:
    """Return a change: a selector is a map there, and a trace an array."""
    return _SELECTOR.decode(raw) if raw[0] in _MAP else _TRACE.decode(raw)


class Record(Struct, frozen=True, array_like=True):
    """What is kept of a chunk beside its id."""

    id: str
    source: str
    digest: str
    vector: bytes


_RECORD = msgspec.msgpack.Decoder(Record)


def chunk_of(raw: bytes) -> Chunk:
    """Return a chunk from its record."""
    record = _RECORD.decode(raw)
    return Chunk(id=record.id, source=record.source, digest=record.digest, vector=record.vector)


def chunk_words(chunk: Chunk) -> tuple[str | bytes, ...]:
    """Return a chunk as the arguments of a verb."""
    record = Record(chunk.id, chunk.source, chunk.digest, chunk.vector)
    return (chunk.id, pack(record), imprint(chunk.vector), chunk.digest)


def standing_of(corpus: str, raw: Sequence[bytes | None]) -> Standing | None:
    """Return how a corpus stands, from the reply of a verb."""
    if not raw:
        return None
    problem, heard, silence, complete, swept, checked, drifted, chunks = raw[:8]
    intents = raw[8]
    return Standing(
        corpus=corpus,
        intents=intents_of(intents),  # type: ignore[arg-type]  # the last one is a list
        problem=(problem or b"").decode(),
        heard_at=float(heard or 0),
        silence_s=as_number(silence or b""),
        chunks=int(chunks or 0),
        complete=complete == b"1",
        swept_at=as_number(swept or b""),
        checked=int(checked or 0),
        drifted=int(drifted or 0),
    )


def intents_of(bodies: Iterable[bytes]) -> tuple[Intent, ...]:
    """Return intents by id."""
    return tuple(sorted((INTENT.decode(body) for body in bodies), key=lambda one: one.id))


def unknown(corpus: str, keeper: Keeper) -> bytes:
    """Return the trace of what nobody saw, as it is logged where a corpus is watched anew."""
    return keeper.pack(Trace(corpus=corpus, unknown=True), "change")


def counted(raw: Sequence[bytes]) -> Mapping[str, int]:
    """Return names and numbers from the reply to ``HGETALL``."""
    if isinstance(raw, Mapping):
        return {name.decode(): int(value) for name, value in raw.items()}
    return {name.decode(): int(value) for name, value in zip(raw[::2], raw[1::2], strict=True)}
