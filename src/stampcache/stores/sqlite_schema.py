"""The tables of a SQLite store, and the numbered steps that bring a file of any older schema to them.

All tables carry the prefix ``stampcache_``, so that the file may hold other tables: nothing here ever
touches those. All steps that a file lacks are made in one transaction. A step uses nothing of the store
as it is now, so that it does for ever what it did when it was new.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from stampcache.errors import ConfigError

_FIRST_TABLES = """
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
    """
# The column and the table that get new names are what an older version reads and writes: a process of
# it that still has the file open knows no marks, and must fail rather than serve an invalidated entry.
_MARKS_AND_DEPENDENCIES = """
    ALTER TABLE stampcache_entries RENAME COLUMN sequence TO changed;
    ALTER TABLE stampcache_entries ADD COLUMN invalidated TEXT NOT NULL DEFAULT '';
    ALTER TABLE stampcache_entries ADD COLUMN expires_at REAL;
    CREATE INDEX stampcache_entries_invalidated ON stampcache_entries (changed)
        WHERE invalidated <> '';
    CREATE INDEX stampcache_entries_expires ON stampcache_entries (expires_at)
        WHERE expires_at IS NOT NULL;
    DROP TABLE stampcache_evidence;
    CREATE TABLE stampcache_dependencies (
        entry INTEGER NOT NULL REFERENCES stampcache_entries (id) ON DELETE CASCADE,
        corpus TEXT NOT NULL,
        source TEXT NOT NULL,
        chunk TEXT NOT NULL
    );
    CREATE INDEX stampcache_dependencies_entry ON stampcache_dependencies (entry);
    CREATE INDEX stampcache_dependencies_source ON stampcache_dependencies (corpus, source);
    CREATE INDEX stampcache_dependencies_only_source ON stampcache_dependencies (source);
    CREATE INDEX stampcache_dependencies_chunk ON stampcache_dependencies (chunk, corpus);
"""

# The renamed column is what an older version reads of the log: a process of it knows nothing of writes
# to watched corpora, and must fail rather than keep an answer that was made before one.
_CORPORA = """
    ALTER TABLE stampcache_log RENAME COLUMN selector TO change;
    CREATE TABLE stampcache_corpora (
        corpus TEXT PRIMARY KEY,
        problem TEXT NOT NULL DEFAULT '',
        heard_at REAL NOT NULL,
        silence_s REAL,
        chunks INTEGER NOT NULL DEFAULT 0,
        complete INTEGER NOT NULL DEFAULT 0,
        doubted INTEGER NOT NULL DEFAULT 0,
        swept_at REAL,
        checked INTEGER NOT NULL DEFAULT 0,
        drifted INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE stampcache_intents (
        id TEXT PRIMARY KEY,
        corpus TEXT NOT NULL,
        body BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE stampcache_chunks (
        id INTEGER PRIMARY KEY,
        corpus TEXT NOT NULL,
        chunk TEXT NOT NULL,
        source TEXT NOT NULL,
        digest TEXT NOT NULL,
        vector BLOB NOT NULL,
        sequence INTEGER NOT NULL,
        UNIQUE (corpus, chunk)
    );
    CREATE INDEX stampcache_chunks_sequence ON stampcache_chunks (corpus, sequence);
    CREATE INDEX stampcache_chunks_vector ON stampcache_chunks (corpus, substr(vector, 1, 16));
    CREATE TRIGGER stampcache_chunk_added AFTER INSERT ON stampcache_chunks
        BEGIN UPDATE stampcache_corpora SET chunks = chunks + 1 WHERE corpus = new.corpus; END;
    CREATE TRIGGER stampcache_chunk_gone AFTER DELETE ON stampcache_chunks
        BEGIN UPDATE stampcache_corpora SET chunks = chunks - 1 WHERE corpus = old.corpus; END;
    CREATE TABLE stampcache_reaches (
        entry INTEGER PRIMARY KEY REFERENCES stampcache_entries (id) ON DELETE CASCADE,
        corpus TEXT NOT NULL,
        settings TEXT NOT NULL,
        body BLOB NOT NULL,
        differences BLOB,
        changed INTEGER NOT NULL
    );
    CREATE INDEX stampcache_reaches_changed ON stampcache_reaches (corpus, changed);
    CREATE INDEX stampcache_reaches_settings ON stampcache_reaches (corpus, settings);
"""

_JOURNAL = """
    ALTER TABLE stampcache_entries ADD COLUMN doubtful_at REAL;
    ALTER TABLE stampcache_entries ADD COLUMN confirmed_at REAL;
    CREATE TABLE stampcache_sources (
        corpus TEXT NOT NULL,
        source TEXT NOT NULL,
        announced INTEGER NOT NULL,
        changes INTEGER NOT NULL,
        seconds REAL NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (corpus, source, announced)
    ) WITHOUT ROWID;
    CREATE TABLE stampcache_verdicts (
        id INTEGER PRIMARY KEY,
        entry_id TEXT NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX stampcache_verdicts_entry ON stampcache_verdicts (entry_id);
"""

_SHELVES = """
    CREATE TABLE stampcache_shelves (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        shelf TEXT NOT NULL,
        key TEXT NOT NULL,
        tenant TEXT NOT NULL,
        body BLOB NOT NULL,
        UNIQUE (shelf, key)
    );
    CREATE INDEX stampcache_shelves_order ON stampcache_shelves (shelf, id);
    CREATE INDEX stampcache_shelves_tenant ON stampcache_shelves (tenant);
"""
# What was made before encryption is in plain, and says so from now on. A verdict on an entry that is gone
# quotes a question, and nobody could say whose.
_TENANTS = """
    CREATE INDEX stampcache_entries_tenant ON stampcache_entries (tenant);
    ALTER TABLE stampcache_servings ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
    UPDATE stampcache_servings SET tenant = coalesce((SELECT entries.tenant
        FROM stampcache_entries AS entries
        WHERE entries.partition = stampcache_servings.partition LIMIT 1), '');
    ALTER TABLE stampcache_bad ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
    UPDATE stampcache_bad SET tenant = coalesce((SELECT entries.tenant
        FROM stampcache_entries AS entries
        WHERE entries.partition = stampcache_bad.partition LIMIT 1), '');
    ALTER TABLE stampcache_verdicts ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
    UPDATE stampcache_verdicts SET tenant = coalesce((SELECT entries.tenant
        FROM stampcache_entries AS entries
        WHERE entries.entry_id = stampcache_verdicts.entry_id), '');
    DELETE FROM stampcache_verdicts WHERE tenant = '';
    INSERT INTO stampcache_counts VALUES ('forgets', 0), ('rewrite_due', 0);
    INSERT OR IGNORE INTO stampcache_facts SELECT 'encryption', 'none'
        FROM stampcache_facts WHERE name = 'schema';
"""
_DUE = """
    CREATE TABLE stampcache_due (
        entry INTEGER PRIMARY KEY REFERENCES stampcache_entries (id) ON DELETE CASCADE,
        turn INTEGER NOT NULL,
        scope BLOB NOT NULL,
        doubtful_at REAL NOT NULL,
        early INTEGER NOT NULL,
        served INTEGER NOT NULL,
        waiting INTEGER NOT NULL DEFAULT 1,
        owner TEXT NOT NULL DEFAULT '',
        taken_at REAL
    );
    CREATE INDEX stampcache_due_turn ON stampcache_due (turn) WHERE waiting = 1;
    CREATE TABLE stampcache_work (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        at REAL NOT NULL,
        period_s REAL NOT NULL
    );
"""


class _Cited(Struct, frozen=True):
    """What a body of schema 1 says of a piece of evidence; like all that a step uses, never changed."""

    corpus: str = ""
    source: str = ""
    chunk: str = ""


class _Body(Struct, frozen=True):
    """What a body of schema 1 says that stands in columns and rows since."""

    evidence: tuple[_Cited, ...] | None
    expires_at: float | None


def _copy_out_of_bodies(connection: sqlite3.Connection) -> None:
    """Give the entries of schema 1 what stands beside their bodies since: lifetime and dependencies."""
    ids = [row[0] for row in connection.execute("SELECT id FROM stampcache_entries").fetchall()]
    for row in ids:
        body = _readable(connection, row)
        if body is None:
            continue
        values = (body.expires_at, row)
        connection.execute("UPDATE stampcache_entries SET expires_at = ? WHERE id = ?", values)
        parts = set(body.evidence or ())
        if body.evidence == ():  # what cites nothing depends on everything
            parts.add(_Cited())
        connection.executemany(
            "INSERT INTO stampcache_dependencies (entry, corpus, source, chunk) VALUES (?, ?, ?, ?)",
            [(row, part.corpus, part.source, part.chunk) for part in parts],
        )


def _readable(connection: sqlite3.Connection, row: int) -> _Body | None:
    """Read a body of schema 1: four bytes of magic, eight of checksum, MessagePack."""
    query = "SELECT body FROM stampcache_entries WHERE id = ?"
    (raw,) = connection.execute(query, (row,)).fetchone()
    checksum = hashlib.blake2b(raw[12:], digest_size=8, person=b"entry").digest()
    if raw[:12] != b"SCE\x01" + checksum:
        return None  # dropped and counted when its own question fetches it
    try:
        return msgspec.msgpack.decode(raw[12:], type=_Body)
    except msgspec.MsgspecError:
        return None  # as above


class _Step(Struct, frozen=True):
    """From one schema to the next: statements, then what needs more than statements."""

    script: str
    then: Callable[[sqlite3.Connection], None] | None = None


_STEPS = (
    _Step(_FIRST_TABLES),
    _Step(_MARKS_AND_DEPENDENCIES, _copy_out_of_bodies),
    _Step(_CORPORA),
    _Step(_JOURNAL),
    _Step(_SHELVES),
    _Step(_TENANTS),
    _Step(_DUE),
)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Bring the tables to this version, one numbered step at a time, in one transaction.

    Raises:
        ConfigError: the file is of a newer version, or its tables are none of ours.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in _STEPS[_schema(connection, path) :]:
            for statement in _statements(step.script):
                connection.execute(statement)
            if step.then is not None:
                step.then(connection)
        connection.execute(
            "INSERT OR REPLACE INTO stampcache_facts VALUES ('schema', ?)", (str(len(_STEPS)),)
        )
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _schema(connection: sqlite3.Connection, path: Path) -> int:
    """Return the number of the schema that the file has; 0 for one without our tables."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS stampcache_facts"
        " (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
    )
    row = connection.execute("SELECT value FROM stampcache_facts WHERE name = 'schema'").fetchone()
    version = int(row[0]) if row and row[0].isdecimal() else 0
    if row and not version:
        raise ConfigError(f"{path} has the schema {row[0]!r}, which is none of ours; move it away.")
    if version > len(_STEPS):
        raise ConfigError(
            f"{path} was written by a newer stampcache (schema {version}, this one knows"
            f" {len(_STEPS)}); upgrade stampcache or name another file."
        )
    return version


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements; ``executescript`` would commit the transaction it runs in."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
