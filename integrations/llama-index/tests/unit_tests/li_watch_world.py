"""A watched index to which anything is written, and engines over it with and without the cache."""

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np
from llama_fakes import DigestLLM, WordsEmbedding, report
from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.indices.query.query_transform.base import HyDEQueryTransform
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine, TransformQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQueryMode,
)
from pydantic import PrivateAttr

from llama_index_stampcache import CachedChatEngine, CachedQueryEngine, CachedRetriever, watch
from stampcache import Cache

WORDS = ("leave", "travel", "lunch", "days", "train", "pets", "salary")
QUESTIONS = ("leave", "travel days", "lunch", "pets")
NAMES = ("a", "b", "c", "d", "e", "f", "g", "h")
TEAMS = ("red", "blue")
_VOLATILE = re.compile(r"loaded_at: \d+")


def word_vector(word: str) -> Any:
    seed = int(hashlib.md5(word.encode(), usedforsecurity=False).hexdigest()[:8], 16)
    return np.random.default_rng(seed).normal(size=32)


class Projected(WordsEmbedding):
    """An embedding under which only equal bags of words are equally close; notes what it embeds."""

    _embedded: list[str] = PrivateAttr(default_factory=list)

    @property
    def embedded(self) -> list[str]:
        return self._embedded

    def _get_query_embedding(self, query: str) -> list[float]:
        self._asked.append(query)
        return projected(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        self._embedded.append(text)
        return projected(text)


def projected(text: str) -> list[float]:
    words = re.findall(r"[a-z]+", _VOLATILE.sub("", text).lower())
    vector = sum((word_vector(word) for word in words), np.full(32, 1e-3))
    return [float(number) for number in vector / np.linalg.norm(vector)]


class CalmLLM(DigestLLM):
    """Answers with a digest of its prompt, without white space and volatile metadata."""

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._make = lambda prompt: f"answer {calm(prompt)}"


def calm(text: str) -> str:
    plain = " ".join(_VOLATILE.sub("", text).split())
    return hashlib.sha256(plain.encode()).hexdigest()[:12]


class World:
    """Documents in one index, whose engines are asked with and without the cache."""

    def __init__(
        self,
        cache: Cache,
        *,
        store: BasePydanticVectorStore | None = None,
        embedding: WordsEmbedding | None = None,
    ) -> None:
        self.cache = cache
        self.seen: Counter[str] = Counter()
        self.embedding = embedding or Projected()
        context = StorageContext.from_defaults(vector_store=store)
        self.index = watch(
            VectorStoreIndex.from_documents(
                [], embed_model=self.embedding, storage_context=context
            ),
            cache=cache,
            corpus="world",
        )
        self.docs: dict[str, Document] = {}
        self.nodes: dict[str, str] = {}
        self.piped = SimpleDocumentStore()
        self.llm = CalmLLM()
        self.clock = 0
        self.engines: dict[str, Callable[[], BaseQueryEngine]] = {
            "flat": self.engine,
            "one": lambda: self.engine(k=1),
            "many": lambda: self.engine(k=50),
            "cutoff": lambda: self.engine(k=4, node_postprocessors=[cutoff(0.3)]),
            "cutoff many": lambda: self.engine(k=50, node_postprocessors=[cutoff(0.3)]),
            "stream": lambda: self.engine(streaming=True),
            "team": lambda: self.engine(filters=of_team("red")),
            "mmr": lambda: self.engine(vector_store_query_mode=VectorStoreQueryMode.MMR),
            "fused": self.fused,
            "hyde": self.hyde,
        }
        if store is None:
            self.engines["whole"] = lambda: self.index.as_query_engine(llm=self.llm)
        self.cached = {
            name: CachedQueryEngine(make(), cache=cache, grounding="watch", name=name)
            for name, make in self.engines.items()
            if name != "whole"
        }
        self.retriever = CachedRetriever(self.found(3), cache=cache, grounding="watch")
        self.chat = CachedChatEngine(self.chats(), cache=cache, grounding="watch")

    # -- engines -----------------------------------------------------------------------------------

    def found(self, k: int = 2, **options: Any) -> VectorIndexRetriever:
        return VectorIndexRetriever(self.index, similarity_top_k=k, **options)

    def engine(self, k: int = 2, **options: Any) -> BaseQueryEngine:
        ours = ("filters", "vector_store_query_mode")
        retriever = self.found(k, **{name: options.pop(name) for name in ours if name in options})
        return RetrieverQueryEngine.from_args(retriever, llm=self.llm, **options)

    def fused(self) -> BaseQueryEngine:
        parts: Any = [self.found(1), self.found(2)]
        retriever = QueryFusionRetriever(
            parts, llm=self.llm, num_queries=1, similarity_top_k=2, use_async=False
        )
        return RetrieverQueryEngine.from_args(retriever, llm=self.llm)

    def hyde(self) -> BaseQueryEngine:
        return TransformQueryEngine(self.engine(), HyDEQueryTransform(llm=self.llm))

    def chats(self) -> ContextChatEngine:
        memory = ChatMemoryBuffer.from_defaults(llm=self.llm)
        return ContextChatEngine.from_defaults(retriever=self.found(2), llm=self.llm, memory=memory)

    # -- questions ---------------------------------------------------------------------------------

    def ask(self, name: str, question: str, *, aio: bool = False) -> None:
        plain = self.engines[name]()
        engine = self.cached.get(name)
        if engine is None:
            engine = CachedQueryEngine(plain, cache=self.cache, grounding="watch", name=name)
        told: Any = asyncio.run(engine.aquery(question)) if aio else engine.query(question)
        true: Any = plain.query(question)
        said = report(told)
        self.note(said, name)
        stale = (said, name, question)
        assert text_of(told) == text_of(true), stale
        assert shown(told.source_nodes) == shown(true.source_nodes), stale

    def retrieve(self, question: str) -> None:
        told, true = self.retriever.retrieve(question), self.found(3).retrieve(question)
        assert shown(told) == shown(true), question

    def talk(self, message: str) -> None:
        self.chat.reset()
        told, true = self.chat.chat(message), self.chats().chat(message)
        self.note(report(told), "chat")
        assert told.response == true.response, report(told)

    def note(self, said: Mapping[str, Any], name: str) -> None:
        what = "hit" if said["hit"] else str(said["reason"])
        self.seen[what] += 1
        self.seen[f"{name}: {what}"] += 1

    # -- writes ------------------------------------------------------------------------------------

    def doc(self, name: str, text: str, team: str = "red") -> Document:
        self.clock += 1
        metadata = {"team": team, "loaded_at": self.clock}
        return Document(text=text, id_=name, metadata=metadata)

    def insert(self, name: str, text: str, team: str) -> None:
        self.delete(name)
        self.docs[name] = self.doc(name, text, team)
        self.index.insert(self.docs[name])

    def update(self, name: str, text: str, *, aio: bool = False) -> None:
        if name not in self.docs:
            return
        self.docs[name] = self.doc(name, text, self.docs[name].metadata["team"])
        if aio:
            asyncio.run(self.index.aupdate_ref_doc(self.docs[name]))
        else:
            self.index.update_ref_doc(self.docs[name])

    def again(self, name: str) -> None:
        """Ingest a document again, with other white space and at another time."""
        if name in self.docs:
            self.update(name, self.docs[name].text.replace(" ", "  ") + "\n")

    def refresh(self, name: str, text: str) -> None:
        for one in self.docs:
            self.docs[one] = Document(
                text=text if one == name else self.docs[one].text,
                id_=one,
                metadata=dict(self.docs[one].metadata),
            )
        self.index.refresh_ref_docs(list(self.docs.values()))

    def delete(self, name: str, *, aio: bool = False) -> None:
        if self.docs.pop(name, None) is None:
            return
        if aio:
            asyncio.run(self.index.adelete_ref_doc(name, delete_from_docstore=True))
        else:
            self.index.delete_ref_doc(name, delete_from_docstore=True)

    def put_node(self, name: str, text: str) -> None:
        """Insert a node of a known id; one that is there is deleted before."""
        self.drop_node(name)
        self.nodes[name] = text
        source = RelatedNodeInfo(node_id=f"of-{name}")
        node = TextNode(text=text, id_=name, relationships={NodeRelationship.SOURCE: source})
        self.index.insert_nodes([node])

    def drop_node(self, name: str) -> None:
        if self.nodes.pop(name, None) is not None:
            self.index.delete_nodes([name], delete_from_docstore=True)

    def over_node(self, name: str, text: str) -> None:
        """Insert a node in the place of another one, if its store lets it."""
        self.nodes[name] = text
        self.index.insert_nodes([TextNode(text=text, id_=name)])

    def clear(self) -> None:
        for name in list(self.docs):
            self.delete(name)
        for name in list(self.nodes):
            self.drop_node(name)
        self.put_node("LAST", "leave")  # some stores refuse to clear what is empty
        self.index.vector_store.clear()
        self.nodes.clear()

    def pipe(self, texts: Mapping[str, str], *, deletes: bool) -> None:
        """Run an ingestion pipeline with upserts, for a store that keeps texts."""
        upserts = DocstoreStrategy.UPSERTS
        strategy = DocstoreStrategy.UPSERTS_AND_DELETE if deletes else upserts
        pipeline = IngestionPipeline(
            transformations=[SentenceSplitter(chunk_size=64, chunk_overlap=0), self.embedding],
            vector_store=self.index.vector_store,
            docstore=self.piped,
            docstore_strategy=strategy,
            disable_cache=True,
        )
        pipeline.run(documents=[Document(text=text, id_=f"p-{n}") for n, text in texts.items()])


def cutoff(at: float) -> SimilarityPostprocessor:
    return SimilarityPostprocessor(similarity_cutoff=at)


def of_team(team: str) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key="team", value=team)])


def text_of(response: Any) -> str:
    chunks = getattr(response, "response_gen", None)
    return str(response) if chunks is None else "".join(chunks)


def shown(nodes: Any) -> list[tuple[str, str]]:
    return [
        (" ".join(one.node.get_content().split()), str(one.node.metadata.get("team")))
        for one in nodes
    ]


def some_text(rng: Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 4)))


def step(world: World, rng: Random) -> None:
    """Let one thing happen; most are questions."""
    name, text, what = rng.choice(NAMES), some_text(rng), rng.random() ** 1.6
    question = rng.choice(QUESTIONS)
    if what < 0.62:
        engines = sorted(world.engines)
        world.ask(rng.choice(engines), question, aio=False)
    elif what < 0.68:
        world.retrieve(question)
    elif what < 0.74:
        world.talk(question)
    elif what < 0.79:
        world.insert(name, text, rng.choice(TEAMS))
    elif what < 0.82:
        world.update(name, text, aio=rng.random() < 0.3)
    elif what < 0.86:
        world.again(name)
    elif what < 0.88:
        world.refresh(name, text)
    elif what < 0.91:
        world.delete(name, aio=rng.random() < 0.3)
    elif what < 0.94:
        world.put_node(name.upper(), text)
    elif what < 0.96:
        world.drop_node(name.upper())
    elif what < 0.975:
        world.over_node(name.upper(), text)
    elif what < 0.98:
        world.clear()
    elif world.index.vector_store.stores_text:
        texts = {one: some_text(rng) for one in rng.sample(NAMES, 2)}
        world.pipe(texts, deletes=rng.random() < 0.3)


def run(world: World, *, steps: int, seed: int) -> Counter[str]:
    """Let so many things happen; return what was seen."""
    rng = Random(seed)
    for _ in range(steps):
        step(world, rng)
    return world.seen
