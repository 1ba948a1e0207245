"""The SQLite store: the truth in one file, shared by the processes of one machine (ADR 0009).

Entries, vectors, dependencies and the change log are written in one transaction. This file has the verbs;
what they read is in `sqlite_replica`, what they write in `sqlite_writes`. A ``put`` returns after the
commit is on disk.
"""

import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from stampcache.corpora import Reach, Standing
from stampcache.errors import CodecError
from stampcache.model import Candidate, Entry, Selector, Vector
from stampcache.ports import AsyncStore, Receipt, StoreStats
from stampcache.stores import codec, sqlite_text
from stampcache.stores import sqlite_writes as writes
from stampcache.stores.aio import ThreadedStore
from stampcache.stores.pending_uses import Pending, Serving, Uses
from stampcache.stores.selection import unmarked
from stampcache.stores.sqlite_corpora import SqliteCorpora
from stampcache.stores.sqlite_file import SqliteFile, translated
from stampcache.stores.sqlite_journal import SqliteJournal
from stampcache.stores.sqlite_replica import SqliteReplica
from stampcache.stores.sqlite_shelf import SqliteShelf

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
        self._uses = Uses()
        self._file = SqliteFile(Path(path), timeout_s=timeout_s)
        self._replica = SqliteReplica(
            self._file, near_capacity=near_capacity, vector_capacity=vector_capacity
        )
        self.journal = SqliteJournal(self._file, self._same_process)
        self.shelf = SqliteShelf(self._file, self._same_process)
        self.corpora = SqliteCorpora(self._file, self._same_process, self._trim)

    # -- reading -----------------------------------------------------------------------------------

    def fetch(self, partition: str, key: str) -> Entry | None:
        """See `Store.fetch`."""
        if os.getpid() != self._file.pid:  # here without a call, which is a part of a hit's time
            self._same_process()
        try:
            return self._replica.fetch((partition, key))
        except CodecError:
            with self._file.transaction() as writer:
                writes.delete_damaged(writer, (partition, key))
            raise

    def peek(self, partition: str, key: str) -> Entry | None:
        """Return the entry if the near-cache has it and that is certain without waiting."""
        self._same_process()
        return self._replica.peek((partition, key))

    def peek_sequence(self) -> int | None:
        """Return the sequence if that takes no waiting."""
        self._same_process()
        return self._replica.peek_sequence()

    def peek_standing(self, corpus: str) -> Standing | None:
        """Return how a watched corpus stands if that takes no waiting."""
        self._same_process()
        return self.corpora.peek(corpus)

    def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        """See `Store.nearest`."""
        self._same_process()
        return self._replica.nearest(partition, vector, k, asked=asked, now=now)

    def sequence(self) -> int:
        """See `Store.sequence`."""
        self._same_process()
        return self._replica.sequence()

    def _same_process(self) -> None:
        if os.getpid() != self._file.pid and self._file.check_process():
            self._replica.flush()
            self.corpora.flush()
            self._uses = Uses()

    # -- writing -----------------------------------------------------------------------------------

    def put(
        self, entry: Entry, vector: Vector | None, fence: int, reach: Reach | None = None
    ) -> Receipt:
        """See `Store.put`."""
        self._same_process()
        entry = unmarked(entry)
        body = writes.Body(codec.encode(entry), vector, reach)
        with self._file.transaction() as writer:
            change = writes.fenced(writer, entry, fence, reach)
            if change:
                return Receipt(stored=False, change=change)
            written = self._write_uses(writer)
            sequence = writes.log(writer, entry.place)
            writes.write(writer, entry, body, sequence)
            evicted = writes.evict(writer, self._capacity)
            self._trim(writer, sequence)
        self._uses.written(written)
        self._replica.keep_own(entry, sequence)
        return Receipt(stored=True, evicted=evicted)

    def fenced(self, entry: Entry, fence: int) -> str:
        """See `Store.fenced`."""
        self._same_process()
        with self._file.reading, translated(), self._file.snapshot() as reader:
            return writes.fenced(reader, entry, fence, None)

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
        """Let other processes know at once to whom an entry was served, but wait for nobody.

        While a thread of this process or another process writes, it is kept for the next `put`.
        """
        self._same_process()
        if not self._file.writing.acquire(blocking=False):
            self._uses.serve(serving)
            return
        try:
            self._file.noting.execute(sqlite_text.SERVED, serving)
        except sqlite3.OperationalError:  # another process is writing
            self._uses.serve(serving)
        finally:
            self._file.writing.release()

    def _write_uses(self, writer: sqlite3.Connection) -> Pending:
        pending = self._uses.pending()
        writes.write_uses(writer, pending)
        return pending

    def _trim(self, writer: sqlite3.Connection, sequence: int) -> None:
        writes.trim(
            writer,
            sequence,
            log_kept=_LOG_KEPT,
            every=_TRIM_EVERY,
            servings_kept=_SERVINGS_KEPT,
        )

    def renew(self, entry: Entry, expires_at: float) -> None:
        """See `Store.renew`."""
        self._same_process()
        with self._file.transaction() as writer:
            writes.renew(writer, entry.id, expires_at)

    def remove(self, entry: Entry) -> bool:
        """See `Store.remove`."""
        self._same_process()
        with self._file.transaction() as writer:
            rows = writer.execute(sqlite_text.BY_ID, (entry.id,)).fetchall()
            return writes.delete(writer, rows) > 0

    def report_bad(self, entry_id: str) -> bool:
        """See `Store.report_bad`."""
        self._same_process()
        with self._file.transaction() as writer:
            written = self._write_uses(writer)
            writer.execute(sqlite_text.MARK_BAD, (entry_id,))
            writer.execute(sqlite_text.MARK_BAD_BACK, (entry_id,))
            rows = writer.execute(sqlite_text.BY_ID, (entry_id,)).fetchall()
            gone = writes.delete(writer, rows)
        self._uses.written(written)
        return gone > 0

    def invalidate(self, selector: Selector) -> int:
        """See `Store.invalidate`."""
        self._same_process()
        where = sqlite_text.selecting(selector)
        away = sqlite_text.selecting(selector, suspended=True)
        with self._file.transaction() as writer:
            writes.end(writer, writer.execute(away.statement, away.values) if away else [])
            rows = writer.execute(where.statement, where.values).fetchall() if where else []
            marked = writes.mark(writer, rows, str(selector))
            self._trim(writer, writes.log_change(writer, selector))
            return marked

    def clear(self, scope: str) -> int:
        """See `Store.clear`."""
        self._same_process()
        with self._file.transaction() as writer:
            rows = writer.execute(sqlite_text.BY_SCOPE, (scope,)).fetchall()
            gone = writes.delete(writer, rows)
            self._trim(writer, writes.log_change(writer, Selector(scope=scope)))
            return gone

    def purge(self, now: float) -> int:
        """See `Store.purge`."""
        self._same_process()
        with self._file.transaction() as writer:
            rows = writer.execute(sqlite_text.PURGEABLE, (now,)).fetchall()
            return writes.delete(writer, rows)

    # -- facts, counters, health -------------------------------------------------------------------

    def claim(self, name: str, value: str) -> str:
        """See `Store.claim`."""
        self._same_process()
        with self._file.transaction() as writer:
            writer.execute(sqlite_text.CLAIM, (name, value))
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
            return dict(self._file.reader.execute(sqlite_text.TALLIES))

    def stats(self, scope: str | None = None) -> StoreStats:
        """See `Store.stats`."""
        self._same_process()
        if self._uses:
            self.write_uses()
        with self._file.reading, translated():
            row = self._file.reader.execute(sqlite_text.STATS, (scope,)).fetchone()
        entries, vectors, answer_bytes, hits, invalidated = row
        return StoreStats(
            entries=entries,
            vectors=vectors,
            answer_bytes=answer_bytes,
            hits=hits,
            invalidated=invalidated,
        )

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
