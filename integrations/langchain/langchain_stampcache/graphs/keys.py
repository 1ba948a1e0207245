"""`node_key`: a key for LangGraph's ``CachePolicy`` that equal inputs share, and no others.

LangGraph's own pickles the state, where each message has a random id, so that it never hits. Here the
ids of messages and of tool calls do not count, everything else does, and so does who asks.
"""

import dataclasses
import datetime
import decimal
import enum
import secrets
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Set
from contextvars import ContextVar
from typing import Any

import xxhash
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from msgspec import Struct
from pydantic import BaseModel

from langchain_stampcache import prompt as prompts
from langchain_stampcache.schemas import name_of
from stampcache import Scope, canonical
from stampcache.adapters import CanonicalError, current_scope

MAX_DEPTH = 48
_KEYS_KEPT = 64
_WRITTEN = (datetime.date, datetime.time, decimal.Decimal, uuid.UUID)


class Keyed(Struct, frozen=True):
    """What `node_key` tells `StampNodeCache` of one input, in the same context.

    ``digest`` is the key as LangGraph hands it on, ``ids`` are those of the messages in the input, and
    ``problem`` says what has no canonical form.
    """

    digest: str
    ids: frozenset[str]
    problem: str = ""


_KEYED: ContextVar[tuple[Keyed, ...]] = ContextVar("stampcache_node_keys", default=())


def node_key(*args: object, **kwargs: object) -> str:
    """Return the key of a node's input (or a task's arguments), for ``CachePolicy(key_func=node_key)``.

    An input that has no canonical form gets a key that nothing shares; `StampNodeCache` counts it as
    uncacheable and stores nothing under it. Nothing is pickled, and nothing is raised.
    """
    given = [list(args), kwargs]
    problem = ""
    scope = current_scope() or Scope(tenant="")
    try:
        who = [canonical.encode(part) for part in (scope.tenant, scope.namespace, scope.audience)]
        asked = canonical.value(_plain(given, "input", 0))
        key = canonical.digest([*who, asked], person=b"node")
    except (CanonicalError, RecursionError) as error:
        problem = str(error)
        key = f"uncacheable:{secrets.token_hex(16)}"
    ids = frozenset(each.id for each in _messages(given, 0) if each.id)
    digest = xxhash.xxh3_128_hexdigest(key.encode())  # as LangGraph takes it
    _KEYED.set((*_KEYED.get()[1 - _KEYS_KEPT :], Keyed(digest, ids, problem)))
    return key


def keyed(digest: str) -> Keyed | None:
    """Return what was told of the input with this key in the running context, if it was."""
    return next((each for each in reversed(_KEYED.get()) if each.digest == digest), None)


def messages_in(value: object) -> Iterator[BaseMessage]:
    """Yield the messages in a value and in its containers."""
    return _messages(value, 0)


def _messages(value: object, depth: int) -> Iterator[BaseMessage]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, BaseMessage):
        yield value
        return
    for each in _inside(value):
        yield from _messages(each, depth + 1)


def _inside(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple | deque | Set):
        yield from value
    elif isinstance(value, BaseModel):
        yield from (getattr(value, name) for name in type(value).model_fields)
    elif _is_record(value):
        yield from (getattr(value, field.name) for field in dataclasses.fields(value))  # type: ignore[arg-type]  # checked there


def _plain(value: object, where: str, depth: int) -> object:
    """Return a value as plain data of which no two different values share one."""
    if depth > MAX_DEPTH:
        raise CanonicalError(f"{where} is nested deeper than {MAX_DEPTH} levels")
    match value:
        case enum.Enum():
            return {"enum": name_of(type(value)), "name": value.name}
        case None | bool() | str() | int() | float():
            return value
        case BaseMessage():
            return {"messages": list(prompts.of_messages([value]).messages)}
        case Document():
            held = {"text": value.page_content, "metadata": value.metadata, "id": value.id}
            return {"document": _entries(held, where, depth)}
        case Mapping():
            return {"map": _entries(value, where, depth)}
        case list() if value and all(isinstance(each, BaseMessage) for each in value):
            return {"messages": list(prompts.of_messages(value).messages)}
        case list():
            return [_plain(each, f"{where}[{at}]", depth + 1) for at, each in enumerate(value)]
        case tuple():
            return {"tuple": _plain(list(value), where, depth)}
        case Set():
            return {
                "set": sorted(
                    (_plain(each, where, depth + 1) for each in value), key=canonical.value
                )
            }
        case bytes():
            return {"bytes": value.hex()}
        case datetime.timedelta():
            return {"seconds": str(value.total_seconds())}
    return _object(value, where, depth)


def _object(value: object, where: str, depth: int) -> object:
    kind = name_of(type(value))
    if isinstance(value, _WRITTEN):
        return {"class": kind, "is": str(value)}
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        held = {**fields, **(value.model_extra or {})}
        return {"class": kind, "fields": _entries(held, where, depth)}
    if _is_record(value):
        held = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}  # type: ignore[arg-type]  # checked there
        return {"class": kind, "fields": _entries(held, where, depth)}
    raise CanonicalError(f"{where} is a {kind}, which has no canonical form")


def _entries(given: Mapping[Any, object], where: str, depth: int) -> dict[str, object]:
    plain: dict[str, object] = {}
    for name, item in given.items():
        if not isinstance(name, str):
            raise CanonicalError(f"{where} has the key {name!r}, which is no string")
        plain[name] = _plain(item, f"{where}.{name}", depth + 1)
    return plain


def _is_record(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)
