"""Streams: handed on as they come, stored when they have ended, replayed as streams."""

import gc
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, semantic_cache
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

import stampcache
from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache

QUESTION = "how long is annual leave"


def streaming(corpus: Corpus, llm: DigestLLM, cache: Cache, **options: Any) -> CachedQueryEngine:
    return CachedQueryEngine(corpus.engine(llm, streaming=True), cache=cache, **options)


def ask(engine: CachedQueryEngine) -> StreamingResponse:
    response = engine.query(QUESTION)
    assert isinstance(response, StreamingResponse)
    return response


async def aask(engine: CachedQueryEngine) -> AsyncStreamingResponse:
    response = await engine.aquery(QUESTION)
    assert isinstance(response, AsyncStreamingResponse)
    return response


def hit(response: StreamingResponse | AsyncStreamingResponse) -> bool:
    assert response.metadata is not None
    return bool(response.metadata["cache"]["hit"])


@pytest.mark.parametrize("grounding", ["recheck", "none"])
def test_i1_i3_a_stream_fills_and_is_replayed_in_chunks(
    grounding: Any, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = streaming(corpus, llm, cache, grounding=grounding, stamps=INDEX)
    missed = ask(engine)
    chunks = list(missed.response_gen)
    replayed = ask(engine)
    assert [hit(missed), hit(replayed)] == [False, True]
    assert list(replayed.response_gen) == chunks and len(chunks) > 2
    assert replayed.source_nodes == missed.source_nodes
    assert str(ask(engine)) == "".join(chunks)
    assert llm.calls == 1


@pytest.mark.parametrize("grounding", ["recheck", "none"])
async def test_i2_an_async_stream_fills_and_is_replayed_in_chunks(
    grounding: Any, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = streaming(corpus, llm, cache, grounding=grounding, stamps=INDEX)
    missed = await aask(engine)
    chunks = [chunk async for chunk in missed.response_gen]
    replayed = await aask(engine)
    assert [hit(missed), hit(replayed)] == [False, True]
    assert [chunk async for chunk in replayed.response_gen] == chunks and len(chunks) > 2
    assert str(await (await aask(engine)).get_response()) == "".join(chunks)
    assert str(ask(engine)) == "".join(chunks)  # the class that the caller expects
    assert llm.calls == 1


def test_an_abandoned_stream_stores_nothing(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = streaming(corpus, llm, cache)
    response = ask(engine)
    next(iter(response.response_gen))
    del response
    gc.collect()
    ask(engine)  # never consumed at all
    assert cache.stats().entries == 0 and not hit(ask(engine))


async def test_an_abandoned_async_stream_stores_nothing(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = streaming(corpus, llm, cache)
    response = await aask(engine)
    stream: Any = response.response_gen
    await anext(stream)
    await stream.aclose()
    assert cache.stats().entries == 0 and not hit(await aask(engine))


def test_a_failed_stream_stores_nothing(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = streaming(corpus, llm, cache)
    llm.fails(OSError("cut"), after_chunks=2)
    with pytest.raises(OSError, match="cut"):
        list(ask(engine).response_gen)
    llm.fails(None)
    assert cache.stats().entries == 0 and not hit(ask(engine))


async def test_a_failed_async_stream_stores_nothing(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = streaming(corpus, llm, cache)
    llm.fails(OSError("cut"), after_chunks=2)
    response = await aask(engine)
    with pytest.raises(OSError, match="cut"):
        [chunk async for chunk in response.response_gen]
    assert cache.stats().entries == 0


RAW = {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}


def finished(reason: str | None) -> dict[str, Any]:
    return {**RAW, "choices": [{"finish_reason": reason}]}


def test_a_stream_that_was_cut_off_by_length_stores_nothing(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = streaming(corpus, llm, cache)
    llm.answers("thirty days and then", finished("length"))
    list(ask(engine).response_gen)
    assert cache.stats().counters["refused.truncated"] == 1


def test_a_stream_of_a_provider_that_ended_without_a_reason_stores_nothing(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = streaming(corpus, llm, cache)
    llm.answers("thirty days and then", finished(None))
    list(ask(engine).response_gen)
    assert cache.stats().counters["refused.aborted"] == 1


async def test_k3_tokens_of_streams_are_counted(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = streaming(corpus, llm, cache)
    llm.answers("thirty days in all", finished("stop"))
    list(ask(engine).response_gen)
    response = ask(engine)
    assert response.metadata is not None
    saved = response.metadata["cache"]["saved"]
    assert (saved["input_tokens"], saved["output_tokens"]) == (7, 3)
    cache.clear()
    _ = [chunk async for chunk in (await aask(engine)).response_gen]
    assert (await aask(engine)).metadata["cache"]["saved"] == {  # type: ignore[index]
        **saved,
        "latency_s": pytest.approx(0, abs=60),
    }


def test_a_stream_is_stored_for_the_tenant_that_asked(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = streaming(corpus, llm, cache)
    with stampcache.scope(tenant="acme"):
        response = ask(engine)
    with stampcache.scope(tenant="other"):
        list(response.response_gen)  # whoever reads it, acme has asked
        assert not hit(ask(engine))
    with stampcache.scope(tenant="acme"):
        assert hit(ask(engine))


def test_a_document_that_changed_during_the_stream_fences_the_answer(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = streaming(corpus, llm, cache, grounding="none", stamps=INDEX)
    response = ask(engine)
    cache.invalidate(source="leave")
    list(response.response_gen)
    assert cache.stats().counters["refused.fenced"] == 1


def test_the_caller_cannot_change_what_a_stream_stores(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = streaming(corpus, llm, cache, grounding="none", stamps=INDEX)
    response = ask(engine)
    response.source_nodes.clear()
    list(response.response_gen)
    assert len(ask(engine).source_nodes) == 2


def test_a_replayed_stream_is_the_class_of_the_framework(
    cache: Cache, corpus: Corpus, llm: DigestLLM, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = streaming(corpus, llm, cache)
    text = str(ask(engine))
    assert ask(engine).get_response().response == text
    ask(engine).print_response_stream()
    assert capsys.readouterr().out.strip() == text
    replayed = ask(engine)
    assert [str(replayed), str(replayed)] == [text, text]  # as often as one likes
    assert replayed.get_formatted_sources()


async def test_a_replayed_async_stream_is_the_class_of_the_framework(
    cache: Cache, corpus: Corpus, llm: DigestLLM, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = streaming(corpus, llm, cache)
    text = "".join([chunk async for chunk in (await aask(engine)).async_response_gen()])
    replayed = await aask(engine)
    assert "".join([chunk async for chunk in replayed.async_response_gen()]) == text
    assert (await replayed.get_response()).response == text
    await (await aask(engine)).print_response_stream()
    assert capsys.readouterr().out.strip() == text
    assert llm.calls == 1


def test_empty_answers_of_streams_are_not_stored(cache: Cache, llm: DigestLLM) -> None:
    engine = streaming(Corpus({}), llm, cache)
    assert str(ask(engine)) == "Empty Response" and not hit(ask(engine))
    assert cache.stats().entries == 0


@pytest.mark.parametrize("grounding", ["recheck", "none"])
def test_a_failure_of_the_making_is_the_callers(
    grounding: Any, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = streaming(corpus, llm, cache, grounding=grounding, stamps=INDEX)
    llm.fails(OSError("down"), after_chunks=0)
    with pytest.raises(OSError, match="down"):
        str(ask(engine))
    llm.fails(None)
    assert str(ask(engine)).startswith("answer ")


def test_a_bypassed_stream_is_that_of_the_engine(corpus: Corpus, llm: DigestLLM) -> None:
    with stampcache.open_cache("memory://", tenants="required") as cache:
        engine = streaming(corpus, llm, cache)
        for _ in range(2):
            response = ask(engine)
            assert str(response).startswith("answer ")
            assert response.metadata["cache"]["reason"] == "no tenant in scope"  # type: ignore[index]


def test_a_stream_of_a_paraphrase_has_the_evidence_of_its_entry(
    corpus: Corpus, llm: DigestLLM
) -> None:
    with semantic_cache() as cache:
        engine = streaming(corpus, llm, cache)
        missed = ask(engine)
        text = str(missed)
        replayed = engine.query("tell me about annual leave")
        assert isinstance(replayed, StreamingResponse) and str(replayed) == text
        assert replayed.metadata["cache"]["level"] == "semantic"  # type: ignore[index]
        assert replayed.source_nodes == missed.source_nodes


def test_a_stale_answer_may_be_streamed(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = streaming(corpus, llm, cache, allow_stale=True)
    text = str(ask(engine))
    corpus.edit("leave", "annual leave is forty days")
    stale = ask(engine)
    assert str(stale) == text and llm.calls == 1
    assert stale.metadata["cache"]["reason"] == "evidence changed"  # type: ignore[index]
