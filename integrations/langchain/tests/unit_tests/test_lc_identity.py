"""What a chain would run, as plain data: what changes it, what does not, what is refused."""

import json
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.output_parsers import (
    JsonOutputParser,
    PydanticOutputParser,
    StrOutputParser,
)
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import (
    ConfigurableField,
    Runnable,
    RunnableBranch,
    RunnableGenerator,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    chain,
)
from langchain_core.tools import tool
from langchain_deepseek import ChatDeepSeek
from langchain_fakes import CountingChat
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, create_model

from langchain_stampcache.fingerprint import Fingerprint
from stampcache.errors import CanonicalError

PROMPT = ChatPromptTemplate.from_messages([("system", "Be {mood}."), ("human", "{input}")])


def read(root: Any, *, version: str | None = None, config: Any = None) -> str:
    return json.dumps(Fingerprint(version=version).read(root, config).described)


def openai(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "m", "api_key": "sk-secret", "base_url": "http://h", **options})


def deepseek(**options: Any) -> ChatDeepSeek:
    return ChatDeepSeek(**{"model": "m", "api_key": "sk-secret", "base_url": "http://h", **options})


@pytest.mark.parametrize("model", [openai, deepseek])
@pytest.mark.parametrize(
    "option",
    [
        {"model": "n"},
        {"temperature": 0},
        {"base_url": "http://i"},
        {"max_tokens": 5},
        {"extra_body": {"thinking": {"type": "enabled"}}},
        {"reasoning_effort": "low"},
        {"model_kwargs": {"guided_json": {"type": "object"}}},
        {"default_headers": {"x-team": "a"}},
        {"top_p": 0.5},
        {"seed": 1},
        {"organization": "o"},
    ],
)
def test_a3_a6_parameters_of_models_are_keyed(model: Any, option: dict) -> None:
    assert read(model()) != read(model(**option))


@pytest.mark.parametrize("model", [openai, deepseek])
def test_keys_and_pacing_are_not(model: Any) -> None:
    other = model(api_key="sk-other", max_retries=7, timeout=3, tags=["t"], verbose=True)
    assert read(model()) == read(other)
    assert "sk-" not in read(model())


def test_a2_every_reading_is_of_the_live_object() -> None:
    model = openai()
    root = PROMPT | model
    fingerprint = Fingerprint(version=None)
    first = fingerprint.read(root, None)
    assert (first.model, first.endpoint) == ("m", "http://h")
    model.temperature = 0.3
    assert fingerprint.read(root, None) != first
    model.temperature = None
    assert fingerprint.read(root, None) == first


def test_a_counter_that_a_model_keeps_is_no_parameter() -> None:
    model = CountingChat(temperature=0.1)
    fingerprint = Fingerprint(version=None)
    first = fingerprint.read(model, None)
    model.invoke("x")
    assert fingerprint.read(model, None) == first
    scripted = GenericFakeChatModel(messages=iter([AIMessage("a"), AIMessage("b")]))
    listed = FakeListChatModel(responses=["a", "b"])
    before = [read(scripted), read(listed)]
    scripted.invoke("x")
    listed.invoke("x")
    assert [read(scripted), read(listed)] == before
    assert read(FakeListChatModel(responses=["c"])) != read(listed)


class Counting(ChatOpenAI):
    calls: int = 0
    tone: str = "plain"


def test_a_counter_of_a_derived_model_is_no_parameter_either() -> None:
    model = Counting(model="m", api_key="sk-secret", use_responses_api=False)
    fingerprint = Fingerprint(version=None)
    before = fingerprint.read(model, None)
    model.calls += 1
    assert fingerprint.read(model, None) == before
    model.use_responses_api = True
    assert fingerprint.read(model, None) != before


def test_what_is_remembered_of_classes_and_models_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("langchain_stampcache.fingerprint.KEPT", 4)
    fingerprint = Fingerprint(version=None)
    kinds = [type(f"Model{number}", (Counting,), {}) for number in range(12)]
    told = [fingerprint.read(kind(model="m", api_key="sk-secret"), None) for kind in kinds]
    assert len({repr(one.described) for one in told}) == 12
    kept = (fingerprint._classes, fingerprint._fields, fingerprint._parameters, fingerprint._given)
    assert max(map(len, kept)) <= 4


def test_a1_a_field_that_a_derived_model_adds_is_a_parameter() -> None:
    plain = Counting(model="m", api_key="sk-secret")
    assert read(Counting(model="m", api_key="sk-secret", tone="kind")) != read(plain)
    assert read(Counting(model="m", api_key="sk-other")) == read(plain)


class Silent(CountingChat):
    """Tells nothing about itself, as a first model of one's own often does."""

    _identifying_params = BaseChatModel._identifying_params
    flavour: str = "mild"


def test_a_model_that_tells_nothing_is_known_by_what_it_was_made_with() -> None:
    assert read(Silent(flavour="hot")) != read(Silent(flavour="mild"))
    model = Silent(flavour="hot")
    fingerprint = Fingerprint(version=None)
    first = fingerprint.read(model, None)
    model.invoke("x")
    assert fingerprint.read(model, None) == first


def test_prompts_are_their_words() -> None:
    texts = ["Be {mood}.", "Be {mood}!"]
    assert len({read(ChatPromptTemplate.from_template(text)) for text in texts}) == 2
    assert read(PROMPT) == read(PROMPT.with_config(run_name="x", tags=["y"])).replace(
        '{"bound": ', "", 1
    ).removesuffix(', "with": {}}')
    assert read(PROMPT.partial(mood="kind")) != read(PROMPT.partial(mood="rude"))
    fixed = ChatPromptTemplate.from_messages([SystemMessage("a"), ("human", "{input}")])
    other = ChatPromptTemplate.from_messages([SystemMessage("b"), ("human", "{input}")])
    assert read(fixed) != read(other)
    assert read(PromptTemplate.from_template("{x}")) != read(PromptTemplate.from_template("{y}"))


class Ruling(BaseModel):
    days: int


def test_a9_parsers_and_schemas() -> None:
    changed = create_model("Ruling", __module__=__name__, days=(str, ...))
    parsers = [PydanticOutputParser(pydantic_object=kind) for kind in (Ruling, changed)]
    assert len({read(each) for each in parsers}) == 2
    assert read(StrOutputParser()) != read(JsonOutputParser())
    bound = [openai().with_structured_output(kind) for kind in (Ruling, changed)]
    assert len({read(each) for each in bound}) == 2


def double(value: int) -> int:
    return value * 2


def test_functions_in_every_place_are_known_by_their_code() -> None:
    def triple(value: int) -> int:
        return value * 3

    async def later(value: int) -> int:
        return value

    def generate(values: Any) -> Any:
        yield from values

    roots: list[Runnable] = [
        RunnableLambda(double),
        RunnableLambda(triple),
        RunnableLambda(later),
        RunnableLambda(double, afunc=later),
        RunnableGenerator(generate),
        RunnableParallel(a=double, b=triple),
        RunnableParallel(a=triple, b=double),
        RunnablePassthrough.assign(a=double),
        RunnablePassthrough.assign(b=double),
        RunnableBranch((lambda value: value > 1, double), triple),
        RunnableBranch((lambda value: value > 2, double), triple),
        RunnableLambda(double).with_retry(),
        RunnableLambda(double).with_fallbacks([RunnableLambda(triple)]),
        RunnableLambda(double).map(),
        RunnablePassthrough().pick("a"),
        RunnablePassthrough().pick("b"),
    ]
    assert len({read(root) for root in roots}) == len(roots)


def test_functions_that_see_models_are_keyed_by_them() -> None:
    model = CountingChat(temperature=0.1)

    @chain
    def ask(text: str) -> Any:
        return model.invoke(text)

    first = read(ask)
    model.temperature = 0.2
    assert read(ask) != first


def test_tools_are_keyed_with_their_name_and_code() -> None:
    @tool
    def look(name: str) -> str:
        """Look it up."""
        return name

    @tool("look")
    def look_again(name: str) -> str:
        """Look it up."""
        return name + "!"

    assert read(CountingChat().bind(tools=[look])) != read(CountingChat().bind(tools=[look_again]))


def test_configurable_parts_are_read_as_this_call_configures_them() -> None:
    model = CountingChat(temperature=0.1).configurable_fields(temperature=ConfigurableField(id="t"))
    hot = {"configurable": {"t": 0.9, "thread_id": "1"}}
    assert read(model) != read(model, config=hot)
    assert read(model, config=hot) == read(model, config={"configurable": {"t": 0.9}})
    assert read(model.with_config(configurable={"t": 0.9})) != read(model.with_config())
    either = CountingChat(model="a").configurable_alternatives(
        ConfigurableField(id="m"), default_key="a", b=CountingChat(model="b")
    )
    assert read(either) != read(either, config={"configurable": {"m": "b"}})


class Opaque(Runnable[Any, Any]):
    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002 - the framework's signature
        return input


@pytest.mark.parametrize(
    "root",
    [
        Opaque(),
        PROMPT | Opaque(),
        RunnableLambda(object().__eq__),
        ChatPromptTemplate.from_template("{x}").partial(x=object().__str__),
        CountingChat().bind(logit_bias={(1, 2): 3}),
    ],
)
def test_a16_a25_unknown_parts_are_refused_or_stand_for_a_version(root: Any) -> None:
    with pytest.raises(CanonicalError):
        read(root)


def test_a_version_stands_for_unknown_parts_only() -> None:
    first = read(PROMPT | Opaque(), version="1")
    assert first != read(PROMPT | Opaque(), version="2")
    assert first != read(PROMPT.partial(mood="kind") | Opaque(), version="1")


def test_self_containing_parts_end_in_a_refusal() -> None:
    looped: list[Any] = []
    looped.append(looped)
    with pytest.raises(CanonicalError, match="deeper"):
        read(CountingChat().bind(x=looped))
