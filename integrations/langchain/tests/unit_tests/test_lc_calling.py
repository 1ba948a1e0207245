"""How a model's call is found, and what is read of it, where LangChain or the app is built otherwise."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult, Generation, LLMResult
from langchain_core.runnables import RunnableLambda
from langchain_deepseek import ChatDeepSeek
from langchain_fakes import CountingChat, CountingLLM
from openai_transport import Provider

import stampcache
from langchain_stampcache import StampCache
from langchain_stampcache.llm_cache import calling, pending
from langchain_stampcache.llm_cache.calling import model_call
from stampcache import Evidence


@pytest.fixture
def cache() -> StampCache:
    return StampCache("memory://")


class Passing(BaseCache):
    """A cache of the app's own that hands on to another one."""

    def __init__(self, inner: StampCache) -> None:
        self._inner = inner

    def lookup(self, prompt: str, llm_string: str) -> Any:
        return self._inner.lookup(prompt, llm_string)

    def update(self, prompt: str, llm_string: str, return_val: Any) -> None:
        self._inner.update(prompt, llm_string, return_val)

    def clear(self, **kwargs: Any) -> None:
        self._inner.clear(**kwargs)

    async def alookup(self, prompt: str, llm_string: str) -> Any:
        return await self._inner.alookup(prompt, llm_string)

    async def aupdate(self, prompt: str, llm_string: str, return_val: Any) -> None:
        await self._inner.aupdate(prompt, llm_string, return_val)


class Telling(CountingLLM):
    """A text model whose answers tell the options of the call."""

    def _generate(
        self, prompts: list[str], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> LLMResult:
        self.calls += 1
        return LLMResult(generations=[[Generation(text=f"{kwargs}")] for _ in prompts])


class Overriding(Telling):
    """One that has methods of its own around those of LangChain."""

    def generate(self, prompts: Any, stop: Any = None, callbacks: Any = None, **kwargs: Any) -> Any:
        def again(depth: int) -> Any:
            if depth:
                return again(depth - 1)
            return super(Overriding, self).generate(prompts, stop, callbacks, **kwargs)

        return again(50)


# -- where the call is found -----------------------------------------------------------------------


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_a_cache_in_between_hides_nothing(cache: StampCache, way: str) -> None:
    model = Telling(cache=Passing(cache))
    for options in ({"max_tokens": 5}, {"max_tokens": 9}):
        for _ in range(2):
            said = (
                model.invoke("hi", **options)
                if way == "sync"
                else await model.ainvoke("hi", **options)
            )
            assert said == f"{options}"
    assert model.calls == 2


def test_methods_of_the_app_around_langchains_hide_nothing(cache: StampCache) -> None:
    model = Overriding(cache=cache)
    told = [{"max_tokens": 5}, {"max_tokens": 9}]
    assert [model.invoke("hi", **options) for options in told * 2] == [f"{one}" for one in told * 2]
    assert model.calls == 2


def test_a_method_of_a_model_that_hands_on_only_the_texts_hides_nothing(cache: StampCache) -> None:
    class Asking(Telling):
        def ask(self, prompt: str, llm_string: str) -> Any:
            return cache.lookup(prompt, llm_string)

    model = Asking()

    class Between(Passing):
        def lookup(self, prompt: str, llm_string: str) -> Any:
            return model.ask(prompt, llm_string)

    model.cache = Between(cache)
    told = [{"max_tokens": 5}, {"max_tokens": 9}]
    assert [model.invoke("hi", **options) for options in told * 2] == [f"{one}" for one in told * 2]


def test_a_call_deep_inside_of_runnables_and_other_models_is_found(cache: StampCache) -> None:
    text = Telling(cache=cache)
    deep: Any = RunnableLambda(lambda asked: text.invoke(asked, top_k=2))
    for _ in range(20):
        deep = RunnableLambda(lambda asked, inner=deep: inner.invoke(asked))
    outer = CountingChat(cache=cache).answering(lambda _, call: AIMessage(deep.invoke("hi")))
    assert outer.invoke("hi", max_tokens=3).content == "{'top_k': 2}"


def test_a_call_further_out_is_not_taken_for_the_one_that_asks(cache: StampCache) -> None:
    seen = []

    def asks(llm_string: str) -> object:
        return model_call(llm_string)

    def reply(messages: list[BaseMessage], call: int) -> AIMessage:
        seen.extend([asks("[('m', 1)]"), model_call("[('m', 1)]")])
        return AIMessage("made")

    CountingChat(cache=cache).answering(reply).invoke("hi")
    assert seen == [None, None]


def _without_frames(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(sys, "_getframe")


def _without_source(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calling, "_MODELS", "compiled.away.")


def _of_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calling, "_frames", lambda: iter(()))


@pytest.mark.parametrize("otherwise", [_without_frames, _without_source, _of_nothing])
async def test_where_frames_tell_nothing_the_two_texts_are_all_there_is(
    cache: StampCache,
    monkeypatch: pytest.MonkeyPatch,
    otherwise: Callable[[pytest.MonkeyPatch], None],
) -> None:
    model, text = CountingChat(cache=cache), CountingLLM(cache=cache)
    otherwise(monkeypatch)
    for _ in range(2):
        assert model.invoke("hi").content == "answer 1 to hi"
        assert (await model.ainvoke("hi")).content == "answer 1 to hi"
        assert text.invoke("hi") == "hi!"
    assert (model.calls, text.calls) == (1, 1)
    assert model.invoke("hi", temperature=1).content == "answer 2 to hi"


def test_methods_that_this_langchain_lacks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    known = calling._asking.__wrapped__()
    monkeypatch.setattr(calling, "_ASKING", ((BaseChatModel, "no_such"), (dict, "get")))
    assert len(known) == 4
    assert calling._asking.__wrapped__() == frozenset()


def test_a_field_whose_comparing_fails_fails_no_call(cache: StampCache) -> None:
    class Odd(list[str]):
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None  # type: ignore[assignment]

    model = CountingChat(cache=cache)
    object.__setattr__(model, "base_url", Odd(["x"]))
    assert model.invoke("hi").content == "answer 1 to hi"


def test_a_text_that_looks_like_a_chat_is_a_text(cache: StampCache) -> None:
    model = CountingLLM(cache=cache)
    told = [dumps([HumanMessage("hi", id=name)]) for name in ("1", "2")]
    assert [model.invoke(text) for text in told] == [f"{text}!" for text in told]


# -- models of the app's own classes ---------------------------------------------------------------


class Persona(BaseChatModel):
    """Tells LangChain nothing of itself but its kind."""

    style: str = "plain"
    calls: int = 0
    held: Any = None

    @property
    def _llm_type(self) -> str:
        return "persona"

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.calls += 1
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"in {self.style}"))])


class Shouting(Persona):
    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.calls += 1
        said = AIMessage(f"in {self.style}".upper())
        return ChatResult(generations=[ChatGeneration(message=said)])


class Polite(ChatDeepSeek):
    tone: str = "polite"


def test_a1_fields_that_a_model_does_not_tell_are_keyed(cache: StampCache) -> None:
    one, other = Persona(style="a", cache=cache), Persona(style="b", cache=cache)
    for _ in range(2):
        assert one.invoke("hi").content == "in a"
        assert other.invoke("hi").content == "in b"
    assert (one.calls, other.calls) == (1, 1)
    one.style = "c"
    assert one.invoke("hi").content == "in c"


def test_a1_a_class_that_a_model_does_not_tell_is_keyed(cache: StampCache) -> None:
    assert Persona(cache=cache).invoke("hi").content == "in plain"
    assert Shouting(cache=cache).invoke("hi").content == "IN PLAIN"


def test_a1_what_a_class_adds_to_a_providers_is_keyed(cache: StampCache) -> None:
    provider = Provider()
    given = {"model": "m", "api_base": "http://h/v1", "cache": cache, **provider.clients()}
    kinds: list[Callable[[], ChatDeepSeek]] = [
        lambda: ChatDeepSeek(**given),
        lambda: Polite(**given),
        lambda: Polite(tone="curt", **given),
    ]
    answers = [kind().invoke("hi").content for kind in kinds * 2]
    assert answers[:3] == answers[3:]
    assert provider.calls == 3


def test_a16_an_untold_field_without_identity_is_not_cached(cache: StampCache) -> None:
    model = Persona(held=object(), cache=cache)
    assert [model.invoke("hi").content for _ in range(2)] == ["in plain"] * 2
    assert model.calls == 2
    assert cache.cache.stats(everything=True).entries == 0


def test_e1_the_metadata_of_a_model_tells_the_tenant_of_text_and_chat() -> None:
    cache = StampCache("memory://", tenants="required")
    for kind in (CountingLLM, CountingChat):
        model = kind(cache=cache, metadata={"tenant": "acme"})
        for _ in range(2):
            model.invoke("hi")
        assert model.calls == 1


# -- what became of the lookup ---------------------------------------------------------------------


@pytest.mark.parametrize("change", [True, False])
def test_g1_a_change_while_many_wait_is_not_missed(
    cache: StampCache, monkeypatch: pytest.MonkeyPatch, change: bool
) -> None:
    monkeypatch.setattr(pending, "OUTCOMES_KEPT", 1)

    def reply(messages: list[BaseMessage], call: int) -> AIMessage:
        if call == 1:
            CountingChat(model="other", cache=cache).invoke("another")
            if change:
                cache.cache.invalidate(corpus="h", source="leave.md")
        return AIMessage(f"answer {call}")

    model = CountingChat(cache=cache).answering(reply)
    cited = Evidence(corpus="h", source="leave.md", text="30 days")
    with stampcache.scope(evidence=[cited]):
        said = [model.invoke("hi").content for _ in range(3)]
    assert said[1:] == ["answer 2" if change else "answer 1"] * 2


def test_what_is_made_after_a_lookup_that_failed_is_not_stored(
    cache: StampCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*args: object) -> None:
        raise ZeroDivisionError

    model = CountingChat(cache=cache)
    with monkeypatch.context() as patch:
        patch.setattr(cache._calls, "of", failing)

        def reply(messages: list[BaseMessage], call: int) -> AIMessage:
            patch.undo()
            return AIMessage(f"answer {call}")

        first = model.answering(reply).invoke("hi")
    assert first.response_metadata["cache"]["reason"] == "store failed"
    assert model.invoke("hi").response_metadata["cache"]["reason"] == "not found"
