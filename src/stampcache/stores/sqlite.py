"""The SQLite store: the truth in one file, shared by the processes of one machine (ADR 0009).

Entries, vectors, evidence and the change log are written in one transaction. Each process keeps a
replica of what it reads and asks ``PRAGMA data_version`` before every read whether anybody committed
since; if so it reads the log from where it was. A ``put`` returns after the commit is on disk.
"""

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from stampcache.errors import CodecError
from stampcache.indexes.flat import FlatIndex
from stampcache.model import Candidate, Entry, Selector, Vector, stamp_values
from stampcache.ports import AsyncStore, Receipt, StoreStats
from stampcache.stores import codec, sqlite_text
from stampcache.stores.aio import ThreadedStore
from stampcache.stores.replica import LoadedIndexes, NearCache
from stampcache.stores.selection import refused
from stampcache.stores.sqlite_file import SqliteFile, store_error, translated
from stampcache.stores.uses import Pending, Place, Serving, Uses
from stampcache.ttl import expired

CAPACITY = 100_000
NEAR_CAPACITY = 100_000
VECTOR_CAPACITY = 200_000
_LOG_KEPT = 20_000
_TRIM_EVERY = 1_000
_SERVINGS_KEPT = 100_000


class SqliteStore:
    """Entries in one SQLite file. ``capacity`` bounds the file, ``near_capacity`` this process's copy."""

    def __init__(
        self,
        path: str | Path,
        *,
        capacity: int = CAPACITY,
        near_capacity: int = NEAR_CAPACITY,
        vector_capacity: int = VECTOR_CAPACITY,
        timeout_s: float = 5.0,
    ) -> None:
        self.url = f"sqlite:///{path}"
        self._capacity = capacity
        self._near = NearCache(near_capacity)
        self._indexes = LoadedIndexes(vector_capacity)
        self._applied = 0
        self._version = -1
        self._uses = Uses()
        self._file = SqliteFile(Path(path), timeout_s=timeout_s)
        self._applied = self.sequence()

    # -- reading -----------------------------------------------------------------------------------

    def fetch(self, partition: str, key: str) -> Entry | None:
        """See `Store.fetch`."""
        place = (partition, key)
        self._same_process()
        try:
            with self._file.reading:
                version = self._data_version()
                if version != self._version:
                    self._follow(version)
                entry = self._near.get(place)
                return entry if entry is not None else self._read(place)
        except sqlite3.Error as error:
            raise store_error(error) from error
        except CodecError:
            self._delete_damaged(place)
            raise

    def peek(self, partition: str, key: str) -> Entry | None:
        """Return the entry if the near-cache has it and that is certain without waiting."""
        self._same_process()
        if not self._file.reading.acquire(blocking=False):
            return None
        try:
            if self._version != self._data_version():
                return None
            return self._near.get((partition, key))
        except sqlite3.Error as error:
            raise store_error(error) from error
        finally:
            self._file.reading.release()

    def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        """See `Store.nearest`."""
        self._same_process()
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
                    entry = self._candidate((partition, one.key))
                    if entry is not None and not expired(entry.expires_at, now):
                        found.append(Candidate(entry, one.similarity, one.key in bad))
                if len(found) >= k or wanted >= len(index):
                    return found[:k]
                wanted *= 4

    def sequence(self) -> int:
        """See `Store.sequence`."""
        self._same_process()
        with self._file.reading, translated():
            return _last_sequence(self._file.reader)

    def _same_process(self) -> None:
        if os.getpid() != self._file.pid and self._file.check_process():
            self._flush_replica()
            self._uses = Uses()

    def _data_version(self) -> int:
        version: int = self._file.versions.execute("PRAGMA data_version").fetchone()[0]
        return version

    def _follow(self, version: int) -> None:
        """Bring the replica up to a commit that it has not seen. Called under the reading lock."""
        reader = self._file.reader
        (floor,) = reader.execute(sqlite_text.LOG_FLOOR).fetchone()
        if self._applied < floor:
            self._flush_replica()
            self._applied = _last_sequence(reader)
        for sequence, partition, key in reader.execute(sqlite_text.LOG_SINCE, (self._applied,)):
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
        vector = None if row is None or row[0] is None else np.frombuffer(row[0], np.float32)
        if vector is not None and len(vector) == index.dimension:
            index.set(place[1], vector)
        else:
            index.remove(place[1])

    def _flush_replica(self) -> None:
        self._near.clear()
        self._indexes.clear()
        self._version = -1

    def _read(self, place: Place) -> Entry | None:
        row = self._file.reader.execute(sqlite_text.ENTRY, place).fetchone()
        if row is None:
            return None
        entry = codec.decode(row[0])
        self._near.keep(entry, row[1])
        return entry

    def _candidate(self, place: Place) -> Entry | None:
        try:
            return self._near.get(place) or self._read(place)
        except CodecError:
            return None  # dropped and counted when its own question fetches it

    def _index(self, partition: str, dimension: int) -> FlatIndex:
        index = self._indexes.get(partition)
        if index is None or index.dimension != dimension:
            rows = self._file.reader.execute(
                sqlite_text.VECTORS, (partition, dimension * 4)
            ).fetchall()
            index = FlatIndex(dimension)
            if rows:
                raw = b"".join(row[1] for row in rows)
                vectors = np.frombuffer(raw, np.float32).reshape(len(rows), dimension)
                index.fill((row[0] for row in rows), vectors)
            self._indexes.load(partition, index)
        return index

    def _bad_for(self, partition: str, asked: str) -> frozenset[str]:
        rows = self._file.reader.execute(sqlite_text.BAD, (partition, asked)).fetchall()
        return frozenset(row[0] for row in rows)

    # -- writing -----------------------------------------------------------------------------------

    def put(self, entry: Entry, vector: Vector | None, fence: int) -> Receipt:
        """See `Store.put`."""
        self._same_process()
        body = codec.encode(entry)
        with self._file.transaction() as writer:
            if _fenced(writer, entry, fence):
                return Receipt(stored=False)
            written = self._write_uses(writer)
            sequence = _log(writer, entry.place)
            _write(writer, entry, body, vector, sequence)
            evicted = self._evict(writer)
            _trim(writer, sequence)
        self._uses.written(written)
        self._keep_own(entry, sequence)
        return Receipt(stored=True, evicted=evicted)

    def _keep_own(self, entry: Entry, sequence: int) -> None:
        """Keep what was just written, unless the log has already told of it or of something later."""
        with self._file.reading:
            if self._applied < sequence:
                self._near.keep(entry, sequence)

    def _evict(self, writer: sqlite3.Connection) -> int:
        (count,) = writer.execute(sqlite_text.COUNT_ENTRIES).fetchone()
        over = max(0, int(count) - self._capacity)
        if over:
            _delete(writer, writer.execute(sqlite_text.LEAST_USED, (over,)).fetchall())
        return over

    def touch(self, entry: Entry, asked: str) -> None:
        """See `Store.touch`. Uses are written with the next `put`; a semantic serving at once."""
        if asked != entry.identity.key:
            self._note_serving((entry.id, *entry.place, asked))
        if self.use(entry):
            self.write_uses()

    def use(self, entry: Entry) -> bool:
        """Note, without any IO, that the entry was served; tell whether it is time to write uses."""
        return self._uses.add(entry.place)  # it was fetched, so this process has its connections

    def write_uses(self) -> None:
        """Write what was noted of uses and servings."""
        with self._file.transaction() as writer:
            written = self._write_uses(writer)
        self._uses.written(written)

    def _note_serving(self, serving: Serving) -> None:
        """Let other processes know at once to whom an entry was served, but wait for nobody."""
        self._same_process()
        try:
            with self._file.writing:
                self._file.noting.execute(sqlite_text.SERVED, serving)
        except sqlite3.OperationalError:  # another process is writing: it goes with the next put
            self._uses.serve(serving)

    def _write_uses(self, writer: sqlite3.Connection) -> Pending:
        pending = self._uses.pending()
        writer.executemany(sqlite_text.SERVED, pending.servings)
        if pending.hits:
            (latest,) = writer.execute(sqlite_text.LATEST_USE).fetchone()
            hits = enumerate(pending.hits.items(), int(latest) + 1)
            writer.executemany(sqlite_text.USE, [(n, used, *place) for used, (place, n) in hits])
        return pending

    def remove(self, entry: Entry) -> bool:
        """See `Store.remove`."""
        self._same_process()
        with self._file.transaction() as writer:
            return _delete(writer, writer.execute(sqlite_text.BY_ID, (entry.id,)).fetchall()) > 0

    def _delete_damaged(self, place: Place) -> None:
        with self._file.transaction() as writer:
            _delete(writer, writer.execute(sqlite_text.BY_PLACE, place).fetchall())

    def report_bad(self, entry_id: str) -> bool:
        """See `Store.report_bad`."""
        self._same_process()
        with self._file.transaction() as writer:
            written = self._write_uses(writer)
            writer.execute(sqlite_text.MARK_BAD, (entry_id,))
            writer.execute(sqlite_text.MARK_BAD_BACK, (entry_id,))
            gone = _delete(writer, writer.execute(sqlite_text.BY_ID, (entry_id,)).fetchall())
        self._uses.written(written)
        return gone > 0

    def invalidate(self, selector: Selector) -> int:
        """See `Store.invalidate`."""
        self._same_process()
        where = sqlite_text.selecting(selector)
        with self._file.transaction() as writer:
            rows = writer.execute(where.statement, where.values).fetchall() if where else []
            _delete(writer, rows)
            raw = msgspec.msgpack.encode(selector)
            writer.execute("INSERT INTO stampcache_log (selector) VALUES (?)", (raw,))
            return len(rows)

    def clear(self, scope: str) -> int:
        """See `Store.clear`."""
        return self.invalidate(Selector(scope=scope))

    # -- facts, counters, health -------------------------------------------------------------------

    def claim(self, name: str, value: str) -> str:
        """See `Store.claim`."""
        self._same_process()
        with self._file.transaction() as writer:
            writer.execute("INSERT OR IGNORE INTO stampcache_facts VALUES (?, ?)", (name, value))
            row = writer.execute(sqlite_text.FACT, (name,)).fetchone()
            return str(row[0])

    def tally(self, counts: Mapping[str, int]) -> None:
        """See `Store.tally`."""
        self._same_process()
        with self._file.transaction() as writer:
            writer.executemany(sqlite_text.TALLY, list(counts.items()))

    def tallies(self) -> Mapping[str, int]:
        """See `Store.tallies`."""
        self._same_process()
        with self._file.reading, translated():
            return dict(self._file.reader.execute("SELECT name, count FROM stampcache_tallies"))

    def stats(self, scope: str | None = None) -> StoreStats:
        """See `Store.stats`."""
        self._same_process()
        if self._uses:
            self.write_uses()
        with self._file.reading, translated():
            row = self._file.reader.execute(sqlite_text.STATS, (scope, scope)).fetchone()
        return StoreStats(entries=row[0], vectors=row[1], answer_bytes=row[2], hits=row[3])

    def problems(self) -> Sequence[str]:
        """See `Store.problems`."""
        self._same_process()
        with self._file.reading, translated():
            reader = self._file.reader
            (integrity,) = reader.execute("PRAGMA quick_check(1)").fetchone()
            damaged = 0
            for (body,) in reader.execute("SELECT body FROM stampcache_entries"):
                try:
                    codec.decode(body)
                except CodecError:
                    damaged += 1
        found = []
        if integrity != "ok":
            found.append(
                f"SQLite says: {integrity}. Move the file away and let the cache start anew."
            )
        if damaged:
            found.append(f"Damaged entries: {damaged}; each is dropped when it is asked for.")
        return found

    def aio(self) -> AsyncStore:
        """See `Store.aio`."""
        return ThreadedStore(self)

    def close(self) -> None:
        """See `Store.close`."""
        try:
            if self._uses:
                self.write_uses()
        finally:
            self._file.close()


def _last_sequence(connection: sqlite3.Connection) -> int:
    (sequence,) = connection.execute(sqlite_text.LAST_SEQUENCE).fetchone()
    return int(sequence)


def _fenced(writer: sqlite3.Connection, entry: Entry, fence: int) -> bool:
    (floor,) = writer.execute(sqlite_text.LOG_FLOOR).fetchone()
    rows = writer.execute(sqlite_text.CHANGES_SINCE, (fence,))
    changes = (msgspec.msgpack.decode(row[0], type=Selector) for row in rows)
    return fence < floor or refused(changes, entry)


def _log(writer: sqlite3.Connection, place: Place) -> int:
    sequence = writer.execute(sqlite_text.LOG, place).lastrowid
    assert sequence is not None
    return sequence


def _write(
    writer: sqlite3.Connection, entry: Entry, body: bytes, vector: Vector | None, sequence: int
) -> None:
    writer.execute(sqlite_text.DELETE_PLACE, entry.place)
    (latest,) = writer.execute(sqlite_text.LATEST_USE).fetchone()
    raw = None if vector is None else np.ascontiguousarray(vector, np.float32).tobytes()
    size = len(entry.answer.text.encode()) + len(entry.answer.payload)
    who = (entry.id, entry.identity.scope, entry.identity.tenant)
    values = (
        *entry.place,
        *who,
        *stamp_values(entry.stamps),
        body,
        raw,
        size,
        sequence,
        latest + 1,
    )
    row = writer.execute(sqlite_text.PUT, values).lastrowid
    cited = {(row, chunk.corpus, chunk.source, chunk.chunk) for chunk in entry.evidence or ()}
    writer.executemany("INSERT INTO stampcache_evidence VALUES (?, ?, ?, ?)", cited)


def _delete(writer: sqlite3.Connection, rows: Iterable[tuple[int, str, str]]) -> int:
    """Delete entries given as (row id, partition, key) and log each for the replicas."""
    gone = list(rows)
    writer.executemany(sqlite_text.LOG, [(partition, key) for _, partition, key in gone])
    writer.executemany("DELETE FROM stampcache_entries WHERE id = ?", [(row[0],) for row in gone])
    return len(gone)


def _trim(writer: sqlite3.Connection, sequence: int) -> None:
    """Cut the log to its last rows, whenever it has grown by a thousand over that."""
    (known,) = writer.execute(sqlite_text.LOG_FLOOR).fetchone()
    floor = sequence - _LOG_KEPT
    if floor - known < _TRIM_EVERY:
        return
    writer.execute("UPDATE stampcache_counts SET value = ? WHERE name = 'log_floor'", (floor,))
    writer.execute("DELETE FROM stampcache_log WHERE sequence <= ?", (floor,))
    writer.execute(sqlite_text.TRIM_SERVINGS, (_SERVINGS_KEPT,))
