"""`StampNodeCache` and `node_key` in real graphs."""

import asyncio
import datetime
import itertools
import sys
import types
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import add
from typing import Annotated, Any

import pytest

pytest.importorskip("langgraph")

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import CachePolicy, Command, Send, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

import stampcache
from langchain_stampcache import StampNodeCache, node_key
from stampcache import Cache
from stampcache.adapters import current_scope

CACHED = CachePolicy(key_func=node_key)


class Text(TypedDict, total=False):
    text: str
    said: Annotated[list[str], add]


class Counted:
    """A node that counts how often it runs."""

    def __init__(self, make: Callable[[Any, int], Any]) -> None:
        self.calls = 0
        self._make = make

    def __call__(self, state: Any) -> Any:
        self.calls += 1
        return self._make(state, self.calls)


def replying(state: Any, call: int) -> dict[str, Any]:
    return {
        "messages": [AIMessage(f"answer {call} to {state['messages'][-1].text}", id=f"r{call}")]
    }


def graph(
    node: Any,
    cache: Any,
    *,
    schema: Any = MessagesState,
    wide: bool = False,
    kept: bool = True,
) -> Any:
    built = StateGraph(schema)
    built.add_node("answer", node, cache_policy=CACHED)
    built.add_edge(START, "answer")
    if wide:  # two nodes in one step: then results are handed in from bare threads
        built.add_node("idle", lambda state: None)
        built.add_edge(START, "idle")
    return built.compile(cache=cache, checkpointer=InMemorySaver() if kept else None)


class Threads:
    """Runs a graph in a new conversation each time."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self._numbers = itertools.count()

    def config(self) -> Any:
        return {"configurable": {"thread_id": str(next(self._numbers))}}

    def ask(self, text: str = "hi") -> Any:
        return self.app.invoke({"messages": [HumanMessage(text)]}, self.config())["messages"][-1]

    async def aask(self, text: str = "hi") -> Any:
        given = {"messages": [HumanMessage(text)]}
        return (await self.app.ainvoke(given, self.config()))["messages"][-1]


def counters(cache: Cache) -> Any:
    return cache.stats(everything=True).counters


@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
@pytest.mark.parametrize("kind", ["sync", "async", "stream"])
def test_an_equal_input_hits_in_another_conversation(opened: Cache, kind: str, wide: bool) -> None:
    node = Counted(replying)
    threads = Threads(graph(node, StampNodeCache(opened), wide=wide))

    def ask() -> Any:
        if kind == "sync":
            return threads.ask()
        if kind == "async":
            return asyncio.run(threads.aask())
        given = {"messages": [HumanMessage("hi")]}
        modes: Any = ["values", "messages"]
        told = list(threads.app.stream(given, threads.config(), stream_mode=modes))
        return [value for mode, value in told if mode == "values"][-1]["messages"][-1]

    for tenant in ("acme", "globex"):
        with stampcache.scope(tenant=tenant):
            first, second = ask(), ask()
            assert first.content == second.content
            assert second.id not in (None, first.id)
            assert second.response_metadata["cache"]["hit"] is True
    assert node.calls == 2


def test_langgraph_s_own_key_never_hits_where_there_are_messages(opened: Cache) -> None:
    """Why there is `node_key`; when this fails, that may have become needless."""
    node = Counted(replying)
    built = StateGraph(MessagesState)
    built.add_node("answer", node, cache_policy=CachePolicy())
    built.add_edge(START, "answer")
    threads = Threads(built.compile(cache=StampNodeCache(opened)))
    threads.ask(), threads.ask()
    assert node.calls == 2


def test_three_equal_turns_keep_three_answers(opened: Cache) -> None:
    node = Counted(lambda state, call: {"messages": [AIMessage("the answer", id="same")]})
    built = StateGraph(MessagesState)
    built.add_node("answer", node, cache_policy=CachePolicy(key_func=lambda state: "always"))
    built.add_edge(START, "answer")
    app = built.compile(cache=StampNodeCache(opened), checkpointer=InMemorySaver())
    for _ in range(3):
        result = app.invoke({"messages": [("human", "hi")]}, {"configurable": {"thread_id": "1"}})
    assert node.calls == 1
    assert len(result["messages"]) == 6
    assert len({each.id for each in result["messages"]}) == 6


def test_a_graph_s_own_clearing_reaches_its_node_for_that_tenant(opened: Cache) -> None:
    node = Counted(replying)
    threads = Threads(graph(node, StampNodeCache(opened)))
    for tenant in ("acme", "globex"):
        with stampcache.scope(tenant=tenant):
            threads.ask()
    with stampcache.scope(tenant="acme"):
        threads.app.clear_cache(["answer"])
        threads.ask()
    with stampcache.scope(tenant="globex"):
        threads.ask()
    assert node.calls == 3


def test_two_nodes_of_one_name_in_different_caches_do_not_share(opened: Cache) -> None:
    one, two = Counted(replying), Counted(replying)
    Threads(graph(one, StampNodeCache(opened))).ask()
    Threads(graph(two, StampNodeCache(opened))).ask()
    assert (one.calls, two.calls) == (1, 1)


def test_an_interrupted_node_is_not_kept(opened: Cache) -> None:
    def asking(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage(interrupt("which country"))]}

    threads = Threads(graph(asking, StampNodeCache(opened)))
    config = threads.config()
    threads.app.invoke({"messages": [("human", "hi")]}, config)
    assert "stored" not in counters(opened)
    done = threads.app.invoke(Command(resume="France"), config)
    assert done["messages"][-1].text == "France"


def test_a_node_that_fails_is_not_kept(opened: Cache) -> None:
    def failing(state: Any, call: int) -> dict[str, Any]:
        if call == 1:
            raise ConnectionError("down")
        return replying(state, call)

    node = Counted(failing)
    threads = Threads(graph(node, StampNodeCache(opened)))
    with pytest.raises(ConnectionError):
        threads.ask()
    threads.ask(), threads.ask()
    assert node.calls == 2


def test_a_node_that_changes_messages_of_its_conversation_is_not_kept(opened: Cache) -> None:
    def editing(state: Any, call: int) -> dict[str, Any]:
        last = state["messages"][-1]
        return {"messages": [HumanMessage(last.text.upper(), id=last.id)]}

    def removing(state: Any, call: int) -> dict[str, Any]:
        return {"messages": [RemoveMessage(id=state["messages"][0].id), AIMessage("new")]}

    for make in (editing, removing):
        node = Counted(make)
        threads = Threads(graph(node, StampNodeCache(opened)))
        fresh = [threads.ask().text for _ in range(2)]
        assert fresh[0] == fresh[1]
        assert node.calls == 2
    assert "stored" not in counters(opened)


def test_an_input_without_a_form_runs_its_node_and_is_counted(opened: Cache) -> None:
    class Handle:
        pass

    class Held(TypedDict):
        handle: Any
        text: str

    node = Counted(lambda state, call: {"text": "done"})
    app = graph(node, StampNodeCache(opened), schema=Held, kept=False)
    handle = Handle()
    for _ in range(2):
        assert app.invoke({"handle": handle, "text": ""})["text"] == "done"
    assert node.calls == 2
    assert counters(opened)["miss.uncacheable"] == 2
    assert "stored" not in counters(opened)


def test_commands_and_sends_come_back(opened: Cache) -> None:
    def routing(state: Any, call: int) -> Command[Any]:
        return Command(goto=Send("shout", {"text": "sent"}), update={"said": ["routed"]})

    router, shout = Counted(routing), Counted(lambda state, call: {"said": [state["text"].upper()]})
    built = StateGraph(Text)
    built.add_node("route", router, cache_policy=CACHED, destinations=("shout",))
    built.add_node("shout", shout, cache_policy=CACHED)
    built.add_edge(START, "route")
    app = built.compile(cache=StampNodeCache(opened))
    results = [app.invoke({"text": "hi"}) for _ in range(2)]
    assert results[0] == results[1]
    assert results[0]["said"] == ["routed", "SENT"]
    assert (router.calls, shout.calls) == (1, 1)


def test_tasks_are_cached_by_their_arguments(opened: Cache) -> None:
    calls: list[int] = []

    @task(cache_policy=CACHED)
    def double(number: int, *, offset: int = 0) -> int:
        calls.append(number)
        return 2 * number + offset

    @entrypoint(cache=StampNodeCache(opened))
    def run(number: int) -> int:
        return double(number).result() + double(number, offset=1).result()

    with stampcache.scope(tenant="acme"):
        assert [run.invoke(2), run.invoke(2), run.invoke(3)] == [9, 9, 13]
    assert len(calls) == 4


def test_a_graph_inside_another_sees_the_tenant_of_its_config() -> None:
    with stampcache.open_cache("memory://", tenants="required") as cache:
        node = Counted(replying)
        inner = StateGraph(MessagesState)
        inner.add_node("answer", node, cache_policy=CACHED)
        inner.add_edge(START, "answer")
        app = inner.compile(cache=StampNodeCache(cache))

        def inside(state: Any) -> Any:
            return app.invoke(state)

        outer = StateGraph(MessagesState)
        outer.add_node("inner", inside)
        outer.add_edge(START, "inner")
        whole = outer.compile()
        for tenant in ("acme", "globex", "acme"):
            given = {"messages": [HumanMessage("hi")]}
            whole.invoke(given, {"metadata": {"tenant": tenant}})
        assert node.calls == 2
        whole.invoke({"messages": [HumanMessage("hi")]})
        assert node.calls == 3


def module(answer: str) -> types.ModuleType:
    """Return an imported module of the application, whose node answers so."""
    made = types.ModuleType("app_of_nodes")
    made.__file__ = "/app/app_of_nodes.py"
    source = f"def answer(state):\n    return {{'text': {answer!r}}}\n"
    exec(compile(source, made.__file__, "exec"), made.__dict__)
    return made


def test_a_function_of_a_module_is_known_by_its_code(
    opened: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(answer: str) -> tuple[str, str]:
        monkeypatch.setitem(sys.modules, "app_of_nodes", module(answer))
        app = graph(sys.modules["app_of_nodes"].answer, StampNodeCache(opened), schema=Text)
        told = list(app.stream({"text": "q"}, {"configurable": {"thread_id": "1"}}))
        return told[0]["answer"]["text"], "cached" if "__metadata__" in told[0] else "made"

    assert run("30 days") == ("30 days", "made")
    assert run("30 days") == ("30 days", "cached")  # another object, as after a restart
    assert run("32 days") == ("32 days", "made")


@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
def test_tenants_at_once_never_mix(opened: Cache, wide: bool) -> None:
    def telling(state: Any) -> dict[str, Any]:
        scope = current_scope()
        return {"messages": [AIMessage(f"for {scope.tenant if scope else None}")]}

    threads = Threads(graph(telling, StampNodeCache(opened), wide=wide))

    def ask(at: int) -> None:
        with stampcache.scope(tenant=f"tenant-{at % 4}"):
            assert threads.ask().text == f"for tenant-{at % 4}"

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(48)))
    assert opened.stats(everything=True).entries == 4


# -- node_key ---------------------------------------------------------------------------------------


@dataclass
class Record:
    number: int


class Model(BaseModel):
    number: int


def conversation(at: int) -> list[Any]:
    call = {"name": "search", "args": {"q": "x"}, "id": f"call-{at}"}
    return [
        HumanMessage("hi", id=f"h{at}"),
        AIMessage("", id=f"a{at}", tool_calls=[call]),
        ToolMessage("found", id=f"t{at}", tool_call_id=f"call-{at}"),
    ]


def test_ids_of_messages_and_calls_do_not_count() -> None:
    one, two = ({"messages": conversation(at), "n": 1} for at in range(2))
    assert node_key(one) == node_key(two)
    assert node_key({"n": 1, "messages": conversation(0)}) == node_key(one)
    two["messages"][0].content = "ho"
    assert node_key(one) != node_key(two)


DIFFERENT = [
    {"a": "bc"}, {"ab": "c"}, {"a": ["b", "c"]}, {"a": ["bc"]}, {"a": ("bc",)}, {"a": {"tuple": ["bc"]}},
    {"a": {"map": {}}},
    {"a": {}}, {"a": None}, {"a": "None"}, {"a": 1}, {"a": True}, {"a": "1"}, {"a": 1.5},
    {"a": Record(1)}, {"a": Model(number=1)}, {"a": {"number": 1}}, {"a": {1}}, {"a": b"1"},
    {"a": datetime.date(2026, 1, 1)}, {"a": datetime.datetime(2026, 1, 1)}, {"a": "2026-01-01"},
    {"a": Document("x")}, {"a": Document("x", metadata={"s": 1})}, {"a": HumanMessage("x")},
    {"a": AIMessage("x")}, {"a": "x"},
]  # fmt: skip


def test_different_inputs_have_different_keys() -> None:
    assert len({node_key(each) for each in DIFFERENT}) == len(DIFFERENT)
    assert [node_key(each) for each in DIFFERENT] == [node_key(each) for each in DIFFERENT]


def test_what_has_no_form_shares_its_key_with_nothing() -> None:
    held: dict[str, Any] = {"a": object()}
    held["deep"] = held
    assert node_key(held) != node_key(held)
    assert node_key({"a": float("nan")}) != node_key({"a": float("nan")})


def test_a_key_tells_tenants_apart_in_any_cache() -> None:
    node = Counted(replying)
    threads = Threads(graph(node, InMemoryCache()))
    for tenant in ("acme", "globex", "acme"):
        with stampcache.scope(tenant=tenant):
            threads.ask()
    assert node.calls == 2
