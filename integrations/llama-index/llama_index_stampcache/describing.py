"""An object as plain data: what of it may change an answer, and nothing that is secret.

Of a model its declared fields are read, without what is secret and without how calls of it are made
(its ``to_dict()`` would hold the API key); of stores and indexes only what names them. What has no
identity (an unknown object, or a function that sees one) is refused.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from pathlib import PurePath
from types import FunctionType, MethodType
from typing import Any, Protocol, TypeAlias, runtime_checkable
from weakref import WeakValueDictionary

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.base import BaseIndex
from llama_index.core.objects import ObjectRetriever
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixin
from llama_index.core.schema import BaseNode
from llama_index.core.storage import StorageContext
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.storage.kvstore.types import BaseKVStore
from llama_index.core.tools.types import BaseTool
from llama_index.core.types import BaseOutputParser
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilter
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, SecretBytes, SecretStr

from llama_index_stampcache import keyed
from llama_index_stampcache.keyed import Keyed
from stampcache import canonical
from stampcache.adapters import CanonicalError, callable_identity, name_of, shaping, written_by

MAX_DEPTH = 24
_PLAIN = frozenset({type(None), bool, int, float, str})
_RETRIEVING = ("retrieve", "aretrieve", "_retrieve", "_aretrieve")
_NAMED_BY_CLASS = (CallbackManager, StorageContext, BaseDocumentStore, BaseKVStore)


@runtime_checkable
class Described(Protocol):
    """An engine that tells itself which parts identify it."""

    def identity_parts(self) -> Mapping[str, object]:
        """Return objects and plain values, to be described in turn."""
        ...


class Position(Struct, frozen=True, kw_only=True):
    """Where in an engine a value stands, and how strict the description is there.

    ``opaque_ok``: an unknown object may go by its class; ``functions_ok``: so may a function
    without identity. ``in_model``: secrets are left out.
    """

    where: str
    depth: int = 0
    opaque_ok: bool = False
    functions_ok: bool = False
    in_model: bool = False

    def inside(self, name: str) -> "Position":
        """Return the position of a part."""
        return replace(self, where=f"{self.where}.{name}", depth=self.depth + 1)


# The object may be of any class: which one, the table in `Describer._kind` has found out.
Describe: TypeAlias = Callable[[Any, Position], dict[str, object]]


class Describer:
    """Describes the parts of one engine, again and again.

    ``rechecked``: what a retriever finds is compared at each query. ``index_named``: something else
    than its id names the index.
    """

    def __init__(self, *, rechecked: bool, index_named: bool) -> None:
        self._rechecked = rechecked
        self._index_named = index_named
        self._schemas: dict[type[BaseModel], object] = {}
        self._kinds: dict[type, Describe] = {}
        self._of_whole_index: WeakValueDictionary[int, BaseRetriever] = WeakValueDictionary()

    def describe(self, value: object, position: Position) -> object:
        """Return a value of any class as plain data.

        Raises:
            CanonicalError: a part of it has no identity; the message names it.
        """
        if type(value) in _PLAIN:
            return value
        if position.depth > MAX_DEPTH:
            raise CanonicalError(f"{position.where} is nested deeper than {MAX_DEPTH} levels.")
        match value:
            case Enum():
                return self.describe(value.value, position)
            case str() | int() | float():
                return value
            case bytes():
                return {"bytes": value.hex()}
            case PurePath():
                return str(value)
            case Mapping():
                known = keyed.no_secret if position.in_model else keyed.everything
                return dict(self._items(value.items(), position, known))
            case list() | tuple():
                return [self._part(one, str(at), position) for at, one in enumerate(value)]
            case set() | frozenset():
                return sorted((self.describe(one, position) for one in value), key=canonical.value)
            case type():
                return self._class(value)
            case _:
                return self._object(value, position)

    def _part(self, value: object, name: str, position: Position) -> object:
        return value if type(value) in _PLAIN else self.describe(value, position.inside(name))

    def _items(
        self, items: Iterable[tuple[object, object]], position: Position, known: Keyed
    ) -> Iterator[tuple[str, object]]:
        for key, item in items:
            name = str(key.value) if isinstance(key, Enum) else key
            if not isinstance(name, str):
                raise CanonicalError(f"{position.where} has the key {key!r}; use string keys.")
            shaped = item if known is keyed.everything else shaping(name, item)
            if known(name, shaped):
                yield name, self._part(shaped, name, position)

    def _class(self, value: type) -> object:
        named = {"type": _name(value)}
        if not issubclass(value, BaseModel):
            return named
        if value not in self._schemas:
            self._schemas[value] = value.model_json_schema()
        return {**named, "schema": self._schemas[value]}

    def _object(self, value: object, position: Position) -> object:
        kind = type(value)
        described = self._kinds.get(kind)
        if described is None:
            described = self._kinds[kind] = self._kind(kind)
        return {"class": _name(kind), **described(value, position)}

    def _kind(self, kind: type) -> Describe:
        """Return how objects of a class are described: the first base that is known decides."""
        known: tuple[tuple[type | tuple[type, ...], Describe], ...] = (
            (Described, lambda it, at: self._described(it.identity_parts().items(), at)),
            (BaseLLM, lambda it, at: self._fields(it, replace(at, in_model=True), keyed.of_model)),
            ((SecretStr, SecretBytes), lambda _, __: {}),
            (BaseEmbedding, lambda it, _: {"name": name_of(it)}),
            (BaseNode, lambda it, _: {"content": it.hash}),
            (BaseIndex, lambda it, _: {"id": "" if self._index_named else it.index_id}),
            (BasePydanticVectorStore, lambda it, _: _scalars(it)),
            (_NAMED_BY_CLASS, lambda _, __: {}),
            (BaseNodePostprocessor, self._postprocessor),
            (MetadataFilter, lambda it, at: self._fields(it, at, keyed.everything)),  # its key, too
            (BaseModel, self._fields),
            (BaseRetriever, self._retriever),
            (ObjectRetriever, self._object_retriever),
            ((PromptMixin, BaseOutputParser, BaseTool), self._attributes),
            ((FunctionType, MethodType, partial), self._function),
        )
        for base, described in known:
            if issubclass(kind, base):
                return described
        return self._dataclass if dataclasses.is_dataclass(kind) else self._opaque

    def _retrieval(self, position: Position) -> Position:
        """Where evidence is rechecked, what a retriever is made of shows in what it retrieves."""
        return replace(position, opaque_ok=True) if self._rechecked else position

    def _retriever(self, value: Any, position: Position) -> dict[str, object]:
        left_out = written_by(type(value), _RETRIEVING)  # its state, such as a counter
        if self._sees_whole_index(value):
            left_out |= {"_node_ids"}
        parts = {name: part for name, part in vars(value).items() if name not in left_out}
        return self._named(value, parts, self._retrieval(position))

    def _object_retriever(self, value: Any, position: Position) -> dict[str, object]:
        objects = objects_behind(value)
        parts = {
            "retriever": value.retriever,
            "objects": vars(value.object_node_mapping) if objects is None else objects,
            "postprocessors": value.node_postprocessors,
        }
        return self._described(parts.items(), position)

    def _sees_whole_index(self, retriever: BaseRetriever) -> bool:
        """Tell whether the ids of nodes that a retriever has are no choice of its user.

        An index hands its retrievers the ids of all nodes that it has then: other ones after each
        ingestion, under the same version of the index.
        """
        if self._rechecked or id(retriever) in self._of_whole_index:
            return True
        given = getattr(retriever, "_node_ids", None)
        index = getattr(retriever, "_index", None)
        known = getattr(getattr(index, "index_struct", None), "nodes_dict", None)
        if not self._index_named or given is None or not isinstance(known, Mapping):
            return False
        whole = len(given) == len(known) and set(given) == set(known.values())
        if whole:
            self._of_whole_index[id(retriever)] = retriever
        return whole

    def _fields(
        self, value: Any, position: Position, known: Keyed = keyed.of_object
    ) -> dict[str, object]:
        names = [*type(value).model_fields, *(value.model_extra or {})]
        parts = ((name, getattr(value, name)) for name in names)
        return dict(self._items(parts, position, known))

    def _postprocessor(self, value: Any, position: Position) -> dict[str, object]:
        inside = self._retrieval(position)
        private = (value.__pydantic_private__ or {}).items()
        functions = ((name, part) for name, part in private if isinstance(part, FunctionType))
        return {**self._fields(value, inside), **self._described(functions, inside)}

    def _attributes(self, value: Any, position: Position) -> dict[str, object]:
        return self._named(value, vars(value), position)

    def _named(
        self, owner: Any, parts: Mapping[str, object], position: Position
    ) -> dict[str, object]:
        unbound = ((name, _unbound(part, owner)) for name, part in parts.items())
        return dict(self._items(unbound, position, keyed.of_object))

    def _dataclass(self, value: Any, position: Position) -> dict[str, object]:
        parts = ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value))
        return dict(self._items(parts, position, keyed.of_object))

    def _described(
        self, items: Iterable[tuple[object, object]], position: Position
    ) -> dict[str, object]:
        return dict(self._items(items, position, keyed.everything))

    def _function(self, value: Any, position: Position) -> dict[str, object]:
        inside = replace(position.inside("<seen>"), opaque_ok=position.functions_ok)

        def seen(part: object) -> object:
            return self.describe(part, inside)

        try:
            return {"function": callable_identity(value, resolve=seen)}
        except CanonicalError as error:
            if position.functions_ok:
                return {}
            raise CanonicalError(f"{position.where}: {error}") from error

    def _opaque(self, value: Any, position: Position) -> dict[str, object]:
        if position.opaque_ok:
            return {}
        raise CanonicalError(
            f"{position.where} is a {type(value).__qualname__}, whose settings cannot be read."
        )


def objects_behind(retriever: ObjectRetriever[Any]) -> list[object] | None:
    """Return the objects among which one retrieves; ``None`` where they are made when they are found."""
    mapping = retriever.object_node_mapping
    tools = getattr(mapping, "_tools", None)  # which such a mapping does not list
    try:
        known: Mapping[object, object] = mapping.obj_node_mapping if tools is None else tools
    except NotImplementedError:
        return None
    return list(known.values())  # their keys may be addresses


def _unbound(part: object, owner: object) -> object:
    """Return an object's own method by its name, since it would lead back to the object."""
    if isinstance(part, MethodType) and part.__self__ is owner:
        return {"method": part.__func__.__qualname__}
    return part


def _scalars(value: BaseModel) -> dict[str, object]:
    fields = {name: getattr(value, name) for name in type(value).model_fields}
    return {
        name: field
        for name, field in fields.items()
        if isinstance(field, str | int | float) and keyed.of_object(name, field)
    }


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
