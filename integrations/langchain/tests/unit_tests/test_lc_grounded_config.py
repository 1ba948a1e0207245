"""Every part that retrieves must read from watched stores of one corpus: else it is named, and why."""

from typing import Any

import pytest

pytest.importorskip("langchain_classic")

from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MergerRetriever,
    MultiQueryRetriever,
    ParentDocumentRetriever,
    TimeWeightedVectorStoreRetriever,
)
from langchain_classic.retrievers.document_compressors import EmbeddingsFilter
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableBranch, RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter
from lc_watched import HANDBOOK, Compass, Desk, page
from pydantic import PrivateAttr

from langchain_stampcache import CachedChain, CachedRetriever, StampCache
from langchain_stampcache.retrieval.watched import source_of
from stampcache import Cache, ConfigError, Manifest


@pytest.fixture
def desk(opened: Cache) -> Desk:
    return Desk(opened, page(10))


UNWATCHED = InMemoryVectorStore(Compass())


class Held(BaseRetriever):
    """Finds what it holds."""

    pages: list[Document]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.pages


class Around(BaseRetriever):
    """Reads from whatever it was given."""

    _store: Any = PrivateAttr(default=None)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return list(self._store.similarity_search(query))


class OfTheModule(BaseRetriever):
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return UNWATCHED.similarity_search(query)


def around(store: Any) -> Around:
    made = Around()
    made._store = store
    return made


def unwatched() -> Any:
    return UNWATCHED.as_retriever()


def merger(desk: Desk) -> Any:
    return MergerRetriever(retrievers=[desk.retriever(), unwatched()])


def ensemble(desk: Desk) -> Any:
    return EnsembleRetriever(retrievers=[desk.retriever(), Held(pages=[page(1)])])


def several(desk: Desk) -> Any:
    said = RunnableLambda(lambda _: ["@0"])
    return MultiQueryRetriever(retriever=unwatched(), llm_chain=said)


def compressed(desk: Desk) -> Any:
    compressor = EmbeddingsFilter(embeddings=desk.compass)
    return ContextualCompressionRetriever(base_retriever=unwatched(), base_compressor=compressor)


def parents(desk: Desk) -> Any:
    return ParentDocumentRetriever(
        vectorstore=desk.store, docstore=InMemoryStore(), child_splitter=CharacterTextSplitter()
    )


def aged(desk: Desk) -> Any:
    return TimeWeightedVectorStoreRetriever(vectorstore=desk.store)


def branch(desk: Desk) -> Any:
    return RunnableBranch((lambda given: True, desk.retriever()), unwatched())


def function(desk: Desk) -> Any:
    return lambda question: UNWATCHED.similarity_search(question, k=1)


def closure(desk: Desk) -> Any:
    store = UNWATCHED
    return lambda question: store.similarity_search(question, k=1)


def method(desk: Desk) -> Any:
    return UNWATCHED.similarity_search


def nothing(desk: Desk) -> Any:
    return lambda question: [page(1)]


def older(desk: Desk) -> Any:
    return CachedRetriever(inner=desk.retriever(), cache=desk.cache, corpus=HANDBOOK, version="1")


def two(desk: Desk) -> Any:
    other = Desk(desk.cache, corpus="another")
    return MergerRetriever(retrievers=[desk.retriever(), other.retriever()])


REFUSED = {
    "alone": (lambda desk: unwatched(), "retriever.vectorstore (InMemoryVectorStore)"),
    "merger": (merger, "retriever.retrievers[1].vectorstore (InMemoryVectorStore)"),
    "ensemble": (ensemble, "retriever.retrievers[1].pages[0] holds documents"),
    "several": (several, "retriever.retriever.vectorstore (InMemoryVectorStore)"),
    "compressed": (compressed, "retriever.base_retriever.vectorstore (InMemoryVectorStore)"),
    "parents": (parents, "retriever.docstore (InMemoryStore"),
    "aged": (aged, "retriever (TimeWeightedVectorStoreRetriever) finds other documents as time"),
    "branch": (branch, "retriever.default.vectorstore (InMemoryVectorStore)"),
    "private": (lambda desk: around(UNWATCHED), "retriever._store (InMemoryVectorStore)"),
    "of the module": (lambda desk: OfTheModule(), "retriever (UNWATCHED) (InMemoryVectorStore)"),
    "function": (function, "retriever (UNWATCHED) (InMemoryVectorStore)"),
    "closure": (closure, "retriever (store) (InMemoryVectorStore)"),
    "method": (method, "retriever.__self__ (InMemoryVectorStore)"),
    "nothing": (nothing, "retriever (function) reads from no watched index"),
    "older": (older, "retriever (CachedRetriever) keeps documents"),
    "two": (two, "retriever.retrievers[1].vectorstore reads from corpus 'another'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_part_that_is_not_watched_is_named(desk: Desk, name: str) -> None:
    make, said = REFUSED[name]
    with pytest.raises(ConfigError) as caught:
        desk.chain(make(desk))
    assert said in str(caught.value)


ACCEPTED = {
    "merger": lambda desk: MergerRetriever(retrievers=[desk.retriever(), desk.retriever(k=1)]),
    "private": lambda desk: around(desk.store),
    "function": lambda desk: lambda question: desk.store.similarity_search(question, k=1),
    "method": lambda desk: desk.store.similarity_search,
    "cached": lambda desk: CachedRetriever(
        inner=desk.retriever(), cache=desk.cache, grounding="watch"
    ),
    "compressed": lambda desk: ContextualCompressionRetriever(
        base_retriever=desk.retriever(),
        base_compressor=EmbeddingsFilter(embeddings=desk.compass),
    ),
    "sequence": lambda desk: RunnableLambda(lambda given: given["input"]) | desk.retriever(),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_reads_from_watched_stores_only_is_taken(desk: Desk, name: str) -> None:
    assert source_of(ACCEPTED[name](desk)).corpus == HANDBOOK


def test_another_corpus_is_refused(desk: Desk) -> None:
    with pytest.raises(
        ConfigError, match="corpus= is 'other', and what is retrieved from is watched"
    ):
        desk.chain(corpus="other")
    with pytest.raises(ConfigError, match="other"):
        desk.chain(manifest=Manifest(corpus="other", version="1"))


def test_without_a_retriever_there_is_nothing_to_watch(desk: Desk) -> None:
    with pytest.raises(ConfigError, match='give grounding="none"'):
        CachedChain(retriever=None, answer=desk.answer, cache=desk.cache, grounding="watch")


def test_a_chain_that_is_not_looked_into_needs_the_name_of_its_corpus(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="give corpus="):
        CachedChain.around(
            RunnableLambda(lambda question: "text"), cache=desk.cache, grounding="watch"
        )


def test_a_part_of_a_chain_around_that_is_seen_must_be_watched(desk: Desk) -> None:
    chain = unwatched() | RunnableLambda(str)
    with pytest.raises(ConfigError, match=r"chain\.first\.vectorstore \(InMemoryVectorStore\)"):
        CachedChain.around(chain, cache=desk.cache, grounding="watch", corpus=HANDBOOK)


def test_a_retriever_beside_a_chain_reads_from_the_same_corpus(desk: Desk) -> None:
    other = Desk(desk.cache, corpus="another")
    with pytest.raises(ConfigError, match="watched as"):
        CachedChain.around(
            desk.retriever() | RunnableLambda(str),
            cache=desk.cache,
            grounding="watch",
            retriever=other.retriever(),
        )


class Rights:
    """An object whose state nobody sees."""


def test_a_filter_that_cannot_be_identified_needs_a_version(desk: Desk) -> None:
    rights = Rights()
    retriever = desk.retriever(filter=lambda one: rights is not None)
    with pytest.raises(ConfigError, match="version="):
        desk.chain(retriever)
    asked = {"input": "@0 north?"}
    desk.chain(retriever, version="1").invoke(asked)
    assert desk.chain(retriever, version="1").invoke(asked)["cache"]["hit"]
    assert not desk.chain(retriever, version="2").invoke(asked)["cache"]["hit"]


def test_what_a_function_in_the_place_of_a_retriever_sees_is_part_of_it(desk: Desk) -> None:
    store, asked = desk.store, {"input": "@0 north?"}

    def finding(count: int) -> Any:
        return desk.chain(lambda question: store.similarity_search(question, k=count))

    finding(1).invoke(asked)
    assert finding(1).invoke(asked)["cache"]["hit"]
    assert not finding(2).invoke(asked)["cache"]["hit"]


def test_a_function_that_sees_what_cannot_be_identified_needs_a_version(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="version="):
        desk.chain(lambda question: desk.store.similarity_search(question, k=1))
    desk.chain(lambda question: desk.store.similarity_search(question, k=1), version="1")


def test_a_cached_retriever_names_its_part(desk: Desk) -> None:
    with pytest.raises(ConfigError, match=r"inner\.vectorstore \(InMemoryVectorStore\)"):
        CachedRetriever(inner=unwatched(), cache=desk.cache, grounding="watch")


def test_the_cache_of_a_model_has_nothing_to_watch(opened: Cache) -> None:
    with pytest.raises(ConfigError, match="CachedChain"):
        StampCache(opened, grounding="watch", corpus=HANDBOOK)
