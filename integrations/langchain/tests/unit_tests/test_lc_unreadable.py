"""Stored answers that cannot be read: a hit, the hit after it, and what an equal request was given."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.outputs import Generation
from langchain_fakes import CountingChat, KeepingStore, Shelf, plain_reply

from langchain_stampcache import CachedChain, StampCache, payload
from stampcache import Cache, open_cache

QUESTION = "how long is annual leave"
LLM = "[('m', 1)]"
THREADS = 4


def chain_of(opened: Cache, shelf: Shelf, model: CountingChat) -> CachedChain:
    return CachedChain(retriever=shelf, answer=model_of(model), cache=opened, version="1")


def model_of(model: CountingChat) -> Any:
    return lambda inputs: model.invoke(inputs["input"])


def counts(opened: Cache) -> dict[str, int]:
    return dict(opened.stats(everything=True).counters)


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_a_second_unreadable_hit_of_a_model_is_a_miss(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    store = KeepingStore()
    opened = open_cache(store)
    cache = StampCache(opened)
    with monkeypatch.context() as patch:
        patch.setattr(payload, "dump_generations", lambda _: b"{")
        cache.update("p", LLM, [Generation(text="spoilt")])
    store.keeping = True
    found = cache.lookup("p", LLM) if way == "sync" else await cache.alookup("p", LLM)
    cache.update("p", LLM, [Generation(text="without a fence")])
    store.keeping = False
    assert found is None
    counted = counts(opened)
    assert counted["error.adapter.undecodable"] == counted["error.adapter.drop"] == 2
    assert counted["refused.corrupt"] == 1
    assert cache.lookup("p", LLM) is None
    cache.update("p", LLM, [Generation(text="fresh")])
    assert cache.lookup("p", LLM) == [Generation(text="fresh")]


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_a_second_unreadable_hit_of_a_chain_is_made_anew(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    store = KeepingStore()
    opened = open_cache(store)
    model = CountingChat()
    chain = chain_of(opened, shelf, model)
    asked = {"input": QUESTION}
    with monkeypatch.context() as patch:
        patch.setattr(payload, "dump_result", lambda _: b"{")
        chain.invoke(asked)
    store.keeping = True
    result = chain.invoke(asked) if way == "sync" else await chain.ainvoke(asked)
    store.keeping = False
    assert result["cache"]["reason"] == "entry was damaged"
    assert result["answer"].text.startswith("answer 2")
    counted = counts(opened)
    assert counted["error.adapter.undecodable"] == counted["error.adapter.drop"] == 2
    assert [chain.invoke(asked)["cache"]["hit"] for _ in range(2)] == [False, True]


def waiting_for(opened: Cache, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return what is set when all threads have asked for the same."""
    gate, boarded = threading.Event(), []
    board = opened.core.flights._board

    def counted(*args: Any) -> Any:
        other = board(*args)
        boarded.append(other)
        if len(boarded) == THREADS:
            gate.set()
        return other

    monkeypatch.setattr(opened.core.flights, "_board", counted)
    return gate


def test_who_cannot_read_what_an_equal_question_was_given_makes_its_own(
    opened: Cache, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = waiting_for(opened, monkeypatch)

    def reply(messages: list[Any], call: int) -> AIMessage:
        assert gate.wait(20)
        return plain_reply(messages, call)

    model = CountingChat().answering(reply)
    chain = chain_of(opened, shelf, model)
    monkeypatch.setattr(payload, "dump_result", lambda _: b"{")
    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(lambda _: chain.invoke({"input": QUESTION}), range(THREADS)))
    assert all(result["answer"].text.startswith("answer ") for result in results)
    assert model.calls == THREADS
    assert counts(opened)["error.adapter.undecodable"] >= THREADS - 1
    assert "shared" not in counts(opened)


def test_keys_that_are_no_texts_are_never_those_that_json_would_make_of_them(
    opened: Cache,
) -> None:
    model = CountingChat()
    chain = CachedChain(
        retriever=lambda _: [Document("d")], answer=model_of(model), cache=opened, version="1"
    )
    for _ in range(2):
        chain.invoke({"input": QUESTION, "units": {"1": "day"}})
    assert model.calls == 1
    for key in (1, True, None, 1.5):
        for units in ({key: "day"}, {str(key): [({key: "day"},)]}):
            result = chain.invoke({"input": QUESTION, "units": units})
            assert result["cache"]["reason"] == "uncacheable"
    assert model.calls == 9
