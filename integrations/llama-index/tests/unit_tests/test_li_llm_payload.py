"""Stored responses come back equal, whatever a provider streams; damaged ones are misses."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms.types import (
    AudioBlock,
    ChatMessage,
    ChatResponse,
    CitationBlock,
    CompletionResponse,
    ImageBlock,
    LogProb,
    TextBlock,
)
from llama_llm_fakes import NEW, ScriptedLLM, ThinkingBlock, ToolCallBlock, cached, user
from openai.types.chat import ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

from llama_index_stampcache import CachedLLM
from llama_index_stampcache.llms.forms import Form, Untakable, comes_back, rebuilt, taken
from llama_index_stampcache.llms.payload import FORMAT, changed, decode, difference, encode
from stampcache import Cache, CodecError
from stampcache.testing import FakeClock

plain = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(["", "a", "ab", "abc"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(old=plain, new=plain)
def test_a_difference_makes_the_one_of_the_other(old: Any, new: Any) -> None:
    before = json.dumps(old)
    patch = difference(old, new)
    again = old if patch is None else changed(old, json.loads(json.dumps(patch)))
    assert json.dumps(again, sort_keys=True) == json.dumps(new, sort_keys=True)
    assert json.dumps(old) == before


def test_a_long_stream_grows_with_its_text() -> None:
    text = "word " * 2_000
    chunks = [
        ChatResponse(message=ChatMessage(role="assistant", content=text[:end]), delta="word ")
        for end in range(5, len(text) + 1, 5)
    ]
    data = encode(Form.CHAT, [taken(one) for one in chunks])
    assert len(data) < 100 * len(chunks)
    assert [rebuilt(tree) for tree in decode(data, Form.CHAT)] == chunks


CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
MESSAGES = [
    ChatMessage(role="assistant", content="yes"),
    ChatMessage(role="assistant", blocks=[]),
    ChatMessage(role="assistant", blocks=[ImageBlock(image=b"one"), TextBlock(text="y")]),
    ChatMessage(
        role="assistant",
        blocks=[
            CitationBlock(
                cited_content=TextBlock(text="c"),
                source="s",
                title="t",
                additional_location_info={},
            )
        ],
    ),
]
if NEW:
    MESSAGES += [
        ChatMessage(role="assistant", blocks=[AudioBlock(audio=b"two"), TextBlock(text="y")]),
        ChatMessage(
            role="assistant",
            blocks=[ThinkingBlock(content="hm", num_tokens=3), TextBlock(text="y")],
        ),
        ChatMessage(
            role="assistant",
            blocks=[
                ToolCallBlock(tool_call_id="call_1", tool_name="f", tool_kwargs={"a": [1, None]})
            ],
            additional_kwargs={
                "tool_calls": [ChatCompletionMessageFunctionToolCall.model_validate(CALL)],
                "deltas": [ChoiceDeltaToolCall.model_validate({"index": 0, **CALL})],
            },
        ),
    ]


@pytest.mark.parametrize("message", MESSAGES)
def test_h4_messages_come_back_equal(message: ChatMessage) -> None:
    response = ChatResponse(
        message=message,
        delta="x",
        logprobs=[[LogProb(token="y", logprob=-0.5, bytes=[1])]],
        additional_kwargs={"prompt_tokens": 3},
    )
    (tree,) = decode(encode(Form.CHAT, [taken(response)]), Form.CHAT)
    assert rebuilt(tree) == response
    assert comes_back(response, tree)


def test_completions_come_back_equal() -> None:
    response = CompletionResponse(text="yes", raw={"usage": {"n": 1}}, delta=None)
    (tree,) = decode(encode(Form.COMPLETION, [taken(response)]), Form.COMPLETION)
    assert rebuilt(tree) == response


@pytest.mark.parametrize(
    "beside", [{"at": object()}, {"at": {1: 2}}, {"at": b"x"}, {"__class__": ["a", "b"]}]
)
def test_what_has_no_plain_form_is_not_taken(beside: dict[str, Any]) -> None:
    with pytest.raises(Untakable):
        taken(
            ChatResponse(
                message=ChatMessage(role="assistant", content="y", additional_kwargs=beside)
            )
        )


def test_a_tuple_would_come_back_as_a_list() -> None:
    with pytest.raises(Untakable):
        taken(
            ChatResponse(
                message=ChatMessage(role="assistant", content="y"), additional_kwargs={"at": (1,)}
            )
        )


GOOD = encode(Form.CHAT, [taken(ChatResponse(message=ChatMessage(role="assistant", content="y")))])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        GOOD[:-3],
        GOOD.replace(b'"version":1', b'"version":2'),
        GOOD.replace(b'"role":"assistant"', b'"role":"nobody"'),
        GOOD.replace(b'"then":[]', b'"then":[["+", "x"]]'),
        GOOD.replace(b'"then":[]', b'"then":[["{", {"message": ["?"]}, []]]'),
        GOOD.replace(
            b'"additional_kwargs":{}',
            b'"additional_kwargs":{"x":{"__class__":["os","system"],"fields":{}}}',
        ),
        GOOD.replace(
            b'"additional_kwargs":{}',
            b'"additional_kwargs":{"x":{"__class__":["openai.types.chat","nothing"],"fields":{}}}',
        ),
    ],
)
def test_h15_what_is_damaged_is_told(data: bytes) -> None:
    assert data != GOOD
    with pytest.raises(CodecError):
        decode(data, Form.CHAT)


def test_a_response_of_the_other_form_is_told() -> None:
    with pytest.raises(CodecError, match="completion"):
        decode(GOOD, Form.COMPLETION)


@pytest.mark.parametrize("way", ["chat", "stream"])
def test_an_unreadable_entry_is_a_miss_and_goes(way: str, timed: Cache, clock: FakeClock) -> None:
    from llama_index_stampcache.llms import payload as llm_payload

    inner = ScriptedLLM()
    llm = CachedLLM(inner, cache=timed)

    def ask() -> Any:
        if way == "chat":
            return llm.chat(user("hello"))
        return list(llm.stream_chat(user("hello")))[-1]

    original = llm_payload.encode
    try:
        llm_payload.encode = lambda form, trees: b"{damaged"  # type: ignore[assignment]
        ask()
    finally:
        llm_payload.encode = original
    assert not cached(ask())["hit"]
    assert cached(ask())["hit"]
    assert inner.calls == 2
    assert timed.core.counters.of(None)["error.adapter.undecodable"] == 1
    assert FORMAT.endswith("/1")
