"""All that decides what a retriever finds, as plain data, where nothing is retrieved on a hit.

`RetrieverSettings` reads what a retriever is set to do; where its documents are rechecked, a setting
that it leaves out shows in them. Here nothing would show it. So every field is read besides, those of
the retrievers inside too, and a filter that cannot be told from another one is refused. What a retriever
holds is still not read: a changed document is announced.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, MethodType, NoneType
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.vectorstores import VectorStore
from pydantic import BaseModel

from langchain_stampcache.retrieval.settings import SETTINGS, RetrieverSettings, WholeChain
from langchain_stampcache.retrieval.watched import watch_of
from langchain_stampcache.schemas import name_of
from stampcache.adapters import (
    CALLING,
    CanonicalError,
    EmbedderSettings,
    holds_secret,
    value_identity,
    written_by,
)

MAX_DEPTH = 16
# What retrievers call their documents, when they hold them as plain data.
HOLDINGS = frozenset({
    "corpus", "data", "docs", "documents", "docstore", "index", "items", "metadatas", "pages", "store",
    "texts",
})  # fmt: skip
_CALLS = ("_get_relevant_documents", "_aget_relevant_documents", "invoke", "ainvoke")
_PLAIN = (str, int, float, bool, NoneType)


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
            bare, place = name.lstrip("_"), f"{where}.{name}"
            if name in SETTINGS:
                read[name] = _strict(value, place)
            elif bare not in CALLING and not holds_secret(bare, value) and name not in state:
                read[name] = self._field(bare, value, place, depth)
        return read

    def _field(self, bare: str, value: object, place: str, depth: int) -> object:
        """Return what a field decides; of what is held, such as an index, its class."""
        held = {"held": name_of(type(value))}
        match value:
            case VectorStore():
                return described_store(value)
            case Runnable():
                return self._fields(value, place, depth + 1)
            case list() | tuple() if any(isinstance(one, Runnable) for one in value):
                return [self._field(bare, one, place, depth + 1) for one in value]
            case FunctionType() | functools.partial():
                return _strict(value, place)
            case MethodType():
                return {"method": value.__func__.__qualname__, "of": name_of(type(value.__self__))}
            case Mapping() | list() | tuple() | set() | frozenset():
                is_held = bare in HOLDINGS or _holds_documents(value)
                return held if is_held else _plain(value, place)
            case _ if isinstance(value, _PLAIN):
                return _plain(value, place)
            case _ if _has_fields(value) and bare not in HOLDINGS:
                return {**held, "fields": self._fields(value, place, depth + 1)}
        return held


class WatchedRunnable(WholeChain):
    """Reads what stands in the place of a retriever: what its functions do, with all that they see."""

    def values_of(self, node: BaseModel) -> Mapping[str, object]:
        """Return the fields of an object that say what it does; of a retriever its stores, too."""
        stores = {
            f"{name}, described": described_store(value)
            for name, value in _parts_of(node)
            if isinstance(node, BaseRetriever) and isinstance(value, VectorStore)
        }
        return {**super().values_of(node), **stores}

    def function(self, item: object, resolve: Callable[[object], object]) -> object:
        """Return what a function would do, or which watched store one sees."""
        if watch_of(item) is not None:
            return described_store(item)
        return super().function(item, resolve)


def _configured(item: Runnable[Any, Any], config: RunnableConfig | None) -> object:
    """Return the retriever that a configurable one is under this config."""
    inner: object = item
    while isinstance(inner, DynamicRunnable):
        inner, config = inner.prepare(config)
    return inner


def _parts_of(item: object) -> Iterator[tuple[str, object]]:
    if not isinstance(item, BaseModel):
        yield from getattr(item, "__dict__", {}).items()
        if dataclasses.is_dataclass(item) and not hasattr(item, "__dict__"):
            yield from ((one.name, getattr(item, one.name)) for one in dataclasses.fields(item))
        return
    for name in type(item).model_fields:
        yield name, getattr(item, name)
    yield from (item.model_extra or {}).items()
    yield from (item.__pydantic_private__ or {}).items()


def _has_fields(value: object) -> bool:
    """Tell whether an object is made of named fields, such as the options of a search."""
    if isinstance(value, type | Document):
        return False
    return isinstance(value, BaseModel) or dataclasses.is_dataclass(value)


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


def described_store(store: object) -> object:
    """Return what tells a vector store from another one: its plain attributes, such as a collection."""
    watch = watch_of(store)
    if watch is not None:
        inner: object = getattr(store, "inner", None)
        described: dict[str, object] = {"watched": described_store(inner)}
        return {**described, "index": watch.apart} if watch.apart else described
    named = {
        name: value
        for name, value in getattr(store, "__dict__", {}).items()
        if isinstance(value, str | int | float) and not holds_secret(name.lstrip("_"), value)
    }
    embeds = getattr(store, "embeddings", None)
    known = None if embeds is None else _embedder(embeds)
    return {"class": name_of(type(store)), "named": named, "embeddings": known}


def _embedder(embeds: object) -> object:
    """Return what an embedder would make of a question; what of it is a client counts by its class."""
    settings = EmbedderSettings(embeds, framework="langchain", version="not seen")
    return settings.of("query").params["embedder"]
