"""The shelves of a SQLite store: one table of records."""

from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from stampcache.errors import CodecError
from stampcache.shelf import Record
from stampcache.stores import sqlite_text
from stampcache.stores.codec import Codec
from stampcache.stores.sqlite_file import SqliteFile, translated

_BOTH = msgspec.msgpack.Decoder(tuple[str, bytes])


class SqliteShelf:
    """Shelves in a table of a SQLite store."""

    def __init__(self, file: SqliteFile, codec: Codec, same_process: Callable[[], None]) -> None:
        self._file = file
        self._codec = codec
        self._same_process = same_process

    def keep(self, shelf: str, records: Sequence[Record], *, most: int) -> None:
        """See `Shelf.keep`."""
        self._same_process()
        rows = [
            (
                shelf,
                self._codec.alias(one.key, "shelf"),
                one.tenant,
                self._hidden(shelf, one),
                one.entry,
            )
            for one in records
        ]
        with self._file.transaction() as writer:
            writer.executemany(sqlite_text.SHELVE, rows)
            writer.execute(sqlite_text.TRIM_SHELF, (shelf, most))

    def kept(self, shelf: str, count: int) -> Sequence[Record]:
        """See `Shelf.kept`."""
        self._same_process()
        with self._file.reading, translated():
            rows = self._file.reader.execute(sqlite_text.SHELVED, (shelf, count)).fetchall()
        found = []
        for key, tenant, body in rows:
            with suppress(CodecError):  # damaged: of an answer nothing depends on it
                found.append(self._shown(shelf, key, tenant, body))
        return found

    def take(self, shelf: str, keys: Sequence[str]) -> Sequence[str]:
        """See `Shelf.take`."""
        self._same_process()
        with self._file.transaction() as writer:
            return [
                key
                for key in dict.fromkeys(keys)
                if writer.execute(
                    sqlite_text.UNSHELVE, (shelf, self._codec.alias(key, "shelf"))
                ).rowcount
            ]

    def _hidden(self, shelf: str, record: Record) -> bytes:
        """Return the body as it is kept; in a sealed store its key is in it, which may be guessed at."""
        if not self._codec.is_sealed:
            return record.body
        alias = self._codec.alias(record.key, "shelf")
        both = msgspec.msgpack.encode((record.key, record.body))
        return self._codec.hide(both, "shelf", shelf, alias)

    def _shown(self, shelf: str, alias: str, tenant: str, raw: bytes) -> Record:
        if not self._codec.is_sealed:
            return Record(key=alias, tenant=tenant, body=raw)
        key, body = _BOTH.decode(self._codec.show(raw, "shelf", shelf, alias))
        return Record(key=key, tenant=tenant, body=body)
