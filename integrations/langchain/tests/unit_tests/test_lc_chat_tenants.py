"""Who calls a `CachedChatModel`: by the scope, or by the config of each call; and what it is told."""

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManager
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_fakes import CountingChat
from lc_chat_fakes import AsyncStreamingChat, StreamingChat, cached, report, summed, was_hit

import stampcache
from stampcache import Cache, open_cache

HOSTILE = ["[ab]", "a*", "a?", "a:b", "a,b", "a/b", "a\nb", "ä", "a", "ab", "A", " a", "a "]


@pytest.fixture
def strict_tenants() -> Iterator[Cache]:
    with open_cache("memory://", tenants="required") as cache:
        yield cache


def _by_metadata(tenant: str) -> dict[str, Any]:
    return {"metadata": {"tenant": tenant}}


def _by_configurable(tenant: str) -> dict[str, Any]:
    return {"configurable": {"tenant": tenant}}


def _by_mapping(tenant: str) -> dict[str, Any]:
    return {"configurable": {"stampcache": {"tenant": tenant}}}


def _invoke(chat: Any, config: Any) -> Any:
    return chat.invoke("hello", config=config)


def _ainvoke(chat: Any, config: Any) -> Any:
    return asyncio.run(chat.ainvoke("hello", config=config))


def _stream(chat: Any, config: Any) -> Any:
    return summed(chat.stream("hello", config=config))


def _astream(chat: Any, config: Any) -> Any:
    async def read() -> Any:
        return summed([one async for one in chat.astream("hello", config=config)])

    return asyncio.run(read())


def _events(chat: Any, config: Any) -> Any:
    async def read() -> Any:
        events = [one async for one in chat.astream_events("hello", config=config, version="v2")]
        return events[-1]["data"]["output"]

    return asyncio.run(read())


def _batch(chat: Any, config: Any) -> Any:
    return chat.batch(["hello"], config=[config])[0]


def _abatch(chat: Any, config: Any) -> Any:
    return asyncio.run(chat.abatch(["hello"], config=[config]))[0]


def _bound(chat: Any, config: Any) -> Any:
    return chat.with_config(config).invoke("hello")


def _in_a_chain(chat: Any, config: Any) -> Any:
    return (RunnableLambda(lambda asked: asked) | chat).invoke("hello", config=config)


def _in_a_function(chat: Any, config: Any) -> Any:
    return RunnableLambda(lambda asked: chat.invoke(str(asked))).invoke("hello", config=config)


def _in_parallel(chat: Any, config: Any) -> Any:
    return RunnableParallel(a=chat).invoke("hello", config=config)["a"]


WAYS = [
    _invoke, _ainvoke, _stream, _astream, _events, _batch, _abatch, _bound, _in_a_chain,
    _in_a_function, _in_parallel,
]  # fmt: skip


@pytest.mark.parametrize("config", [_by_metadata, _by_configurable, _by_mapping])
@pytest.mark.parametrize("way", WAYS)
def test_the_config_of_a_call_says_who_asks(strict_tenants: Cache, way: Any, config: Any) -> None:
    inner = AsyncStreamingChat()
    chat = cached(inner, strict_tenants)
    hits = [was_hit(way(chat, config(tenant))) for tenant in ("acme", "beta", "acme", "beta")]
    assert hits == [False, False, True, True]
    assert inner.calls == 2


@pytest.mark.parametrize("way", WAYS)
def test_without_a_tenant_the_model_is_called_and_that_is_counted(
    strict_tenants: Cache, way: Any
) -> None:
    inner = StreamingChat()
    chat = cached(inner, strict_tenants)
    for _ in range(2):
        assert report(way(chat, {}))["reason"] == "no tenant in scope"
    assert inner.calls == 2
    stats = strict_tenants.stats(everything=True)
    assert (stats.entries, stats.counters["adapter.unscoped"]) == (0, 2)


def test_the_metadata_of_generate_says_it_too(strict_tenants: Cache) -> None:
    chat = cached(CountingChat(), strict_tenants)
    for hit in (False, True):
        made = chat.generate([[HumanMessage("hello")]], metadata={"tenant": "acme"})
        assert was_hit(made.generations[0][0].message) is hit


@pytest.mark.parametrize("way", [_invoke, _stream])
def test_the_metadata_of_a_manager_of_callbacks_says_it_too(
    strict_tenants: Cache, way: Any
) -> None:
    chat = cached(StreamingChat(), strict_tenants)
    for hit in (False, True):
        manager = CallbackManager([], metadata={"tenant": "acme"})
        assert was_hit(way(chat, {"callbacks": manager})) is hit


def test_each_item_of_a_batch_has_its_own_tenant(strict_tenants: Cache) -> None:
    inner = CountingChat()
    chat = cached(inner, strict_tenants)
    tenants = ["acme", "beta", "acme", "beta"]
    configs = [_by_metadata(tenant) for tenant in tenants]
    answers = chat.batch(["hello"] * 4, config=configs)
    assert inner.calls == 2
    assert answers[0].text == answers[2].text != answers[1].text == answers[3].text
    again = asyncio.run(chat.abatch(["hello"] * 4, config=configs))
    assert [one.text for one in again] == [one.text for one in answers]


def test_the_scope_wins(strict_tenants: Cache) -> None:
    chat = cached(CountingChat(), strict_tenants)
    with stampcache.scope(tenant="acme"):
        chat.invoke("hello", config=_by_metadata("beta"))
    assert was_hit(chat.invoke("hello", config=_by_metadata("acme")))
    assert not was_hit(chat.invoke("hello", config=_by_metadata("beta")))


def test_a_stream_is_of_the_scope_that_it_was_asked_for_in(strict_tenants: Cache) -> None:
    chat = cached(StreamingChat(), strict_tenants)
    with stampcache.scope(tenant="acme"):
        asked = chat.stream("hello")
    with stampcache.scope(tenant="beta"):
        assert not was_hit(summed(asked))
        assert not was_hit(summed(chat.stream("hello")))
    with stampcache.scope(tenant="acme"):
        assert was_hit(summed(chat.stream("hello")))

    async def later() -> Any:
        with stampcache.scope(tenant="gamma"):
            asked = chat.astream("hello")
        return summed([chunk async for chunk in asked])

    assert not was_hit(asyncio.run(later()))
    assert was_hit(chat.invoke("hello", config=_by_metadata("gamma")))


def test_no_tenant_gets_what_another_one_asked(strict_tenants: Cache) -> None:
    inner = StreamingChat()
    chat = cached(inner, strict_tenants)
    for _ in range(2):
        for tenant in HOSTILE:
            chat.invoke("hello", config=_by_metadata(tenant))
            with stampcache.scope(tenant=tenant):
                summed(chat.stream("hello"))
    assert inner.calls == len(HOSTILE)


@pytest.mark.parametrize("tenant", ["", 7, ["acme"], {"a": 1}, True])
def test_a_tenant_that_is_no_text_is_nobody(opened: Cache, tenant: Any) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)
    for way in (_invoke, _stream, _astream):
        assert report(way(chat, {"metadata": {"tenant": tenant}}))["reason"] == "no tenant in scope"
    assert inner.calls == 3
    assert opened.stats(everything=True).counters["adapter.unscoped"] == 3


def test_equal_streams_of_two_tenants_are_not_read_together(strict_tenants: Cache) -> None:
    inner = StreamingChat()
    chat = cached(inner, strict_tenants)
    one = chat.stream("hello", config=_by_metadata("acme"))
    other = chat.stream("hello", config=_by_metadata("beta"))
    next(one), next(other)
    assert inner.calls == 2


def test_a_thread_without_a_scope_bypasses(opened: Cache) -> None:
    chat = cached(CountingChat(), opened)
    with stampcache.scope(tenant="acme"):
        chat.invoke("hello")
        seen: list[Any] = []
        context = contextvars.Context()
        thread = threading.Thread(target=lambda: seen.append(context.run(chat.invoke, "hello")))
        thread.start()
        thread.join()
    assert report(seen[0])["reason"] == "no tenant in scope"


# -- what one call is told -------------------------------------------------------------------------


def test_a_call_may_be_told_not_to_look_up_or_not_to_store(opened: Cache) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)
    chat.invoke("hello", config={"metadata": {"stampcache": {"no_store": True}}})
    assert not was_hit(chat.invoke("hello"))
    assert not was_hit(
        chat.invoke("hello", config={"configurable": {"stampcache": {"no_cache": True}}})
    )
    with stampcache.scope(no_cache=True):
        assert not was_hit(summed(chat.stream("hello")))
    assert was_hit(chat.invoke("hello"))


def test_variety_makes_several_answers(opened: Cache) -> None:
    chat = cached(CountingChat(), opened)
    config = {"metadata": {"stampcache": {"variety": 2}}}
    texts = [chat.invoke("hello", config=config).text for _ in range(4)]
    assert texts[:2] == texts[2:]
    assert len(set(texts)) == 2


@pytest.mark.parametrize("told", [{"ttl_s": -1}, {"unheard_of": 1}, {"variety": "many"}])
def test_a_control_that_makes_no_sense_calls_the_model(opened: Cache, told: Any) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)
    for way in (_invoke, _stream):
        assert report(way(chat, {"metadata": {"stampcache": told}}))["reason"] == "uncacheable"
    assert inner.calls == 2
    assert opened.stats(everything=True).counters["error.adapter.controls"] == 2


def test_evidence_of_the_scope_is_what_an_answer_depends_on(opened: Cache) -> None:
    chat = cached(StreamingChat(), opened)
    cited = [stampcache.Evidence(source="leave.md", text="thirty days")]
    with stampcache.scope(evidence=cited):
        chat.invoke("how long? thirty days")
        summed(chat.stream("and how long? thirty days"))
        assert opened.invalidate(source="leave.md") == 2
        assert not was_hit(chat.invoke("how long? thirty days"))
        read_later = chat.stream("and when? thirty days")
    assert not was_hit(summed(read_later))
    assert was_hit(chat.invoke("and when? thirty days"))
    assert opened.invalidate(source="leave.md") == 2
