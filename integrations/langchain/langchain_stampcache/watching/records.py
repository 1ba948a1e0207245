"""`WatchedRecordManager`: what the Indexing API keeps books of, told to the cache.

`index(...)` asks its record manager which documents are there, writes to the vector store, and then lets
the record manager know. So a write is announced by the question, and told by the note.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

from langchain_core.indexing import RecordManager

from langchain_stampcache.watching.batches import Batches
from langchain_stampcache.watching.names import is_function, is_write
from langchain_stampcache.watching.unknown import Anything
from stampcache.adapters import Watch

_OWN = frozenset({"_anything", "_batches", "_inner", "_watch"})


class WatchedRecordManager(RecordManager):
    """Stands where a record manager stood, and does what that does; the cache hears of its indexing runs.

    While a batch of documents is embedded and written, no answer of the corpus is served. What was
    written is not seen here: any new, changed or deleted document ends all answers of the corpus, while
    a run that finds nothing new keeps them. Where the vector store is watched, too, that one tells what
    it ends, and nothing is ended twice.

    A run that failed leaves its batch open, and hits blocked, until the next run or `settle`.
    """

    def __init__(self, inner: RecordManager, watch: Watch) -> None:
        """Use `langchain_stampcache.watch`."""
        super().__init__(getattr(inner, "namespace", ""))
        self._inner = inner
        self._watch = watch
        self._batches = Batches(watch)
        self._anything = Anything(watch)

    @property
    def inner(self) -> RecordManager:
        """The record manager that is watched."""
        return self._inner

    @property
    def watched(self) -> Watch:
        """The watch over its corpus."""
        return self._watch

    def settle(self) -> None:
        """Say that no run of this record manager is under way: what failed runs left open is resolved."""
        self._watch.run(self._batches.settle())

    async def asettle(self) -> None:
        """See `settle`."""
        await self._watch.arun(self._batches.settle())

    def create_schema(self) -> None:
        """Create the schema, as the inner one does."""
        self._inner.create_schema()

    async def acreate_schema(self) -> None:
        """See `create_schema`."""
        await self._inner.acreate_schema()

    def get_time(self) -> float:
        """Return the time; an indexing run begins with it."""
        here = self._batches.here()
        self._watch.run(self._batches.run_begins(here))
        return self._inner.get_time()

    async def aget_time(self) -> float:
        """See `get_time`."""
        here = self._batches.here()
        await self._watch.arun(self._batches.run_begins(here))
        return await self._inner.aget_time()

    def exists(self, keys: Sequence[str]) -> list[bool]:
        """Tell which keys exist; in an indexing run those that do not are written next."""
        here, found = self._batches.here(), self._inner.exists(keys)
        self._watch.run(self._batches.asked(here, keys))
        return found

    async def aexists(self, keys: Sequence[str]) -> list[bool]:
        """See `exists`."""
        here, found = self._batches.here(), await self._inner.aexists(keys)
        await self._watch.arun(self._batches.asked(here, keys))
        return found

    def update(
        self,
        keys: Sequence[str],
        *,
        group_ids: Sequence[str | None] | None = None,
        time_at_least: float | None = None,
    ) -> None:
        """Note that documents are there."""
        here = self._batches.here()
        self._inner.update(keys, group_ids=group_ids, time_at_least=time_at_least)
        self._watch.run(self._batches.noted(here, keys, grouped=group_ids is not None))

    async def aupdate(
        self,
        keys: Sequence[str],
        *,
        group_ids: Sequence[str | None] | None = None,
        time_at_least: float | None = None,
    ) -> None:
        """See `update`."""
        here = self._batches.here()
        await self._inner.aupdate(keys, group_ids=group_ids, time_at_least=time_at_least)
        await self._watch.arun(self._batches.noted(here, keys, grouped=group_ids is not None))

    def list_keys(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        group_ids: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """List keys; in an indexing run those that are too old are deleted next."""
        here = self._batches.here()
        keys = self._inner.list_keys(before=before, after=after, group_ids=group_ids, limit=limit)
        if before is not None:
            self._watch.run(self._batches.listed(here, keys))
        return keys

    async def alist_keys(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        group_ids: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """See `list_keys`."""
        here = self._batches.here()
        keys = await self._inner.alist_keys(
            before=before, after=after, group_ids=group_ids, limit=limit
        )
        if before is not None:
            await self._watch.arun(self._batches.listed(here, keys))
        return keys

    def delete_keys(self, keys: Sequence[str]) -> None:
        """Note that documents are gone."""
        here = self._batches.here()
        self._inner.delete_keys(keys)
        self._watch.run(self._batches.deleted(here, keys))

    async def adelete_keys(self, keys: Sequence[str]) -> None:
        """See `delete_keys`."""
        here = self._batches.here()
        await self._inner.adelete_keys(keys)
        await self._watch.arun(self._batches.deleted(here, keys))

    def __getattr__(self, name: str) -> Any:
        if name in _OWN or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        value = getattr(self._inner, name)
        return self._anything.of(value) if is_write(name) and is_function(value) else value

    def __repr__(self) -> str:
        return f"watched({self._inner!r}, corpus={self._watch.corpus!r})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "A watched record manager is neither pickled nor copied; do that with its inner one."
        )

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce_ex__(memo)
