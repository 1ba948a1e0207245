"""Both stores keep the contract, and SQLite agrees with memory on random histories."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stampcache.ports import Store
from stampcache.stores.memory import MemoryStore
from stampcache.stores.sqlite import SqliteStore
from stampcache.testing.contract import StoreContract


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
            return lambda: [store.close() for store in self._stores]
        if verb in ("touch", "stats"):  # uses wait in the process that noted them
            return getattr(self._stores[0], verb)
        self._turn += 1
        return getattr(self._stores[self._turn % len(self._stores)], verb)


class WritingThroughOne(Alternating):
    """As above, but one store writes: only it knows which uses it has noted."""

    def __getattr__(self, verb: str) -> object:
        return getattr(self._stores[0], verb) if verb == "put" else super().__getattr__(verb)
