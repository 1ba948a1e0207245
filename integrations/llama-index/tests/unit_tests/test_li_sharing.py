"""Equal queries that run at once: one answer, one failure, nobody blocked."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, TopicEmbedder

from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache, open_cache

QUESTION = "how long is annual leave"
THREADS = 12


class Doorman:
    """Opens a gate when a number of queries wait for the leader."""

    def __init__(self, cache: Cache, waiting: int) -> None:
        self.gate = threading.Event()
        flights = cache.core.flights
        board = flights._board
        asked: list[object] = []

        def counted(*args: Any) -> Any:
            other = board(*args)
            asked.append(other)
            if len(asked) == waiting:
                self.gate.set()
            return other

        flights._board = counted  # type: ignore[method-assign,assignment]


def in_threads(engine: CachedQueryEngine) -> list[Any]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda _: engine.query(QUESTION), range(THREADS)))


@pytest.mark.parametrize("grounding", ["recheck", "none"])
def test_f17_j8_equal_queries_of_threads_share_one_answer(
    grounding: Any, corpus: Corpus, llm: DigestLLM
) -> None:
    embedder = TopicEmbedder()
    with open_cache("memory://", embedder=embedder, calibration=0.9) as cache:
        engine = CachedQueryEngine(
            corpus.engine(llm), cache=cache, grounding=grounding, stamps=INDEX
        )
        llm.waits_for(Doorman(cache, THREADS).gate)
        at_opening = embedder.calls
        responses = in_threads(engine)
        assert llm.calls == 1 and embedder.calls - at_opening == 1
        assert len({response.response for response in responses}) == 1
        assert len({id(response) for response in responses}) == THREADS
        assert len({id(response.source_nodes) for response in responses}) == THREADS
        reasons = [response.metadata["cache"]["reason"] for response in responses]
        assert reasons.count("not found") + reasons.count("below threshold") == 1
        assert reasons.count("shared with an equal request") == THREADS - 1
        assert cache.core.counters.of(None)["shared"] == THREADS - 1


async def test_j10_equal_queries_of_tasks_share_one_answer(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    responses: list[Any] = await asyncio.gather(*(engine.aquery(QUESTION) for _ in range(100)))
    assert llm.calls == 1
    assert len({response.response for response in responses}) == 1
    responses[0].source_nodes.clear()
    assert all(len(response.source_nodes) == 2 for response in responses[1:])


def test_the_failure_of_the_leader_is_shared(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    llm.fails(OSError("model is down"))
    llm.waits_for(Doorman(cache, THREADS).gate)

    def ask(_: int) -> str:
        with pytest.raises(OSError, match="model is down"):
            engine.query(QUESTION)
        return "failed"

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(ask, range(THREADS))) == ["failed"] * THREADS
    assert llm.calls == 1 and len(cache.core.flights) == 0


def test_an_answer_that_is_not_stored_is_shared_all_the_same(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    llm.answers("thirty days and", {"choices": [{"finish_reason": "length"}]})
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    llm.waits_for(Doorman(cache, THREADS).gate)
    assert {response.response for response in in_threads(engine)} == {"thirty days and"}
    assert llm.calls == 1 and cache.stats().entries == 0


def test_those_who_wait_for_a_hit_have_a_hit(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    engine.query(QUESTION)
    responses = in_threads(engine)
    assert all(response.metadata["cache"]["hit"] for response in responses)
    assert cache.stats().exact_hits == THREADS


async def test_i4_equal_streams_of_tasks_are_one_stream(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm, streaming=True), cache=cache)

    async def ask() -> Any:
        response: Any = await engine.aquery(QUESTION)
        text = "".join([chunk async for chunk in response.response_gen])
        return text, response

    told = await asyncio.gather(*(ask() for _ in range(20)))
    assert len({text for text, _ in told}) == 1 and llm.calls == 1
    assert len({id(response.source_nodes) for _, response in told}) == 20
    reasons = [response.metadata["cache"]["reason"] for _, response in told]
    assert reasons.count("not found") == 1
    assert reasons.count("shared with an equal request") == 19
    assert cache.stats().entries == 1 and cache.stats().shared == 19


def test_i4_equal_streams_of_threads_are_one_stream(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm, streaming=True), cache=cache)
    first: Any = engine.query(QUESTION)
    chunk = next(first.response_gen)  # it has begun, and goes on slowly

    def read(_: int) -> str:
        response: Any = engine.query(QUESTION)
        return "".join(response.response_gen)

    with ThreadPoolExecutor(THREADS) as pool:
        told = set(pool.map(read, range(THREADS)))
    assert told == {chunk + "".join(first.response_gen)}
    assert llm.calls == 1 and cache.stats().entries == 1


def test_a_reader_that_leaves_keeps_the_stream_for_the_others(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm, streaming=True), cache=cache)
    first: Any = engine.query(QUESTION)
    second: Any = engine.query(QUESTION)
    next(first.response_gen)
    first.response_gen.close()
    text = "".join(second.response_gen)
    third: Any = engine.query(QUESTION)
    assert third.metadata["cache"]["hit"] and str(third) == text and llm.calls == 1


async def test_a_failing_stream_fails_for_all_that_read_along(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm, streaming=True), cache=cache)
    llm.fails(OSError("cut"), after_chunks=2)

    async def ask() -> None:
        response: Any = await engine.aquery(QUESTION)
        with pytest.raises(OSError, match="cut"):
            [chunk async for chunk in response.response_gen]

    await asyncio.gather(*(ask() for _ in range(5)))
    assert llm.calls == 1 and cache.stats().entries == 0


async def test_sync_calls_on_a_running_loop_do_not_wait_for_its_tasks(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    task = asyncio.create_task(engine.aquery(QUESTION))
    await asyncio.sleep(0)
    assert str(engine.query(QUESTION)) == str(await task)


async def test_j1_queries_in_tasks_do_no_blocking_work_in_the_store(
    tmp_path: Any, corpus: Corpus, llm: DigestLLM
) -> None:
    loop_thread = threading.get_ident()
    with open_cache(f"sqlite:///{tmp_path / 'rag.db'}") as cache:
        engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
        put, threads = cache.core.store.put, []

        def watched(*args: Any) -> Any:
            threads.append(threading.get_ident())
            return put(*args)

        cache.core.store.put = watched  # type: ignore[method-assign,assignment]
        await engine.aquery(QUESTION)
        response: Any = await engine.aquery(QUESTION)
        assert response.metadata["cache"]["hit"]
        assert loop_thread not in threads
