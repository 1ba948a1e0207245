"""The watched corpora of a SQLite store: chunks, intents, and the answers that writes reach.

A write is scored against the answers before its transaction, which then looks only at those that came
meanwhile: no lock is held while much is computed. A process that only serves loads no reaches.
"""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from stampcache import differing
from stampcache.corpora import (
    Change,
    Chunk,
    Committed,
    Intent,
    Reach,
    Standing,
    Trace,
    Written,
)
from stampcache.errors import CodecError
from stampcache.model import Entry
from stampcache.stores import sqlite_reached as reached
from stampcache.stores import sqlite_text
from stampcache.stores import sqlite_writes as writes
from stampcache.stores.codec import Beside, Codec, amended
from stampcache.stores.reaches import Reaches, Touched
from stampcache.stores.sqlite_file import SqliteFile, store_error, translated
from stampcache.stores.telling import Holding

_LOADED_AT_ONCE = 500
_ALL = -1

_Stored: TypeAlias = tuple[int, bytes, int]
"""The row of an answer, its reach as bytes, and the sequence of its storing."""

_INTENT = msgspec.msgpack.Decoder(Intent)


class _Loaded:
    """The reaches of one corpus, as of a sequence of the log."""

    def __init__(self) -> None:
        self.reaches: Reaches[int] = Reaches()
        self.sequence = 0

    def take(self, codec: Codec, corpus: str, rows: Sequence[_Stored]) -> Mapping[int, Reach]:
        """Take up reaches; return them, too."""
        new = {row: reached.reach_from(codec, body, row, corpus) for row, body, _ in rows}
        self.reaches.update(new)
        if rows:
            self.sequence = rows[-1][2]
        return new


class SqliteCorpora:
    """Corpora in the tables of a SQLite store."""

    def __init__(
        self,
        file: SqliteFile,
        codec: Codec,
        same_process: Callable[[], None],
        trim: Callable[[sqlite3.Connection, int], None],
    ) -> None:
        self._file = file
        self._codec = codec
        self._same_process = same_process
        self._trim = trim
        self.flush()

    def flush(self) -> None:
        """Forget everything that was read."""
        self._scoring = Holding(self._drop)
        self._loaded: dict[str, _Loaded] = {}
        self._standings: dict[str, Standing] = {}
        self._version = -1
        self._forgets = 0

    def let_go(self) -> None:
        """Let go of what was read of answers: some are forgotten. A commit does so at its end."""
        self._scoring.let_go()

    def _drop(self) -> None:
        self._loaded = {}

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
        self._same_process()
        with self._file.transaction() as writer:
            _know(writer, self._codec, corpus, now)
            writer.execute(sqlite_text.DECLARE, (now, silence_s, corpus))
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
            _know(writer, self._codec, corpus, intent.at)
            body = msgspec.msgpack.encode(intent)
            writer.execute(sqlite_text.INTEND, (intent.id, corpus, body))

    def commit(self, corpus: str, intent: str, change: Change, *, now: float) -> Committed:
        """See `Corpora.commit`."""
        self._same_process()
        with self._scoring:
            touched: Touched[int] = {}
            with self._file.reading, translated(), self._file.snapshot() as reader:
                self._follow_forgets(reader)
                expected = _written(reader, corpus, change)
            loaded = self._loaded.setdefault(corpus, _Loaded())
            if expected:
                self._catch_up(corpus, loaded)
                touched = loaded.reaches.touched(expected)
            with self._file.transaction() as writer:
                _know(writer, self._codec, corpus, now)
                change = _contested(writer, corpus, intent, change, now)
                done = _written(writer, corpus, change)
                committed = Committed()
                if done:
                    rows = _stored_since(writer, corpus, loaded, _ALL)
                    late = loaded.take(self._codec, corpus, rows)
                    if done != expected:
                        touched = loaded.reaches.touched(done)
                    else:
                        touched |= Reaches(late).touched(done)
                    committed = self._take_over(writer, corpus, done, touched, doubts=change.doubts)
                writer.execute(sqlite_text.HEARD, (now, corpus))
                stays = differing.is_complete(change, before=True)
                if change.emptied or not stays:
                    writer.execute(sqlite_text.COMPLETE, (stays, corpus))
                return committed

    # -- what is known -----------------------------------------------------------------------------

    def chunks(self, corpus: str, ids: Sequence[str] | None) -> Mapping[str, Chunk]:
        """See `Corpora.chunks`."""
        self._same_process()
        with self._file.reading, translated():
            return _chunks(self._file.reader, corpus, ids)

    def alike(self, corpus: str, ids: Sequence[str]) -> Mapping[str, Chunk]:
        """See `Corpora.alike`."""
        self._same_process()
        with self._file.reading, translated(), self._file.snapshot() as reader:
            known = _chunks(reader, corpus, ids)
            for one in [chunk for chunk in known.values() if chunk.vector]:
                values = (corpus, one.vector, one.digest)
                row = reader.execute(sqlite_text.OTHER_OF_VECTOR, values).fetchone()
                if row is not None:
                    known[row[0]] = writes.chunk_of(row)
        return known

    def sample(self, corpus: str, settings: str, count: int, *, after: str) -> Sequence[Entry]:
        """See `Corpora.sample`."""
        self._same_process()
        found: list[Entry] = []
        with self._file.reading, translated():
            for query in (sqlite_text.SAMPLE_AFTER, sqlite_text.SAMPLE_BEFORE):
                values = (corpus, settings, after, count - len(found))
                found += _decoded(self._codec, self._file.reader.execute(query, values))
        return found

    def reach(self, entry: Entry) -> Reach | None:
        """See `Corpora.reach`."""
        self._same_process()
        with self._file.reading, translated():
            row = self._file.reader.execute(sqlite_text.REACH, (entry.id,)).fetchone()
        return None if row is None else reached.reach_from(self._codec, row[0], row[1], row[2])

    # -- inside ------------------------------------------------------------------------------------

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        self._same_process()
        with self._file.transaction() as writer:
            writer.execute(statement, values)

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

    def _catch_up(self, corpus: str, loaded: _Loaded) -> None:
        """Load the reaches that were stored since, a few at a time: hits wait for the lock, too."""
        while True:
            with self._file.reading, translated():
                rows = _stored_since(self._file.reader, corpus, loaded)
            loaded.take(self._codec, corpus, rows)
            if len(rows) < _LOADED_AT_ONCE:
                return

    def _follow_forgets(self, reader: sqlite3.Connection) -> None:
        (forgets,) = reader.execute(sqlite_text.FORGETS).fetchone()
        if forgets != self._forgets:
            self._loaded, self._forgets = {}, forgets

    def _take_over(
        self,
        writer: sqlite3.Connection,
        corpus: str,
        done: Written,
        touched: Touched[int],
        *,
        doubts: bool,
    ) -> Committed:
        trace = differing.trace_of(corpus, done)
        reached.mark_beside(writer, self._codec, trace)
        sequence = writes.log_change(writer, self._codec, trace)
        if doubts:
            writer.execute(sqlite_text.DOUBT, (sequence, corpus))
        gone = [(corpus, chunk.id) for chunk in done.removed]
        writer.executemany(sqlite_text.DROP_CHUNK, gone)
        writer.executemany(
            sqlite_text.ADD_CHUNK,
            [(corpus, one.id, one.source, one.digest, one.vector, sequence) for one in done.added],
        )
        reaches = self._loaded[corpus].reaches
        found = list[reached.Row]()
        for row in touched:
            one = reached.read(writer, self._codec, row, corpus)
            if one is None:
                reaches.drop(row)  # it was deleted since it was loaded
            else:
                found.append(one)
        committed = reached.shift(writer, self._codec, found, touched, str(trace))
        self._trim(writer, sequence)
        return committed


def _know(writer: sqlite3.Connection, codec: Codec, corpus: str, now: float) -> None:
    """Watch a corpus from now on, if nobody does: whatever was written before was not seen."""
    if writer.execute(sqlite_text.KNOW, (corpus, now)).rowcount:
        writes.log_change(writer, codec, Trace(corpus=corpus, unknown=True))


def _contested(
    writer: sqlite3.Connection, corpus: str, intent: str, change: Change, now: float
) -> Change:
    """Resolve an intent, and tell those of others; return what of the change is known for certain."""
    rows = writer.execute(sqlite_text.INTENTS, (corpus,)).fetchall()
    intents = {one.id: one for one in (_INTENT.decode(body) for (body,) in rows)}
    change = differing.contested(change, differing.own_intent(intents, intent, now))
    if not change.unfinished:
        writer.execute(sqlite_text.RESOLVE, (intent,))
    intents.pop(intent, None)
    for one in intents.values():
        body = msgspec.msgpack.encode(differing.contesting(one, change))
        writer.execute(sqlite_text.INTEND, (one.id, corpus, body))
    return change


def _written(reader: sqlite3.Connection, corpus: str, change: Change) -> Written:
    row = reader.execute(sqlite_text.IS_COMPLETE, (corpus,)).fetchone()
    complete, doubted = (False, 0) if row is None else row
    known = {
        one[0]: differing.doubtful(writes.chunk_of(one))
        if one[4] < doubted
        else writes.chunk_of(one)
        for one in _chunk_rows(reader, corpus, _ids(change))
    }
    return differing.written(known, change, complete=bool(complete))


def _ids(change: Change) -> Sequence[str] | None:
    return None if change.emptied else differing.named(change)


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
    return {row[0]: writes.chunk_of(row) for row in _chunk_rows(reader, corpus, ids)}


def _chunk_rows(
    reader: sqlite3.Connection, corpus: str, ids: Sequence[str] | None
) -> Iterable[tuple[str, str, str, bytes, int]]:
    if ids is None:
        return reader.execute(sqlite_text.CHUNKS, (corpus,))
    asked = (reader.execute(sqlite_text.CHUNK, (corpus, one)).fetchone() for one in ids)
    return (row for row in asked if row is not None)


def _stored_since(
    reader: sqlite3.Connection, corpus: str, loaded: _Loaded, at_most: int = _LOADED_AT_ONCE
) -> list[_Stored]:
    """Return reaches that were stored after those that are loaded."""
    values = (corpus, loaded.sequence, at_most)
    return reader.execute(sqlite_text.REACHES_SINCE, values).fetchall()


def _decoded(codec: Codec, rows: sqlite3.Cursor) -> list[Entry]:
    """Return entries from rows, but for those that are damaged: who asks for them is told."""
    found = []
    for partition, key, body, mark, *beside in rows:
        place = (partition, key)
        try:
            entry = codec.decode(body, place)
        except CodecError:
            continue
        found.append(amended(entry, Beside(codec.show_mark(mark, place), *beside)))
    return found
