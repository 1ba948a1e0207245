"""Vector stores and embedders for tests of `watch`: small, exact, and counting."""

import hashlib
import importlib.util
import itertools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_stampcache import watch
from stampcache import Answer, Cache, Evidence, Outcome, Request, Settings
from stampcache.adapters import Reading, readings

CORPUS = "handbook"
SIZE = 64
_NAMES = itertools.count()


class Words(Embeddings):
    """Texts that share words are close; counts what it embeds."""

    def __init__(self) -> None:
        self.embedded: list[str] = []
        self.asked: list[str] = []
        self.fails = False
        self._lock = threading.Lock()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.fails:
            raise ConnectionError("no embedder")
        with self._lock:
            self.embedded += texts
        return [self.vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        if self.fails:
            raise ConnectionError("no embedder")
        with self._lock:
            self.asked.append(text)
        return self.vector(text)

    @staticmethod
    def vector(text: str) -> list[float]:
        row = np.full(SIZE, 0.01)
        for word in text.lower().split():
            code = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest())
            row[code % SIZE] += 1 + (code % 17) / 100
        return [float(one) for one in row]


def in_memory(embedder: Embeddings | None = None) -> InMemoryVectorStore:
    return InMemoryVectorStore(embedder or Words())


def chroma(embedder: Embeddings | None = None, *, space: str = "l2") -> Any:
    chromadb = pytest.importorskip("chromadb")  # not with the oldest LangChain
    from langchain_chroma import Chroma

    return Chroma(
        collection_name=f"watched-{next(_NAMES)}",
        embedding_function=embedder or Words(),
        client=chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False)),
        collection_configuration={"hnsw": {"space": space}},
    )


def faiss_store(
    embedder: Embeddings | None = None, size: int = SIZE, *, index: Any = None, **options: Any
) -> Any:
    faiss = pytest.importorskip("faiss")
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

    return FAISS(
        embedding_function=embedder or Words(),
        index=faiss.IndexFlatL2(size) if index is None else index,
        docstore=InMemoryDocstore(),
        index_to_docstore_id={},
        **options,
    )


_NEEDS = {"in_memory": "langchain_core", "chroma": "langchain_chroma", "faiss": "faiss"}
_MAKE = {"in_memory": in_memory, "chroma": chroma, "faiss": faiss_store}
STORES = {name: make for name, make in _MAKE.items() if importlib.util.find_spec(_NEEDS[name])}
"""Those that are installed: the oldest LangChain is tested with its own store alone."""


class Asking:
    """Answers questions from what a watched store finds, through a cache, as a chain does."""

    def __init__(self, cache: Cache, store: Any, *, k: int = 2, **search: Any) -> None:
        self.cache = cache
        self.store = store
        self.search = {"k": k, **search}
        self.settings = Settings(
            params={"search": repr(sorted(self.search.items()))}, corpus=CORPUS, watched=True
        )

    def find(self, question: str) -> list[Document]:
        found: list[Document] = self.store.similarity_search(question, **self.search)
        return found

    def request(self, question: str) -> Request:
        return Request(question=question, settings=self.settings)

    def ask(self, question: str) -> Outcome:
        """Look up, and on a miss answer with the texts that were found."""
        request = self.request(question)
        outcome = self.cache.lookup(request)
        if type(outcome).__name__ != "Hit":
            with readings() as heard:
                found = self.find(question)
            self.cache.update(
                request,
                self.said(found),
                outcome=outcome,
                evidence=self.cited(found),
                readings=heard,
            )
        return outcome

    def said(self, found: Sequence[Document]) -> Answer:
        return Answer(text=" | ".join(one.page_content for one in found) or "nothing")

    def cited(self, found: Sequence[Document]) -> list[Evidence]:
        return [
            Evidence(corpus=CORPUS, chunk=one.id or "", text=one.page_content, rank=rank)
            for rank, one in enumerate(found)
        ]


def watched(cache: Cache, inner: Any = None, **options: Any) -> Any:
    return watch(in_memory() if inner is None else inner, cache=cache, corpus=CORPUS, **options)


def told(call: Any, *args: Any, **options: Any) -> Reading:
    """Return what is told of a search, which must be one thing."""
    with readings() as heard:
        call(*args, **options)
    (reading,) = heard
    return reading
