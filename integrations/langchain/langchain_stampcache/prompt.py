"""The prompt that LangChain hands to a cache, without what differs between equal conversations.

A chat prompt arrives as the JSON of ``dumps(messages)``. Ids of messages, runs and tool calls, and
what a reply cost, differ whenever it is made anew, so they must not enter the key: otherwise the
second turn of a conversation would never hit (cases B1, B8). Everything else is keyed.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from msgspec import Struct

from stampcache.adapters import CanonicalError

# Fields of a message that no model is sent: who it is, what it cost, what a tool kept for the app.
NOT_KEYED = frozenset({
    "artifact", "chunk_position", "id", "response_metadata", "tool_call_chunks", "usage_metadata",
})  # fmt: skip
# A copy of the content as an object; rebuilt from a hit it could look otherwise (case B8). All
# other additional_kwargs are keyed, ``reasoning_content`` too: some models are sent it back.
NOT_KEYED_ADDITIONAL = frozenset({"parsed"})
# What a turn that was streamed is called; it says the same as one that came whole (case B8).
_CHUNKS = {
    "AIMessageChunk": "ai", "ChatMessageChunk": "chat", "FunctionMessageChunk": "function",
    "HumanMessageChunk": "human", "SystemMessageChunk": "system", "ToolMessageChunk": "tool",
}  # fmt: skip
_PLAIN_KINDS = frozenset({AIMessage, HumanMessage, SystemMessage})
_PLAIN_FIELDS = frozenset({
    "additional_kwargs", "content", "id", "invalid_tool_calls", "name", "response_metadata",
    "tool_calls", "type", "usage_metadata",
})  # fmt: skip
_CALL_IDS = frozenset({"id", "tool_call_id", "call_id"})


class Chat(Struct, frozen=True):
    """A conversation in canonical form: one plain mapping per message."""

    messages: tuple[Mapping[str, object], ...]

    @property
    def last_text(self) -> str:
        """The last message if a human wrote it and it is nothing but text, else an empty string."""
        last = self.messages[-1] if self.messages else {}
        content = last.get("content")
        return content if last.get("type") == "human" and isinstance(content, str) else ""


def read(prompt: str) -> Chat | str:
    """Return the conversation in a prompt, or the prompt itself if it is plain text.

    Raises:
        CanonicalError: a message holds an object known only by its memory address.
    """
    if not prompt.startswith('[{"lc":'):
        return prompt
    try:
        dumped = _parsed(prompt)
    except (ValueError, RecursionError):
        return prompt
    if not all(_is_message(each) for each in dumped):
        return prompt
    return _chat([each["kwargs"] for each in dumped])


def _parsed(prompt: str) -> Any:
    """Return the data in a JSON text, by the parser that is quicker, where that can read it."""
    try:
        return msgspec.json.decode(prompt)
    except (msgspec.DecodeError, UnicodeEncodeError):  # half of a surrogate pair, for example
        return json.loads(prompt)


def of_messages(messages: Sequence[BaseMessage]) -> Chat:
    """Return messages in canonical form.

    Raises:
        CanonicalError: a message holds an object known only by its memory address.
    """
    return _chat([_plain_fields(message) or _dumped_fields(message) for message in messages])


def _plain_fields(message: BaseMessage) -> Mapping[str, object] | None:
    """Return the fields of a message that is a text and nothing else, as nearly all are.

    The same as `_dumped_fields`, without the serialising of all others.
    """
    kind = type(message)
    if kind not in _PLAIN_KINDS or type(message.content) is not str:
        return None
    if not message.model_fields_set <= _PLAIN_FIELDS or message.additional_kwargs:
        return None
    if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
        return None
    if message.model_extra or message.name is not None:
        return None
    return {"content": message.content, "type": message.type}


def _dumped_fields(message: BaseMessage) -> Mapping[str, object]:
    dumped = dumpd(message)
    if not _is_message(dumped):
        raise CanonicalError("a message is of a class that LangChain does not serialise")
    fields: Mapping[str, object] = dumped["kwargs"]
    return fields


def _is_message(dumped: object) -> bool:
    match dumped:
        case {"lc": 1, "type": "constructor", "id": [*_, _], "kwargs": {"type": str()}}:
            return True
    return False


def _chat(messages: Sequence[Mapping[str, object]]) -> Chat:
    calls = _Calls()
    return Chat(tuple(calls.message(each) for each in messages))


class _Calls:
    """Gives tool calls their number in the conversation instead of their random id."""

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def message(self, kwargs: Mapping[str, object]) -> dict[str, object]:
        """Return one message in canonical form."""
        for call in (*_list(kwargs, "tool_calls"), *_list(kwargs, "invalid_tool_calls")):
            self._meet(call.get("id") if isinstance(call, dict) else None)
        self._meet(kwargs.get("tool_call_id"))
        kept = {
            name: self._value(item, name)
            for name, item in kwargs.items()
            if name not in NOT_KEYED and name != "additional_kwargs" and item not in (None, [])
        }
        kind = kept.get("type")
        if isinstance(kind, str) and kind in _CHUNKS:
            kept["type"] = _CHUNKS[kind]
        additional = kwargs.get("additional_kwargs")
        if isinstance(additional, dict):
            extra = {
                name: self._value(item, name)
                for name, item in additional.items()
                if name not in NOT_KEYED_ADDITIONAL and item is not None
            }
            if extra:
                kept["additional_kwargs"] = extra
        return kept

    def _meet(self, call_id: object) -> None:
        if isinstance(call_id, str):
            self._numbers.setdefault(call_id, f"call {len(self._numbers)}")

    def _value(self, item: object, name: str) -> object:
        match item:
            case dict() if item.get("lc") == 1 and item.get("type") == "not_implemented":
                return _named(item)
            case dict():
                return {key: self._value(each, key) for key, each in item.items()}
            case list():
                return [self._value(each, "") for each in item]
            case str() if name in _CALL_IDS:
                return self._numbers.get(item, item)
        return item


def _list(kwargs: Mapping[str, object], name: str) -> list[object]:
    found = kwargs.get(name)
    return found if isinstance(found, list) else []


def _named(dumped: Mapping[str, object]) -> object:
    """Keep an object that its ``repr`` identifies; refuse one that only has an address (A25)."""
    said = dumped.get("repr")
    if not isinstance(said, str) or " at 0x" in said:
        raise CanonicalError(f"a message holds an object without identity ({dumped.get('id')})")
    return {"id": dumped.get("id"), "repr": said}
