"""The Redis store keeps the contract: in both modes, with little room, through two stores."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from stampcache.ports import Store
from stampcache.stores.redis.store import RedisStore
from stampcache.testing.contract import StoreContract


class TestRedisStore(StoreContract):
    @pytest.fixture
    def store(self, url: str) -> Iterator[Store]:
        store = RedisStore(url)
        yield store
        store.close()

    @pytest.fixture
    def small_store(self, url: str) -> Iterator[Store]:
        store = RedisStore(url + "&prefix=small", capacity=3)
        yield store
        store.close()


class TestStrictRedisStoreWithoutNearCache(StoreContract):
    """Nearly everything is read from the server."""

    @pytest.fixture
    def store(self, url: str) -> Iterator[Store]:
        store = RedisStore(url + "&strict=1", near_capacity=1, vector_capacity=1)
        yield store
        store.close()

    @pytest.fixture
    def small_store(self, url: str) -> Iterator[Store]:
        store = RedisStore(url + "&strict=1&prefix=small", capacity=3, near_capacity=1)
        yield store
        store.close()


class TestStrictRedisStoreThroughTwoConnections(StoreContract):
    """Every other verb goes through a second store on the same server, as from another process."""

    @pytest.fixture
    def store(self, url: str) -> Iterator[Store]:
        first, second = RedisStore(url + "&strict=1"), RedisStore(url + "&strict=1")
        yield Alternating(first, second)  # type: ignore[misc]  # a proxy by attribute has every verb
        first.close()
        second.close()

    @pytest.fixture
    def small_store(self, url: str) -> Iterator[Store]:
        named = url + "&strict=1&prefix=small"
        first, second = RedisStore(named, capacity=3), RedisStore(named, capacity=3)
        yield WritingThroughOne(first, second)  # type: ignore[misc]  # as above
        first.close()
        second.close()


class TestEncryptedRedisStore(StoreContract):
    """What a tenant may have said is hidden under a key."""

    @pytest.fixture
    def store(self, url: str) -> Iterator[Store]:
        store = RedisStore(url, encryption_key=bytes(range(32)))
        yield store
        store.close()

    @pytest.fixture
    def small_store(self, url: str) -> Iterator[Store]:
        named = url + "&prefix=small"
        store = RedisStore(named, capacity=3, near_capacity=1, encryption_key=bytes(range(32)))
        yield store
        store.close()


class TestRedisStoreForTasks(StoreContract):
    """The verbs of the async face go through it, on a loop of their own."""

    @pytest.fixture
    def loop(self) -> Iterator[asyncio.AbstractEventLoop]:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        yield loop
        asyncio.run_coroutine_threadsafe(loop.shutdown_asyncgens(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    @pytest.fixture
    def store(self, url: str, loop: asyncio.AbstractEventLoop) -> Iterator[Store]:
        store = RedisStore(url + "&strict=1")
        yield ThroughTasks(store, loop)  # type: ignore[misc]  # a proxy by attribute has every verb
        store.close()

    @pytest.fixture
    def small_store(self, url: str, loop: asyncio.AbstractEventLoop) -> Iterator[Store]:
        store = RedisStore(url + "&prefix=small", capacity=3)
        yield ThroughTasks(store, loop)  # type: ignore[misc]  # as above
        store.close()


class ThroughTasks:
    """Hands each verb that the async face has to it, and waits."""

    def __init__(self, store: RedisStore, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._face = store.aio()
        self._loop = loop

    def __getattr__(self, verb: str) -> object:
        asked = getattr(self._face, verb, None)
        if asked is None:
            return getattr(self._store, verb)

        def wait(*args: object, **named: object) -> object:
            return asyncio.run_coroutine_threadsafe(asked(*args, **named), self._loop).result()

        return wait


class Alternating:
    """Hands each verb to the two stores in turn."""

    def __init__(self, *stores: RedisStore) -> None:
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
