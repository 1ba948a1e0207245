"""What an engine would run, as plain data read from its live objects: the settings of its requests.

Everything is keyed unless it is in a named list of what does not change an answer. Of a model its
declared fields are read, without keys, tokens and headers (its ``to_dict()`` would hold the API
key); of stores and indexes only what names them. What has no identity (an unknown object, or a
function that sees one) is refused, and the user gives ``version=`` instead.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from pathlib import PurePath
from types import FunctionType, MethodType
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixin
from llama_index.core.schema import BaseNode
from llama_index.core.storage import StorageContext
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.storage.kvstore.types import BaseKVStore
from llama_index.core.types import BaseOutputParser
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from stampcache import Settings, Stamps, canonical
from stampcache.adapters import CanonicalError, callable_identity, name_of

MAX_DEPTH = 24
_NO_MATTER = frozenset({
    "callback_manager", "max_retries", "num_workers", "object_map", "rate_limiter",
    "request_timeout", "reuse_client", "show_progress", "timeout", "verbose",
})  # fmt: skip
_SECRET = re.compile(
    r"api_?key|(access|secret|private|subscription|account|master)_?key|(^|_)token$|secret|password"
    r"|credential|(^|_)auth|headers?$|bearer|cookie",
    re.I,
)
# An index hands its retrievers the ids of all nodes it has then: other ids after each ingestion.
_SNAPSHOT = frozenset({"_node_ids"})
_PLAIN = frozenset({type(None), bool, int, float, str})
_NAMED_BY_CLASS = (CallbackManager, StorageContext, BaseDocumentStore, BaseKVStore)


@runtime_checkable
class Described(Protocol):
    """An engine that tells itself which parts identify it."""

    def identity_parts(self) -> Mapping[str, object]:
        """Return objects and plain values, to be described in turn."""
        ...


class Place(Struct, frozen=True, kw_only=True):
    """Where in an engine a value stands, and how strict the description is there.

    ``opaque_ok``: an unknown object may go by its class; ``functions_ok``: so may a function
    without identity. ``in_model``: secrets are left out. ``rechecked``: what is retrieved here is
    compared anyway.
    """

    where: str
    depth: int = 0
    opaque_ok: bool = False
    functions_ok: bool = False
    in_model: bool = False
    rechecked: bool = False

    def inside(self, name: str) -> "Place":
        """Return the place of a part."""
        return replace(self, where=f"{self.where}.{name}", depth=self.depth + 1)


class _Digested(Struct, frozen=True):
    written: bytes
    settings: Settings


# The object may be of any class: which one, the table in `Fingerprint._kind` has found out.
Describe: TypeAlias = Callable[[Any, Place], dict[str, object]]


class Fingerprint:
    """Reads the settings of one engine, as they are at each call."""

    def __init__(
        self,
        inner: BaseQueryEngine,
        *,
        rechecked: bool,
        corpus: str,
        stamps: Stamps,
        version: str | None,
    ) -> None:
        self._inner = inner
        self._rechecked = rechecked
        self._corpus = corpus
        self._stamps = stamps
        self._version = version
        self._index_named = rechecked or bool(corpus or stamps.index or version)
        self._schemas: dict[type[BaseModel], object] = {}
        self._kinds: dict[type, Describe] = {}
        self._last: _Digested | None = None

    def settings(self, llm: BaseLLM | None) -> Settings:
        """Return the settings in force, digested.

        Raises:
            CanonicalError: a part of the engine has no identity; the message names it.
        """
        place = Place(
            where=type(self._inner).__name__,
            opaque_ok=self._version is not None,
            functions_ok=self._version is not None,
        )
        params: dict[str, object] = {
            "framework": "llama-index",
            "grounding": "recheck" if self._rechecked else "none",
            "corpus": self._corpus,
            "version": self._version,
            "engine": self._describe(self._inner, place),
            # an opaque part may hold prompts that only the engine's own listing shows
            "prompts": self._prompts(place) if self._version is not None else None,
        }
        model = "" if llm is None else llm.metadata.model_name
        endpoint = str(getattr(llm, "api_base", None) or "")
        return self._digested(model, endpoint, params)

    def _digested(self, model: str, endpoint: str, params: dict[str, object]) -> Settings:
        """Return the settings, digested; the last ones are kept, since they rarely change."""
        try:
            written = msgspec.json.encode([model, endpoint, params])
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
            raise CanonicalError(f"The engine's settings are no JSON: {error}") from error
        known = self._last
        if known is not None and known.written == written:
            return known.settings
        settings = Settings(model=model, endpoint=endpoint, params=params, stamps=self._stamps)
        if settings.problem:
            raise CanonicalError(settings.problem)
        self._last = _Digested(written, settings)
        return settings

    def _prompts(self, place: Place) -> object:
        return {
            name: self._describe(prompt, place.inside(name))
            for name, prompt in sorted(self._inner.get_prompts().items())
        }

    def _describe(self, value: object, place: Place) -> object:
        if type(value) in _PLAIN:
            return value
        if place.depth > MAX_DEPTH:
            raise CanonicalError(f"{place.where} is nested deeper than {MAX_DEPTH} levels.")
        match value:
            case Enum():
                return self._describe(value.value, place)
            case str() | int() | float():
                return value
            case bytes():
                return {"bytes": value.hex()}
            case PurePath():
                return str(value)
            case Mapping():
                return dict(self._items(value.items(), place))
            case list() | tuple():
                return [self._part(one, str(at), place) for at, one in enumerate(value)]
            case set() | frozenset():
                return sorted((self._describe(one, place) for one in value), key=canonical.value)
            case type():
                return self._class(value)
            case _:
                return self._object(value, place)

    def _part(self, value: object, name: str, place: Place) -> object:
        return value if type(value) in _PLAIN else self._describe(value, place.inside(name))

    def _items(
        self, items: Iterable[tuple[object, object]], place: Place
    ) -> Iterator[tuple[str, object]]:
        for key, item in items:
            name = str(key.value) if isinstance(key, Enum) else key
            if not isinstance(name, str):
                raise CanonicalError(f"{place.where} has the key {key!r}; use string keys.")
            if not (place.in_model and _SECRET.search(name)):
                yield name, self._part(item, name, place)

    def _class(self, value: type) -> object:
        named = {"type": _name(value)}
        if not issubclass(value, BaseModel):
            return named
        if value not in self._schemas:
            self._schemas[value] = value.model_json_schema()
        return {**named, "schema": self._schemas[value]}

    def _object(self, value: object, place: Place) -> object:
        kind = type(value)
        described = self._kinds.get(kind)
        if described is None:
            described = self._kinds[kind] = self._kind(kind)
        return {"class": _name(kind), **described(value, place)}

    def _kind(self, kind: type) -> Describe:
        """Return how objects of a class are described: the first base that is known decides."""
        known: tuple[tuple[type | tuple[type, ...], Describe], ...] = (
            (Described, lambda it, at: dict(self._items(it.identity_parts().items(), at))),
            (BaseLLM, lambda it, at: self._fields(it, replace(at, in_model=True))),
            (BaseEmbedding, lambda it, _: {"name": name_of(it)}),
            (BaseNode, lambda it, _: {"content": it.hash}),
            (BaseIndex, lambda it, _: {"id": "" if self._index_named else it.index_id}),
            (BasePydanticVectorStore, lambda it, _: _scalars(it)),
            (_NAMED_BY_CLASS, lambda _, __: {}),
            (BaseNodePostprocessor, self._postprocessor),
            (BaseModel, self._fields),
            (BaseRetriever, lambda it, at: self._attributes(it, self._retrieval(at))),
            ((PromptMixin, BaseOutputParser), self._attributes),
            ((FunctionType, MethodType, partial), self._function),
        )
        for base, described in known:
            if issubclass(kind, base):
                return described
        return self._dataclass if dataclasses.is_dataclass(kind) else self._opaque

    def _retrieval(self, place: Place) -> Place:
        """Where evidence is rechecked, what a retriever is made of shows in what it retrieves."""
        return replace(place, opaque_ok=True, rechecked=True) if self._rechecked else place

    def _fields(self, value: Any, place: Place) -> dict[str, object]:
        names = [*type(value).model_fields, *(value.model_extra or {})]
        parts = ((name, getattr(value, name)) for name in names if name not in _NO_MATTER)
        return dict(self._items(parts, place))

    def _postprocessor(self, value: Any, place: Place) -> dict[str, object]:
        inside = self._retrieval(place)
        private = (value.__pydantic_private__ or {}).items()
        functions = ((name, part) for name, part in private if isinstance(part, FunctionType))
        return {**self._fields(value, inside), **dict(self._items(functions, inside))}

    def _attributes(self, value: Any, place: Place) -> dict[str, object]:
        described: dict[str, object] = {}
        for name, part in vars(value).items():
            if place.rechecked and name in _SNAPSHOT:
                continue
            if isinstance(part, MethodType) and part.__self__ is value:
                described[name] = {"method": part.__func__.__qualname__}
            elif name.lstrip("_") not in _NO_MATTER:
                described[name] = self._part(part, name, place)
        return described

    def _dataclass(self, value: Any, place: Place) -> dict[str, object]:
        parts = ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value))
        return dict(self._items(parts, place))

    def _function(self, value: Any, place: Place) -> dict[str, object]:
        inside = replace(place.inside("<seen>"), opaque_ok=place.functions_ok)

        def seen(part: object) -> object:
            return self._describe(part, inside)

        try:
            return {"function": callable_identity(value, resolve=seen)}
        except CanonicalError as error:
            if place.functions_ok:
                return {}
            raise CanonicalError(f"{place.where}: {error}") from error

    def _opaque(self, value: Any, place: Place) -> dict[str, object]:
        if place.opaque_ok:
            return {}
        raise CanonicalError(
            f"{place.where} is a {type(value).__qualname__}, whose settings cannot be read."
        )


def _scalars(value: BaseModel) -> dict[str, object]:
    fields = {name: getattr(value, name) for name in type(value).model_fields}
    return {
        name: field
        for name, field in fields.items()
        if isinstance(field, str | int | float) and not _SECRET.search(name)
    }


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
