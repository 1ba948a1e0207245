"""A file that an older stampcache wrote opens, and its entries have what was added since."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from stampcache.corpora import Change, Committed
from stampcache.errors import CodecError, ConfigError
from stampcache.model import Entry, Evidence, Selector, Stamps, stamp_values
from stampcache.stores import sqlite_schema
from stampcache.stores.sqlite import SqliteStore
from stampcache.stores.sqlite_survey import survey
from stampcache.testing.contract import NOW, make_entry, unit
from stampcache.testing.samples_corpora import A, B, C, citing, reach, write

LATEST = "7"

SCHEMA_1 = """
    CREATE TABLE stampcache_facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
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
    INSERT INTO stampcache_facts VALUES ('schema', '1'), ('secret', 'theirs');
    INSERT INTO stampcache_tallies VALUES ('hit.exact', 7);
"""
FIELDS_OF_1 = ("id", "identity", "question", "answer", "signature", "evidence", "stamps")
TIMES_OF_1 = ("created_at", "expires_at")


def body_of_1(entry: Entry) -> bytes:
    fields = msgspec.to_builtins(entry, builtin_types=(bytes,))
    body = msgspec.msgpack.encode({name: fields[name] for name in FIELDS_OF_1 + TIMES_OF_1})
    checksum = hashlib.blake2b(body, digest_size=8, person=b"entry").digest()
    return b"SCE\x01" + checksum + body


def write_1(connection: sqlite3.Connection, entry: Entry, number: int) -> None:
    """Write an entry and its evidence as schema 1 had them."""
    log = "INSERT INTO stampcache_log (partition, key) VALUES (?, ?)"
    sequence = connection.execute(log, entry.place).lastrowid
    who = (entry.id, entry.identity.scope, entry.identity.tenant)
    vector = unit(1, number).tobytes()
    row = (number, *entry.place, *who, *stamp_values(entry.stamps), body_of_1(entry), vector)
    holes = ", ".join("?" * (len(row) + 4))
    connection.execute(
        f"INSERT INTO stampcache_entries VALUES ({holes})", (*row, 6, sequence, number, 2)
    )
    for one in entry.evidence or ():
        cited = (number, one.corpus, one.source, one.chunk)
        connection.execute("INSERT INTO stampcache_evidence VALUES (?, ?, ?, ?)", cited)


CITED = (Evidence(corpus="c", source="a.md", chunk="1", text="x").sealed(),)
ENTRIES = (
    make_entry("cites", evidence=CITED, stamps=Stamps(model="m"), expires_at=NOW + 0.5),
    make_entry("cites nothing", evidence=()),
    make_entry("unknown", evidence=None),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA_1)
        for number, entry in enumerate(ENTRIES, 1):
            write_1(connection, entry, number)
    return path


def test_a_file_of_schema_1_keeps_its_entries(path: Path) -> None:
    store = SqliteStore(path)
    for entry in ENTRIES:
        assert store.fetch(*entry.place) == entry
    assert len(store.nearest("p", unit(1, 1), 5, asked="x", now=NOW)) == 3
    sizes = store.stats()
    assert (sizes.entries, sizes.vectors, sizes.hits, sizes.invalidated) == (3, 3, 6, 0)
    assert store.claim("secret", "ours") == "theirs"
    assert store.tallies() == {"hit.exact": 7}
    assert not store.problems()
    store.close()


def test_an_entry_of_schema_1_is_touched_by_what_it_depends_on(path: Path) -> None:
    store = SqliteStore(path)
    assert store.invalidate(Selector(corpus="d", source="b.md")) == 1, "what cites nothing"
    assert store.invalidate(Selector(corpus="c", source="a.md")) == 1
    marks = [entry and entry.invalidated for entry in (store.fetch(*e.place) for e in ENTRIES)]
    assert marks == [
        "source 'a.md' of corpus 'c' changed",
        "source 'b.md' of corpus 'd' changed",
        "",
    ]
    store.close()


def test_an_entry_of_schema_1_ends_when_it_should(path: Path) -> None:
    store = SqliteStore(path)
    assert store.purge(NOW + 0.25) == 0
    assert store.purge(NOW + 0.5) == 1
    assert store.fetch(*ENTRIES[0].place) is None
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT body, sequence FROM stampcache_entries WHERE partition = 'p' AND key = 'cites'",
        "INSERT INTO stampcache_evidence VALUES (1, 'c', 's', '1')",
    ],
)
def test_an_older_process_that_has_the_file_open_serves_and_stores_nothing(
    path: Path, statement: str
) -> None:
    with closing(sqlite3.connect(path)) as older:
        older.execute(statement)
        older.rollback()
        SqliteStore(path).close()
        with pytest.raises(sqlite3.OperationalError, match="no such"):
            older.execute(statement)


def test_a_damaged_entry_of_schema_1_does_not_keep_the_file_from_opening(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE stampcache_entries SET body = x'00' WHERE id = 1")
    store = SqliteStore(path)
    assert store.problems() == ["Damaged entries: 1; each is dropped when it is asked for."]
    with pytest.raises(CodecError):
        store.fetch(*ENTRIES[0].place)
    assert store.fetch(*ENTRIES[0].place) is None
    assert store.fetch(*ENTRIES[1].place) == ENTRIES[1]
    store.close()


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("power failed")

    monkeypatch.setattr("stampcache.stores.sqlite_schema._readable", fail)
    with pytest.raises(RuntimeError, match="power failed"):
        SqliteStore(path)
    with survey(path) as seen:
        assert seen.schema == "1"
    monkeypatch.undo()
    test_a_file_of_schema_1_keeps_its_entries(path)


def test_a_step_does_not_change_with_what_the_store_does_now(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a step goes through what may change")

    for name in ("sqlite_writes.depend", "codec.decode"):
        monkeypatch.setattr(f"stampcache.stores.{name}", fail)
    monkeypatch.setattr("stampcache.stores.sqlite_text.DEPEND", "no SQL")
    monkeypatch.setattr(Entry, "dependencies", property(fail))
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as connection:
        parts = connection.execute(
            "SELECT * FROM stampcache_dependencies ORDER BY entry"
        ).fetchall()
        ends = connection.execute(
            "SELECT expires_at FROM stampcache_entries ORDER BY id"
        ).fetchall()
    assert parts == [(1, "c", "a.md", "1"), (2, "", "", "")]
    assert ends == [(NOW + 0.5,), (None,), (None,)]


def test_a_survey_reads_both_schemas_without_changing_them(path: Path) -> None:
    def told() -> tuple[object, ...]:
        with survey(path) as seen:
            counts = (seen.entries_in("p"), sum(one.entries for one in seen.stamps("s")))
            return seen.schema, counts, [entry.id for entry in seen.latest("s", 9)]

    every = [entry.id for entry in reversed(ENTRIES)]
    assert told() == told() == ("1", (3, 3), every)
    store = SqliteStore(path)
    assert told() == (LATEST, (3, 3), every)
    renewed = replace(ENTRIES[0], expires_at=NOW + 7)
    store.renew(ENTRIES[0], NOW + 7)
    store.invalidate(Selector(corpus="d"))
    assert told() == (LATEST, (2, 2), [ENTRIES[2].id, ENTRIES[0].id]), "what holds"
    with survey(path) as seen:
        assert list(seen.latest("s", 9)) == [ENTRIES[2], renewed]
    store.close()


def test_what_an_older_file_kept_of_a_tenant_is_forgotten_too(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = ENTRIES[2]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with monkeypatch.context() as patch:
            patch.setattr(sqlite_schema, "_STEPS", sqlite_schema._STEPS[:4])
            sqlite_schema.migrate(connection, path)
        place = (entry.id, *entry.place, "asked")
        columns = "(entry_id, partition, key, asked)"
        connection.execute(f"INSERT INTO stampcache_servings {columns} VALUES (?, ?, ?, ?)", place)
        connection.execute("INSERT INTO stampcache_bad VALUES (?, ?, 'bad')", entry.place)
        verdict = "INSERT INTO stampcache_verdicts (entry_id, body) VALUES (?, ?)"
        connection.executemany(verdict, [(entry.id, b"quoted words"), ("gone", b"nobody's")])
    with pytest.raises(ConfigError, match="kept in plain"):
        SqliteStore(path, encryption_key=bytes(32))
    store = SqliteStore(path)
    assert store.forget("t").entries == 3
    for table, left in (("servings", 0), ("bad", 0), ("verdicts", 0)):
        rows = store._file.reader.execute(f"SELECT count(*) FROM stampcache_{table}")
        assert rows.fetchone() == (left,)
    store.close()
    assert b"quoted words" not in path.read_bytes()


# -- schema 2 ----------------------------------------------------------------------------------------

CHANGED = Selector(corpus="c", source="a.md")
"""What the old version was told; it marked the entry that cites it, and logged the change."""

LOG_OF_2 = "INSERT INTO stampcache_log (selector) VALUES (?)"
CHANGES_OF_2 = (
    "SELECT selector FROM stampcache_log WHERE sequence > 0 AND selector IS NOT NULL"
    " ORDER BY sequence"
)


def as_map(selector: Selector) -> bytes:
    fields = {name: getattr(selector, name) for name in Selector.__struct_fields__}
    return msgspec.msgpack.encode(fields)


@pytest.fixture
def path_2(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of schema 2: its steps made it what it was, and its statements filled it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with monkeypatch.context() as patch:
            patch.setattr(sqlite_schema, "_STEPS", sqlite_schema._STEPS[:2])
            sqlite_schema.migrate(connection, path)
        log = "INSERT INTO stampcache_log (partition, key) VALUES (?, ?)"
        sequence = connection.execute(log, ENTRIES[0].place).lastrowid
        connection.execute(
            "UPDATE stampcache_entries SET invalidated = ?, changed = ?, vector = NULL WHERE id = 1",
            (str(CHANGED), sequence),
        )
        connection.execute("DELETE FROM stampcache_dependencies WHERE entry = 1")
        connection.execute(LOG_OF_2, (as_map(CHANGED),))
    with survey(path) as seen:
        assert seen.schema == "2"
    return path


def test_a_file_of_schema_2_keeps_its_entries_marks_and_log(path_2: Path) -> None:
    store = SqliteStore(path_2)
    first, *others = ENTRIES
    assert store.fetch(*first.place) == replace(first, invalidated=str(CHANGED))
    assert [store.fetch(*entry.place) for entry in others] == others
    assert len(store.nearest("p", unit(1, 1), 5, asked="x", now=NOW)) == 2
    assert (store.stats().entries, store.stats().invalidated) == (2, 1)
    late = make_entry("late", evidence=first.evidence)
    assert store.put(late, None, 0).change == str(CHANGED)
    assert store.put(late, None, store.sequence()).stored
    assert not store.corpora.standings()
    assert store.corpora.chunks("c", None) == {}
    assert not store.problems()
    store.close()


def test_a_file_of_schema_2_is_watched_from_now_on(path_2: Path) -> None:
    store = SqliteStore(path_2)
    write(store, Change(emptied=True), corpus="c")
    write(store, Change(added=(A, B)), corpus="c")
    entry = citing(A, B, key="new", corpus="c")
    assert store.put(entry, unit(1, 0), store.sequence(), reach(A, B, corpus="c")).stored
    assert write(store, Change(added=(C,)), corpus="c") == Committed(stale=1)
    assert write(store, Change(removed=("c",)), corpus="c") == Committed(restored=1)
    assert store.fetch(*entry.place) == entry
    store.close()


@pytest.mark.parametrize("statement", [CHANGES_OF_2, LOG_OF_2.replace("?", "x'80'")])
def test_a_process_of_schema_2_that_has_the_file_open_stores_nothing_more(
    path_2: Path, statement: str
) -> None:
    """It would keep what was made before a write to a watched corpus, which it cannot read."""
    with closing(sqlite3.connect(path_2)) as older:
        older.execute(statement)
        older.rollback()
        store = SqliteStore(path_2)
        write(store, Change(added=(A,)), corpus="c")
        with pytest.raises(sqlite3.OperationalError, match=r"no such column|has no column"):
            older.execute(statement)
        store.close()


def test_a_newer_file_is_refused_by_whoever_knows_only_schema_2(
    path_2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SqliteStore(path_2).close()
    monkeypatch.setattr(sqlite_schema, "_STEPS", sqlite_schema._STEPS[:2])
    with pytest.raises(ConfigError, match=rf"newer stampcache \(schema {LATEST}"):
        SqliteStore(path_2)


def test_a_trace_is_never_read_as_a_selector(path: Path) -> None:
    store = SqliteStore(path)
    write(store, Change(added=(A,)), corpus="c")
    (raw,) = store._file.reader.execute(
        "SELECT change FROM stampcache_log WHERE change IS NOT NULL"
    ).fetchone()
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(raw, type=Selector)
    store.close()
