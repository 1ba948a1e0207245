"""Stored responses that cannot be read: a second hit, and what an equal query was given."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_fakes import Corpus, DigestLLM
from test_li_sharing import QUESTION, THREADS, Doorman

from llama_index_stampcache import CachedQueryEngine
from llama_index_stampcache.engines import payload
from stampcache import Cache, StoreError


def cannot(*args: Any, **options: Any) -> None:
    raise StoreError("The store is read-only.")


async def acannot(*args: Any, **options: Any) -> None:
    raise StoreError("The store is read-only.")


def asked(engine: CachedQueryEngine, *, aio: bool) -> dict[str, Any]:
    response: Any = asyncio.run(engine.aquery(QUESTION)) if aio else engine.query(QUESTION)
    assert response.response.startswith("answer ")
    found: dict[str, Any] = response.metadata["cache"]
    return found


@pytest.mark.parametrize("aio", [False, True])
def test_a_second_unreadable_hit_is_made_anew(
    aio: bool, cache: Cache, corpus: Corpus, llm: DigestLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    with monkeypatch.context() as patch:
        patch.setattr(payload.Payload, "encode", lambda _: b"{")
        asked(engine, aio=aio)
    with monkeypatch.context() as patch:  # no entry can be dropped
        for verb in ("invalidate", "remove"):
            patch.setattr(cache.core.ports.store, verb, cannot)
            patch.setattr(cache.core.async_ports.store, verb, acannot)
        assert asked(engine, aio=aio)["reason"] == "entry was damaged"
    assert llm.calls == 2
    counted = cache.core.counters.of(None)
    assert counted["error.adapter.undecodable"] == counted["error.adapter.drop"] == 2
    assert counted["refused.corrupt"] == 1
    assert [asked(engine, aio=aio)["hit"] for _ in range(2)] == [False, True]


def test_who_cannot_read_what_an_equal_query_was_given_makes_its_own(
    cache: Cache, corpus: Corpus, llm: DigestLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    llm.waits_for(Doorman(cache, THREADS).gate)
    monkeypatch.setattr(payload.Payload, "encode", lambda _: b"{")
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: asked(engine, aio=False), range(THREADS)))
    assert not any(each["hit"] for each in found)
    assert llm.calls == THREADS
    counted = cache.core.counters.of(None)
    assert counted["error.adapter.undecodable"] >= THREADS - 1
    assert "shared" not in counted
