"""The async face of a Redis store: the same verbs over redis.asyncio; nothing blocks a loop.

Connections belong to the loop that they were opened on. They are closed with the store, or at the latest
when their loop shuts down its asynchronous generators, as `asyncio.run` does at its end.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, TypeVar

from redis import asyncio as aioredis
from redis.asyncio.connection import parse_url
from redis.exceptions import ReadOnlyError, ResponseError

from stampcache.corpora import Corpora, Reach, Standing
from stampcache.errors import StoreError
from stampcache.journal import Journal
from stampcache.model import Candidate, Entry, Selector, Vector
from stampcache.ports import Forgotten, Receipt
from stampcache.shelf import Shelf
from stampcache.stores.redis import failures
from stampcache.stores.redis.asking import Ask, Run, Verb, Word, adrive
from stampcache.stores.redis.client import TRIES, Client, common_options
from stampcache.stores.redis.store import RedisStore
from stampcache.stores.redis.tickets import AsyncRedisTickets
from stampcache.stores.redis.whereabouts import Host

T = TypeVar("T")
_CLOSING_S = 1.0


class _Pool:
    """The connections of one loop to one server."""

    def __init__(self, factory: Any, *, size: int) -> None:
        self._factory = factory
        self._free = asyncio.Semaphore(size)
        self._idle: deque[Any] = deque()

    async def execute(self, words: Sequence[Word], timeout_s: float) -> Any:
        """Return the reply to a command, within this time."""
        async with asyncio.timeout(timeout_s), self._free:
            connection = await self._take()
            try:
                packed = connection.pack_command(*words)
                await connection.send_packed_command(packed, check_health=False)
                reply = await connection.read_response()
            except ResponseError:
                self._idle.append(connection)
                raise
            except BaseException:
                await connection.disconnect(nowait=True)
                await self.disconnect()
                raise
            self._idle.append(connection)
            return reply

    async def _take(self) -> Any:
        if self._idle:
            return self._idle.pop()
        connection: Any = self._factory.make_connection()
        try:
            await connection.connect()
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection

    async def disconnect(self) -> None:
        """Close all connections that are idle."""
        while self._idle:
            await self._idle.pop().disconnect(nowait=True)


class AsyncClient:
    """Carries out what verbs ask for, for tasks; shares breaker and whereabouts with the sync client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._pools: dict[asyncio.AbstractEventLoop, dict[Host, _Pool]] = {}
        self._guards: dict[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = {}

    async def answer(self, ask: Ask) -> Any:
        """Return what the server replies; see `Client.answer`."""
        client = self._client
        client.check_open()
        if not client.breaker.lets_through():
            raise StoreError(client.left_alone)
        tries = 1 if isinstance(ask, Run) and ask.once else TRIES
        while True:
            tries -= 1
            try:
                reply = await self._send(ask)
            except failures.ALL as error:
                if isinstance(error, ReadOnlyError):
                    await self._close_idle()
                if client.failed(error) and tries:
                    continue
                raise failures.store_error(error) from error
            client.breaker.succeeded()
            return reply

    async def _close_idle(self) -> None:
        for pool in list(self._pools.get(asyncio.get_running_loop(), {}).values()):
            await pool.disconnect()

    async def _send(self, ask: Ask) -> Any:
        settings = self._client.address.settings
        slow = isinstance(ask, Run) and ask.slow
        timeout_s = settings.slow_timeout_s if slow else settings.timeout_s
        pool = await self._pool()
        try:
            return await pool.execute(self._client.words_of(ask), timeout_s)
        except failures.NoScript:
            assert isinstance(ask, Run)
            return await pool.execute(self._client.source_words(ask), timeout_s)

    async def _pool(self) -> _Pool:
        where = self._client.where
        host = where.known
        if host is None:
            host = await asyncio.to_thread(where.find)
        loop = asyncio.get_running_loop()
        pools = self._pools.get(loop)
        if pools is None:
            guard = self._guard(loop)
            with self._lock:
                pools = self._pools[loop] = {}
                self._guards[loop] = guard
            await anext(guard)
        pool = pools.get(host)
        if pool is None:
            pool = pools.setdefault(host, self._opened(host))
        return pool

    def _opened(self, host: Host) -> _Pool:
        address = self._client.address
        common = {**common_options(address, slow=False), "socket_timeout": None, "retry": None}
        given = {**parse_url(address.server), **host.options, **common}
        return _Pool(aioredis.ConnectionPool(**given), size=address.settings.connections)

    async def _guard(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None]:
        """Close the connections of a loop when it ends."""
        try:
            yield
        finally:
            await self._close_here(loop)

    async def _close_here(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            pools = self._pools.pop(loop, {})
            self._guards.pop(loop, None)
        for pool in pools.values():
            await pool.disconnect()

    def close(self) -> None:
        """Close the connections of all loops that still run; those of others were closed with them."""
        for loop in list(self._pools):
            if not loop.is_running():
                continue
            closing = self._close_here(loop)
            if _is_current(loop):
                self._last = loop.create_task(closing)
            else:
                done = asyncio.run_coroutine_threadsafe(closing, loop)
                try:
                    done.result(_CLOSING_S)
                except TimeoutError:
                    continue  # its loop is busy, and closes them later


def _is_current(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class RedisTasks:
    """`AsyncStore` over the verbs of a store; see there what each does."""

    def __init__(self, store: RedisStore, client: AsyncClient) -> None:
        self._store = store
        self._verbs = store.verbs
        self._client = client
        self.tickets = AsyncRedisTickets(self._run, store.ticket_verbs, store.leases)

    async def _run(self, verb: Verb[T]) -> T:
        return await adrive(verb, self._client.answer)

    async def fetch(self, partition: str, key: str) -> Entry | None:
        """See `Store.fetch`."""
        near = self._store.peek(partition, key)
        return await self._run(self._verbs.fetch((partition, key))) if near is None else near

    async def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        """See `Store.nearest`. It is computed in a thread."""
        return await asyncio.to_thread(
            self._store.nearest, partition, vector, k, asked=asked, now=now
        )

    async def put(
        self, entry: Entry, vector: Vector | None, fence: int, reach: Reach | None = None
    ) -> Receipt:
        """See `Store.put`."""
        return await self._run(self._verbs.put(entry, vector, fence, reach))

    async def on_corpora(self, do: Callable[[Corpora], T]) -> T:
        """See `AsyncStore.on_corpora`."""
        return await asyncio.to_thread(do, self._store.corpora)

    async def on_journal(self, do: Callable[[Journal], T]) -> T:
        """See `AsyncStore.on_journal`."""
        return await asyncio.to_thread(do, self._store.journal)

    async def on_shelf(self, do: Callable[[Shelf], T]) -> T:
        """See `AsyncStore.on_shelf`."""
        return await asyncio.to_thread(do, self._store.shelf)

    async def standing(self, corpus: str) -> Standing | None:
        """See `Corpora.standing`."""
        near = self._store.peek_standing(corpus)
        return await self._run(self._verbs.standing(corpus)) if near is None else near

    async def fenced(self, entry: Entry, fence: int) -> str:
        """See `Store.fenced`."""
        return await self._run(self._verbs.fenced(entry, fence))

    async def touch(self, entry: Entry, asked: str) -> None:
        """See `Store.touch`."""
        await self._run(self._verbs.touch(entry, asked))

    async def renew(self, entry: Entry, expires_at: float) -> None:
        """See `Store.renew`."""
        await self._run(self._verbs.renew(entry, expires_at))

    async def remove(self, entry: Entry) -> bool:
        """See `Store.remove`."""
        return await self._run(self._verbs.remove(entry))

    async def report_bad(self, entry_id: str) -> bool:
        """See `Store.report_bad`."""
        return await self._run(self._verbs.report_bad(entry_id))

    async def invalidate(self, selector: Selector) -> int:
        """See `Store.invalidate`."""
        return await self._run(self._verbs.invalidate(selector))

    async def clear(self, scope: str) -> int:
        """See `Store.clear`."""
        return await self._run(self._verbs.clear(scope))

    async def forget(self, tenant: str) -> Forgotten:
        """See `Store.forget`."""
        return await self._run(self._verbs.forget(tenant))

    async def purge(self, now: float) -> int:
        """See `Store.purge`."""
        return await self._run(self._verbs.purge(now))

    async def sequence(self) -> int:
        """See `Store.sequence`."""
        near = self._store.peek_sequence()
        return await self._run(self._verbs.sequence()) if near is None else near
