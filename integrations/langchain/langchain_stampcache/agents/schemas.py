"""Structured responses of agents: which schema they are asked for, and how they are stored.

A response is rebuilt by the schema that the running agent has: nothing stored names a class.
"""

import json
from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any

from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from stampcache import CodecError
from stampcache.adapters import CanonicalError

_BROKEN = (ValueError, TypeError, KeyError, IndexError, ValidationError, PydanticUserError)


def specs_of(asked: object) -> Sequence[Any]:
    """Return the schemas that a response format allows, with their names; none without one."""
    match asked:
        case None:
            return ()
        case ToolStrategy():
            return tuple(asked.schema_specs)
        case ProviderStrategy():
            return (asked.schema_spec,)
        case AutoStrategy():
            return tuple(ToolStrategy(asked.schema).schema_specs)
    return tuple(ToolStrategy(asked).schema_specs)  # type: ignore[arg-type]  # a bare schema


def described_format(asked: object) -> object:
    """Return a response format as parts that can be told from others."""
    if asked is None:
        return None
    return {
        "strategy": type(asked).__name__ if not isinstance(asked, type | dict) else "AutoStrategy",
        "schemas": [
            {"schema": spec.json_schema, "told": spec.description, "strict": spec.strict}
            for spec in specs_of(asked)
        ],
        "content": getattr(asked, "tool_message_content", None),
        "errors": getattr(asked, "handle_errors", None),
    }


def dump_response(response: object, specs: Sequence[Any]) -> object:
    """Return a structured response as plain data with the place of its schema.

    Raises:
        CanonicalError: no schema gives the same response again.
    """
    for place, spec in enumerate(specs):
        if _is_class(spec.schema) and type(response) is not spec.schema:
            continue
        try:
            data = _plain(response, spec)
            if _rebuilt(data, spec) == response:
                return {"schema": place, "data": data}
        except _BROKEN:
            continue
    raise CanonicalError(f"a {type(response).__qualname__} cannot be rebuilt by its schema")


def load_response(stored: Any, specs: Sequence[Any]) -> object:
    """Return what `dump_response` was given.

    Raises:
        CodecError: it cannot be rebuilt by the schemas that there are now.
    """
    try:
        return _rebuilt(stored["data"], specs[stored["schema"]])
    except _BROKEN as error:
        raise CodecError(f"the stored response fits no schema of the agent ({error})") from error


def _is_class(schema: object) -> bool:
    """Tell whether responses are objects of the schema; those of a typed dictionary are plain."""
    return isinstance(schema, type) and (issubclass(schema, BaseModel) or is_dataclass(schema))


def _plain(response: object, spec: Any) -> object:
    if spec.schema_kind == "json_schema":
        return json.loads(json.dumps(response))
    return TypeAdapter(spec.schema).dump_python(response, mode="json")


def _rebuilt(data: object, spec: Any) -> object:
    if spec.schema_kind == "json_schema":
        return data
    rebuilt: object = TypeAdapter(spec.schema).validate_json(json.dumps(data))
    return rebuilt
