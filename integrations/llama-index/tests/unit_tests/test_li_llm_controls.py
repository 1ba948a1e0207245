"""Who asks, what a call is told otherwise, and what is never stored."""

from typing import Any

import pytest
from llama_fakes import DigestLLM
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, TextBlock
from llama_llm_fakes import ScriptedLLM, bare, cached, user

import stampcache
from llama_index_stampcache import CachedLLM
from stampcache import Cache, Evidence, Lifetime, Stamps, open_cache
from stampcache.testing import FakeClock


@pytest.fixture
def inner() -> ScriptedLLM:
    return ScriptedLLM()


@pytest.fixture
def llm(inner: ScriptedLLM, cache: Cache) -> CachedLLM:
    return CachedLLM(inner, cache=cache)


def hits(llm: CachedLLM, text: str = "hello") -> bool:
    return bool(cached(llm.chat(user(text)))["hit"])


def test_e1_tenants_never_share(llm: CachedLLM, inner: ScriptedLLM) -> None:
    for tenant in ("acme", "acme2", "acme*"):
        with stampcache.scope(tenant=tenant):
            assert not hits(llm)
            assert not cached(list(llm.stream_chat(user("hello")))[-1])["hit"]
    with stampcache.scope(tenant="acme"):
        assert hits(llm)
        with stampcache.scope(audience="group-7"):
            assert not hits(llm)
    assert inner.calls == 7


async def test_e13_without_a_tenant_where_one_is_required_the_cache_takes_no_part(
    inner: ScriptedLLM,
) -> None:
    with open_cache("memory://", tenants="required") as cache:
        llm = CachedLLM(inner, cache=cache)
        for _ in range(2):
            assert cached(llm.chat(user("hello")))["reason"] == "no tenant in scope"
            assert cached(await llm.achat(user("hello")))["reason"] == "no tenant in scope"
            stream = [one async for one in await llm.astream_chat(user("hello"))]
            assert cached(stream[-1])["reason"] == "no tenant in scope"
        assert inner.calls == 6
        assert cache.stats(everything=True).entries == 0
        with stampcache.scope(tenant="acme"):
            assert not hits(llm)
            assert hits(llm)


def test_a_stream_belongs_to_the_scope_in_which_it_was_begun(llm: CachedLLM) -> None:
    with stampcache.scope(tenant="acme"):
        stream = llm.stream_chat(user("hello"))
    with stampcache.scope(tenant="other"):
        told = [bare(one) for one in stream]
        assert not cached(next(llm.stream_chat(user("hello"))))["hit"]
    with stampcache.scope(tenant="acme"):
        again = list(llm.stream_chat(user("hello")))
    assert cached(again[0])["hit"]
    assert [bare(one) for one in again] == told


def test_p3_one_call_is_told_otherwise(llm: CachedLLM, inner: ScriptedLLM, cache: Cache) -> None:
    with stampcache.scope(no_store=True):
        assert not hits(llm)
    assert not hits(llm)
    assert hits(llm)
    with stampcache.scope(no_cache=True):
        assert cached(llm.chat(user("hello")))["reason"] == "told not to look up"
    assert inner.calls == 3
    with stampcache.scope(no_cache=True):
        assert not cached(list(llm.stream_chat(user("hello")))[-1])["hit"]
    assert cached(list(llm.stream_chat(user("hello")))[-1])["hit"]


def test_p4_a_variety_of_answers(llm: CachedLLM, inner: ScriptedLLM) -> None:
    with stampcache.scope(variety=2):
        assert [hits(llm) for _ in range(4)] == [False, False, True, True]
    assert inner.calls == 2


def test_answers_live_as_long_as_they_are_told(timed: Cache, clock: FakeClock) -> None:
    llm = CachedLLM(ScriptedLLM(), cache=timed)
    with stampcache.scope(ttl_s=60):
        llm.chat(user("hello"))
    clock.advance(30)
    assert hits(llm)
    clock.advance(60)
    assert cached(llm.chat(user("hello")))["reason"] == "expired"


def test_stamps_kind_and_version_are_those_of_the_wrapper(cache: Cache, inner: ScriptedLLM) -> None:
    def wrapped(**options: Any) -> CachedLLM:
        return CachedLLM(inner, cache=cache, **options)

    options: list[dict[str, Any]] = [
        {},
        {"stamps": Stamps(model="weights-1")},
        {"stamps": Stamps(model="weights-2")},
        {"version": "1"},
        {"version": "2"},
    ]
    for each in options:
        assert not hits(wrapped(**each))
    assert all(hits(wrapped(**each)) for each in options)
    cache.invalidate(stamps=Stamps(model="weights-1"))
    assert [hits(wrapped(**each)) for each in options] == [True, False, True, True, True]


def test_a_kind_of_data_has_its_own_life(clock: FakeClock, inner: ScriptedLLM) -> None:
    lifetimes = {"prices": Lifetime(ttl_s=10)}
    with open_cache("memory://", clock=clock, ttl_s=1_000, lifetimes=lifetimes) as cache:
        plain, prices = CachedLLM(inner, cache=cache), CachedLLM(inner, cache=cache, kind="prices")
        prices.chat(user("hello"))
        assert hits(plain)
        clock.advance(100)
        assert not hits(plain)


def test_evidence_that_the_app_tells_of_invalidates(llm: CachedLLM, cache: Cache) -> None:
    def ask() -> bool:
        chunk = Evidence(corpus="handbook", source="leave.md", text="thirty days")
        with stampcache.scope(evidence=[chunk]):
            return hits(llm, "Given thirty days: how long?")

    assert [ask(), ask()] == [False, True]
    cache.invalidate(corpus="handbook", source="leave.md")
    assert not ask()


# -- admission -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("", None),
        ("   ", {"choices": [{"finish_reason": "stop"}]}),
        ("half an ans", {"choices": [{"finish_reason": "length"}]}),
        ("well", {"choices": [{"finish_reason": "content_filter"}]}),
        ("I'm sorry, I cannot help with that.", {"choices": [{"finish_reason": "stop"}]}),
        ("well", {"choices": [{"finish_reason": "insufficient_system_resource"}]}),
    ],
)
def test_n_what_is_no_answer_is_not_stored(text: str, raw: Any, cache: Cache) -> None:
    inner = DigestLLM()
    inner.answers(text, raw)
    llm = CachedLLM(inner, cache=cache)
    for _ in range(2):
        llm.complete("hello")
        llm.chat(user("hello"))
        if text:  # the framework's own events fail at an empty stream
            list(llm.stream_complete("hello"))
    assert inner.calls == (6 if text else 4)
    assert cache.stats().entries == 0


def test_n3_a_failure_is_the_callers_and_is_not_stored(llm: CachedLLM, inner: ScriptedLLM) -> None:
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the provider failed"):
            llm.chat(user("fail now"))
    assert inner.calls == 2


class Odd(DigestLLM):
    """A model that puts an object beside its message."""

    def chat(self, messages: Any, **_: Any) -> ChatResponse:
        self._prompts.append(str(messages))
        message = ChatMessage(
            role="assistant", blocks=[TextBlock(text="yes")], additional_kwargs={"at": object()}
        )
        return ChatResponse(message=message, raw=object())


def test_what_would_not_come_back_is_given_but_not_stored(cache: Cache) -> None:
    inner = Odd()
    llm = CachedLLM(inner, cache=cache)
    for _ in range(2):
        response = llm.chat(user("hello"))
        assert response.message.content == "yes"
        assert type(response.message.additional_kwargs["at"]) is object
        assert not cached(response)["hit"]
    assert inner.calls == 2
    assert cache.core.counters.of(None)["adapter.not_storable"] == 2


class Texts(DigestLLM):
    """A model that returns what is no response."""

    def complete(self, prompt: Any, formatted: bool = False, **_: Any) -> Any:
        return "yes"

    def stream_complete(self, prompt: Any, formatted: bool = False, **_: Any) -> Any:
        yield "yes"
        yield None
        yield "no"


def test_h7_what_is_no_response_is_handed_on(cache: Cache) -> None:
    llm = CachedLLM(Texts(), cache=cache)
    for _ in range(2):
        assert llm.complete("hello") == "yes"
        assert list(llm.stream_complete("hello")) == ["yes", None, "no"]
        assert list(llm.stream_complete("hello", client=object())) == ["yes", None, "no"]
    assert cache.stats().entries == 0


def test_a_store_that_fails_fails_no_call(llm: CachedLLM, cache: Cache) -> None:
    cache.close()
    assert llm.chat(user("hello")).message.content
    assert list(llm.stream_chat(user("hello")))[-1].message.content
