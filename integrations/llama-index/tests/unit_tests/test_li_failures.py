"""Tenants, and what happens when the cache fails: the application never notices."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, TopicEmbedder

import stampcache
from llama_index_stampcache import CachedQueryEngine
from llama_index_stampcache.engines import payload
from llama_index_stampcache.engines.fingerprint import Fingerprint
from stampcache import Cache, StoreError, identity, open_cache
from stampcache.adapters import Core, Flow, Step

QUESTION = "how long is annual leave"


def ask(engine: CachedQueryEngine) -> dict[str, Any]:
    response: Any = engine.query(QUESTION)
    assert response.response.startswith("answer ")
    found: dict[str, Any] = response.metadata["cache"]
    return found


async def aask(engine: CachedQueryEngine) -> dict[str, Any]:
    response: Any = await engine.aquery(QUESTION)
    assert response.response.startswith("answer ")
    found: dict[str, Any] = response.metadata["cache"]
    return found


async def test_e1_tenants_do_not_share(cache: Cache, corpus: Corpus, llm: DigestLLM) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    for tenant, audience in (("acme", ""), ("other", ""), ("acme", "group-7")):
        with stampcache.scope(tenant=tenant, audience=audience):
            assert not ask(engine)["hit"]
            assert ask(engine)["hit"] and (await aask(engine))["hit"]
            assert (await asyncio.create_task(aask(engine)))["hit"]
    assert llm.calls == 3


async def test_e13_without_a_required_tenant_the_cache_is_bypassed(
    corpus: Corpus, llm: DigestLLM
) -> None:
    with open_cache("memory://", tenants="required") as cache:
        engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
        assert ask(engine)["reason"] == "no tenant in scope"
        assert (await aask(engine))["reason"] == "no tenant in scope"
        assert cache.stats(everything=True).counters["adapter.unscoped"] == 2
        assert cache.stats(everything=True).entries == 0
        with stampcache.scope(tenant="acme"):
            assert [ask(engine)["hit"], ask(engine)["hit"]] == [False, True]


def test_e13_unscoped_queries_bypass_a_cache_that_has_seen_tenants(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    with stampcache.scope(tenant="acme"):
        ask(engine)
    assert ask(engine)["reason"] == "no tenant in scope"
    assert cache.stats(everything=True).entries == 1


VERBS = ["fetch", "put", "sequence", "touch"]


@pytest.mark.parametrize("error", [StoreError("disk is full"), RuntimeError("bug")])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("aio", [False, True])
def test_a_failing_store_never_fails_a_query(
    verb: str, error: Exception, aio: bool, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise error

    async def abroken(*_: Any, **__: Any) -> Any:
        raise error

    setattr(cache.core.store, verb, broken)
    setattr(cache.core.async_ports.store, verb, abroken)
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    for _ in range(2):
        hit = (asyncio.run(aask(engine)) if aio else ask(engine))["hit"]
        assert not (hit and verb in ("fetch", "put"))
    counters = cache.core.counters.of(None)
    assert any(name.startswith("error.") for name in counters), counters


BROKEN: dict[str, Callable[[Cache, pytest.MonkeyPatch], None]] = {
    "adapter.request": lambda cache, patch: patch.setattr(cache.core.intake, "ask", boom),
    "adapter.settings": lambda _, patch: patch.setattr(Fingerprint, "settings", boom),
    "adapter.lookup": lambda _, patch: patch.setattr(Core, "lookup_now", boom_flow),
    "adapter.update": lambda _, patch: patch.setattr(Core, "update", boom_flow),
    "adapter.draft": lambda cache, patch: patch.setattr(payload, "draft", boom),
}


def boom(*_: Any, **__: Any) -> Any:
    raise RuntimeError("bug")


async def aboom() -> Any:
    raise RuntimeError("bug")


def boom_flow(*_: Any, **__: Any) -> Flow[Any]:
    return (yield from Step(sync=boom, aio=aboom))


@pytest.mark.parametrize("aio", [False, True])
@pytest.mark.parametrize("where", sorted(BROKEN))
def test_a_bug_in_the_cache_is_counted_and_the_engine_answers(
    where: str,
    aio: bool,
    cache: Cache,
    corpus: Corpus,
    llm: DigestLLM,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    BROKEN[where](cache, monkeypatch)
    assert not (asyncio.run(aask(engine)) if aio else ask(engine))["hit"]
    counted = "adapter.request" if where == "adapter.settings" else where
    assert cache.core.counters.of(None)[f"error.{counted}"] == 1


def test_a_strict_cache_raises(
    corpus: Corpus, llm: DigestLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_cache("memory://", strict=True) as cache:
        engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
        monkeypatch.setattr(Core, "lookup_now", boom_flow)
        with pytest.raises(RuntimeError, match="bug"):
            engine.query(QUESTION)


def test_a_failing_embedder_never_fails_a_query(corpus: Corpus, llm: DigestLLM) -> None:
    embedder = TopicEmbedder()
    with open_cache("memory://", embedder=embedder, calibration=0.9) as cache:
        engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
        embedder.embed = boom  # type: ignore[method-assign]
        assert [ask(engine)["hit"], ask(engine)["hit"]] == [False, True]


def test_retrieval_errors_are_the_applications(
    cache: Cache, corpus: Corpus, llm: DigestLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = corpus.engine(llm)
    engine = CachedQueryEngine(inner, cache=cache)
    monkeypatch.setattr(inner, "retrieve", boom)
    with pytest.raises(RuntimeError, match="bug"):
        engine.query(QUESTION)


@pytest.mark.parametrize("aio", [False, True])
@pytest.mark.parametrize("spoilt", [b"", b"\xff", b'{"version":2}', b"not json"])
def test_h1_h15_an_unreadable_payload_is_a_miss_and_its_entry_goes(
    spoilt: bytes,
    aio: bool,
    cache: Cache,
    corpus: Corpus,
    llm: DigestLLM,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    with monkeypatch.context() as patch:
        patch.setattr(payload.Payload, "encode", lambda _: spoilt)
        ask(engine)
    made = asyncio.run(aask(engine)) if aio else ask(engine)
    assert not made["hit"] and llm.calls == 2
    assert cache.stats().counters["stored"] == 2 and cache.stats().entries == 1
    assert cache.core.counters.of(None)["error.adapter.undecodable"] == 1
    assert ask(engine)["hit"]


def test_h7_odd_questions_are_answered(
    cache: Cache, corpus: Corpus, llm: DigestLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache, grounding="none", stamps=INDEX)
    for odd in (" ", "\ud800", "\x00leave"):
        response: Any = engine.query(odd)
        assert response.response.startswith(("answer ", "Empty Response"))
        assert not response.metadata["cache"]["hit"]
    monkeypatch.setattr(identity, "MAX_TEXT_CHARS", 100)
    assert str(engine.query("leave " * 100)).startswith("answer ")
    assert cache.core.counters.of(None)["miss.uncacheable"] == 3
