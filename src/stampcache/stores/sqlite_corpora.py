"""The watched corpora of a SQLite store: chunks, intents, and the answers that writes reach.

A write is scored against the answers before its transaction, which then looks only at those that came
meanwhile: no lock is held while much is computed. A process that only serves loads no reaches.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from stampcache import reaching
from stampcache.corpora import (
    Change,
    Chunk,
    Committed,
    Difference,
    Intent,
    Reach,
    Standing,
    Trace,
    Written,
)
from stampcache.errors import CodecError
from stampcache.model import Entry
from stampcache.reaching import LOST
from stampcache.stores import codec, sqlite_text
from stampcache.stores import sqlite_writes as writes
from stampcache.stores.reaches import Reaches, Touched
from stampcache.stores.sqlite_file import SqliteFile, store_error, translated

_REACH = msgspec.msgpack.Decoder(Reach)
_INTENT = msgspec.msgpack.Decoder(Intent)
_DIFFERENCES = msgspec.msgpack.Decoder(tuple[Difference, ...])


class _Loaded:
    """The reaches of one corpus, as of a sequence of the log."""

    def __init__(self) -> None:
        self.reaches: Reaches[int] = Reaches()
        self.sequence = 0


class _Row(Struct, frozen=True):
    """An answer with a reach: its row and address, its mark, and how it differs."""

    row: int
    partition: str
    key: str
    invalidated: str
    reach: Reach
    differences: tuple[Difference, ...]


class SqliteCorpora:
    """Corpora in the tables of a SQLite store."""

    def __init__(
        self,
        file: SqliteFile,
        same_process: Callable[[], None],
        trim: Callable[[sqlite3.Connection, int], None],
    ) -> None:
        self._file = file
        self._same_process = same_process
        self._trim = trim
        self.flush()

    def flush(self) -> None:
        """Forget everything that was read."""
        self._scoring = threading.Lock()
        self._loaded: dict[str, _Loaded] = {}
        self._standings: dict[str, Standing] = {}
        self._version = -1

    # -- how corpora stand -------------------------------------------------------------------------

    def standing(self, corpus: str) -> Standing | None:
        """See `Corpora.standing`."""
        self._same_process()
        try:
            with self._file.reading:
                return self._standing(corpus)
        except sqlite3.Error as error:
            raise store_error(error) from error

    def peek(self, corpus: str) -> Standing | None:
        """Return how a corpus stands, if that takes no waiting."""
        if not self._file.reading.acquire(blocking=False):
            return None
        try:
            return self._standing(corpus)
        except sqlite3.Error as error:
            raise store_error(error) from error
        finally:
            self._file.reading.release()

    def standings(self) -> Sequence[Standing]:
        """See `Corpora.standings`."""
        self._same_process()
        with self._file.reading, translated():
            names = [str(row[0]) for row in self._file.reader.execute(sqlite_text.CORPORA)]
            found = [self._standing(name) for name in names]
            return [standing for standing in found if standing is not None]

    def declare(self, corpus: str, *, now: float, silence_s: float | None) -> Standing:
        """See `Corpora.declare`."""
        self._write(sqlite_text.DECLARE, (corpus, now, silence_s))
        standing = self.standing(corpus)
        assert standing is not None
        return standing

    def block(self, corpus: str, problem: str) -> None:
        """See `Corpora.block`."""
        self._write(sqlite_text.BLOCK, (problem, corpus))

    def heard(self, corpus: str, *, now: float) -> None:
        """See `Corpora.heard`."""
        self._write(sqlite_text.HEARD, (now, corpus))

    def swept(self, corpus: str, *, now: float, checked: int, drifted: int) -> None:
        """See `Corpora.swept`."""
        self._write(sqlite_text.SWEPT, (now, checked, drifted, corpus))

    # -- writes ------------------------------------------------------------------------------------

    def begin(self, corpus: str, intent: Intent) -> None:
        """See `Corpora.begin`."""
        self._same_process()
        with self._file.transaction() as writer:
            writer.execute(sqlite_text.KNOW, (corpus, intent.at))
            body = msgspec.msgpack.encode(intent)
            writer.execute(sqlite_text.INTEND, (intent.id, corpus, body))

    def commit(self, corpus: str, intent: str, change: Change, *, now: float) -> Committed:
        """See `Corpora.commit`."""
        self._same_process()
        with self._scoring:
            expected = reaching.written(self._named(corpus, change), change)
            loaded = self._loaded.setdefault(corpus, _Loaded())
            touched: Touched[int] = {}
            if expected:
                with self._file.reading, translated(), self._file.snapshot() as reader:
                    _follow(reader, corpus, loaded)
                touched = loaded.reaches.touched(expected)
            with self._file.transaction() as writer:
                writer.execute(sqlite_text.KNOW, (corpus, now))
                done = reaching.written(_chunks(writer, corpus, _ids(change)), change)
                committed = Committed()
                if done:
                    late = _follow(writer, corpus, loaded)
                    if done != expected:
                        touched = loaded.reaches.touched(done)
                    else:
                        touched |= late.touched(done)
                    committed = self._take_over(writer, corpus, done, touched)
                writer.execute(sqlite_text.RESOLVE, (intent,))
                writer.execute(sqlite_text.HEARD, (now, corpus))
                if change.emptied or change.unknown:
                    writer.execute(sqlite_text.COMPLETE, (not change.unknown, corpus))
                return committed

    # -- what is known -----------------------------------------------------------------------------

    def chunks(self, corpus: str, ids: Sequence[str] | None) -> Mapping[str, Chunk]:
        """See `Corpora.chunks`."""
        self._same_process()
        with self._file.reading, translated():
            return _chunks(self._file.reader, corpus, ids)

    def sample(self, corpus: str, settings: str, count: int, *, after: str) -> Sequence[Entry]:
        """See `Corpora.sample`."""
        self._same_process()
        found: list[Entry] = []
        with self._file.reading, translated():
            for query in (sqlite_text.SAMPLE_AFTER, sqlite_text.SAMPLE_BEFORE):
                values = (corpus, settings, after, count - len(found))
                found += _decoded(self._file.reader.execute(query, values))
        return found

    def reach(self, entry: Entry) -> Reach | None:
        """See `Corpora.reach`."""
        self._same_process()
        with self._file.reading, translated():
            row = self._file.reader.execute(sqlite_text.REACH, (entry.id,)).fetchone()
        return None if row is None else _REACH.decode(row[0])

    # -- inside ------------------------------------------------------------------------------------

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        self._same_process()
        with self._file.transaction() as writer:
            writer.execute(statement, values)

    def _named(self, corpus: str, change: Change) -> Mapping[str, Chunk]:
        return self.chunks(corpus, _ids(change))

    def _standing(self, corpus: str) -> Standing | None:
        version: int = self._file.versions.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version:
            self._standings, self._version = {}, version
        known = self._standings.get(corpus)
        if known is None:
            with self._file.snapshot() as reader:
                known = _read_standing(reader, corpus)
            if known is not None:
                self._standings[corpus] = known
        return known

    def _take_over(
        self, writer: sqlite3.Connection, corpus: str, done: Written, touched: Touched[int]
    ) -> Committed:
        trace = reaching.trace_of(corpus, done)
        _mark_beside(writer, trace)
        sequence = writes.log_change(writer, trace)
        gone = [(corpus, chunk.id) for chunk in done.removed]
        writer.executemany(sqlite_text.DROP_CHUNK, gone)
        writer.executemany(
            sqlite_text.ADD_CHUNK,
            [(corpus, one.id, one.source, one.digest, one.vector, sequence) for one in done.added],
        )
        reaches = self._loaded[corpus].reaches
        for row in reaches.everything() if done.unknown else _citing(writer, corpus, done.unseen):
            touched.setdefault(row, []).append(LOST)
        counts = [0, 0]
        for row, new in sorted(touched.items()):
            found = _reached(writer, row)
            if found is None:
                reaches.drop(row)  # it was deleted since it was loaded
            else:
                counts[0] += (moved := _shift(writer, found, new, str(trace))) > 0
                counts[1] += moved < 0
        self._trim(writer, sequence)
        return Committed(*counts)


def _ids(change: Change) -> Sequence[str] | None:
    return None if change.emptied else reaching.named(change)


def _read_standing(reader: sqlite3.Connection, corpus: str) -> Standing | None:
    row = reader.execute(sqlite_text.STANDING, (corpus,)).fetchone()
    if row is None:
        return None
    problem, heard_at, silence_s, chunks, complete, swept_at, checked, drifted = row
    bodies = reader.execute(sqlite_text.INTENTS, (corpus,))
    return Standing(
        corpus=corpus,
        intents=tuple(_INTENT.decode(body) for (body,) in bodies),
        problem=problem,
        heard_at=heard_at,
        silence_s=silence_s,
        chunks=chunks,
        complete=bool(complete),
        swept_at=swept_at,
        checked=checked,
        drifted=drifted,
    )


def _chunks(reader: sqlite3.Connection, corpus: str, ids: Sequence[str] | None) -> dict[str, Chunk]:
    if ids is None:
        rows: Iterable[tuple[str, str, str, bytes]] = reader.execute(sqlite_text.CHUNKS, (corpus,))
    else:
        asked = (reader.execute(sqlite_text.CHUNK, (corpus, one)).fetchone() for one in ids)
        rows = (row for row in asked if row is not None)
    return {row[0]: writes.chunk_of(row) for row in rows}


def _follow(reader: sqlite3.Connection, corpus: str, loaded: _Loaded) -> Reaches[int]:
    """Take up the reaches that were stored since; return those alone, too."""
    new: Reaches[int] = Reaches()
    (latest,) = reader.execute(sqlite_text.LAST_SEQUENCE).fetchone()
    for row, body in reader.execute(sqlite_text.REACHES_SINCE, (corpus, loaded.sequence)):
        reach = _REACH.decode(body)
        loaded.reaches.set(row, reach)
        new.set(row, reach)
    loaded.sequence = int(latest)
    return new


def _mark_beside(writer: sqlite3.Connection, trace: Trace) -> None:
    """Mark what a write concerns of the entries that have no reach, by what they cite."""
    for selector in trace.selectors:
        for suspended in (True, False):
            where = sqlite_text.selecting(selector, suspended=suspended, beside=trace.corpus)
            if where is None:
                continue
            rows = writer.execute(where.statement, where.values).fetchall()
            if suspended:
                writes.end(writer, rows)
            else:
                writes.mark(writer, rows, str(trace))


def _citing(writer: sqlite3.Connection, corpus: str, unseen: Sequence[str]) -> set[int]:
    """Return the answers made from removed chunks of which nothing was known."""
    found: set[int] = set()
    for chunk in unseen:
        found.update(row for (row,) in writer.execute(sqlite_text.CITING_CHUNK, (corpus, chunk)))
    return found


def _shift(writer: sqlite3.Connection, found: _Row, new: Sequence[Difference], change: str) -> int:
    """Mark or restore an answer; return 1 where it went stale by this, -1 where it holds again."""
    if found.invalidated and not found.differences:
        return 0  # for another reason, which no write undoes
    after = reaching.settled(found.reach, found.differences, new)
    raw = msgspec.msgpack.encode(after) if after else None
    writer.execute(sqlite_text.DIFFER, (raw, found.row))
    if bool(after) == bool(found.differences):
        return 0
    sequence = writes.log(writer, (found.partition, found.key))
    writer.execute(sqlite_text.SUSPEND, (change if after else "", sequence, found.row))
    return 1 if after else -1


def _reached(writer: sqlite3.Connection, row: int) -> _Row | None:
    found = writer.execute(sqlite_text.REACHED, (row,)).fetchone()
    if found is None:
        return None
    partition, key, invalidated, body, differences = found
    return _Row(
        row=row,
        partition=partition,
        key=key,
        invalidated=invalidated,
        reach=_REACH.decode(body),
        differences=() if differences is None else _DIFFERENCES.decode(differences),
    )


def _decoded(rows: Iterable[tuple[bytes, str, float | None]]) -> list[Entry]:
    """Return entries from rows, but for those that are damaged: who asks for them is told."""
    found = []
    for body, invalidated, expires_at in rows:
        try:
            entry = codec.decode(body)
        except CodecError:
            continue
        found.append(codec.amended(entry, invalidated=invalidated, expires_at=expires_at))
    return found
