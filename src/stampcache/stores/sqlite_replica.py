"""What one process reads of a SQLite file: a replica that follows the log before every read.

It asks ``PRAGMA data_version`` whether anybody committed since; if so it reads the log from where it
was. All reading is done under the lock of the reading connection.
"""

import sqlite3
from collections.abc import Callable, Sequence

from stampcache.errors import CodecError
from stampcache.indexes.flat import FlatIndex
from stampcache.model import Candidate, Entry, Vector
from stampcache.stores import sqlite_text
from stampcache.stores.codec import Beside, Codec, amended
from stampcache.stores.pending_uses import Place
from stampcache.stores.replica import LoadedIndexes, NearCache
from stampcache.stores.sqlite_file import SqliteFile, store_error, translated
from stampcache.ttl import expired


class SqliteReplica:
    """Decoded entries and loaded vector indexes, as new as the last commit to the file."""

    def __init__(
        self,
        file: SqliteFile,
        codec: Codec,
        *,
        near_capacity: int,
        vector_capacity: int,
        forgotten: Callable[[], None],
    ) -> None:
        """``forgotten`` is called, under the lock of the reader, when another process forgot a tenant."""
        self._file = file
        self._codec = codec
        self._near = NearCache(near_capacity)
        self._indexes = LoadedIndexes(vector_capacity)
        self._version = -1
        self._forgotten = forgotten
        self._forgets = self._count_forgets()
        self._applied = self.sequence()

    def fetch(self, place: Place) -> Entry | None:
        """Return the entry at an address.

        Raises:
            CodecError: it is damaged.
        """
        try:
            with self._file.reading:
                version = self._data_version()
                if version != self._version:
                    self._follow(version)
                entry = self._near.get(place)
                return entry if entry is not None else self._read(place)
        except sqlite3.Error as error:
            raise store_error(error) from error

    def peek(self, place: Place) -> Entry | None:
        """Return the entry if the near-cache has it and that is certain without waiting."""
        if not self._file.reading.acquire(blocking=False):
            return None
        try:
            if self._version != self._data_version():
                return None
            return self._near.get(place)
        except sqlite3.Error as error:
            raise store_error(error) from error
        finally:
            self._file.reading.release()

    def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        """See `Store.nearest`."""
        with self._file.reading, translated():
            version = self._data_version()
            if version != self._version:
                self._follow(version)
            index = self._index(partition, len(vector))
            bad = self._bad_for(partition, asked)
            wanted = k
            while True:
                found = list[Candidate]()
                for one in index.search(vector, wanted):
                    entry = self._living((partition, one.key), now)
                    if entry is not None:
                        found.append(Candidate(entry, one.similarity, one.key in bad))
                if len(found) >= k or wanted >= len(index):
                    return found[:k]
                wanted *= 4

    def peek_sequence(self) -> int | None:
        """Return the same as `sequence` if nobody is reading; else ``None``, without waiting."""
        if not self._file.reading.acquire(blocking=False):
            return None
        try:
            return self._last_sequence()
        except sqlite3.Error as error:
            raise store_error(error) from error
        finally:
            self._file.reading.release()

    def sequence(self) -> int:
        """Return the sequence of the last row that was logged."""
        with self._file.reading, translated():
            return self._last_sequence()

    def keep_own(self, entry: Entry, sequence: int) -> None:
        """Keep what was just written, unless the log has already told of it or of something later."""
        with self._file.reading:
            if self._applied < sequence:
                self._near.keep(entry, sequence)

    def flush(self) -> None:
        """Forget everything that was read."""
        self._near.clear()
        self._indexes.clear()
        self._version = -1

    def _data_version(self) -> int:
        version: int = self._file.versions.execute("PRAGMA data_version").fetchone()[0]
        return version

    def _last_sequence(self) -> int:
        (sequence,) = self._file.reader.execute(sqlite_text.LAST_SEQUENCE).fetchone()
        return int(sequence)

    def _count_forgets(self) -> int:
        (forgets,) = self._file.reader.execute(sqlite_text.FORGETS).fetchone()
        return int(forgets)

    def _follow(self, version: int) -> None:
        """Take over all commits up to one that was not seen yet.

        The floor and the log are read as of one commit: rows that another process trims between two
        reads would be missed, and what they tell of would be served for ever.
        """
        with self._file.snapshot() as reader:
            (floor,) = reader.execute(sqlite_text.LOG_FLOOR).fetchone()
            if self._applied < floor:
                self.flush()
                self._applied = self._last_sequence()
                forgets = self._count_forgets()
                if forgets != self._forgets:
                    self._forgets = forgets
                    self._forgotten()
            rows = reader.execute(sqlite_text.LOG_SINCE, (self._applied,)).fetchall()
            for sequence, partition, key in rows:
                if partition is not None:
                    self._apply((partition, key), sequence)
                self._applied = sequence
        self._version = version

    def _apply(self, place: Place, sequence: int) -> None:
        self._near.outdate(place, sequence)
        index = self._indexes.get(place[0])
        if index is None:
            return
        row = self._file.reader.execute(sqlite_text.VECTOR, place).fetchone()
        vector = None if row is None or row[0] is None else self._vector(row[0], place)
        if vector is not None and len(vector) == index.dimension:
            index.set(place[1], vector)
        else:
            index.remove(place[1])

    def _read(self, place: Place) -> Entry | None:
        row = self._file.reader.execute(sqlite_text.ENTRY, place).fetchone()
        if row is None:
            return None
        sequence, body, mark, *beside = row
        shown = Beside(self._codec.show_mark(mark, place), *beside)
        entry = amended(self._codec.decode(body, place), shown)
        self._near.keep(entry, sequence)
        return entry

    def _living(self, place: Place, now: float) -> Entry | None:
        """Return the entry unless it has gone stale, which it may have since the index was read."""
        try:
            entry = self._near.get(place) or self._read(place)
        except CodecError:
            return None  # dropped and counted when its own question fetches it
        if entry is None or entry.invalidated or expired(entry.expires_at, now):
            return None
        return entry

    def _index(self, partition: str, dimension: int) -> FlatIndex:
        index = self._indexes.get(partition)
        if index is None or index.dimension != dimension:
            size = self._codec.vector_size(dimension)
            rows = self._file.reader.execute(sqlite_text.VECTORS, (partition, size)).fetchall()
            index = FlatIndex(dimension)
            if rows:
                index.fill(*self._codec.decode_vectors(rows, partition, dimension))
            self._indexes.load(partition, index)
        return index

    def _vector(self, raw: bytes, place: Place) -> Vector | None:
        try:
            return self._codec.decode_vector(raw, place)
        except CodecError:
            return None  # its entry is found by its own question, or found damaged then

    def _bad_for(self, partition: str, asked: str) -> frozenset[str]:
        rows = self._file.reader.execute(sqlite_text.BAD, (partition, asked)).fetchall()
        return frozenset(row[0] for row in rows)
