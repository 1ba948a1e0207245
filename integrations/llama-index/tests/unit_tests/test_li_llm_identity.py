"""What makes two calls of a model the same, and what keeps them apart."""

import random
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    AudioBlock,
    ChatMessage,
    DocumentBlock,
    ImageBlock,
    TextBlock,
)
from llama_index.core.callbacks import CallbackManager
from llama_index.llms.deepseek import DeepSeek
from llama_llm_fakes import NEW, ScriptedLLM, ThinkingBlock, ToolCallBlock, cached, user
from openai import OpenAI as Client
from openai.types.chat import ChatCompletionMessageFunctionToolCall
from pydantic import BaseModel, PrivateAttr, create_model

from llama_index_stampcache import CachedLLM
from stampcache import Cache, ConfigError


@pytest.fixture
def inner() -> ScriptedLLM:
    return ScriptedLLM()


@pytest.fixture
def llm(inner: ScriptedLLM, cache: Cache) -> CachedLLM:
    return CachedLLM(inner, cache=cache)


def hits(llm: CachedLLM, messages: Any, **kwargs: Any) -> bool:
    return bool(cached(llm.chat(messages, **kwargs))["hit"])


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"temperature": 0.5},
        {"api_base": "http://two"},
        {"additional_kwargs": {"thinking": {"type": "enabled"}}},
        {"system_prompt": "Be brief."},
        {"thinks": False},
    ],
)
def test_a2_a_parameter_that_changes_is_another_call(
    change: dict[str, Any], llm: CachedLLM, inner: ScriptedLLM
) -> None:
    llm.chat(user("hello"))
    for name, value in change.items():
        setattr(inner, name, value)
    assert not hits(llm, user("hello"))
    assert hits(llm, user("hello"))


def test_keys_and_pacing_are_not_keyed(llm: CachedLLM, inner: ScriptedLLM) -> None:
    llm.chat(user("hello"))
    inner.api_key = "sk-other"
    inner.callback_manager = CallbackManager([])
    assert hits(llm, user("hello"))


@pytest.mark.parametrize(
    "kwargs",
    [
        {"temperature": 0.9},
        {"max_tokens": 5},
        {"extra_body": {"top_k": 3}},
        {"thinking": {"type": "enabled"}},
        {"reasoning_effort": "high"},
        {"tool_choice": "required"},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
        {"response_format": {"type": "json_object"}},
        {"extra_headers": {"x-variant": "b"}},
        {"stop": ["."]},
    ],
)
def test_a1_a6_a9_arguments_of_a_call_are_keyed(kwargs: dict[str, Any], llm: CachedLLM) -> None:
    plain = [ChatMessage(role="system", content="s"), *user("hello")]
    assert not hits(llm, plain)
    assert not hits(llm, plain, **kwargs)
    assert hits(llm, plain, **kwargs)
    assert hits(llm, plain)


def test_secrets_among_the_arguments_are_not_keyed(llm: CachedLLM) -> None:
    for key in ("one", "two"):
        hit = hits(llm, user("hello"), extra_headers={"Authorization": key}, timeout=len(key))
    assert hit


def test_b2_the_order_of_names_does_not_matter(llm: CachedLLM) -> None:
    one = {"function": {"name": "f", "parameters": {"a": 1, "b": 2}}, "type": "function"}
    other = {"type": "function", "function": {"parameters": {"b": 2, "a": 1}, "name": "f"}}
    assert not hits(llm, user("none"), tools=[one], n=1, stop=["x"])
    assert hits(llm, user("none"), stop=["x"], n=1, tools=[other])


def test_a9_a_response_class_is_keyed_by_its_schema(llm: CachedLLM) -> None:
    one = create_model("Same", name=(str, ...))
    other = create_model("Same", name=(str, ...), age=(int, ...))
    again = create_model("Same", name=(str, ...))
    assert not hits(llm, user("hello"), response_format=one)
    assert not hits(llm, user("hello"), response_format=other)
    assert hits(llm, user("hello"), response_format=again)


def test_a25_an_argument_without_identity_bypasses_and_is_counted(
    llm: CachedLLM, inner: ScriptedLLM, cache: Cache
) -> None:
    for _ in range(2):
        report = cached(llm.chat(user("hello"), client=object()))
        streamed = list(llm.stream_chat(user("hello"), client=object()))
        assert report["reason"] == cached(streamed[-1])["reason"] == "uncacheable"
    assert inner.calls == 4
    assert cache.core.counters.of(None)["miss.uncacheable"] == 4


def test_whole_answers_and_streams_chats_and_completions_are_apart(
    llm: CachedLLM, inner: ScriptedLLM
) -> None:
    llm.chat(user("hello"))
    list(llm.stream_chat(user("hello")))
    llm.complete("hello")
    llm.complete("hello", formatted=True)
    list(llm.stream_complete("hello"))
    assert inner.calls == 5


# -- messages --------------------------------------------------------------------------------------

DIALOGUES: list[list[ChatMessage]] = [
    user("hello"),
    user("hello "),
    [ChatMessage(role="system", content="hello")],
    [ChatMessage(role="user", content="he"), ChatMessage(role="user", content="llo")],
    [ChatMessage(role="user", blocks=[TextBlock(text="he"), TextBlock(text="llo")])],
    [ChatMessage(role="user", content="hello", additional_kwargs={"name": "Ann"})],
    [ChatMessage(role="user", blocks=[TextBlock(text="hello"), ImageBlock(image=b"one")])],
    [ChatMessage(role="user", blocks=[TextBlock(text="hello"), ImageBlock(image=b"two")])],
    [
        ChatMessage(
            role="user", blocks=[TextBlock(text="hello"), ImageBlock(image=b"two", detail="low")]
        )
    ],
    [
        ChatMessage(
            role="user", blocks=[TextBlock(text="hello"), AudioBlock(audio=b"two", format="wav")]
        )
    ],
    [ChatMessage(role="user", blocks=[TextBlock(text="hello"), DocumentBlock(data=b"two")])],
]
if NEW:
    DIALOGUES += [
        [ChatMessage(role="user", blocks=[ThinkingBlock(content="hm"), TextBlock(text="hello")])],
        [ChatMessage(role="user", blocks=[ToolCallBlock(tool_name="f", tool_kwargs={"a": 1})])],
        [ChatMessage(role="user", blocks=[ToolCallBlock(tool_name="f", tool_kwargs={"a": "1"})])],
    ]


def test_d4_dialogues_that_differ_never_share(llm: CachedLLM) -> None:
    for dialogue in DIALOGUES:
        assert not hits(llm, dialogue), dialogue
    order = list(range(len(DIALOGUES)))
    random.Random(0).shuffle(order)
    for at in order:
        assert hits(llm, [one.model_copy(deep=True) for one in DIALOGUES[at]])


def test_an_image_by_its_address_or_in_a_file_bypasses(llm: CachedLLM, tmp_path: Path) -> None:
    file = tmp_path / "image.png"
    file.write_bytes(b"one")
    blocks = [ImageBlock(url="https://example.org/image.png"), ImageBlock(path=file)]
    if NEW:
        blocks.append(ImageBlock(image=BytesIO(b"one")))  # which is read but once
    for block in blocks:
        message = ChatMessage(role="user", blocks=[TextBlock(text="hello"), block])
        for _ in range(2):
            assert cached(llm.chat([message]))["reason"] == "uncacheable"


def test_an_image_in_its_address_is_keyed(llm: CachedLLM) -> None:
    def ask(data: str) -> bool:
        block = ImageBlock(url=f"data:image/png;base64,{data}")
        return hits(llm, [ChatMessage(role="user", blocks=[TextBlock(text="hello"), block])])

    assert [ask(data) for data in ("b25l", "dHdv", "b25l", "dHdv")] == [False, False, True, True]


def tools_dialogue(*ids: str, objects: bool = False) -> list[ChatMessage]:
    """A dialogue in which two tools were called at once."""
    calls: list[Any] = [
        {"id": id_, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id_ in ids
    ]
    if objects:
        calls = [ChatCompletionMessageFunctionToolCall.model_validate(one) for one in calls]
    blocks = (
        [ToolCallBlock(tool_call_id=id_, tool_name="f", tool_kwargs="{}") for id_ in ids]
        if NEW
        else []
    )
    results = [
        ChatMessage(role="tool", content=f"result {at}", additional_kwargs={"tool_call_id": id_})
        for at, id_ in enumerate(ids)
    ]
    asked = ChatMessage(role="assistant", blocks=blocks, additional_kwargs={"tool_calls": calls})
    return [*user("go"), asked, *results]


def test_b1_ids_of_tool_calls_do_not_matter_but_what_belongs_to_what_does(llm: CachedLLM) -> None:
    assert not hits(llm, tools_dialogue("x", "y"))
    assert hits(llm, tools_dialogue("y", "x"))
    assert hits(llm, tools_dialogue("call_9", "call_8"))
    assert hits(llm, tools_dialogue("x", "y", objects=True))
    swapped = tools_dialogue("x", "y")
    swapped[2].additional_kwargs, swapped[3].additional_kwargs = (
        swapped[3].additional_kwargs,
        swapped[2].additional_kwargs,
    )
    assert not hits(llm, swapped)


def test_what_is_told_of_a_message_is_not_keyed(llm: CachedLLM) -> None:
    def dialogue(**told: Any) -> list[ChatMessage]:
        said = ChatMessage(role="assistant", content="yes", additional_kwargs=told)
        return [*user("hello"), said, *user("why?")]

    report = {"hit": True, "entry_id": "1", "saved": {}}
    assert not hits(llm, dialogue())
    assert hits(llm, dialogue(prompt_tokens=4, completion_tokens=3, total_tokens=7))
    assert hits(llm, dialogue(cache=report))
    assert not hits(llm, dialogue(cache="mine"))


def test_a_message_of_an_unknown_kind_bypasses(llm: CachedLLM) -> None:
    message = ChatMessage(role="user", content="hello", additional_kwargs={"client": object()})
    assert cached(llm.chat([message]))["reason"] == "uncacheable"

    class Named(ChatMessage):
        name: str = ""

    one, other = Named(content="hello", name="Ann"), Named(content="hello", name="Bob")
    assert [hits(llm, [each]) for each in (one, other, one)] == [False, False, True]


# -- models ----------------------------------------------------------------------------------------


def test_a_part_without_identity_needs_a_version(cache: Cache) -> None:
    class Encoder:
        def encode(self, text: str) -> list[int]:
            return [len(text)]

    inner = ScriptedLLM(additional_kwargs={"tokenizer": Encoder()})
    with pytest.raises(ConfigError, match="Encoder"):
        CachedLLM(inner, cache=cache)
    one, other = (CachedLLM(inner, cache=cache, version=version) for version in ("1", "2"))
    asked = [hits(llm, user("hello")) for llm in (one, other, one, other)]
    assert asked == [False, False, True, True]


def test_a_model_that_lost_its_identity_bypasses(llm: CachedLLM, inner: ScriptedLLM) -> None:
    llm.chat(user("hello"))
    inner.additional_kwargs = {"client": object()}
    assert cached(llm.chat(user("hello")))["reason"] == "uncacheable"


class Settings(BaseModel):
    top_k: int


class Weights:
    """Stands for weights that were given as an object."""

    def __init__(self, name_or_path: str) -> None:
        self.name_or_path = name_or_path


class Hiding(ScriptedLLM):
    """A model that keeps its parameters where only it looks."""

    _hidden: Any = PrivateAttr(default=None)
    _asked_for: int = PrivateAttr(default=0)

    def hide(self, hidden: Any) -> "Hiding":
        self._hidden = hidden
        return self

    def _heard(self, asked: object) -> None:
        super()._heard(asked)
        self._asked_for += 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"top_k": 1}, {"top_k": 2}),
        (Settings(top_k=1), Settings(top_k=2)),
        (Weights("one"), Weights("two")),
        ("one", "two"),
        (1, 2),
    ],
)
def test_a3_models_with_other_hidden_parameters_never_share(
    one: Any, other: Any, cache: Cache
) -> None:
    models = [Hiding().hide(one), Hiding().hide(other), Hiding().hide(one)]
    asked = [hits(CachedLLM(each, cache=cache), user("hello")) for each in models]
    assert asked == [False, False, True]
    assert hits(CachedLLM(Hiding().hide(one), cache=cache), user("hello"))


def test_what_a_model_notes_of_its_calls_is_no_parameter(cache: Cache) -> None:
    llm = CachedLLM(Hiding().hide({"client": object()}), cache=cache)
    assert [hits(llm, user("hello")) for _ in range(3)] == [False, True, True]


def test_a_model_hidden_in_a_model_needs_an_identity(cache: Cache) -> None:
    inner = create_model("Inner", client=(Any, ...))(client=object())
    with pytest.raises(ConfigError, match="client"):
        CachedLLM(Hiding().hide(inner), cache=cache)
    assert not hits(CachedLLM(Hiding().hide(inner), cache=cache, version="1"), user("hello"))


def test_a_model_that_tells_nothing_of_itself_still_answers(
    inner: ScriptedLLM, cache: Cache
) -> None:
    class Broken(ScriptedLLM):
        broken: bool = False

        @property
        def metadata(self) -> Any:
            if self.broken:
                raise ValueError("unknown model")
            return super().metadata

        def to_payload(self) -> dict[str, Any]:
            return {}  # for its own events, which ask for its metadata

    model = Broken()
    llm = CachedLLM(model, cache=cache)
    model.broken = True
    assert cached(llm.chat(user("hello")))["reason"] == "uncacheable"
    assert cache.core.counters.of(None)["error.adapter.request"] == 1


def test_a3_clients_of_two_endpoints_never_share(cache: Cache) -> None:
    def model(base: str) -> Any:
        client = Client(api_key="sk-x", base_url=base)
        return DeepSeek(model="deepseek-chat", api_key="sk-x", openai_client=client)

    from llama_index_stampcache.llms.identity import endpoint_of

    ours = [endpoint_of(model(base), aio=False) for base in ("http://one/v1", "http://two/v1/")]
    assert ours == ["http://one/v1", "http://two/v1"]
    plain = DeepSeek(model="deepseek-chat", api_key="sk-x")
    before = endpoint_of(plain, aio=False)
    plain._get_client()
    assert endpoint_of(plain, aio=False) == before == "https://api.deepseek.com"


def test_keys_reach_no_store(tmp_path: Path, inner: ScriptedLLM) -> None:
    from stampcache import open_cache

    url = f"sqlite:///{tmp_path / 'rag.db'}"
    with open_cache(url) as cache:
        CachedLLM(inner, cache=cache).chat(
            user("hello"), extra_headers={"Authorization": "sk-call"}
        )
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"sk-secret" not in stored
    assert b"sk-call" not in stored
