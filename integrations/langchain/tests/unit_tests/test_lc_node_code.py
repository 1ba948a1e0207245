"""Nodes that LangGraph calls alike, and that do different things, never share in `StampNodeCache`."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import CachePolicy

from langchain_stampcache import StampNodeCache, node_key
from stampcache import Cache

CACHED: Any = CachePolicy(key_func=node_key)


def graph(node: Any, cache: StampNodeCache) -> Any:
    built = StateGraph(MessagesState)
    built.add_node("answer", node, cache_policy=CACHED)
    built.add_edge(START, "answer")
    return built.compile(cache=cache)


def ask(app: Any, kind: str = "sync") -> str:
    given = {"messages": [("human", "hi")]}
    result = app.invoke(given) if kind == "sync" else asyncio.run(app.ainvoke(given))
    return str(result["messages"][-1].text)


def said(word: str) -> dict[str, Any]:
    return {"messages": [AIMessage(word)]}


def closure(word: str) -> Callable[[Any], Any]:
    def node(state: Any) -> dict[str, Any]:
        return said(word)

    return node


def coroutine(word: str) -> Callable[[Any], Any]:
    async def node(state: Any) -> dict[str, Any]:
        return said(word)

    return node


class Bot:
    def __init__(self, word: str) -> None:
        self.word = word

    def node(self, state: Any) -> dict[str, Any]:
        return said(self.word)


def plain(state: Any) -> dict[str, Any]:
    return said("plain")


async def aplain(state: Any) -> dict[str, Any]:
    return said("plain")


def decorated(word: str) -> Callable[[Any], Any]:
    @functools.wraps(plain)
    def node(state: Any) -> dict[str, Any]:
        return said(word)

    return node


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (closure, "sync"),
        (coroutine, "async"),
        (lambda word: Bot(word).node, "sync"),
        (lambda word: lambda state: said(word), "sync"),
        (decorated, "sync"),
    ],
    ids=["closure", "coroutine", "method", "lambda", "decorated"],
)
@pytest.mark.parametrize("apart", [False, True], ids=["one object", "two objects"])
def test_nodes_of_one_name_are_told_apart(opened: Cache, make: Any, kind: str, apart: bool) -> None:
    nodes = StampNodeCache(opened)
    one = graph(make("one"), nodes)
    two = graph(make("two"), StampNodeCache(opened) if apart else nodes)
    assert [ask(app, kind) for app in (one, two, one, two)] == ["one", "two", "one", "two"]
    counters = opened.stats(everything=True).counters
    assert counters["stored"] == 2
    assert counters["hit.exact"] == 2


def test_a_decorated_function_is_not_taken_for_the_plain_one(opened: Cache) -> None:
    assert ask(graph(plain, StampNodeCache(opened))) == "plain"
    assert ask(graph(decorated("loud"), StampNodeCache(opened))) == "loud"


@pytest.mark.parametrize(("node", "kind"), [(plain, "sync"), (aplain, "async")])
def test_a_function_of_a_module_is_found_again_by_another_object(
    opened: Cache, node: Any, kind: str
) -> None:
    for _ in range(2):
        ask(graph(node, StampNodeCache(opened)), kind)
    assert opened.stats(everything=True).counters["stored"] == 1


def test_tasks_of_one_name_are_told_apart(opened: Cache) -> None:
    nodes = StampNodeCache(opened)

    def app(word: str) -> Any:
        @task(cache_policy=CACHED)
        def step(asked: str) -> str:
            return word

        @entrypoint(cache=nodes)
        def run(asked: str) -> str:
            return step(asked).result()

        return run

    one, two = app("one"), app("two")
    assert [each.invoke("hi") for each in (one, two, one)] == ["one", "two", "one"]
    assert opened.stats(everything=True).counters["stored"] == 2
