"""The events of a call that the inner model did not see: it was answered from the cache, or by another.

Where the model is asked it fires its events itself; here they are fired in its place, once, in the same
order. One thing is left out: the last event of the callback manager holds the response, but not what
was asked, since `TokenCountingHandler` takes a usage of zero for an unknown one, and would count the
tokens of the texts again (case K1).
"""

from collections.abc import AsyncGenerator, Generator
from typing import Any

from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]  # re-exported by LlamaIndex
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatInProgressEvent,
    LLMChatStartEvent,
    LLMCompletionEndEvent,
    LLMCompletionInProgressEvent,
    LLMCompletionStartEvent,
)
from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.llms import LLM

from llama_index_stampcache.llms.forms import Call, Form, Response

_DISPATCHER = get_dispatcher(__name__)


def told(llm: LLM, call: Call, response: Response) -> None:
    """Fire the events of a call that is answered."""
    with llm.callback_manager.as_trace(call.form.value):
        telling = _Telling(llm, call)
        telling.end(response)


def streamed(
    llm: LLM, call: Call, chunks: Generator[Response, None, None]
) -> Generator[Response, None, None]:
    """Fire the first events of a stream now, and the others as it is read."""
    with llm.callback_manager.as_trace(call.form.value):
        telling = _Telling(llm, call)
    return _streaming(telling, chunks)


async def astreamed(
    llm: LLM, call: Call, chunks: AsyncGenerator[Response, None]
) -> AsyncGenerator[Response, None]:
    """See `streamed`."""
    with llm.callback_manager.as_trace(call.form.value):
        telling = _Telling(llm, call)
    return _astreaming(telling, chunks)


def _streaming(
    telling: "_Telling", chunks: Generator[Response, None, None]
) -> Generator[Response, None, None]:
    last = None
    try:
        for chunk in chunks:
            telling.progress(chunk)
            yield chunk
            last = chunk
    except BaseException as error:
        telling.failed(error)
        raise
    finally:
        chunks.close()
    telling.end(last)


async def _astreaming(
    telling: "_Telling", chunks: AsyncGenerator[Response, None]
) -> AsyncGenerator[Response, None]:
    last = None
    try:
        async for chunk in chunks:
            telling.progress(chunk)
            yield chunk
            last = chunk
    except BaseException as error:
        telling.failed(error)
        raise
    finally:
        await chunks.aclose()
    telling.end(last)


class _Telling:
    """The events of one call; the first ones are fired when it is made."""

    def __init__(self, llm: LLM, call: Call) -> None:
        self._callbacks = llm.callback_manager
        self._chat = call.form is Form.CHAT
        self._span = active_span_id.get()
        model, kwargs = _model(llm), dict(call.kwargs)
        self._asked: dict[str, Any] = (
            {"messages": list(call.messages)} if self._chat else {"prompt": call.prompt}
        )
        told: dict[str, Any] = {
            "model_dict": model,
            "additional_kwargs": kwargs,
            "span_id": self._span,
        }
        start = LLMChatStartEvent if self._chat else LLMCompletionStartEvent
        _DISPATCHER.event(start(**self._asked, **told))
        place = EventPayload.MESSAGES if self._chat else EventPayload.PROMPT
        self._event_id = self._callbacks.on_event_start(
            CBEventType.LLM,
            payload={
                place: call.messages if self._chat else call.prompt,
                EventPayload.ADDITIONAL_KWARGS: kwargs,
                EventPayload.SERIALIZED: model,
            },
        )

    def progress(self, chunk: Response) -> None:
        """Tell of a chunk of a stream."""
        event = LLMChatInProgressEvent if self._chat else LLMCompletionInProgressEvent
        _DISPATCHER.event(event(**self._asked, **self._told(chunk)))

    def end(self, response: Response | None) -> None:
        """Tell of the response, or of the last chunk of a stream that has ended."""
        place = EventPayload.RESPONSE if self._chat else EventPayload.COMPLETION
        self._callbacks.on_event_end(
            CBEventType.LLM, payload={place: response}, event_id=self._event_id
        )
        event = LLMChatEndEvent if self._chat else LLMCompletionEndEvent
        if response is not None:  # a completion without any has no such event
            _DISPATCHER.event(event(**self._asked, **self._told(response)))

    def failed(self, error: BaseException) -> None:
        """Tell that a stream was left, or failed."""
        self._callbacks.on_event_end(
            CBEventType.LLM, payload={EventPayload.EXCEPTION: error}, event_id=self._event_id
        )
        _DISPATCHER.event(ExceptionEvent(exception=error, span_id=self._span))

    def _told(self, response: Response) -> dict[str, Any]:
        return {"response": response, "span_id": self._span}


def _model(llm: LLM) -> dict[str, Any]:
    """Return what an event tells of the model, without its keys."""
    payload = getattr(llm, "to_payload", None)  # of newer versions of the framework
    if payload is None:
        return {"class_name": llm.class_name(), **llm.metadata.model_dump()}
    told: dict[str, Any] = payload()
    return told
