"""Lifetimes by kind of data, on every way by which an answer is stored."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, reasons, report
from llama_index.core.base.response.schema import Response
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import Generation

from llama_index_stampcache import CachedQueryEngine
from stampcache import Cache, Lifetime, open_cache
from stampcache.testing import FakeClock
from stampcache.ttl import KINDS

QUESTION = "how long is annual leave"
MINUTE_S, DAY_S = 60.0, 86_400.0


def cached(corpus: Corpus, llm: DigestLLM, cache: Cache, **options: Any) -> CachedQueryEngine:
    inner = corpus.engine(llm, top_k=1, streaming=options.pop("streaming", False))
    given = {"grounding": "version", "corpus": "handbook", "stamps": INDEX, **options}
    return CachedQueryEngine(inner, cache=cache, **given)


class Talkative(Generation):
    """A synthesizer that asks the model even where nothing was found."""

    def synthesize(self, query: Any, nodes: Any, *args: Any, **options: Any) -> Any:
        text = self._llm.complete(str(getattr(query, "query_str", query))).text
        return Response(str(text), source_nodes=list(nodes))


@pytest.fixture
def sliding(url: str, clock: FakeClock) -> Iterator[Cache]:
    lifetimes = {"session": Lifetime(ttl_s=600, cap_s=1_500)}
    with open_cache(url, clock=clock, lifetimes=lifetimes) as opened:
        yield opened


@pytest.mark.parametrize("grounding", ["recheck", "version", "none"])
def test_f6_hits_never_extend_a_life(
    grounding: Any, timed: Cache, clock: FakeClock, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = cached(corpus, llm, timed, grounding=grounding)
    engine.query(QUESTION)
    for _ in range(6):
        clock.advance(DAY_S)
        assert reasons(engine, QUESTION) == ["hit"]
    clock.advance(DAY_S)
    assert reasons(engine, QUESTION) == ["expired"]


def test_f6_a_life_slides_up_to_its_cap(
    sliding: Cache, clock: FakeClock, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = cached(corpus, llm, sliding, kind="session")
    engine.query(QUESTION)
    lived = []
    for _ in range(4):
        clock.advance(400)
        lived += reasons(engine, QUESTION)
    assert lived == ["hit", "hit", "hit", "expired"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_of_data_has_its_lifetime(kind: str, corpus: Corpus, llm: DigestLLM) -> None:
    clock = FakeClock()
    with open_cache("memory://", clock=clock, ttl_s=None) as timed:
        engine = cached(corpus, llm, timed, kind=kind)
        engine.query(QUESTION)
        ttl_s = KINDS[kind].ttl_s
        assert ttl_s is not None
        clock.advance(ttl_s * 0.94)
        assert reasons(engine, QUESTION) == ["hit"]
        clock.advance(ttl_s * 0.06)
        assert reasons(engine, QUESTION) == ["expired"]


def test_the_kind_is_no_part_of_the_identity(timed: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    assert reasons(cached(corpus, llm, timed, kind="news"), QUESTION) == ["not found"]
    assert reasons(cached(corpus, llm, timed, kind="price"), QUESTION) == ["hit"]


@pytest.mark.parametrize("aio", [False, True])
@pytest.mark.parametrize("streaming", [False, True])
def test_f13_a_life_ends_on_every_way_by_which_it_began(
    streaming: bool, aio: bool, timed: Cache, clock: FakeClock, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = cached(corpus, llm, timed, kind="news", streaming=streaming)

    async def aread() -> dict[str, Any]:
        response: Any = await engine.aquery(QUESTION)
        if streaming:
            _ = [chunk async for chunk in response.response_gen]
        return report(response)

    def read() -> dict[str, Any]:
        response: Any = engine.query(QUESTION)
        if streaming:
            list(response.response_gen)
        return report(response)

    def asked() -> dict[str, Any]:
        return asyncio.run(aread()) if aio else read()

    assert [asked()["hit"], asked()["hit"]] == [False, True]
    clock.advance(15 * MINUTE_S)
    assert [asked()["reason"], asked()["hit"]] == ["expired", True]


@pytest.mark.parametrize("grounding", ["version", "recheck"])
def test_f3_an_answer_from_no_documents_lives_short(
    grounding: Any, timed: Cache, clock: FakeClock, llm: DigestLLM
) -> None:
    inner = RetrieverQueryEngine(
        VectorIndexRetriever(Corpus({}).index), response_synthesizer=Talkative(llm=llm)
    )
    engine = CachedQueryEngine(
        inner, cache=timed, corpus="handbook", stamps=INDEX, grounding=grounding
    )
    assert reasons(engine, QUESTION, QUESTION) == ["not found", "hit"]
    clock.advance(5 * MINUTE_S)
    assert reasons(engine, QUESTION) == ["expired"]
    assert timed.invalidate(corpus="handbook", source="leave") == 1  # the first document
