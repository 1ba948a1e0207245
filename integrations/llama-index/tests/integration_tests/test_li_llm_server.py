"""DeepSeek's model and one behind vLLM, cached, against a scripted server of their protocol."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ThinkingBlock, ToolCallBlock
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.prompts import PromptTemplate
from llama_index.llms.deepseek import DeepSeek
from llama_index.llms.openai_like import OpenAILike
from llama_llm_fakes import ADD, bare, cached, user
from openai import BadRequestError
from openai_server import OpenAIServer, serving
from pydantic import BaseModel

import stampcache
from llama_index_stampcache import CachedLLM
from stampcache import Cache

Make: TypeAlias = Callable[..., LLM]


def deepseek(server: OpenAIServer, **options: Any) -> LLM:
    model = DeepSeek(
        model="deepseek-chat", api_key="sk-secret", api_base=server.url, max_retries=0, **options
    )
    server.models.append(model)
    return model


def vllm(server: OpenAIServer, **options: Any) -> LLM:
    model = OpenAILike(
        model="deepseek-r1",
        api_key="sk-secret",
        api_base=server.url,
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
        **options,
    )
    server.models.append(model)
    return model


def completing(server: OpenAIServer, **options: Any) -> LLM:
    """A model behind the endpoint of completions."""
    model = OpenAILike(
        model="base", api_key="sk-secret", api_base=server.url, max_retries=0, **options
    )
    server.models.append(model)
    return model


both = pytest.mark.parametrize("make", [deepseek, vllm])


async def asked(llm: Any, way: str, text: str) -> list[Any]:
    match way:
        case "chat":
            return [llm.chat(user(text))]
        case "achat":
            return [await llm.achat(user(text))]
        case "stream_chat":
            return list(llm.stream_chat(user(text)))
        case "astream_chat":
            return [one async for one in await llm.astream_chat(user(text))]
        case "complete":
            return [llm.complete(text)]
        case "acomplete":
            return [await llm.acomplete(text)]
        case "stream_complete":
            return list(llm.stream_complete(text))
    return [one async for one in await llm.astream_complete(text)]


WAYS = ["chat", "achat", "stream_chat", "astream_chat"]
COMPLETIONS = ["complete", "acomplete", "stream_complete", "astream_complete"]


@pytest.mark.parametrize("way", [*WAYS, *COMPLETIONS])
@pytest.mark.parametrize("make", [deepseek, vllm, completing])
async def test_a_hit_equals_a_fresh_answer(
    make: Make, way: str, server: OpenAIServer, cache: Cache
) -> None:
    server.reasoning = "reasoning" if make is vllm else "reasoning_content"
    fresh = await asked(make(server), way, "hello")
    llm = CachedLLM(make(server), cache=cache)
    first, hit = await asked(llm, way, "hello"), await asked(llm, way, "hello")
    assert server.calls == 2
    assert [bare(one) for one in first] == [bare(one) for one in fresh]
    assert [bare(one) for one in hit] == [bare(one) for one in fresh]
    assert cached(hit[-1])["hit"]
    assert hit[-1].raw["choices"][0]["finish_reason"] == "stop"
    assert hit[-1].raw["model"] == fresh[-1].raw.model


@both
@pytest.mark.parametrize("way", WAYS)
async def test_thoughts_and_tokens_of_deepseek_are_kept(
    make: Make, way: str, server: OpenAIServer, cache: Cache
) -> None:
    server.reasoning = "reasoning" if make is vllm else "reasoning_content"
    llm = CachedLLM(make(server), cache=cache)
    first, hit = await asked(llm, way, "hello"), await asked(llm, way, "hello")
    for told in (first, hit):
        thought = told[-1].message.blocks[0]
        assert isinstance(thought, ThinkingBlock)
        assert thought.content == "thinking of hello"
    assert first[-1].raw.usage.prompt_cache_hit_tokens == 8
    assert hit[-1].raw["usage"]["prompt_cache_hit_tokens"] == 0
    assert hit[-1].raw["saved_usage"]["prompt_cache_hit_tokens"] == 8
    assert hit[-1].additional_kwargs["total_tokens"] == 0
    saved = cached(hit[-1])["saved"]
    assert (saved["input_tokens"], saved["output_tokens"]) == (11, 6)
    assert (saved["cached_tokens"], saved["reasoning_tokens"]) == (8, 2)
    assert saved["latency_s"] > 0


@pytest.mark.parametrize("way", ["chat", "stream_chat", "complete", "stream_complete"])
@pytest.mark.parametrize("make", [deepseek, vllm, completing])
async def test_k1_three_calls_one_of_them_real(
    make: Make, way: str, server: OpenAIServer, cache: Cache
) -> None:
    counter = TokenCountingHandler(tokenizer=str.split)
    inner = make(server, callback_manager=CallbackManager([counter]))
    llm = CachedLLM(inner, cache=cache)
    for _ in range(3):
        await asked(llm, way, "hello")
    assert (counter.prompt_llm_token_count, counter.completion_llm_token_count) == (11, 6)


@both
async def test_tools_that_are_called(make: Make, server: OpenAIServer, cache: Cache) -> None:
    llm: Any = CachedLLM(make(server), cache=cache)
    fresh: Any = make(server)
    expected = bare(fresh.chat_with_tools([ADD], user_msg="add 2 3"))
    for _ in range(2):
        told = llm.chat_with_tools([ADD], user_msg="add 2 3")
        assert bare(told) == expected
        (call,) = [one for one in told.message.blocks if isinstance(one, ToolCallBlock)]
        (kept,) = told.message.additional_kwargs["tool_calls"]
        assert kept.id == call.tool_call_id
        assert kept.function.arguments == call.tool_kwargs
        assert llm.predict_and_call([ADD], user_msg="add 2 3").response == "5"
    told = []
    for _ in range(2):
        chunks = await llm.astream_chat_with_tools([ADD], user_msg="add 2 3")
        # at once, as the provider goes on changing the calls in its chunks
        told.append([(bare(one), cached(one)["hit"]) async for one in chunks])
    assert [one for one, _ in told[0]] == [one for one, _ in told[1]]
    assert all(hit for _, hit in told[1])
    assert server.calls == 3


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
@both
@pytest.mark.parametrize("streaming", [True, False])
async def test_an_agent_asks_its_provider_once(
    make: Make, streaming: bool, server: OpenAIServer, cache: Cache
) -> None:
    llm = CachedLLM(make(server), cache=cache)

    async def dialogue(model: LLM) -> list[str]:
        agent = FunctionAgent(tools=[ADD], llm=model, streaming=streaming)
        memory = ChatMemoryBuffer.from_defaults(token_limit=10_000)
        texts = ("add 2 3", "add 4 5")
        return [str(await agent.run(user_msg=text, memory=memory)) for text in texts]

    expected = await dialogue(make(server))
    assert expected == ["the sum is 5", "the sum is 9"]
    asked_by_one = server.calls
    assert [await dialogue(llm) for _ in range(3)] == [expected] * 3
    assert server.calls == 2 * asked_by_one == 8


class Person(BaseModel):
    name: str
    age: int


@pytest.mark.parametrize(
    "options", [{}, {"should_use_structured_outputs": True}], ids=["tools", "response_format"]
)
@both
async def test_structured_predictions_ask_as_without_the_cache(
    make: Make, options: dict[str, Any], server: OpenAIServer, cache: Cache
) -> None:
    prompt = PromptTemplate("Invent a person of {town}.")
    expected = make(server, **options).structured_predict(Person, prompt, town="Bern")
    llm = CachedLLM(make(server, **options), cache=cache)
    told = [llm.structured_predict(Person, prompt, town="Bern") for _ in range(2)]
    told.append(await llm.astructured_predict(Person, prompt, town="Bern"))
    assert told == [expected] * 3
    assert server.calls == 2
    assert server.bodies[0] == server.bodies[1]
    for _ in range(2):
        partial = list(llm.stream_structured_predict(Person, prompt, town="Bern"))
        assert partial[-1] == expected
    stream = await llm.astream_structured_predict(Person, prompt, town="Bern")
    assert [one async for one in stream][-1] == expected
    assert server.calls == 3
    assert llm.as_structured_llm(Person).complete(prompt.format(town="Bern")).raw == expected


@both
async def test_what_is_sent_is_what_would_be_sent(
    make: Make, server: OpenAIServer, cache: Cache
) -> None:
    messages = [
        ChatMessage(role="system", content="Be brief."),
        *user("hello"),
        ChatMessage(role="assistant", content="yes"),
        *user("why?"),
    ]
    options: dict[str, Any] = {"extra_body": {"top_k": 3}, "temperature": 0.9, "stop": ["."]}
    make(server).chat(messages, **options)
    CachedLLM(make(server), cache=cache).chat(messages, **options)
    assert server.bodies[0] == server.bodies[1]
    assert server.bodies[1]["top_k"] == 3


@both
async def test_a3_two_servers_never_share(make: Make, server: OpenAIServer, cache: Cache) -> None:
    async with serving() as other:
        for each in (server, other):
            assert not cached(CachedLLM(make(each), cache=cache).chat(user("hello")))["hit"]
        assert (server.calls, other.calls) == (1, 1)


@both
async def test_failures_are_the_callers_and_store_nothing(
    make: Make, server: OpenAIServer, cache: Cache
) -> None:
    llm = CachedLLM(make(server), cache=cache)
    for way in WAYS:
        with pytest.raises(BadRequestError, match="refused"):
            await asked(llm, way, "fail now")
    for way in (*WAYS, *COMPLETIONS):
        await asked(llm, way, "cut it off")
    assert server.calls == 12
    assert cache.stats().entries == 0


@both
@pytest.mark.parametrize("way", ["stream_chat", "astream_chat"])
async def test_a_stream_that_lost_its_connection_is_not_stored(
    make: Make, way: str, server: OpenAIServer, cache: Cache
) -> None:
    llm = CachedLLM(make(server), cache=cache)
    for _ in range(2):
        await asked(llm, way, "drop it")
    assert server.calls == 2
    assert cache.stats().entries == 0


@both
async def test_b8_turns_after_a_hit(make: Make, server: OpenAIServer, cache: Cache) -> None:
    llm = CachedLLM(make(server), cache=cache)

    def dialogue() -> list[Any]:
        messages: list[ChatMessage] = []
        told: list[Any] = []
        for text in ("hello", "why?", "and then?"):
            messages += user(text)
            told.append(llm.chat(messages))
            messages.append(told[-1].message)
        return told

    first, second = dialogue(), dialogue()
    assert server.calls == 3
    assert _hits(second) == [True] * 3
    assert [bare(one) for one in first] == [bare(one) for one in second]


async def test_b8_turns_of_a_model_that_completes(server: OpenAIServer, cache: Cache) -> None:
    """Its messages carry their tokens, which are no part of what is asked next."""
    llm = CachedLLM(completing(server), cache=cache)
    first = llm.chat(user("hello"))
    assert first.message.additional_kwargs["total_tokens"] == 17
    hit = llm.chat(user("hello"))
    told = [llm.chat([*user("hello"), one.message, *user("why?")]) for one in (first, hit)]
    assert _hits(told) == [False, True]
    assert server.calls == 2


async def test_tenants_of_one_model(server: OpenAIServer, cache: Cache) -> None:
    llm = CachedLLM(deepseek(server), cache=cache)
    for tenant in ("acme", "other", "acme"):
        with stampcache.scope(tenant=tenant):
            await asked(llm, "astream_chat", "hello")
    assert server.calls == 2


def _hits(told: Sequence[Any]) -> list[bool]:
    return [cached(one)["hit"] for one in told]
