"""What `CachedChatModel` tells of itself is what its inner model tells; it is changed like it, too."""

import copy
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.tools import tool
from langchain_deepseek import ChatDeepSeek
from langchain_fakes import CountingChat, Shelf
from langchain_openai import ChatOpenAI
from lc_chat_fakes import StreamingChat, cached, was_hit

from langchain_stampcache import CachedChain, CachedChatModel
from stampcache import Cache

MODELS = [
    lambda: ChatOpenAI(model="gpt-4o-mini", api_key="k", temperature=0, max_tokens=5, stop=["."]),
    lambda: ChatDeepSeek(model="deepseek-chat", api_key="k", temperature=0.5),
    lambda: StreamingChat(temperature=0.1, tags=["a"], name="mine"),
    lambda: FakeListChatModel(responses=["a"]),
]


@pytest.mark.parametrize("make", MODELS)
def test_it_tells_what_the_inner_model_tells(opened: Cache, make: Any) -> None:
    inner = make()
    chat = cached(inner, opened)
    assert chat._llm_type == inner._llm_type
    assert chat._identifying_params == inner._identifying_params
    if hasattr(inner, "asdict"):
        assert chat.asdict() == inner.asdict()
    assert chat._get_ls_params(stop=["x"], model="m") == inner._get_ls_params(stop=["x"], model="m")
    assert chat._get_invocation_params(stop=["x"]) == inner._get_invocation_params(stop=["x"])
    assert chat._serialized == inner._serialized
    assert chat.get_name() == inner.get_name()
    assert chat.get_name("x") == inner.get_name("x")
    assert (chat.profile, chat.tags, chat.metadata) == (inner.profile, inner.tags, inner.metadata)
    assert chat.output_version == inner.output_version
    assert chat.get_input_jsonschema() == inner.get_input_jsonschema()
    assert "sk-" not in repr(chat)


def test_tokens_are_those_of_the_inner_model(opened: Cache) -> None:
    chat = cached(CountingChat(custom_get_token_ids=lambda text: [7] * len(text)), opened)
    assert chat.get_token_ids("abc") == [7, 7, 7]
    assert chat.get_num_tokens("abc") == 3
    assert chat.get_num_tokens_from_messages([HumanMessage("abc")]) == len("Human: abc")


def test_attributes_of_the_inner_model_are_there(opened: Cache) -> None:
    chat = cached(ChatOpenAI(model="gpt-4o-mini", api_key="k"), opened)
    assert chat.model_name == "gpt-4o-mini"
    assert chat.openai_api_key.get_secret_value() == "k"
    assert not hasattr(chat, "no_such_thing")
    with pytest.raises(AttributeError):
        _ = chat._no_such_thing


def test_callbacks_tags_and_the_version_of_outputs_can_be_set(opened: Cache) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)
    chat.output_version, chat.tags = "v1", ["b"]
    assert (inner.output_version, chat.output_version, inner.tags) == ("v1", "v1", ["b"])
    assert isinstance(chat.invoke("hello").content, list)


def test_it_can_be_copied(opened: Cache) -> None:
    inner = CountingChat()
    chat = cached(inner, opened)
    chat.invoke("hello")
    for again in (copy.copy(chat), chat.model_copy(), copy.deepcopy(chat)):
        assert was_hit(again.invoke("hello"))
    other = copy.deepcopy(chat)
    other.temperature = 0.5
    assert inner.temperature is None


def test_fields_of_the_inner_model_are_configurable(opened: Cache) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened).configurable_fields(
        temperature=ConfigurableField(id="heat", name="Heat"), model=ConfigurableField(id="which")
    )
    assert {spec.id for spec in chat.config_specs} == {"heat", "which"}
    hot = {"configurable": {"heat": 0.9}}
    made = [chat.invoke("hello"), chat.invoke("hello", config=hot)]
    found = [chat.invoke("hello"), chat.with_config(hot).invoke("hello")]
    assert [was_hit(one) for one in (*made, *found)] == [False, False, True, True]
    assert not was_hit(chat.invoke("hello", config={"configurable": {"which": "fake-2"}}))
    assert was_hit(chat.batch(["hello", "hello"], config=[{}, hot])[1])
    assert inner.temperature is None
    more = chat.configurable_fields(base_url=ConfigurableField(id="where"))
    assert was_hit(more.invoke("hello", config=hot))
    with pytest.raises(ValueError, match="not found"):
        cached(inner, opened).configurable_fields(unheard_of=ConfigurableField(id="x"))


def test_a_tool_bound_to_a_configurable_one_is_cached(opened: Cache) -> None:
    chat = cached(StreamingChat(), opened).configurable_fields(
        temperature=ConfigurableField(id="heat")
    )
    bound = chat.bind_tools([_search])
    bound.invoke("hello")
    assert was_hit(bound.invoke("hello"))


def test_alternatives_are_configurable(opened: Cache) -> None:
    chat = cached(CountingChat(), opened).configurable_alternatives(
        ConfigurableField(id="which"), other=cached(CountingChat(model="fake-2"), opened)
    )
    other = {"configurable": {"which": "other"}}
    assert not was_hit(chat.invoke("hello"))
    assert not was_hit(chat.invoke("hello", config=other))
    assert was_hit(chat.invoke("hello", config=other))


@tool("search")
def _search(query: str) -> str:
    """Search the web."""
    return query


def test_what_the_inner_model_binds_is_bound_to_the_cached_one(opened: Cache) -> None:
    inner = StreamingChat()
    chat = cached(inner, opened)
    bound = chat.bind_tools([_search], tool_choice="any")
    assert bound.bound is chat
    assert bound.kwargs == inner.bind_tools([_search], tool_choice="any").kwargs


def test_a_model_made_for_the_binding_is_cached_too(opened: Cache) -> None:
    inner = ChatDeepSeek(model="deepseek-chat", api_key="k")
    plain = inner.bind_tools([_search], strict=True)
    if plain.bound is inner:
        pytest.skip("this langchain-deepseek asks the same endpoint")
    chat = cached(inner, opened)
    bound = chat.bind_tools([_search], strict=True)
    assert isinstance(bound.bound, CachedChatModel)
    assert bound.bound.api_base == plain.bound.api_base != chat.api_base
    keys = {one.explain("hello").request.runs.digest for one in (chat, bound.bound)}
    assert len(keys) == 2


def test_a_binding_that_hides_its_model_is_not_cached_and_counted(opened: Cache) -> None:
    class Hiding(CountingChat):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return RunnableLambda(self.invoke)

    inner = Hiding()
    bound = cached(inner, opened).bind_tools([_search])
    bound.invoke("hello")
    bound.invoke("hello")
    assert inner.calls == 2
    assert opened.stats(everything=True).counters["adapter.opaque_binding"] == 1


def test_a_model_without_tools_says_so(opened: Cache) -> None:
    class Plain(FakeListChatModel):
        pass

    with pytest.raises(NotImplementedError):
        cached(Plain(responses=["a"]), opened).bind_tools([_search])


def test_it_may_stand_in_a_cached_chain(opened: Cache, shelf: Shelf) -> None:
    inner = CountingChat()

    def app(chat: BaseChatModel) -> Any:
        from langchain_core.prompts import ChatPromptTemplate

        answer = ChatPromptTemplate.from_template("{context} {input}") | chat
        return CachedChain(retriever=shelf, answer=answer, cache=opened)

    chain = app(cached(inner, opened))
    asked = {"input": "how long is annual leave"}
    assert not chain.invoke(asked)["cache"]["hit"]
    assert app(cached(CountingChat(), opened)).invoke(asked)["cache"]["hit"]
    hot = app(cached(CountingChat(temperature=1), opened))
    assert not hot.invoke(asked)["cache"]["hit"]
