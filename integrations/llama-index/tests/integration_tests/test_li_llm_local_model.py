"""A small real model on this machine, cached."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.llms.openai_like import OpenAILike
from llama_llm_fakes import bare, cached, user
from openai_server import closed

from llama_index_stampcache import CachedLLM
from stampcache import Cache

pytest.importorskip("xllamacpp")

from stampcache.demo.endpoint import Endpoint
from stampcache.demo.local_model import local_model


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with local_model() as opened:
        yield opened


@pytest.fixture
async def inner(endpoint: Endpoint) -> AsyncIterator[Any]:
    model = OpenAILike(
        model=endpoint.model,
        api_key=endpoint.api_key,
        api_base=endpoint.base_url,
        is_chat_model=True,
        max_tokens=64,
        temperature=0.0,
        additional_kwargs={"stream_options": {"include_usage": True}},
    )
    yield model
    await closed(model)


QUESTION = "Say hello to Anna."


async def test_it_answers_once_and_the_same(inner: Any, cache: Cache) -> None:
    llm = CachedLLM(inner, cache=cache)
    expected = inner.chat(user(QUESTION))
    first = await llm.achat(user(QUESTION))
    second = llm.chat(user(QUESTION))
    assert str(first) == str(second) == str(expected)
    assert cached(second)["hit"]
    assert bare(first) == bare(second)
    assert cached(second)["saved"]["output_tokens"] == first.raw.usage.completion_tokens > 0


async def test_it_streams_once_and_the_same(inner: Any, cache: Cache) -> None:
    llm = CachedLLM(inner, cache=cache)
    first = [one async for one in await llm.astream_chat(user(QUESTION))]
    second = list(llm.stream_chat(user(QUESTION)))
    assert [bare(one) for one in first] == [bare(one) for one in second]
    assert "".join(one.delta or "" for one in second) == second[-1].message.content
    assert cached(second[-1])["hit"]
    assert cached(second[-1])["saved"]["output_tokens"] > 0


async def test_a_chat_engine_goes_on_from_hits(inner: Any, cache: Cache) -> None:
    llm = CachedLLM(inner, cache=cache)

    def dialogue() -> list[str]:
        memory = ChatMemoryBuffer.from_defaults(token_limit=2_000)
        engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory)
        return [str(engine.chat(text)) for text in (QUESTION, "Name a color.")]

    assert dialogue() == dialogue()
    stats = cache.stats()
    assert (stats.misses, stats.exact_hits) == (2, 2)
