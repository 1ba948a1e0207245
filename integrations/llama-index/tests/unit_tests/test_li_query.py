"""Hits and misses of `CachedQueryEngine`: what they return, and when documents change."""

from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, bundle, report, semantic_cache
from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.callbacks import CallbackManager, CBEventType
from llama_index.core.callbacks.llama_debug import LlamaDebugHandler
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import CitationQueryEngine, CustomQueryEngine
from llama_index.core.tools import QueryEngineTool
from pydantic import BaseModel

import stampcache
from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache, ConfigError, open_cache

QUESTION = "how long is annual leave"


def test_a_second_equal_question_is_a_hit(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    inner = corpus.engine(llm)
    engine = CachedQueryEngine(inner, cache=cache)
    fresh = inner.query(QUESTION)
    missed, hit = engine.query(QUESTION), engine.query(f"  {QUESTION} ")
    assert llm.calls == 2
    assert report(missed) == {
        "hit": False,
        "level": None,
        "similarity": None,
        "reason": "not found",
        "entry_id": None,
        "saved": {},
    }
    assert report(hit)["hit"] and report(hit)["level"] == "exact"
    assert report(hit)["entry_id"] and report(hit)["saved"]["latency_s"] > 0
    for response in (missed, hit):
        assert type(response) is Response
        assert str(response) == str(fresh)
        assert response.source_nodes == fresh.source_nodes
        assert response.metadata is not None and fresh.metadata is not None
        assert {k: v for k, v in response.metadata.items() if k != "cache"} == fresh.metadata


async def test_o7_sync_and_async_share_entries(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache.aio)
    missed = await engine.aquery(QUESTION)
    assert not report(missed)["hit"]
    assert report(await engine.aquery(QUESTION))["hit"]
    assert report(engine.query(QUESTION))["hit"]
    assert llm.calls == 1


def test_a_cache_may_be_given_by_url(corpus: Corpus, llm: DigestLLM) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache="memory://")
    engine.query(QUESTION)
    assert report(engine.query(QUESTION))["hit"]
    assert isinstance(engine.cache, Cache)
    engine.cache.close()


def test_none_does_not_retrieve_on_a_hit(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = CachedQueryEngine(
        corpus.engine(llm, top_k=1), cache=cache, grounding="none", stamps=INDEX
    )
    missed = engine.query(QUESTION)
    corpus.edit("leave", "annual leave is forty days")
    hit = engine.query(QUESTION)
    assert report(hit)["hit"] and llm.calls == 1
    assert str(hit) == str(missed)
    assert hit.source_nodes == missed.source_nodes  # those that the answer was made from
    assert hit.source_nodes[0].node is not missed.source_nodes[0].node
    assert cache.invalidate(source="leave") == 1


def test_none_serves_engines_without_retrieval(cache: Cache) -> None:
    llm = DigestLLM()

    class Plain(CustomQueryEngine):
        llm: DigestLLM

        def custom_query(self, query_str: str) -> str:
            return str(self.llm.complete(query_str).text)

    engine = CachedQueryEngine(Plain(llm=llm), cache=cache, grounding="none", stamps=INDEX)
    first, second = engine.query(QUESTION), engine.query(QUESTION)
    assert str(first) == str(second) and llm.calls == 1
    with pytest.raises(ConfigError, match='pass grounding="none"'):
        CachedQueryEngine(Plain(llm=llm), cache=cache)


@pytest.mark.parametrize("grounding", ["watched", "always", ""])
def test_groundings_that_do_not_exist_are_refused(
    grounding: Any, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    with pytest.raises(ConfigError, match="'recheck', 'watch', 'version', 'none'"):
        CachedQueryEngine(corpus.engine(llm), cache=cache, grounding=grounding, stamps=INDEX)


def test_a_paraphrase_is_answered_with_the_evidence_of_its_entry(
    corpus: Corpus, llm: DigestLLM
) -> None:
    cache = semantic_cache()
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    missed = engine.query("how long is annual leave")
    hit = engine.query("tell me about annual leave")
    assert report(hit)["level"] == "semantic" and report(hit)["reason"] == "same question"
    assert str(hit) == str(missed)
    assert hit.source_nodes == missed.source_nodes
    corpus.edit("leave", "annual leave is forty days")
    assert not report(engine.query("tell me about annual leave"))["hit"]
    cache.close()


async def test_a_paraphrase_is_answered_in_a_task(corpus: Corpus, llm: DigestLLM) -> None:
    cache = semantic_cache()
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    await engine.aquery("how long is annual leave")
    assert report(await engine.aquery("tell me about annual leave"))["level"] == "semantic"
    cache.close()


def test_c10_a_reported_answer_is_gone(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    engine.query(QUESTION)
    assert cache.report_bad(report(engine.query(QUESTION))["entry_id"])
    assert not report(engine.query(QUESTION))["hit"]


@pytest.mark.parametrize("grounding", ["recheck", "none"])
def test_h11_changing_a_response_changes_no_later_one(
    grounding: Any, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache, grounding=grounding, stamps=INDEX)
    clean = engine.query(QUESTION)
    text, first = str(clean), clean.source_nodes[0].node.get_content()
    for _ in range(3):
        response = engine.query(QUESTION)
        assert isinstance(response, Response)
        assert response.response == text
        assert response.source_nodes[0].node.get_content() == first
        assert "spoiled" not in (response.metadata or {})
        response.response = "spoiled"
        response.source_nodes.clear()
        assert response.metadata is not None
        response.metadata["spoiled"] = True
        response.metadata["cache"]["saved"]["spoiled"] = True
    clean.source_nodes.pop()
    assert len(engine.query(QUESTION).source_nodes) == 2


class Days(BaseModel):
    number: int
    unit: str = "days"


@pytest.mark.parametrize("grounding", ["recheck", "none"])
async def test_h1_a_parsed_answer_is_rebuilt(
    grounding: Any, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    llm.answers('{"number": 30, "unit": "days"}')
    inner = corpus.engine(llm, output_cls=Days)
    engine = CachedQueryEngine(inner, cache=cache, grounding=grounding, stamps=INDEX)
    missed, hit = engine.query(QUESTION), engine.query(QUESTION)
    assert report(hit)["hit"] and report(await engine.aquery(QUESTION))["hit"]
    assert isinstance(missed, PydanticResponse) and isinstance(hit, PydanticResponse)
    assert type(hit.response) is Days and hit.response == Days(number=30)
    assert hit.response is not missed.response
    assert llm.calls == 1


def test_a9_a_changed_schema_of_the_same_name_is_another_engine(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    class Other(BaseModel):
        number: int
        unit: str = "weeks"

    Other.__name__, Other.__qualname__ = Days.__name__, Days.__qualname__
    llm.answers('{"number": 30}')
    CachedQueryEngine(corpus.engine(llm, output_cls=Days), cache=cache).query(QUESTION)
    other = CachedQueryEngine(corpus.engine(llm, output_cls=Other), cache=cache)
    assert not report(other.query(QUESTION))["hit"]


def test_citations_come_back_as_the_engine_made_them(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner = CitationQueryEngine.from_args(corpus.index, llm=llm, similarity_top_k=2)
    engine = CachedQueryEngine(inner, cache=cache)
    missed, hit = engine.query(QUESTION), engine.query(QUESTION)
    assert report(hit)["hit"]
    assert str(hit) == str(missed)
    assert hit.source_nodes == missed.source_nodes
    assert hit.source_nodes[0].node.get_content().startswith("Source 1:")


def test_a_query_with_its_own_embedding_text_is_another_request(corpus: Corpus) -> None:
    llm, cache = DigestLLM(), semantic_cache()
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    engine.query(QUESTION)
    hyde = bundle(QUESTION, custom_embedding_strs=["annual leave is thirty days"])
    assert report(engine.query(hyde))["reason"].startswith("not found")
    again = bundle(QUESTION, custom_embedding_strs=["annual leave is thirty days"])
    assert report(engine.query(again))["level"] == "exact"
    other = bundle(QUESTION, custom_embedding_strs=["annual leave"])
    assert not report(engine.query(other))["hit"]
    cache.close()


def test_a_query_with_an_image_bypasses_the_cache(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    for _ in range(2):
        response = engine.query(bundle(QUESTION, image_path="/photo.png"))
        assert report(response)["reason"] == "uncacheable"
    assert llm.calls == 2 and cache.stats().entries == 0


def test_a_bundle_of_a_plain_question_is_that_question(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    engine.query(QUESTION)
    assert report(engine.query(bundle(QUESTION)))["hit"]


def test_retrieval_and_synthesis_are_handed_on(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner = corpus.engine(llm)
    engine = CachedQueryEngine(inner, cache=cache)
    nodes = engine.retrieve(bundle(QUESTION))
    assert nodes == inner.retrieve(bundle(QUESTION))
    made = engine.synthesize(bundle(QUESTION), nodes)
    assert str(made) == str(inner.query(QUESTION))
    assert engine.inner is inner


async def test_async_retrieval_and_synthesis_are_handed_on(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    nodes = await engine.aretrieve(bundle(QUESTION))
    made = await engine.asynthesize(bundle(QUESTION), nodes)
    assert str(made) == str(engine.query(QUESTION))


def test_prompts_are_those_of_the_inner_engine(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner = corpus.engine(llm)
    engine = CachedQueryEngine(inner, cache=cache)
    assert engine.get_prompts().keys() == inner.get_prompts().keys()
    engine.query(QUESTION)
    changed = PromptTemplate("{context_str} -- {query_str}")
    engine.update_prompts({"response_synthesizer:text_qa_template": changed})
    assert not report(engine.query(QUESTION))["hit"]
    assert llm.prompts[-1].endswith(f"-- {QUESTION}")


def test_query_events_fire_for_hits_and_misses(cache: Cache, llm: DigestLLM) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    corpus = Corpus({"leave": "annual leave is thirty days"})
    inner = corpus.engine(llm)
    inner.callback_manager = CallbackManager([debug])
    engine = CachedQueryEngine(inner, cache=cache)
    engine.query(QUESTION)
    engine.query(QUESTION)
    assert len(debug.get_event_pairs(CBEventType.QUERY)) == 2


def test_o8_it_works_as_a_tool(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    tool = QueryEngineTool.from_defaults(engine, name="handbook", description="rules")
    first, second = tool.call(QUESTION), tool.call(QUESTION)
    assert str(first) == str(second) and llm.calls == 1
    assert report(second.raw_output)["hit"]


def test_d7_condensed_questions_hit_across_conversations(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    condenser = DigestLLM()
    condenser.answers(QUESTION)
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    answers = []
    for _ in range(2):
        chat = CondenseQuestionChatEngine.from_defaults(
            query_engine=engine, llm=condenser, memory=ChatMemoryBuffer(token_limit=1_000)
        )
        answers.append([str(chat.chat(QUESTION)), str(chat.chat("and how long is it?"))])
        assert len(chat.chat_history) == 4
    assert answers[0] == answers[1] and llm.calls == 1


def test_postprocessors_run_before_the_comparison(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    cut = SimilarityPostprocessor(similarity_cutoff=0.5)
    engine = CachedQueryEngine(corpus.engine(llm, node_postprocessors=[cut]), cache=cache)
    missed, hit = engine.query(QUESTION), engine.query(QUESTION)
    assert report(hit)["hit"] and len(hit.source_nodes) == len(missed.source_nodes) == 1


def test_an_entry_outlives_the_process_that_made_it(
    tmp_path: Any, corpus: Corpus, llm: DigestLLM
) -> None:
    url = f"sqlite:///{tmp_path / 'rag.db'}"
    for asked in range(2):
        with open_cache(url) as cache:
            engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
            assert report(engine.query(QUESTION))["hit"] is bool(asked)


async def test_a_question_is_answered_again_from_exactly_the_same_nodes(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    asked, nodes = bundle(QUESTION), engine.retrieve(bundle(QUESTION))
    missed = engine.synthesize(asked, nodes)
    for hit in (engine.synthesize(asked, nodes), await engine.asynthesize(asked, nodes)):
        assert report(hit)["hit"] and str(hit) == str(missed)
        assert hit.source_nodes == missed.source_nodes == nodes
    for others in (nodes[:1], nodes[::-1], []):
        assert not report(engine.synthesize(asked, others))["hit"]
    assert not report(engine.synthesize(asked, nodes, nodes[:1]))["hit"]
    again = engine.synthesize(asked, nodes, nodes[:1])
    assert report(again)["hit"] and len(again.source_nodes) == 3


@pytest.mark.parametrize("grounding", ["recheck", "version", "none"])
def test_an_answer_from_chosen_nodes_is_none_to_the_question_alone(
    grounding: Any, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache, grounding=grounding, stamps=INDEX)
    chosen = engine.retrieve(bundle("when is lunch"))
    wrong = engine.synthesize(bundle(QUESTION), chosen)
    answer = engine.query(QUESTION)
    assert not report(answer)["hit"] and str(answer) != str(wrong)
    assert report(engine.synthesize(bundle(QUESTION), chosen))["hit"]


def test_chosen_nodes_go_stale_with_their_documents(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(
        corpus.engine(llm, top_k=1), cache=cache, grounding="version", corpus="c", stamps=INDEX
    )
    nodes = engine.retrieve(bundle(QUESTION))
    engine.synthesize(bundle(QUESTION), nodes)
    assert cache.invalidate(corpus="c", source="leave") == 1
    assert not report(engine.synthesize(bundle(QUESTION), nodes))["hit"]


def test_p3_one_query_may_be_told_otherwise(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    with stampcache.scope(no_store=True):
        engine.query(QUESTION)
    assert not report(engine.query(QUESTION))["hit"]
    with stampcache.scope(no_cache=True):
        assert report(engine.query(QUESTION))["reason"] == "told not to look up"
    assert report(engine.query(QUESTION))["hit"]


@pytest.mark.parametrize("streams", [False, True])
def test_f13_one_answer_may_live_shorter(
    streams: bool, timed: Cache, clock: Any, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm, streaming=streams), cache=timed)
    with stampcache.scope(ttl_s=60):
        str(engine.query(QUESTION))
    clock.advance(30)
    response = engine.query(QUESTION)
    assert report(response)["hit"] and str(response)
    clock.advance(61)
    assert report(engine.query(QUESTION))["reason"] == "expired"


def test_p4_a_question_may_have_several_answers(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    made = iter(range(9))
    llm._make = lambda _: f"answer {next(made)}"
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    with stampcache.scope(variety=3):
        told = [str(engine.query(QUESTION)) for _ in range(6)]
    assert told == [f"answer {at % 3}" for at in range(6)] and llm.calls == 3


def test_two_indexes_of_one_name_do_not_disturb_each_other(cache: Cache, llm: DigestLLM) -> None:
    corpora = [Corpus({"leave": f"annual leave is {number} days"}) for number in (30, 40)]
    engines = [
        CachedQueryEngine(each.engine(llm), cache=cache, name=name)
        for name, each in zip("ab", corpora, strict=True)
    ]
    hits = [report(engine.query(QUESTION))["hit"] for _ in range(2) for engine in engines]
    assert hits == [False, False, True, True]
