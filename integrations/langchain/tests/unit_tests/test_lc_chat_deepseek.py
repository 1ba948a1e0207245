"""DeepSeek behind `CachedChatModel`: its API, and vLLM, through ``ChatDeepSeek`` and ``ChatOpenAI``."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.messages import HumanMessage
from langchain_deepseek import ChatDeepSeek
from langchain_openai import ChatOpenAI
from lc_chat_fakes import Seen, bare, cached, report, summed, was_hit

from integrations.langchain.tests.scripted_openai import THOUGHT, Script, scripted_openai
from stampcache import Cache

THINKING = {"extra_body": {"thinking": {"type": "enabled"}}}


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted_openai() as script:
        yield script


def deepseek(script: Script, **given: Any) -> ChatDeepSeek:
    options = {"model": "deepseek-chat", "api_key": "k", "api_base": script.url, "max_retries": 0}
    return ChatDeepSeek(**{**options, **given})


def _streamed(chat: Any, asked: str, way: str, **options: Any) -> Any:
    if way == "stream":
        return summed(chat.stream(asked, **options))

    async def read() -> Any:
        return summed([one async for one in chat.astream(asked, **options)])

    return asyncio.run(read())


@pytest.mark.parametrize("model", ["deepseek-reasoner", "vllm-reasoner"])
@pytest.mark.parametrize("way", ["invoke", "stream", "astream"])
def test_reasoning_is_kept(opened: Cache, script: Script, model: str, way: str) -> None:
    inner = deepseek(script, model=model)

    def ask(chat: Any, way: str) -> Any:
        return chat.invoke("hello") if way == "invoke" else _streamed(chat, "hello", way)

    fresh, chat = ask(inner, way), cached(inner, opened)
    made, found = ask(chat, way), ask(chat, way)
    assert fresh.additional_kwargs["reasoning_content"] == THOUGHT
    for one in (made, found):
        assert one.additional_kwargs == fresh.additional_kwargs
        assert [block["type"] for block in one.content_blocks] == ["reasoning", "text"]
    assert was_hit(found)
    assert bare(found)["content"] == bare(fresh)["content"] == "You said: hello"
    for other in ("invoke", "stream"):
        crossed = ask(chat, other)
        assert crossed.additional_kwargs["reasoning_content"] == THOUGHT
        assert crossed.text == "You said: hello"
    assert len(script.calls) == 2


def test_replayed_reasoning_comes_before_the_answer(opened: Cache, script: Script) -> None:
    chat = cached(deepseek(script, model="deepseek-reasoner"), opened)
    chat.invoke("hello")
    chunks = list(chat.stream("hello"))
    reasoned = [bool(one.additional_kwargs.get("reasoning_content")) for one in chunks]
    first_text = next(place for place, one in enumerate(chunks) if one.text)
    assert all(reasoned[:first_text])
    assert not any(reasoned[first_text:])
    assert first_text > 1


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_what_deepseeks_own_cache_had_is_kept_as_saved(
    opened: Cache, script: Script, way: str
) -> None:
    chat = cached(deepseek(script, stream_usage=True), opened)
    ask = chat.invoke if way == "invoke" else lambda asked: summed(chat.stream(asked))
    made, found = ask("hello"), ask("hello")
    if "cache_read" not in made.usage_metadata.get("input_token_details", {}) and way == "stream":
        pytest.skip("this langchain-deepseek does not tell it of streams")
    if way == "invoke":
        assert made.response_metadata["token_usage"]["prompt_cache_hit_tokens"] == 3
        assert found.response_metadata["token_usage"]["prompt_cache_hit_tokens"] == 0
    assert report(found)["saved"]["cached_tokens"] == 3
    assert report(found)["saved"]["reasoning_tokens"] == 2
    assert opened.stats(everything=True).provider_cached_tokens == 3


def test_thinking_is_another_answer(opened: Cache, script: Script) -> None:
    chat = cached(deepseek(script), opened)
    plain, thought = chat.invoke("hello"), chat.invoke("hello", **THINKING)
    assert "reasoning_content" not in plain.additional_kwargs
    assert thought.additional_kwargs["reasoning_content"] == THOUGHT
    assert was_hit(chat.bind(**THINKING).invoke("hello"))
    always = cached(deepseek(script, **THINKING), opened)
    assert not was_hit(always.invoke("hello"))
    disabled = {"extra_body": {"thinking": {"type": "disabled"}}}
    assert not was_hit(chat.invoke("hello", **disabled))


def test_options_of_vllm_are_keyed_and_sent(opened: Cache, script: Script) -> None:
    chat = cached(ChatOpenAI(model="r1", api_key="k", base_url=script.url, max_retries=0), opened)
    options = [
        {"extra_body": {"guided_json": {"type": "object"}}},
        {"extra_body": {"top_k": 4}},
        {"extra_body": {"chat_template_kwargs": {"thinking": True}}},
        {"temperature": 0.6},
        {"seed": 1},
    ]
    for given in options:
        assert not was_hit(chat.invoke("hello", **given))
    for given in options:
        assert was_hit(summed(chat.stream("hello", **given)))
    assert script.calls[0]["guided_json"] == {"type": "object"}
    assert len(script.calls) == len(options)


def test_two_servers_of_one_model_are_two(opened: Cache, script: Script) -> None:
    with scripted_openai() as other:
        for here in (script, other):
            assert not was_hit(cached(deepseek(here), opened).invoke("hello"))
            assert was_hit(cached(deepseek(here), opened).invoke("hello"))


def test_a_key_that_is_rotated_keeps_the_answers(opened: Cache, script: Script) -> None:
    cached(deepseek(script, api_key="one"), opened).invoke("hello")
    assert was_hit(cached(deepseek(script, api_key="two"), opened).invoke("hello"))
    headers = {"Authorization": "Bearer three", "X-Request-Id": "7"}
    with_headers = cached(deepseek(script, default_headers=headers), opened)
    plain = cached(deepseek(script, default_headers={}), opened)
    with_headers.invoke("hello")
    assert with_headers.explain("hello").request.runs.digest == (
        plain.explain("hello").request.runs.digest
    )


def test_usage_is_counted_once_in_all(opened: Cache, script: Script) -> None:
    counted = UsageMetadataCallbackHandler()
    chat = cached(deepseek(script), opened)
    once = chat.invoke("hello", config={"callbacks": [counted]}).usage_metadata
    for _ in range(2):
        chat.invoke("hello", config={"callbacks": [counted]})
    assert counted.usage_metadata["deepseek-chat"]["total_tokens"] == once["total_tokens"]


def test_the_whole_result_is_as_fresh_but_for_what_was_spent(opened: Cache, script: Script) -> None:
    inner = deepseek(script)
    chat = cached(inner, opened)
    fresh, _, found = (one.generate([[HumanMessage("hello")]]) for one in (inner, chat, chat))
    assert set(found.llm_output) == set(fresh.llm_output)
    spent = found.llm_output["token_usage"]
    assert (spent["total_tokens"], spent["completion_tokens_details"]["reasoning_tokens"]) == (0, 0)
    assert found.generations[0][0].generation_info == fresh.generations[0][0].generation_info


def test_choices_of_one_call_are_not_counted_several_times(opened: Cache, script: Script) -> None:
    chat = cached(deepseek(script, n=3), opened)
    made = chat.generate([[HumanMessage("hello")]]).generations[0]
    assert len(made) == 3
    found = cached(deepseek(script, n=2), opened).invoke("hello")
    assert was_hit(found)
    assert report(found)["saved"]["input_tokens"] == made[0].message.usage_metadata["input_tokens"]


@pytest.mark.parametrize("place", [1, 3])
@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_whose_connection_ends_early_is_not_stored(
    opened: Cache, script: Script, way: str, place: int
) -> None:
    chat = cached(deepseek(script), opened)
    script.cut_after = place
    cut = _streamed(chat, "hello there", way)
    assert cut.text != "You said: hello there"
    script.cut_after = None
    assert not was_hit(_streamed(chat, "hello there", way))
    assert was_hit(_streamed(chat, "hello there", way))


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_that_breaks_is_not_stored(opened: Cache, script: Script, way: str) -> None:
    chat = cached(deepseek(script), opened)
    script.reset_after = 3
    with pytest.raises(Exception):  # noqa: B017 - whatever the client makes of it
        _streamed(chat, "hello there", way)
    script.reset_after = None
    assert not was_hit(_streamed(chat, "hello there", way))


def test_a_model_that_always_streams_tells_the_tokens_of_a_hit(
    opened: Cache, script: Script
) -> None:
    chat, seen = cached(deepseek(script, streaming=True), opened), Seen()
    for hit in (False, True):
        answer = chat.invoke("hello", config={"callbacks": [seen]})
        assert (was_hit(answer), answer.text) == (hit, "You said: hello")
    assert "".join(seen.tokens) == "You said: hello" * 2
    assert script.calls[0]["stream"]
    assert len(script.calls) == 1


def test_a_server_that_fails_is_asked_again(opened: Cache, script: Script) -> None:
    chat = cached(deepseek(script), opened)
    script.fail_with = 500
    for _ in range(2):
        with pytest.raises(Exception, match="broken"):
            chat.invoke("hello")
    script.fail_with = None
    assert not was_hit(chat.invoke("hello"))
    assert len(script.calls) == 3


def test_an_answer_cut_by_its_limit_is_not_stored(opened: Cache, script: Script) -> None:
    chat = cached(deepseek(script, max_tokens=1), opened)
    for way in ("invoke", "stream"):
        one = chat.invoke("hello") if way == "invoke" else summed(chat.stream("hello"))
        assert not was_hit(one)
    assert len(script.calls) == 2


def test_the_models_of_langchain_openai_use_the_responses_format_no_less(opened: Cache) -> None:
    chat = cached(ChatOpenAI(model="m", api_key="k", use_responses_api=True), opened)
    other = cached(ChatOpenAI(model="m", api_key="k"), opened)
    assert chat.explain("hello").request.runs.digest != other.explain("hello").request.runs.digest
