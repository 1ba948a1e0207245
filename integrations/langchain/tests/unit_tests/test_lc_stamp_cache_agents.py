"""`StampCache` below agents and graphs, for all models or for one."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.globals import set_llm_cache
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langchain_fakes import CountingChat
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

import stampcache
from langchain_stampcache import StampCache


@pytest.fixture
def everywhere() -> Iterator[StampCache]:
    cache = StampCache("memory://")
    set_llm_cache(cache)
    yield cache
    set_llm_cache(None)


@tool
def double(x: int) -> int:
    """Double a number."""
    return 2 * x


def calling_tools(messages: list[BaseMessage], call: int) -> AIMessage:
    if isinstance(messages[-1], ToolMessage):
        return AIMessage(f"it is {messages[-1].content}")
    made = {"name": "double", "args": {"x": 21}, "id": f"call_{call}"}
    return AIMessage("", tool_calls=[made])


async def test_b7_j1_the_turns_of_an_agent_hit(everywhere: StampCache) -> None:
    model = CountingChat().answering(calling_tools)
    agent = create_agent(model, [double], system_prompt="Be brief")
    asked: Any = {"messages": [HumanMessage("double 21")]}
    answers = [agent.invoke(asked), await agent.ainvoke(asked), agent.invoke(asked)]
    assert {each["messages"][-1].content for each in answers} == {"it is 42"}
    assert [len(each["messages"]) for each in answers] == [4, 4, 4]
    assert model.calls == 2
    assert everywhere.cache.stats(everything=True).exact_hits == 4


def test_e1_an_agent_is_asked_for_the_tenant_of_its_config(everywhere: StampCache) -> None:
    model = CountingChat().answering(calling_tools)
    agent = create_agent(model, [double])
    asked: Any = {"messages": [HumanMessage("double 21")]}
    for tenant in ("a", "b", "a"):
        agent.invoke(asked, {"configurable": {"tenant": tenant}})
    assert model.calls == 4
    with stampcache.scope(tenant="c"):
        agent.invoke(asked)
    assert model.calls == 6


def graph_of(model: CountingChat, ask: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("ask", lambda state: {"messages": [model.invoke(ask(state))]})
    graph.add_edge(START, "ask")
    return graph.compile(checkpointer=InMemorySaver())


def test_h12_three_equal_turns_of_a_thread_keep_three_answers(everywhere: StampCache) -> None:
    model = CountingChat()
    app = graph_of(model, lambda state: state["messages"][-1:])
    config: Any = {"configurable": {"thread_id": "1"}}
    for _ in range(3):
        state = app.invoke({"messages": [HumanMessage("hi")]}, config)
    answers = [each for each in state["messages"] if isinstance(each, AIMessage)]
    assert len(answers) == 3
    assert len({each.id for each in answers}) == 3
    assert model.calls == 1


async def test_b8_two_threads_with_one_conversation_share_it(everywhere: StampCache) -> None:
    model = CountingChat()
    app = graph_of(model, lambda state: state["messages"])
    for thread in "ab":
        for text in ("one", "two"):
            config: Any = {"configurable": {"thread_id": thread}}
            app.invoke({"messages": [HumanMessage(text)]}, config)
    assert model.calls == 2


async def test_a_chain_streams_what_its_model_was_asked_for(everywhere: StampCache) -> None:
    model = CountingChat()
    chain = ChatPromptTemplate.from_template("Q: {input}") | model | StrOutputParser()
    texts = ["".join(chain.stream({"input": "why"})) for _ in range(2)]
    texts.append("".join([piece async for piece in chain.astream({"input": "why"})]))
    assert len(set(texts)) == 1
    assert model.calls == 1  # a model that cannot stream is asked as by invoke


def test_a_models_own_cache_comes_before_that_of_all(everywhere: StampCache) -> None:
    own = StampCache("memory://")
    for model in (CountingChat(cache=own), CountingChat(cache=False), CountingChat(cache=True)):
        model.invoke("hi")
        model.invoke("hi")
        assert model.calls == (2 if model.cache is False else 1)
    assert own.cache.stats(everything=True).exact_hits == 1
    assert everywhere.cache.stats(everything=True).exact_hits == 1


def test_copies_of_a_model_ask_the_same_cache() -> None:
    cache = StampCache("memory://")
    model = CountingChat(cache=cache)
    model.invoke("hi")
    for copy in (model.model_copy(), model.model_copy(deep=True), model.bind(), model.with_retry()):
        assert copy.invoke("hi").response_metadata["cache"]["hit"]
    assert model.model_copy(deep=True).cache is cache
