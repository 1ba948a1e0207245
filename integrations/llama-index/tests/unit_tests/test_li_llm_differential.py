"""Random dialogues through a cached and an uncached model: equal, but for ids, usage and time."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.llms import ChatMessage
from llama_llm_fakes import ADD, ScriptedLLM, bare, user
from pydantic import BaseModel

import stampcache
from llama_index_stampcache import CachedLLM
from stampcache import open_cache


class Person(BaseModel):
    name: str


texts = st.sampled_from(["hello", "add 1 2", "add 2 1", "cut it", "fail now", "break it", "why?"])
ways = st.sampled_from(
    [
        "chat",
        "stream",
        "abort",
        "complete",
        "stream_complete",
        "tools",
        "stream_tools",
        "structured",
    ]
)
steps = st.one_of(
    st.tuples(st.just("ask"), ways, texts, st.booleans()),
    st.tuples(st.just("ask"), ways, texts, st.booleans()),
    st.tuples(st.just("ask"), ways, texts, st.booleans()),
    st.tuples(st.just("dialogue"), texts),
    st.tuples(st.just("temperature"), st.sampled_from([0.0, 0.5])),
    st.tuples(st.just("tenant"), st.sampled_from(["acme", "other"])),
    st.tuples(st.just("spoil"), st.booleans()),
)


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(steps, min_size=4, max_size=25))
def test_f11_a_cached_model_says_what_an_uncached_one_says(steps: list[tuple[Any, ...]]) -> None:
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:  # leaves pytest's alone
        runner.run(dialogue(steps))


async def dialogue(steps: list[tuple[Any, ...]]) -> None:
    inner, plain = ScriptedLLM(), ScriptedLLM()
    tenant, spoil = "acme", False
    with open_cache("memory://") as cache:
        llm = CachedLLM(inner, cache=cache)
        for each in steps:
            match each:
                case ("ask", way, text, aio):
                    with stampcache.scope(tenant=tenant):
                        told = await asked(llm, way, text, aio=aio, spoil=spoil)
                    assert told == await asked(plain, way, text, aio=aio, spoil=False)
                case ("dialogue", text):
                    with stampcache.scope(tenant=tenant):
                        told = [in_turns(llm, text), in_turns(llm, text)]
                    assert told == [in_turns(plain, text)] * 2
                case ("temperature", value):
                    inner.temperature = plain.temperature = value
                case ("tenant", name):
                    tenant = name
                case ("spoil", value):
                    spoil = value
        assert len(cache.core.streams) == 0
    assert inner.calls <= plain.calls * 2


async def asked(llm: Any, way: str, text: str, *, aio: bool, spoil: bool) -> Any:
    try:
        found = await (_aasked if aio else _asked)(llm, way, text)
    except RuntimeError as error:
        return str(error).partition(" at call")[0]
    told = [
        one.model_dump() if isinstance(one, BaseModel) and way == "structured" else bare(one)
        for one in found
    ]
    if spoil:
        for one in found:
            if hasattr(one, "message"):
                one.message.blocks.clear()
                one.additional_kwargs.clear()
    return told


async def _asked(llm: Any, way: str, text: str) -> list[Any]:
    match way:
        case "chat":
            return [llm.chat(user(text))]
        case "stream":
            return list(llm.stream_chat(user(text)))
        case "abort":
            stream = llm.stream_chat(user(text))
            first = next(stream)
            stream.close()
            return [first]
        case "complete":
            return [llm.complete(text)]
        case "stream_complete":
            return list(llm.stream_complete(text))
        case "tools":
            return [llm.chat_with_tools([ADD], user_msg=text)]
        case "stream_tools":
            return list(llm.stream_chat_with_tools([ADD], user_msg=text))
    return [llm.as_structured_llm(Person).chat(user(f"a person: {text}")).raw]


async def _aasked(llm: Any, way: str, text: str) -> list[Any]:
    match way:
        case "chat":
            return [await llm.achat(user(text))]
        case "stream":
            return [one async for one in await llm.astream_chat(user(text))]
        case "abort":
            stream = await llm.astream_chat(user(text))
            first = await anext(stream)
            await stream.aclose()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return [first]
        case "complete":
            return [await llm.acomplete(text)]
        case "stream_complete":
            return [one async for one in await llm.astream_complete(text)]
        case "tools":
            return [await llm.achat_with_tools([ADD], user_msg=text)]
        case "stream_tools":
            stream = await llm.astream_chat_with_tools([ADD], user_msg=text)
            return [one async for one in stream]
    return [(await llm.as_structured_llm(Person).achat(user(f"a person: {text}"))).raw]


def in_turns(llm: Any, text: str) -> list[Any]:
    """Ask, let a tool work, and ask on: each turn stands on what the model said before."""
    try:
        first = llm.chat_with_tools([ADD], user_msg=text)
    except RuntimeError:
        return ["failed"]
    call = llm.get_tool_calls_from_response(first)[0]
    result = ChatMessage(role="tool", content="3", additional_kwargs={"tool_call_id": call.tool_id})
    history = [*user(text), first.message, result]
    second = list(llm.stream_chat(history))[-1]
    third = llm.chat([*history, second.message, *user("why?")])
    return [bare(one) for one in (first, second, third)]
