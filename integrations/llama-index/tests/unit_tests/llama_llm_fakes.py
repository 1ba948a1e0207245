"""A scripted function-calling model: what it says follows from what it is asked, its ids are random."""

import asyncio
import hashlib
import json
import re
import secrets
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from llama_index.core.base.llms import types
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
    TextBlock,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools import BaseTool, FunctionTool
from pydantic import Field, PrivateAttr

# Older versions of the framework have no blocks for thoughts and calls of tools.
ThinkingBlock: Any = getattr(types, "ThinkingBlock", None)
ToolCallBlock: Any = getattr(types, "ToolCallBlock", None)
NEW = ToolCallBlock is not None
_SUM = re.compile(r"add (\d+) (\d+)")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


ADD = FunctionTool.from_defaults(add)


class ScriptedLLM(FunctionCallingLLM):
    """Says "the sum is ..." after a tool has added, else a digest of what it was asked.

    What begins with "fail" fails, "cut" is cut off, "break" fails in the middle of a stream.
    """

    model: str = "scripted"
    temperature: float = 0.0
    api_key: str = "sk-secret"
    api_base: str = "http://one"
    additional_kwargs: dict[str, Any] = Field(default_factory=dict)
    thinks: bool = True
    calls_tools: bool = True
    chunk: int = 3
    _asked: list[object] = PrivateAttr(default_factory=list)
    _gate: threading.Event | None = PrivateAttr(default=None)
    _begun: threading.Event | None = PrivateAttr(default=None)

    @classmethod
    def class_name(cls) -> str:
        return "ScriptedLLM"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            model_name=self.model, is_chat_model=True, is_function_calling_model=self.calls_tools
        )

    @property
    def calls(self) -> int:
        return len(self._asked)

    def waits_for(self, gate: threading.Event, *, begun: threading.Event) -> None:
        """Tell when the model is asked, and let it answer when the gate opens."""
        self._gate, self._begun = gate, begun

    # -- what it says -----------------------------------------------------------------------------

    def _heard(self, asked: object) -> None:
        self._asked.append(asked)
        if self._begun is not None:
            self._begun.set()
        if self._gate is not None and not self._gate.wait(20):
            raise TimeoutError("the gate stayed shut")

    def _said(self, messages: Sequence[ChatMessage], kwargs: dict[str, Any]) -> ChatMessage:
        last = messages[-1]
        text = last.content or ""
        if text.startswith("fail"):
            raise RuntimeError(f"the provider failed at call {self.calls}")
        blocks: list[Any] = []
        if self.thinks and NEW:
            blocks.append(ThinkingBlock(content=f"thinking of {text}"))
        wanted = _SUM.search(text)
        tools = kwargs.get("tools")
        if tools and last.role is MessageRole.USER:
            name = tools[0]["function"]["name"]
            adds = name == "add" and wanted is not None
            arguments = (
                {"a": int(wanted[1]), "b": int(wanted[2])} if adds else _filled(tools[0], text)
            )
            written = json.dumps(arguments)
            id_ = f"call_{secrets.token_hex(6)}"
            if NEW:
                blocks.append(ToolCallBlock(tool_call_id=id_, tool_name=name, tool_kwargs=written))
            call = {"id": id_, "type": "function", "function": {"name": name, "arguments": written}}
            return ChatMessage(
                role=MessageRole.ASSISTANT, blocks=blocks, additional_kwargs={"tool_calls": [call]}
            )
        if last.role is MessageRole.TOOL:
            answer = f"the sum is {text}"
        else:
            shown = "|".join(f"{one.role.value}:{one.content}" for one in messages)
            answer = f"answer {self._digest(shown, kwargs)}"
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=[*blocks, TextBlock(text=answer)])

    def _digest(self, shown: str, kwargs: dict[str, Any]) -> str:
        runs = [self.model, self.temperature, self.api_base, self.additional_kwargs, kwargs]
        whole = f"{shown} {runs}"
        return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:12]

    def _raw(self, finish: str | None, *, usage: bool) -> dict[str, Any]:
        spent = {
            "prompt_tokens": 7,
            "completion_tokens": 5,
            "total_tokens": 12,
            "prompt_cache_hit_tokens": 4,
            "completion_tokens_details": {"reasoning_tokens": 2},
        }
        return {
            "id": secrets.token_hex(4),
            "model": self.model,
            "choices": [{"finish_reason": finish}],
            "usage": spent if usage else None,
        }

    def _finish(self, text: str, message: ChatMessage | None = None) -> str:
        if text.startswith("cut"):
            return "length"
        called = message is not None and "tool_calls" in message.additional_kwargs
        return "tool_calls" if called else "stop"

    def _whole(self, messages: Sequence[ChatMessage], kwargs: dict[str, Any]) -> ChatResponse:
        self._heard(list(messages))
        message = self._said(messages, kwargs)
        finish = self._finish(messages[-1].content or "", message)
        counts = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
        return ChatResponse(
            message=message, raw=self._raw(finish, usage=True), additional_kwargs=counts
        )

    def _chunks(
        self, messages: Sequence[ChatMessage], kwargs: dict[str, Any]
    ) -> Iterator[ChatResponse]:
        """Yield what a provider streams: thoughts, then text, then the arguments of calls."""
        text = messages[-1].content or ""
        whole = self._said(messages, kwargs)
        blocks: list[Any] = []
        for block in whole.blocks:
            said = _text_of(block)
            blocks.append(block)
            for at in range(0, max(1, len(said)), self.chunk):
                if text.startswith("break") and len(blocks) > 1:
                    raise RuntimeError("the connection broke")
                part = said[at : at + self.chunk]
                blocks[-1] = _upto(block, said[: at + self.chunk])
                thought = NEW and isinstance(block, ThinkingBlock)
                yield ChatResponse(
                    message=ChatMessage(role=MessageRole.ASSISTANT, blocks=list(blocks)),
                    delta=part if isinstance(block, TextBlock) else "",
                    raw=self._raw(None, usage=False),
                    additional_kwargs={"thinking_delta": part} if thought else {},
                )
        yield ChatResponse(
            message=whole, delta="", raw=self._raw(self._finish(text, whole), usage=True)
        )

    # -- the calls --------------------------------------------------------------------------------

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._whole(messages, kwargs)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        await asyncio.sleep(0)
        return self._whole(messages, kwargs)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        def stream() -> ChatResponseGen:
            self._heard(list(messages))
            yield from self._chunks(messages, kwargs)

        return stream()

    @llm_chat_callback()
    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        async def stream() -> ChatResponseAsyncGen:
            self._asked.append(list(messages))
            for chunk in self._chunks(messages, kwargs):
                await asyncio.sleep(0)
                yield chunk

        return stream()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self._heard(prompt)
        return self._completed(prompt, kwargs)

    @llm_completion_callback()
    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        await asyncio.sleep(0)
        self._asked.append(prompt)
        return self._completed(prompt, kwargs)

    def _completed(self, prompt: str, kwargs: dict[str, Any]) -> CompletionResponse:
        if prompt.startswith("fail"):
            raise RuntimeError(f"the provider failed at call {self.calls}")
        text = f"completed {self._digest(prompt, kwargs)}"
        return CompletionResponse(text=text, raw=self._raw(self._finish(prompt), usage=True))

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        def stream() -> CompletionResponseGen:
            self._heard(prompt)
            yield from self._completing(prompt, kwargs)

        return stream()

    @llm_completion_callback()
    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        async def stream() -> CompletionResponseAsyncGen:
            self._asked.append(prompt)
            for chunk in self._completing(prompt, kwargs):
                await asyncio.sleep(0)
                yield chunk

        return stream()

    def _completing(self, prompt: str, kwargs: dict[str, Any]) -> Iterator[CompletionResponse]:
        whole = self._completed(prompt, kwargs)
        for at in range(0, len(whole.text), self.chunk):
            if prompt.startswith("break") and at > 3:
                raise RuntimeError("the connection broke")
            end = at + self.chunk
            last = end >= len(whole.text)
            raw = whole.raw if last else self._raw(None, usage=False)
            yield CompletionResponse(text=whole.text[:end], delta=whole.text[at:end], raw=raw)

    # -- tools ------------------------------------------------------------------------------------

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        messages = list(chat_history or [])
        if user_msg is not None:
            text = isinstance(user_msg, str)
            messages.append(ChatMessage(content=user_msg) if text else user_msg)  # type: ignore[arg-type]
        specs = [tool.metadata.to_openai_tool(skip_length_check=True) for tool in tools]
        return {"messages": messages, "tools": specs, **kwargs}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        calls = response.message.additional_kwargs.get("tool_calls", [])
        if not calls and error_on_no_tool_call:
            raise ValueError("no tool was called")
        return [
            ToolSelection(
                tool_id=call["id"],
                tool_name=call["function"]["name"],
                tool_kwargs=_parsed(call["function"]["arguments"]),
            )
            for call in calls
        ]


def _parsed(written: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(written)
    except ValueError:
        return {}
    return found


def _filled(tool: dict[str, Any], text: str) -> dict[str, Any]:
    fields = tool["function"]["parameters"].get("properties", {})
    return {
        name: len(text) if one.get("type") == "integer" else f"{name} of {text}"
        for name, one in fields.items()
    }


def _text_of(block: Any) -> str:
    if isinstance(block, TextBlock):
        return block.text
    return str(block.content if isinstance(block, ThinkingBlock) else block.tool_kwargs)


def _upto(block: Any, said: str) -> Any:
    if isinstance(block, TextBlock):
        return TextBlock(text=said)
    if isinstance(block, ThinkingBlock):
        return ThinkingBlock(content=said)
    return block.model_copy(update={"tool_kwargs": said})


def user(text: str) -> list[ChatMessage]:
    return [ChatMessage(role=MessageRole.USER, content=text)]


def cached(response: Any) -> dict[str, Any]:
    """What a response says about the cache."""
    found: dict[str, Any] = response.additional_kwargs["cache"]
    return found


def bare(response: Any) -> Any:
    """A response without ids, usage and what is said of the cache."""
    additional = {
        name: value
        for name, value in response.additional_kwargs.items()
        if name != "cache" and not name.endswith("_tokens")
    }
    told: dict[str, Any] = {"delta": response.delta, "with": additional}
    if isinstance(response, CompletionResponse):
        return {**told, "text": response.text}
    written = response.message.model_dump()
    return {**told, "message": json.loads(re.sub(r"call_[0-9a-f]+", "call", json.dumps(written)))}
