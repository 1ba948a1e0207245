"""LangChain results as versioned JSON and back: messages, generations, documents, pydantic objects.

Plain data only: nothing that was stored can name code to run. What would not come back equal is not
stored, and what cannot be read is a miss. Reading makes new objects each time, so that nobody's
changes reach another caller.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    BaseMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
    messages_from_dict,
)
from langchain_core.outputs import (
    ChatGeneration,
    ChatGenerationChunk,
    Generation,
    GenerationChunk,
)
from msgspec import Struct
from pydantic import BaseModel, ValidationError

from langchain_stampcache.schemas import class_named, name_of
from stampcache import CodecError
from stampcache.adapters import CanonicalError

GENERATIONS = "lc.generations.1"
CHAIN = "lc.chain.1"
WHOLE = "lc.whole.1"
DOCUMENTS = "lc.documents.1"
_MESSAGES = (AIMessage, HumanMessage, SystemMessage, ToolMessage, ChatMessage, FunctionMessage)
_MODEL = "pydantic"
_BROKEN = (ValueError, TypeError, KeyError, RecursionError, CanonicalError, ValidationError)


class ChainResult(Struct, frozen=True):
    """What a chain answered, the documents it did so from, and further keys that it returned."""

    answer: object
    context: list[Document]
    extras: Mapping[str, object]


class Whole(Struct, frozen=True):
    """What an opaque chain returned, without the entries of its input that it gave back (``echoed``)."""

    value: object
    echoed: tuple[str, ...] = ()


def dump_generations(generations: Sequence[Generation]) -> bytes:
    """Return the bytes of the generations of one prompt.

    Raises:
        CanonicalError: something in them would not come back equal.
    """
    return _dump([_generation(each) for each in generations])


def load_generations(payload: bytes, kind: str) -> list[Generation]:
    """Return what `dump_generations` was given; never an empty list.

    Raises:
        CodecError: the bytes are of another version, damaged, or name a class that is gone.
    """
    if kind != GENERATIONS:
        raise CodecError(f"the stored answer has the form {kind!r}, not {GENERATIONS!r}")
    try:
        loaded = [_loaded_generation(each) for each in _parsed(payload)]
    except _BROKEN as error:
        raise CodecError(f"the stored generations cannot be read ({error})") from error
    if not loaded:
        raise CodecError("the stored answer holds no generation")
    return loaded


def dump_result(result: ChainResult) -> bytes:
    """Return the bytes of what a chain returned.

    Raises:
        CanonicalError: something in it would not come back equal.
    """
    context = [_document(each) for each in result.context]
    extras = dict(result.extras)
    return _dump({"answer": _data_of(result.answer), "context": context, "extras": extras})


def load_result(payload: bytes, kind: str) -> ChainResult:
    """Return what `dump_result` was given.

    Raises:
        CodecError: the bytes are of another version, damaged, or name a class that is gone.
    """
    if kind != CHAIN:
        raise CodecError(f"the stored answer has the form {kind!r}, not {CHAIN!r}")
    try:
        stored = _parsed(payload)
        context = [_loaded_document(each) for each in stored["context"]]
        return ChainResult(_loaded_value(stored["answer"]), context, stored["extras"])
    except _BROKEN as error:
        raise CodecError(f"the stored answer cannot be read ({error})") from error


def dump_whole(whole: Whole) -> bytes:
    """Return the bytes of whatever an opaque chain returned.

    Raises:
        CanonicalError: something in it would not come back equal.
    """
    return _dump({"value": _data_of(whole.value), "echoed": list(whole.echoed)})


def load_whole(payload: bytes, kind: str) -> Whole:
    """Return what `dump_whole` was given.

    Raises:
        CodecError: the bytes are of another version, damaged, or name a class that is gone.
    """
    if kind != WHOLE:
        raise CodecError(f"the stored answer has the form {kind!r}, not {WHOLE!r}")
    try:
        stored = _parsed(payload)
        return Whole(_loaded_value(stored["value"]), tuple(stored["echoed"]))
    except _BROKEN as error:
        raise CodecError(f"the stored answer cannot be read ({error})") from error


def dump_documents(documents: Sequence[Document]) -> bytes:
    """Return the bytes of what a retriever found.

    Raises:
        CanonicalError: a document would not come back equal.
    """
    return _dump([_document(each) for each in documents])


def load_documents(payload: bytes, kind: str) -> list[Document]:
    """Return what `dump_documents` was given.

    Raises:
        CodecError: the bytes are of another version, or damaged.
    """
    if kind != DOCUMENTS:
        raise CodecError(f"what is stored has the form {kind!r}, not {DOCUMENTS!r}")
    try:
        return [_loaded_document(each) for each in _parsed(payload)]
    except _BROKEN as error:
        raise CodecError(f"the stored documents cannot be read ({error})") from error


def _dump(data: object) -> bytes:
    try:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        if json.loads(text) != data:
            raise CanonicalError("the answer holds values that JSON would change")
        return text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise CanonicalError(f"the answer is no plain data ({error})") from error


def _parsed(stored: bytes) -> Any:
    """Return what `_dump` was given, by the parser that is quicker, if that knows how it was written."""
    try:
        return msgspec.json.decode(stored)
    except (msgspec.DecodeError, UnicodeDecodeError):  # of an infinite number, for example
        return json.loads(stored)


def _generation(generation: Generation) -> object:
    info = generation.generation_info
    if isinstance(generation, ChatGeneration):
        if type(generation) not in (ChatGeneration, ChatGenerationChunk):
            raise CanonicalError(f"a {type(generation).__qualname__} is of an unknown class")
        return {"message": _message(generation.message), "info": info}
    if type(generation) not in (Generation, GenerationChunk):
        raise CanonicalError(f"a {type(generation).__qualname__} is of an unknown class")
    return {"text": generation.text, "info": info}


def _loaded_generation(stored: Mapping[str, object]) -> Generation:
    info = stored["info"]
    if info is not None and not isinstance(info, dict):
        raise ValueError("generation_info is no mapping")
    if "message" in stored:
        return ChatGeneration(message=_loaded_message(stored["message"]), generation_info=info)
    return Generation(text=str(stored["text"]), generation_info=info)


def _message(message: BaseMessage) -> object:
    whole = message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message
    if type(whole) not in _MESSAGES:
        raise CanonicalError(f"a {type(whole).__qualname__} is of an unknown class")
    data = whole.model_dump()
    parsed = whole.additional_kwargs.get("parsed")
    if isinstance(parsed, BaseModel):
        data["additional_kwargs"]["parsed"] = _object(parsed)
    return {"type": whole.type, "data": data}


def _loaded_message(stored: object) -> BaseMessage:
    message = messages_from_dict([stored])[0]  # type: ignore[list-item]  # checked by pydantic
    parsed = message.additional_kwargs.get("parsed")
    if isinstance(parsed, dict) and _MODEL in parsed:
        message.additional_kwargs["parsed"] = _loaded_object(parsed)
    return message


def _object(made: BaseModel) -> object:
    """Return a pydantic object as data, if reading that data gives the same object again."""
    stored = {_MODEL: name_of(type(made)), "data": made.model_dump(mode="json")}
    try:
        same = _loaded_object(stored) == made
    except (ValueError, CanonicalError) as error:
        raise CanonicalError(f"a {name_of(type(made))} cannot be rebuilt ({error})") from error
    if not same:
        raise CanonicalError(f"a {name_of(type(made))} would be rebuilt as another object")
    return stored


def _loaded_object(stored: Mapping[str, object]) -> BaseModel:
    return class_named(str(stored[_MODEL])).model_validate_json(json.dumps(stored["data"]))


def _data_of(value: object) -> object:
    try:
        return _value(value)
    except RecursionError as error:
        raise CanonicalError("the answer is nested too deeply") from error


def _value(value: object) -> object:
    """Return a value as data that says what it was; plain values stay as they are."""
    match value:
        case BaseMessage():
            return {"message": _message(value)}
        case Document():
            return {"document": _document(value)}
        case BaseModel():
            return {"object": _object(value)}
        case list() if _holds_objects(value):
            return {"list": [_value(each) for each in value]}
        case Mapping() if _holds_objects(value):
            return {"map": {_text(name): _value(each) for name, each in value.items()}}
        case Mapping():
            return {"plain": dict(value)}
    return {"plain": value}


def _loaded_value(stored: Mapping[str, object]) -> object:
    match dict(stored):
        case {"message": message}:
            return _loaded_message(message)
        case {"document": dict(document)}:
            return _loaded_document(document)
        case {"object": dict(made)}:
            return _loaded_object(made)
        case {"list": list(items)}:
            return [_loaded_value(each) for each in items]
        case {"map": dict(entries)}:
            return {name: _loaded_value(each) for name, each in entries.items()}
        case {"plain": value}:
            return value
    raise ValueError("a stored value is of no known form")


def _holds_objects(value: object) -> bool:
    match value:
        case BaseModel():
            return True
        case Mapping():
            return any(map(_holds_objects, value.values()))
        case list():
            return any(map(_holds_objects, value))
    return False


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise CanonicalError(f"the answer has the key {name!r}, which is no text")
    return name


def _document(document: Document) -> object:
    if type(document) is not Document:
        raise CanonicalError(f"a {type(document).__qualname__} is of an unknown class")
    return {
        "text": document.page_content,
        "metadata": document.metadata,
        "id": document.id,
    }


def _loaded_document(stored: Mapping[str, object]) -> Document:
    return Document(
        page_content=stored["text"],  # type: ignore[arg-type]  # checked by pydantic
        metadata=stored["metadata"],
        id=stored["id"],
    )
