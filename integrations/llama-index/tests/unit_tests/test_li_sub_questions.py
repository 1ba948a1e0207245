"""Sub-questions: each is an entry of its own, is shared by other questions, and goes stale by itself."""

import asyncio
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, report
from llama_index.core.query_engine import CustomQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool
from pydantic import PrivateAttr

import stampcache
from llama_index_stampcache import CachedQueryEngine, cache_sub_questions
from stampcache import Cache, ConfigError

LEAVE, TRAVEL, LUNCH = "how long is annual leave", "how are travel costs paid", "when is lunch"
ASKED = {
    "compare leave and travel": [("handbook", LEAVE), ("handbook", TRAVEL)],
    "compare leave and lunch": [("handbook", LEAVE), ("handbook", LUNCH)],
    "compare the two handbooks": [("handbook", LEAVE), ("annex", LEAVE)],
}


class Scripted(BaseQuestionGenerator):
    """Asks what the script says."""

    def generate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return [
            SubQuestion(tool_name=tool, sub_question=question)
            for tool, question in ASKED[query.query_str]
        ]

    async def agenerate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None: ...


@pytest.fixture
def annex() -> Corpus:
    return Corpus({"leave": "annual leave is forty days in the annex"})


@pytest.fixture
def asks() -> DigestLLM:
    """What answers the sub-questions; the last answer is made by another model."""
    return DigestLLM()


@pytest.fixture
def engine(corpus: Corpus, annex: Corpus, llm: DigestLLM, asks: DigestLLM) -> Any:
    tools = [
        QueryEngineTool.from_defaults(each.engine(asks, top_k=1), name=name, description=name)
        for name, each in (("handbook", corpus), ("annex", annex))
    ]
    return SubQuestionQueryEngine.from_defaults(
        tools, llm=llm, question_gen=Scripted(), verbose=False, use_async=False
    )


@pytest.fixture(params=["query", "aquery"])
def query(request: pytest.FixtureRequest) -> Any:
    def ask(engine: Any, question: str) -> Any:
        if request.param == "query":
            return engine.query(question)
        return asyncio.run(engine.aquery(question))

    return ask


def test_a_shared_sub_question_costs_one_generation_less(
    query: Any, engine: Any, cache: Cache, asks: DigestLLM
) -> None:
    cached = cache_sub_questions(engine, cache=cache)
    first = query(cached, "compare leave and travel")
    assert asks.calls == 2 and cache.stats().entries == 2
    second = query(cached, "compare leave and lunch")
    assert asks.calls == 3 and cache.stats().entries == 3 and cache.stats().exact_hits == 1
    assert str(second) == str(query(engine, "compare leave and lunch"))
    assert first.source_nodes[0].node.get_content().startswith(f"Sub question: {LEAVE}")


def test_a_sub_answer_goes_stale_by_itself(
    query: Any, engine: Any, cache: Cache, corpus: Corpus, asks: DigestLLM
) -> None:
    cached = cache_sub_questions(engine, cache=cache)
    before = query(cached, "compare leave and travel")
    corpus.edit("travel", "travel costs are paid by bus")
    after = query(cached, "compare leave and travel")
    assert asks.calls == 3 and cache.stats().stale == 1 and cache.stats().exact_hits == 1
    assert str(after) != str(before)


def test_under_version_one_tool_is_invalidated(
    query: Any, engine: Any, cache: Cache, asks: DigestLLM
) -> None:
    cached = cache_sub_questions(
        engine,
        cache=cache,
        grounding="version",
        corpora={"handbook": "rules", "annex": "annex"},
        stamps=INDEX,
    )
    query(cached, "compare the two handbooks")
    assert asks.calls == 2 and cache.invalidate(corpus="annex", source="leave") == 1
    query(cached, "compare the two handbooks")
    assert asks.calls == 3


@pytest.mark.parametrize("grounding", ["recheck", "version"])
def test_two_tools_that_are_asked_the_same_do_not_share(
    grounding: Any, query: Any, engine: Any, cache: Cache, asks: DigestLLM
) -> None:
    same = {"handbook": "rules", "annex": "rules"}
    cached = cache_sub_questions(
        engine, cache=cache, grounding=grounding, corpora=same, stamps=INDEX
    )
    for _ in range(3):
        query(cached, "compare the two handbooks")
    assert asks.calls == 2 and cache.stats().entries == 2


def test_the_given_engine_is_left_as_it_is(engine: Any, cache: Cache, asks: DigestLLM) -> None:
    before = dict(engine._query_engines)
    cached: Any = cache_sub_questions(engine, cache=cache)
    assert engine._query_engines == before and type(cached) is SubQuestionQueryEngine
    again: Any = cache_sub_questions(cached, cache=cache)
    assert again._query_engines == cached._query_engines  # behind the cache already


def test_the_last_answer_may_be_cached_too(
    query: Any, engine: Any, cache: Cache, asks: DigestLLM, llm: DigestLLM
) -> None:
    named = {"handbook": "rules", "annex": "rules"}
    parts = cache_sub_questions(
        engine, cache=cache, grounding="version", corpora=named, stamps=INDEX
    )
    whole = CachedQueryEngine(parts, cache=cache, grounding="version", corpus="rules", stamps=INDEX)
    missed, hit = (query(whole, "compare leave and travel") for _ in range(2))
    assert [report(missed)["hit"], report(hit)["hit"]] == [False, True]
    assert str(hit) == str(missed) and hit.source_nodes == missed.source_nodes
    assert (asks.calls, llm.calls) == (2, 1)
    assert cache.invalidate(corpus="rules", source="lunch") == 0  # a document that nobody cites
    assert report(query(whole, "compare leave and travel"))["hit"]
    assert cache.invalidate(corpus="rules", source="leave") == 2  # a part, and the whole
    query(whole, "compare leave and travel")
    assert (asks.calls, llm.calls) == (3, 2)


class Broken(CustomQueryEngine):
    """Fails once, in a way that the framework goes on after, and then answers."""

    _failures: list[Exception] = PrivateAttr(default_factory=lambda: [ValueError("annex is down")])

    def custom_query(self, query_str: str) -> str:
        if self._failures:
            raise self._failures.pop()
        return "forty days"


@pytest.mark.parametrize("use_async", [False, True])
def test_an_answer_without_one_of_its_parts_is_not_stored(
    use_async: bool, query: Any, cache: Cache, llm: DigestLLM, corpus: Corpus
) -> None:
    engines = {"handbook": corpus.engine(llm), "annex": Broken()}
    tools = [
        QueryEngineTool.from_defaults(each, name=name, description=name)
        for name, each in engines.items()
    ]
    inner = SubQuestionQueryEngine.from_defaults(
        tools, llm=llm, question_gen=Scripted(), verbose=False, use_async=use_async
    )
    engine = CachedQueryEngine(inner, cache=cache, grounding="none", stamps=INDEX)
    hits = [report(query(engine, "compare the two handbooks"))["hit"] for _ in range(3)]
    assert hits == [False, False, True]
    assert cache.stats().counters["refused.failed"] == 1


def test_e1_tenants_do_not_share_parts(
    query: Any, engine: Any, cache: Cache, asks: DigestLLM
) -> None:
    cached = cache_sub_questions(engine, cache=cache)
    for tenant in ("acme", "other"):
        with stampcache.scope(tenant=tenant):
            query(cached, "compare leave and travel")
            query(cached, "compare leave and travel")
    assert asks.calls == 4


def test_a_corpus_of_no_tool_is_refused(engine: Any, cache: Cache) -> None:
    with pytest.raises(ConfigError, match="the tools are 'annex', 'handbook'"):
        cache_sub_questions(engine, cache=cache, corpora={"handbok": "rules"})
