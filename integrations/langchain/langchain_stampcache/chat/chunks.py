"""Chunks of a streamed answer: of a stored one, whose sum is that message, and of one being made."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AIMessageChunk, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.outputs.chat_generation import merge_chat_generation_chunks

from langchain_stampcache.chat.answers import unspent
from langchain_stampcache.pieces import pieces_of
from langchain_stampcache.reports import copied_report
from stampcache.adapters import CacheFields, TooFew

# What says how a chunk is read; LangChain keeps one of equal ones when it adds chunks.
_PROVIDER = "model_provider"
_VERSION = "output_version"
_SAID_BESIDE = ("additional_kwargs", "response_metadata")


def chunks_of(generation: ChatGeneration) -> list[ChatGenerationChunk]:
    """Return an answer as chunks that add up to it.

    Raises:
        TooFew: its message is none of an assistant, which alone can be streamed.
    """
    message = generation.message
    if not isinstance(message, AIMessage):
        raise TooFew(f"a {type(message).__name__} has no chunks")
    said = {name: one for name, one in message.response_metadata.items() if name == _PROVIDER}
    pieces = [one for one in pieces_of(message) if isinstance(one, AIMessageChunk)]
    for piece in pieces:
        piece.response_metadata = {**said, **piece.response_metadata}
        if isinstance(piece.content, str) and piece.response_metadata.get(_VERSION) == "v1":
            del piece.response_metadata[_VERSION]  # it is yet to be put into blocks, by LangChain
    chunks = [ChatGenerationChunk(message=piece) for piece in pieces]
    chunks[-1].generation_info = generation.generation_info
    return chunks


def whole(chunks: Sequence[ChatGenerationChunk]) -> ChatResult:
    """Return what the chunks of one stream come to.

    Raises:
        ValueError: there are none.
    """
    merged = merge_chat_generation_chunks(_addable(chunks))
    if merged is None:
        raise ValueError("the stream gave nothing")
    message = message_chunk_to_message(merged.message)
    info = merged.generation_info
    return ChatResult(generations=[ChatGeneration(message=message, generation_info=info)])


def _addable(chunks: Sequence[ChatGenerationChunk]) -> list[ChatGenerationChunk]:
    """Return chunks of texts without empty lists among them, after which LangChain drops texts."""
    contents = [chunk.message.content for chunk in chunks]
    if [] not in contents or not any(isinstance(one, str) and one for one in contents):
        return list(chunks)
    return [
        chunk
        if chunk.message.content
        else chunk.model_copy(update={"message": chunk.message.model_copy(update={"content": ""})})
        for chunk in chunks
    ]


def own_chunk(chunk: ChatGenerationChunk, *, made_here: bool) -> ChatGenerationChunk:
    """Return a reader's own copy; who has not caused its making gets no id of it and no tokens.

    It is not the last one: that is the `closing_chunk`.
    """
    own = _copied(chunk)
    if isinstance(own.message, AIMessageChunk):
        own.message.chunk_position = None
    if not made_here:
        unspent(own.message)
    return own


def _copied(chunk: ChatGenerationChunk) -> ChatGenerationChunk:
    """Return a copy; of a chunk that holds what cannot be copied, one that shares only its values."""
    try:
        return chunk.model_copy(deep=True)
    except Exception:  # noqa: BLE001 - any object of a provider; counted when it cannot be stored
        message = chunk.message
        said = {name: dict(getattr(message, name)) for name in _SAID_BESIDE}
        return chunk.model_copy(update={"message": message.model_copy(update=said)})


def closing_chunk(report: CacheFields, last: ChatGenerationChunk) -> ChatGenerationChunk:
    """Return the last chunk of a stream, which adds the report of the cache to its message."""
    return ChatGenerationChunk(
        message=AIMessageChunk(
            content="" if isinstance(last.message.content, str) else [],
            response_metadata={"cache": copied_report(report)},
            chunk_position="last",
        )
    )
