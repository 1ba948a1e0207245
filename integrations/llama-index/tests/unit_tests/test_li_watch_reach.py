"""What ends an answer, for each way of retrieving: what `explain` says, and that it is so."""

from typing import Any

import pytest
from li_watch_world import of_team
from llama_fakes import WordsEmbedding, report
from llama_index.core import Document, StorageContext
from llama_index.core.indices.query.query_transform.base import HyDEQueryTransform
from llama_index.core.postprocessor import (
    LLMRerank,
    MetadataReplacementPostProcessor,
    SimilarityPostprocessor,
)
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import AutoMergingRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQueryMode,
)
from test_li_watch_stores import Plain
from watched_documents import LEAVE, Watched, ends, is_hit

from llama_index_stampcache import CachedQueryEngine, cache_sub_questions
from stampcache import Cache, Reason

ANY = "any write to corpus 'handbook' ends it"
STORED = ("ref_doc_id", "_node_type")  # by the store itself
FAR = "cats sleep on the sofa"


@pytest.fixture
def watched(cache: Cache) -> Watched:
    return Watched(cache)


def outlives(watched: Watched, engine: CachedQueryEngine) -> bool:
    """Ask, write far away from the question, and tell whether the answer is still given."""
    engine.query(LEAVE)
    assert is_hit(engine)
    watched.insert("cats", FAR)
    return is_hit(engine)


def test_the_k_nearest(watched: Watched) -> None:
    engine = watched.engine(1)
    assert outlives(watched, engine)
    (found,) = watched.retriever(1).retrieve(LEAVE)
    said = ends(engine)
    assert said.startswith("a write to corpus 'handbook' ends it at cosine ")
    floor = float(said.split()[-3])
    assert found.score is not None and floor == pytest.approx(found.score, abs=1e-3)


def test_fewer_than_k(watched: Watched) -> None:
    engine = watched.engine(50)
    engine.query(LEAVE)
    assert "any score; fewer than 50 chunks were found" in ends(engine)
    assert not outlives(watched, engine)


def test_a_cutoff_by_score(watched: Watched) -> None:
    engine = watched.engine(
        50, node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.3)]
    )
    engine.query(LEAVE)
    assert "the index cuts off at 0.3" in ends(engine)
    assert outlives(watched, engine)
    watched.insert("more", "how many days of leave")
    assert not is_hit(engine)


def test_a_chunk_that_moves_past_the_cutoff(cache: Cache) -> None:
    """Volatile metadata that is embedded moves a chunk: nobody may rely on its score."""
    watched = Watched(cache, {})
    watched.embedding = WordsEmbedding()  # type: ignore[assignment]  # another one for this test
    watched.index._embed_model = watched.embedding
    watched.insert("leave", "days", loaded_at="x y z")
    watched.insert("other", "noon")
    cutoff = SimilarityPostprocessor(similarity_cutoff=0.4)
    engine, plain = (
        watched.engine(2, node_postprocessors=[cutoff]),
        watched.plain(2, node_postprocessors=[cutoff]),
    )
    for metadata in ("x y z", "", "a b c d e f g h", "x"):
        watched.update("leave", "days", loaded_at=metadata)
        told, true = engine.query("days x y z"), plain.query("days x y z")
        assert [one.node_id for one in told.source_nodes] == [
            one.node_id for one in true.source_nodes
        ]


def test_filters_over_what_lasts(watched: Watched) -> None:
    watched.insert("red", "annual leave of the red team", team="red")
    engine = watched.around(
        RetrieverQueryEngine.from_args(
            watched.retriever(1, filters=of_team("red")), llm=watched.llm
        )
    )
    assert outlives(watched, engine)
    assert "cosine" in ends(engine)
    watched.insert("blue", LEAVE, team="blue")  # it is near, and the filter is not asked
    engine.query(LEAVE)
    watched.update("red", "annual leave of the red team", team="green")
    assert not is_hit(engine)


@pytest.mark.parametrize(
    "key", ["loaded_at", "last_modified_date", "file_size", "ref_doc_id", "_node_type", "ours"]
)
def test_filters_over_what_is_not_told_keep_nothing(cache: Cache, key: str) -> None:
    watched = Watched(cache, volatile=["ours"])
    watched.insert("red", "annual leave", **({} if key in STORED else {key: "red"}))
    filters = MetadataFilters(filters=[MetadataFilter(key=key, value="red")])
    retriever = watched.retriever(1, filters=filters)
    engine = watched.around(RetrieverQueryEngine.from_args(retriever, llm=watched.llm))
    engine.query(LEAVE)
    assert not is_hit(engine)
    assert cache.core.counters.of(None)["adapter.unwatched"] == 2


def test_ties(cache: Cache) -> None:
    """Of two chunks that are equally close, chance finds one; it may find the other one next time."""
    watched = Watched(cache, {"one": "days of leave", "two": "leave of days"})
    engine = watched.engine(1)
    engine.query(LEAVE)
    assert "equally close" in ends(engine) and ends(engine).startswith(ANY)
    for name in ("one", "two", "one", "two"):
        watched.delete(name)
        watched.insert(name, "days of leave" if name == "one" else "leave of days")
        told, true = engine.query(LEAVE), watched.plain(1).query(LEAVE)
        assert [one.text for one in told.source_nodes] == [one.text for one in true.source_nodes]


def test_mmr(watched: Watched) -> None:
    retriever = watched.retriever(1, vector_store_query_mode=VectorStoreQueryMode.MMR)
    engine = watched.around(RetrieverQueryEngine.from_args(retriever, llm=watched.llm))
    engine.query(LEAVE)
    assert ends(engine) == f"{ANY} (it is a search of mode 'mmr')"
    assert not outlives(watched, engine)


def test_hybrid_search(cache: Cache) -> None:
    watched = Watched(cache, store=Plain(), metric="cosine")
    retriever = watched.retriever(1, vector_store_query_mode=VectorStoreQueryMode.HYBRID)
    engine = watched.around(RetrieverQueryEngine.from_args(retriever, llm=watched.llm))
    engine.query(LEAVE)
    assert ends(engine) == f"{ANY} (it is a search of mode 'hybrid')"
    assert not outlives(watched, engine)


def test_a_store_that_writes_a_node_again_may_find_it_elsewhere(cache: Cache) -> None:
    """Among those that are as close: so it is told to have gone, where nothing is known of the store."""
    watched = Watched(cache, {}, store=Plain(), metric="cosine")
    nodes = [TextNode(text=text, id_=text) for text in ("days of leave", "leave of days")]
    watched.index.insert_nodes(nodes)
    engine = watched.engine(2)
    engine.query(LEAVE)
    assert "equally close" in ends(engine)
    watched.index.insert_nodes(nodes[:1])  # as it was
    assert not is_hit(engine)


def test_rerankers(watched: Watched) -> None:
    rerank = LLMRerank(
        llm=watched.llm, top_n=1, parse_choice_select_answer_fn=lambda *_: ([1], [1])
    )
    engine = watched.around(watched.plain(2, node_postprocessors=[rerank]), version="1")
    engine.query(LEAVE)
    assert ends(engine) == f"{ANY} (a LLMRerank chooses from what was found)"
    assert not outlives(watched, engine)


def test_postprocessors_that_keep_what_they_are_given(watched: Watched) -> None:
    window = MetadataReplacementPostProcessor(target_metadata_key="window")
    engine = watched.engine(1, node_postprocessors=[window])
    assert outlives(watched, engine)


def test_several_queries(watched: Watched) -> None:
    fusion = QueryFusionRetriever(
        [watched.retriever(1), watched.retriever(2)],
        llm=watched.llm,
        num_queries=1,
        use_async=False,
    )
    engine = watched.around(RetrieverQueryEngine.from_args(fusion, llm=watched.llm))
    engine.query(LEAVE)
    assert ends(engine) == f"{ANY} (a QueryFusionRetriever searches in its own way)"
    assert not outlives(watched, engine)


def test_hyde(watched: Watched) -> None:
    engine = watched.around(
        TransformQueryEngine(watched.plain(1), HyDEQueryTransform(llm=watched.llm))
    )
    engine.query(LEAVE)
    assert ends(engine) == f"{ANY} (a TransformQueryEngine searches in its own way)"
    assert not outlives(watched, engine)


def test_citations_are_made_from_the_k_nearest(watched: Watched) -> None:
    inner = CitationQueryEngine.from_args(
        watched.index, llm=watched.llm, retriever=watched.retriever(1)
    )
    assert outlives(watched, watched.around(inner))


class Asks(BaseQuestionGenerator):
    """Splits every question into the same two."""

    def generate(self, tools: Any, query: Any) -> list[SubQuestion]:
        return [SubQuestion(sub_question=text, tool_name="leave") for text in (LEAVE, "lunch")]

    async def agenerate(self, tools: Any, query: Any) -> list[SubQuestion]:
        return self.generate(tools, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None: ...


def sub_questions(watched: Watched) -> SubQuestionQueryEngine:
    return SubQuestionQueryEngine(
        question_gen=Asks(),
        response_synthesizer=get_response_synthesizer(llm=watched.llm),
        query_engine_tools=[QueryEngineTool.from_defaults(watched.plain(1), name="leave")],
        use_async=False,
        verbose=False,
    )


def test_sub_questions(watched: Watched) -> None:
    engine = watched.around(sub_questions(watched), version="1")
    engine.query(LEAVE)
    assert ends(engine) == f"{ANY} (a SubQuestionQueryEngine searches in its own way)"
    assert not outlives(watched, engine)


def test_each_sub_question_ends_by_itself(watched: Watched) -> None:
    whole = cache_sub_questions(
        sub_questions(watched), cache=watched.cache, grounding="watch", version="1"
    )
    whole.query("both")
    calls = watched.llm.calls
    watched.update("lunch", "lunch is served at one")
    whole.query("both")
    assert watched.llm.calls == calls + 2  # lunch, and the last answer


def test_an_answer_from_what_another_watched_engine_keeps(watched: Watched) -> None:
    whole = cache_sub_questions(
        sub_questions(watched), cache=watched.cache, grounding="watch", version="1"
    )
    outer = watched.around(whole, version="1")
    outer.query("both")
    assert is_hit(outer, "both") and ends(outer, "both").startswith(ANY)
    watched.insert("cats", FAR)
    assert not is_hit(outer, "both")


def family() -> list[TextNode]:
    """A parent whose children say what it says."""
    said = ("Annual leave is thirty days.", "Leave is paid.", "Days of leave are lost in spring.")
    names = [f"child-{number}" for number in range(len(said))]
    parent = TextNode(text=" ".join(said), id_="parent")
    parent.relationships[NodeRelationship.CHILD] = [RelatedNodeInfo(node_id=one) for one in names]
    up = {NodeRelationship.PARENT: RelatedNodeInfo(node_id="parent")}
    children = zip(names, said, strict=True)
    return [parent, *(TextNode(text=t, id_=name, relationships=dict(up)) for name, t in children)]


def test_parents(cache: Cache) -> None:
    nodes = family()
    context = StorageContext.from_defaults()
    context.docstore.add_documents(nodes)
    watched = Watched(cache, {}, context=context)
    watched.index.insert_nodes(nodes[1:])
    merging = AutoMergingRetriever(watched.retriever(2), context, simple_ratio_thresh=0.1)
    engine = watched.around(RetrieverQueryEngine.from_args(merging, llm=watched.llm))
    first = engine.query(LEAVE)
    assert ends(engine) == f"{ANY} (a AutoMergingRetriever searches in its own way)"
    parent = first.source_nodes[0].node
    assert parent.child_nodes
    changed = parent.model_copy()
    changed.set_content("leave is forty days")
    context.docstore.add_documents([changed])  # beside the index, through its storage context
    again = engine.query(LEAVE)
    assert report(again)["reason"] == Reason.INVALIDATED.value and str(again) != str(first)
    assert not outlives(watched, engine)


def test_an_index_whose_metric_is_unknown(cache: Cache) -> None:
    watched = Watched(cache, store=Plain())
    engine = watched.engine(1)
    engine.query(LEAVE)
    assert ends(engine) == f"{ANY} (no known metric)"
    assert not outlives(watched, engine)


@pytest.mark.parametrize("times", [1, 3])
def test_a_document_that_is_ingested_again_keeps_its_answers(watched: Watched, times: int) -> None:
    watched.insert("holidays", "annual leave days are holidays", loaded_at=0, team="red")
    engine = watched.engine(1)
    engine.query(LEAVE)
    for turn in range(times):
        watched.update("leave", "annual  leave is thirty days\n", loaded_at=turn)
        assert is_hit(engine)
        watched.delete("leave")
        watched.insert("leave", "annual leave is thirty days")
        assert is_hit(engine)
    watched.index.refresh_ref_docs([Document(text="annual leave is thirty  days", id_="leave")])
    assert is_hit(engine)
    assert engine.sweep().drifted == ()


def test_ids_that_restrict_a_search(watched: Watched) -> None:
    ids = [one.node_id for one in watched.retriever(2).retrieve(LEAVE)]
    retriever = watched.retriever(1, node_ids=ids)
    engine = watched.around(RetrieverQueryEngine.from_args(retriever, llm=watched.llm))
    engine.query(LEAVE)
    assert ends(engine) == f"{ANY} (it is restricted to nodes or documents by their ids)"
    watched.update(
        "leave", "annual leave is thirty days"
    )  # under another id, which is not looked at
    told = engine.query(LEAVE)
    assert not report(told)["hit"] and "leave" not in told.source_nodes[0].text
