"""Whatever a user calls a model is asked in its own way, and its tokens are read."""

import asyncio
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.language_models.llms import LLM
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM, MockLLM
from llama_index.core.llms.callbacks import llm_completion_callback

from langchain_stampcache import CachedChatModel, StampCache
from stampcache import Cache, Freshness, Hit, Request, Stale, Usage, open_cache
from stampcache.errors import ConfigError, JudgeError
from stampcache.judging import AskModel, Reply, as_judge, as_model
from stampcache.testing import FakeClock
from tests.test_judging import facts

FRESH = '{"fresh": true, "reason": "r"}'


def asked(model: AskModel) -> Reply:
    """Ask in both ways; both must say the same."""
    reply = model.ask("prompt")
    if model.awaits:
        assert asyncio.run(model.aask("prompt")) == reply
    return reply


class Chat(BaseChatModel):
    """A chat model with usage, which keeps the options that it was called with."""

    content: Any = FRESH
    model_name: str = "deepseek-chat"
    options: list[dict[str, Any]] = []  # noqa: RUF012 - pydantic copies it

    @property
    def _llm_type(self) -> str:
        return "test"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.options.append(kwargs)
        usage = {"input_tokens": 300, "output_tokens": 20, "total_tokens": 320}
        message = AIMessage(content=self.content, usage_metadata=usage)  # type: ignore[arg-type]  # given as the test has it
        return ChatResult(generations=[ChatGeneration(message=message)])


class Completion(CustomLLM):
    """A LlamaIndex LLM with usage."""

    told: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies it

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="local")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=FRESH, additional_kwargs=self.told)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        raise NotImplementedError


def test_a_langchain_chat_model() -> None:
    model = as_model(Chat())
    assert model.name == "deepseek-chat"
    assert asked(model) == Reply(FRESH, Usage(input_tokens=300, output_tokens=20))


def test_a_model_keeps_its_name_whatever_is_wrapped_around_it() -> None:
    chat = Chat()
    for wrapped in (
        chat.bind(temperature=0),
        chat.with_retry(),
        chat.bind(stop=["x"]).with_retry().with_fallbacks([Chat(model_name="other")]),
        chat.with_config(tags=["judge"]),
    ):
        model = as_model(wrapped)
        assert model.name == "deepseek-chat"
        assert asked(model).text == FRESH
        assert as_model(wrapped, json_mode=True).name == "deepseek-chat"


class Native(Chat):
    """A chat model that answers to tasks by itself."""

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(*args, **kwargs)


class NativeCompletion(Completion):
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        return self.complete(prompt, formatted=formatted, **kwargs)


def test_a_model_that_is_async_in_name_alone_blocks_no_event_loop() -> None:
    """Its thread is the judge's own: one of the pool would be lost while it hangs."""
    for sync in (Chat(), Chat().bind(stop=["x"]), Completion(), MockLLM()):
        assert not as_model(sync).awaits
    for native in (Native(), Native().bind(stop=["x"]).with_retry(), NativeCompletion()):
        assert as_model(native).awaits
        assert asked(as_model(native)).text == FRESH


@pytest.mark.parametrize("kind", [Chat, Completion])
def test_the_deadline_is_kept_for_tasks_by_a_model_without_async(kind: Any) -> None:
    held = threading.Event()

    class Slow(kind):  # type: ignore[misc]  # either of two classes
        def _generate(self, *args: Any, **kwargs: Any) -> Any:
            held.wait(5.0)
            return super()._generate(*args, **kwargs)

        def complete(self, *args: Any, **kwargs: Any) -> Any:
            held.wait(5.0)
            return super().complete(*args, **kwargs)

    async def main() -> tuple[str, int]:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.001)

        judge = as_judge(
            Slow(), Freshness(deadline_s=0.1), kinds=(), now=time.time, event=lambda *_: None
        )
        beside = asyncio.create_task(others())
        said = await judge.ajudge(facts())
        beside.cancel()
        return said.failure, turns

    failure, turns = asyncio.run(main())
    held.set()
    assert failure == "the deadline passed"
    assert turns > 3, "the event loop went on"


def test_a_langchain_chat_model_that_replies_in_blocks() -> None:
    blocks = [{"type": "text", "text": "Reason. "}, {"type": "text", "text": FRESH}]
    assert asked(as_model(Chat(content=blocks))).text == f"Reason. {FRESH}"


def test_a_langchain_chat_model_without_usage() -> None:
    fake = GenericFakeChatModel(messages=iter([AIMessage(FRESH)] * 2))
    assert asked(as_model(fake)) == Reply(FRESH)


def test_a_langchain_llm_and_a_chain() -> None:
    class Text(LLM):
        @property
        def _llm_type(self) -> str:
            return "test"

        def _call(self, prompt: str, stop: Any = None, run_manager: Any = None, **_: Any) -> str:
            return FRESH

    assert asked(as_model(Text())) == Reply(FRESH)
    assert asked(as_model(RunnableLambda(lambda _prompt: FRESH))) == Reply(FRESH)
    chain = Chat().bind(stop=["x"])
    assert asked(as_model(chain)).usage.input_tokens == 300


def test_json_mode_is_told_to_a_langchain_model_and_to_nobody_else() -> None:
    chat = Chat(options=[])
    asked(as_model(chat))
    assert all("response_format" not in options for options in chat.options)
    chat = Chat(options=[])
    model = as_model(chat, json_mode=True)
    assert model.name == "deepseek-chat"
    asked(model)
    assert {str(options["response_format"]) for options in chat.options} == {
        "{'type': 'json_object'}"
    }
    assert as_model(lambda _prompt: FRESH, json_mode=True).ask("p") == Reply(FRESH)
    assert as_model(Completion(), json_mode=True).ask("p") == Reply(FRESH)


def test_a_llama_index_llm() -> None:
    told = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}
    reply = asked(as_model(Completion(told=told)))
    assert reply == Reply(FRESH, Usage(input_tokens=300, output_tokens=20))
    assert asked(as_model(Completion())) == Reply(FRESH)
    assert asked(as_model(MockLLM())).text == "prompt"


def test_functions_of_each_kind() -> None:
    async def coroutine(prompt: str) -> str:
        return f"{prompt}!"

    class Object:
        def __call__(self, prompt: str) -> str:
            return f"{prompt}!"

    class Awaited:
        async def __call__(self, prompt: str) -> str:
            return f"{prompt}!"

    def two(mark: str, prompt: str) -> str:
        return prompt + mark

    async def atwo(mark: str, prompt: str) -> str:
        return prompt + mark

    for function in (Object(), partial(two, "!"), lambda prompt: f"{prompt}!"):
        model = as_model(function)
        assert not model.awaits
        assert model.ask("p") == Reply("p!")
        with pytest.raises(JudgeError, match="no coroutine function"):
            asyncio.run(model.aask("p"))
    for awaited in (coroutine, Awaited(), partial(atwo, "!")):
        model = as_model(awaited)
        assert model.awaits
        assert asyncio.run(model.aask("p")) == Reply("p!")
        with pytest.raises(JudgeError, match="use it with an AsyncCache"):
            model.ask("p")
    assert as_model(coroutine).name == "coroutine"
    assert as_model(Object()).name == "Object"


def test_a_function_that_turns_out_to_be_a_coroutine_function() -> None:
    async def coroutine(prompt: str) -> str:
        return prompt

    with pytest.raises(JudgeError, match="returned a coroutine without a text"):
        as_model(lambda prompt: coroutine(prompt)).ask("p")


@pytest.mark.parametrize("told", [None, "many", {}, {"input_tokens": "3"}, {"input_tokens": True}])
def test_tokens_that_are_no_numbers_are_unknown(told: object) -> None:
    class Message:
        content = FRESH
        usage_metadata = told

    assert as_model(lambda _prompt: Message()).ask("p") == Reply(FRESH)


@pytest.mark.parametrize("content", [None, 3, [], {"a": 1}])
def test_a_message_without_a_text_is_refused(content: object) -> None:
    class Message:
        pass

    message = Message()
    message.content = content  # type: ignore[attr-defined]  # the type says less than the object
    with pytest.raises(JudgeError, match="without a text"):
        as_model(lambda _prompt: message).ask("p")


@pytest.mark.parametrize("wrong", [7, "deepseek-chat", object(), ["a"]])
def test_what_is_no_model_is_refused_when_the_cache_is_opened(wrong: object) -> None:
    with pytest.raises(ConfigError, match=r"judge= is a .*; give a LangChain chat model"):
        open_cache("memory://", judge=wrong)


def test_no_callback_around_the_request_sees_the_judge() -> None:
    """A judge on the path of a chain must not stream into what the chain streams."""

    class Seen(BaseCallbackHandler):
        def __init__(self) -> None:
            self.models = 0

        def on_chat_model_start(self, *_: Any, **__: Any) -> None:
            self.models += 1

    judge = as_judge(Chat(), Freshness(), kinds=(), now=lambda: 0.0, event=lambda *_: None)

    def sync(_: str) -> Sequence[bool]:
        return [judge.judge(facts()).fresh]

    async def aio(_: str) -> Sequence[bool]:
        return [(await judge.ajudge(facts())).fresh]

    chain, seen = RunnableLambda(sync, aio), Seen()
    assert chain.invoke("q", {"callbacks": [seen]}) == [True]
    assert asyncio.run(chain.ainvoke("q", {"callbacks": [seen]})) == [True]
    assert seen.models == 0


# -- in a cache ------------------------------------------------------------------------------------


def doubted(judge: object, **options: Any) -> Cache:
    """Return a cache whose one answer is doubted, and who is asked about it on the path."""
    clock = FakeClock()
    fresh = Freshness(on_path=True, deadline_s=30.0)
    cache = Cache("memory://", judge=judge, freshness=fresh, clock=clock, ttl_s=3_600.0, **options)
    cache.update(Request(question="q"), "a", outcome=cache.lookup(Request(question="q")))
    clock.advance(1_800.0)
    return cache


@pytest.mark.parametrize(
    "judge",
    [
        Chat(),
        Completion(told={"prompt_tokens": 300, "completion_tokens": 20}),
        GenericFakeChatModel(messages=iter([AIMessage(FRESH)] * 2)),
        RunnableLambda(lambda _prompt: FRESH),
        lambda _prompt: FRESH,
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_each_of_them_judges_an_answer(judge: object, is_async: bool) -> None:
    with doubted(judge) as cache:
        asked = Request(question="q")
        outcome = asyncio.run(cache.aio.lookup(asked)) if is_async else cache.lookup(asked)
        assert isinstance(outcome, Hit)
        told = cache.stats(everything=True).judge
        known = isinstance(judge, Chat | Completion)
        assert (told.fresh, told.tokens) == (1, 320 if known else 0)


def test_a_coroutine_function_judges_for_tasks_and_says_so_to_threads() -> None:
    async def judge(_prompt: str) -> str:
        return FRESH

    with doubted(judge) as cache:
        outcome = cache.lookup(Request(question="q"))
        assert isinstance(outcome, Stale)
        assert "use it with an AsyncCache" in outcome.detail
        assert isinstance(asyncio.run(cache.aio.lookup(Request(question="q"))), Hit)


def test_no_cache_of_ours_keeps_or_gives_a_verdict() -> None:
    """Neither the process-wide one of LangChain nor one around the judge itself."""
    own = Cache("memory://")
    set_llm_cache(StampCache(own))
    try:
        with doubted(CachedChatModel(inner=Chat(), cache=own)) as cache:
            assert isinstance(cache.lookup(Request(question="q")), Hit)
            assert cache.stats(everything=True).judge.tokens == 320, "it was asked, not looked up"
    finally:
        set_llm_cache(None)
    assert own.core.store.stats().entries == 0
