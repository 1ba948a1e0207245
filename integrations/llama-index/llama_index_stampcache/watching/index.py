"""A `VectorStoreIndex` whose writes are seen: each of them is one, texts and vectors together."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.indices import VectorStoreIndex
from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_stampcache.watching.documents import WatchedDocumentStore
from llama_index_stampcache.watching.store import WatchedVectorStore
from llama_index_stampcache.watching.writes import Writes
from stampcache import ConfigError
from stampcache.adapters import Committed, Flow, Step, Watch

_WRITING = (
    "_add_nodes_to_index", "_async_add_nodes_to_index", "_get_node_with_embedding",
    "_aget_node_with_embedding", "adelete_nodes", "adelete_ref_doc", "ainsert_nodes", "delete_nodes",
    "delete_ref_doc", "insert_nodes",
)  # fmt: skip


class SeenIndex(VectorStoreIndex):
    """The class that an index has when it is watched; it embeds before it says that it writes."""

    _stampcache_writes: Writes

    @property
    def watched(self) -> Watch:
        """The watch over it."""
        return self._stampcache_writes.watch

    def resync(self) -> Committed:
        """Take over what its vector store holds now, whoever wrote it."""
        return self.watched.run(self._stampcache_writes.resync())

    async def aresync(self) -> Committed:
        """See `resync`."""
        return await self.watched.arun(self._stampcache_writes.resync())

    def insert_nodes(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        """See `VectorStoreIndex.insert_nodes`."""
        self._validate_serializable(nodes)
        ready = self._get_node_with_embedding(nodes) if nodes else []
        self.watched.run(self._inserting(ready, insert_kwargs))

    async def ainsert_nodes(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        """See `VectorStoreIndex.ainsert_nodes`."""
        self._validate_serializable(nodes)
        ready = await self._aget_node_with_embedding(nodes) if nodes else []
        await self.watched.arun(self._inserting(ready, insert_kwargs))

    def delete_nodes(
        self, node_ids: list[str], delete_from_docstore: bool = False, **delete_kwargs: Any
    ) -> None:
        """See `VectorStoreIndex.delete_nodes`."""
        self.watched.run(self._deleting(node_ids, delete_from_docstore, delete_kwargs))

    async def adelete_nodes(
        self, node_ids: list[str], delete_from_docstore: bool = False, **delete_kwargs: Any
    ) -> None:
        """See `VectorStoreIndex.adelete_nodes`."""
        await self.watched.arun(self._deleting(node_ids, delete_from_docstore, delete_kwargs))

    def delete_ref_doc(
        self, ref_doc_id: str, delete_from_docstore: bool = False, **delete_kwargs: Any
    ) -> None:
        """See `VectorStoreIndex.delete_ref_doc`."""
        self.watched.run(self._forgetting(ref_doc_id, delete_from_docstore, delete_kwargs))

    async def adelete_ref_doc(
        self, ref_doc_id: str, delete_from_docstore: bool = False, **delete_kwargs: Any
    ) -> None:
        """See `VectorStoreIndex.adelete_ref_doc`."""
        await self.watched.arun(self._forgetting(ref_doc_id, delete_from_docstore, delete_kwargs))

    def _inserting(self, nodes: Sequence[BaseNode], options: dict[str, Any]) -> Flow[None]:
        write = Step(
            sync=lambda: VectorStoreIndex.insert_nodes(self, nodes, **options),
            aio=lambda: VectorStoreIndex.ainsert_nodes(self, nodes, **options),
        )
        if not nodes:
            yield from write
            return
        ids = list(dict.fromkeys(node.node_id for node in nodes))
        yield from self._stampcache_writes.together(write, ids=ids, planned=nodes)

    def _deleting(self, ids: list[str], everywhere: bool, options: dict[str, Any]) -> Flow[None]:
        write = Step(
            sync=lambda: VectorStoreIndex.delete_nodes(self, ids, everywhere, **options),
            aio=lambda: VectorStoreIndex.adelete_nodes(self, ids, everywhere, **options),
        )
        yield from self._stampcache_writes.together(write, ids=ids or None)

    def _forgetting(self, document: str, everywhere: bool, options: dict[str, Any]) -> Flow[None]:
        write = Step(
            sync=lambda: VectorStoreIndex.delete_ref_doc(self, document, everywhere, **options),
            aio=lambda: VectorStoreIndex.adelete_ref_doc(self, document, everywhere, **options),
        )
        yield from self._stampcache_writes.together(write, ids=None)


def check_index(index: VectorStoreIndex) -> None:
    """Refuse an index that writes in a way of its own.

    Raises:
        ConfigError: it does.
    """
    own = [
        name
        for name in _WRITING
        if getattr(type(index), name) is not getattr(VectorStoreIndex, name)
    ]
    if own:
        raise ConfigError(
            f"{type(index).__name__} has {', '.join(own)} of its own, whose writes would not be seen:"
            " watch its vector store before the index is made from it."
        )


def see(
    index: VectorStoreIndex, store: WatchedVectorStore, documents: WatchedDocumentStore
) -> None:
    """Put what is watched into an index, and into its storage context, in the place of what was there."""
    context = index._storage_context
    for name, each in context.vector_stores.items():
        if each is store.inner:
            context.vector_stores[name] = store
    if context.docstore is documents.inner:
        context.docstore = documents
    index._vector_store = store
    index._docstore = documents
    kind = type(index)
    seen = type(kind.__name__, (SeenIndex, kind), {"__module__": kind.__module__})
    index._stampcache_writes = store.writes  # type: ignore[attr-defined]  # of the class it gets now
    index.__class__ = seen


def stores_of(index: VectorStoreIndex) -> tuple[BasePydanticVectorStore, BaseDocumentStore]:
    """Return what an index writes its vectors to, and its texts."""
    return index._vector_store, index._docstore
