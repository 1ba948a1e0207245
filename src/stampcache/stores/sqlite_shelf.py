"""The shelves of a SQLite store: one table of records."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from stampcache.errors import CodecError
from stampcache.shelf import Record
from stampcache.stores import sqlite_text
from stampcache.stores.codec import Codec
from stampcache.stores.sqlite_file import SqliteFile, translated


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
                one.key,
                one.tenant,
                self._codec.hide(one.body, "shelf", shelf, one.key),
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
                shown = self._codec.show(body, "shelf", shelf, key)
                found.append(Record(key=key, tenant=tenant, body=shown))
        return found

    def take(self, shelf: str, keys: Sequence[str]) -> Sequence[str]:
        """See `Shelf.take`."""
        self._same_process()
        with self._file.transaction() as writer:
            return [
                key
                for key in dict.fromkeys(keys)
                if writer.execute(sqlite_text.UNSHELVE, (shelf, key)).rowcount
            ]
