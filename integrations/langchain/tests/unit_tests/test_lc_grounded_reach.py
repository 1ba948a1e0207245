"""What `explain` says that a write must reach, for each way of retrieving; and that it is so."""

from typing import Any

import pytest

pytest.importorskip("langchain_classic")

from langchain_classic.retrievers import (
    ContextualCompressionRetriever,
    EnsembleRetriever,
    MultiQueryRetriever,
    ParentDocumentRetriever,
)
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryStore
from langchain_text_splitters import CharacterTextSplitter
from lc_watched import HANDBOOK, Compass, Desk, is_hit, page, watch_step

from langchain_stampcache import watch
from stampcache import Cache

NORTH = {"input": "@0 what is north?"}


@pytest.fixture
def desk(opened: Cache) -> Desk:
    return Desk(opened, page(10), page(50), page(90))


def reach_of(chain: Any) -> str:
    """Return what is said of an answer that was just made."""
    assert not is_hit(chain.invoke(NORTH))
    assert is_hit(chain.invoke(NORTH))
    return watch_step(chain.explain(NORTH))


def holds_after(desk: Desk, chain: Any, *pages: Document) -> bool:
    desk.store.add_documents(list(pages))
    return is_hit(chain.invoke(NORTH))


def ends_with_anything(desk: Desk, chain: Any) -> bool:
    return not holds_after(desk, chain, page(179, "far away"))


def test_the_k_nearest(desk: Desk) -> None:
    chain = desk.chain()
    assert reach_of(chain) == "a write to corpus 'handbook' ends it at cosine 0.6428 or more"
    assert holds_after(desk, chain, page(51))
    assert not holds_after(desk, chain, page(49))


def test_fewer_than_k(desk: Desk) -> None:
    chain = desk.chain(desk.retriever(k=9))
    assert "ends it at cosine any score; fewer than 9 chunks were found" in reach_of(chain)
    assert ends_with_anything(desk, chain)


def test_a_threshold(opened: Cache) -> None:
    """What is cut off does not count, though fewer than k are found."""
    chroma = pytest.importorskip("langchain_chroma")
    desk = Desk(opened, corpus="unused")
    inner = chroma.Chroma("threshold", Compass(), collection_metadata={"hnsw:space": "cosine"})
    desk.store = watch(inner, cache=opened, corpus=HANDBOOK)
    desk.store.add_documents([page(10), page(30), page(85)])
    search = {"search_type": "similarity_score_threshold", "k": 9, "score_threshold": 0.5}
    chain = desk.chain(desk.retriever(**search))
    said = reach_of(chain)
    assert "the index cuts off at 0.5" in said
    assert holds_after(desk, chain, page(80))
    assert not holds_after(desk, chain, page(55))
    inner.delete_collection()


def test_ties_that_differ(opened: Cache) -> None:
    desk = Desk(opened, page(10), page(50, id="one"), page(50, id="two"), page(90))
    chain = desk.chain()
    assert "chance ranks them" in reach_of(chain)
    assert ends_with_anything(desk, chain)


def test_a_filter(desk: Desk) -> None:
    """A filter that can be read is a plain search: what it lets through must be as close, too."""
    chroma = pytest.importorskip("langchain_chroma")
    inner = chroma.Chroma("filtered", Compass(), collection_metadata={"hnsw:space": "cosine"})
    desk = Desk(desk.cache, corpus="unused")
    desk.store = watch(inner, cache=desk.cache, corpus="filtered")
    desk.store.add_documents([page(10, team="a"), page(20, team="b"), page(50, team="a")])
    chain = desk.chain(desk.retriever(filter={"team": "a"}))
    assert "ends it at cosine 0.6428 or more" in reach_of(chain)
    assert holds_after(desk, chain, page(60, team="a"))
    assert not holds_after(desk, chain, page(20, "is of the other team now", team="a"))
    inner.delete_collection()


def test_a_filter_that_is_a_function(desk: Desk) -> None:
    chain = desk.chain(desk.retriever(filter=lambda one: one.metadata["source"] != "50.md"))
    assert "any write to corpus 'handbook' ends it (its filter is a function)" in reach_of(chain)
    assert ends_with_anything(desk, chain)


def test_maximal_marginal_relevance(desk: Desk) -> None:
    chain = desk.chain(desk.retriever(search_type="mmr", fetch_k=3))
    assert "maximal marginal relevance" in reach_of(chain)
    assert ends_with_anything(desk, chain)


def test_several_queries(desk: Desk) -> None:
    said = RunnableLambda(lambda _: ["@0 north?", "@40 more?"])
    retriever = MultiQueryRetriever(retriever=desk.retriever(), llm_chain=said)
    chain = desk.chain(retriever)
    assert "any write to corpus 'handbook' ends it (it was made from 2 searches)" in reach_of(chain)
    assert ends_with_anything(desk, chain)


def hypothetical(question: str) -> str:
    return "@170 a page that would answer it"


def test_a_hypothetical_document(desk: Desk) -> None:
    """What is searched for is another text; its own neighbourhood counts."""
    chain = desk.chain(
        RunnableLambda(lambda given: hypothetical(given["input"])) | desk.retriever()
    )
    assert "ends it at cosine" in reach_of(chain)
    assert holds_after(desk, chain, page(0, "near the question only"))
    assert not holds_after(desk, chain, page(171))


class Backwards(BaseDocumentCompressor):
    """A reranker: the last one first."""

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return list(documents)[::-1]


def test_a_reranker(desk: Desk) -> None:
    retriever = ContextualCompressionRetriever(
        base_retriever=desk.retriever(), base_compressor=Backwards()
    )
    chain = desk.chain(retriever)
    assert "ends it (what was found was chosen from or ranked anew)" in reach_of(chain)
    assert ends_with_anything(desk, chain)


def test_an_ensemble(desk: Desk) -> None:
    retriever = EnsembleRetriever(retrievers=[desk.retriever(k=1), desk.retriever(k=3)])
    chain = desk.chain(retriever)
    assert "ends it (it was made from 2 searches)" in reach_of(chain)
    assert ends_with_anything(desk, chain)


def test_equal_searches_of_an_ensemble_count_once(desk: Desk) -> None:
    chain = desk.chain(EnsembleRetriever(retrievers=[desk.retriever(), desk.retriever()]))
    assert "ends it at cosine 0.6428 or more" in reach_of(chain)
    assert holds_after(desk, chain, page(51))
    assert not holds_after(desk, chain, page(49))


def test_parent_documents(desk: Desk) -> None:
    """What is answered from is not what was searched."""
    parents = watch(InMemoryStore(), cache=desk.cache, corpus=HANDBOOK)
    retriever = ParentDocumentRetriever(
        vectorstore=desk.store, docstore=parents, child_splitter=CharacterTextSplitter()
    )
    retriever.add_documents([page(5), page(15)], ids=None)
    chain = desk.chain(retriever)
    assert reach_of(chain).startswith("any write to corpus 'handbook' ends it")
    assert not holds_after(desk, chain, page(170))
    chain.invoke(NORTH)
    parents.mset([("another", page(1))])
    assert not is_hit(chain.invoke(NORTH))


def test_a_search_of_its_own_kind(desk: Desk) -> None:
    chain = desk.chain(RunnableLambda(lambda given: desk.store.get_by_ids(["10"])), version="1")
    assert "documents were fetched by their ids" in reach_of(chain)
    assert ends_with_anything(desk, chain)


def test_an_approximate_index(opened: Cache) -> None:
    """The same rules; how often they miss is measured by benchmarks."""
    chroma = pytest.importorskip("langchain_chroma")
    inner = chroma.Chroma("nearly", Compass(), collection_metadata={"hnsw:space": "l2"})
    desk = Desk(opened, corpus="unused")
    desk.store = watch(inner, cache=opened, corpus=HANDBOOK)
    desk.store.add_documents([page(10), page(50), page(90)])
    chain = desk.chain()
    assert "ends it at l2 -0.714" in reach_of(chain)
    assert holds_after(desk, chain, page(51))
    assert not holds_after(desk, chain, page(49))
    inner.delete_collection()
