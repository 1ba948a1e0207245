"""Whatever an engine reads from must be watched; what is not is refused, and named."""

from typing import Any

import pytest
from llama_fakes import Corpus, DigestLLM
from llama_index.core import Document, StorageContext, SummaryIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor import FixedRecencyPostprocessor, PrevNextNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine
from llama_index.core.retrievers import AutoMergingRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool
from watched_documents import LEAVE, Watched, is_hit

from llama_index_stampcache import (
    CachedChatEngine,
    CachedQueryEngine,
    CachedRetriever,
    cache_sub_questions,
    watch,
)
from stampcache import Cache, ConfigError, open_cache


@pytest.fixture
def watched(cache: Cache) -> Watched:
    return Watched(cache)


def over(retriever: Any, llm: DigestLLM, **options: Any) -> RetrieverQueryEngine:
    return RetrieverQueryEngine.from_args(retriever, llm=llm, **options)


def refused(watched: Watched, engine: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        watched.around(engine, version="1")


def test_an_index_that_nobody_watches(watched: Watched, corpus: Corpus) -> None:
    engine = corpus.engine(watched.llm)
    refused(watched, engine, r"retriever.vector_store \(SimpleVectorStore\) is watched by nobody")
    retriever = VectorIndexRetriever(corpus.index)
    with pytest.raises(ConfigError, match="is watched by nobody"):
        CachedRetriever(retriever, cache=watched.cache, grounding="watch")


def test_an_engine_that_was_made_before_its_index_was_watched(cache: Cache) -> None:
    corpus, llm = Corpus({"leave": "annual leave"}), DigestLLM()
    before = corpus.engine(llm)
    watch(corpus.index, cache=cache, corpus="handbook")
    with pytest.raises(ConfigError, match="was made before its index was watched: make it anew"):
        CachedQueryEngine(before, cache=cache, grounding="watch")
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache, grounding="watch")
    engine.query(LEAVE)
    assert is_hit(engine)


def test_the_corpus_is_that_of_the_index(watched: Watched) -> None:
    engine = watched.around(watched.plain(1), corpus="handbook")
    engine.query(LEAVE)
    assert is_hit(engine)
    with pytest.raises(
        ConfigError, match="corpus= is 'other', and what is retrieved from is watched"
    ):
        watched.around(watched.plain(1), corpus="other")


def test_a_part_over_another_index(watched: Watched, corpus: Corpus, cache: Cache) -> None:
    def router() -> RouterQueryEngine:
        engines = (watched.plain(1), corpus.engine(watched.llm))
        tools = [QueryEngineTool.from_defaults(each, description="x") for each in engines]
        selector = LLMSingleSelector.from_defaults(llm=watched.llm)
        return RouterQueryEngine(selector, tools, llm=watched.llm)

    refused(watched, router(), r"query_engines\[1\].*is watched by nobody")
    watch(corpus.index, cache=cache, corpus="annex")
    refused(watched, router(), "answers from several corpora cannot be watched")


def test_other_indexes_and_what_holds_its_own_nodes(watched: Watched) -> None:
    whole = SummaryIndex.from_documents([Document(text="annual leave")])
    fused = QueryFusionRetriever(
        [watched.retriever(1), whole.as_retriever()], llm=watched.llm, num_queries=1
    )
    refused(watched, over(fused, watched.llm), "SummaryIndex.*is watched by nobody")

    class Holding(BaseRetriever):
        def __init__(self) -> None:
            self.nodes = [TextNode(text="annual leave")]
            super().__init__()

        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return [NodeWithScore(node=self.nodes[0], score=1.0)]

    refused(watched, over(Holding(), watched.llm), "is held outside of any index")


def test_a_retriever_that_reads_nothing_that_is_seen(watched: Watched) -> None:
    class Opaque(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            return []

    refused(
        watched, over(Opaque(), watched.llm), r"retriever \(Opaque\) reads from no watched index"
    )


def test_texts_beside_the_index_must_be_watched_as_well(watched: Watched) -> None:
    other = StorageContext.from_defaults(docstore=SimpleDocumentStore())
    merging = AutoMergingRetriever(watched.retriever(4), other)
    refused(watched, over(merging, watched.llm), r"docstore \(SimpleDocumentStore\)")
    neighbours = PrevNextNodePostprocessor(docstore=SimpleDocumentStore())
    refused(watched, watched.plain(1, node_postprocessors=[neighbours]), "SimpleDocumentStore")
    ours = PrevNextNodePostprocessor(docstore=watched.index.docstore)
    engine = watched.around(watched.plain(1, node_postprocessors=[ours]), version="1")
    engine.query(LEAVE)
    assert is_hit(engine)


def test_what_chooses_by_time(watched: Watched) -> None:
    recent = FixedRecencyPostprocessor(date_key="date")
    refused(watched, watched.plain(2, node_postprocessors=[recent]), "chooses by time")


def test_a_cache_inside_that_keeps_what_may_be_older(watched: Watched) -> None:
    inner = CachedRetriever(
        watched.retriever(1), cache=watched.cache, grounding="none", version="1"
    )
    refused(watched, over(inner, watched.llm), 'give it grounding="watch"')
    good = CachedRetriever(watched.retriever(1), cache=watched.cache, grounding="watch")
    engine = watched.around(over(good, watched.llm))
    engine.query(LEAVE)
    assert is_hit(engine)
    watched.insert("cats", "cats sleep on the sofa")
    assert not is_hit(engine)  # its search was not seen, so that any write ends it


def test_another_cache(watched: Watched) -> None:
    with open_cache("memory://") as other:
        with pytest.raises(ConfigError, match="is watched for another cache"):
            CachedQueryEngine(watched.plain(1), cache=other, grounding="watch")
        with pytest.raises(ConfigError, match="is watched for another cache"):
            CachedQueryEngine(watched.plain(1), cache="memory://", grounding="watch")


def test_parts_that_are_exchanged_later(watched: Watched, corpus: Corpus) -> None:
    inner: Any = watched.plain(1)
    engine = watched.around(inner)
    inner._retriever = VectorIndexRetriever(corpus.index, similarity_top_k=1)
    engine.query(LEAVE)
    assert not is_hit(engine)
    assert watched.cache.core.counters.of(None)["adapter.unwatched"] == 2


def test_a_search_in_a_thread_that_is_not_heard(watched: Watched) -> None:
    from concurrent.futures import ThreadPoolExecutor

    class Elsewhere(BaseRetriever):
        def __init__(self, inner: BaseRetriever) -> None:
            self.inner = inner
            super().__init__()

        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(self.inner.retrieve, query_bundle).result()

    engine = watched.around(over(Elsewhere(watched.retriever(1)), watched.llm))
    engine.query(LEAVE)
    assert not is_hit(engine)


def test_sub_questions_over_what_nobody_watches(watched: Watched, corpus: Corpus) -> None:
    from test_li_watch_reach import sub_questions

    whole = sub_questions(watched)
    whole._query_engines["annex"] = corpus.engine(watched.llm)
    with pytest.raises(ConfigError, match="is watched by nobody"):
        cache_sub_questions(whole, cache=watched.cache, grounding="watch", version="1")


def test_chats_without_documents(watched: Watched) -> None:
    memory = ChatMemoryBuffer.from_defaults(llm=watched.llm)
    chat = SimpleChatEngine.from_defaults(llm=watched.llm, memory=memory)
    with pytest.raises(ConfigError, match='grounding="none"'):
        CachedChatEngine(chat, cache=watched.cache, grounding="watch")


def test_what_cannot_be_swept(watched: Watched) -> None:
    from test_li_watch_reach import sub_questions

    engine = CachedQueryEngine(watched.plain(1), cache=watched.cache, corpus="handbook")
    with pytest.raises(ConfigError, match='this one has grounding="recheck"'):
        engine.sweep()
    with pytest.raises(ConfigError, match="does not show what it retrieves"):
        watched.around(sub_questions(watched), version="1").sweep()
