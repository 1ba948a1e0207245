"""`StampNodeCache` by its own methods: values, tenants, time, clearing, what is never stored."""

import asyncio
import datetime
import decimal
import threading
import uuid
import zoneinfo
from collections import deque
from typing import Any

import pytest

pytest.importorskip("langgraph")

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_fakes import USAGE
from langgraph.types import Send
from pydantic import BaseModel

import stampcache
from langchain_stampcache import StampNodeCache
from stampcache import Cache, Request
from stampcache.testing import FailingStore, FakeClock

NODE = ("writes", "app.answer", "answer")
KEY = (NODE, "key-1")


class Note(BaseModel):
    text: str
    tags: list[str] = []


class Same:
    """An object that only has an address."""


@pytest.fixture
def nodes(opened: Cache) -> StampNodeCache:
    return StampNodeCache(opened)


def put(nodes: StampNodeCache, value: Any, key: Any = KEY, ttl: int | None = None) -> None:
    nodes.get([key])
    nodes.set({key: (deque([("x", value)]), ttl)})


def got(nodes: StampNodeCache, key: Any = KEY) -> Any:
    found = nodes.get([key]).get(key)
    return None if found is None else found[0][1]


def in_a_bare_thread(nodes: StampNodeCache, pairs: Any) -> None:
    thread = threading.Thread(target=nodes.set, args=(pairs,))
    thread.start()
    thread.join()


def counters(cache: Cache) -> Any:
    return cache.stats(everything=True).counters


VALUES = [
    None, True, 7, 1.0, "text", "", [1, [2, "x"]], {"a": {"b": 1}}, {"as": "map"}, (1, ("a",)), {1, 2},
    frozenset({"a"}), b"\x00\xff", datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC),
    datetime.date(2026, 1, 2), datetime.time(3, 4), decimal.Decimal("1.10"),
    uuid.UUID("12345678123456781234567812345678"), Document("text", id="1", metadata={"source": "a"}),
    Note(text="x", tags=["y"]), Send("other", {"messages": [1, (2,)]}), [Document("a")],
    {"notes": (Note(text="x"), [Document("b")])},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}-{value!r:.20}")
def test_what_comes_back_is_equal_and_of_the_same_type(nodes: StampNodeCache, value: Any) -> None:
    put(nodes, value)
    found = nodes.get([KEY])[KEY]
    assert found == deque([("x", value)])
    assert type(found[0][1]) is type(value)


@pytest.mark.parametrize("value", [{"a": 1}, "text", 7, [1, 2], ("a", [1])], ids=repr)
def test_any_value_is_kept_as_other_caches_of_langgraph_do(
    nodes: StampNodeCache, value: Any
) -> None:
    nodes.set({KEY: (value, 60)})
    assert nodes.get([KEY]) == {KEY: value}


class Text(str):
    pass


@pytest.mark.parametrize(
    "value",
    [
        Same(), float("nan"), {1: "a"}, Text("x"), lambda: None, RemoveMessage(id="1"),
        [AIMessage("x", additional_kwargs={"raw": Same()})], {"deep": [(Same(),)]},
        datetime.datetime(2026, 1, 2, fold=1),
        datetime.datetime(2026, 7, 2, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")), 1j, range(3),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_would_not_come_back_equal_is_not_stored(
    opened: Cache, nodes: StampNodeCache, value: Any
) -> None:
    put(nodes, value)
    assert nodes.get([KEY]) == {}
    assert counters(opened)["error.adapter.not_storable"] == 1


def test_messages_come_back_as_new_ones_that_cost_nothing(nodes: StampNodeCache) -> None:
    reply = AIMessage("hi", id="r1", usage_metadata=USAGE)  # type: ignore[arg-type]
    tool = ToolMessage("found", id="t1", tool_call_id="c1", name="search")
    put(nodes, [HumanMessage("hello", id="h1"), reply, tool])
    asked, told, result = got(nodes)
    assert (asked.content, told.content, result.content) == ("hello", "hi", "found")
    assert (asked.id, told.id, result.id) == (None, None, None)
    assert told.usage_metadata["total_tokens"] == 0
    assert told.response_metadata["cache"]["hit"] is True
    assert told.response_metadata["cache"]["saved"]["input_tokens"] == 11


def test_each_caller_has_its_own_copy(nodes: StampNodeCache) -> None:
    put(nodes, {"a": [1]})
    got(nodes)["a"].append(2)
    assert got(nodes) == {"a": [1]}


def test_what_was_put_may_be_changed(nodes: StampNodeCache) -> None:
    value = [1]
    put(nodes, value)
    value.append(2)
    assert got(nodes) == [1]


def test_namespaces_and_keys_are_told_apart(nodes: StampNodeCache) -> None:
    put(nodes, 1, (("a", "bc"), "k"))
    assert got(nodes, (("ab", "c"), "k")) is None
    assert got(nodes, (("a", "bc"), "l")) is None
    assert nodes.get([(("ab", "c"), "k"), (("a", "bc"), "k")]) == {
        (("a", "bc"), "k"): deque([("x", 1)])
    }


def test_a_policy_s_time_is_kept(tmp_path: Any) -> None:
    clock = FakeClock()
    with stampcache.open_cache("memory://", clock=clock, ttl_s=1000.0) as cache:
        nodes = StampNodeCache(cache)
        put(nodes, 1, (NODE, "short"), ttl=10)
        put(nodes, 2, (NODE, "long"), ttl=None)
        put(nodes, 3, (NODE, "none"), ttl=0)
        assert got(nodes, (NODE, "none")) is None
        clock.advance(5)
        assert got(nodes, (NODE, "short")) == 1
        clock.advance(10)
        assert got(nodes, (NODE, "short")) is None
        assert got(nodes, (NODE, "long")) == 2
        with stampcache.scope(ttl_s=3):
            put(nodes, 4, (NODE, "told"), ttl=100)
        clock.advance(5)
        assert got(nodes, (NODE, "told")) is None


def test_tenants_never_share(nodes: StampNodeCache) -> None:
    for tenant in ("acme", "acme:2", "*"):
        with stampcache.scope(tenant=tenant):
            assert got(nodes) is None
            put(nodes, tenant)
    for tenant in ("acme", "acme:2", "*"):
        with stampcache.scope(tenant=tenant):
            assert got(nodes) == tenant


def test_a_result_handed_in_from_a_bare_thread_stays_with_its_tenant(nodes: StampNodeCache) -> None:
    """LangGraph does so: the scope of the run is not visible there."""
    ours, theirs = "".join(["k", "ey"]), "".join(["k", "ey"])
    assert ours is not theirs
    with stampcache.scope(tenant="acme"):
        nodes.get([(NODE, ours)])
    with stampcache.scope(tenant="globex"):
        nodes.get([(NODE, theirs)])
    for key, value in ((theirs, "of globex"), (ours, "of acme")):
        in_a_bare_thread(nodes, {(NODE, key): (deque([("x", value)]), None)})
    for tenant in ("acme", "globex"):
        with stampcache.scope(tenant=tenant):
            assert got(nodes, (NODE, "key")) == f"of {tenant}"


def test_a_result_of_another_tenant_is_not_taken_for_ours(
    opened: Cache, nodes: StampNodeCache
) -> None:
    with stampcache.scope(tenant="acme"):
        nodes.get([KEY])
    with stampcache.scope(tenant="globex"):
        nodes.set({KEY: (deque([("x", "of globex")]), None)})
        assert got(nodes) == "of globex"
    with stampcache.scope(tenant="acme"):
        assert got(nodes) is None


def test_of_two_lookups_with_one_key_object_nobody_knows_whose_the_result_is(
    opened: Cache, nodes: StampNodeCache
) -> None:
    for tenant in ("acme", "globex"):
        with stampcache.scope(tenant=tenant):
            nodes.get([KEY])
    in_a_bare_thread(nodes, {KEY: (deque([("x", "of somebody")]), None)})
    assert opened.stats(everything=True).entries == 0


def test_the_time_that_a_run_was_told_counts_in_a_bare_thread_too() -> None:
    clock = FakeClock()
    with stampcache.open_cache("memory://", clock=clock) as cache:
        nodes = StampNodeCache(cache)
        with stampcache.scope(tenant="acme", ttl_s=3):
            nodes.get([KEY])
        in_a_bare_thread(nodes, {KEY: (deque([("x", 1)]), 100)})
        with stampcache.scope(tenant="acme"):
            assert got(nodes) == 1
            clock.advance(5)
            assert got(nodes) is None


def test_a_result_of_nobody_is_not_kept_beside_tenants(
    opened: Cache, nodes: StampNodeCache
) -> None:
    with stampcache.scope(tenant="acme"):
        put(nodes, 1)
    nodes.set({(NODE, "late"): (deque([("x", 1)]), None)})
    assert opened.stats(everything=True).entries == 1
    assert got(nodes, (NODE, "late")) is None


def test_a_required_tenant_is_required() -> None:
    with stampcache.open_cache("memory://", tenants="required") as cache:
        nodes = StampNodeCache(cache)
        put(nodes, 1)
        assert nodes.get([KEY]) == {}
        assert counters(cache)["adapter.unscoped"] >= 1
        with stampcache.scope(tenant="acme"):
            put(nodes, 1)
            assert got(nodes) == 1


def test_clearing_a_node_touches_that_node_of_that_tenant(nodes: StampNodeCache) -> None:
    other = (("writes", "app.answer", "answer2"), "key-1")
    for tenant in ("acme", "globex"):
        with stampcache.scope(tenant=tenant):
            put(nodes, tenant)
            put(nodes, tenant, other)
    with stampcache.scope(tenant="acme"):
        nodes.clear([NODE])
        assert got(nodes) is None
        assert got(nodes, other) == "acme"
        put(nodes, "anew")
        assert got(nodes) == "anew"
    with stampcache.scope(tenant="globex"):
        assert got(nodes) == "globex"


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_clearing_all_is_clearing_the_scope(opened: Cache, kind: str) -> None:
    nodes = StampNodeCache(opened)
    for tenant in ("acme", "globex"):
        with stampcache.scope(tenant=tenant):
            put(nodes, tenant)
    with stampcache.scope(tenant="acme"):
        nodes.clear() if kind == "sync" else asyncio.run(nodes.aclear())
        assert got(nodes) is None
    with stampcache.scope(tenant="globex"):
        assert got(nodes) == "globex"
        nodes.clear([NODE]) if kind == "sync" else asyncio.run(nodes.aclear([NODE]))
        assert got(nodes) is None


def test_a_document_that_is_called_like_a_node_does_not_matter(
    opened: Cache, nodes: StampNodeCache
) -> None:
    put(nodes, 1)
    opened.invalidate(source="leave.md")
    opened.invalidate(corpus="handbook")
    assert got(nodes) == 1


def test_a_write_to_the_corpus_makes_results_stale(opened: Cache) -> None:
    nodes = StampNodeCache(opened, corpus="handbook")
    put(nodes, 1)
    opened.invalidate(corpus="handbook", source="leave.md")
    assert got(nodes) is None


def test_a_change_during_a_node_keeps_its_result_out(opened: Cache) -> None:
    nodes = StampNodeCache(opened, corpus="handbook")
    nodes.get([KEY])
    opened.invalidate(corpus="handbook")
    nodes.get([KEY])  # of a task that is under way, LangGraph asks again
    nodes.set({KEY: (deque([("x", 1)]), None)})
    assert counters(opened)["refused.fenced"] == 1
    assert got(nodes) is None


def test_without_a_lookup_nothing_is_kept_of_a_corpus(opened: Cache) -> None:
    nodes = StampNodeCache(opened, corpus="handbook")
    nodes.set({KEY: (deque([("x", 1)]), None)})
    assert counters(opened)["adapter.node.unfenced"] == 1
    assert got(nodes) is None


@pytest.mark.parametrize(
    "writes", [[("x", 1), ("__interrupt__", "why")], [("__error__", "why")], []], ids=len
)
def test_interrupts_and_errors_are_not_kept(
    opened: Cache, nodes: StampNodeCache, writes: Any
) -> None:
    nodes.set({KEY: (deque(writes), None)})
    assert nodes.get([KEY]) == {}
    assert counters(opened)["adapter.node.unfinished"] == 1


def test_controls_are_honoured(nodes: StampNodeCache) -> None:
    with stampcache.scope(no_store=True):
        put(nodes, 1)
    assert got(nodes) is None
    put(nodes, 1)
    with stampcache.scope(no_cache=True):
        assert got(nodes) is None
    assert got(nodes) == 1


def test_another_version_does_not_share(opened: Cache) -> None:
    put(StampNodeCache(opened, version="1"), 1)
    assert got(StampNodeCache(opened, version="1")) == 1
    assert got(StampNodeCache(opened, version="2")) is None
    assert got(StampNodeCache(opened, version="1", stamps=stampcache.Stamps(model="m2"))) is None


def test_what_is_no_cache_is_refused() -> None:
    with pytest.raises(stampcache.ConfigError, match="open cache"):
        StampNodeCache("memory://")  # type: ignore[arg-type]


def test_failures_are_counted_and_never_raised() -> None:
    store = FailingStore()
    with stampcache.Cache(store) as cache:
        nodes = StampNodeCache(cache)
        put(nodes, 1)
        store.down = True
        assert nodes.get([KEY]) == {}
        nodes.set({(NODE, "other"): (deque([("x", 1)]), None)})
        store.down = False
        assert got(nodes) == 1
        nodes.set({KEY: (object(), None)})
        assert counters(cache)["error.adapter.not_storable"] == 1
        nodes.set({KEY: (deque([("x", 1)]), "soon")})  # type: ignore[dict-item]
        assert counters(cache)["error.adapter.node"] == 1


def test_a_result_of_another_form_is_a_miss(
    opened: Cache, nodes: StampNodeCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(nodes, 1)
    monkeypatch.setattr("langchain_stampcache.graphs.values.NODE", "lc.node.2")
    assert nodes.get([KEY]) == {}
    assert counters(opened)["error.adapter.undecodable"] == 1


def test_nothing_stored_is_pickled_or_names_code(tmp_path: Any) -> None:
    path = tmp_path / "nodes.db"
    with stampcache.open_cache(f"sqlite:///{path}") as cache:
        put(StampNodeCache(cache, version="1"), [AIMessage("a reply"), {"a": (1,)}])
    with stampcache.open_cache(f"sqlite:///{path}") as cache:
        found = got(StampNodeCache(cache, version="1"))
        assert (found[0].text, found[1]) == ("a reply", {"a": (1,)})
    raw = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert b"a reply" in raw
    assert b'"lc"' not in raw and b"\x80\x05" not in raw


async def test_tasks_use_the_same_verbs(tmp_path: Any) -> None:
    with stampcache.open_cache(f"sqlite:///{tmp_path / 'cache.db'}") as cache:
        nodes = StampNodeCache(cache)
        await nodes.aget([KEY])
        await nodes.aset({KEY: (deque([("x", 1)]), None)})
        assert (await nodes.aget([KEY]))[KEY] == deque([("x", 1)])
        await nodes.aclear([NODE])
        assert await nodes.aget([KEY]) == {}


def test_clearing_nodes_leaves_answers_of_other_adapters(
    opened: Cache, nodes: StampNodeCache
) -> None:
    opened.update(Request(question="q"), "an answer")
    put(nodes, 1)
    nodes.clear([NODE])
    assert got(nodes) is None
    assert isinstance(opened.lookup(Request(question="q")), stampcache.Hit)
