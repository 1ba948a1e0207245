"""The async face of a sync store: inline where nothing blocks, in threads where something may."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import ParamSpec, Protocol, TypeVar

from stampcache.corpora import Corpora, Reach, Standing
from stampcache.journal import Journal
from stampcache.model import Candidate, Entry, Selector, Vector
from stampcache.ports import Forgotten, Receipt, Store
from stampcache.shelf import Shelf

P = ParamSpec("P")
T = TypeVar("T")


class LockedStore(Store, Protocol):
    """A store in memory whose verbs take microseconds once they have its lock."""

    lock: threading.RLock
    """Reentrant. What never waits for it: ``fetch``, ``touch``, ``sequence``, a corpus's ``standing``."""


class InlineStore:
    """Calls the store in place, as its verbs take microseconds; in a thread what grows with its size.

    Such a thread holds the store's lock for long, so what needs the lock then waits in a thread too.
    """

    def __init__(self, store: LockedStore) -> None:
        self._store = store

    async def fetch(self, partition: str, key: str) -> Entry | None:
        """See `Store.fetch`."""
        return self._store.fetch(partition, key)

    async def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        """See `Store.nearest`."""
        return await asyncio.to_thread(
            self._store.nearest, partition, vector, k, asked=asked, now=now
        )

    async def put(
        self, entry: Entry, vector: Vector | None, fence: int, reach: Reach | None = None
    ) -> Receipt:
        """See `Store.put`."""
        return await self._locked(self._store.put, entry, vector, fence, reach)

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
        return self._store.corpora.standing(corpus)

    async def fenced(self, entry: Entry, fence: int) -> str:
        """See `Store.fenced`."""
        return await self._locked(self._store.fenced, entry, fence)

    async def touch(self, entry: Entry, asked: str) -> None:
        """See `Store.touch`."""
        self._store.touch(entry, asked)

    async def renew(self, entry: Entry, expires_at: float) -> None:
        """See `Store.renew`."""
        await self._locked(self._store.renew, entry, expires_at)

    async def remove(self, entry: Entry) -> bool:
        """See `Store.remove`."""
        return await self._locked(self._store.remove, entry)

    async def report_bad(self, entry_id: str) -> bool:
        """See `Store.report_bad`."""
        return await self._locked(self._store.report_bad, entry_id)

    async def invalidate(self, selector: Selector) -> int:
        """See `Store.invalidate`."""
        return await asyncio.to_thread(self._store.invalidate, selector)

    async def clear(self, scope: str) -> int:
        """See `Store.clear`."""
        return await asyncio.to_thread(self._store.clear, scope)

    async def forget(self, tenant: str) -> Forgotten:
        """See `Store.forget`."""
        return await asyncio.to_thread(self._store.forget, tenant)

    async def purge(self, now: float) -> int:
        """See `Store.purge`."""
        return await asyncio.to_thread(self._store.purge, now)

    async def sequence(self) -> int:
        """See `Store.sequence`."""
        return self._store.sequence()

    async def _locked(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call at once if nobody holds the lock, which is then held: nobody can come in between."""
        if not self._store.lock.acquire(blocking=False):
            return await asyncio.to_thread(verb, *args, **kwargs)
        try:
            return verb(*args, **kwargs)
        finally:
            self._store.lock.release()


class PeekingStore(Store, Protocol):
    """A blocking store that can answer some fetches at once."""

    def peek(self, partition: str, key: str) -> Entry | None:
        """Return the entry if that is certain without waiting, else ``None``."""
        ...

    def peek_sequence(self) -> int | None:
        """Return the sequence of the last change if that takes no waiting, else ``None``."""
        ...

    def peek_standing(self, corpus: str) -> Standing | None:
        """Return how a watched corpus stands if that takes no waiting, else ``None``."""
        ...

    def use(self, entry: Entry) -> bool:
        """Note a use without waiting; tell whether it is time to write them."""
        ...

    def write_uses(self) -> None:
        """Write what was noted of uses."""
        ...


class ThreadedStore:
    """Calls the store in the loop's default threads, except for what its near-cache has."""

    def __init__(self, store: PeekingStore) -> None:
        self._store = store

    async def fetch(self, partition: str, key: str) -> Entry | None:
        """See `Store.fetch`."""
        near = self._store.peek(partition, key)
        return near or await asyncio.to_thread(self._store.fetch, partition, key)

    async def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        """See `Store.nearest`."""
        return await asyncio.to_thread(
            self._store.nearest, partition, vector, k, asked=asked, now=now
        )

    async def put(
        self, entry: Entry, vector: Vector | None, fence: int, reach: Reach | None = None
    ) -> Receipt:
        """See `Store.put`."""
        return await asyncio.to_thread(self._store.put, entry, vector, fence, reach)

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
        return near or await asyncio.to_thread(self._store.corpora.standing, corpus)

    async def fenced(self, entry: Entry, fence: int) -> str:
        """See `Store.fenced`."""
        return await asyncio.to_thread(self._store.fenced, entry, fence)

    async def touch(self, entry: Entry, asked: str) -> None:
        """See `Store.touch`."""
        if asked != entry.identity.key:
            await asyncio.to_thread(self._store.touch, entry, asked)
        elif self._store.use(entry):
            await asyncio.to_thread(self._store.write_uses)

    async def renew(self, entry: Entry, expires_at: float) -> None:
        """See `Store.renew`."""
        await asyncio.to_thread(self._store.renew, entry, expires_at)

    async def remove(self, entry: Entry) -> bool:
        """See `Store.remove`."""
        return await asyncio.to_thread(self._store.remove, entry)

    async def report_bad(self, entry_id: str) -> bool:
        """See `Store.report_bad`."""
        return await asyncio.to_thread(self._store.report_bad, entry_id)

    async def invalidate(self, selector: Selector) -> int:
        """See `Store.invalidate`."""
        return await asyncio.to_thread(self._store.invalidate, selector)

    async def clear(self, scope: str) -> int:
        """See `Store.clear`."""
        return await asyncio.to_thread(self._store.clear, scope)

    async def forget(self, tenant: str) -> Forgotten:
        """See `Store.forget`."""
        return await asyncio.to_thread(self._store.forget, tenant)

    async def purge(self, now: float) -> int:
        """See `Store.purge`."""
        return await asyncio.to_thread(self._store.purge, now)

    async def sequence(self) -> int:
        """See `Store.sequence`."""
        near = self._store.peek_sequence()
        return await asyncio.to_thread(self._store.sequence) if near is None else near
