"""Entries as bytes: magic, format version, checksum, MessagePack. Never pickle.

    offset  size  meaning
    0       4     b"SCE" and the format version, 1
    4       8     BLAKE2b checksum of the body
    12      -     body: the Entry as a MessagePack map

Decoding builds only the types of `stampcache.model`, so bytes that somebody forged can at worst be
wrong, not run.
"""

import hashlib
from hmac import compare_digest

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from stampcache.errors import CodecError
from stampcache.model import Entry

_HEAD = b"SCE\x01"
_CHECKSUM_BYTES = 8
_BODY_AT = len(_HEAD) + _CHECKSUM_BYTES
_ENTRY = msgspec.msgpack.Decoder(Entry)


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
