"""The SQLite file of a store: opening it, its tables and migrations, and its errors in our words.

All tables carry the prefix ``stampcache_``, so that the file may hold other tables: nothing here ever
touches those. Connections belong to one process; after a fork the child opens its own.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stampcache.errors import ConfigError, StoreError

_MIGRATIONS = (
    """
    CREATE TABLE stampcache_entries (
        id INTEGER PRIMARY KEY,
        partition TEXT NOT NULL,
        key TEXT NOT NULL,
        entry_id TEXT NOT NULL UNIQUE,
        scope TEXT NOT NULL,
        tenant TEXT NOT NULL,
        model TEXT NOT NULL,
        tokenizer TEXT NOT NULL,
        embedder TEXT NOT NULL,
        prompt TEXT NOT NULL,
        indexed TEXT NOT NULL,
        body BLOB NOT NULL,
        vector BLOB,
        answer_bytes INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        used INTEGER NOT NULL,
        hits INTEGER NOT NULL DEFAULT 0,
        UNIQUE (partition, key)
    );
    CREATE INDEX stampcache_entries_used ON stampcache_entries (used);
    CREATE INDEX stampcache_entries_scope ON stampcache_entries (scope);
    CREATE TABLE stampcache_evidence (
        entry INTEGER NOT NULL REFERENCES stampcache_entries (id) ON DELETE CASCADE,
        corpus TEXT NOT NULL,
        source TEXT NOT NULL,
        chunk TEXT NOT NULL
    );
    CREATE INDEX stampcache_evidence_entry ON stampcache_evidence (entry);
    CREATE INDEX stampcache_evidence_source ON stampcache_evidence (corpus, source);
    CREATE INDEX stampcache_evidence_only_source ON stampcache_evidence (source);
    CREATE INDEX stampcache_evidence_chunk ON stampcache_evidence (chunk);
    CREATE TABLE stampcache_log (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        partition TEXT,
        key TEXT,
        selector BLOB
    );
    CREATE INDEX stampcache_log_selector ON stampcache_log (sequence) WHERE selector IS NOT NULL;
    CREATE TABLE stampcache_servings (
        id INTEGER PRIMARY KEY,
        entry_id TEXT NOT NULL,
        partition TEXT NOT NULL,
        key TEXT NOT NULL,
        asked TEXT NOT NULL,
        UNIQUE (entry_id, asked)
    );
    CREATE TABLE stampcache_bad (
        partition TEXT NOT NULL,
        key TEXT NOT NULL,
        other TEXT NOT NULL,
        PRIMARY KEY (partition, key, other)
    ) WITHOUT ROWID;
    CREATE TABLE stampcache_tallies (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE stampcache_counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO stampcache_counts VALUES ('entries', 0), ('log_floor', 0);
    CREATE TRIGGER stampcache_entry_added AFTER INSERT ON stampcache_entries
        BEGIN UPDATE stampcache_counts SET value = value + 1 WHERE name = 'entries'; END;
    CREATE TRIGGER stampcache_entry_gone AFTER DELETE ON stampcache_entries
        BEGIN UPDATE stampcache_counts SET value = value - 1 WHERE name = 'entries'; END;
    """,
)


@contextmanager
def translated() -> Iterator[None]:
    """Raise what SQLite says as a `StoreError` with one sentence that says what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise store_error(error) from error


def store_error(error: Exception) -> StoreError:
    """Return the error in our words."""
    said = str(error)
    mend = "run `stampcache doctor` on it"
    for sign, advice in (
        ("full", "free disk space or lower capacity="),
        ("locked", "another process holds it for long; see which one writes"),
        ("readonly", "give this user write permission to the file and its folder"),
        ("unable to open", "check that its folder exists and may be written"),
        ("malformed", "move the file away and let the cache start anew"),
        ("not a database", "move the file away and let the cache start anew"),
    ):
        if sign in said:
            mend = advice
            break
    return StoreError(f"The SQLite store failed ({said}): {mend}.")


class SqliteFile:
    """Three connections to one file: to read, to write durably, and to note what may be lost.

    ``reading`` and ``writing`` are the locks of the first two (a connection serves one thread at a
    time); the third is used under ``writing``. In WAL mode readers do not wait for writers.
    """

    def __init__(self, path: Path, *, timeout_s: float) -> None:
        self.path = path
        self.reading = threading.Lock()
        self.writing = threading.Lock()
        self._timeout_s = timeout_s
        self._closed = False
        self._open()

    def check_process(self) -> bool:
        """Open anew in a forked child, which must not use its parent's connections; tell if it did.

        Raises:
            StoreError: the store was closed.
        """
        if self._closed:
            raise StoreError("The SQLite store is closed; open the cache again.")
        if os.getpid() == self.pid:
            return False
        self.reading = threading.Lock()
        self.writing = threading.Lock()
        self._inherited = (self.reader, self.writer, self.noting)  # never closed: the parent's
        del self.reader, self.writer, self.noting
        self._open()
        return True

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the durable connection inside one immediate transaction."""
        with self.writing, translated():
            self.writer.execute("BEGIN IMMEDIATE")
            try:
                yield self.writer
                self.writer.execute("COMMIT")
            except BaseException:
                if self.writer.in_transaction:  # a full disk has already rolled it back
                    self.writer.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close all connections; closing twice does nothing."""
        if not self._closed:
            self._closed, self.pid = True, -1  # which no process has: every verb looks here first
            with self.reading, self.writing:
                for connection in (self.reader, self.noting, self.writer):
                    connection.close()

    def _open(self) -> None:
        try:
            self._open_all()
        except BaseException:
            for name in ("reader", "noting", "writer"):
                if name in vars(self):
                    vars(self)[name].close()
            raise

    def _open_all(self) -> None:
        try:
            self.writer = self._connect("FULL", self._timeout_s)
            _migrate(self.writer, self.path)
            self.reader = self._connect("FULL", self._timeout_s)
            self.versions = self.reader.cursor()  # kept: asked before every read
            self.noting = self._connect("NORMAL", 0.0)
            self.noting.execute("PRAGMA wal_autocheckpoint = 0")
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"Cannot open {self.path} as a cache. {store_error(error)}"
            ) from error
        self.pid = os.getpid()

    def _connect(self, synchronous: str, timeout_s: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=timeout_s, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the tables to this version, one numbered step at a time, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS stampcache_facts"
            " (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
        )
        row = connection.execute(
            "SELECT value FROM stampcache_facts WHERE name = 'schema'"
        ).fetchone()
        version = int(row[0]) if row and row[0].isdecimal() else 0
        if row and not version:
            raise ConfigError(
                f"{path} has the schema {row[0]!r}, which is none of ours; move it away."
            )
        if version > len(_MIGRATIONS):
            raise ConfigError(
                f"{path} was written by a newer stampcache (schema {version}, this one knows"
                f" {len(_MIGRATIONS)}); upgrade stampcache or name another file."
            )
        for step in _MIGRATIONS[version:]:
            for statement in _statements(step):
                connection.execute(statement)
        connection.execute(
            "INSERT OR REPLACE INTO stampcache_facts VALUES ('schema', ?)",
            (str(len(_MIGRATIONS)),),
        )
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements; ``executescript`` would commit the transaction it runs in."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
