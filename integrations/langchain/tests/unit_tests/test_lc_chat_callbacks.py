"""Callbacks, tokens, usage, pacing and other caches around a `CachedChatModel`."""

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_fakes import USAGE, CountingChat
from lc_chat_fakes import AsyncStreamingChat, Seen, StreamingChat, cached, summed, was_hit

from langchain_stampcache import StampCache
from stampcache import Cache


def test_runs_are_told_of_once_and_as_the_inner_model_tells_them(opened: Cache) -> None:
    plain, outer = Seen(), Seen()
    CountingChat().invoke("hello", config={"callbacks": [plain]}, stop=["."])
    chat = cached(CountingChat(), opened)
    for _ in range(2):
        chat.invoke("hello", config={"callbacks": [outer]}, stop=["."])
    assert (len(outer.starts), len(outer.ends)) == (2, 2)
    assert outer.serialized == plain.serialized * 2
    for start in outer.starts:
        for name in ("invocation_params", "options", "metadata", "tags", "name"):
            assert start.get(name) == plain.starts[0].get(name)


def test_the_inner_models_own_callbacks_hear_of_each_call(opened: Cache) -> None:
    seen = Seen()
    chat = cached(CountingChat(callbacks=[seen], tags=["mine"], metadata={"a": 1}), opened)
    chat.invoke("hello")
    chat.invoke("hello")
    assert (len(seen.starts), len(seen.ends)) == (2, 2)
    assert seen.starts[1]["tags"] == ["mine"]
    assert seen.starts[1]["metadata"]["a"] == 1


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_tokens_are_told_for_a_hit_too(opened: Cache, way: str) -> None:
    chat = cached(AsyncStreamingChat(), opened)

    async def read(seen: Seen) -> str:
        if way == "stream":
            chunks = list(chat.stream("hello", config={"callbacks": [seen]}))
        else:
            given = chat.astream("hello", config={"callbacks": [seen]})
            chunks = [chunk async for chunk in given]
        assert len(seen.tokens) == len(chunks)
        return "".join(seen.tokens)

    made, found = Seen(), Seen()
    assert asyncio.run(read(made)) == asyncio.run(read(found)) == "This is a streamed answer"
    assert len(found.tokens) > 2


@pytest.mark.filterwarnings("ignore:The method:langchain_core._api.LangChainBetaWarning")
@pytest.mark.skipif(not hasattr(BaseChatModel, "stream_events"), reason="an older LangChain")
def test_tokens_of_protocol_events_are_told_too(opened: Cache) -> None:
    chat = cached(StreamingChat(), opened)
    for _ in range(2):
        seen = Seen()
        stream = chat.stream_events("hello", config={"callbacks": [seen]}, version="v3")
        assert stream.output.text == "".join(seen.tokens) == "This is a streamed answer"
        assert (len(seen.starts), len(seen.ends)) == (1, 1)


def test_usage_is_counted_once(opened: Cache) -> None:
    counted = UsageMetadataCallbackHandler()
    chat = cached(StreamingChat(), opened)
    for _ in range(3):
        chat.invoke("hello", config={"callbacks": [counted]})
    list(chat.stream("hello", config={"callbacks": [counted]}))
    assert counted.usage_metadata["fake-1"]["total_tokens"] == USAGE["total_tokens"]


def test_no_other_cache_is_asked(opened: Cache) -> None:
    other = StampCache("memory://")
    set_llm_cache(other)
    try:
        inner = CountingChat(cache=StampCache("memory://"))
        chat = cached(inner, opened)
        chat.invoke("hello")
        assert was_hit(chat.invoke("hello"))
        assert other.cache.stats(everything=True).requests == 0
        assert inner.cache.cache.stats(everything=True).requests == 0
        assert chat.cache is False
    finally:
        set_llm_cache(None)


def test_only_real_calls_are_paced(opened: Cache) -> None:
    class Pace(InMemoryRateLimiter):
        taken = 0

        def acquire(self, *, blocking: bool = True) -> bool:
            Pace.taken += 1
            return True

        async def aacquire(self, *, blocking: bool = True) -> bool:
            Pace.taken += 1
            return True

    chat = cached(AsyncStreamingChat(rate_limiter=Pace()), opened)

    async def read(asked: str) -> Any:
        return summed([chunk async for chunk in chat.astream(asked)])

    chat.invoke("hello")
    asyncio.run(chat.ainvoke("hello"))
    summed(chat.stream("hello"))
    asyncio.run(read("hello"))
    assert Pace.taken == 1
    asyncio.run(chat.ainvoke("another"))
    summed(chat.stream("a third"))
    asyncio.run(read("a fourth"))
    assert Pace.taken == 4
