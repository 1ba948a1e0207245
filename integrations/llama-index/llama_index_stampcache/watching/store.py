"""`WatchedVectorStore`: a vector store whose writes and searches are seen."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from pydantic import PrivateAttr

from llama_index_stampcache.watching.searches import Searches, Unkept
from llama_index_stampcache.watching.writes import Writes
from stampcache.adapters import Committed, Reading, Step, Watch, hear, is_heard

_READING = (
    "aget", "alist", "aquery", "class_name", "count", "dict", "exists", "from_", "get", "has_", "is_",
    "json", "list", "model_", "persist", "query", "to_",
)  # fmt: skip
"""What the names of methods begin with that write nothing."""


class WatchedVectorStore(BasePydanticVectorStore):
    """Stands where the inner vector store stood; what is written through it is told to the cache.

    Before a write the cache is told that it comes, and serves nothing of the corpus until it was told
    what was written. If it cannot be told, nothing is written, and `StoreError` says so. Methods of the
    inner store beyond those of all vector stores count as writes of anything, unless their names say
    that they read. ``client`` is the inner store's own: what is written with it is not seen.
    """

    stores_text: bool
    is_embedding_query: bool = True
    _inner: BasePydanticVectorStore = PrivateAttr()
    _writes: Writes = PrivateAttr()
    _searches: Searches = PrivateAttr()

    def __init__(
        self, inner: BasePydanticVectorStore, *, writes: Writes, searches: Searches
    ) -> None:
        """Made by `watch`."""
        super().__init__(stores_text=inner.stores_text, is_embedding_query=inner.is_embedding_query)
        self._inner = inner
        self._writes = writes
        self._searches = searches

    def __getattr__(self, name: str) -> Any:
        private = object.__getattribute__(self, "__pydantic_private__")
        if name.startswith("__") or not private or name in private:
            return super().__getattr__(name)  # type: ignore[misc]  # pydantic hides it from types
        found = getattr(private["_inner"], name)
        if name.startswith(("_", *_READING)) or not inspect.ismethod(found):
            return found
        return _writing(self._writes, found)

    @classmethod
    def class_name(cls) -> str:
        """See `BaseComponent.class_name`."""
        return "WatchedVectorStore"

    @property
    def inner(self) -> BasePydanticVectorStore:
        """The store that is watched; what is written to it past this one is not seen."""
        return self._inner

    @property
    def watched(self) -> Watch:
        """The watch over it."""
        return self._writes.watch

    @property
    def writes(self) -> Writes:
        """What is done to it."""
        return self._writes

    @property
    def searches(self) -> Searches:
        """How its searches are read."""
        return self._searches

    @property
    def client(self) -> Any:
        """The client of the inner store."""
        return self._inner.client

    def identity_parts(self) -> dict[str, object]:
        """Return what identifies it inside an engine.

        Where two indexes were watched under one name, each is answered from what was made from it.
        """
        apart = self.watched.apart
        return {"inner": self._inner, "index": apart} if apart else {"inner": self._inner}

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return the inner store as a dict."""
        return self._inner.to_dict(**kwargs)

    def resync(self) -> Committed:
        """Take over what the inner store holds now, whoever wrote it.

        Where it cannot be listed, every answer of the corpus becomes stale.
        """
        return self.watched.run(self._writes.resync())

    async def aresync(self) -> Committed:
        """See `resync`."""
        return await self.watched.arun(self._writes.resync())

    # -- writes ------------------------------------------------------------------------------------

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes with their embeddings."""
        if not nodes:
            return self._inner.add(nodes, **kwargs)
        return self.watched.run(self._writes.add(nodes, self._add(nodes, kwargs)))

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """See `add`."""
        if not nodes:
            return await self._inner.async_add(nodes, **kwargs)
        return await self.watched.arun(self._writes.add(nodes, self._add(nodes, kwargs)))

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document."""
        write = self._delete(ref_doc_id, delete_kwargs)
        by_ids = None if delete_kwargs else self._delete_ids
        self.watched.run(self._writes.delete_document(ref_doc_id, write, by_ids))

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """See `delete`."""
        write = self._delete(ref_doc_id, delete_kwargs)
        by_ids = None if delete_kwargs else self._delete_ids
        await self.watched.arun(self._writes.delete_document(ref_doc_id, write, by_ids))

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete nodes by their ids or by their metadata."""
        write = self._delete_nodes(node_ids, filters, delete_kwargs)
        if node_ids and filters is None:
            self.watched.run(self._writes.delete(node_ids, write))
        else:
            self.watched.run(self._writes.write(write))

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """See `delete_nodes`."""
        write = self._delete_nodes(node_ids, filters, delete_kwargs)
        if node_ids and filters is None:
            await self.watched.arun(self._writes.delete(node_ids, write))
        else:
            await self.watched.arun(self._writes.write(write))

    def clear(self) -> None:
        """Delete all nodes."""
        self.watched.run(self._writes.clear(self._clear()))

    async def aclear(self) -> None:
        """See `clear`."""
        await self.watched.arun(self._writes.clear(self._clear()))

    # -- searches ----------------------------------------------------------------------------------

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Search; who makes an answer from it is told how."""
        result = self._inner.query(query, **kwargs)
        if is_heard():
            more = self._searches.one_more(query, result)
            try:
                beyond = None if more is None else self._inner.query(more, **kwargs)
                hear(self._searches.reading(query, kwargs, result, beyond))
            except Exception as error:  # noqa: BLE001 - counted; any write ends what is made from it
                hear(self._unread(error))
        return result

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """See `query`."""
        result = await self._inner.aquery(query, **kwargs)
        if is_heard():
            more = self._searches.one_more(query, result)
            try:
                beyond = None if more is None else await self._inner.aquery(more, **kwargs)
                hear(self._searches.reading(query, kwargs, result, beyond))
            except Exception as error:  # noqa: BLE001 - counted; any write ends what is made from it
                hear(self._unread(error))
        return result

    def _unread(self, error: Exception) -> Reading:
        self.watched.core.counters.note("watch.unread", error)
        return Unkept(corpus=self.watched.corpus, problem="its search could not be read")

    # -- the rest is the inner store's ---------------------------------------------------------------

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Return nodes."""
        return self._inner.get_nodes(node_ids, filters)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """See `get_nodes`."""
        return await self._inner.aget_nodes(node_ids, filters)

    def persist(
        self,
        persist_path: str | None = None,
        fs: Any = None,
    ) -> None:
        """Write the inner store to a file, where it does that."""
        if persist_path is None:
            self._inner.persist(fs=fs)  # type: ignore[call-arg]  # some have a place of their own
        else:
            self._inner.persist(persist_path, fs=fs)

    # -- its writes, as steps --------------------------------------------------------------------------

    def _add(self, nodes: Sequence[BaseNode], options: dict[str, Any]) -> Step[list[str]]:
        inner = self._inner
        return Step(
            sync=lambda: inner.add(nodes, **options), aio=lambda: inner.async_add(nodes, **options)
        )

    def _delete(self, document: str, options: dict[str, Any]) -> Step[None]:
        inner = self._inner
        return Step(
            sync=lambda: inner.delete(document, **options),
            aio=lambda: inner.adelete(document, **options),
        )

    def _delete_ids(self, ids: Sequence[str]) -> Step[None]:
        return self._delete_nodes(list(ids), None, {})

    def _delete_nodes(
        self, ids: list[str] | None, filters: MetadataFilters | None, options: dict[str, Any]
    ) -> Step[None]:
        inner = self._inner
        return Step(
            sync=lambda: inner.delete_nodes(ids, filters, **options),
            aio=lambda: inner.adelete_nodes(ids, filters, **options),
        )

    def _clear(self) -> Step[None]:
        return Step(sync=self._inner.clear, aio=self._inner.aclear)


def _writing(writes: Writes, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of the inner store whose calls are told as writes of anything."""
    if inspect.iscoroutinefunction(method):

        async def awrite(*args: Any, **kwargs: Any) -> Any:
            async def aio() -> Any:
                return await method(*args, **kwargs)

            return await writes.watch.arun(writes.write(_never_sync(aio)))

        return awrite

    def write(*args: Any, **kwargs: Any) -> Any:
        async def aio() -> Any:
            return method(*args, **kwargs)

        return writes.watch.run(writes.write(Step(sync=lambda: method(*args, **kwargs), aio=aio)))

    return write


def _never_sync(aio: Callable[[], Any]) -> Step[Any]:
    def sync() -> Any:
        raise AssertionError("no thread awaits it")  # pragma: no cover

    return Step(sync=sync, aio=aio)
