"""What is known of vector stores, and what happens with those of which nothing is known."""

import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from llama_fakes import report
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.indices.query.embedding_utils import get_top_k_embeddings
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from pydantic import PrivateAttr
from watched_documents import LEAVE, Watched, ends, is_hit

from llama_index_stampcache import watch
from stampcache import Cache, ConfigError


class Plain(BasePydanticVectorStore):
    """A store that keeps texts, of which nothing is known."""

    stores_text: bool = True
    _nodes: dict[str, BaseNode] = PrivateAttr(default_factory=dict)

    def __init__(self) -> None:
        super().__init__(stores_text=True)

    @property
    def client(self) -> Any:
        return self._nodes

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        self._nodes.update({node.node_id: node.model_copy() for node in nodes})
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        for one in [each for each in self._nodes.values() if each.ref_doc_id == ref_doc_id]:
            del self._nodes[one.node_id]

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        for one in node_ids or []:
            self._nodes.pop(one, None)

    def clear(self) -> None:
        self._nodes.clear()

    def listing(self) -> list[BaseNode]:
        return list(self._nodes.values())

    def swap(self, text: str) -> int:
        """Write in a way that no other store has."""
        for node in self._nodes.values():
            node.set_content(text)
        return len(self._nodes)

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        return [self._nodes[one] for one in node_ids or self._nodes if one in self._nodes]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        similarities, ids = get_top_k_embeddings(
            query.query_embedding or [],
            [node.get_embedding() for node in self._nodes.values()],
            similarity_top_k=query.similarity_top_k,
            embedding_ids=list(self._nodes),
        )
        nodes = [self._nodes[one].model_copy() for one in ids]
        return VectorStoreQueryResult(nodes=nodes, similarities=similarities, ids=ids)


def chroma(space: str) -> BasePydanticVectorStore:
    chromadb = pytest.importorskip("chromadb")
    module = pytest.importorskip("llama_index.vector_stores.chroma")
    collection = chromadb.EphemeralClient().create_collection(
        uuid.uuid4().hex, configuration={"hnsw": {"space": space}}
    )
    store: BasePydanticVectorStore = module.ChromaVectorStore(chroma_collection=collection)
    return store


def faiss(metric: str) -> BasePydanticVectorStore:
    library = pytest.importorskip("faiss")
    module = pytest.importorskip("llama_index.vector_stores.faiss")
    kind = library.IndexFlatIP if metric == "dot" else library.IndexFlatL2
    store: BasePydanticVectorStore = module.FaissVectorStore(faiss_index=kind(32))
    return store


@pytest.mark.parametrize(
    ("store", "metric"),
    [
        (SimpleVectorStore, "cosine"),
        (lambda: chroma("cosine"), "cosine"),
        (lambda: chroma("l2"), "l2"),
        (lambda: chroma("ip"), "dot"),
        (lambda: faiss("dot"), "dot"),
        (lambda: faiss("l2"), "l2"),
    ],
    ids=["simple", "chroma cosine", "chroma l2", "chroma ip", "faiss dot", "faiss l2"],
)
def test_known_stores(cache: Cache, store: Any, metric: str) -> None:
    watched = Watched(cache, store=store())
    engine = watched.engine(1)
    engine.query(LEAVE)
    assert f"at {metric}" in ends(engine)
    assert is_hit(engine)
    watched.insert("cats", "cats sleep on the sofa")
    assert is_hit(engine)
    watched.insert("more", LEAVE)
    assert not is_hit(engine)
    standing = cache.standing("handbook")
    assert standing is not None and standing.complete and standing.chunks == 6


@pytest.mark.parametrize("space", ["cosine", "l2", "ip"])
def test_chroma_deletes_exactly_what_it_tells(cache: Cache, space: str) -> None:
    watched = Watched(cache, store=chroma(space))
    engine = watched.engine(1)
    engine.query(LEAVE)
    watched.delete("travel")
    assert is_hit(engine)
    watched.update("leave", "annual  leave is thirty days")
    assert is_hit(engine)
    watched.delete("leave")
    assert not is_hit(engine)
    standing = cache.standing("handbook")
    assert standing is not None and standing.chunks == 2


def test_chroma_keeps_a_node_that_is_added_under_an_id_that_it_has(cache: Cache) -> None:
    watched = Watched(cache, {}, store=chroma("cosine"))
    watched.index.insert_nodes([TextNode(text="annual leave of thirty days", id_="x")])
    engine = watched.engine(1)
    engine.query(LEAVE)
    watched.index.insert_nodes([TextNode(text="annual leave of forty days", id_="x")])
    told, true = engine.query(LEAVE), watched.plain(1).query(LEAVE)
    assert str(told) == str(true) and "thirty" in told.source_nodes[0].text
    assert report(told)["hit"]  # nothing was changed


def test_faiss_holds_a_node_twice_that_is_added_twice(cache: Cache) -> None:
    watched = Watched(cache, {}, store=faiss("dot"))
    watched.index.insert_nodes([TextNode(text="annual leave", id_="x")])
    watched.index.insert_nodes([TextNode(text="lunch at noon", id_="y")])
    watched.index.insert_nodes([TextNode(text="many days of leave", id_="x")])
    engine = watched.engine(2)
    engine.query(LEAVE)
    assert "any write" in ends(engine)


def test_faiss_deletes_nothing(cache: Cache) -> None:
    watched = Watched(cache, store=faiss("dot"))
    engine = watched.engine(1)
    engine.query(LEAVE)
    with pytest.raises(NotImplementedError):
        watched.delete("leave")
    assert is_hit(engine)


def unknown_store(cache: Cache, *, listed: bool) -> Watched:
    store = Plain()
    listing = store.listing if listed else None
    return Watched(cache, store=store, metric="cosine", listing=listing)


@pytest.mark.parametrize("listed", [True, False])
def test_of_an_unknown_store_it_is_told_what_is_added_and_deleted_by_id(
    cache: Cache, listed: bool
) -> None:
    watched = unknown_store(cache, listed=listed)
    engine = watched.engine(1)
    engine.query(LEAVE)
    watched.insert("cats", "cats sleep on the sofa")
    (lunch,) = watched.retriever(1).retrieve("lunch is served at noon")
    watched.index.delete_nodes([lunch.node_id])
    assert is_hit(engine) and "cosine" in ends(engine)


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("how", ["document", "filters", "own way"])
def test_what_else_it_does_is_looked_for_or_ends_everything(
    cache: Cache, listed: bool, how: str
) -> None:
    watched = unknown_store(cache, listed=listed)
    engine = watched.engine(1)
    engine.query(LEAVE)
    store: Any = watched.index.vector_store
    if how == "document":
        watched.delete("travel")
    elif how == "filters":
        filters = MetadataFilters(filters=[MetadataFilter(key="team", value="red")])
        store.delete_nodes(filters=filters)
    else:
        assert store.swap("annual leave is forty days") == 4
    untouched = listed and how != "own way"
    assert is_hit(engine) is untouched
    assert is_hit(engine)


def test_the_rest_of_a_store_is_its_own(cache: Cache) -> None:
    watched = unknown_store(cache, listed=False)
    store: Any = watched.index.vector_store
    engine = watched.engine(1)
    engine.query(LEAVE)
    assert len(store.get_nodes()) == 4 and store.client is store.inner.client
    assert is_hit(engine)  # reading ends nothing
    with pytest.raises(AttributeError):
        store.nothing  # noqa: B018 - the reading itself is tested


def test_pipelines(cache: Cache) -> None:
    watched = Watched(cache, {}, store=chroma("cosine"))
    docstore = SimpleDocumentStore()

    def run(texts: dict[str, str], strategy: DocstoreStrategy) -> None:
        pipeline = IngestionPipeline(
            transformations=[SentenceSplitter(), watched.embedding],
            vector_store=watched.index.vector_store,
            docstore=docstore,
            docstore_strategy=strategy,
            disable_cache=True,
        )
        pipeline.run(documents=[Document(text=text, id_=name) for name, text in texts.items()])

    texts = {"leave": "annual leave is thirty days", "lunch": "lunch is served at noon"}
    run(texts, DocstoreStrategy.UPSERTS)
    embedded = len(watched.embedding.embedded)
    engine = watched.engine(1)
    engine.query(LEAVE)
    run(texts, DocstoreStrategy.UPSERTS)  # nothing changed, and nothing is embedded
    run({**texts, "lunch": "lunch is at one"}, DocstoreStrategy.UPSERTS)
    assert is_hit(engine) and len(watched.embedding.embedded) == embedded + 1
    run({**texts, "leave": "annual leave is thirty  days"}, DocstoreStrategy.UPSERTS)
    assert is_hit(engine)
    run({"leave": "annual leave is forty days"}, DocstoreStrategy.UPSERTS_AND_DELETE)
    assert not is_hit(engine)
    run({"lunch": "lunch"}, DocstoreStrategy.UPSERTS_AND_DELETE)
    told = engine.query(LEAVE)
    assert not report(told)["hit"] and told.source_nodes[0].text == "lunch"
    standing = cache.standing("handbook")
    assert standing is not None and standing.chunks == 1


async def test_pipelines_in_tasks(cache: Cache) -> None:
    watched = Watched(cache, {}, store=chroma("cosine"))
    pipeline = IngestionPipeline(
        transformations=[SentenceSplitter(), watched.embedding],
        vector_store=watched.index.vector_store,
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS,
        disable_cache=True,
    )
    await pipeline.arun(documents=[Document(text="annual leave", id_="leave")])
    engine = watched.engine(1)
    await engine.aquery(LEAVE)
    await pipeline.arun(documents=[Document(text="annual leave is long", id_="leave")])
    assert not report(await engine.aquery(LEAVE))["hit"]


def test_a_bare_store_for_an_index_that_is_made_from_it(cache: Cache) -> None:
    store = watch(chroma("cosine"), cache=cache, corpus="handbook")
    watched = Watched.__new__(Watched)
    from li_watch_world import Projected
    from llama_fakes import DigestLLM

    watched.cache, watched.embedding, watched.llm = cache, Projected(), DigestLLM()
    watched.index = VectorStoreIndex.from_vector_store(store, embed_model=watched.embedding)
    watched.insert("leave", "annual leave is thirty days")
    engine = watched.engine(1)
    engine.query(LEAVE)
    assert is_hit(engine)
    watched.index.delete_ref_doc("leave")
    watched.insert("leave", "annual leave is forty days")
    assert not is_hit(engine)


def test_persisting_goes_to_the_inner_stores(cache: Cache, tmp_path: Any) -> None:
    watched = Watched(cache)
    watched.index.storage_context.persist(tmp_path)
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    assert len(context.vector_store.to_dict()["embedding_dict"]) == 4  # type: ignore[attr-defined]  # the type says less than the object
    assert len(watched.index.vector_store.to_dict()["embedding_dict"]) == 4  # type: ignore[attr-defined]  # the type says less than the object
    assert watched.index.ref_doc_info.keys() == {"leave", "travel", "lunch", "pets"}


def test_what_cannot_be_watched_is_refused(cache: Cache) -> None:
    from llama_index.core import SummaryIndex

    with pytest.raises(ConfigError, match="keeps no texts"):
        watch(SimpleVectorStore(), cache=cache, corpus="handbook")
    with pytest.raises(ConfigError, match="A SummaryIndex cannot be watched"):
        watch(SummaryIndex([]), cache=cache, corpus="handbook")  # type: ignore[call-overload]  # what is to be refused
    with pytest.raises(ConfigError, match="there are 'cosine', 'dot', 'l2'"):
        watch(Plain(), cache=cache, corpus="handbook", metric="euclid")
    with pytest.raises(ConfigError, match="needs a name"):
        watch(Plain(), cache=cache, corpus="")

    class Own(VectorStoreIndex):
        def insert_nodes(self, nodes: Any, **insert_kwargs: Any) -> None:
            super().insert_nodes(nodes, **insert_kwargs)

    watched = Watched(cache)
    with pytest.raises(ConfigError, match="has insert_nodes of its own"):
        watch(Own([], embed_model=watched.embedding), cache=cache, corpus="handbook")
    with pytest.raises(ConfigError, match="watched already, as 'handbook'"):
        watch(watched.index, cache=cache, corpus="other")
    with pytest.raises(ConfigError, match="a StorageContext of its own"):
        index = VectorStoreIndex(
            [],
            embed_model=watched.embedding,
            storage_context=StorageContext.from_defaults(docstore=watched.index.docstore),
        )
        watch(index, cache=cache, corpus="other")
