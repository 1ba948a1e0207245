"""Parts of an engine, as they are read before they are described."""

from collections.abc import Mapping
from types import MethodType
from typing import Any, Protocol, runtime_checkable

from llama_index.core.objects import ObjectRetriever
from msgspec import Struct
from pydantic import BaseModel

from llama_index_stampcache import keyed


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
        return Position(
            where=f"{self.where}.{name}",
            depth=self.depth + 1,
            opaque_ok=self.opaque_ok,
            functions_ok=self.functions_ok,
            in_model=self.in_model,
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


def unbound(part: object, owner: object) -> object:
    """Return an object's own method by its name, since it would lead back to the object."""
    if isinstance(part, MethodType) and part.__self__ is owner:
        return {"method": part.__func__.__qualname__}
    return part


def scalars(value: BaseModel) -> dict[str, object]:
    """Return the plain fields of an object that are keyed."""
    fields = {name: getattr(value, name) for name in type(value).model_fields}
    return {
        name: field
        for name, field in fields.items()
        if isinstance(field, str | int | float) and keyed.of_object(name, field)
    }


def class_name(kind: type) -> str:
    """Return the full name of a class."""
    return f"{kind.__module__}.{kind.__qualname__}"
