"""One cache behind an agent, a graph in its tool, and models that ask models: nobody waits for ever."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("langchain", minversion="1.2.18")
from langchain.agents import create_agent
from langchain_agents import searching
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_fakes import CountingChat
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import CachePolicy
from lc_chat_fakes import SAID, AsyncStreamingChat, StreamingChat, cached

from langchain_stampcache import StampCacheMiddleware, StampNodeCache, node_key
from stampcache import Cache

WAITS_S = 60


class Asking(CountingChat):
    """A model that asks another one; ``blocks`` does so by sync code on the event loop."""

    other: Any = None
    blocks: bool = False

    def _generate(self, messages: Any, *given: Any, **options: Any) -> ChatResult:
        return _said(self.other.invoke(messages))

    async def _agenerate(self, messages: Any, *given: Any, **options: Any) -> ChatResult:
        if self.blocks:
            return _said(self.other.invoke(messages))
        return _said(await self.other.ainvoke(messages))


def _said(message: AIMessage) -> ChatResult:
    reply = AIMessage(message.text, response_metadata={"finish_reason": "stop"})
    return ChatResult(generations=[ChatGeneration(message=reply)])


def _graph(node: Any, opened: Cache) -> Any:
    built = StateGraph(MessagesState)
    policy: Any = CachePolicy(key_func=node_key)
    built.add_node("node", node, cache_policy=policy)
    built.add_edge(START, "node")
    return built.compile(cache=StampNodeCache(opened))


@pytest.mark.parametrize("blocks", [False, True], ids=["awaits", "blocks"])
def test_caches_inside_caches_end(opened: Cache, blocks: bool) -> None:
    outer = cached(
        Asking(other=cached(StreamingChat(), opened), blocks=blocks, model="outer"), opened
    )

    async def node(state: Any) -> dict[str, Any]:
        return {"messages": [await outer.ainvoke(state["messages"])]}

    agraph = _graph(node, opened)
    graph = _graph(lambda state: {"messages": [outer.invoke(state["messages"])]}, opened)

    @tool
    def search(query: str) -> str:
        """Search."""
        return str(graph.invoke({"messages": [("human", query)]})["messages"][-1].text)

    middleware = StampCacheMiddleware(opened, cacheable_tools=["search"], version="1")
    agent = create_agent(
        CountingChat().answering(searching), tools=[search], middleware=[middleware]
    )

    def asked(number: int) -> Any:
        return {"messages": [("human", f"question {number % 2}")]}

    async def at_once() -> list[Any]:
        runs = [app.ainvoke(asked(number)) for number in range(6) for app in (agent, agraph)]
        return await asyncio.wait_for(asyncio.gather(*runs), WAITS_S)

    with ThreadPoolExecutor(8) as pool:
        threads = [pool.submit(agent.invoke, asked(number)) for number in range(8)]
        results = [*asyncio.run(at_once()), *(each.result(WAITS_S) for each in threads)]
    assert all(each["messages"][-1].text for each in results)


def test_sync_code_may_ask_for_what_a_task_of_its_loop_streams(opened: Cache) -> None:
    chat = cached(AsyncStreamingChat(), opened)

    async def read() -> list[str]:
        asked = chat.astream("hello")
        first = await anext(asked)
        streamed = "".join(chunk.text for chunk in chat.stream("hello"))
        invoked = chat.invoke("hello").text
        rest = [chunk.text async for chunk in asked]
        return [streamed, invoked, "".join([first.text, *rest])]

    streamed, invoked, own = asyncio.run(asyncio.wait_for(read(), WAITS_S))
    assert streamed == own == "".join(SAID)
    assert invoked
