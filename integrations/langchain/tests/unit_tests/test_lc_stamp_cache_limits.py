"""What LangChain shows to no cache at this place: each row of the table in docs/how-to/llm-cache.md.

A test that fails here is good news: the row can go.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.caches import BaseCache
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import ensure_config
from langchain_core.tools import tool
from langchain_deepseek import ChatDeepSeek
from langchain_fakes import CountingChat, CountingLLM
from langchain_openai import OpenAI
from langgraph.graph import START, MessagesState, StateGraph
from openai_transport import Provider

import stampcache
from langchain_stampcache import StampCache
from stampcache import Stamps

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "llm-cache.md"


@pytest.fixture
def cache() -> StampCache:
    return StampCache("memory://")


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def model(cache: StampCache, provider: Provider) -> ChatDeepSeek:
    return ChatDeepSeek(model="m", api_base="http://h/v1", cache=cache, **provider.clients())


def graph_of(node: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("ask", node)
    graph.add_edge(START, "ask")
    return graph.compile()


def lookups(cache: StampCache) -> int:
    return cache.cache.stats(everything=True).requests


# -- direct streaming ------------------------------------------------------------------------------


async def test_stream_and_astream_ask_no_cache(
    cache: StampCache, provider: Provider, model: ChatDeepSeek
) -> None:
    for _ in range(2):
        assert "answer" in "".join(str(chunk.content) for chunk in model.stream("hi"))
    assert [chunk async for chunk in model.astream("hi")]
    assert [event async for event in model.astream_events("hi", version="v2")]
    assert provider.calls == 4
    assert (lookups(cache), cache.cache.stats(everything=True).entries) == (0, 0)


def test_streams_of_text_models_ask_none_either(cache: StampCache, provider: Provider) -> None:
    model = OpenAI(model="t", base_url="http://h/v1", cache=cache, **provider.clients())
    for _ in range(2):
        list(model.stream("hi"))
    assert provider.calls == 2
    assert lookups(cache) == 0


def test_invoke_of_a_model_that_streams_asks_it(cache: StampCache, provider: Provider) -> None:
    model = ChatDeepSeek(
        model="m", api_base="http://h/v1", cache=cache, streaming=True, **provider.clients()
    )
    assert model.invoke("hi").content == model.invoke("hi").content
    assert provider.calls == 1


# -- one making for equal calls --------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Unexpected type for token usage")  # LangChain's, of the sum
async def test_equal_calls_at_once_are_all_made(
    cache: StampCache, provider: Provider, model: ChatDeepSeek
) -> None:
    same = [HumanMessage("hi")]
    await model.agenerate([same, same])
    assert provider.calls == 2
    assert cache.cache.stats(everything=True).entries == 1
    await model.agenerate([same, same])
    assert provider.calls == 2


def test_equal_calls_of_threads_are_all_made(cache: StampCache) -> None:
    together = threading.Barrier(3, timeout=20)

    def reply(messages: list[Any], call: int) -> AIMessage:
        together.wait()
        return AIMessage("made")

    model = CountingChat(cache=cache).answering(reply)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: model.invoke("hi"), range(3)))
    assert model.calls == 3


# -- who asks --------------------------------------------------------------------------------------


async def test_configurable_of_a_direct_call_is_not_seen() -> None:
    cache = StampCache("memory://", tenants="required")
    model = CountingChat(cache=cache)
    config: Any = {"configurable": {"tenant": "acme"}}
    if "tenant" in ensure_config(config).get("metadata", {}):
        pytest.skip("this LangChain copies configurable to metadata, where it is seen")
    for reply in (model.invoke("hi", config), await model.ainvoke("hi", config)):
        assert reply.response_metadata["cache"]["reason"] == "no tenant in scope"


def test_a_thread_started_by_hand_has_no_scope() -> None:
    cache = StampCache("memory://", tenants="required")
    model = CountingChat(cache=cache)
    with stampcache.scope(tenant="acme"):
        thread = threading.Thread(target=lambda: model.invoke("hi"))
        thread.start()
        thread.join()
    assert cache.cache.stats(everything=True).entries == 0


def test_prompts_of_one_text_call_for_different_tenants_are_not_cached() -> None:
    cache = StampCache("memory://")
    model = CountingLLM(cache=cache)
    a, b = ({"metadata": {"tenant": name}} for name in "ab")
    for _ in range(2):
        model.batch(["hi", "hi"], [a, b])
    assert model.calls == 4
    traced = [{"metadata": {"tenant": "a", "request": name}} for name in "xy"]
    model.batch(["hi", "hi"], traced)
    model.invoke("hi", a)
    assert model.calls == 6  # each prompt of a batch is looked up before the first is made


# -- what no field tells ---------------------------------------------------------------------------


def test_a_client_of_your_own_may_go_elsewhere_than_the_model_says(cache: StampCache) -> None:
    def behind(name: str, store: StampCache) -> ChatDeepSeek:
        reply = {"role": "assistant", "content": name}
        transport = httpx.MockTransport(
            lambda _: httpx.Response(
                200,
                json={
                    "id": "1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": "m",
                    "choices": [{"index": 0, "message": reply, "finish_reason": "stop"}],
                },
            )
        )
        client = httpx.Client(transport=transport)
        return ChatDeepSeek(
            model="m", api_key="k", api_base="http://h/v1", cache=store, http_client=client
        )

    assert behind("one", cache).invoke("hi").content == "one"
    assert behind("two", cache).invoke("hi").content == "one"
    told = StampCache(cache.cache, stamps=Stamps(model="behind two"))
    assert behind("two", told).invoke("hi").content == "two"


def test_a_text_answer_has_no_place_for_the_report(cache: StampCache, provider: Provider) -> None:
    model = OpenAI(model="t", base_url="http://h/v1", cache=cache, **provider.clients())
    model.invoke("hi")
    [[hit]] = model.generate(["hi"]).generations
    assert "cache" not in (hit.generation_info or {})
    assert provider.calls == 1


def test_an_answer_arrives_in_one_piece(
    cache: StampCache, provider: Provider, model: ChatDeepSeek
) -> None:
    app = graph_of(lambda state: {"messages": [model.invoke(state["messages"])]})
    told = []
    for _ in range(2):
        asked: Any = {"messages": [HumanMessage("hi")]}
        told.append([piece for piece, _ in app.stream(asked, stream_mode="messages")])
    assert provider.calls == 1
    assert "".join(str(piece.content) for piece in told[0]).startswith("answer")
    assert len(told[1]) == 1


# -- what is around the model ------------------------------------------------------------------------


def test_tools_run_again_though_the_calls_hit(cache: StampCache) -> None:
    ran = []

    @tool
    def double(x: int) -> int:
        """Double a number."""
        ran.append(x)
        return 2 * x

    def reply(messages: list[Any], call: int) -> AIMessage:
        made = {"name": "double", "args": {"x": 21}, "id": f"call_{call}"}
        asks = not isinstance(messages[-1], ToolMessage)
        return AIMessage("", tool_calls=[made]) if asks else AIMessage("it is 42")

    model = CountingChat(cache=cache).answering(reply)
    agent = create_agent(model, [double])
    for _ in range(2):
        asked: Any = {"messages": [HumanMessage("double 21")]}
        agent.invoke(asked)
    assert (model.calls, ran) == (2, [21, 21])


def test_the_rest_of_a_node_runs_again(cache: StampCache) -> None:
    ran = []
    model = CountingChat(cache=cache)

    def ask(state: MessagesState) -> dict[str, Any]:
        ran.append(1)
        return {"messages": [model.invoke(state["messages"])]}

    app = graph_of(ask)
    for _ in range(2):
        app.invoke({"messages": [HumanMessage("hi")]})
    assert (model.calls, len(ran)) == (1, 2)


# -- the table -------------------------------------------------------------------------------------


async def test_a_cache_in_between_that_changes_the_thread_hides_options(cache: StampCache) -> None:
    class Between(BaseCache):
        def lookup(self, prompt: str, llm_string: str) -> Any:
            return cache.lookup(prompt, llm_string)

        def update(self, prompt: str, llm_string: str, return_val: Any) -> None:
            cache.update(prompt, llm_string, return_val)

        def clear(self, **kwargs: Any) -> None: ...

    model = CountingLLM(cache=Between())
    for tokens in (5, 6):
        await model.ainvoke("hi", max_tokens=tokens)
    assert model.calls == 1
    for tokens in (5, 6):
        model.invoke("hi", max_tokens=tokens)
    assert model.calls == 3


def test_each_row_of_the_table_names_its_test() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "`test_" in line]
    named = {line.split("`test_")[1].split("`")[0] for line in rows}
    here = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert named
    assert named <= here
