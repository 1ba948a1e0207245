"""Chat models that stream, count their calls and remember what they were told; and readers of answers."""

import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessageChunk, BaseMessage, BaseMessageChunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_fakes import USAGE, CountingChat
from pydantic import PrivateAttr

from langchain_stampcache import CachedChatModel

SAID = ("This ", "is ", "a ", "streamed ", "answer")


class StreamingChat(CountingChat):
    """Streams ``said``, or invokes as its base does; ``told`` are the options of each call."""

    said: tuple[str, ...] = SAID
    fail_after: int | None = None
    finish: str | None = "stop"
    extra_body: dict[str, Any] | None = None
    model_kwargs: dict[str, Any] = {}  # noqa: RUF012 - a field of pydantic
    n: int | None = None
    _told: list[dict[str, Any]] = PrivateAttr(default_factory=list)
    _closed: list[int] = PrivateAttr(default_factory=list)
    _gate: threading.Event = PrivateAttr(default_factory=threading.Event)
    _started: threading.Event = PrivateAttr(default_factory=threading.Event)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._gate.set()

    @property
    def told(self) -> list[dict[str, Any]]:
        return self._told

    @property
    def closed(self) -> list[int]:
        """How many chunks each stream had given when it was closed."""
        return self._closed

    @property
    def gate(self) -> threading.Event:
        """While it is cleared, calls wait."""
        return self._gate

    @property
    def started(self) -> threading.Event:
        return self._started

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        self._told.append({"stop": stop, **options})
        self._started.set()
        self._gate.wait(30)
        if self.fail_after is not None:
            self.calls += 1
            raise ConnectionError("the model is down")
        result = super()._generate(messages, stop=stop)
        result.generations *= options.get("n") or self.n or 1
        return result

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> Iterator[ChatGenerationChunk]:
        self._told.append({"stop": stop, **options})
        self.calls += 1
        self._started.set()
        given = 0
        try:
            for word in self.said:
                self._gate.wait(30)
                if self.fail_after == given:
                    raise ConnectionError("the stream broke")
                given += 1
                yield ChatGenerationChunk(message=AIMessageChunk(word))
            info = {"finish_reason": self.finish, "model_name": self.model}
            last = AIMessageChunk("", usage_metadata=USAGE, response_metadata={"from": "stream"})
            yield ChatGenerationChunk(message=last, generation_info=info)
        finally:
            self._closed.append(given)


class AsyncStreamingChat(StreamingChat):
    """The same with an async stream of its own."""

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages, stop, None, **options):
            yield chunk


class Seen(BaseCallbackHandler):
    """Counts the events of runs."""

    def __init__(self) -> None:
        self.starts: list[dict[str, Any]] = []
        self.serialized: list[Any] = []
        self.tokens: list[str] = []
        self.ends: list[Any] = []
        self.errors: list[BaseException] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **given: Any) -> None:
        self.serialized.append(serialized)
        self.starts.append(given)

    def on_llm_new_token(self, token: Any, **given: Any) -> None:
        self.tokens.append(token if isinstance(token, str) else str(token))

    def on_llm_end(self, response: Any, **given: Any) -> None:
        self.ends.append(response)

    def on_llm_error(self, error: BaseException, **given: Any) -> None:
        self.errors.append(error)


def cached(inner: Any, cache: Any, **options: Any) -> CachedChatModel:
    return CachedChatModel(inner=inner, cache=cache, **options)


def summed(chunks: Iterable[BaseMessageChunk]) -> Any:
    """Return what chunks add up to; a model that does not stream gives one that is whole."""
    first, *rest = chunks
    for chunk in rest:
        first = first + chunk  # type: ignore[assignment]
    return first


def report(message: Any) -> dict[str, Any]:
    return message.response_metadata["cache"]


def was_hit(message: Any) -> bool:
    return bool(report(message)["hit"])


def bare(message: Any) -> dict[str, Any]:
    """Return what a hit and a fresh answer have in common: all but id, tokens and the cache's fields."""
    data = message.model_dump(exclude={"id", "usage_metadata", "response_metadata"})
    said = {
        name: one
        for name, one in message.response_metadata.items()
        if name not in ("cache", "token_usage")
    }
    return {**data, "response_metadata": said, "class": type(message).__name__}
