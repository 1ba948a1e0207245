"""Around and inside the framework's composed engines."""

import logging
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, OneStep, report, told
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_selector import MultiSelection, SelectorResult, SingleSelection
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.indices.query.query_transform import (
    HyDEQueryTransform,
    StepDecomposeQueryTransform,
)
from llama_index.core.objects import ObjectIndex
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
    MultiStepQueryEngine,
    RouterQueryEngine,
    ToolRetrieverRouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import QueryBundle
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool
from pydantic import BaseModel

from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache, ConfigError

QUESTION = "how long is annual leave"
VERSION: dict[str, Any] = {"grounding": "version", "corpus": "handbook", "stamps": INDEX}


class Taking(LLMSingleSelector):
    """Takes the tools of these numbers."""

    taken: tuple[int, ...] = (0,)

    def _select(self, choices: Any, query: QueryBundle) -> SelectorResult:
        chosen = [SingleSelection(index=one, reason=f"number {one}") for one in self.taken]
        return SelectorResult(selections=chosen)

    async def _aselect(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)


class TakingBoth(Taking):
    taken = (0, 1)


def tool(engine: BaseQueryEngine, name: str = "handbook") -> QueryEngineTool:
    return QueryEngineTool.from_defaults(engine, name=name, description=f"{name} rules")


def router(
    llm: DigestLLM, *engines: BaseQueryEngine, selector: type[Taking] = Taking
) -> RouterQueryEngine:
    tools = [tool(engine, f"handbook{at}") for at, engine in enumerate(engines)]
    return RouterQueryEngine.from_defaults(tools, llm=llm, selector=selector.from_defaults(llm=llm))


def hyde(corpus: Corpus, llm: DigestLLM, writer: DigestLLM) -> TransformQueryEngine:
    return TransformQueryEngine(corpus.engine(llm), HyDEQueryTransform(llm=writer))


def hits(engine: BaseQueryEngine, times: int = 2) -> list[bool]:
    answers: list[Any] = [engine.query(QUESTION) for _ in range(times)]
    assert len({str(answer) for answer in answers}) == 1
    return [answer.metadata["cache"]["hit"] for answer in answers]


def without_report(response: Any) -> dict[str, Any]:
    return {name: part for name, part in response.metadata.items() if name != "cache"}


# -- routers ---------------------------------------------------------------------------------------


def test_what_a_router_chooses_from_cannot_be_rechecked(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    with pytest.raises(ConfigError, match='pass grounding="none"'):
        CachedQueryEngine(router(llm, corpus.engine(llm)), cache=cache)


@pytest.mark.parametrize("selector", [Taking, TakingBoth])
async def test_a_router_is_cached_until_what_its_choice_cited_changes(
    selector: Any, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner = router(llm, *(corpus.engine(llm, top_k=1) for _ in range(2)), selector=selector)
    engine = CachedQueryEngine(inner, cache=cache, **VERSION)
    missed: Any = engine.query(QUESTION)
    calls = llm.calls
    for response in (engine.query(QUESTION), await engine.aquery(QUESTION)):
        assert report(response)["hit"] and str(response) == str(missed)
        assert response.source_nodes == missed.source_nodes
        assert without_report(response) == without_report(missed)
        assert type(response.metadata["selector_result"]) is MultiSelection  # type: ignore[index]
    assert llm.calls == calls
    assert cache.invalidate(corpus="handbook", source="lunch") == 0
    assert cache.invalidate(corpus="handbook", source="leave") == 1
    assert hits(engine) == [False, True]


def test_a_router_is_another_one_with_another_tool(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engines = [corpus.engine(llm), corpus.engine(llm, top_k=1)]
    told = [
        hits(CachedQueryEngine(router(llm, *engines[:count]), cache=cache, **VERSION))
        for count in (1, 2)
    ]
    assert told == [[False, True], [False, True]]


async def test_a_router_over_streaming_engines_streams_on_a_hit(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner = router(llm, corpus.engine(llm, streaming=True), corpus.engine(llm))
    engine = CachedQueryEngine(inner, cache=cache, **VERSION)
    missed: Any = engine.query(QUESTION)
    chunks = list(missed.response_gen)
    hit: Any = engine.query(QUESTION)
    assert type(missed) is type(hit) is StreamingResponse and report(hit)["hit"]
    assert list(hit.response_gen) == chunks and without_report(hit) == without_report(missed)
    later: Any = await engine.aquery(QUESTION)
    assert type(later) is AsyncStreamingResponse
    assert [chunk async for chunk in later.response_gen] == chunks


class Days(BaseModel):
    number: int


def test_a_router_over_an_engine_that_parses(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    llm.answers('{"number": 30}')
    inner = router(llm, corpus.engine(llm, output_cls=Days), corpus.engine(llm))
    engine = CachedQueryEngine(inner, cache=cache, **VERSION)
    missed, hit = engine.query(QUESTION), engine.query(QUESTION)
    assert type(missed) is type(hit) is PydanticResponse and report(hit)["hit"]
    assert hit.response == Days(number=30)


async def test_a_router_over_a_cached_engine(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    outer = router(llm, CachedQueryEngine(corpus.engine(llm), cache=cache))
    assert str(outer.query(QUESTION)) == str(await outer.aquery(QUESTION))
    assert llm.calls == 1


def test_the_report_of_an_inner_cache_is_not_kept(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner = router(llm, CachedQueryEngine(corpus.engine(llm), cache=cache))
    engine = CachedQueryEngine(inner, cache=cache, **VERSION)
    assert hits(engine, 3) == [False, True, True]
    assert report(engine.query(QUESTION))["entry_id"]


def retrieving_router(corpus: Corpus, llm: DigestLLM) -> ToolRetrieverRouterQueryEngine:
    tools = [tool(corpus.engine(llm), "leave"), tool(corpus.engine(llm, top_k=1), "travel")]
    index = ObjectIndex.from_objects(tools, embed_model=corpus.embedding)
    retriever = index.as_retriever(similarity_top_k=2)
    return ToolRetrieverRouterQueryEngine(retriever, llm=llm)


async def test_a_router_that_retrieves_its_tools(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner: Any = retrieving_router(corpus, llm)
    engine = CachedQueryEngine(inner, cache=cache, **VERSION)
    missed: Any = engine.query(QUESTION)
    calls = llm.calls
    for response in (engine.query(QUESTION), await engine.aquery(QUESTION)):
        assert report(response)["hit"] and str(response) == str(missed)
        assert without_report(response) == without_report(missed)
    assert llm.calls == calls and len(missed.metadata["retrieved_tools"]) == 2
    added = tool(corpus.engine(llm), "lunch")
    inner._retriever.object_node_mapping.add_object(added)
    assert not report(engine.query(QUESTION))["hit"]


# -- transforms, steps, citations ------------------------------------------------------------------


async def test_a_transform_is_rechecked_with_what_it_makes_of_the_question(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    writer = DigestLLM()
    writer.answers("annual leave is thirty days")
    engine = CachedQueryEngine(hyde(corpus, llm, writer), cache=cache)
    assert hits(engine) == [False, True]
    response: Any = await engine.aquery(QUESTION)
    assert response.metadata["cache"]["hit"] and llm.calls == 1
    corpus.edit("leave", "annual leave is forty days")
    assert hits(engine) == [False, True]


def test_under_version_a_hit_does_not_even_transform(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    writer = DigestLLM()
    engine = CachedQueryEngine(hyde(corpus, llm, writer), cache=cache, **VERSION)
    engine.query(QUESTION)
    written = writer.calls
    assert report(engine.query(QUESTION))["hit"] and writer.calls == written


def test_a_transform_over_an_engine_in_one_step_cannot_be_rechecked(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner = TransformQueryEngine(router(llm, corpus.engine(llm)), HyDEQueryTransform(llm=llm))
    with pytest.raises(ConfigError, match='pass grounding="none"'):
        CachedQueryEngine(inner, cache=cache)


def test_a_cached_engine_inside_a_transform(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    writer = DigestLLM()
    cached = CachedQueryEngine(corpus.engine(llm), cache=cache)
    engine = TransformQueryEngine(cached, HyDEQueryTransform(llm=writer))
    assert hits(engine) == [False, True] and llm.calls == 1


def steps(corpus: Corpus, llm: DigestLLM, inner: BaseQueryEngine) -> MultiStepQueryEngine:
    decompose = DigestLLM()
    decompose.answers(QUESTION)
    return MultiStepQueryEngine(
        query_engine=inner,
        query_transform=StepDecomposeQueryTransform(llm=decompose),
        response_synthesizer=get_response_synthesizer(llm=llm),
        num_steps=2,
    )


async def test_a_multi_step_engine_and_its_steps(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(
        steps(corpus, llm, corpus.engine(llm, top_k=1)), cache=cache, **VERSION
    )
    missed: Any = engine.query(QUESTION)
    for hit in (engine.query(QUESTION), await engine.aquery(QUESTION)):
        assert report(hit)["hit"] and str(hit) == str(missed)
        assert without_report(hit) == without_report(missed)
        assert hit.source_nodes == missed.source_nodes
    assert cache.invalidate(corpus="handbook", source="lunch") == 0  # its notes are no documents
    assert cache.invalidate(corpus="handbook", source="leave") == 1
    assert hits(engine) == [False, True]


def test_equal_steps_of_a_multi_step_engine_are_made_once(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    asks = DigestLLM()
    cached = CachedQueryEngine(corpus.engine(asks), cache=cache)
    steps(corpus, llm, cached).query(QUESTION)
    assert asks.calls == 1 and cache.stats().exact_hits == 1


async def test_citations_hit_in_tasks_and_under_version(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner = CitationQueryEngine.from_args(corpus.index, llm=llm, similarity_top_k=1)
    engine = CachedQueryEngine(inner, cache=cache, **VERSION)
    missed, hit = await engine.aquery(QUESTION), await engine.aquery(QUESTION)
    assert report(hit)["hit"] and hit.source_nodes == missed.source_nodes
    assert cache.invalidate(corpus="handbook", source="leave") == 1


# -- engines of one's own --------------------------------------------------------------------------


async def test_an_engine_of_ones_own_that_streams(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    class Streaming(CustomQueryEngine):
        llm: DigestLLM

        def custom_query(self, query_str: str) -> Any:
            parts = (part.delta or "" for part in self.llm.stream_complete(query_str))
            return StreamingResponse(parts, source_nodes=[told("thirty days", "leave")])

    engine = CachedQueryEngine(Streaming(llm=llm), cache=cache, **VERSION)
    responses: list[Any] = []
    for asked in range(4):  # its streams are the same for tasks, as the framework has it
        responses.append(await engine.aquery(QUESTION) if asked % 2 else engine.query(QUESTION))
        assert type(responses[-1]) is StreamingResponse
        assert report(responses[-1])["hit"] is bool(asked)
        assert "".join(responses[-1].response_gen) == "".join(["answer ", llm_text(llm)])
    assert llm.calls == 1


def llm_text(llm: DigestLLM) -> str:
    return str(DigestLLM().complete(llm.prompts[0]).text).removeprefix("answer ")


def test_what_cannot_be_stored_is_said_once(cache: Cache, caplog: pytest.LogCaptureFixture) -> None:
    class Own(CustomQueryEngine):
        def custom_query(self, query_str: str) -> Any:
            return Response("thirty days", metadata={"made_by": object()})

    engine = CachedQueryEngine(Own(), cache=cache, grounding="none", stamps=INDEX)
    with caplog.at_level(logging.WARNING, logger="stampcache"):
        assert hits(engine, 3) == [False] * 3
    (said,) = [record.getMessage() for record in caplog.records]
    assert said == (
        "An answer of Own is not stored: the entry 'made_by' of its metadata (object) is no plain data."
    )
    assert cache.core.counters.of(None)["adapter.not_storable"] == 3


def test_an_engine_in_one_step_is_another_one_under_another_name(
    cache: Cache, llm: DigestLLM
) -> None:
    inner = OneStep(llm=llm, told=[told("thirty days", "leave")])
    one, two = (CachedQueryEngine(inner, cache=cache, name=name, **VERSION) for name in "ab")
    assert hits(one) == [False, True] and hits(two) == [False, True]
