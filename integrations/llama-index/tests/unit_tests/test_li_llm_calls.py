"""The eight calls of a cached model: equal to the uncached one's, but for time, cost and ids."""

import copy
import pickle
from typing import Any

import pytest
from llama_fakes import DigestLLM
from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager, CBEventType, TokenCountingHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import LLM, ChatMessage, MockLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.prompts import PromptTemplate
from llama_llm_fakes import ADD, ScriptedLLM, bare, cached, user
from pydantic import BaseModel

from llama_index_stampcache import CachedLLM, CachedQueryEngine, CacheHitEvent, CacheMissEvent
from stampcache import AsyncCache, Cache, ConfigError
from stampcache.testing import FakeClock


class Heard(BaseEventHandler):
    """Notes the events of the framework."""

    names: list[str]
    told: list[Any]

    @classmethod
    def class_name(cls) -> str:
        return "Heard"

    def handle(self, event: Any, **_: Any) -> None:
        name = event.class_name()
        if name.startswith("LLM"):
            self.names.append(name)
        if isinstance(event, CacheHitEvent | CacheMissEvent):
            self.told.append(event)


@pytest.fixture
def heard() -> Any:
    root, handler = get_dispatcher(), Heard(names=[], told=[])
    root.add_event_handler(handler)
    yield handler
    root.event_handlers.remove(handler)


@pytest.fixture
def inner() -> ScriptedLLM:
    return ScriptedLLM()


@pytest.fixture
def llm(inner: ScriptedLLM, cache: Cache) -> CachedLLM:
    return CachedLLM(inner, cache=cache)


def ask(llm: Any, way: str, text: str, **kwargs: Any) -> Any:
    match way:
        case "chat":
            return llm.chat(user(text), **kwargs)
        case "complete":
            return llm.complete(text, **kwargs)
        case "stream_chat":
            return list(llm.stream_chat(user(text), **kwargs))[-1]
    return list(llm.stream_complete(text, **kwargs))[-1]


async def aask(llm: Any, way: str, text: str, **kwargs: Any) -> Any:
    match way:
        case "chat":
            return await llm.achat(user(text), **kwargs)
        case "complete":
            return await llm.acomplete(text, **kwargs)
        case "stream_chat":
            return [one async for one in await llm.astream_chat(user(text), **kwargs)][-1]
    return [one async for one in await llm.astream_complete(text, **kwargs)][-1]


WAYS = ["chat", "complete", "stream_chat", "stream_complete"]


@pytest.mark.parametrize("way", WAYS)
def test_a_second_call_hits_and_equals_a_fresh_one(
    way: str, llm: CachedLLM, inner: ScriptedLLM
) -> None:
    first, second = ask(llm, way, "hello"), ask(llm, way, "hello")
    assert inner.calls == 1
    assert [cached(one)["hit"] for one in (first, second)] == [False, True]
    assert bare(first) == bare(second) == bare(ask(ScriptedLLM(), way, "hello"))
    assert second.raw["choices"] == first.raw["choices"]


@pytest.mark.parametrize("way", WAYS)
async def test_sync_and_async_share_their_answers(
    way: str, llm: CachedLLM, inner: ScriptedLLM
) -> None:
    first = await aask(llm, way, "hello")
    second, third = ask(llm, way, "hello"), await aask(llm, way, "hello")
    assert inner.calls == 1
    assert cached(second)["hit"]
    assert cached(third)["hit"]
    assert bare(first) == bare(second) == bare(third)


@pytest.mark.parametrize("way", WAYS)
async def test_k1_a_hit_costs_nothing_and_tells_what_was_saved(way: str, llm: CachedLLM) -> None:
    first, hit = await aask(llm, way, "hello"), await aask(llm, way, "hello")
    assert first.raw["usage"]["prompt_cache_hit_tokens"] == 4
    assert set(hit.raw["usage"]) == set(first.raw["usage"])
    assert hit.raw["usage"]["prompt_tokens"] == hit.raw["usage"]["total_tokens"] == 0
    assert hit.raw["saved_usage"] == first.raw["usage"]
    assert hit.raw["id"] is None
    saved = cached(hit)["saved"]
    assert (saved["input_tokens"], saved["output_tokens"]) == (7, 5)
    assert (saved["cached_tokens"], saved["reasoning_tokens"]) == (4, 2)
    assert all(
        hit.additional_kwargs[name] == 0 for name in first.additional_kwargs if "_tokens" in name
    )


@pytest.mark.parametrize("way", WAYS)
def test_k1_the_token_counter_counts_a_hit_as_nothing(way: str, cache: Cache) -> None:
    counter = TokenCountingHandler(tokenizer=str.split)
    inner = ScriptedLLM(callback_manager=CallbackManager([counter]))
    llm = CachedLLM(inner, cache=cache)
    for _ in range(3):
        ask(llm, way, "hello")
    assert (counter.prompt_llm_token_count, counter.completion_llm_token_count) == (7, 5)
    assert len(counter.llm_token_counts) == 3


@pytest.mark.parametrize("way", WAYS)
async def test_events_fire_as_without_the_cache(way: str, llm: CachedLLM, heard: Heard) -> None:
    ask(ScriptedLLM(), way, "hello")
    alone = list(heard.names)
    for each in ("miss", "hit"):
        heard.names.clear()
        ask(llm, way, "hello")
        assert heard.names == alone, each
        heard.names.clear()
        await aask(llm, way, "hello")
        assert heard.names == alone, each


@pytest.mark.parametrize("way", WAYS)
async def test_what_the_cache_did_is_an_event(way: str, llm: CachedLLM, heard: Heard) -> None:
    ask(llm, way, "hello")
    await aask(llm, way, "hello")
    ask(llm, way, "hello", client=object())
    told = [(type(one), one.seam, one.reason) for one in heard.told]
    assert told == [
        (CacheMissEvent, "model", "not found"),
        (CacheHitEvent, "model", "same tokens"),
        (CacheMissEvent, "model", "uncacheable"),
    ]
    assert heard.told[1].saved["output_tokens"] == 5


def test_the_callback_manager_hears_each_call_once(cache: Cache) -> None:
    from llama_index.core.callbacks import LlamaDebugHandler

    debug = LlamaDebugHandler(print_trace_on_end=False)
    llm = CachedLLM(ScriptedLLM(callback_manager=CallbackManager([debug])), cache=cache)
    for _ in range(2):
        llm.chat(user("hello"))
        list(llm.stream_complete("hello"))
    assert len(debug.get_event_pairs(CBEventType.LLM)) == 4


def test_events_of_a_stream_that_is_left_end(cache: Cache) -> None:
    from llama_index.core.callbacks import LlamaDebugHandler

    debug = LlamaDebugHandler(print_trace_on_end=False)
    llm = CachedLLM(ScriptedLLM(callback_manager=CallbackManager([debug])), cache=cache)
    list(llm.stream_chat(user("hello")))
    replay = llm.stream_chat(user("hello"))
    next(replay)
    replay.close()
    assert len(debug.get_event_pairs(CBEventType.LLM)) == 2


# -- what it is ------------------------------------------------------------------------------------


def test_it_is_what_its_inner_model_is(cache: Cache) -> None:
    for inner, calls in ((ScriptedLLM(), True), (DigestLLM(), False), (MockLLM(), False)):
        llm = CachedLLM(inner=inner, cache=cache)
        assert isinstance(llm, CachedLLM)
        assert isinstance(llm, type(inner))
        assert isinstance(llm, FunctionCallingLLM) is calls
        assert llm.metadata == inner.metadata
        assert llm.metadata.is_function_calling_model is calls
        assert llm.class_name() == inner.class_name()
        assert not hasattr(inner, "to_payload") or llm.to_payload() == inner.to_payload()
        assert llm.inner is inner
        assert llm.cache is cache


def test_fields_are_shared_both_ways(llm: CachedLLM, inner: ScriptedLLM) -> None:
    view: Any = llm
    view.temperature = 0.5
    inner.additional_kwargs = {"top_k": 3}
    assert (inner.temperature, view.additional_kwargs) == (0.5, {"top_k": 3})
    view.callback_manager = manager = CallbackManager([])
    assert inner.callback_manager is manager
    view.system_prompt = "Be brief."
    assert inner.system_prompt == "Be brief."


def test_it_stands_as_the_model_of_all(llm: CachedLLM) -> None:
    before = Settings._llm
    try:
        Settings.llm = llm
        assert Settings.llm is llm
    finally:
        Settings._llm = before


def test_copies_are_models_of_their_own_behind_the_same_cache(
    llm: CachedLLM, inner: ScriptedLLM
) -> None:
    first = llm.chat(user("hello"))
    for other in (copy.copy(llm), copy.deepcopy(llm), llm.model_copy(update={"temperature": 0.0})):
        assert isinstance(other, CachedLLM)
        assert other.cache is llm.cache
        hit = other.chat(user("hello"))
        assert cached(hit)["hit"]
        assert bare(hit) == bare(first)
    other.temperature = 1.0  # type: ignore[attr-defined]
    assert inner.temperature == 0.0
    assert not cached(other.chat(user("hello")))["hit"]


def test_it_says_that_it_cannot_be_pickled(llm: CachedLLM) -> None:
    with pytest.raises(TypeError, match="pickle its inner one"):
        pickle.dumps(llm)


class Person(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        (lambda cache: CachedLLM("gpt", cache=cache), "give a model"),
        (lambda cache: CachedLLM(cache=cache), "give a model"),
        (lambda cache: CachedLLM(CachedLLM(MockLLM(), cache=cache), cache=cache), "cached already"),
        (
            lambda cache: CachedLLM(ScriptedLLM().as_structured_llm(Person), cache=cache),
            "as_structured_llm",
        ),
        (lambda cache: CachedLLM(MockLLM(), cache=cache, kind="nonsense"), "kind"),
    ],
)
def test_what_cannot_be_cached_is_refused(wrong: Any, advice: str, cache: Cache) -> None:
    with pytest.raises(ConfigError, match=advice):
        wrong(cache)


def test_a_cache_is_opened_by_its_url(inner: ScriptedLLM) -> None:
    llm = CachedLLM(inner, cache="memory://")
    assert not cached(llm.chat(user("hello")))["hit"]
    assert cached(llm.chat(user("hello")))["hit"]
    assert isinstance(llm.cache, Cache)
    llm.cache.close()


async def test_an_async_cache_serves_both(inner: ScriptedLLM) -> None:
    async with AsyncCache("memory://") as cache:
        llm = CachedLLM(inner, cache=cache)
        assert not cached(await llm.achat(user("hello")))["hit"]
        assert cached(await llm.achat(user("hello")))["hit"]
        assert cached(llm.chat(user("hello")))["hit"]


# -- what is built of the calls --------------------------------------------------------------------


async def test_predictions_are_cached(llm: CachedLLM, inner: ScriptedLLM) -> None:
    prompt = PromptTemplate("Tell of {thing}.")
    said = llm.predict(prompt, thing="tea")
    assert said == ScriptedLLM().predict(prompt, thing="tea")
    assert await llm.apredict(prompt, thing="tea") == said
    assert "".join(llm.stream(prompt, thing="tea")) == said
    assert "".join([one async for one in await llm.astream(prompt, thing="tea")]) == said
    assert inner.calls == 2  # a whole response and a stream


def test_the_system_prompt_is_part_of_what_is_asked(llm: CachedLLM, inner: ScriptedLLM) -> None:
    prompt = PromptTemplate("Tell of {thing}.")
    first = llm.predict(prompt, thing="tea")
    inner.system_prompt = "Be brief."
    second = llm.predict(prompt, thing="tea")
    assert first != second
    assert second == ScriptedLLM(system_prompt="Be brief.").predict(prompt, thing="tea")


async def test_structured_predictions_are_cached(llm: CachedLLM, inner: ScriptedLLM) -> None:
    prompt = PromptTemplate("Invent a person of {town}.")
    person = llm.structured_predict(Person, prompt, town="Bern")
    assert person == ScriptedLLM().structured_predict(Person, prompt, town="Bern")
    assert await llm.astructured_predict(Person, prompt, town="Bern") == person
    assert inner.calls == 1
    partial = list(llm.stream_structured_predict(Person, prompt, town="Bern"))
    again = list(llm.stream_structured_predict(Person, prompt, town="Bern"))
    assert [one.model_dump() for one in partial] == [one.model_dump() for one in again]
    assert partial[-1] == again[-1] == person
    stream = await llm.astream_structured_predict(Person, prompt, town="Bern")
    assert [one async for one in stream][-1] == person
    assert inner.calls == 2


def test_h1_another_schema_of_the_same_name_is_another_call(
    llm: CachedLLM, inner: ScriptedLLM
) -> None:
    prompt = PromptTemplate("Invent a person of {town}.")
    llm.structured_predict(Person, prompt, town="Bern")

    class Person2(BaseModel):
        name: str
        age: int

    Person2.__name__ = Person2.__qualname__ = "Person"
    older = llm.structured_predict(Person2, prompt, town="Bern")
    assert inner.calls == 2
    assert isinstance(older.age, int)


async def test_a_structured_model_stands_before_the_cached_one(
    llm: CachedLLM, inner: ScriptedLLM
) -> None:
    structured = llm.as_structured_llm(Person)
    first, second = structured.chat(user("a person")), structured.chat(user("a person"))
    third = await structured.achat(user("a person"))
    assert first.raw == second.raw == third.raw
    assert isinstance(second.raw, Person)
    assert inner.calls == 1


async def test_tools_are_called_anew_but_not_the_model(llm: CachedLLM, inner: ScriptedLLM) -> None:
    first = llm.chat_with_tools([ADD], user_msg="add 2 3")
    second = llm.chat_with_tools([ADD], user_msg="add 2 3")
    assert cached(second)["hit"]
    selection = llm.get_tool_calls_from_response(second)
    assert selection[0].tool_kwargs == {"a": 2, "b": 3}
    assert bare(first) == bare(second)
    assert llm.predict_and_call([ADD], user_msg="add 2 3").response == "5"
    assert (await llm.apredict_and_call([ADD], user_msg="add 2 3")).response == "5"
    assert cached(await llm.achat_with_tools([ADD], user_msg="add 2 3"))["hit"]
    assert inner.calls == 1
    streamed = list(llm.stream_chat_with_tools([ADD], user_msg="add 2 3"))
    astream = await llm.astream_chat_with_tools([ADD], user_msg="add 2 3")
    assert [bare(one) async for one in astream] == [bare(one) for one in streamed]
    assert inner.calls == 2


def test_h11_what_callers_change_shows_nowhere_else(llm: CachedLLM) -> None:
    expected = bare(ScriptedLLM().chat_with_tools([ADD], user_msg="add 2 3"))
    for _ in range(3):
        response = llm.chat_with_tools([ADD], user_msg="add 2 3")
        assert bare(response) == expected
        response.message.blocks.clear()
        response.message.additional_kwargs["tool_calls"][0]["function"]["name"] = "none"
        response.raw["choices"].clear()
        response.additional_kwargs["cache"]["saved"].clear()


def test_o6_the_arguments_of_a_call_are_left_as_they_are(
    llm: CachedLLM, inner: ScriptedLLM
) -> None:
    messages, options = user("hello"), {"extra_body": {"top_k": 3}}
    before = copy.deepcopy((messages, options))
    for _ in range(2):
        llm.chat(messages, **options)
    assert (messages, options) == before
    assert inner.calls == 1


def test_it_is_told_apart_in_an_engine(corpus: Any, cache: Cache) -> None:
    """The engine's own cache keys the model inside, and its usage."""
    one, other = DigestLLM(), DigestLLM(temperature=0.5)
    engines = [
        CachedQueryEngine(corpus.engine(CachedLLM(each, cache=cache)), cache=cache)
        for each in (one, other)
    ]
    said = [str(engine.query("leave?")) for engine in engines]
    assert one.calls == other.calls == 1
    assert [engine.query("leave?").metadata["cache"]["hit"] for engine in engines] == [True, True]
    assert len(said) == 2


def test_a_completion_model_hits_by_chat_too(cache: Cache, clock: FakeClock) -> None:
    inner = DigestLLM()
    llm = CachedLLM(inner, cache=cache)
    first, second = llm.chat(user("hello")), llm.chat(user("hello"))
    assert first.message == second.message
    assert inner.calls == 1


def test_b8_turn_two_is_the_same_whether_turn_one_was_a_hit(
    llm: CachedLLM, inner: ScriptedLLM
) -> None:
    def dialogue() -> Any:
        first = llm.chat_with_tools([ADD], user_msg="add 2 3")
        call = llm.get_tool_calls_from_response(first)[0]
        result = ChatMessage(
            role="tool", content="5", additional_kwargs={"tool_call_id": call.tool_id}
        )
        return llm.chat([*user("add 2 3"), first.message, result, *user("and now?")])

    for _ in range(3):
        last = dialogue()
    assert inner.calls == 2
    assert cached(last)["hit"]


def test_it_is_a_model_to_type_checkers() -> None:
    assert issubclass(CachedLLM, LLM)
