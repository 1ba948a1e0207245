"""`CachedChatModel`, called in every way that LangChain knows: each way fills it for the others."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_fakes import USAGE, CountingChat, plain_reply
from lc_chat_fakes import (
    AsyncStreamingChat,
    Seen,
    StreamingChat,
    bare,
    cached,
    report,
    summed,
    was_hit,
)

import stampcache
from stampcache import Cache, open_cache
from stampcache.testing import AngleEmbedder

Ask = Callable[[Any, Any], Any]


def invoked(chat: Any, asked: Any) -> Any:
    return chat.invoke(asked)


def ainvoked(chat: Any, asked: Any) -> Any:
    return asyncio.run(chat.ainvoke(asked))


def streamed(chat: Any, asked: Any) -> Any:
    return summed(chat.stream(asked))


def astreamed(chat: Any, asked: Any) -> Any:
    async def read() -> Any:
        return summed([chunk async for chunk in chat.astream(asked)])

    return asyncio.run(read())


def batched(chat: Any, asked: Any) -> Any:
    return chat.batch([asked])[0]


def abatched(chat: Any, asked: Any) -> Any:
    return asyncio.run(chat.abatch([asked]))[0]


def generated(chat: Any, asked: Any) -> Any:
    return chat.generate([[HumanMessage(asked)]]).generations[0][0].message


def agenerated(chat: Any, asked: Any) -> Any:
    return asyncio.run(chat.agenerate([[HumanMessage(asked)]])).generations[0][0].message


def prompted(chat: Any, asked: Any) -> Any:
    return (ChatPromptTemplate.from_messages([("human", "{q}")]) | chat).invoke({"q": asked})


def evented(chat: Any, asked: Any) -> Any:
    async def read() -> Any:
        events = [one async for one in chat.astream_events(asked, version="v2")]
        assert events[0]["event"] == "on_chat_model_start"
        assert any(one["event"] == "on_chat_model_stream" for one in events)
        return events[-1]["data"]["output"]

    return asyncio.run(read())


def evented_in_a_chain(chat: Any, asked: Any) -> Any:
    async def read() -> Any:
        chain = ChatPromptTemplate.from_messages([("human", "{q}")]) | chat
        events = [one async for one in chain.astream_events({"q": asked}, version="v2")]
        tokens = [one for one in events if one["event"] == "on_chat_model_stream"]
        assert tokens
        return next(one for one in events if one["event"] == "on_chat_model_end")["data"]["output"]

    return asyncio.run(read())


def evented_v3(chat: Any, asked: Any) -> Any:
    return chat.stream_events(asked, version="v3").output


WAYS = [
    invoked, ainvoked, streamed, astreamed, batched, abatched, generated, agenerated, prompted,
    evented, evented_in_a_chain,
]  # fmt: skip


@pytest.mark.parametrize(("fill", "find"), list(itertools.product(WAYS, WAYS)))
def test_each_way_of_calling_fills_it_for_each(opened: Cache, fill: Ask, find: Ask) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)
    made, found = fill(chat, "what is it?"), find(chat, "what is it?")
    assert inner.calls == 1
    assert (was_hit(made), was_hit(found)) == (False, True)
    assert found.text == made.text
    assert found.id != made.id
    assert made.usage_metadata == USAGE
    assert found.usage_metadata == {
        "input_tokens": 0,
        "output_tokens": 0,
        "total_tokens": 0,
        "input_token_details": {"cache_read": 0},
        "output_token_details": {"reasoning": 0},
    }
    assert report(found)["saved"]["output_tokens"] == USAGE["output_tokens"]


@pytest.mark.filterwarnings("ignore:The method:langchain_core._api.LangChainBetaWarning")
@pytest.mark.parametrize("other", [invoked, streamed, evented_v3])
@pytest.mark.skipif(not hasattr(BaseChatModel, "stream_events"), reason="an older LangChain")
def test_streamed_protocol_events_share_it_too(opened: Cache, other: Ask) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)
    first, second = other(chat, "what is it?"), evented_v3(chat, "what is it?")
    assert inner.calls == 1
    assert second.text == first.text
    assert was_hit(second)


@pytest.mark.parametrize("kind", [CountingChat, StreamingChat, AsyncStreamingChat])
@pytest.mark.parametrize("way", WAYS[:8])
def test_a_hit_is_what_a_fresh_answer_would_be(opened: Cache, kind: Any, way: Ask) -> None:
    fresh = way(kind(), "what is it?")
    chat = cached(kind(), opened)
    made, found = way(chat, "what is it?"), way(chat, "what is it?")
    assert bare(made) == bare(fresh)
    assert bare(found) == bare(fresh)
    assert type(found) is type(fresh)


def test_a_model_that_does_not_stream_gives_its_message_to_a_stream(opened: Cache) -> None:
    chat = cached(CountingChat(), opened)
    (only,) = chat.stream("what is it?")
    (again,) = chat.stream("what is it?")
    assert not isinstance(only, AIMessageChunk)
    assert (was_hit(only), was_hit(again)) == (False, True)


def test_streaming_that_is_disabled_stays_so(opened: Cache) -> None:
    inner = StreamingChat(disable_streaming=True)
    (only,) = cached(inner, opened).stream("what is it?")
    assert only.text == "answer 1 to what is it?"
    with_tools = StreamingChat(disable_streaming="tool_calling")
    chat = cached(with_tools, opened)
    assert len(list(chat.stream("what is it?"))) > 1
    assert len(list(chat.stream("what is it?", tools=[{"name": "t"}]))) == 1


def test_items_of_a_batch_share_and_keep_their_order(opened: Cache) -> None:
    inner = CountingChat()
    answers = cached(inner, opened).batch(["a", "b", "a", "b"])
    assert inner.calls == 2
    assert [answer.text.rpartition(" ")[2] for answer in answers] == ["a", "b", "a", "b"]


def test_nothing_that_was_given_out_changes_what_comes_later(opened: Cache) -> None:
    def reply(messages: Any, call: int) -> AIMessage:
        answer = plain_reply(messages, call)
        answer.additional_kwargs["list"] = [{"a": 1}]
        return answer

    chat = cached(CountingChat().answering(reply), opened)
    for _ in range(3):
        given = chat.invoke("hello")
        assert given.additional_kwargs == {"list": [{"a": 1}]}
        assert given.response_metadata["finish_reason"] == "stop"
        given.content = "spoiled"
        given.additional_kwargs["list"][0]["a"] = 2
        given.response_metadata.clear()
        (chunk, *_) = chat.stream("hello")
        chunk.additional_kwargs.setdefault("list", []).append("spoiled")


def test_nothing_of_a_shared_stream_is_shared_between_its_readers(opened: Cache) -> None:
    chat = cached(StreamingChat(), opened)
    one, other = chat.stream("hello"), chat.stream("hello")
    first = next(one)
    first.content, first.response_metadata["x"] = "spoiled", [1]
    assert summed([next(other), *other]).text == "This is a streamed answer"
    assert summed([first, *one]).text.startswith("spoiled")
    assert summed(chat.stream("hello")).text == "This is a streamed answer"


def test_the_callers_own_arguments_are_left_as_they_were(opened: Cache) -> None:
    messages, config = [HumanMessage("hello", id="m-1")], {"metadata": {"tenant": "acme"}}
    chat = cached(CountingChat(), opened)
    for _ in range(2):
        chat.invoke(messages, config=config, stop=["."])
    assert messages == [HumanMessage("hello", id="m-1")]
    assert config == {"metadata": {"tenant": "acme"}}


def test_it_stands_in_a_chain_as_the_inner_model_does(opened: Cache) -> None:
    inner = CountingChat()
    chain = ChatPromptTemplate.from_template("{q}") | cached(inner, opened) | StrOutputParser()
    assert chain.invoke({"q": "hello"}) == chain.invoke({"q": "hello"}) == "answer 1 to hello"
    assert chain.with_retry().invoke({"q": "hello"}) == "answer 1 to hello"
    assert inner.calls == 1


def test_an_error_of_the_model_is_the_callers_and_nothing_is_kept(opened: Cache) -> None:
    inner = StreamingChat(fail_after=0)
    chat, seen = cached(inner, opened), Seen()
    for _ in range(2):
        with pytest.raises(ConnectionError, match="down"):
            chat.invoke("hello", config={"callbacks": [seen]})
    assert (inner.calls, len(seen.errors)) == (2, 2)
    fallback = chat.with_fallbacks([cached(CountingChat(), opened)])
    assert fallback.invoke("hello").text == "answer 1 to hello"


def test_what_must_not_be_served_again_is_not_stored(opened: Cache) -> None:
    for finish in ("length", "content_filter"):

        def reply(messages: Any, call: int, finish: str = finish) -> AIMessage:
            return AIMessage("half an ans", response_metadata={"finish_reason": finish})

        inner = CountingChat(model=finish).answering(reply)
        chat = cached(inner, opened)
        assert not was_hit(chat.invoke("hello"))
        assert not was_hit(chat.invoke("hello"))
        assert inner.calls == 2


def test_a_broken_store_is_not_seen(opened: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)
    monkeypatch.setattr(opened.core, "lookup_now", lambda ask: 1 / 0)
    assert invoked(chat, "hello").text == "answer 1 to hello"
    assert streamed(chat, "hello").text == "This is a streamed answer"
    assert astreamed(chat, "hello").text == "This is a streamed answer"
    assert opened.stats(everything=True).counters["error.adapter.lookup"] == 3


def test_a_damaged_entry_is_a_miss(opened: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    from langchain_stampcache import payload

    inner = CountingChat()
    chat = cached(inner, opened)
    chat.invoke("hello")
    with monkeypatch.context() as other:
        other.setattr(payload, "GENERATIONS", "of another version")
        assert not was_hit(chat.invoke("hello"))
    assert inner.calls == 2


def test_a_question_that_the_scope_names_is_matched_by_meaning() -> None:
    question, other = "What is the leave policy?", "Tell me the leave policy"
    embedder = AngleEmbedder({question: 0.0, other: 5.0})
    inner = StreamingChat()
    with open_cache("memory://", embedder=embedder, calibration=0.9) as cache:
        chat = cached(inner, cache)
        with stampcache.scope(question=question):
            chat.invoke(f"Be brief. {question}")
        with stampcache.scope(question=other):
            assert report(chat.invoke(f"Be brief. {other}"))["level"] == "semantic"
            assert report(summed(chat.stream(f"Be brief. {other}")))["level"] == "semantic"
            assert not was_hit(chat.invoke(f"Be long. {other}"))
        assert not was_hit(chat.invoke(f"Be brief. {other}"))


def test_explain_tells_without_making(opened: Cache) -> None:
    inner = CountingChat()
    chat = cached(inner, opened)
    assert "not found" in str(chat.explain("hello"))
    chat.invoke("hello")
    assert "same tokens" in str(chat.explain("hello"))
    assert inner.calls == 1
