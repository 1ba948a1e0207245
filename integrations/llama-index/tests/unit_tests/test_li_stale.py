"""`allow_stale=True`: what no longer holds is served at once, and says so."""

import asyncio
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, reasons, report
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache, Stale
from stampcache.testing import FakeClock

QUESTION = "how long is annual leave"
DAY_S = 86_400.0
REASONS = {
    "expires": "expired",
    "is invalidated": "what it was made from changed",
    "was edited": "evidence changed",
}


def lenient(corpus: Corpus, llm: DigestLLM, cache: Cache, **options: Any) -> CachedQueryEngine:
    inner = corpus.engine(llm, top_k=1, streaming=options.pop("streaming", False))
    given = {"corpus": "handbook", "stamps": INDEX, "allow_stale": True, **options}
    return CachedQueryEngine(inner, cache=cache, **given)


def happens(what: str, cache: Cache, clock: FakeClock, corpus: Corpus) -> None:
    if what == "expires":
        clock.advance(8 * DAY_S)
    elif what == "is invalidated":
        cache.invalidate(corpus="handbook", source="leave")
    else:
        corpus.edit("leave", "annual leave is forty days")


@pytest.mark.parametrize("aio", [False, True])
@pytest.mark.parametrize(
    ("what", "grounding"),
    [
        ("expires", "recheck"),
        ("expires", "version"),
        ("expires", "none"),
        ("is invalidated", "recheck"),
        ("is invalidated", "version"),
        ("is invalidated", "none"),
        ("was edited", "recheck"),
    ],
)
def test_a_stale_answer_is_served_and_reported(
    what: str,
    grounding: Any,
    aio: bool,
    timed: Cache,
    clock: FakeClock,
    corpus: Corpus,
    llm: DigestLLM,
) -> None:
    engine = lenient(corpus, llm, timed, grounding=grounding)
    strict = lenient(corpus, llm, timed, grounding=grounding, allow_stale=False)
    made = engine.query(QUESTION)
    entry = report(engine.query(QUESTION))["entry_id"]
    happens(what, timed, clock, corpus)
    for _ in range(2):
        stale = asyncio.run(engine.aquery(QUESTION)) if aio else engine.query(QUESTION)
        told = report(stale)
        assert (told["hit"], told["level"], told["reason"]) == (False, "exact", REASONS[what])
        assert told["entry_id"] == entry and told["saved"]["latency_s"] > 0
        assert str(stale) == str(made)
        assert stale.source_nodes == made.source_nodes  # and not those that are found now
    assert llm.calls == 1
    assert reasons(strict, QUESTION) == [REASONS[what]]  # the entry is the same for both
    assert reasons(engine, QUESTION) == ["hit"] and llm.calls == 2


@pytest.mark.parametrize("what", ["expires", "is invalidated"])
async def test_a_stale_answer_is_streamed_as_its_caller_expects(
    what: str, timed: Cache, clock: FakeClock, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = lenient(corpus, llm, timed, grounding="version", streaming=True)
    made = engine.query(QUESTION)
    assert isinstance(made, StreamingResponse)
    chunks = list(made.response_gen)
    happens(what, timed, clock, corpus)
    stale = engine.query(QUESTION)
    assert isinstance(stale, StreamingResponse) and list(stale.response_gen) == chunks
    later = await engine.aquery(QUESTION)
    assert isinstance(later, AsyncStreamingResponse)
    assert [chunk async for chunk in later.response_gen] == chunks
    for response in (stale, later):
        assert not report(response)["hit"] and report(response)["reason"] == REASONS[what]
    assert llm.calls == 1


def test_what_was_never_asked_is_made(timed: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = lenient(corpus, llm, timed, grounding="version")
    engine.query(QUESTION)
    timed.invalidate(corpus="handbook")
    assert reasons(engine, "who pays for travel", "who pays for travel") == ["not found", "hit"]


def test_a_stale_answer_of_another_partition_is_not_served(
    timed: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = lenient(corpus, llm, timed, grounding="version")
    engine.query(QUESTION)
    timed.invalidate(corpus="handbook")
    llm.temperature = 0.7
    assert reasons(engine, QUESTION) == ["not found"] and llm.calls == 2


def test_explain_tells_that_it_is_stale(timed: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = lenient(corpus, llm, timed, grounding="version")
    engine.query(QUESTION)
    timed.invalidate(corpus="handbook", source="leave")
    outcome = engine.explain(QUESTION).outcome
    assert isinstance(outcome, Stale) and "leave" in outcome.detail


async def test_those_who_wait_for_a_stale_answer_are_told_so(
    timed: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = lenient(corpus, llm, timed, grounding="version")
    engine.query(QUESTION)
    timed.invalidate(corpus="handbook", source="leave")
    responses = await asyncio.gather(*(engine.aquery(QUESTION) for _ in range(20)))
    assert {report(each)["reason"] for each in responses} == {REASONS["is invalidated"]}
    assert not any(report(each)["hit"] for each in responses) and llm.calls == 1
