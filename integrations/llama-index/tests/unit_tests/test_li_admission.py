"""What is never stored, and what a hit says it saved."""

import asyncio
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]

from llama_index_stampcache import CachedQueryEngine
from llama_index_stampcache.usage import Meter, UsageHandler
from stampcache import Cache, Usage

QUESTION = "how long is annual leave"


def raw(reason: str = "stop", *, prompt: int = 100, completion: int = 20) -> dict[str, Any]:
    return {
        "choices": [{"finish_reason": reason}],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    }


@pytest.mark.parametrize(
    ("text", "reason", "counter"),
    [
        ("", "stop", "refused.empty"),
        ("  \n", "stop", "refused.empty"),
        ("Empty Response", "stop", "refused.empty"),
        ("thirty days and", "length", "refused.truncated"),
        ("thirty days", "content_filter", "refused.refused"),
        ("I'm sorry, but I can't help with that.", "stop", "refused.refused"),
    ],
)
def test_n1_n4_what_is_not_an_answer_is_not_stored(
    text: str, reason: str, counter: str, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    llm.answers(text, raw(reason))
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    given = text or "Empty Response"  # by the framework
    assert [str(engine.query(QUESTION)) for _ in range(2)] == [given, given]
    assert llm.calls == 2
    assert cache.stats().counters[counter] == 2 and cache.stats().entries == 0


def test_n4_no_documents_is_no_answer(cache: Cache, llm: DigestLLM) -> None:
    engine = CachedQueryEngine(Corpus({}).engine(llm), cache=cache)
    assert str(engine.query(QUESTION)) == "Empty Response"
    assert cache.stats().counters["refused.empty"] == 1


def test_n3_errors_are_the_applications_and_not_stored(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    llm.fails(OSError("model is down"))
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    for _ in range(2):
        with pytest.raises(OSError, match="model is down"):
            engine.query(QUESTION)
    llm.fails(None)
    assert str(engine.query(QUESTION)).startswith("answer ")


@pytest.mark.parametrize("grounding", ["recheck", "none"])
def test_k5_k6_a_hit_says_what_it_saved(
    grounding: Any, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    llm.answers("thirty days", raw())
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache, grounding=grounding, stamps=INDEX)
    engine.query(QUESTION)
    response: Any = engine.query(QUESTION)
    saved = response.metadata["cache"]["saved"]
    assert (saved["input_tokens"], saved["output_tokens"]) == (100, 20)
    assert saved["latency_s"] > 0
    assert cache.stats().saved_tokens == 120


async def test_k1_concurrent_queries_are_not_mixed(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    sizes = range(1, 9)
    llms = [DigestLLM(model=f"m{size}") for size in sizes]
    for size, each in zip(sizes, llms, strict=True):
        each.answers("thirty days", raw(prompt=size, completion=size))
    engines = [CachedQueryEngine(corpus.engine(each), cache=cache) for each in llms]
    await asyncio.gather(*(engine.aquery(QUESTION) for engine in engines))
    hits: list[Any] = [await engine.aquery(QUESTION) for engine in engines]
    assert [hit.metadata["cache"]["saved"]["input_tokens"] for hit in hits] == list(sizes)
    assert engine.inner is not None


def test_all_calls_of_one_answer_are_added_up(cache: Cache, corpus: Corpus) -> None:
    llm = DigestLLM()
    llm.answers("thirty days", raw())
    inner = corpus.engine(llm, response_mode="accumulate")
    engine = CachedQueryEngine(inner, cache=cache)
    engine.query(QUESTION)
    response: Any = engine.query(QUESTION)
    assert response.metadata["cache"]["saved"]["input_tokens"] == 200 and llm.calls == 2


def test_the_framework_gets_one_handler(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    for _ in range(3):
        CachedQueryEngine(corpus.engine(llm), cache=cache)
    handlers = get_dispatcher().event_handlers
    assert sum(isinstance(handler, UsageHandler) for handler in handlers) == 1


class Spent:
    """A provider's response as an object."""

    class usage:
        prompt_tokens = 10
        completion_tokens = 2
        prompt_cache_hit_tokens = 8

    class _Choice:
        finish_reason = "LENGTH"

    choices = (_Choice(),)


def test_a_meter_reads_objects_and_mappings_once() -> None:
    meter, response = Meter(), Spent()
    assert meter.usage == Usage() and meter.finish_reason == ""
    meter.ended(None)
    meter.ended(response)
    meter.ended(response)  # a chat call on top of a completion call reports the same response
    assert meter.usage == Usage(input_tokens=10, output_tokens=2, cached_tokens=8)
    assert meter.finish_reason == "length"
    meter.ended({"prompt_eval_count": 5, "eval_count": 1, "done_reason": "stop"})
    meter.ended({"usage": {"input_tokens": 1, "output_tokens": True}, "stop_reason": None})
    assert meter.usage == Usage(input_tokens=16, output_tokens=3, cached_tokens=8)


def test_tools_called_while_making_an_answer_are_done() -> None:
    meter = Meter()
    meter.ended(raw("tool_calls"))
    assert meter.finish_reason == "stop"
