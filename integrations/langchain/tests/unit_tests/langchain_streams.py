"""A model that streams, and what tests of streams ask of chunks."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_fakes import USAGE, CountingChat
from pydantic import PrivateAttr


def thinking_reply(messages: list[BaseMessage], call: int) -> AIMessage:
    return AIMessage(
        f"answer {call} to {messages[-1].text}",
        additional_kwargs={"reasoning_content": "The context says so."},
        usage_metadata=USAGE,
        response_metadata={"model_name": "fake-1", "finish_reason": "stop"},
    )


class StreamingChat(CountingChat):
    """Says its reasoning, then its text word by word, and last what the call took."""

    _pause: Callable[[int], None] = PrivateAttr(default_factory=lambda: lambda place: None)
    _given: list[int] = PrivateAttr(default_factory=list)

    @property
    def given(self) -> list[int]:
        """The places of the chunks that were asked for."""
        return self._given

    def pausing(self, pause: Callable[[int], None]) -> "StreamingChat":
        """Call ``pause`` with the place of each chunk before it is given."""
        self._pause = pause
        return self

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        self.calls += 1
        for place, chunk in enumerate(_chunks(self._reply(messages, self.calls))):
            self._pause(place)
            self._given.append(place)
            if run_manager:
                run_manager.on_llm_new_token(str(chunk.content))
            yield ChatGenerationChunk(message=chunk)


def _chunks(reply: AIMessage) -> Iterator[AIMessageChunk]:
    thought = reply.additional_kwargs.get("reasoning_content", "")
    for word in re.findall(r"\S+\s*", thought):
        yield AIMessageChunk(content="", additional_kwargs={"reasoning_content": word})
    for word in re.findall(r"\S+\s*", reply.text):
        yield AIMessageChunk(content=word)
    yield AIMessageChunk(
        content="",
        response_metadata=reply.response_metadata,
        usage_metadata=reply.usage_metadata,
        tool_call_chunks=[
            {"name": one["name"], "args": '{"days": 3}', "id": one["id"], "index": 0}
            for one in reply.tool_calls
        ],
    )


def summed(chunks: Iterable[Any]) -> Any:
    """Return the sum of chunks, as a caller takes it."""
    total: Any = None
    for chunk in chunks:
        total = chunk if total is None else total + chunk
    return total


def bare(result: Any) -> Any:
    """Return a result without what tells that it is a hit."""
    if isinstance(result, dict):
        return {name: bare(one) for name, one in result.items() if name != "cache"}
    if isinstance(result, AIMessage):
        said = {k: v for k, v in result.response_metadata.items() if k != "cache"}
        thought = result.additional_kwargs
        return (result.content, thought, said, result.tool_calls)
    return result
