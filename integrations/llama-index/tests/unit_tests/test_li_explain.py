"""Explaining a query: what the cache would decide now, without doing it."""

import asyncio

import pytest
from llama_fakes import Corpus, DigestLLM

from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache, Hit, Miss, Reason, Stale
from stampcache.adapters import Explanation

QUESTION = "how long is annual leave"


def explained(engine: CachedQueryEngine, *, aio: bool) -> Explanation:
    return asyncio.run(engine.aexplain(QUESTION)) if aio else engine.explain(QUESTION)


@pytest.mark.parametrize("aio", [False, True])
def test_a_query_is_explained_and_nothing_is_made_or_counted(
    aio: bool, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    assert isinstance(explained(engine, aio=aio).outcome, Miss)
    engine.query(QUESTION)
    counted = dict(cache.stats().counters)
    assert isinstance(explained(engine, aio=aio).outcome, Hit)
    corpus.edit("leave", "annual leave is forty days")
    assert isinstance(explained(engine, aio=aio).outcome, Stale)
    assert dict(cache.stats().counters) == counted and llm.calls == 1


def test_a_query_that_bypasses_the_cache_is_explained(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    llm.additional_kwargs["client"] = object()
    outcome = explained(engine, aio=False).outcome
    assert isinstance(outcome, Miss) and outcome.reason is Reason.UNCACHEABLE
    assert "client" in outcome.detail
