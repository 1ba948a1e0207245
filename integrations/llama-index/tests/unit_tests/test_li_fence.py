"""A change while an answer is being made: what was made from the old state is not kept."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, OneStep, reasons, report, told

from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache, open_cache

QUESTION = "how long is annual leave"


def versioned(corpus: Corpus, llm: DigestLLM, cache: Cache, **options: Any) -> CachedQueryEngine:
    streaming = options.pop("streaming", False)
    return CachedQueryEngine(
        corpus.engine(llm, top_k=1, streaming=streaming),
        cache=cache,
        grounding="version",
        corpus="handbook",
        stamps=INDEX,
        **options,
    )


def changing(cache: Cache, source: str = "leave") -> Callable[[], object]:
    return lambda: cache.invalidate(corpus="handbook", source=source)


def asked(engine: CachedQueryEngine, *, aio: bool) -> dict[str, Any]:
    return report(asyncio.run(engine.aquery(QUESTION)) if aio else engine.query(QUESTION))


@pytest.mark.parametrize("aio", [False, True])
@pytest.mark.parametrize("while_", ["retrieving", "answering"])
def test_a_change_while_an_answer_is_made_keeps_it_out(
    while_: str, aio: bool, timed: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = versioned(corpus, llm, timed)
    if while_ == "retrieving":
        corpus.embedding.meanwhile(changing(timed))
    else:
        llm.meanwhile(changing(timed))
    for _ in range(2):
        assert asked(engine, aio=aio)["reason"] == "not found"
    assert timed.stats().counters["refused.fenced"] == 2 and timed.stats().entries == 0


@pytest.mark.parametrize("aio", [False, True])
def test_an_engine_in_one_step_is_fenced_too(aio: bool, timed: Cache, llm: DigestLLM) -> None:
    inner = OneStep(llm=llm, told=[told("thirty days", "leave")])
    engine = CachedQueryEngine(
        inner, cache=timed, grounding="version", corpus="handbook", stamps=INDEX
    )
    llm.meanwhile(changing(timed))
    asked(engine, aio=aio)
    assert timed.stats().counters["refused.fenced"] == 1


def test_a_stream_is_fenced_while_it_is_read(timed: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = versioned(corpus, llm, timed, streaming=True)
    response: Any = engine.query(QUESTION)
    read = [next(response.response_gen)]
    timed.invalidate(corpus="handbook", source="leave")
    read += list(response.response_gen)
    assert "".join(read).startswith("answer ")
    assert timed.stats().counters["refused.fenced"] == 1 and timed.stats().entries == 0


async def test_an_async_stream_is_fenced_while_it_is_read(
    timed: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = versioned(corpus, llm, timed, streaming=True)
    response: Any = await engine.aquery(QUESTION)
    read: list[str] = []
    async for chunk in response.response_gen:
        if not read:
            timed.invalidate(corpus="handbook", source="leave")
        read.append(chunk)
    assert "".join(read).startswith("answer ")
    assert timed.stats().counters["refused.fenced"] == 1 and timed.stats().entries == 0


@pytest.mark.parametrize("aio", [False, True])
def test_a_busy_corpus_does_not_starve_the_cache(
    aio: bool, timed: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = versioned(corpus, llm, timed)

    def others() -> None:
        for number in range(50):
            timed.invalidate(corpus="handbook", source=f"other-{number}")

    corpus.embedding.meanwhile(others)
    llm.meanwhile(others)
    assert [asked(engine, aio=aio)["hit"] for _ in range(2)] == [False, True]
    others()
    assert asked(engine, aio=aio)["hit"] and llm.calls == 1


def test_what_depends_on_the_whole_corpus_is_fenced_by_any_write(
    timed: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = versioned(corpus, llm, timed, version_of="corpus")
    llm.meanwhile(changing(timed, "news"))
    engine.query(QUESTION)
    assert timed.stats().counters["refused.fenced"] == 1


def test_a_change_of_another_process_keeps_the_answer_out(
    tmp_path: Any, corpus: Corpus, llm: DigestLLM
) -> None:
    url = f"sqlite:///{tmp_path / 'rag.db'}"
    with open_cache(url) as here, open_cache(url) as ingestion:
        engine = versioned(corpus, llm, here)
        llm.meanwhile(changing(ingestion))
        assert reasons(engine, QUESTION, QUESTION) == ["not found", "not found"]
        assert here.stats().entries == 0
