"""Calls of cases as messages of LangChain, and its messages as replies."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from benchmarks.cases.words import Call, Reply

_OF_A_HIT = ("cache", "token_usage")


def turns_of(call: Call) -> list[BaseMessage]:
    """Return the turns before the question, with ids where the call wants some."""
    made: list[BaseMessage] = []
    for place, (who, text) in enumerate(call.history):
        made.append(_turn(who, text, f"{call.ids}-{place}" if call.ids else None, call.ids))
    return made


def messages_of(call: Call) -> list[BaseMessage]:
    """Return all messages of a call."""
    system = [SystemMessage(call.system, id=_id(call, "system"))] if call.system else []
    question = HumanMessage(call.question, id=_id(call, "question"))
    return [*system, *turns_of(call), question]


def _id(call: Call, what: str) -> str | None:
    return f"{call.ids}-{what}" if call.ids else None


def _turn(who: str, text: str, id_: str | None, ids: str) -> BaseMessage:
    call_id = f"call-{ids}"
    match who:
        case "human":
            return HumanMessage(text, id=id_)
        case "call":
            asked: Any = {"name": text, "args": {"city": "Ulm"}, "id": call_id}
            return AIMessage("", tool_calls=[asked], id=id_)
        case "tool":
            return ToolMessage(text, tool_call_id=call_id, id=id_)
        case _:
            return AIMessage(text, id=id_)


def reply_of(raw: Any) -> Reply:
    """Return what came back as a reply."""
    if not isinstance(raw, BaseMessage):
        return Reply(text=str(raw), raw=raw, essence=raw)
    usage = getattr(raw, "usage_metadata", None)
    calls = [(one["name"], one["args"]) for one in getattr(raw, "tool_calls", [])]
    return Reply(
        text=str(raw.text),
        raw=raw,
        fields=raw.response_metadata.get("cache"),
        usage=usage["total_tokens"] if usage else None,
        id=raw.id,
        tool_calls=calls,
        reasoning=raw.additional_kwargs.get("reasoning_content", ""),
        essence=_essence(raw),
    )


def _essence(raw: BaseMessage) -> Any:
    held = raw.model_dump(exclude={"id", "usage_metadata", "response_metadata"})
    for call in held.get("tool_calls", []):
        call.pop("id", None)
    said = {name: one for name, one in raw.response_metadata.items() if name not in _OF_A_HIT}
    return {**held, "said": said, "class": type(raw).__name__}


def summed(chunks: Sequence[Any]) -> Any:
    """Return what the chunks of a stream add up to."""
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk if isinstance(total, AIMessageChunk) else chunk
    return total


def spoil_message(message: Any) -> None:
    """Change a message as a careless caller would."""
    message.content = "spoiled"
    message.response_metadata["finish_reason"] = "spoiled"
    message.additional_kwargs["spoiled"] = True


class Tokens(BaseCallbackHandler):
    """Notes the tokens of which it is told."""

    def __init__(self, note: Callable[[str], object]) -> None:
        self._note = note

    def on_llm_new_token(self, token: Any, **given: Any) -> None:  # noqa: ARG002 - as told
        """Note one."""
        self._note(str(token))
