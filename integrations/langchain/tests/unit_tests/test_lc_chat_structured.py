"""Structured output and tools through `CachedChatModel`, with providers' models at a scripted server."""

import asyncio
from collections.abc import Iterator
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_deepseek import ChatDeepSeek
from langchain_openai import ChatOpenAI
from lc_chat_fakes import bare, cached, summed, was_hit
from pydantic import BaseModel, Field, field_validator

from integrations.langchain.tests.scripted_openai import Script, scripted_openai
from langchain_stampcache import CachedChatModel
from stampcache import Cache

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")


class Joke(BaseModel):
    """A joke to tell."""

    setup: str = Field(description="the question")
    rating: int


class JokeDict(TypedDict):
    """A joke to tell."""

    setup: str
    rating: int


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted_openai() as script:
        yield script


@pytest.fixture(params=[ChatOpenAI, ChatDeepSeek])
def inner(request: pytest.FixtureRequest, script: Script) -> Any:
    where = "api_base" if request.param is ChatDeepSeek else "base_url"
    return request.param(model="m", api_key="k", max_retries=0, **{where: script.url})


@tool
def weather(city: str, days: int) -> str:
    """Tell the weather."""
    return f"{city} {days}"


ASKED = "A joke of 3, about 'cats'."


@pytest.mark.parametrize("include_raw", [False, True])
@pytest.mark.parametrize("schema", [Joke, JokeDict, Joke.model_json_schema()], ids=["p", "t", "j"])
@pytest.mark.parametrize(
    ("method", "strict"),
    [("function_calling", None), ("function_calling", True), ("json_schema", None),
     ("json_schema", True), ("json_mode", None)],
)  # fmt: skip
def test_structured_output_is_what_the_inner_model_gives(
    opened: Cache,
    script: Script,
    inner: Any,
    method: str,
    strict: Any,
    schema: Any,
    include_raw: bool,
) -> None:
    options = {"method": method, "include_raw": include_raw}
    options |= {} if strict is None else {"strict": strict}
    asked = ASKED if method != "json_mode" else "A JSON with 'setup' and 'rating'."
    if method == "json_mode" and schema is Joke:
        schema = Loose
    fresh = inner.with_structured_output(schema, **options).invoke(asked)
    sent = dict(script.calls[-1])
    chat = cached(inner, opened).with_structured_output(schema, **options)
    made, found = chat.invoke(asked), chat.invoke(asked)
    assert script.calls[-1] == sent
    assert len(script.calls) == 2
    if include_raw:
        assert made["parsed"] == found["parsed"] == fresh["parsed"] is not None
        assert type(found["parsed"]) is type(fresh["parsed"])
        assert found["parsing_error"] is None
        assert was_hit(found["raw"])
        assert _said(found["raw"]) == _said(fresh["raw"])
    else:
        assert made == found == fresh
        assert type(found) is type(fresh)
    streamed = list(chat.stream(asked))
    assert len(script.calls) == 2
    assert (
        streamed[-1]["parsed"] if include_raw and "parsed" in streamed[-1] else True
    ) is not None


class Loose(BaseModel):
    setup: str
    rating: str


def _said(message: Any) -> Any:
    data = bare(message)
    data["response_metadata"].pop("id", None)
    return data


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_structured_output_streams(opened: Cache, script: Script, inner: Any, way: str) -> None:
    chat = cached(inner, opened).with_structured_output(Joke)

    def read() -> list[Any]:
        if way == "stream":
            return list(chat.stream(ASKED))

        async def aread() -> list[Any]:
            return [one async for one in chat.astream(ASKED)]

        return asyncio.run(aread())

    assert read()[-1] == read()[-1] == Joke(setup="cats", rating=3)
    assert chat.invoke(ASKED) == Joke(setup="cats", rating=3)
    assert len(script.calls) == 1


def test_an_object_of_a_class_that_no_module_holds_is_rebuilt_for_who_asks(
    opened: Cache, script: Script
) -> None:
    def schema(most: int) -> type[BaseModel]:
        class Local(BaseModel):
            setup: str
            rating: int = Field(le=most)

        return Local

    chat = cached(ChatOpenAI(model="m", api_key="k", base_url=script.url), opened)
    first, again, other = schema(9), schema(9), schema(8)
    answers = [
        chat.with_structured_output(each).invoke(ASKED) for each in (first, first, again, other)
    ]
    assert [type(one) for one in answers] == [first, first, again, other]
    assert len(script.calls) == 2


def test_an_object_that_does_not_come_back_equal_is_not_stored(
    opened: Cache, script: Script
) -> None:
    class Growing(BaseModel):
        setup: str

        @field_validator("setup")
        @classmethod
        def more(cls, given: str) -> str:
            return given + "!"

    chat = cached(ChatOpenAI(model="m", api_key="k", base_url=script.url), opened)
    bound = chat.with_structured_output(Growing)
    assert bound.invoke(ASKED) == bound.invoke(ASKED)
    assert len(script.calls) == 2
    assert opened.stats(everything=True).counters["adapter.not_storable"] == 2


def test_a_call_of_tools_is_an_answer_and_hits(opened: Cache, script: Script, inner: Any) -> None:
    fresh = inner.bind_tools([weather], tool_choice="any").invoke("3 days in 'Rome'")
    chat = cached(inner, opened).bind_tools([weather], tool_choice="any")
    found = [chat.invoke("3 days in 'Rome'") for _ in range(2)][1]
    assert was_hit(found)
    assert found.tool_calls == fresh.tool_calls
    assert found.tool_calls[0]["args"] == {"city": "Rome", "days": 3}
    assert found.response_metadata["finish_reason"] == "tool_calls"
    assert _said(found) == _said(fresh)
    streamed = summed(chat.stream("3 days in 'Rome'"))
    assert streamed.tool_calls == fresh.tool_calls
    assert streamed.tool_call_chunks
    assert len(script.calls) == 2


def test_streamed_calls_of_tools_are_found_by_both(
    opened: Cache, script: Script, inner: Any
) -> None:
    fresh = summed(inner.bind_tools([weather]).stream("3 days in 'Rome'"))
    chat = cached(inner, opened).bind_tools([weather])
    made, found = [summed(chat.stream("3 days in 'Rome'")) for _ in range(2)]
    assert _said(made) == _said(found) == _said(fresh)
    assert chat.invoke("3 days in 'Rome'").tool_calls == fresh.tool_calls
    assert len(script.calls) == 2


def test_the_turn_after_a_tool_is_cached_whatever_the_ids(opened: Cache, script: Script) -> None:
    chat = cached(ChatOpenAI(model="m", api_key="k", base_url=script.url), opened).bind_tools(
        [weather]
    )

    def turns(call_id: str) -> list[Any]:
        call = {"name": "weather", "args": {"city": "Rome", "days": 3}, "id": call_id}
        return [
            HumanMessage("3 days in 'Rome'"),
            AIMessage("", tool_calls=[{**call, "type": "tool_call"}]),
            ToolMessage("sunny", tool_call_id=call_id),
        ]

    assert not was_hit(chat.invoke(turns("call_1")))
    assert was_hit(chat.invoke(turns("call_2")))


def test_an_agent_fills_and_reads_it(opened: Cache, script: Script, inner: Any) -> None:
    agents = pytest.importorskip("langchain.agents")
    agent = agents.create_agent(cached(inner, opened), [weather])

    def asked() -> dict[str, Any]:
        return {"messages": [HumanMessage("3 days in 'Rome'")]}

    first = agent.invoke(asked())
    calls = len(script.calls)
    assert calls == 2
    second = agent.invoke(asked())
    tokens = [
        chunk.text
        for chunk, told in agent.stream(asked(), stream_mode="messages")
        if told["langgraph_node"] == "model"
    ]
    assert len(script.calls) == calls
    assert second["messages"][-1].text == first["messages"][-1].text == "You said: Rome 3"
    assert "".join(tokens) == "You said: Rome 3"
    assert len([token for token in tokens if token]) > 1
    assert len({one.id for one in [*first["messages"], *second["messages"]]}) == 8


def test_an_agents_stream_fills_it(opened: Cache, script: Script, inner: Any) -> None:
    agents = pytest.importorskip("langchain.agents")
    agent = agents.create_agent(cached(inner, opened), [weather])
    asked = {"messages": [HumanMessage("3 days in 'Rome'")]}

    async def read() -> str:
        return "".join(
            [
                chunk.text
                async for chunk, told in agent.astream(asked, stream_mode="messages")
                if told["langgraph_node"] == "model"
            ]
        )

    assert asyncio.run(read()) == "You said: Rome 3"
    calls = len(script.calls)
    assert asyncio.run(read()) == "You said: Rome 3"
    assert agent.invoke(asked)["messages"][-1].text == "You said: Rome 3"
    assert len(script.calls) == calls == 2


def test_an_agents_structured_answer_is_cached(opened: Cache, script: Script) -> None:
    agents = pytest.importorskip("langchain.agents")
    strategy = pytest.importorskip("langchain.agents.structured_output").ProviderStrategy
    chat = cached(ChatOpenAI(model="m", api_key="k", base_url=script.url), opened)
    agent = agents.create_agent(chat, [], response_format=strategy(Joke))
    asked = {"messages": [HumanMessage(ASKED)]}
    answers = [agent.invoke(asked)["structured_response"] for _ in range(2)]
    assert answers == [Joke(setup="cats", rating=3)] * 2
    assert len(script.calls) == 1


def test_agents_of_two_tenants_share_nothing(opened: Cache, script: Script) -> None:
    agents = pytest.importorskip("langchain.agents")
    chat: CachedChatModel = cached(ChatOpenAI(model="m", api_key="k", base_url=script.url), opened)
    agent = agents.create_agent(chat, [weather])
    asked = {"messages": [HumanMessage("3 days in 'Rome'")]}
    for tenant in ("acme", "beta", "acme", "beta"):
        agent.invoke(asked, config={"configurable": {"tenant": tenant}})
    assert len(script.calls) == 4
    agent.invoke(asked, config={"metadata": {"tenant": "acme"}})
    assert len(script.calls) == 4
