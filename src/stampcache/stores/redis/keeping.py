"""How what a Redis store keeps is written and read: sealed in plain, or encrypted (ADR 0026, 0027)."""

import msgspec

from stampcache.errors import CodecError
from stampcache.model import Entry, Vector
from stampcache.stores import codec
from stampcache.stores.codec import Codec
from stampcache.stores.pending_uses import Place
from stampcache.stores.redis.sealing import Seal

_UNREADABLE_MARK = "something changed, but what cannot be read"


class Keeper:
    """Entries, vectors, marks and records as bytes. What is encrypted needs no seal beside that."""

    def __init__(self, seal: Seal, hidden: Codec) -> None:
        self._seal = seal
        self.codec = hidden

    def encode(self, entry: Entry) -> bytes:
        """Return an entry as bytes.

        Raises:
            CodecError: a text in it is no valid Unicode.
        """
        return self.close(codec.encode_body(entry), "entry", *entry.place)

    def decode(self, raw: bytes, place: Place) -> Entry:
        """Return the entry that was written to this address.

        Raises:
            CodecError: it is damaged, forged, of another version, or another address's.
        """
        entry = codec.decode_body(self.open(raw, "entry", *place))
        if entry.place != place:
            raise CodecError("An entry stands at the address of another one; it was dropped.")
        return entry

    def encode_vector(self, vector: Vector | None, place: Place) -> bytes:
        """Return the vector of an entry as bytes; empty for none."""
        return b"" if vector is None else self.codec.encode_vector(vector, place)

    def close(self, plain: bytes, kind: str, *address: str) -> bytes:
        """Return bytes so that forgery and damage are seen."""
        if self.codec.is_sealed:
            return self.codec.hide(plain, kind, *address)
        return self._seal.close(plain)

    def open(self, raw: bytes, kind: str, *address: str) -> bytes:
        """Return what `close` was given.

        Raises:
            CodecError: it is not what was closed.
        """
        if self.codec.is_sealed:
            return self.codec.show(raw, kind, *address)
        return self._seal.open(raw)

    def mark(self, words: str) -> bytes:
        """Return the mark of entries: it may tell what a judge said of one."""
        return self.codec.hide(words.encode(), "mark")

    def show_mark(self, raw: bytes) -> str:
        """Return the words of a mark; of one that cannot be read, that it is there."""
        if not raw:
            return ""
        try:
            return self.codec.show(raw, "mark").decode()
        except (CodecError, UnicodeDecodeError):
            return _UNREADABLE_MARK

    def pack(self, record: object, kind: str) -> bytes:
        """Return a record beside entries as bytes."""
        return self.codec.hide(msgspec.msgpack.encode(record), kind)

    def unpack(self, raw: bytes, kind: str) -> bytes:
        """Return the MessagePack of such a record.

        Raises:
            CodecError: it cannot be read.
        """
        return self.codec.show(raw, kind)
