"""An object as plain data: what of it may change an answer, and nothing that is secret.

Of a model its declared fields are read, without what is secret and without how calls of it are made
(its ``to_dict()`` would hold the API key); of stores and indexes only what names them. What has no
identity (an unknown object, or a function that sees one) is refused.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from pathlib import PurePath
from types import FunctionType, MethodType
from typing import Any, TypeAlias, TypeVar, cast
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
from llama_index_stampcache.hidden import hidden_of_model, hidden_of_postprocessor
from llama_index_stampcache.keyed import Keyed
from llama_index_stampcache.parts import (
    Described,
    Position,
    class_name,
    objects_behind,
    scalars,
    unbound,
)
from stampcache import canonical
from stampcache.adapters import (
    CanonicalError,
    EmbedderSettings,
    KnownFunctions,
    name_of,
    shaping,
    written_by,
)

Read = TypeVar("Read")
MAX_DEPTH = 24
_PARTS_KEPT = 64
_PLAIN = frozenset({type(None), bool, int, float, str})
_RETRIEVING = ("retrieve", "aretrieve", "_retrieve", "_aretrieve")
_NAMED_BY_CLASS = (CallbackManager, StorageContext, BaseDocumentStore, BaseKVStore)


# The object may be of any class: which one, the table in `Describer._kind` has found out.
Describe: TypeAlias = Callable[[Any, Position], dict[str, object]]


class _Seen(Struct, frozen=True):
    """What was read of a part, which is kept so that no other one has its id."""

    part: object
    read: object


class Describer:
    """Describes the parts of one engine, again and again.

    ``rechecked``: what a retriever finds is compared at each query. ``index_named``: something else
    than its id names the index. ``watched``: it may be written to between two queries.
    """

    def __init__(self, *, rechecked: bool, index_named: bool, watched: bool = False) -> None:
        self._rechecked = rechecked
        self._watched = watched
        self._index_named = index_named
        self._schemas: dict[type[BaseModel], object] = {}
        self._kinds: dict[type, Describe] = {}
        self._of_whole_index: WeakValueDictionary[int, BaseRetriever] = WeakValueDictionary()
        self._parts_seen: dict[int, _Seen] = {}
        self._functions = KnownFunctions()

    def describe(self, value: object, position: Position) -> object:
        """Return a value of any class as plain data.

        Raises:
            CanonicalError: a part of it has no identity; the message names it.
        """
        if type(value) in _PLAIN:
            return value
        if position.depth > MAX_DEPTH:
            raise CanonicalError(f"{position.where} is nested deeper than {MAX_DEPTH} levels.")
        if type(value) in self._kinds:  # an object, as was found out before
            return self._object(value, position)
        if type(value) is dict:  # the same as below, which takes longer to find out
            return self._mapping(value, position)
        if type(value) is list:
            return self._list(value, position)
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
                return self._mapping(value, position)
            case list() | tuple():
                return self._list(value, position)
            case set() | frozenset():
                return sorted((self.describe(one, position) for one in value), key=canonical.value)
            case type():
                return self._class(value)
            case _:
                return self._object(value, position)

    def _mapping(self, value: Mapping[Any, object], position: Position) -> dict[str, object]:
        known = keyed.no_secret if position.in_model else keyed.everything
        return dict(self._items(value.items(), position, known)) if value else {}

    def _list(self, value: Sequence[object], position: Position) -> list[object]:
        return [self._part(one, str(at), position) for at, one in enumerate(value)]

    def _part(self, value: object, name: str, position: Position) -> object:
        return value if type(value) in _PLAIN else self.describe(value, position.inside(name))

    def _items(
        self, items: Iterable[tuple[object, object]], position: Position, known: Keyed
    ) -> Iterator[tuple[str, object]]:
        shape = known is not keyed.everything
        for key, item in items:
            name = key if type(key) is str else _key(key, position)
            shaped = shaping(name, item) if shape else item
            if known(name, shaped):
                plain = type(shaped) in _PLAIN
                yield name, shaped if plain else self.describe(shaped, position.inside(name))

    def _class(self, value: type) -> object:
        named = {"type": class_name(value)}
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
        return {"class": class_name(kind), **described(value, position)}

    def _kind(self, kind: type) -> Describe:
        """Return how objects of a class are described: the first base that is known decides."""
        known: tuple[tuple[type | tuple[type, ...], Describe], ...] = (
            (Described, lambda it, at: self._described(it.identity_parts().items(), at)),
            (BaseLLM, self._model),
            ((SecretStr, SecretBytes), lambda _, __: {}),
            (BaseEmbedding, self._embedding),
            (BaseNode, lambda it, _: {"content": it.hash}),
            (BaseIndex, lambda it, _: {"id": "" if self._index_named else it.index_id}),
            (BasePydanticVectorStore, lambda it, _: scalars(it)),
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
        if self._rechecked or (not self._watched and id(retriever) in self._of_whole_index):
            return True
        given = getattr(retriever, "_node_ids", None)
        index = getattr(retriever, "_index", None)
        known = getattr(getattr(index, "index_struct", None), "nodes_dict", None)
        if not self._index_named or given is None or not isinstance(known, Mapping):
            return False
        now = list(known.values())  # most often in the same order
        whole = len(given) == len(now) and (list(given) == now or set(given) == set(now))
        if (
            whole and not self._watched
        ):  # else it sees no more than the nodes of the past, by and by
            self._of_whole_index[id(retriever)] = retriever
        return whole

    def _fields(
        self, value: Any, position: Position, known: Keyed = keyed.of_object
    ) -> dict[str, object]:
        names = [*type(value).model_fields, *(value.model_extra or {})]
        parts = ((name, getattr(value, name)) for name in names)
        return dict(self._items(parts, position, known))

    def _model(self, value: Any, position: Position) -> dict[str, object]:
        inside = replace(position, in_model=True)
        hidden = self._seen_first(
            value,
            lambda: hidden_of_model(
                value, lambda name, part: self.describe(part, inside.inside(name))
            ),
        )
        return {**self._fields(value, inside, keyed.of_model), "<hidden>": hidden}

    def _embedding(self, value: Any, position: Position) -> dict[str, object]:
        if self._rechecked and position.opaque_ok:
            return {"name": name_of(value)}
        version = "" if position.opaque_ok else None
        settings = self._seen_first(
            value, lambda: EmbedderSettings(value, framework="llama-index", version=version)
        )
        return {"embedder": settings.of("query").params["embedder"]}

    def _seen_first(self, part: object, read: Callable[[], Read]) -> Read:
        """Return what was read of a part when it was met first; later notes of it are its state."""
        known = self._parts_seen.get(id(part))
        if known is None:
            if len(self._parts_seen) >= _PARTS_KEPT:
                self._parts_seen.clear()
            known = self._parts_seen[id(part)] = _Seen(part, read())
        return cast(Read, known.read)

    def _postprocessor(self, value: Any, position: Position) -> dict[str, object]:
        inside = self._retrieval(position)
        hidden = hidden_of_postprocessor(
            value, lambda name, part: self.describe(part, inside.inside(name))
        )
        return {**self._fields(value, inside), "<hidden>": hidden}

    def _attributes(self, value: Any, position: Position) -> dict[str, object]:
        return self._named(value, vars(value), position)

    def _named(
        self, owner: Any, parts: Mapping[str, object], position: Position
    ) -> dict[str, object]:
        items = ((name, unbound(part, owner)) for name, part in parts.items())
        return dict(self._items(items, position, keyed.of_object))

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
            return {"function": self._functions.identity(value, resolve=seen)}
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


def _key(key: object, position: Position) -> str:
    name = str(key.value) if isinstance(key, Enum) else key
    if not isinstance(name, str):
        raise CanonicalError(f"{position.where} has the key {key!r}; use string keys.")
    return name
