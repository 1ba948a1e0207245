"""Deterministic models: an LLM that answers with a digest of its prompt, embeddings of words."""

import asyncio
import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import (
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.base.response.schema import Response
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import CustomQueryEngine, RetrieverQueryEngine
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr

from stampcache import Cache, Stamps, open_cache

WIDTH = 64
INDEX = Stamps(index="1")


def words_vector(text: str) -> list[float]:
    """Return a bag of hashed words: texts that share words are close."""
    vector = np.zeros(WIDTH)
    for word in text.lower().replace("?", "").split():
        vector[
            int(hashlib.md5(word.encode("utf-8", "replace"), usedforsecurity=False).hexdigest(), 16)
            % WIDTH
        ] += 1
    return [float(number) for number in vector + 1e-3]


class WordsEmbedding(BaseEmbedding):
    """The embedding model of the index; counts the questions, that is the retrievals."""

    model_name: str = "words"
    _asked: list[str] = PrivateAttr(default_factory=list)
    _meanwhile: Callable[[], object] | None = PrivateAttr(default=None)

    @property
    def retrievals(self) -> int:
        return len(self._asked)

    def meanwhile(self, happens: Callable[[], object] | None) -> None:
        """Let something happen during each retrieval."""
        self._meanwhile = happens

    def _get_query_embedding(self, query: str) -> list[float]:
        self._asked.append(query)
        if self._meanwhile is not None:
            self._meanwhile()
        return words_vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return words_vector(text)


class TopicEmbedder:
    """An embedder of the cache under which all questions with one last word are the same."""

    name = "topics"

    def __init__(self) -> None:
        self.calls = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += len(texts)
        rows = [words_vector(text.replace("?", "").split()[-1]) for text in texts]
        return np.asarray(rows, dtype=np.float32)


class DigestLLM(CustomLLM):
    """Answers with a digest of the prompt, and counts its calls."""

    temperature: float = 0.0
    model: str = "digest"
    api_key: str = "sk-secret"
    api_base: str = "http://one"
    additional_kwargs: dict[str, Any] = Field(default_factory=dict)
    chunk: int = 4
    _prompts: list[str] = PrivateAttr(default_factory=list)
    _make: Callable[[str], str] = PrivateAttr()
    _raw: Mapping[str, object] | None = PrivateAttr(default=None)
    _gate: threading.Event | None = PrivateAttr(default=None)
    _fail: Exception | None = PrivateAttr(default=None)
    _fail_after: int | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._make = lambda prompt: f"answer {digest(prompt)}"

    @classmethod
    def class_name(cls) -> str:
        return "DigestLLM"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.model)

    @property
    def calls(self) -> int:
        return len(self._prompts)

    @property
    def prompts(self) -> list[str]:
        return self._prompts

    def answers(self, text: str, raw: Mapping[str, object] | None = None) -> None:
        """Answer with this text from now on, with a provider's raw response."""
        self._make = lambda _: text
        self._raw = raw

    def fails(self, error: Exception | None, *, after_chunks: int | None = None) -> None:
        self._fail = error
        self._fail_after = after_chunks

    def meanwhile(self, happens: Callable[[], object]) -> None:
        """Let something happen while each answer is made."""

        def make(prompt: str) -> str:
            happens()
            return f"answer {digest(prompt)}"

        self._make = make

    def waits_for(self, gate: threading.Event) -> None:
        self._gate = gate

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return self._complete(prompt)

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        await asyncio.sleep(0)
        return self._complete(prompt)

    def _complete(self, prompt: str) -> CompletionResponse:
        self._prompts.append(prompt)
        if self._gate is not None and not self._gate.wait(20):
            raise TimeoutError("the gate stayed shut")
        if self._fail is not None:
            raise self._fail
        return CompletionResponse(text=self._make(prompt), raw=self._fresh_raw())

    def _fresh_raw(self) -> dict[str, object] | None:
        return None if self._raw is None else dict(self._raw)

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **_: Any
    ) -> CompletionResponseGen:
        self._prompts.append(prompt)
        whole = self._make(prompt)

        def stream() -> CompletionResponseGen:
            for at in range(0, len(whole), self.chunk):
                if self._fail is not None and at >= self.chunk * (self._fail_after or 0):
                    raise self._fail
                end = at + self.chunk
                raw = self._fresh_raw() if end >= len(whole) else None
                yield CompletionResponse(text=whole[:end], delta=whole[at:end], raw=raw)

        return stream()

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **_: Any
    ) -> CompletionResponseAsyncGen:
        self._prompts.append(prompt)
        whole = self._make(prompt)

        async def stream() -> CompletionResponseAsyncGen:
            for at in range(0, len(whole), self.chunk):
                await asyncio.sleep(0)
                if self._fail is not None and at >= self.chunk * (self._fail_after or 0):
                    raise self._fail
                end = at + self.chunk
                raw = self._fresh_raw() if end >= len(whole) else None
                yield CompletionResponse(text=whole[:end], delta=whole[at:end], raw=raw)

        return stream()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


class Corpus:
    """Documents by name in a vector index, one node each."""

    def __init__(self, documents: Mapping[str, str]) -> None:
        self.embedding = WordsEmbedding()
        self.index = VectorStoreIndex.from_documents([], embed_model=self.embedding)
        for name, text in documents.items():
            self.insert(name, text)

    def insert(self, name: str, text: str, metadata: dict[str, Any] | None = None) -> None:
        self.index.insert(Document(text=text, id_=name, metadata=metadata or {}))

    def delete(self, name: str) -> None:
        self.index.delete_ref_doc(name, delete_from_docstore=True)

    def edit(self, name: str, text: str) -> None:
        self.delete(name)
        self.insert(name, text)

    def engine(self, llm: DigestLLM, *, top_k: int = 2, **options: Any) -> BaseQueryEngine:
        # `as_retriever` would fix the ids of the nodes that the index has now
        retriever = VectorIndexRetriever(self.index, similarity_top_k=top_k)
        return RetrieverQueryEngine.from_args(retriever, llm=llm, **options)


def semantic_cache() -> Cache:
    """A cache whose embedder takes questions with one last word for the same."""
    return open_cache("memory://", embedder=TopicEmbedder(), calibration=0.9)


def bundle(question: str, **options: Any) -> QueryBundle:
    return QueryBundle(question, **options)


class OneStep(CustomQueryEngine):
    """An engine of which only the answer is seen, and the nodes that it tells of."""

    llm: DigestLLM
    told: list[NodeWithScore] | None = None

    def custom_query(self, query_str: str) -> Any:
        text = str(self.llm.complete(query_str).text)
        return Response(text, source_nodes=self.told)  # type: ignore[arg-type]  # as some do


def told(text: str, document: str) -> NodeWithScore:
    """A node of a document, as an engine tells of it."""
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}
    return NodeWithScore(node=TextNode(text=text, relationships=source), score=0.5)


def report(response: Any) -> dict[str, Any]:
    """What a response says about the cache."""
    assert response.metadata is not None
    found: dict[str, Any] = response.metadata["cache"]
    return found


def reasons(engine: BaseQueryEngine, *questions: str) -> list[str]:
    """Ask, and return ``"hit"`` or the reason why there was none."""
    found = [report(engine.query(question)) for question in questions]
    return ["hit" if each["hit"] else str(each["reason"]) for each in found]
