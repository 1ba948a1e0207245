"""A RAG application in LlamaIndex whose answers go through stampcache.

    python examples/llama_index_rag.py "What does the break statement do in a while loop?"

It answers from the Python language reference, with DeepSeek if DEEPSEEK_API_KEY or
DEEPSEEK_BASE_URL is set, else with a small local model. It asks twice: the second answer is a hit.
"""

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

from llama_index.core import (
    PromptTemplate,
    StorageContext,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.llms.deepseek import DeepSeek
from llama_index.llms.openai_like import OpenAILike
from pydantic import PrivateAttr
from rich.progress import track

import stampcache
from llama_index_stampcache import CachedQueryEngine
from stampcache.demo import corpus
from stampcache.demo.app import Reply
from stampcache.demo.endpoint import Endpoint, demo_folder, model_endpoint
from stampcache.embed import as_embedder
from stampcache.ports import Embedder

PROMPT = PromptTemplate(
    "Answer the question in one sentence, from the context alone.\n"
    "Context:\n{context_str}\n\nQuestion: {query_str}"
)
BATCH = 32


class MiniLM(BaseEmbedding):
    """The embedder of the cache, for the documents: one model in memory serves both."""

    _embedder: Embedder = PrivateAttr()

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(model_name=embedder.name, embed_batch_size=BATCH)
        self._embedder = embedder

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [[float(x) for x in row] for row in self._embedder.embed(texts)]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def language_model(endpoint: Endpoint) -> LLM:
    """Return a client of the endpoint that answers the same question in the same way."""
    if endpoint.is_deepseek:
        deepseek: LLM = DeepSeek(
            model=endpoint.model,
            api_key=endpoint.api_key,
            temperature=0,
            max_tokens=endpoint.max_tokens,
        )
        return deepseek
    compatible: LLM = OpenAILike(
        model=endpoint.model,
        api_base=endpoint.base_url,
        api_key=endpoint.api_key,
        temperature=0,
        max_tokens=endpoint.max_tokens,
        context_window=4_096,
        is_chat_model=True,
    )
    return compatible


def node(chunk: corpus.Chunk) -> TextNode:
    """Return a chunk as a node that knows its document."""
    document = RelatedNodeInfo(node_id=chunk.source)
    return TextNode(
        id_=chunk.id, text=chunk.text, relationships={NodeRelationship.SOURCE: document}
    )


class LlamaIndexRag:
    """The application: a vector index and its query engine, behind the cache."""

    def __init__(self, index: VectorStoreIndex, llm: LLM, cache: stampcache.Cache) -> None:
        self._index = index
        self._llm = llm
        self._cache = cache
        self._engine = self._connected()

    def _connected(self) -> CachedQueryEngine:
        """Return an engine over the nodes that the index has now: it would not see later ones."""
        return CachedQueryEngine(
            self._index.as_query_engine(llm=self._llm, similarity_top_k=3, text_qa_template=PROMPT),
            cache=self._cache,
            grounding="recheck",
            corpus="python-reference",
        )

    def ask(self, question: str) -> Reply:
        """Answer a question."""
        response = self._engine.query(question)
        return Reply(str(response), (response.metadata or {})["cache"])

    def explain(self, question: str) -> str:
        """Tell which check of the cache would decide about a question now."""
        return str(self._engine.explain(question))

    def edit(self, source: str, text: str) -> None:
        """Replace one document in the index."""
        self._index.delete_ref_doc(source, delete_from_docstore=True)
        self._index.insert_nodes(
            [node(one) for one in corpus.chunks(corpus.Document(source, text))]
        )
        self._engine = self._connected()

    def update(self, documents: Sequence[corpus.Document]) -> None:
        """Bring the index up to date: add the chunks that are new, delete those that are gone."""
        wanted = {chunk.id: chunk for one in documents for chunk in corpus.chunks(one)}
        present = set(self._index.index_struct.nodes_dict.values())
        if gone := sorted(present - wanted.keys()):
            self._index.delete_nodes(gone, delete_from_docstore=True)
        new = [node(chunk) for name, chunk in wanted.items() if name not in present]
        batches = [new[at : at + BATCH] for at in range(0, len(new), BATCH)]
        for batch in track(batches, description="Embedding the documents", disable=not batches):
            self._index.insert_nodes(batch)
        self._engine = self._connected()


def build(
    *, cache: stampcache.Cache, embedder: Embedder, endpoint: Endpoint, folder: Path
) -> LlamaIndexRag:
    """Return the application; its index is kept in the folder."""
    kept, embedding = folder / "llama-index", MiniLM(embedder)
    if (kept / "docstore.json").exists():
        storage = StorageContext.from_defaults(persist_dir=str(kept))
        index = cast(VectorStoreIndex, load_index_from_storage(storage, embed_model=embedding))
    else:
        index = VectorStoreIndex([], embed_model=embedding)
    app = LlamaIndexRag(index, language_model(endpoint), cache)
    app.update(corpus.python_reference())
    index.storage_context.persist(persist_dir=str(kept))
    return app


def main() -> None:
    """Answer the question of the command line, for the tenant "acme"."""
    question = " ".join(sys.argv[1:]) or "What does the break statement do in a while loop?"
    embedder, folder = as_embedder("minilm"), demo_folder()
    folder.mkdir(parents=True, exist_ok=True)
    cache = stampcache.open_cache(f"sqlite:///{folder}/rag.db", embedder=embedder)
    with closing(cache), model_endpoint() as endpoint, stampcache.scope(tenant="acme"):
        app = build(cache=cache, embedder=embedder, endpoint=endpoint, folder=folder)
        for _ in range(2):
            reply = app.ask(question)
            print(reply.text)
            print(reply.cache)


if __name__ == "__main__":
    main()
