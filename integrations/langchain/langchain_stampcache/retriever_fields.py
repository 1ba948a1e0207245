"""All that decides what a retriever finds, as plain data, where nothing is retrieved on a hit.

`RetrieverSettings` reads what a retriever is set to do; where its documents are rechecked, a setting
that it leaves out shows in them. Here nothing would show it. So every field is read besides, those of
the retrievers inside too, and a filter that cannot be told from another one is refused. What a retriever
holds is still not read: a changed document is announced.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from types import FunctionType, MethodType, NoneType
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStore
from pydantic import BaseModel

from langchain_stampcache.retriever_settings import SETTINGS, RetrieverSettings
from langchain_stampcache.schemas import name_of
from stampcache.adapters import (
    CALLING,
    CanonicalError,
    holds_secret,
    value_identity,
    written_by,
)
from stampcache.adapters import name_of as embedder_name

MAX_DEPTH = 16
# What retrievers call their documents, when they hold them as plain data.
HOLDINGS = frozenset({
    "corpus", "data", "docs", "documents", "docstore", "index", "items", "metadatas", "pages", "store",
    "texts",
})  # fmt: skip
_CALLS = ("_get_relevant_documents", "_aget_relevant_documents", "invoke", "ainvoke")
_PLAIN = (str, int, float, bool, NoneType, FunctionType, MethodType, functools.partial)


class RetrieverFields:
    """Reads one retriever, again and again."""

    def __init__(self, retriever: Runnable[Any, Any]) -> None:
        self._retriever = retriever
        self._settings = RetrieverSettings()

    def read(self, config: RunnableConfig | None, options: Mapping[str, object]) -> object:
        """Return what decides about the documents under this config and with these call options.

        Raises:
            CanonicalError: a filter or another setting has no identity; the message names it.
        """
        return {
            "settings": self._settings.described(self._retriever, config),
            "fields": self._fields(_configured(self._retriever, config), "retriever", 0),
            "options": {name: _strict(value, name) for name, value in options.items()},
        }

    def _fields(self, item: object, where: str, depth: int) -> dict[str, object]:
        if depth > MAX_DEPTH:
            raise CanonicalError(f"{where} is nested deeper than {MAX_DEPTH} levels")
        state = written_by(type(item), _CALLS)
        read: dict[str, object] = {}
        for name, value in _parts_of(item):
            bare = name.lstrip("_")
            place = f"{where}.{name}"
            if name in SETTINGS:
                read[name] = _strict(value, place)
            elif bare in CALLING or holds_secret(bare, value) or name in state:
                continue
            elif isinstance(value, VectorStore):
                read[name] = _store(value)
            elif isinstance(value, Runnable):
                read[name] = self._fields(value, place, depth + 1)
            elif isinstance(value, list | tuple) and any(
                isinstance(one, Runnable) for one in value
            ):
                read[name] = [self._fields(one, place, depth + 1) for one in value]
            elif isinstance(value, _PLAIN) or (
                isinstance(value, Mapping | list | tuple | set | frozenset)
                and bare not in HOLDINGS
                and not _holds_documents(value)
            ):
                read[name] = _plain(value, place)
        return read


def _configured(item: Runnable[Any, Any], config: RunnableConfig | None) -> object:
    """Return the retriever that a configurable one is under this config."""
    inner: object = item
    while isinstance(inner, DynamicRunnable):
        inner, config = inner.prepare(config)
    return inner


def _parts_of(item: object) -> Iterator[tuple[str, object]]:
    if not isinstance(item, BaseModel):
        yield from vars(item).items()
        return
    for name in type(item).model_fields:
        yield name, getattr(item, name)
    yield from (item.model_extra or {}).items()
    yield from (item.__pydantic_private__ or {}).items()


def _holds_documents(value: object) -> bool:
    inside = value.values() if isinstance(value, Mapping) else value
    return any(isinstance(one, Document) for one in inside)  # type: ignore[attr-defined]  # a container


def _strict(value: object, where: str) -> object:
    """Return a filter, or whatever else a search is given."""

    def resolve(seen: object) -> object:
        if isinstance(seen, BaseModel):
            parts: Mapping[str, object] = {
                name: getattr(seen, name) for name in type(seen).model_fields
            }
        elif dataclasses.is_dataclass(seen) and not isinstance(seen, type):
            parts = {one.name: getattr(seen, one.name) for one in dataclasses.fields(seen)}
        else:
            raise CanonicalError(f"a {name_of(type(seen))} has no canonical form")
        return {"class": name_of(type(seen)), "fields": _strict(parts, where)}

    try:
        return value_identity(value, resolve=resolve)
    except CanonicalError as error:
        raise CanonicalError(f"{where}: {error}") from error


def _plain(value: object, where: str) -> object:
    """Return a field of plain data; what is none is what a retriever works with, and is not read."""
    try:
        return _strict(value, where)
    except CanonicalError:
        return {"held": name_of(type(value))}


def _store(store: VectorStore) -> object:
    """Return what tells a vector store from another one: its plain attributes, such as a collection."""
    named = {
        name: value
        for name, value in getattr(store, "__dict__", {}).items()
        if isinstance(value, str | int | float) and not holds_secret(name.lstrip("_"), value)
    }
    embeds = getattr(store, "embeddings", None)
    known = None if embeds is None else embedder_name(embeds)
    return {"class": name_of(type(store)), "named": named, "embeddings": known}
