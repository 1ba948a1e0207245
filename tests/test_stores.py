"""Both stores keep the contract, and SQLite agrees with memory on random histories."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stampcache.errors import StoreError
from stampcache.model import Selector
from stampcache.ports import Receipt, Store
from stampcache.stores import sqlite_text
from stampcache.stores.memory import MemoryStore
from stampcache.stores.sqlite import SqliteStore
from stampcache.stores.sqlite_text import selecting
from stampcache.testing.contract import NOW, StoreContract, make_entry, unit


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Iterator[Store]:
        store = MemoryStore()
        yield store
        store.close()

    @pytest.fixture
    def small_store(self) -> Store:
        return MemoryStore(capacity=3)


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = SqliteStore(tmp_path / "cache.db")
        yield store
        store.close()

    @pytest.fixture
    def small_store(self, tmp_path: Path) -> Iterator[Store]:
        store = SqliteStore(tmp_path / "small.db", capacity=3)
        yield store
        store.close()


class TestSqliteStoreWithoutNearCache(StoreContract):
    """A near-cache of one entry and one index: nearly everything is read from the file."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = SqliteStore(tmp_path / "cache.db", near_capacity=1, vector_capacity=1)
        yield store
        store.close()

    @pytest.fixture
    def small_store(self, tmp_path: Path) -> Iterator[Store]:
        path = tmp_path / "small.db"
        store = SqliteStore(path, capacity=3, near_capacity=1, vector_capacity=1)
        yield store
        store.close()


class TestEncryptedSqliteStore(StoreContract):
    """What is kept is hidden; nothing else is different."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = SqliteStore(tmp_path / "cache.db", near_capacity=1, encryption_key=bytes(32))
        yield store
        store.close()

    @pytest.fixture
    def small_store(self, tmp_path: Path) -> Iterator[Store]:
        store = SqliteStore(tmp_path / "small.db", capacity=3, encryption_key=bytes(32))
        yield store
        store.close()


class TestSqliteStoreThroughTwoConnections(StoreContract):
    """Every other verb goes through a second store on the same file, as from another process."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        first, second = SqliteStore(tmp_path / "c.db"), SqliteStore(tmp_path / "c.db")
        store = Alternating(first, second)
        yield store  # type: ignore[misc]  # a proxy by attribute has every verb of Store
        first.close()
        second.close()

    @pytest.fixture
    def small_store(self, tmp_path: Path) -> Iterator[Store]:
        path = tmp_path / "small.db"
        first, second = SqliteStore(path, capacity=3), SqliteStore(path, capacity=3)
        yield WritingThroughOne(first, second)  # type: ignore[misc]  # as above
        first.close()
        second.close()


class Alternating:
    """Hands each verb to the two stores in turn."""

    def __init__(self, *stores: SqliteStore) -> None:
        self._stores = stores
        self._turn = 0

    def __getattr__(self, verb: str) -> object:
        if verb == "close":
            return self._close
        if verb in ("touch", "stats"):  # uses wait in the process that noted them
            return getattr(self._stores[0], verb)
        self._turn += 1
        return getattr(self._stores[self._turn % len(self._stores)], verb)

    def _close(self) -> None:
        for store in self._stores:
            store.close()


class WritingThroughOne(Alternating):
    """As above, but one store writes: only it knows which uses it has noted."""

    def __getattr__(self, verb: str) -> object:
        return getattr(self._stores[0], verb) if verb == "put" else super().__getattr__(verb)


TOO_LATE = Receipt(stored=False, change="the change log no longer reaches back to the lookup")


def test_memory_refuses_a_fill_older_than_the_changes_it_remembers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stampcache.stores.memory_log._CHANGES_KEPT", 2)
    store = MemoryStore()
    for source in ("a", "b", "c"):
        store.invalidate(Selector(source=source))
    assert store.put(make_entry("k"), None, 0) == TOO_LATE
    assert store.put(make_entry("k"), None, 1).stored, "both changes since are remembered"


def test_sqlite_refuses_a_fill_older_than_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stampcache.stores.sqlite._LOG_KEPT", 2)
    monkeypatch.setattr("stampcache.stores.sqlite._TRIM_EVERY", 1)
    store = SqliteStore(tmp_path / "cache.db")
    for source in ("a", "b", "c"):  # an application that only ingests keeps the log short too
        store.invalidate(Selector(source=source))
    assert store.put(make_entry("k"), None, 0) == TOO_LATE
    assert store.put(make_entry("k"), None, 1).stored
    store.close()


@pytest.fixture
def pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[SqliteStore, SqliteStore]]:
    """Two stores on one file, as of two processes, which keeps no more than five rows of its log."""
    monkeypatch.setattr("stampcache.stores.sqlite._LOG_KEPT", 5)
    monkeypatch.setattr("stampcache.stores.sqlite._TRIM_EVERY", 1)
    mine, theirs = SqliteStore(tmp_path / "cache.db"), SqliteStore(tmp_path / "cache.db")
    yield mine, theirs
    mine.close()
    theirs.close()


def trim_before(statement: str, *, read_by: SqliteStore, trimmed_by: SqliteStore) -> list[str]:
    """Trim all of the log that there is just before a statement is run; return a list for that."""
    ran: list[str] = []
    start = statement.partition("?")[0]

    def trace(running: str) -> None:
        if running.startswith(start) and not ran:
            ran.append(running)
            for number in range(12):
                trimmed_by.invalidate(Selector(source=f"other {number}"))

    read_by._file.reader.set_trace_callback(trace)
    return ran


def test_a_log_that_is_trimmed_while_a_replica_follows_it_loses_no_mark(
    pair: tuple[SqliteStore, SqliteStore],
) -> None:
    mine, theirs = pair
    entry = make_entry("k")
    mine.put(entry, None, 0)
    assert mine.fetch(*entry.place) == entry, "it is in the near-cache now"
    theirs.invalidate(Selector(entry=entry.id))
    ran = trim_before(sqlite_text.LOG_SINCE, read_by=mine, trimmed_by=theirs)
    for _ in range(2):
        marked = mine.fetch(*entry.place)
        assert marked is not None and marked.invalidated == "invalidated by its id"
    assert ran


def test_a_log_that_is_trimmed_while_it_is_asked_for_a_fence_hides_no_change(
    pair: tuple[SqliteStore, SqliteStore],
) -> None:
    mine, theirs = pair
    theirs.invalidate(Selector(corpus="c"))
    ran = trim_before(sqlite_text.CHANGES_SINCE, read_by=mine, trimmed_by=theirs)
    assert mine.fenced(make_entry("k", evidence=()), 0) == "corpus 'c' changed"
    assert ran
    assert mine.fenced(make_entry("k", evidence=()), 0) == TOO_LATE.change


def test_a_failed_reading_leaves_no_transaction_open(
    pair: tuple[SqliteStore, SqliteStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = pair
    entry = make_entry("k")
    theirs.put(entry, None, 0)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_text, "LOG_SINCE", "no SQL")
        with pytest.raises(StoreError):
            mine.fetch(*entry.place)
    assert not mine._file.reader.in_transaction
    assert mine.fetch(*entry.place) == entry


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_entries_that_one_change_touched_give_way_in_the_order_of_their_addresses(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "cache.db"
    store: Store = MemoryStore(capacity=3) if kind == "memory" else SqliteStore(path, capacity=3)
    for key in "bca":
        store.put(make_entry(key, evidence=()), None, 0)
    store.invalidate(Selector(corpus="c"))
    for new, gone in zip("123", "abc", strict=True):
        store.put(make_entry(new), None, store.sequence())
        assert store.fetch("p", gone) is None
        assert all(store.fetch("p", left) for left in "abc" if left > gone)
    store.close()


def test_the_vector_of_an_invalidated_entry_leaves_the_file_and_the_index(tmp_path: Path) -> None:
    store, other = SqliteStore(tmp_path / "cache.db"), SqliteStore(tmp_path / "cache.db")
    store.put(make_entry("k", evidence=()), unit(1, 0), 0)
    assert store.nearest("p", unit(1, 0), 1, asked="x", now=NOW)
    other.invalidate(Selector(corpus="c"))
    assert not store.nearest("p", unit(1, 0), 1, asked="x", now=NOW)
    index = store._replica._indexes.get("p")
    assert index is not None and len(index) == 0
    (vectors,) = store._file.reader.execute(
        "SELECT count(vector) FROM stampcache_entries"
    ).fetchone()
    assert vectors == 0
    store.close()
    other.close()


def test_an_entry_invalidated_while_its_index_is_searched_is_not_near(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = SqliteStore(tmp_path / "cache.db"), SqliteStore(tmp_path / "cache.db")
    store.put(make_entry("k", evidence=()), unit(1, 0), 0)
    assert store.nearest("p", unit(1, 0), 1, asked="x", now=NOW)
    replica = store._replica
    replica._near.clear()  # so that it is read from the file again
    other.invalidate(Selector(corpus="c"))
    monkeypatch.setattr(replica, "_data_version", lambda: replica._version)  # asked just before
    assert not store.nearest("p", unit(1, 0), 1, asked="x", now=NOW)
    store.close()
    other.close()


@pytest.mark.parametrize(
    "selector",
    [
        Selector(corpus="c"),
        Selector(source="s"),
        Selector(chunk="1"),
        Selector(corpus="c", source="s"),
        Selector(corpus="c", source="s", chunk="1"),
    ],
)
def test_sqlite_finds_what_a_document_touches_by_an_index(
    tmp_path: Path, selector: Selector
) -> None:
    store = SqliteStore(tmp_path / "cache.db")
    query = selecting(selector)
    assert query is not None
    plan = store._file.reader.execute(f"EXPLAIN QUERY PLAN {query.statement}", query.values)
    steps = [str(row[3]) for row in plan]
    assert not [step for step in steps if step.startswith("SCAN")]
    store.close()
