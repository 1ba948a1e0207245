"""What a call of a `CachedChatModel` carries: its scope, its options, and the objects in them."""

import asyncio
import copy
import json
import threading
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_fakes import CountingChat
from lc_chat_fakes import SAID, Seen, StreamingChat, cached, was_hit

import stampcache
from stampcache import Cache


class Styled(BaseChatModel):
    """A model of the app that says nothing of what identifies it."""

    style: str = "plain"
    formal: bool | None = None

    @property
    def _llm_type(self) -> str:
        return "styled"

    def _generate(self, *given: Any, **options: Any) -> ChatResult:
        text = f"{self.style}, {self.formal}"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


class Raw(StreamingChat):
    """Hands over the connection with its last chunk, which nobody can copy."""

    def _stream(self, *given: Any, **options: Any) -> Any:
        for chunk in super()._stream(*given, **options):
            if not chunk.text:
                chunk.message.additional_kwargs["raw"] = threading.Lock()
            yield chunk


class Handler:
    def __init__(self, style: str) -> None:
        self.style = style


def test_a_stream_that_nobody_asked_for_is_not_of_the_scope_that_reads_it(opened: Cache) -> None:
    chat = cached(StreamingChat(), opened)
    asked = chat.stream("hello")
    with stampcache.scope(tenant="beta", question="what", audience="board"):
        list(asked)
        assert not was_hit(chat.invoke("hello"))


def test_traces_are_not_told_who_calls(opened: Cache) -> None:
    chat, seen = cached(StreamingChat(), opened), Seen()
    config: Any = {
        "callbacks": [seen],
        "configurable": {"stampcache": {"audience": "the board"}},
    }
    with stampcache.scope(tenant="acme"):
        list(chat.stream("hello", config=config))
    (start,) = seen.starts
    told = {name: start[name] for name in ("options", "invocation_params")}
    for text in (repr(start), repr(copy.deepcopy(told)), json.dumps(told, default=vars_of)):
        assert "acme" not in text
        assert "the board" not in text


def vars_of(item: object) -> object:
    return getattr(item, "__dict__", repr(item))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_chunk_that_cannot_be_copied_reaches_its_reader(opened: Cache, kind: str) -> None:
    chat = cached(Raw(), opened)

    async def aread() -> list[Any]:
        return [chunk async for chunk in chat.astream("hello")]

    for _ in range(2):  # nor is it stored
        chunks: list[Any] = list(chat.stream("hello")) if kind == "sync" else asyncio.run(aread())
        assert "".join(chunk.text for chunk in chunks) == "".join(SAID)
        assert any("raw" in chunk.additional_kwargs for chunk in chunks)
    assert chat.inner.calls == 2


def test_a_version_stands_for_no_object_among_the_options(opened: Cache) -> None:
    chat = cached(StreamingChat(), opened, version="1")
    chat.invoke("hello", handler=Handler("polite"))
    again = chat.invoke("hello", handler=Handler("rude"))
    assert again.response_metadata["cache"]["reason"] == "uncacheable"


@pytest.mark.parametrize("change", [{"style": "pirate"}, {"formal": True}], ids=str)
@pytest.mark.parametrize("through", ["inner", "cached"])
def test_a_field_that_is_set_later_is_seen(
    opened: Cache, through: str, change: dict[str, Any]
) -> None:
    inner = Styled()
    chat = cached(inner, opened)
    before = chat.invoke("hello").text
    assert was_hit(chat.invoke("hello"))
    for name, value in change.items():
        setattr(inner if through == "inner" else chat, name, value)
    after = chat.invoke("hello")
    assert after.text != before
    assert not was_hit(after)


def test_metadata_that_are_set_later_are_those_of_both(opened: Cache) -> None:
    inner = CountingChat()
    chat = cached(inner, opened)
    chat.metadata = {"team": "a"}
    assert inner.metadata == chat.metadata == {"team": "a"}
