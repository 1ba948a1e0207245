"""A model of LlamaIndex for cases, which says what a script tells it to say."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import BaseTool
from pydantic import PrivateAttr

from benchmarks.cases.script import INPUT_TOKENS, OUTPUT_TOKENS, Script
from benchmarks.cases.words import SECRET, Said

CONDENSE = "CONDENSE|"
"""Begins a prompt that asks to condense a conversation, and is read as a whole."""
USAGE = {
    "prompt_tokens": INPUT_TOKENS,
    "completion_tokens": OUTPUT_TOKENS,
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    "prompt_tokens_details": {"cached_tokens": 5},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


class ScriptedLLM(FunctionCallingLLM):
    """A chat model that also completes texts; the question is the last line that it is shown."""

    model: str = "fake-1"
    temperature: float | None = 0.0
    api_base: str = "http://one.example/v1"
    api_key: str = SECRET
    additional_kwargs: dict[str, Any] = {}  # noqa: RUF012 - a field of pydantic
    _script: Script = PrivateAttr(default_factory=Script)

    @classmethod
    def class_name(cls) -> str:
        """Name it to the framework."""
        return "ScriptedLLM"

    @property
    def script(self) -> Script:
        """What it says, and how often it did."""
        return self._script

    @property
    def metadata(self) -> LLMMetadata:
        """What the framework asks of a model."""
        return LLMMetadata(
            context_window=1_000_000,
            model_name=self.model,
            is_chat_model=True,
            is_function_calling_model=True,
        )

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:  # noqa: ARG002 - the framework's signature
        """Answer a dialogue."""
        said, call = self._script.say(_question(messages))
        return ChatResponse(message=_message(said, call), raw=self._raw(said, call))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:  # noqa: ARG002 - the framework's signature
        """See `chat`."""
        said, call = self._script.say(_question(messages))
        return ChatResponse(message=_message(said, call), raw=self._raw(said, call))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:  # noqa: ARG002 - the framework's signature
        """Answer as a stream."""
        question = _question(messages)

        def stream() -> ChatResponseGen:
            yield from self._chunks(question)

        return stream()

    @llm_chat_callback()
    async def astream_chat(
        self,
        messages: Sequence[ChatMessage],
        **kwargs: Any,  # noqa: ARG002 - the framework's signature
    ) -> ChatResponseAsyncGen:
        """See `stream_chat`."""
        question = _question(messages)

        async def stream() -> ChatResponseAsyncGen:
            for chunk in self._chunks(question):
                yield chunk

        return stream()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: ARG002 - the framework's signature
        """Complete a text."""
        said, call = self._script.say(_last_line(prompt))
        return CompletionResponse(text=said.text, raw=self._raw(said, call))

    @llm_completion_callback()
    async def acomplete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: ARG002 - the framework's signature
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> CompletionResponse:
        """See `complete`."""
        said, call = self._script.say(_last_line(prompt))
        return CompletionResponse(text=said.text, raw=self._raw(said, call))

    @llm_completion_callback()
    def stream_complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: ARG002 - as above
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> CompletionResponseGen:
        """Complete a text as a stream."""

        def stream() -> CompletionResponseGen:
            for chunk in self._chunks(_last_line(prompt)):
                text = str(chunk.message.content)
                yield CompletionResponse(text=text, delta=chunk.delta, raw=chunk.raw)

        return stream()

    @llm_completion_callback()
    async def astream_complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: ARG002 - as above
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> CompletionResponseAsyncGen:
        """See `stream_complete`."""

        async def stream() -> CompletionResponseAsyncGen:
            for chunk in self._chunks(_last_line(prompt)):
                text = str(chunk.message.content)
                yield CompletionResponse(text=text, delta=chunk.delta, raw=chunk.raw)

        return stream()

    def _chunks(self, question: str) -> Iterator[ChatResponse]:
        said, call = self._script.say(question)
        words = said.text.split(" ")
        text = ""
        for place, word in enumerate(words):
            self._script.in_stream(place)
            is_last = place == len(words) - 1
            delta = word if is_last else f"{word} "
            text += delta
            part = Said(text=text)
            yield ChatResponse(
                message=_message(said if is_last else part, call),
                delta=delta,
                raw=self._raw(said, call) if is_last else None,
            )

    def _raw(self, said: Said, call: int) -> dict[str, Any]:
        return {
            "id": f"run-{call}",
            "model": self.model,
            "choices": [{"finish_reason": said.finish}],
            "usage": dict(USAGE),
        }

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,  # noqa: ARG002 - as above
        allow_parallel_tool_calls: bool = False,  # noqa: ARG002 - as above
        tool_required: bool = False,  # noqa: ARG002 - as above
        **kwargs: Any,
    ) -> dict[str, Any]:
        messages = list(chat_history or [])
        if user_msg is not None:
            messages.append(
                ChatMessage(content=user_msg) if isinstance(user_msg, str) else user_msg
            )
        specs = [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools]
        return {"messages": messages, "tools": specs, **kwargs}

    def get_tool_calls_from_response(
        self,
        response: ChatResponse,
        error_on_no_tool_call: bool = True,
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> list[ToolSelection]:
        """Return the tools that a response calls."""
        calls = response.message.additional_kwargs.get("tool_calls", [])
        if not calls and error_on_no_tool_call:
            raise ValueError("no tool was called")
        return [
            ToolSelection(
                tool_id=call["id"],
                tool_name=call["function"]["name"],
                tool_kwargs=json.loads(call["function"]["arguments"]),
            )
            for call in calls
        ]


def _question(messages: Sequence[ChatMessage]) -> str:
    return _last_line(str(messages[-1].content))


def _last_line(text: str) -> str:
    return text if text.startswith(CONDENSE) else text.rsplit("\n", 1)[-1]


def _message(said: Said, call: int) -> ChatMessage:
    extra: dict[str, Any] = {}
    if said.reasoning:
        extra["reasoning_content"] = said.reasoning
    if said.tool is not None:
        name, arguments = said.tool
        function = {"name": name, "arguments": json.dumps(dict(arguments))}
        extra["tool_calls"] = [{"id": f"call-{call}", "type": "function", "function": function}]
    return ChatMessage(role=MessageRole.ASSISTANT, content=said.text, additional_kwargs=extra)
