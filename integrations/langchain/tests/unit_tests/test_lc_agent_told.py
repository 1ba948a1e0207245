"""What one run of an agent is told, and what it does besides its answer, in `StampCacheMiddleware`."""

from typing import Annotated, Any

import pytest

pytest.importorskip("langchain", minversion="1.2.18")
from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_agents import QUESTION, Agent, answering, reported
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool, tool
from langchain_fakes import CountingChat
from langgraph.types import Command
from pydantic import BaseModel, field_validator

from stampcache import Cache


class User:
    """Of unknown state."""

    def __init__(self, role: str) -> None:
        self.role = role


class Noted(AgentState[Any]):
    note: str
    language: str


class Binding(CountingChat):
    """Takes the tools of its provider as they are."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(tools=list(tools), **options)


class Doubting(AgentMiddleware[Any, Any, Any]):
    """Asks once more after the first answer."""

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        if sum(each.type == "human" for each in state["messages"]) > 1:
            return None
        return {"messages": [HumanMessage("are you sure?")], "jump_to": "model"}


@pytest.mark.parametrize(
    "told",
    [
        lambda user: {"context": user},
        lambda user: {"context": {"user": user}},
        lambda user: {"configurable": {"user": user}},
    ],
    ids=["context", "in the context", "configurable"],
)
def test_a_version_stands_for_no_object_that_a_run_is_told(opened: Cache, told: Any) -> None:
    agent = Agent(opened, reply=answering, version="1", context_schema=dict)
    agent.ask(**told(User("employee")))
    assert reported(agent.ask(**told(User("manager")))) == (False, "uncacheable")


def test_a_tool_that_the_provider_runs_may_have_no_type(opened: Cache) -> None:
    model = Binding().answering(answering)
    web = {"google_search": {}}
    live = Agent(opened, model=model, tools=[web])
    assert reported(live.ask()) == (False, "uncacheable")
    named = Agent(opened, model=model, tools=[web], cacheable_tools=["google_search"])
    named.ask()
    assert reported(named.ask())[0]


def test_what_checks_the_arguments_of_a_tool_is_its_code(opened: Cache) -> None:
    def schema(*, upper: bool) -> type[BaseModel]:
        class Asked(BaseModel):
            query: str

            if upper:

                @field_validator("query")
                @classmethod
                def changed(cls, query: str) -> str:
                    return query.upper()

        return Asked

    def search(query: str) -> str:
        """Search."""
        return query

    def agent(*, upper: bool) -> Agent:
        made = StructuredTool.from_function(search, name="search", args_schema=schema(upper=upper))
        return Agent(opened, tools=[made])

    agent(upper=True).ask()
    assert not reported(agent(upper=False).ask())[0]
    assert reported(agent(upper=True).ask())[0]


def test_a_run_that_changes_state_which_shapes_no_answer(opened: Cache) -> None:
    @tool("search")
    def noting(query: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Search, and note what was asked."""
        told = ToolMessage("30 days", tool_call_id=tool_call_id)
        return Command(update={"note": query, "messages": [told]})

    agent = Agent(opened, tools=[noting], state_schema=Noted, state_fields=["language"])
    assert [agent.ask().get("note") for _ in range(2)] == [QUESTION, QUESTION]
    assert agent.count("adapter.agent.state_changed") == 2


def test_a_run_in_which_somebody_asked_again(opened: Cache) -> None:
    agent = Agent(opened, reply=answering, before=[Doubting()])
    asked = [[each.type for each in agent.ask()["messages"]] for _ in range(2)]
    assert asked == [["human", "ai", "human", "ai"]] * 2
    assert agent.count("adapter.agent.asked_again") == 2
    assert agent.count("stored") == 0
