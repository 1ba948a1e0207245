"""A RAG application in LangChain whose answers go through stampcache.

    python examples/langchain_rag.py "What does the break statement do in a while loop?"

It answers from the Python language reference, with DeepSeek if DEEPSEEK_API_KEY or
DEEPSEEK_BASE_URL is set, else with a small local model. It asks twice: the second answer is a hit.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from chromadb.config import Settings
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_deepseek import ChatDeepSeek
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from rich.progress import track

import stampcache
from langchain_stampcache import CachedChain, StampCache
from stampcache.demo import corpus
from stampcache.demo.app import Reply
from stampcache.demo.endpoint import Endpoint, demo_folder, model_endpoint
from stampcache.embed import as_embedder
from stampcache.ports import Embedder

PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer the question in one sentence, from the context alone."),
        ("human", "Context:\n{documents}\n\nQuestion: {input}"),
    ]
)
BATCH = 32


class MiniLM(Embeddings):
    """The embedder of the cache, for the documents: one model in memory serves both."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed chunks."""
        return [[float(x) for x in row] for row in self._embedder.embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        return self.embed_documents([text])[0]


def chat_model(endpoint: Endpoint) -> BaseChatModel:
    """Return a client of the endpoint that answers the same question in the same way."""
    key = SecretStr(endpoint.api_key)
    if endpoint.is_deepseek:
        return ChatDeepSeek(
            model=endpoint.model, api_key=key, temperature=0, max_tokens=endpoint.max_tokens
        )
    return ChatOpenAI(
        model=endpoint.model,
        base_url=endpoint.base_url,
        api_key=key,
        temperature=0,
        max_completion_tokens=endpoint.max_tokens,
    )


def with_texts(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return what the prompt wants: the question, and the texts of the retrieved documents."""
    texts = [document.page_content for document in inputs["context"]]
    return {"input": inputs["input"], "documents": "\n\n".join(texts)}


class LangChainRag:
    """The application: Chroma, a prompt and a chat model, behind the cache."""

    def __init__(self, store: Chroma, chat: BaseChatModel, cache: stampcache.Cache) -> None:
        self._store = store
        self._rag = CachedChain(
            retriever=store.as_retriever(search_kwargs={"k": 3}),
            answer=with_texts | PROMPT | chat | StrOutputParser(),
            cache=cache,
            grounding="recheck",
            corpus="python-reference",
        )

    def ask(self, question: str) -> Reply:
        """Answer a question."""
        result = self._rag.invoke({"input": question})
        return Reply(result["answer"], result["cache"])

    def explain(self, question: str) -> str:
        """Tell which check of the cache would decide about a question now."""
        return str(self._rag.explain({"input": question}))

    def edit(self, source: str, text: str) -> None:
        """Replace one document in the index."""
        self._store.delete(where={"source": source})
        self.add(corpus.chunks(corpus.Document(source, text)))

    def add(self, chunks: Sequence[corpus.Chunk]) -> None:
        """Embed chunks and put them into the index."""
        self._store.add_documents(
            [Document(one.text, id=one.id, metadata={"source": one.source}) for one in chunks]
        )

    def update(self, documents: Sequence[corpus.Document]) -> None:
        """Bring the index up to date: add the chunks that are new, delete those that are gone."""
        wanted = {chunk.id: chunk for one in documents for chunk in corpus.chunks(one)}
        present = set(self._store.get(include=[])["ids"])
        if gone := sorted(present - wanted.keys()):
            self._store.delete(ids=gone)
        new = [chunk for name, chunk in wanted.items() if name not in present]
        batches = [new[at : at + BATCH] for at in range(0, len(new), BATCH)]
        for batch in track(batches, description="Embedding the documents", disable=not batches):
            self.add(batch)


def build(
    *, cache: stampcache.Cache, embedder: Embedder, endpoint: Endpoint, folder: Path
) -> LangChainRag:
    """Return the application; its index is kept in the folder."""
    set_llm_cache(StampCache(cache))  # every other call of a model in this process, exactly keyed
    store = Chroma(
        collection_name="python-reference",
        embedding_function=MiniLM(embedder),
        persist_directory=str(folder / "chroma"),
        collection_metadata={"hnsw:space": "cosine"},
        client_settings=Settings(anonymized_telemetry=False, is_persistent=True),
    )
    app = LangChainRag(store, chat_model(endpoint), cache)
    app.update(corpus.python_reference())
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
