"""A small watched index of documents by name, and how answers from it are asked for."""

from collections.abc import Mapping
from typing import Any

from li_watch_world import Projected
from llama_fakes import DigestLLM, report
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_stampcache import CachedQueryEngine, watch
from stampcache import Cache

DOCUMENTS = {
    "leave": "annual leave is thirty days",
    "travel": "travel costs are paid by train",
    "lunch": "lunch is served at noon",
    "pets": "dogs may come on friday",
}
LEAVE = "how many days of annual leave"


class Watched:
    """Documents in a watched index, one node each, and an engine over it behind the cache."""

    def __init__(
        self,
        cache: Cache,
        documents: Mapping[str, str] = DOCUMENTS,
        *,
        store: BasePydanticVectorStore | None = None,
        context: StorageContext | None = None,
        **options: Any,
    ) -> None:
        self.cache = cache
        self.embedding = Projected()
        self.llm = DigestLLM()
        given = context or StorageContext.from_defaults(vector_store=store)
        bare = VectorStoreIndex.from_documents(
            [], embed_model=self.embedding, storage_context=given
        )
        self.index = watch(bare, cache=cache, corpus="handbook", **options)
        for name, text in documents.items():
            self.insert(name, text)

    def insert(self, name: str, text: str, **metadata: Any) -> None:
        self.index.insert(Document(text=text, id_=name, metadata=metadata))

    def update(self, name: str, text: str, **metadata: Any) -> None:
        self.index.update_ref_doc(Document(text=text, id_=name, metadata=metadata))

    def delete(self, name: str) -> None:
        self.index.delete_ref_doc(name, delete_from_docstore=True)

    def retriever(self, k: int = 2, **options: Any) -> VectorIndexRetriever:
        return VectorIndexRetriever(self.index, similarity_top_k=k, **options)

    def plain(self, k: int = 2, **options: Any) -> BaseQueryEngine:
        return RetrieverQueryEngine.from_args(self.retriever(k), llm=self.llm, **options)

    def engine(self, k: int = 2, **options: Any) -> CachedQueryEngine:
        return CachedQueryEngine(self.plain(k, **options), cache=self.cache, grounding="watch")

    def around(self, engine: Any, **options: Any) -> CachedQueryEngine:
        return CachedQueryEngine(engine, cache=self.cache, grounding="watch", **options)


def is_hit(engine: CachedQueryEngine, question: str = LEAVE) -> bool:
    """Ask, and tell whether the answer came from the cache."""
    return bool(report(engine.query(question))["hit"])


def ends(engine: CachedQueryEngine, question: str = LEAVE) -> str:
    """Return what `explain` says would end the answer to a question that is cached."""
    outcome = engine.explain(question).outcome
    (said,) = [check.detail for check in outcome.trace if check.step == "watch"]
    return str(said)
