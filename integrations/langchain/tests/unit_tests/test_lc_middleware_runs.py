"""`StampCacheMiddleware`: whose answers are kept, structured responses, streams, many at once."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

pytest.importorskip("langchain", minversion="1.2.18")
pytest.importorskip("langgraph")

from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_agents import (
    DONE,
    QUESTION,
    Agent,
    answering,
    calling,
    reported,
    searching,
)
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.tools import InjectedToolCallId, ToolException, tool
from langchain_fakes import CountingChat
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

import stampcache
from langchain_stampcache import StampCacheMiddleware
from stampcache import Cache


def mailing(messages: list[BaseMessage], call: int) -> AIMessage:
    if isinstance(messages[-1], HumanMessage):
        return calling("send_mail", call, to="ann")
    return answering(messages, call)


# -- what is not kept -------------------------------------------------------------------------------


def assert_made_twice(agent: Agent, counter: str) -> None:
    for _ in range(2):
        assert not reported(agent.ask())[0]
    assert agent.count(counter) == 2
    assert agent.count("stored") == 0


def test_a_run_that_called_another_tool(opened: Cache) -> None:
    assert_made_twice(Agent(opened, reply=mailing), "adapter.agent.other_tool")


def test_no_tool_may_be_skipped_unless_it_is_named(opened: Cache) -> None:
    assert_made_twice(Agent(opened, cacheable_tools=()), "adapter.agent.other_tool")


def test_a_run_in_which_a_tool_failed(opened: Cache) -> None:
    @tool("search")
    def failing(query: str) -> str:
        """Search."""
        raise ToolException("the index is down")

    failing.handle_tool_error = True
    assert_made_twice(Agent(opened, tools=[failing]), "adapter.agent.tool_failed")


def test_a_run_that_ends_at_a_limit(opened: Cache) -> None:
    limit = ModelCallLimitMiddleware(run_limit=1)
    agent = Agent(opened, before=[limit])
    for _ in range(2):
        assert "limit" in agent.ask()["messages"][-1].text
    assert agent.count("adapter.agent.unfinished") == 2
    assert agent.count("stored") == 0


def test_a_limit_that_is_not_reached_is_no_obstacle(opened: Cache) -> None:
    agent = Agent(opened, before=[ModelCallLimitMiddleware(run_limit=5, thread_limit=9)])
    agent.ask()
    assert reported(agent.ask())[0]


class Signing(AgentMiddleware[Any, Any, Any]):
    """Signs the last reply, as a guard that hides what is personal would change it."""

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        last = state["messages"][-1]
        return {"messages": [AIMessage(last.text + " - yours, Bot", id=last.id)]}


def test_an_answer_that_another_middleware_rewrites(opened: Cache) -> None:
    agent = Agent(opened, reply=answering, before=[Signing()])
    assert agent.ask()["messages"][-1].text.endswith("Bot")
    assert agent.count("adapter.agent.rewritten") == 1
    assert agent.count("stored") == 0


class Noted(AgentState[Any]):
    note: str


def test_a_run_that_changes_the_state(opened: Cache) -> None:
    @tool("search")
    def noting(query: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Search, and note what was asked."""
        told = ToolMessage("30 days", tool_call_id=tool_call_id)
        return Command(update={"note": query, "messages": [told]})

    agent = Agent(opened, tools=[noting], state_schema=Noted)
    assert agent.ask()["note"] == QUESTION
    assert agent.count("adapter.agent.state_changed") == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (AIMessage("The leave is", response_metadata={"finish_reason": "length"}), "truncated"),
        (AIMessage("no", response_metadata={"finish_reason": "content_filter"}), "refused"),
        (AIMessage("I'm sorry, I can't help with that."), "refused"),
        (AIMessage(""), "empty"),
    ],
)
def test_an_answer_that_is_not_one(opened: Cache, reply: AIMessage, reason: str) -> None:
    agent = Agent(opened, reply=lambda messages, call: reply.model_copy())
    agent.ask()
    assert agent.count(f"refused.{reason}") == 1
    assert not reported(agent.ask())[0]


def test_a_reply_whose_call_of_a_tool_is_unreadable(opened: Cache) -> None:
    broken = [{"name": "search", "args": "{", "id": "1", "error": None}]
    agent = Agent(
        opened,
        tools=[],
        reply=lambda messages, call: AIMessage("hm", invalid_tool_calls=broken),  # type: ignore[arg-type]
    )
    agent.ask()
    assert agent.count("adapter.agent.unfinished") == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_run_that_a_person_was_asked_about(opened: Cache, kind: str) -> None:
    gate = HumanInTheLoopMiddleware(interrupt_on={"search": True})
    agent = Agent(opened, before=[gate])
    approved = Command(resume={"decisions": [{"type": "approve"}]})  # type: ignore[var-annotated]
    for thread in ("one", "two"):
        config = agent.config(thread)
        if kind == "sync":
            assert "__interrupt__" in agent.graph.invoke(
                {"messages": [("human", QUESTION)]}, config
            )
            result = agent.graph.invoke(approved, config)
        else:
            given = {"messages": [("human", QUESTION)]}
            asyncio.run(agent.graph.ainvoke(given, config))
            result = asyncio.run(agent.graph.ainvoke(approved, config))
        assert "30 days" in result["messages"][-1].text
    assert agent.model.calls == 4
    assert agent.count("stored") == 0


def test_a_run_that_a_tool_interrupts(opened: Cache) -> None:
    @tool("search")
    def asking_back(query: str) -> str:
        """Search."""
        return f"for {interrupt('which country')}: 30 days"

    agent = Agent(opened, tools=[asking_back])
    agent.ask(thread="one")
    done = agent.graph.invoke(Command(resume="France"), agent.config("one"))
    assert "France" in done["messages"][-1].text
    assert agent.count("stored") == 0


def test_a_run_whose_model_fails(opened: Cache) -> None:
    def failing(messages: list[BaseMessage], call: int) -> AIMessage:
        if call == 1:
            raise ConnectionError("the endpoint is down")
        return answering(messages, call)

    agent = Agent(opened, reply=failing)
    with pytest.raises(ConnectionError):
        agent.ask()
    assert not reported(agent.ask())[0]
    assert reported(agent.ask())[0]


def test_a_retry_outside_keeps_the_answer_that_succeeded(opened: Cache) -> None:
    def failing(messages: list[BaseMessage], call: int) -> AIMessage:
        if call == 1:
            raise ConnectionError("the endpoint is down")
        return answering(messages, call)

    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0.0)
    agent = Agent(opened, reply=failing, before=[retry])
    first = agent.ask()
    assert reported(agent.ask())[0]
    assert agent.ask()["messages"][-1].text == first["messages"][-1].text


def test_a_failure_that_a_retry_turns_into_a_reply(opened: Cache) -> None:
    def failing(messages: list[BaseMessage], call: int) -> AIMessage:
        raise ConnectionError("the endpoint is down")

    agent = Agent(opened, reply=failing, before=[ModelRetryMiddleware(max_retries=0)])
    for _ in range(2):
        assert "down" in agent.ask()["messages"][-1].text
    assert agent.model.calls == 2
    assert agent.count("stored") == 0


class Fallback(AgentMiddleware[Any, Any, Any]):
    """Asks another model where the first one fails."""

    def __init__(self, other: CountingChat) -> None:
        super().__init__()
        self.other = other

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except ConnectionError:
            return handler(request.override(model=self.other))


@pytest.mark.parametrize("down_at", [1, 2])
def test_an_answer_of_another_model_is_never_given_for_the_first(
    opened: Cache, down_at: int
) -> None:
    down = [True]

    def sometimes(messages: list[BaseMessage], call: int) -> AIMessage:
        if down[0] and call >= down_at:
            raise ConnectionError("the endpoint is down")
        return searching(messages, call)

    other = CountingChat(model="other").answering(
        lambda messages, call: searching(messages, call + 100)
    )
    agent = Agent(opened, reply=sometimes, before=[Fallback(other)])
    assert "answer 10" in agent.ask()["messages"][-1].text
    down[0] = False
    again = agent.ask()
    assert not reported(again)[0]
    assert "answer 10" not in again["messages"][-1].text
    assert agent.count("adapter.agent.agent_changed") == (down_at == 2)


# -- structured responses ---------------------------------------------------------------------------


class Leave(BaseModel):
    days: int


@dataclass
class LeaveRecord:
    days: int


class LeaveDict(TypedDict):
    days: int


SCHEMAS = [Leave, LeaveRecord, LeaveDict, Leave.model_json_schema()]


def naming(name: str) -> Any:
    return lambda messages, call: calling(name, call, days=30)


@pytest.mark.parametrize("schema", SCHEMAS, ids=["pydantic", "dataclass", "typed", "json"])
def test_a_structured_response_by_a_tool_survives(opened: Cache, schema: Any) -> None:
    name = "Leave" if isinstance(schema, dict) else schema.__name__
    agent = Agent(opened, reply=naming(name), response_format=ToolStrategy(schema))
    first, second = agent.ask(), agent.ask()
    assert agent.model.calls == 1
    assert reported(second)[0]
    assert second["structured_response"] == first["structured_response"]
    assert type(second["structured_response"]) is type(first["structured_response"])
    assert [type(each) for each in second["messages"]] == [HumanMessage, AIMessage, ToolMessage]
    asked, told = second["messages"][1:]
    assert asked.tool_calls[0]["id"] == told.tool_call_id
    assert told.tool_call_id != first["messages"][2].tool_call_id


@pytest.mark.parametrize("schema", SCHEMAS, ids=["pydantic", "dataclass", "typed", "json"])
def test_a_structured_response_of_the_provider_survives(opened: Cache, schema: Any) -> None:
    agent = Agent(
        opened,
        reply=lambda messages, call: AIMessage('{"days": 30}'),
        response_format=ProviderStrategy(schema),
    )
    first, second = agent.ask(), agent.ask()
    assert agent.model.calls == 1
    assert second["structured_response"] == first["structured_response"]


def test_a_structured_response_after_a_wrong_one_survives(opened: Cache) -> None:
    def learning(messages: list[BaseMessage], call: int) -> AIMessage:
        return calling("Leave", call, days="many" if call == 1 else 30)

    agent = Agent(opened, reply=learning, response_format=ToolStrategy(Leave))
    agent.ask()
    assert agent.ask()["structured_response"] == Leave(days=30)
    assert agent.model.calls == 2


def test_another_schema_of_the_same_name_does_not_share(opened: Cache) -> None:
    def schema(kind: type) -> Any:
        return type("Leave", (BaseModel,), {"__annotations__": {"days": kind}})

    Agent(opened, reply=naming("Leave"), response_format=ToolStrategy(schema(int))).ask()
    other = Agent(opened, reply=naming("Leave"), response_format=ToolStrategy(schema(float)))
    assert not reported(other.ask())[0]


def test_a_response_that_cannot_be_rebuilt_is_not_kept(opened: Cache) -> None:
    class Counted(BaseModel):
        days: int

        def __eq__(self, other: object) -> bool:
            return False

        __hash__ = None  # type: ignore[assignment]

    agent = Agent(opened, reply=naming("Counted"), response_format=ToolStrategy(Counted))
    agent.ask()
    assert agent.count("error.adapter.not_storable") == 1
    assert agent.count("stored") == 0


# -- streams ----------------------------------------------------------------------------------------


def streamed(agent: Agent, mode: str) -> list[Any]:
    given = {"messages": [("human", QUESTION)]}
    return list(agent.graph.stream(given, agent.config(), stream_mode=mode))  # type: ignore[call-overload]


def test_a_hit_is_streamed_in_pieces_from_the_node_of_the_model(opened: Cache) -> None:
    agent = Agent(opened)
    answer = agent.ask()["messages"][-1].text
    told = streamed(agent, "messages")
    assert all(isinstance(chunk, AIMessageChunk) for chunk, _ in told)
    assert "".join(chunk.text for chunk, _ in told) == answer
    assert len(told) > 3
    assert {about["langgraph_node"] for _, about in told} == {"model"}
    whole = told[0][0]
    for chunk, _ in told[1:]:
        whole += chunk
    assert whole.response_metadata["cache"]["hit"]
    assert whole.usage_metadata["total_tokens"] == 0


def test_a_hit_is_one_update_of_the_node_of_the_model(opened: Cache) -> None:
    agent = Agent(opened)
    agent.ask()
    updates = [name for update in streamed(agent, "updates") for name in update]
    assert updates == ["model", "StampCacheMiddleware.after_agent"]
    values = streamed(agent, "values")
    assert [len(each["messages"]) for each in values] == [1, 2]


def test_a_streamed_run_is_kept(opened: Cache) -> None:
    agent = Agent(opened)
    fresh = streamed(agent, "messages")
    assert reported(agent.ask())[0]
    assert fresh[-1][0].text == agent.ask()["messages"][-1].text


async def test_events_of_a_hit_are_those_of_a_model(opened: Cache) -> None:
    agent = Agent(opened)
    answer = (await agent.aask())["messages"][-1].text
    given = {"messages": [("human", QUESTION)]}
    events = [
        each async for each in agent.graph.astream_events(given, agent.config(), version="v2")
    ]
    pieces = [
        each["data"]["chunk"].text for each in events if each["event"] == "on_chat_model_stream"
    ]
    assert "".join(pieces) == answer
    assert [each["event"] for each in events].count("on_chat_model_end") == 1


async def test_a_run_that_is_cancelled_is_not_kept(opened: Cache) -> None:
    begun = asyncio.Event()

    @tool("search")
    async def waiting(query: str) -> str:
        """Search."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(opened, tools=[waiting], version="1")
    run = asyncio.ensure_future(agent.aask())
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert agent.count("stored") == 0


def test_an_abandoned_stream_is_not_kept(opened: Cache) -> None:
    agent = Agent(opened)
    given = {"messages": [("human", QUESTION)]}
    stream = agent.graph.stream(given, agent.config(), stream_mode="updates")
    next(stream)
    stream.close()
    assert agent.count("stored") == 0


# -- many at once, and one inside another -----------------------------------------------------------


def test_equal_runs_at_once_answer_each_and_keep_one(opened: Cache) -> None:
    agent = Agent(opened)
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: agent.ask(), range(16)))
    assert all("30 days" in each["messages"][-1].text for each in results)
    assert opened.stats().entries == 1


def test_runs_of_tenants_at_once_never_mix(opened: Cache) -> None:
    def naming_tenant(messages: list[BaseMessage], call: int) -> AIMessage:
        from stampcache.adapters import current_scope

        scope = current_scope()
        return AIMessage(f"for {scope.tenant if scope else None}", response_metadata=dict(DONE))

    agent = Agent(opened, reply=naming_tenant)

    def ask(at: int) -> str:
        tenant = f"tenant-{at % 4}"
        with stampcache.scope(tenant=tenant):
            text = str(agent.ask()["messages"][-1].text)
        assert text == f"for {tenant}"
        return text

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(ask, range(64)))) == 4


def test_a_subagent_has_answers_of_its_own(opened: Cache) -> None:
    inner = Agent(opened)

    @tool
    def ask_handbook(question: str) -> str:
        """Ask the agent of the handbook."""
        return str(inner.ask(question)["messages"][-1].text)

    def delegating(messages: list[BaseMessage], call: int) -> AIMessage:
        if isinstance(messages[-1], HumanMessage):
            return calling("ask_handbook", call, question=QUESTION)
        return answering(messages, call)

    outer = Agent(opened, reply=delegating, tools=[ask_handbook], version="1")
    outer.ask()
    assert inner.model.calls == 2
    outer.ask("the same, please")
    assert inner.model.calls == 2
    assert outer.model.calls == 4


def test_an_agent_without_tools_or_a_checkpointer(opened: Cache) -> None:
    model = CountingChat().answering(answering)
    agent = create_agent(model, middleware=[StampCacheMiddleware(opened)])
    for _ in range(2):
        result = agent.invoke({"messages": [("human", QUESTION)]})
    assert model.calls == 1
    assert result["messages"][-1].text == f"answer 1 to {QUESTION}"


async def test_the_async_face_of_a_cache_will_do(opened: Cache) -> None:
    agent = create_agent(
        CountingChat().answering(answering), middleware=[StampCacheMiddleware(opened.aio)]
    )
    for _ in range(2):
        result = await agent.ainvoke({"messages": [("human", QUESTION)]})
    assert reported(result)[0]
