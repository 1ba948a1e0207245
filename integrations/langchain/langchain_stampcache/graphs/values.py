"""What nodes of a graph write, as versioned JSON and back.

Plain data, messages, documents and pydantic objects; nothing stored names code to run, and nothing is
pickled. What would not come back equal is refused.
"""

import base64
import datetime
import decimal
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.types import Send
from pydantic import BaseModel

from langchain_stampcache import payload
from langchain_stampcache.payload import Whole
from stampcache import CodecError
from stampcache.adapters import CanonicalError

NODE = "lc.node.1"
_AS = "as"
_TEXTS: Mapping[str, type[Any]] = {
    "datetime": datetime.datetime,
    "date": datetime.date,
    "time": datetime.time,
    "decimal": decimal.Decimal,
    "uuid": uuid.UUID,
}
_CONTAINERS: Mapping[str, Callable[[Iterable[Any]], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
}
_NAMES = {kind: name for name, kind in _TEXTS.items()}
_BROKEN = (ValueError, TypeError, KeyError, decimal.InvalidOperation)


def dump_result(result: object) -> bytes:
    """Return the bytes of what a node wrote, or of any other value.

    Raises:
        CanonicalError: something in it would not come back equal.
    """
    return payload.dump_whole(Whole(_data(result)))


def load_result(stored: bytes, kind: str) -> object:
    """Return what `dump_result` was given.

    Raises:
        CodecError: the bytes are of another version, or damaged.
    """
    if kind != NODE:
        raise CodecError(f"the stored result has the form {kind!r}, not {NODE!r}")
    value = payload.load_whole(stored, payload.WHOLE).value
    try:
        return _value(value)
    except _BROKEN as error:
        raise CodecError(f"the stored result cannot be read ({error})") from error


def _data(value: object) -> object:
    """Return a value in which only lists, texts, numbers and objects of LangChain are left."""
    match value:
        case RemoveMessage():
            raise CanonicalError("a result that removes messages names them by their ids")
        case None | bool() | BaseMessage() | Document() | BaseModel():
            return value
        case Send():
            return {_AS: "send", "node": value.node, "arg": _data(value.arg)}
    if type(value) in (str, int, float):
        return value
    if type(value) is dict:
        if not all(type(name) is str for name in value):
            raise CanonicalError("a result has a key that is no text")
        return {_AS: "map", "items": {name: _data(item) for name, item in value.items()}}
    if type(value) is list:
        return [_data(item) for item in value]
    if type(value) in _CONTAINERS.values():
        items = [_data(item) for item in value]  # type: ignore[attr-defined]  # one of those
        return {_AS: type(value).__name__, "items": items}
    if type(value) is bytes:
        return {_AS: "bytes", "text": base64.b64encode(value).decode()}
    if type(value) in _NAMES:
        return _written(value)
    raise CanonicalError(f"a {type(value).__qualname__} has no stored form")


def _written(value: Any) -> object:
    name = _NAMES[type(value)]
    text = str(value) if name in ("decimal", "uuid") else value.isoformat()
    if _read(name, text) != value or getattr(value, "fold", 0):
        raise CanonicalError(f"the {name} {text} would not come back equal")
    zone = getattr(value, "tzinfo", None)
    if zone is not None and type(zone) is not datetime.timezone:
        raise CanonicalError(f"the {name} {text} has a time zone with rules of its own")
    return {_AS: name, "text": text}


def _read(name: str, text: str) -> object:
    kind = _TEXTS[name]
    made: object = kind(text) if name in ("decimal", "uuid") else kind.fromisoformat(text)
    return made


def _value(data: object) -> object:
    if isinstance(data, list):
        return [_value(item) for item in data]
    if not isinstance(data, dict):
        return data
    match data[_AS]:
        case "map":
            return {name: _value(item) for name, item in data["items"].items()}
        case "send":
            return Send(data["node"], _value(data["arg"]))
        case "bytes":
            return base64.b64decode(data["text"])
        case name if name in _CONTAINERS:
            return _CONTAINERS[name](_value(item) for item in data["items"])
    return _read(data[_AS], data["text"])
