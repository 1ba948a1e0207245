"""Models of LangChain for cases, which say what a script tells them to say."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, BaseLLM
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCallChunk
from langchain_core.outputs import (
    ChatGeneration,
    ChatGenerationChunk,
    ChatResult,
    Generation,
    LLMResult,
)
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from benchmarks.cases.script import INPUT_TOKENS, OUTPUT_TOKENS, Script
from benchmarks.cases.words import SECRET, Said

USAGE: Any = {
    "input_tokens": INPUT_TOKENS,
    "output_tokens": OUTPUT_TOKENS,
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    "input_token_details": {"cache_read": 5},
    "output_token_details": {"reasoning": 3},
}


def message_of(said: Said, call: int, model: str) -> AIMessage:
    """Return what was said as a model's message."""
    calls: list[Any] = []
    if said.tool is not None:
        name, arguments = said.tool
        calls.append({"name": name, "args": dict(arguments), "id": f"call-{call}"})
    extra = {"reasoning_content": said.reasoning} if said.reasoning else {}
    return AIMessage(
        said.text,
        id=f"run-{call}",
        tool_calls=calls,
        additional_kwargs=extra,
        usage_metadata=USAGE,
        response_metadata={"model_name": model, "finish_reason": said.finish},
    )


class ScriptedChat(BaseChatModel):
    """A chat model; like ``ChatDeepSeek`` it tells LangChain its parameters, and not its endpoint."""

    model: str = "fake-1"
    temperature: float | None = 0.0
    base_url: str = "http://one.example/v1"
    api_key: str = SECRET
    model_kwargs: Mapping[str, Any] = {}
    _script: Script = PrivateAttr(default_factory=Script)

    @property
    def script(self) -> Script:
        """What it says, and how often it did."""
        return self._script

    @property
    def _llm_type(self) -> str:
        return "scripted-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        told = {"model": self.model, "model_kwargs": dict(self.model_kwargs)}
        return told if self.temperature is None else {**told, "temperature": self.temperature}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the framework's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - as above
        **kwargs: Any,
    ) -> ChatResult:
        said, call = self._script.say(str(messages[-1].text))
        count = kwargs.get("n", 1)
        made = [message_of(said, call, self.model) for _ in range(count)]
        for place, message in enumerate(made[1:], 2):
            message.content = f"{said.text} ({place})"
        return ChatResult(generations=[ChatGeneration(message=message) for message in made])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - as above
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> Iterator[ChatGenerationChunk]:
        said, call = self._script.say(str(messages[-1].text))
        whole = message_of(said, call, self.model)
        words = said.text.split(" ")
        for place, word in enumerate(words):
            self._script.in_stream(place)
            is_last = place == len(words) - 1
            text = word if is_last else f"{word} "
            chunk = ChatGenerationChunk(message=_chunk(whole, text, is_last=is_last))
            if run_manager is not None:
                run_manager.on_llm_new_token(text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, stop, None, **kwargs):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def bind_tools(
        self,
        tools: Sequence[Any],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[Any, AIMessage]:
        """Bind tools as an OpenAI model does."""
        chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **chosen, **kwargs)


def _chunk(whole: AIMessage, text: str, *, is_last: bool) -> AIMessageChunk:
    if not is_last:
        return AIMessageChunk(content=text, id=whole.id)
    calls = [
        ToolCallChunk(name=one["name"], args=json.dumps(one["args"]), id=one["id"], index=place)
        for place, one in enumerate(whole.tool_calls)
    ]
    return AIMessageChunk(
        content=text,
        id=whole.id,
        tool_call_chunks=calls,
        additional_kwargs=whole.additional_kwargs,
        usage_metadata=whole.usage_metadata,
        response_metadata=whole.response_metadata,
    )


class ScriptedText(BaseLLM):
    """A model of plain text; LangChain keys none of the options of one call."""

    model: str = "text-1"
    _script: Script = PrivateAttr(default_factory=Script)

    @property
    def script(self) -> Script:
        """What it says, and how often it did."""
        return self._script

    @property
    def _llm_type(self) -> str:
        return "scripted-text"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model}

    def _generate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,  # noqa: ARG002 - as above
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - as above
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> LLMResult:
        texts = [self._script.say(prompt)[0].text for prompt in prompts]
        return LLMResult(generations=[[Generation(text=text)] for text in texts])
