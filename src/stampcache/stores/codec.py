"""Entries as bytes: magic, format version, checksum, MessagePack. Never pickle.

    offset  size  meaning
    0       4     b"SCE" and the format version, 1
    4       8     BLAKE2b checksum of the body
    12      -     body: the Entry as a MessagePack map

Decoding builds only the types of `stampcache.model`, so bytes that somebody forged can at worst be
wrong, not run. `Codec` is what a store uses: with a seal it hides all that, and what stands beside it
and betrays a question, under a key (ADR 0027).
"""

import hashlib
from collections.abc import Sequence
from hmac import compare_digest
from typing import Protocol

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from stampcache.errors import CodecError
from stampcache.model import Entry, Vector

_HEAD = b"SCE\x01"
_CHECKSUM_BYTES = 8
_BODY_AT = len(_HEAD) + _CHECKSUM_BYTES
_ENTRY = msgspec.msgpack.Decoder(Entry)
_FLOAT_BYTES = 4
_UNREADABLE_MARK = "something changed, but what cannot be read"


class Seal(Protocol):
    """Hides bytes under a key, bound to the address at which they are kept."""

    @property
    def overhead(self) -> int:
        """How many bytes longer sealed bytes are."""
        ...

    def close(self, plain: bytes, address: tuple[str, ...]) -> bytes:
        """Return the bytes hidden, never twice the same."""
        ...

    def open(self, sealed: bytes, address: tuple[str, ...]) -> bytes:
        """Return what was hidden.

        Raises:
            CodecError: no key that is known hid this very thing at this address.
        """
        ...


class Codec:
    """What a store keeps, as bytes; in plain where there is no seal.

    ``place`` is partition and ExactKey: whatever is found at another address than it was written to is
    damaged.
    """

    def __init__(self, seal: Seal | None = None, *, secret: bytes = b"") -> None:
        self._seal = seal
        self._secret = secret

    @property
    def is_sealed(self) -> bool:
        """Whether anything is hidden."""
        return self._seal is not None

    def encode(self, entry: Entry) -> bytes:
        """Return an entry as bytes.

        Raises:
            CodecError: a text in it is no valid Unicode.
        """
        return self.hide(encode(entry), "entry", *entry.place)

    def decode(self, raw: bytes, place: tuple[str, str]) -> Entry:
        """Return the entry that was written to this address.

        Raises:
            CodecError: another version, damaged, of another address, or hidden under another key.
        """
        entry = decode(self.show(raw, "entry", *place))
        if entry.place != place:
            raise CodecError("An entry lies at the address of another one; it was dropped.")
        return entry

    def encode_vector(self, vector: Vector, place: tuple[str, str]) -> bytes:
        """Return the vector of an entry as bytes, float32."""
        raw = np.ascontiguousarray(vector, np.float32).tobytes()
        return self.hide(raw, "vector", *place)

    def decode_vector(self, raw: bytes, place: tuple[str, str]) -> Vector:
        """Return the vector of an entry.

        Raises:
            CodecError: as for `decode`.
        """
        plain = self.show(raw, "vector", *place)
        if len(plain) % _FLOAT_BYTES:
            raise CodecError("A vector is cut off; its entry is not found by meaning.")
        return np.frombuffer(plain, np.float32)

    def decode_vectors(
        self, rows: Sequence[tuple[str, bytes]], partition: str, dimension: int
    ) -> tuple[Sequence[str], Vector]:
        """Return the keys and vectors (n, dimension) of rows; those that are damaged are left out."""
        if self._seal is None:
            raw = b"".join(row[1] for row in rows)
            return [row[0] for row in rows], np.frombuffer(raw, np.float32).reshape(-1, dimension)
        found = dict[str, Vector]()
        for key, raw in rows:
            try:
                found[key] = self.decode_vector(raw, (partition, key))
            except CodecError:  # counted when its own question fetches the entry
                continue
        stacked = np.empty((len(found), dimension), np.float32)
        for at, vector in enumerate(found.values()):
            stacked[at] = vector
        return list(found), stacked

    def vector_size(self, dimension: int) -> int:
        """Return how many bytes a vector of so many components takes."""
        return dimension * _FLOAT_BYTES + (0 if self._seal is None else self._seal.overhead)

    def alias(self, name: str, kind: str) -> str:
        """Return under which name something is kept, where its own tells of what is in it.

        In plain its own; else a digest of it, keyed with the secret of the store.
        """
        if self._seal is None:
            return name
        named = msgspec.msgpack.encode((kind, name))
        return hashlib.blake2b(named, key=self._secret, digest_size=16, person=b"alias").hexdigest()

    def hide_mark(self, mark: str, place: tuple[str, str]) -> str | bytes:
        """Return the mark of an entry as it is kept: it may tell what a judge said of it."""
        return mark if self._seal is None else self.hide(mark.encode(), "mark", *place)

    def show_mark(self, kept: str | bytes, place: tuple[str, str]) -> str:
        """Return the mark; of one that cannot be read, that it is there."""
        if isinstance(kept, str):
            return kept
        try:
            return self.show(kept, "mark", *place).decode()
        except CodecError:
            return _UNREADABLE_MARK

    def hide(self, plain: bytes, kind: str, *address: str) -> bytes:
        """Return bytes of a kind as they are kept at an address."""
        return plain if self._seal is None else self._seal.close(plain, (kind, *address))

    def show(self, raw: bytes, kind: str, *address: str) -> bytes:
        """Return what `hide` was given.

        Raises:
            CodecError: it was hidden under another key, at another address, as another kind, or not.
        """
        return raw if self._seal is None else self._seal.open(raw, (kind, *address))


def encode(entry: Entry) -> bytes:
    """Return the entry as bytes.

    Raises:
        CodecError: a text in it is no valid Unicode.
    """
    body = encode_body(entry)
    return _HEAD + _checksum(body) + body


def encode_body(entry: Entry) -> bytes:
    """Return the entry as bytes without a head, for a store that has one of its own.

    Raises:
        CodecError: a text in it is no valid Unicode.
    """
    try:
        return msgspec.msgpack.encode(entry)
    except (UnicodeEncodeError, msgspec.MsgspecError, OverflowError, TypeError) as error:
        raise CodecError(f"The entry cannot be stored ({error}).") from error


def decode(raw: bytes) -> Entry:
    """Return the entry.

    Raises:
        CodecError: another version, damaged, or not an entry at all.
    """
    if raw[: len(_HEAD)] != _HEAD:
        raise CodecError(f"An entry has the unknown format {bytes(raw[:4])!r}; it was dropped.")
    body = raw[_BODY_AT:]
    if not compare_digest(raw[len(_HEAD) : _BODY_AT], _checksum(body)):
        raise CodecError("An entry failed its checksum; it was dropped.")
    return decode_body(body)


def decode_body(body: bytes) -> Entry:
    """Return the entry from what `encode_body` gave.

    Raises:
        CodecError: it is no entry.
    """
    try:
        return _ENTRY.decode(body)
    except msgspec.MsgspecError as error:
        raise CodecError(f"An entry cannot be read ({error}); it was dropped.") from error


class Beside(Struct, frozen=True):
    """What stands beside the body of an entry, so that changing it writes no body anew."""

    invalidated: str
    expires_at: float | None
    doubtful_at: float | None
    confirmed_at: float | None


def amended(entry: Entry, beside: Beside) -> Entry:
    """Return a decoded entry with what has changed since: its mark, its lifetime, its doubts."""
    mine = Beside(entry.invalidated, entry.expires_at, entry.doubtful_at, entry.confirmed_at)
    return entry if mine == beside else replace(entry, **asdict(beside))


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES, person=b"entry").digest()
