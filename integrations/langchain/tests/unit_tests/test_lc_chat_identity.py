"""What changes the answer of a chat model is in the key of `CachedChatModel`; what does not, is not."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_deepseek import ChatDeepSeek
from langchain_fakes import CountingChat
from langchain_openai import ChatOpenAI
from lc_chat_fakes import StreamingChat, cached, report, summed, was_hit
from pydantic import BaseModel, Field, create_model

from langchain_stampcache import CachedChatModel
from stampcache import Cache, ConfigError, Stamps, open_cache

OPTIONS: list[dict[str, Any]] = [
    {"stop": ["."]},
    {"temperature": 0.5},
    {"temperature": 0},
    {"max_tokens": 10},
    {"seed": 7},
    {"extra_body": {"thinking": {"type": "enabled"}}},
    {"extra_body": {"guided_json": {"type": "object"}}},
    {"thinking": {"type": "enabled"}},
    {"reasoning_effort": "high"},
    {"top_k": 4},
    {"model": "another"},
    {"logit_bias": {"50256": -100}},
    {"something_nobody_knows": 1},
    {"extra_headers": {"X-Persona": "pirate"}},
    {"tools": [{"type": "function", "function": {"name": "t"}}]},
    {"tools": [{"type": "function", "function": {"name": "t"}}], "tool_choice": "required"},
    {"response_format": {"type": "json_object"}},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}},
    {"parallel_tool_calls": False},
]


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_each_call_option_is_keyed_and_reaches_the_model(opened: Cache, way: str) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)

    def ask(**options: Any) -> Any:
        if way == "invoke":
            return chat.invoke("hello", **options)
        return summed(chat.stream("hello", **options))

    ask()
    for options in OPTIONS:
        assert not was_hit(ask(**options)), options
        assert {name: one for name, one in inner.told[-1].items() if one is not None} == options
    for options in [{}, *OPTIONS]:
        assert was_hit(ask(**options)), options


def test_bound_options_are_the_same_as_given_ones(opened: Cache) -> None:
    chat = cached(StreamingChat(), opened)
    chat.invoke("hello", temperature=0.5, extra_body={"a": 1, "b": 2})
    assert was_hit(chat.bind(extra_body={"b": 2, "a": 1}, temperature=0.5).invoke("hello"))


def test_what_only_says_how_an_answer_is_handed_over_is_not_keyed(opened: Cache) -> None:
    chat = cached(StreamingChat(), opened)
    chat.invoke("hello")
    assert was_hit(chat.invoke("hello", stream=True))
    assert was_hit(chat.invoke("hello", stream=False))
    assert was_hit(summed(chat.stream("hello", stream_usage=True)))
    assert was_hit(chat.invoke("hello", stop=None))


@pytest.mark.parametrize(
    "change",
    [
        lambda inner: setattr(inner, "temperature", 0.9),
        lambda inner: setattr(inner, "temperature", 0.0),
        lambda inner: setattr(inner, "model", "fake-2"),
        lambda inner: setattr(inner, "base_url", "http://elsewhere"),
        lambda inner: setattr(inner, "extra_body", {"top_k": 1}),
        lambda inner: inner.model_kwargs.update(seed=1),
    ],
)
def test_a_live_model_that_is_changed_is_another_model(
    opened: Cache, change: Callable[[Any], None]
) -> None:
    inner = StreamingChat(model_kwargs={})
    chat = cached(inner, opened)
    chat.invoke("hello")
    change(inner)
    assert not was_hit(chat.invoke("hello"))
    assert was_hit(chat.invoke("hello"))


def test_a_field_of_the_inner_model_may_be_set_from_outside(opened: Cache) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)
    chat.invoke("hello")
    chat.temperature = 0.9
    assert (inner.temperature, chat.temperature) == (0.9, 0.9)
    assert not was_hit(chat.invoke("hello"))


def test_an_api_key_is_no_part_of_it_and_is_stored_nowhere(tmp_path: Any) -> None:
    path = tmp_path / "cache.db"
    with open_cache(f"sqlite:///{path}") as cache:
        cached(CountingChat(api_key="sk-one"), cache).invoke("hello", api_key="sk-call")
        other = cached(CountingChat(api_key="sk-two"), cache)
        assert was_hit(other.invoke("hello"))
        other.invoke("hello", extra_headers={"Authorization": "Bearer sk-three"})
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert not any(key in content for key in (b"sk-one", b"sk-two", b"sk-three", b"sk-call"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"model": "m"}, {"model": "m2"}),
        ({"model": "m"}, {"model": "m", "temperature": 0}),
        ({"model": "m"}, {"model": "m", "base_url": "http://127.0.0.1:1/v1"}),
        ({"model": "m"}, {"model": "m", "default_headers": {"X-Route": "b"}}),
        (
            {"model": "m"},
            {"model": "m", "extra_body": {"chat_template_kwargs": {"thinking": True}}},
        ),
        ({"model": "m"}, {"model": "m", "model_kwargs": {"user_defined": 1}}),
        ({"model": "m"}, {"model": "m", "reasoning_effort": "low"}),
    ],
)
@pytest.mark.parametrize("kind", [ChatOpenAI, ChatDeepSeek])
def test_models_of_providers_differ_where_they_are_made_differently(
    opened: Cache, kind: Any, one: dict[str, Any], other: dict[str, Any]
) -> None:
    made = [cached(kind(api_key="k", **given), opened) for given in (one, other, one)]
    keys = [_key(chat) for chat in made]
    assert keys[0] == keys[2] != keys[1]


def _key(chat: CachedChatModel) -> str:
    return chat.explain("hello").request.runs.digest


def test_the_endpoint_is_the_one_that_is_called(
    opened: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cached(ChatOpenAI(model="m", api_key="k"), opened)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    after = cached(ChatOpenAI(model="m", api_key="k"), opened)
    assert _key(before) != _key(after)


def test_two_classes_are_two_models(opened: Cache) -> None:
    assert _key(cached(ChatOpenAI(model="m", api_key="k", base_url="http://x"), opened)) != _key(
        cached(ChatDeepSeek(model="m", api_key="k", api_base="http://x"), opened)
    )


# -- messages --------------------------------------------------------------------------------------


def _turns(suffix: str) -> list[Any]:
    call = {"name": "search", "args": {"q": "x"}, "id": f"call-{suffix}", "type": "tool_call"}
    return [
        SystemMessage("be brief", id=f"s-{suffix}"),
        HumanMessage("look it up", id=f"h-{suffix}"),
        AIMessage(
            "",
            id=f"run-{suffix}",
            tool_calls=[call],
            usage_metadata={"input_tokens": len(suffix), "output_tokens": 1, "total_tokens": 2},
            response_metadata={"id": suffix},
        ),
        ToolMessage("found", tool_call_id=f"call-{suffix}", id=f"t-{suffix}"),
    ]


def test_ids_and_usage_of_messages_are_not_keyed(opened: Cache) -> None:
    chat = cached(CountingChat(), opened)
    chat.invoke(_turns("a"))
    assert was_hit(chat.invoke(_turns("bcd")))


@pytest.mark.parametrize("place", range(4))
def test_what_a_message_says_is_keyed(opened: Cache, place: int) -> None:
    chat = cached(CountingChat(), opened)
    chat.invoke(_turns("a"))
    changed = _turns("a")
    changed[place] = changed[place].model_copy(update={"content": "something else"})
    assert not was_hit(chat.invoke(changed))


def test_the_second_turn_is_the_same_however_the_first_one_came(opened: Cache) -> None:
    inner = StreamingChat(said=("answer 1", " to hello"))
    chat = cached(inner, opened)
    firsts = [chat.invoke("hello"), chat.invoke("hello"), summed(chat.stream("hello"))]
    seconds = [chat.invoke([HumanMessage("hello"), one, HumanMessage("and")]) for one in firsts]
    assert [was_hit(one) for one in seconds] == [False, True, True]


def test_a_message_without_identity_is_not_cached(opened: Cache) -> None:
    chat = cached(CountingChat(), opened)
    odd = HumanMessage("hello", additional_kwargs={"thing": object()})
    for _ in range(2):
        assert report(chat.invoke([odd]))["reason"] == "uncacheable"
    assert opened.stats(everything=True).counters["miss.uncacheable"] == 2


def test_an_option_without_identity_is_not_cached(opened: Cache) -> None:
    inner = CountingChat()
    chat = cached(inner, opened)
    for _ in range(2):
        assert report(chat.invoke("hello", thing=object()))["reason"] == "uncacheable"
    assert inner.calls == 2


# -- tools and schemas -----------------------------------------------------------------------------


def _search(description: str, **fields: Any) -> Any:
    schema = create_model("Search", **fields)

    @tool("search", args_schema=schema, description=description)
    def search(**given: Any) -> str:
        return ""

    return search


def test_a_tool_that_changed_under_its_name_is_another_one(opened: Cache) -> None:
    one = _search("Search the web.", q=(str, ...))
    again = _search("Search the web.", q=(str, ...))
    described = _search("Search the archive.", q=(str, ...))
    typed = _search("Search the web.", q=(int, ...))
    chat = cached(CountingChat(), opened)
    hits = [
        was_hit(chat.bind_tools([each]).invoke("hello")) for each in (one, again, described, typed)
    ]
    assert hits == [False, True, False, False]
    assert not was_hit(chat.bind_tools([one], tool_choice="any").invoke("hello"))
    assert not was_hit(chat.bind_tools([one, typed]).invoke("hello"))


def test_a_schema_class_that_changed_under_its_name_is_another_one(opened: Cache) -> None:
    def made(**limits: Any) -> type[BaseModel]:
        class Schema(BaseModel):
            answer: int = Field(**limits)

        return Schema

    chat = cached(CountingChat(), opened)
    schemas = [made(le=3), made(le=3), made(le=4)]
    hits = [was_hit(chat.invoke("hello", response_format=schema)) for schema in schemas]
    assert hits == [False, True, False]


# -- how many --------------------------------------------------------------------------------------


def test_an_answer_with_more_choices_serves_fewer(opened: Cache) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)

    def ask(n: int | None) -> Any:
        options = {} if n is None else {"n": n}
        return chat.generate([[HumanMessage("hello")]], **options).generations[0]

    assert [len(ask(n)) for n in (3, 2, 3, 1, None)] == [3, 2, 3, 1, 1]
    assert inner.calls == 1
    assert len(ask(5)) == 5
    assert len(ask(4)) == 4
    assert inner.calls == 2
    assert all(was_hit(one.message) for one in ask(5))


def test_the_number_of_choices_may_stand_in_the_model(opened: Cache) -> None:
    inner = StreamingChat(n=2)
    chat = cached(inner, opened)
    assert len(chat.generate([[HumanMessage("hello")]]).generations[0]) == 2
    inner.n = None
    assert was_hit(chat.invoke("hello"))
    inner.model_kwargs = {"n": 2}
    assert was_hit(chat.invoke("hello"))
    assert inner.calls == 1


def test_more_answers_than_are_known_to_be_asked_for_are_not_stored(opened: Cache) -> None:
    class Several(StreamingChat):
        def _generate(self, messages: Any, stop: Any = None, **options: Any) -> Any:
            wanted = (options.pop("extra_body", None) or {}).get("n", 1)
            return super()._generate(messages, stop, n=wanted, **options)

    chat = cached(Several(), opened)
    asked = {"extra_body": {"n": 2}}
    for _ in range(2):
        assert len(chat.generate([[HumanMessage("hello")]], **asked).generations[0]) == 2
    assert not was_hit(chat.invoke("hello", model_kwargs={"n": 2}))
    assert not was_hit(chat.invoke("hello", model_kwargs={"n": 3}))


def test_several_choices_are_not_streamed_from_the_cache(opened: Cache) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)
    for _ in range(2):
        assert report(summed(chat.stream("hello", n=2)))["reason"] == "uncacheable"
    assert inner.calls == 2


# -- construction ----------------------------------------------------------------------------------


class Client:
    """Something that a model holds and that cannot be told from another one."""


class Holding(CountingChat):
    stop: Any = None


def test_what_cannot_be_identified_is_refused_unless_a_version_stands_for_it(opened: Cache) -> None:
    with pytest.raises(ConfigError, match="version="):
        cached(Holding(stop=Client()), opened)
    first = cached(Holding(stop=Client()), opened, version="1")
    first.invoke("hello")
    assert was_hit(cached(Holding(stop=Client()), opened, version="1").invoke("hello"))
    assert not was_hit(cached(Holding(stop=Client()), opened, version="2").invoke("hello"))


def test_other_arguments_are_refused(opened: Cache) -> None:
    with pytest.raises(ConfigError, match="inner="):
        CachedChatModel(inner="gpt-4", cache=opened)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="cache="):
        CachedChatModel(inner=CountingChat(), cache=True)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="already"):
        cached(cached(CountingChat(), opened), opened)
    with pytest.raises(ConfigError, match="kind"):
        cached(CountingChat(), opened, kind="nonsense")


def test_both_faces_of_a_cache_will_do(opened: Cache) -> None:
    cached(CountingChat(), opened).invoke("hello")
    assert was_hit(cached(CountingChat(), opened.aio).invoke("hello"))


def test_stamps_are_a_boundary(opened: Cache) -> None:
    cached(CountingChat(), opened, stamps=Stamps(model="weights-1")).invoke("hello")
    other = cached(CountingChat(), opened, stamps=Stamps(model="weights-2"))
    assert not was_hit(other.invoke("hello"))
    assert opened.invalidate(stamps=Stamps(model="weights-1")) == 1


def test_scripted_models_of_langchain_do(opened: Cache) -> None:
    chat = cached(FakeListChatModel(responses=["one", "two"]), opened)
    assert [chat.invoke("hello").text for _ in range(3)] == ["one"] * 3
