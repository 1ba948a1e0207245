"""A model that says a stored message again: streams and callbacks see a hit as they see a fresh reply."""

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from langchain_stampcache.chat.chunks import chunks_of


class Replay(BaseChatModel):
    """Replies with a message that was made before; it asks no model, and no cache of models either."""

    message: AIMessage
    cache: Literal[False] = False

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Tell nothing: traces serialise each model that runs, and this one lives for one call."""
        return iter(())

    @property
    def _serialized(self) -> dict[str, Any]:
        told = _serialized()
        return {**told, "id": list(told["id"])}

    @property
    def _llm_type(self) -> str:
        return "stampcache-replay"

    def _generate(
        self,
        messages: list[BaseMessage],  # noqa: ARG002 - the framework's signature
        stop: list[str] | None = None,  # noqa: ARG002 - the framework's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the framework's signature
        **kwargs: Any,  # noqa: ARG002 - the framework's signature
    ) -> ChatResult:
        whole = self.message.model_copy()  # callbacks see what the caller is given, as of any model
        return ChatResult(generations=[ChatGeneration(message=whole)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the framework's signature
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, None, **kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],  # noqa: ARG002 - the framework's signature
        stop: list[str] | None = None,  # noqa: ARG002 - the framework's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the framework's signature
        **kwargs: Any,  # noqa: ARG002 - the framework's signature
    ) -> Iterator[ChatGenerationChunk]:
        yield from self._chunks()

    def _chunks(self) -> list[ChatGenerationChunk]:
        return chunks_of(ChatGeneration(message=self.message.model_copy(deep=True)))

    async def _astream(
        self,
        messages: list[BaseMessage],  # noqa: ARG002 - the framework's signature
        stop: list[str] | None = None,  # noqa: ARG002 - the framework's signature
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the framework's signature
        **kwargs: Any,  # noqa: ARG002 - the framework's signature
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._chunks():
            yield chunk


@functools.cache
def _serialized() -> dict[str, Any]:
    """Return what traces are told of each of them, which is the same, as LangChain writes it."""
    told: dict[str, Any] = dumpd(Replay(message=AIMessage("")))
    return told
