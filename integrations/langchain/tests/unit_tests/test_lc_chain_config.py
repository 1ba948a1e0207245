"""Who asks, and what one call is told, by scope and by config: in all forms of all chains; batches."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from langchain_apps import BUILT, PROMPT, QUESTION
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnablePassthrough
from langchain_fakes import Shelf
from langchain_streams import StreamingChat, summed

import stampcache
from langchain_stampcache import CachedChain
from stampcache import Cache
from stampcache.testing import FakeClock

ASKED = {"input": QUESTION}
Ask = Callable[[Any, RunnableConfig | None], dict[str, Any]]


async def collected(stream: AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in stream]


def _in_new_loop(coroutine: Any) -> Any:
    return asyncio.run(coroutine)


WAYS: dict[str, Ask] = {
    "invoke": lambda chain, config: chain.invoke(ASKED, config),
    "ainvoke": lambda chain, config: _in_new_loop(chain.ainvoke(ASKED, config)),
    "stream": lambda chain, config: summed(chain.stream(ASKED, config)),
    "astream": lambda chain, config: summed(_in_new_loop(collected(chain.astream(ASKED, config)))),
    "batch": lambda chain, config: chain.batch([ASKED], config)[0],
    "abatch": lambda chain, config: _in_new_loop(chain.abatch([ASKED], config))[0],
    "inside": lambda chain, config: (RunnablePassthrough() | chain).invoke(ASKED, config),
}


@pytest.fixture(params=list(WAYS))
def ask(request: pytest.FixtureRequest) -> Ask:
    return WAYS[request.param]


@pytest.fixture
def model() -> StreamingChat:
    return StreamingChat()


@pytest.fixture(params=["parts", "around"])
def build(
    request: pytest.FixtureRequest, shelf: Shelf, model: StreamingChat
) -> Callable[[Cache], Any]:
    answer = PROMPT | model | StrOutputParser()

    def parts(cache: Cache) -> Any:
        return CachedChain(retriever=shelf, answer=answer, cache=cache)

    def around(cache: Cache) -> Any:
        whole = RunnablePassthrough.assign(context=lambda given: shelf.invoke(given["input"]))
        chain = whole.assign(answer=answer)
        return CachedChain.around(chain, cache=cache, stamps=BUILT, corpus="handbook")

    return parts if request.param == "parts" else around


def config_of(place: str, **told: Any) -> RunnableConfig:
    if place == "ours":
        return {"metadata": {"stampcache": told}}
    if place == "ours, configurable":
        return {"configurable": {"stampcache": told}}
    return {"metadata": told} if place == "metadata" else {"configurable": told}


PLACES = ["metadata", "configurable", "ours", "ours, configurable"]


@pytest.mark.parametrize("place", PLACES)
def test_e3_the_tenant_stands_in_the_config(
    opened: Cache, build: Callable[[Cache], Any], ask: Ask, place: str
) -> None:
    chain = build(opened)
    for tenant in ("acme", "other"):
        for namespace in ("docs", "chat"):
            config = config_of(place, tenant=tenant, namespace=namespace)
            assert not ask(chain, config)["cache"]["hit"]
            assert ask(chain, config)["cache"]["hit"]
            with stampcache.scope(tenant=tenant, namespace=namespace):
                assert ask(chain, None)["cache"]["hit"]
    assert ask(chain, None)["cache"]["reason"] == "no tenant in scope"


def test_what_the_scope_says_wins(opened: Cache, build: Callable[[Cache], Any], ask: Ask) -> None:
    chain = build(opened)
    with stampcache.scope(tenant="acme"):
        ask(chain, config_of("metadata", tenant="other"))
        assert ask(chain, None)["cache"]["hit"]
    assert not ask(chain, config_of("metadata", tenant="other"))["cache"]["hit"]


@pytest.mark.parametrize("tenant", [3, "", b"acme"])
def test_e13_a_tenant_that_is_no_text_bypasses_the_cache(
    opened: Cache, build: Callable[[Cache], Any], ask: Ask, model: StreamingChat, tenant: object
) -> None:
    chain = build(opened)
    for _ in range(2):
        result = ask(chain, config_of("metadata", tenant=tenant))
        assert result["cache"]["reason"] == "no tenant in scope"
        assert result["answer"]
    assert model.calls == 2
    counted = opened.stats(everything=True)
    assert counted.entries == 0
    assert counted.counters["adapter.unscoped"] == 2


@pytest.mark.parametrize("by_scope", [True, False])
def test_one_call_is_told_otherwise(
    build: Callable[[Cache], Any], ask: Ask, model: StreamingChat, by_scope: bool
) -> None:
    clock = FakeClock()
    chain = build(stampcache.open_cache("memory://", clock=clock))

    def told(**controls: Any) -> dict[str, Any]:
        if not by_scope:
            return ask(chain, config_of("ours", tenant="acme", **controls))
        with stampcache.scope(tenant="acme", **controls):
            return ask(chain, None)

    told(no_store=True)
    assert not told()["cache"]["hit"]
    again = told(no_cache=True)
    assert again["cache"]["reason"] == "told not to look up"
    assert told()["answer"] == again["answer"]
    assert told(no_store=True)["cache"]["hit"]
    assert model.calls == 3
    told(no_cache=True, ttl_s=60)
    clock.advance(30)
    assert told()["cache"]["hit"]
    clock.advance(31)
    assert told()["cache"]["reason"] == "expired"


def test_a_variety_of_answers(
    opened: Cache, build: Callable[[Cache], Any], ask: Ask, model: StreamingChat
) -> None:
    chain = build(opened)
    config = config_of("ours", variety=3)
    answers = [ask(chain, config)["answer"] for _ in range(7)]
    assert len(set(answers)) == model.calls == 3
    assert answers[3:] == [*answers[:3], answers[0]]


def test_f6_a_kind_of_data_by_config(build: Callable[[Cache], Any], ask: Ask) -> None:
    clock = FakeClock()
    cache = stampcache.open_cache(
        "memory://", lifetimes={"news": stampcache.Lifetime(ttl_s=60)}, clock=clock
    )
    chain = build(cache)
    ask(chain, config_of("ours", kind="news"))
    assert ask(chain, None)["cache"]["hit"]
    clock.advance(61)
    assert ask(chain, None)["cache"]["reason"] == "expired"


@pytest.mark.parametrize(
    "told", [{"kind": "none such"}, {"kind": 3}, {"ttl_s": -1}, {"no_cash": 1}]
)
def test_what_makes_no_sense_bypasses_the_cache_and_is_counted(
    opened: Cache, build: Callable[[Cache], Any], ask: Ask, told: dict[str, Any]
) -> None:
    chain = build(opened)
    for _ in range(2):
        result = ask(chain, config_of("ours", **told))
        assert (result["cache"]["hit"], result["cache"]["reason"]) == (False, "uncacheable")
    assert opened.stats(everything=True).counters["error.adapter.request"] == 2


# -- batches ---------------------------------------------------------------------------------------


def questions(number: int) -> list[dict[str, str]]:
    return [{"input": f"leave question {n % 5}"} for n in range(number)]


@pytest.mark.parametrize("limit", [None, 1, 3])
async def test_equal_items_of_a_batch_cost_one_making_and_never_mix(
    opened: Cache, build: Callable[[Cache], Any], model: StreamingChat, limit: int | None
) -> None:
    chain = build(opened)
    asked = questions(20)
    config: RunnableConfig = {"max_concurrency": limit} if limit else {}
    for results in (
        chain.batch(asked, config),
        await chain.abatch(asked, config),
        [one for _, one in sorted(chain.batch_as_completed(asked, config), key=lambda r: r[0])],
        [
            one
            for _, one in sorted(
                await collected(chain.abatch_as_completed(asked, config)), key=lambda r: r[0]
            )
        ],
    ):
        assert [one["input"] for one in results] == [one["input"] for one in asked]
        assert all(
            one["answer"].endswith(given["input"])
            for one, given in zip(results, asked, strict=True)
        )
        assert len({id(one) for one in results}) == 20
    assert model.calls == 5


async def test_each_item_has_its_own_config(opened: Cache, build: Callable[[Cache], Any]) -> None:
    chain = build(opened)
    tenants = [f"tenant {n % 4}" for n in range(12)]
    configs = [config_of("metadata", tenant=tenant) for tenant in tenants]
    first = chain.batch([ASKED] * 12, configs)
    assert sum(one["cache"]["reason"] == "not found" for one in first) == 4
    again = await chain.abatch([ASKED] * 12, configs)
    assert all(one["cache"]["hit"] for one in again)
    by_tenant = {tenant: one["answer"] for tenant, one in zip(tenants, first, strict=True)}
    assert len(set(by_tenant.values())) == 4
    assert [one["answer"] for one in again] == [by_tenant[tenant] for tenant in tenants]


async def test_a_failed_item_fails_alone(
    opened: Cache, build: Callable[[Cache], Any], model: StreamingChat
) -> None:
    chain = build(opened)
    made = model._reply

    def reply(messages: list[Any], call: int) -> Any:
        if "question 3" in messages[-1].text:
            raise RuntimeError("down")
        return made(messages, call)

    model.answering(reply)
    asked = questions(5)
    for results in (
        chain.batch(asked, return_exceptions=True),
        await chain.abatch(asked, return_exceptions=True),
    ):
        assert [type(one) is RuntimeError for one in results] == [n == 3 for n in range(5)]
    with pytest.raises(RuntimeError):
        chain.batch(asked)
    assert opened.stats(everything=True).entries == 4


def test_a_batch_inside_of_another_chain(opened: Cache, build: Callable[[Cache], Any]) -> None:
    whole = RunnableLambda(lambda text: {"input": text}) | build(opened).pick("answer")
    asked = [one["input"] for one in questions(10)]
    answers = whole.batch(asked)
    assert all(answer.endswith(text) for answer, text in zip(answers, asked, strict=True))


def test_each_item_is_a_run_of_its_own(opened: Cache, build: Callable[[Cache], Any]) -> None:
    class Runs(BaseCallbackHandler):
        def __init__(self) -> None:
            self._lock = threading.Lock()
            self.inputs: list[Any] = []

        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            if kwargs.get("parent_run_id") is None:
                with self._lock:
                    self.inputs.append(inputs)

    runs = Runs()
    build(opened).batch(questions(6), {"callbacks": [runs]})
    assert sorted(map(str, runs.inputs)) == sorted(map(str, questions(6)))
