"""A small agent around a scripted model and two tools, as tests of `StampCacheMiddleware` run it."""

import asyncio
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langchain_fakes import USAGE, CountingChat
from langgraph.checkpoint.memory import InMemorySaver

from langchain_stampcache import StampCacheMiddleware

QUESTION = "how long is annual leave"
DONE = {"finish_reason": "stop", "model_name": "fake-1"}
LEAVE = {"days": 30}


@tool
def search(query: str) -> str:
    """Search the handbook."""
    return f"annual leave is {LEAVE['days']} days"


@tool
def send_mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


def calling(name: str, call: int, **arguments: Any) -> AIMessage:
    asked = {"name": name, "args": arguments, "id": f"call-{call}"}
    return AIMessage("", tool_calls=[asked], usage_metadata=USAGE)  # type: ignore[arg-type]


def searching(messages: list[BaseMessage], call: int) -> AIMessage:
    """Reply to a person by a search, and to what was found by an answer."""
    if isinstance(messages[-1], HumanMessage):
        return calling("search", call, query=messages[-1].text)
    text = f"answer {call}: {messages[-1].text}"
    return AIMessage(text, usage_metadata=USAGE, response_metadata=dict(DONE))  # type: ignore[arg-type]


def answering(messages: list[BaseMessage], call: int) -> AIMessage:
    """Reply at once."""
    text = f"answer {call} to {messages[-1].text}"
    return AIMessage(text, usage_metadata=USAGE, response_metadata=dict(DONE))  # type: ignore[arg-type]


class Agent:
    """The agent and its parts; each question begins a thread of its own, unless one is named."""

    def __init__(self, cache: Any, *, reply: Any = searching, **options: Any) -> None:
        self.model = options.pop("model", None) or CountingChat().answering(reply)
        before: Sequence[Any] = options.pop("before", ())
        after: Sequence[Any] = options.pop("after", ())
        agent = {
            name: options.pop(name)
            for name in ("system_prompt", "response_format", "context_schema", "tools", "name",
                         "state_schema")
            if name in options
        }  # fmt: skip
        agent.setdefault("tools", [search, send_mail])
        self.cache = cache
        options.setdefault("cacheable_tools", ["search"])
        self.graph = create_agent(
            self.model,
            middleware=[*before, StampCacheMiddleware(cache, **options), *after],
            checkpointer=InMemorySaver(),
            **agent,
        )
        self._threads = 0

    def config(self, thread: str | None = None, **more: Any) -> Any:
        self._threads += 1
        configurable = {
            "thread_id": thread or f"thread-{self._threads}",
            **more.pop("configurable", {}),
        }
        return {"configurable": configurable, **more}

    def ask(
        self,
        question: Any = QUESTION,
        *,
        thread: str | None = None,
        context: Any = None,
        **config: Any,
    ) -> dict[str, Any]:
        given = {
            "messages": [question if isinstance(question, BaseMessage) else ("human", question)]
        }
        result: dict[str, Any] = self.graph.invoke(
            given, self.config(thread, **config), context=context
        )
        return result

    async def aask(
        self,
        question: str = QUESTION,
        *,
        thread: str | None = None,
        context: Any = None,
        **config: Any,
    ) -> dict[str, Any]:
        given = {"messages": [("human", question)]}
        result: dict[str, Any] = await self.graph.ainvoke(
            given, self.config(thread, **config), context=context
        )
        return result

    def count(self, name: str) -> int:
        return self.cache.stats(everything=True).counters.get(name, 0)


def reported(result: dict[str, Any]) -> tuple[bool, str]:
    last = next(each for each in reversed(result["messages"]) if isinstance(each, AIMessage))
    cache = last.response_metadata["cache"]
    return cache["hit"], cache["reason"]


def asking(agent: Agent, kind: str) -> Any:
    """Return how the agent is asked by threads or by tasks."""
    return (
        agent.ask
        if kind == "sync"
        else lambda *given, **options: asyncio.run(agent.aask(*given, **options))
    )
