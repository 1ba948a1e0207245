"""The SQLite store: the truth in one file, shared by the processes of one machine (ADR 0009).

Entries, vectors, dependencies and the change log are written in one transaction. This file has the verbs;
what they read is in `sqlite_replica`, what they write in `sqlite_writes`. A ``put`` returns after the
commit is on disk.
"""

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stampcache.corpora import Reach, Standing
from stampcache.errors import CodecError
from stampcache.model import Candidate, Entry, Selector, Vector
from stampcache.ports import AsyncStore, Forgotten, Receipt, StoreStats
from stampcache.stores import sqlite_text
from stampcache.stores import sqlite_writes as writes
from stampcache.stores.aio import ThreadedStore
from stampcache.stores.keys import EncryptionKey, open_codec
from stampcache.stores.pending_uses import Pending, Serving, Uses
from stampcache.stores.selection import unmarked
from stampcache.stores.sqlite_corpora import SqliteCorpora
from stampcache.stores.sqlite_file import SqliteFile, translated
from stampcache.stores.sqlite_journal import SqliteJournal
from stampcache.stores.sqlite_replica import SqliteReplica
from stampcache.stores.sqlite_shelf import SqliteShelf
from stampcache.stores.telling import Listeners

CAPACITY = 100_000
NEAR_CAPACITY = 100_000
VECTOR_CAPACITY = 200_000
_LOG_KEPT = 20_000
_TRIM_EVERY = 1_000
_SERVINGS_KEPT = 100_000


class SqliteStore:
    """Entries in one SQLite file. ``capacity`` bounds the file, ``near_capacity`` this process's copy.

    With an ``encryption_key`` questions and answers are unreadable in the file (ADR 0027).
    """

    def __init__(
        self,
        path: str | Path,
        *,
        capacity: int = CAPACITY,
        near_capacity: int = NEAR_CAPACITY,
        vector_capacity: int = VECTOR_CAPACITY,
        timeout_s: float = 5.0,
        encryption_key: EncryptionKey | None = None,
    ) -> None:
        self.url = f"sqlite:///{path}"
        self._capacity = capacity
        self._uses = Uses()
        self._listeners = Listeners()
        self._file = SqliteFile(Path(path), timeout_s=timeout_s)
        try:
            opened = open_codec(encryption_key, name=self.url, claim=self._claim, fact=self._fact)
        except BaseException:
            self._file.close()
            raise
        self._codec, self._secret = opened.codec, opened.secret
        self._replica = SqliteReplica(
            self._file,
            self._codec,
            near_capacity=near_capacity,
            vector_capacity=vector_capacity,
            forgotten=self._let_go,
        )
        self.journal = SqliteJournal(self._file, self._codec, self._same_process)
        self.corpora = SqliteCorpora(self._file, self._codec, self._same_process, self._trim)
        self.shelf = SqliteShelf(self._file, self._codec, self._same_process)

    # -- reading -----------------------------------------------------------------------------------

    def fetch(self, partition: str, key: str) -> Entry | None:
        """See `Store.fetch`."""
        if os.getpid() != self._file.pid:  # here without a call, which is a part of a hit's time
            self._same_process()
        try:
            return self._replica.fetch((partition, key))
        except CodecError:
            with self._file.transaction() as writer:
                writes.delete_damaged(writer, self._codec, (partition, key))
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
        coded = None if vector is None else self._codec.encode_vector(vector, entry.place)
        body = writes.Body(self._codec.encode(entry), coded, reach)
        with self._file.transaction() as writer:
            change = writes.fenced(writer, self._codec, entry, fence, reach)
            if change:
                return Receipt(stored=False, change=change)
            written = self._write_uses(writer)
            sequence = writes.log(writer, entry.place)
            writes.write(writer, self._codec, entry, body, sequence)
            evicted = writes.evict(writer, self._capacity)
            self._trim(writer, sequence)
        self._uses.written(written)
        self._replica.keep_own(entry, sequence)
        return Receipt(stored=True, evicted=evicted)

    def fenced(self, entry: Entry, fence: int) -> str:
        """See `Store.fenced`."""
        self._same_process()
        with self._file.reading, translated(), self._file.snapshot() as reader:
            return writes.fenced(reader, self._codec, entry, fence, None)

    def touch(self, entry: Entry, asked: str) -> None:
        """See `Store.touch`. Uses are written with the next `put`; a semantic serving at once."""
        if asked != entry.identity.key:
            self._note_serving((entry.id, *entry.place, asked, entry.identity.tenant))
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
            marked = writes.mark(writer, self._codec, rows, str(selector))
            self._trim(writer, writes.log_change(writer, self._codec, selector))
            return marked

    def clear(self, scope: str) -> int:
        """See `Store.clear`."""
        self._same_process()
        with self._file.transaction() as writer:
            rows = writer.execute(sqlite_text.BY_SCOPE, (scope,)).fetchall()
            gone = writes.delete(writer, rows)
            change = Selector(scope=scope)
            self._trim(writer, writes.log_change(writer, self._codec, change))
            return gone

    def forget(self, tenant: str) -> Forgotten:
        """See `Store.forget`. It writes the whole file anew, which takes seconds per gigabyte."""
        self._same_process()
        if not tenant:  # what is nobody's
            return Forgotten()
        with self._file.transaction() as writer:
            written = self._write_uses(writer)
            forgotten = writes.forget(writer, tenant)
            (due,) = writer.execute(sqlite_text.REWRITE_DUE).fetchone()
        self._uses.written(written)
        self._file.rewrite()
        with self._file.transaction() as writer:
            writer.execute(sqlite_text.REWRITTEN, (due,))
        with self._file.reading:
            self._replica.flush()
        self._let_go(tenant)
        return forgotten

    def _let_go(self, tenant: str = "") -> None:
        self.corpora.let_go()
        self._listeners.tell(tenant)

    def when_forgotten(self, then: Callable[[str], None]) -> None:
        """See `stampcache.ports.Telling`."""
        self._listeners.add(then)

    def purge(self, now: float) -> int:
        """See `Store.purge`."""
        self._same_process()
        with self._file.transaction() as writer:
            rows = writer.execute(sqlite_text.PURGEABLE, (now,)).fetchall()
            return writes.delete(writer, rows)

    # -- facts, counters, health -------------------------------------------------------------------

    def claim(self, name: str, value: str) -> str:
        """See `Store.claim`. The secret of tenants is kept as hidden as what it protects."""
        self._same_process()
        if name != "secret" or self._secret is None:
            return self._claim(name, value)
        self._claim(name, "hidden")  # that it is in use, for who looks into the file
        return self._secret

    def _claim(self, name: str, value: str) -> str:
        with self._file.transaction() as writer:
            writer.execute(sqlite_text.CLAIM, (name, value))
            row = writer.execute(sqlite_text.FACT, (name,)).fetchone()
            return str(row[0])

    def _fact(self, name: str) -> str | None:
        with self._file.reading, translated():
            row = self._file.reader.execute(sqlite_text.FACT, (name,)).fetchone()
        return None if row is None else str(row[0])

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
            (due,) = reader.execute(sqlite_text.REWRITE_DUE).fetchone()
            for partition, key, body in reader.execute(sqlite_text.BODIES):
                try:
                    self._codec.decode(body, (partition, key))
                except CodecError:
                    damaged += 1
        found = []
        if integrity != "ok":
            found.append(
                f"SQLite says: {integrity}. Move the file away and let the cache start anew."
            )
        if due:
            found.append(
                "A tenant was forgotten, but its bytes may still be in the file: forget it again."
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
