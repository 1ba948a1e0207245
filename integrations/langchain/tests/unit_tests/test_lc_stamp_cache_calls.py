"""What LangChain's two texts leave out of a call, with providers' own classes of models."""

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import Generation
from langchain_core.runnables import RunnableLambda
from langchain_deepseek import ChatDeepSeek
from langchain_fakes import CountingChat, CountingLLM
from langchain_openai import ChatOpenAI, OpenAI
from openai_transport import Provider

import stampcache
from langchain_stampcache import StampCache

HI = [HumanMessage("hi")]


@pytest.fixture
def cache() -> StampCache:
    return StampCache("memory://")


@pytest.fixture
def provider() -> Provider:
    return Provider()


def texts(result: Any) -> list[str]:
    return [each.text for each in result.generations[0]]


# -- A: options, endpoints and fields that no text tells -------------------------------------------


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a1_options_of_one_call_of_a_text_model_are_keyed(
    cache: StampCache, provider: Provider, way: str
) -> None:
    model = OpenAI(model="t", base_url="http://h/v1", cache=cache, **provider.clients())

    def ask(**options: Any) -> str:
        if way == "sync":
            return model.invoke("hi", **options)
        return asyncio.run(model.ainvoke("hi", **options))

    told = [{}, {"max_tokens": 5}, {"max_tokens": 6}, {"temperature": 0}, {"extra_body": {"k": 1}}]
    answers = [ask(**options) for options in told]
    assert len(set(answers)) == len(told)
    assert [ask(**options) for options in told] == answers
    assert provider.calls == len(told)


def test_a1_of_any_text_model_bound_or_in_a_batch(cache: StampCache) -> None:
    model = CountingLLM(cache=cache)
    for bound in (model, model.bind(top_k=1), model.bind(top_k=2)):
        bound.invoke("hi")
        bound.batch(["hi", "hi"])
    assert model.calls == 3


def test_a16_an_option_without_identity_is_not_cached(cache: StampCache) -> None:
    model = CountingLLM(cache=cache)
    for _ in range(2):
        model.invoke("hi", on_token=lambda token: None)
    assert model.calls == 2
    assert cache.cache.stats(everything=True).entries == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 0.9),
        ("temperature", None),
        ("model_name", "other"),
        ("max_tokens", 3),
        ("extra_body", {"top_k": 1}),
        ("reasoning_effort", "low"),
        ("default_headers", {"x-variant": "b"}),
        ("model_kwargs", {"user": "ann"}),
    ],
)
def test_a2_a_changed_field_of_a_live_model_is_another_call(
    cache: StampCache, provider: Provider, field: str, value: Any
) -> None:
    model = ChatOpenAI(
        model="m", temperature=0.1, base_url="http://h/v1", cache=cache, **provider.clients()
    )
    first = model.invoke("hi").content
    before = getattr(model, field)
    setattr(model, field, value)
    assert model.invoke("hi").content != first
    model.invoke("hi")
    assert provider.calls == 2
    setattr(model, field, before)
    assert model.invoke("hi").content == first


@pytest.mark.parametrize(
    ("kind", "field"), [(ChatDeepSeek, "api_base"), (ChatOpenAI, "base_url"), (OpenAI, "base_url")]
)
def test_a3_two_endpoints_of_one_name_are_never_shared(
    cache: StampCache, provider: Provider, kind: Any, field: str
) -> None:
    models = [
        kind(model="m", cache=cache, **{field: f"http://{host}/v1"}, **provider.clients())
        for host in ("one", "two", "one")
    ]
    for model in models:
        model.invoke("hi")
    assert [url.split("/")[2] for url, _ in provider.asked] == ["one", "two"]


@pytest.mark.parametrize("kind", [ChatOpenAI, OpenAI])
def test_a3_an_endpoint_that_the_environment_tells_the_client_is_keyed(
    cache: StampCache, provider: Provider, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    for host in ("one", "two", "one"):
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://{host}/v1")
        kind(model="m", cache=cache, **provider.clients()).invoke("hi")
    assert [url.split("/")[2] for url, _ in provider.asked] == ["one", "two"]


def test_keys_and_how_calls_are_paced_are_not_keyed(cache: StampCache, provider: Provider) -> None:
    for number in range(3):
        given = {**provider.clients(), "api_key": f"sk-{number}"}
        headers = {"Authorization": f"Bearer {number}"}
        ChatDeepSeek(
            model="m",
            api_base="http://h/v1",
            cache=cache,
            timeout=number + 1,
            max_retries=number,
            default_headers=headers,
            tags=[str(number)],
            **given,
        ).invoke("hi")
    assert provider.calls == 1


def test_who_asks_with_the_texts_alone_finds_what_a_plain_call_stored(cache: StampCache) -> None:
    model = CountingLLM(cache=cache)
    model.invoke("hi")
    params = {**model._identifying_params, "_type": model._llm_type, "stop": None}
    assert cache.lookup("hi", str(sorted(params.items()))) is not None


# -- B13: how many answers -------------------------------------------------------------------------


def test_b13_three_answers_serve_two_and_not_five(cache: StampCache, provider: Provider) -> None:
    def asking(count: int) -> ChatOpenAI:
        given = {"model": "m", "base_url": "http://h/v1", "cache": cache, **provider.clients()}
        return ChatOpenAI(n=count, **given)

    three = texts(asking(3).generate([HI]))
    assert texts(asking(2).generate([HI])) == three[:2]
    assert texts(asking(1).generate([HI])) == three[:1]
    assert provider.calls == 1
    five = texts(asking(5).generate([HI]))
    assert (len(five), provider.calls) == (5, 2)
    assert texts(asking(3).generate([HI])) == five[:3]
    assert provider.calls == 2


def test_b13_by_the_options_of_a_call(cache: StampCache, provider: Provider) -> None:
    model = ChatDeepSeek(model="m", api_base="http://h/v1", cache=cache, n=4, **provider.clients())
    three = texts(model.generate([HI], n=3))
    assert texts(model.generate([HI], n=2)) == three[:2]
    assert provider.calls == 1
    assert len(texts(model.generate([HI]))) == 4
    assert provider.calls == 2


def test_b13_text_models_too(cache: StampCache, provider: Provider) -> None:
    given = {"model": "t", "base_url": "http://h/v1", "cache": cache, **provider.clients()}
    three = texts(OpenAI(n=3, best_of=3, **given).generate(["hi"]))
    assert texts(OpenAI(n=2, best_of=3, **given).generate(["hi"])) == three[:2]
    assert provider.calls == 1
    OpenAI(n=2, best_of=2, **given).generate(["hi"])
    assert provider.calls == 2
    for _ in range(2):
        result = OpenAI(n=1, best_of=3, **given).generate(["hi"], n=2)
        assert len(texts(result)) == 2
    assert provider.calls == 3


def test_b13_a_number_that_counts_something_else_is_never_shared(cache: StampCache) -> None:
    for count in (5, 1, 5):
        listed = f"[('model', 'm'), ('n', {count})]"
        assert cache.lookup("p", listed) is None
        cache.update("p", listed, [Generation(text=f"for {count}")])
        if count == 5:
            assert cache.lookup("p", listed) is None
    assert cache.lookup("p", "[('model', 'm'), ('n', 1)]") == [Generation(text="for 1")]


# -- E: who asks, by the config of a direct call ---------------------------------------------------


async def test_e1_the_metadata_of_a_direct_call_tells_the_tenant() -> None:
    cache = StampCache("memory://", tenants="required")
    model = CountingChat(cache=cache)
    a, b = ({"metadata": {"tenant": name}} for name in "ab")
    model.invoke("hi", a)
    await model.ainvoke("hi", a)
    model.batch(["hi", "hi"], [a, b])
    await model.abatch(["hi", "hi"], [b, a])
    assert model.calls == 2
    with stampcache.scope(tenant="b"):
        assert model.invoke("hi", a).response_metadata["cache"]["hit"]


# -- H, K: what comes back -------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", [False, True])
def test_h14_k1_k3_reasoning_comes_back_and_tokens_are_counted_once(
    cache: StampCache, provider: Provider, *, streaming: bool
) -> None:
    model = ChatDeepSeek(
        model="m",
        api_base="http://h/v1",
        cache=cache,
        streaming=streaming,
        **provider.clients(),
    )
    handler = UsageMetadataCallbackHandler()
    made, hit, again = (model.invoke("hi", {"callbacks": [handler]}) for _ in range(3))
    assert provider.calls == 1
    assert hit.content == again.content == made.content
    assert hit.additional_kwargs["reasoning_content"] == "because"
    [reported] = handler.usage_metadata.values()
    assert (reported["input_tokens"], reported["output_tokens"]) == (11, 7)
    assert reported["input_token_details"]["cache_read"] == 5
    assert reported["output_token_details"]["reasoning"] == 3
    saved = hit.response_metadata["cache"]["saved"]
    assert (saved["cached_tokens"], saved["reasoning_tokens"]) == (5, 3)
    assert made.response_metadata["cache"] == {
        "hit": False,
        "level": None,
        "similarity": None,
        "reason": "not found",
        "entry_id": None,
        "saved": {},
    }


def test_h11_the_report_of_a_miss_is_no_part_of_what_is_stored(cache: StampCache) -> None:
    model = CountingChat(cache=cache)
    reports = [model.invoke("hi").response_metadata["cache"]["hit"] for _ in range(3)]
    assert reports == [False, True, True]


# -- who asks the cache ----------------------------------------------------------------------------


def test_what_another_part_asks_inside_of_a_call_is_not_taken_for_that_call(
    cache: StampCache,
) -> None:
    made = [Generation(text="kept")]
    cache.update("p", "[('m', 1)]", made)
    found = []

    def reply(messages: list[Any], call: int) -> AIMessage:
        found.append(cache.lookup("p", "[('m', 1)]"))
        return AIMessage("made")

    outer = CountingChat(cache=cache, base_url="http://outer").answering(reply)
    outer.invoke("hi", max_tokens=3)
    assert found == [made]
    text = CountingLLM(cache=cache)
    RunnableLambda(lambda asked: text.invoke(asked, max_tokens=3)).invoke("hi")
    assert text.invoke("hi", max_tokens=3) == "hi!"
    assert text.calls == 1


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_an_update_without_its_lookup_is_stored_where_the_next_lookup_is(
    cache: StampCache, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(cache._pending, "take", lambda *_: None)
    model = CountingLLM(cache=cache)
    for _ in range(2):
        if way == "sync":
            model.invoke("hi", max_tokens=3)
        else:
            await model.ainvoke("hi", max_tokens=3)
    model.invoke("hi")
    assert model.calls == 2
