"""Classes that are known by name only: found among what is imported, and never imported for it.

A name stands for a class only while no other class of that name with another schema is alive (a
notebook cell that was run twice makes two): otherwise nobody can tell which of them is meant.
"""

import sys
from collections.abc import Iterator

from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from stampcache.adapters import CanonicalError


def name_of(kind: type) -> str:
    """Return the name under which `class_named` finds a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def class_named(name: str) -> type[BaseModel]:
    """Return the pydantic class that an imported module holds under a dotted name.

    Raises:
        CanonicalError: no imported module has such a class.
    """
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:end]))
        if module is not None:
            found: object = module
            for part in parts[end:]:
                found = getattr(found, part, None)
            if isinstance(found, type) and issubclass(found, BaseModel):
                return found
    raise CanonicalError(f"the class {name} is no pydantic model that an imported module holds")


def schema_of(kind: type[BaseModel]) -> object:
    """Return the JSON schema of a class.

    Raises:
        CanonicalError: it has none.
    """
    try:
        return kind.model_json_schema()
    except PydanticUserError as error:
        raise CanonicalError(f"the class {name_of(kind)} has no JSON schema ({error})") from error


def schema_named(name: str) -> object:
    """Return the JSON schema of the class of that name.

    Raises:
        CanonicalError: it is not found, has no schema, or its name is ambiguous.
    """
    found = class_named(name)
    schema = schema_of(found)
    for other in _descendants(BaseModel):
        if other is not found and name_of(other) == name and schema_of(other) != schema:
            raise CanonicalError(f"two classes with different schemas are named {name}")
    return schema


def _descendants(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for child in kind.__subclasses__():
        yield child
        yield from _descendants(child)
