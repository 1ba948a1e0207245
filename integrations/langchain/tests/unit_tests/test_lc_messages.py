"""Messages in canonical form: the short way of plain ones is no other way."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.load import dumps
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    message_chunk_to_message,
)
from langchain_core.messages.tool import tool_call, tool_call_chunk

from langchain_stampcache import prompt as prompts
from stampcache.adapters import CanonicalError

METADATA = st.dictionaries(st.sampled_from(["model_name", "finish_reason", "cache"]), st.text())
CALL = {"name": "get", "args": {"a": 1}, "id": "call_1", "type": "tool_call"}
USAGE = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.none() | st.text(max_size=3),
        "name": st.none() | st.text(max_size=3),
        "response_metadata": METADATA,
        "additional_kwargs": st.dictionaries(
            st.sampled_from(["reasoning_content", "a"]), st.text()
        ),
        "unknown_field": st.text(max_size=3),
    },
)
CONTENT = st.text(max_size=5) | st.just([{"type": "text", "text": "a"}])


def message(kind: type[BaseMessage], content: Any, options: dict[str, Any]) -> BaseMessage:
    return kind(content=content, **options)


@st.composite
def messages(draw: st.DrawFn) -> BaseMessage:
    kind = draw(st.sampled_from([AIMessage, HumanMessage, SystemMessage]))
    options = draw(OPTIONS)
    if kind is AIMessage and draw(st.booleans()):
        options["tool_calls"] = draw(st.lists(st.just(CALL), max_size=1))
    if kind is AIMessage and draw(st.booleans()):
        options["usage_metadata"] = USAGE
    return message(kind, draw(CONTENT), options)


@given(st.lists(messages(), max_size=4))
def test_plain_messages_are_read_as_all_others_are(said: list[BaseMessage]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prompts, "_plain_fields", lambda message: None)
        as_dumped = prompts.of_messages(said)
    assert prompts.of_messages(said) == as_dumped


def test_a_message_of_a_class_that_is_not_serialised_is_refused() -> None:
    class Own(HumanMessage):
        @classmethod
        def is_lc_serializable(cls) -> bool:
            return False

    with pytest.raises(CanonicalError, match="serialise"):
        prompts.of_messages([Own("hello")])


@given(st.text(max_size=5), OPTIONS, st.booleans())
def test_b8_a_turn_that_was_streamed_is_the_turn_that_came_whole(
    content: str, options: dict[str, Any], called: bool
) -> None:
    chunk = AIMessageChunk(content=content, **options)
    if called:
        part = tool_call_chunk(name="get", args='{"a": 1}', id="call_1", index=0)
        chunk.tool_call_chunks = [part]
        chunk.tool_calls = [tool_call(name="get", args={"a": 1}, id="call_1")]
    assert prompts.of_messages([chunk]) == prompts.of_messages([message_chunk_to_message(chunk)])
    assert prompts.read(dumps([chunk])) == prompts.read(dumps([message_chunk_to_message(chunk)]))
