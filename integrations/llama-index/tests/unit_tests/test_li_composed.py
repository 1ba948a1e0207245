"""Around and inside the framework's composed engines."""

from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_selector import SelectorResult, SingleSelection
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.query_engine import RouterQueryEngine, TransformQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import QueryEngineTool

from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache, ConfigError

QUESTION = "how long is annual leave"


class FirstSelector(LLMSingleSelector):
    """Always takes the first tool."""

    def _select(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return SelectorResult(selections=[SingleSelection(index=0, reason="first")])

    async def _aselect(self, choices: Any, query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)


def router(engine: BaseQueryEngine, llm: DigestLLM, name: str = "handbook") -> RouterQueryEngine:
    tool = QueryEngineTool.from_defaults(engine, name=name, description="rules")
    selector = FirstSelector.from_defaults(llm=llm)
    return RouterQueryEngine.from_defaults([tool], llm=llm, selector=selector)


def hyde(corpus: Corpus, llm: DigestLLM, writer: DigestLLM) -> TransformQueryEngine:
    return TransformQueryEngine(corpus.engine(llm), HyDEQueryTransform(llm=writer))


def hits(engine: BaseQueryEngine, times: int = 2) -> list[bool]:
    answers: list[Any] = [engine.query(QUESTION) for _ in range(times)]
    assert len({str(answer) for answer in answers}) == 1
    return [answer.metadata["cache"]["hit"] for answer in answers]


def test_a_router_puts_an_object_into_its_metadata_and_so_is_not_stored(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner = router(corpus.engine(llm), llm)
    with pytest.raises(ConfigError, match='pass grounding="none"'):
        CachedQueryEngine(inner, cache=cache)
    engine = CachedQueryEngine(inner, cache=cache, grounding="none", stamps=INDEX)
    assert hits(engine) == [False, False]
    assert cache.core.counters.of(None)["adapter.not_storable"] == 2


async def test_a_router_over_a_cached_engine(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    outer = router(CachedQueryEngine(corpus.engine(llm), cache=cache), llm)
    assert str(outer.query(QUESTION)) == str(await outer.aquery(QUESTION))
    assert llm.calls == 1


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


def test_a_transform_over_an_engine_in_one_step_cannot_be_rechecked(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    inner = TransformQueryEngine(router(corpus.engine(llm), llm), HyDEQueryTransform(llm=llm))
    with pytest.raises(ConfigError, match='pass grounding="none"'):
        CachedQueryEngine(inner, cache=cache)
