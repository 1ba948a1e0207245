"""From the response to a turn to what a chat engine of the framework gives and remembers."""

from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    MessageRole,
)
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    StreamingResponse,
)

from llama_index_stampcache.chats.turns import SAID
from llama_index_stampcache.engines.payload import REPORT
from stampcache.adapters import Flow, Step


def whole(response: RESPONSE_TYPE) -> Flow[RESPONSE_TYPE]:
    """Read a stream to its end, where a whole answer is asked for."""
    if isinstance(response, AsyncStreamingResponse):
        read = response.get_response
        read_all: Step[RESPONSE_TYPE] = Step(sync=lambda: asyncio_run(read()), aio=read)
        return (yield from read_all)
    return response.get_response() if isinstance(response, StreamingResponse) else response


def message_of(response: RESPONSE_TYPE) -> ChatMessage:
    """Return an answer as the memory has it."""
    said = (response.metadata or {}).get(SAID)
    if isinstance(said, ChatMessage):
        return said
    if said is not None:
        return ChatMessage.model_validate(said)
    return ChatMessage(content=str(response), role=MessageRole.ASSISTANT)


def text_of(response: RESPONSE_TYPE) -> str:
    """Return an answer as the engine's own response has it."""
    said = SAID in (response.metadata or {})
    return str(message_of(response).content) if said else str(response)


def report_of(response: RESPONSE_TYPE) -> dict[str, object]:
    """Return the metadata of a chat response: our report."""
    report = (response.metadata or {}).get(REPORT)
    return {} if report is None else {REPORT: report}


def chunks_of(response: RESPONSE_TYPE) -> ChatResponseGen:
    """Return an answer as a stream of a chat; a whole one in one chunk."""
    if not isinstance(response, StreamingResponse):
        yield ChatResponse(message=message_of(response), delta=text_of(response))
        return
    text = ""
    for delta in response.response_gen:
        text += delta
        yield _chunk(text, delta)


async def achunks_of(response: RESPONSE_TYPE) -> ChatResponseAsyncGen:
    """See `chunks_of`."""
    if not isinstance(response, AsyncStreamingResponse):
        for chunk in chunks_of(response):
            yield chunk
        return
    text = ""
    async for delta in response.async_response_gen():
        text += delta
        yield _chunk(text, delta)


def _chunk(text: str, delta: str) -> ChatResponse:
    message = ChatMessage(content=text, role=MessageRole.ASSISTANT)
    return ChatResponse(message=message, delta=delta)
