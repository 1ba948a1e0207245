"""The LlamaIndex application over a watched index that processes share."""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core import PromptTemplate, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from pydantic import PrivateAttr

from llama_index_stampcache import CachedQueryEngine, watch
from stampcache import Cache
from tests.differential.apps import PROMPTS, DigestLLM, Halt, Reply
from tests.differential.index import IndexFile, Row, cosine, embed
from tests.differential.process import Write
from tests.differential.world import CORPUS, Chunk, K, State


class WordEmbedding(BaseEmbedding):
    """Embeds as the world does."""

    model_name: str = "world"

    def _get_query_embedding(self, query: str) -> list[float]:
        return list(map(float, embed(query)))

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return list(map(float, embed(text)))


class FileVectorStore(BasePydanticVectorStore):
    """A vector store on an `IndexFile`."""

    stores_text: bool = True
    _file: IndexFile = PrivateAttr()

    def __init__(self, file: IndexFile) -> None:
        super().__init__(stores_text=True)
        self._file = file

    @property
    def client(self) -> IndexFile:
        return self._file

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        rows = [Row(node.node_id, node.get_content(), dict(node.metadata)) for node in nodes]
        self._file.add(rows, [node.get_embedding() for node in nodes])
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        self._file.delete(self._file.ids_of(ref_doc_id))

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        self._file.delete(node_ids or [])

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        rows = self._file.rows()
        return [_node(row) for row in rows if node_ids is None or row.id in node_ids]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        asked = query.query_embedding or []
        source = query.filters.filters[0].value if query.filters else None  # type: ignore[union-attr]  # they are not nested
        rows = self._file.search(asked, query.similarity_top_k, source)  # type: ignore[arg-type]  # a source is a text
        vector = np.asarray(asked, np.float32)
        return VectorStoreQueryResult(
            nodes=[_node(row) for row in rows],
            similarities=[cosine(vector, embed(row.text)) for row in rows],
            ids=[row.id for row in rows],
        )


def _node(row: Row) -> TextNode:
    source = RelatedNodeInfo(node_id=str(row.metadata["source"]))
    return TextNode(
        id_=row.id,
        text=row.text,
        metadata=row.metadata,
        relationships={NodeRelationship.SOURCE: source},
        excluded_embed_metadata_keys=["source", "updated_at"],
        excluded_llm_metadata_keys=["updated_at"],
    )


class LlamaIndex:
    """The watched index of one process; it is written to by the ways that apps have."""

    def __init__(self, cache: Cache, path: Path, halt: Halt | None) -> None:
        self._file = IndexFile(path, halt)
        inner = FileVectorStore(self._file)
        listed = path.stem.endswith(("1", "3", "5", "7", "9"))
        store = watch(
            inner,
            cache=cache,
            corpus=CORPUS,
            metric="cosine",
            listing=inner.get_nodes if listed else None,
        )
        self.index = _over(store)
        self.plain = _over(FileVectorStore(IndexFile(path)))

    def write(self, asked: Write) -> None:
        """Ingest or delete a document."""
        nodes: list[BaseNode] = [_written(one, asked) for one in asked.chunks]
        old = self._file.ids_of(asked.source)
        match asked.way:
            case "index":
                self.index.delete_ref_doc(asked.source)
                self.index.insert_nodes(nodes)
            case "replace":
                self.index.delete_nodes(old)
                self.index.insert_nodes(nodes)
            case "upsert":
                self.index.insert_nodes(nodes)
                self.index.delete_nodes([one for one in old if one not in _ids(nodes)])
            case "anew":
                self.index.delete_nodes(old)
                for node in nodes:
                    node.id_ = secrets.token_hex(4)
                self.index.insert_nodes(nodes)


def _ids(nodes: Sequence[BaseNode]) -> set[str]:
    return {node.node_id for node in nodes}


def _over(store: BasePydanticVectorStore) -> VectorStoreIndex:
    return VectorStoreIndex.from_vector_store(store, embed_model=WordEmbedding())


def _written(chunk: Chunk, asked: Write) -> TextNode:
    text = chunk.text.replace(" ", "  ") if asked.spaced else chunk.text
    return _node(Row(chunk.id, text, {"source": chunk.source, "updated_at": asked.state.now}))


class Backwards(BaseNodePostprocessor):
    """A reranker."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return nodes[::-1]


class Otherwise(BaseRetriever):
    """Asks more than it is asked."""

    def __init__(self, inner: BaseRetriever) -> None:
        self.inner = inner
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.inner.retrieve(f"{query_bundle.query_str} and lunch")


def retriever_of(index: VectorStoreIndex, search: str) -> BaseRetriever:
    """Return what finds nodes; by which of the ways that there are."""
    flat = VectorIndexRetriever(index, similarity_top_k=K)
    match search:
        case "all":
            return VectorIndexRetriever(index, similarity_top_k=50)
        case "filtered":
            only = MetadataFilters(filters=[MetadataFilter(key="source", value="a.md")])
            return VectorIndexRetriever(index, similarity_top_k=K, filters=only)
        case "two":
            more = VectorIndexRetriever(index, similarity_top_k=3)
            llm = DigestLLM(callback_manager=CallbackManager())
            return QueryFusionRetriever([flat, more], llm=llm, num_queries=1, use_async=False)
        case "other":
            return Otherwise(flat)
    return flat


class ShownLLM(DigestLLM):
    """A model for which white space says nothing."""

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        return super().complete(" ".join(prompt.split()), formatted, **kwargs)


class WatchedEngineApp:
    """A `CachedQueryEngine` over a watched index."""

    def __init__(
        self, cache: Cache, index: LlamaIndex, state: State, halt: Halt | None = None
    ) -> None:
        self.state = state
        self._plain = _engine(index.plain, state, None)
        self._cached = CachedQueryEngine(
            _engine(index.index, state, halt), cache=cache, grounding="watch", version="1"
        )

    def ask(self, question: str) -> Reply:
        response = self._cached.query(question)
        assert response.metadata is not None
        fields: Any = response.metadata["cache"]
        level = fields["level"] if fields["hit"] else ""
        return Reply(str(response), _shown(response.source_nodes), level, fields["reason"])

    def uncached(self, question: str) -> Reply:
        response = self._plain.query(question)
        return Reply(str(response), _shown(response.source_nodes))


def _engine(index: VectorStoreIndex, state: State, halt: Halt | None) -> RetrieverQueryEngine:
    llm = ShownLLM(model=state.model, callback_manager=CallbackManager())
    llm._halt = halt
    template = PROMPTS[state.prompt].replace("{documents}", "{context_str}")
    return RetrieverQueryEngine.from_args(
        retriever_of(index, state.search),
        llm=llm,
        text_qa_template=PromptTemplate(template.replace("{input}", "{query_str}")),
        node_postprocessors=[Backwards()] if state.search == "ranked" else [],
    )


def _shown(found: Sequence[NodeWithScore]) -> list[str]:
    return [f"{one.node.metadata['source']}: {' '.join(one.text.split())}" for one in found]
