"""`WatchedDocumentStore`: the texts beside a watched vector store, whose writes are seen, too."""

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.types import BaseDocumentStore

from llama_index_stampcache.watching.writes import Writes
from stampcache.adapters import Step, Watch


def _the_inner(name: str) -> Callable[..., Any]:
    def call(self: "WatchedDocumentStore", *args: Any, **kwargs: Any) -> Any:
        return getattr(self.inner, name)(*args, **kwargs)

    return call


class WatchedDocumentStore(BaseDocumentStore):
    """Stands where the document store of a watched index stood.

    Retrievers read texts from it: those of nodes whose vector store keeps none, and those of parents and
    neighbours. A write that changes or deletes a node that is there ends all answers of the corpus,
    unless it is made by the index itself, which knows what it writes.
    """

    def __init__(self, inner: BaseDocumentStore, *, writes: Writes) -> None:
        """Made by `watch`."""
        self.inner = inner
        self._writes = writes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("inner", "_writes"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def watched(self) -> Watch:
        """The watch over its index."""
        return self._writes.watch

    # -- writes ------------------------------------------------------------------------------------

    def add_documents(
        self,
        docs: Sequence[BaseNode],
        allow_update: bool = True,
        batch_size: int | None = None,
        store_text: bool = True,
        **kwargs: Any,
    ) -> None:
        """Add nodes, in the place of those of their ids."""
        write = self._add(docs, _options(allow_update, batch_size, store_text, kwargs))
        self.watched.run(self._writes.texts(write, changes=self._changes(docs)))

    async def async_add_documents(
        self,
        docs: Sequence[BaseNode],
        allow_update: bool = True,
        batch_size: int | None = None,
        store_text: bool = True,
        **kwargs: Any,
    ) -> None:
        """See `add_documents`."""
        write = self._add(docs, _options(allow_update, batch_size, store_text, kwargs))
        await self.watched.arun(self._writes.texts(write, changes=self._changes(docs)))

    def delete_document(self, doc_id: str, raise_error: bool = True) -> None:
        """Delete one node."""
        write = Step(
            sync=lambda: self.inner.delete_document(doc_id, raise_error),
            aio=lambda: self.inner.adelete_document(doc_id, raise_error),
        )
        self.watched.run(self._writes.lost_text(write, exists=self._exists(doc_id)))

    async def adelete_document(self, doc_id: str, raise_error: bool = True) -> None:
        """See `delete_document`."""
        write = Step(
            sync=lambda: self.inner.delete_document(doc_id, raise_error),
            aio=lambda: self.inner.adelete_document(doc_id, raise_error),
        )
        await self.watched.arun(self._writes.lost_text(write, exists=self._exists(doc_id)))

    def delete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:
        """Delete the nodes of a document."""
        write = Step(
            sync=lambda: self.inner.delete_ref_doc(ref_doc_id, raise_error),
            aio=lambda: self.inner.adelete_ref_doc(ref_doc_id, raise_error),
        )
        self.watched.run(self._writes.lost_text(write, exists=self._has_nodes(ref_doc_id)))

    async def adelete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:
        """See `delete_ref_doc`."""
        write = Step(
            sync=lambda: self.inner.delete_ref_doc(ref_doc_id, raise_error),
            aio=lambda: self.inner.adelete_ref_doc(ref_doc_id, raise_error),
        )
        await self.watched.arun(self._writes.lost_text(write, exists=self._has_nodes(ref_doc_id)))

    # -- the rest is the inner store's -------------------------------------------------------------

    @property
    def docs(self) -> dict[str, BaseNode]:
        """See `BaseDocumentStore.docs`."""
        return self.inner.docs  # type: ignore[return-value, unused-ignore]  # a method of the base class by its type

    persist = _the_inner("persist")
    get_document = _the_inner("get_document")
    aget_document = _the_inner("aget_document")
    document_exists = _the_inner("document_exists")
    adocument_exists = _the_inner("adocument_exists")
    set_document_hash = _the_inner("set_document_hash")
    aset_document_hash = _the_inner("aset_document_hash")
    set_document_hashes = _the_inner("set_document_hashes")
    aset_document_hashes = _the_inner("aset_document_hashes")
    get_document_hash = _the_inner("get_document_hash")
    aget_document_hash = _the_inner("aget_document_hash")
    get_all_document_hashes = _the_inner("get_all_document_hashes")
    aget_all_document_hashes = _the_inner("aget_all_document_hashes")
    get_all_ref_doc_info = _the_inner("get_all_ref_doc_info")
    aget_all_ref_doc_info = _the_inner("aget_all_ref_doc_info")
    get_ref_doc_info = _the_inner("get_ref_doc_info")
    aget_ref_doc_info = _the_inner("aget_ref_doc_info")

    # -- what a write does -----------------------------------------------------------------------------

    def _add(self, docs: Sequence[BaseNode], options: dict[str, Any]) -> Step[None]:
        return Step(
            sync=lambda: self.inner.add_documents(docs, **options),
            aio=lambda: self.inner.async_add_documents(docs, **options),
        )

    def _changes(self, docs: Sequence[BaseNode]) -> Step[bool]:
        """Tell whether nodes that are there would be others.

        What is new was read by nobody: who looks for a node that is not there fails.
        """

        async def achanges() -> bool:
            for doc in docs:
                before = await self.inner.aget_document(doc.node_id, raise_error=False)
                if self._writes.differs(before, doc):
                    return True
            return False

        def changes() -> bool:
            found = (self.inner.get_document(doc.node_id, raise_error=False) for doc in docs)
            pairs = zip(found, docs, strict=True)
            return any(self._writes.differs(before, doc) for before, doc in pairs)

        return Step(sync=changes, aio=achanges)

    def _exists(self, doc_id: str) -> Step[bool]:
        return Step(
            sync=lambda: self.inner.document_exists(doc_id),
            aio=lambda: self.inner.adocument_exists(doc_id),
        )

    def _has_nodes(self, ref_doc_id: str) -> Step[bool]:
        async def ahas() -> bool:
            return bool(await self.inner.aget_ref_doc_info(ref_doc_id))

        return Step(sync=lambda: bool(self.inner.get_ref_doc_info(ref_doc_id)), aio=ahas)


class DocumentTexts:
    """The texts of an index whose vector store keeps none; see `stores.Texts`."""

    def __init__(self, names: Callable[[], dict[str, str]], documents: BaseDocumentStore) -> None:
        self._names = names
        self._documents = documents

    def names(self) -> dict[str, str]:
        """See `stores.Texts`."""
        return self._names()

    def nodes(self, ids: Sequence[str]) -> dict[str, BaseNode]:
        """See `stores.Texts`."""
        nodes = self._documents.get_nodes(list(dict.fromkeys(ids)), raise_error=False)
        return {node.node_id: node for node in nodes}


def _options(
    allow_update: bool, batch_size: int | None, store_text: bool, more: dict[str, Any]
) -> dict[str, Any]:
    given = {"allow_update": allow_update, "store_text": store_text, **more}
    return given if batch_size is None else {**given, "batch_size": batch_size}
