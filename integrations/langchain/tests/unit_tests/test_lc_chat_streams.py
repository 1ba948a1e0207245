"""Streams of `CachedChatModel`: replayed as they were, read together, and stored only when whole."""

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ChatMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk
from langchain_fakes import USAGE, CountingChat
from lc_chat_fakes import (
    SAID,
    AsyncStreamingChat,
    Seen,
    StreamingChat,
    bare,
    cached,
    report,
    summed,
    was_hit,
)

from langchain_stampcache.chat.chunks import chunks_of
from stampcache import Cache

TEXT = "".join(SAID)


async def _read(chat: Any, asked: Any = "hello") -> Any:
    return summed([chunk async for chunk in chat.astream(asked)])


# -- replay ----------------------------------------------------------------------------------------

MESSAGES = {
    "text": AIMessage("One. Two,  three\n\n four " * 9),
    "chinese": AIMessage("一年有三十天假期。" * 20),
    "blank": AIMessage("  \n "),
    "reasoning": AIMessage("yes", additional_kwargs={"reasoning_content": "let me think about it"}),
    "other reasoning": AIMessage("yes", additional_kwargs={"reasoning": "let me think about it"}),
    "tools": AIMessage(
        "",
        tool_calls=[
            {"name": "a", "args": {"x": [1, {"y": "ü"}]}, "id": "1", "type": "tool_call"},
            {"name": "b", "args": {}, "id": "2", "type": "tool_call"},
        ],
        response_metadata={"finish_reason": "tool_calls"},
    ),
    "text and tools": AIMessage(
        "I look it up.",
        tool_calls=[{"name": "a", "args": {"x": 1}, "id": "1", "type": "tool_call"}],
        additional_kwargs={"refusal": None, "function_call": {"name": "f", "arguments": "{}"}},
    ),
    "invalid tools": AIMessage(
        "so",
        invalid_tool_calls=[
            {"name": "a", "args": "[broken", "id": "1", "error": None, "type": "invalid_tool_call"}
        ],
    ),
    "blocks": AIMessage(
        [{"type": "text", "text": "one", "index": 0}, {"type": "image", "url": "http://x"}]
    ),
    "metadata": AIMessage(
        "yes",
        response_metadata={
            "model_provider": "deepseek",
            "output_version": "v0",
            "logprobs": {"content": [{"token": "yes", "logprob": -0.1}]},
            "n": 3,
        },
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_chunks_of_a_message_add_up_to_it(name: str) -> None:
    message = MESSAGES[name]
    chunks = chunks_of(ChatGeneration(message=message.model_copy(deep=True)))
    told = {key: one for key, one in message.response_metadata.items() if key == "model_provider"}
    assert all(chunk.message.response_metadata.items() >= told.items() for chunk in chunks)
    whole = summed([chunk.message for chunk in chunks])
    assert whole.content == message.content
    assert whole.additional_kwargs == message.additional_kwargs
    assert whole.response_metadata == message.response_metadata
    assert whole.tool_calls == message.tool_calls
    assert whole.invalid_tool_calls == message.invalid_tool_calls
    assert whole.chunk_position == "last"


@pytest.mark.parametrize("name", [name for name in MESSAGES if name != "blank"])
def test_an_invoked_message_comes_back_from_a_stream(opened: Cache, name: str) -> None:
    class Both(CountingChat):
        def _stream(self, *args: Any, **options: Any) -> Any:
            raise AssertionError("the cache has it")

    message = MESSAGES[name]
    chat = cached(Both().answering(lambda *_: message.model_copy(deep=True)), opened)
    chat.invoke("hello")
    found = summed(chat.stream("hello"))
    assert was_hit(found)
    assert found.content == message.content
    assert found.tool_calls == message.tool_calls
    assert found.additional_kwargs == message.additional_kwargs


@pytest.mark.parametrize("version", [None, "v1"])
def test_a_replayed_stream_is_as_the_fresh_one(opened: Cache, version: str | None) -> None:
    given = {} if version is None else {"output_version": version}
    fresh = summed(StreamingChat(**given).stream("hello"))
    chat = cached(StreamingChat(**given), opened)
    made, found = list(chat.stream("hello")), list(chat.stream("hello"))
    assert bare(summed(made)) == bare(summed(found)) == bare(fresh)
    for chunks in (made, found):
        assert len(chunks) > 2
        assert [chunk.chunk_position for chunk in chunks].count("last") == 1
        assert chunks[-1].chunk_position == "last"
        assert len({chunk.id for chunk in chunks}) == 1
    assert bare(chat.invoke("hello"))["content"] == bare(_invoked(given))["content"]


def _invoked(given: dict[str, Any]) -> AIMessage:
    return CountingChat(**given).answering(lambda *_: AIMessage(TEXT)).invoke("hello")


def test_empty_lists_among_texts_lose_none_of_them(opened: Cache) -> None:
    class Mixed(StreamingChat):
        def _stream(self, *args: Any, **options: Any) -> Any:
            for content in ([], "one ", [], "two"):
                yield ChatGenerationChunk(message=AIMessageChunk(content))

    chat = cached(Mixed(), opened)
    list(chat.stream("hello"))
    found = summed(chat.stream("hello"))
    assert (found.text, was_hit(found)) == ("one two", True)


def test_a_message_that_cannot_be_streamed_stays_for_invoke(opened: Cache) -> None:
    class Odd(StreamingChat):
        def _generate(self, *args: Any, **options: Any) -> Any:
            result = super()._generate(*args, **options)
            result.generations = [ChatGeneration(message=ChatMessage("odd", role="critic"))]
            return result

    inner = Odd()
    chat = cached(inner, opened)
    chat.invoke("hello")
    assert was_hit(chat.invoke("hello"))
    assert not was_hit(summed(chat.stream("hello")))
    assert inner.calls == 2


# -- what is not stored ----------------------------------------------------------------------------


def test_a_stream_left_early_stores_nothing_and_is_closed(opened: Cache) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)
    for chunk in chat.stream("hello"):
        assert chunk.content == "This "
        break
    gc.collect()
    assert inner.closed == [1]
    assert opened.stats(everything=True).entries == 0
    assert not was_hit(summed(chat.stream("hello")))
    assert was_hit(chat.invoke("hello"))


async def test_an_async_stream_left_early_stores_nothing_and_is_closed(opened: Cache) -> None:
    inner = AsyncStreamingChat()
    chat = cached(inner, opened)
    stream = chat.astream("hello")
    await anext(stream)
    await stream.aclose()
    for _ in range(20):
        await asyncio.sleep(0)
    gc.collect()
    assert len(inner.closed) == 1
    assert opened.stats(everything=True).entries == 0
    assert not was_hit(await _read(chat))
    assert was_hit(await _read(chat))


def test_a_cancelled_reader_stores_nothing(opened: Cache) -> None:
    inner = AsyncStreamingChat()
    chat = cached(inner, opened)

    async def main() -> None:
        async def read() -> None:
            async for _ in chat.astream("hello"):
                await asyncio.sleep(30)

        task = asyncio.create_task(read())
        while not inner.started.is_set():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not was_hit(await _read(chat))

    asyncio.run(main())


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_stream_that_fails_stores_nothing_and_the_failure_is_the_readers(
    opened: Cache, way: str
) -> None:
    inner = AsyncStreamingChat(fail_after=2)
    chat, seen = cached(inner, opened), Seen()
    given: list[Any] = []

    def read() -> None:
        given.extend(chat.stream("hello", config={"callbacks": [seen]}))

    async def aread() -> None:
        given.extend([one async for one in chat.astream("hello", config={"callbacks": [seen]})])

    with pytest.raises(ConnectionError, match="broke"):
        read() if way == "sync" else asyncio.run(aread())
    assert (len(seen.errors), len(seen.ends)) == (1, 0)
    inner.fail_after = None
    assert not was_hit(summed(chat.stream("hello")))


def test_a_stream_that_is_cut_by_the_length_stores_nothing(opened: Cache) -> None:
    inner = StreamingChat(finish="length")
    chat = cached(inner, opened)
    for _ in range(2):
        assert not was_hit(summed(chat.stream("hello")))
    assert inner.calls == 2


def test_an_empty_stream_is_an_error_as_without_a_cache(opened: Cache) -> None:
    class Empty(StreamingChat):
        def _stream(self, *args: Any, **options: Any) -> Any:
            self.calls += 1
            yield from ()

    chat = cached(Empty(), opened)
    for _ in range(2):
        with pytest.raises(ValueError, match="No generation"):
            list(chat.stream("hello"))
    assert opened.stats(everything=True).entries == 0


def test_a_slow_consumer_that_reads_all_of_it_fills_the_cache(opened: Cache) -> None:
    chat = cached(StreamingChat(), opened)
    reader = chat.stream("hello")
    first = next(reader)
    assert not was_hit(chat.invoke("hello", temperature=1))
    assert summed([first, *reader]).text == TEXT
    assert was_hit(summed(chat.stream("hello")))


# -- read together ---------------------------------------------------------------------------------


def test_equal_streams_at_once_are_made_once(opened: Cache) -> None:
    inner = StreamingChat()
    inner.gate.clear()
    chat = cached(inner, opened)
    ready = threading.Barrier(17)

    def read(_: int) -> Any:
        ready.wait()
        return summed(chat.stream("hello"))

    with ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(read, number) for number in range(16)]
        ready.wait()
        inner.gate.set()
        given = [answer.result() for answer in answers]
    assert inner.calls == 1
    assert {one.text for one in given} == {TEXT}
    assert len({one.id for one in given}) == 16
    spent = [one.usage_metadata for one in given if one.usage_metadata == USAGE]
    assert len(spent) == 1
    assert sum(one.usage_metadata["total_tokens"] for one in given) == USAGE["total_tokens"]


def test_equal_streams_of_tasks_are_made_once(opened: Cache) -> None:
    inner = AsyncStreamingChat()
    chat = cached(inner, opened)

    async def main() -> list[Any]:
        return await asyncio.gather(*(_read(chat) for _ in range(100)))

    given = asyncio.run(main())
    assert inner.calls == 1
    assert {one.text for one in given} == {TEXT}
    assert sum(one.usage_metadata["total_tokens"] for one in given) == USAGE["total_tokens"]
    reasons = [report(one)["reason"] for one in given]
    assert (reasons.count("not found"), reasons.count("shared with an equal request")) == (1, 99)


def test_who_reads_along_is_told_what_that_saved(opened: Cache) -> None:
    chat = cached(StreamingChat(), opened)
    one, other = chat.stream("hello"), chat.stream("hello")
    first = [next(one)]
    second = [next(other)]
    made, shared = summed([*first, *one]), summed([*second, *other])
    assert report(made) == {**report(made), "hit": False, "reason": "not found", "saved": {}}
    assert report(shared)["saved"]["output_tokens"] == USAGE["output_tokens"]
    assert shared.usage_metadata["total_tokens"] == 0
    assert opened.stats(everything=True).shared == 1


def test_the_failure_of_a_shared_stream_is_shared(opened: Cache) -> None:
    inner = AsyncStreamingChat(fail_after=2)
    chat = cached(inner, opened)

    async def main() -> list[Any]:
        return await asyncio.gather(*(_read(chat) for _ in range(9)), return_exceptions=True)

    given = asyncio.run(main())
    assert inner.calls == 1
    assert all(isinstance(one, ConnectionError) for one in given)


def test_a_reader_that_leaves_keeps_nobody_from_the_rest(opened: Cache) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)
    leaving, staying = chat.stream("hello"), chat.stream("hello")
    next(leaving), next(leaving)
    kept = next(staying)
    leaving.close()
    assert summed([kept, *staying]).text == TEXT
    assert inner.calls == 1
    assert was_hit(chat.invoke("hello"))


def test_a_models_own_stream_may_stream_from_itself(opened: Cache) -> None:
    class Nested(StreamingChat):
        def _stream(self, messages: Any, stop: Any = None, **options: Any) -> Any:
            if messages[-1].content == "inner":
                yield from super()._stream(messages, stop, **options)
                return
            for chunk in chat.stream("inner"):
                yield ChatGenerationChunk(message=AIMessageChunk(chunk.content))

    chat: BaseChatModel = cached(Nested(), opened, version="1")
    assert summed(chat.stream("outer")).text == TEXT
    assert was_hit(summed(chat.stream("inner")))
