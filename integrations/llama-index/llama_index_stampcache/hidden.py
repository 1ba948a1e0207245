"""What an object keeps in private attributes and is set by: its fields do not tell of it."""

import contextlib
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TypeAlias

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from pydantic import BaseModel

from llama_index_stampcache import keyed
from stampcache.adapters import CanonicalError, written_by

Describe: TypeAlias = Callable[[str, object], object]
"""Describes a part, by its name."""
_PLAIN = (str, int, float, Mapping)
_MORE = (list, tuple, set, frozenset)
_POSTPROCESSING = (
    "postprocess_nodes",
    "apostprocess_nodes",
    "_postprocess_nodes",
    "_apostprocess_nodes",
)


def hidden_of_model(model: BaseLLM, describe: Describe) -> dict[str, object]:
    """Return what private attributes tell of how a model is set.

    Some models keep their parameters there, or a model of another framework. What else they hold
    (clients, locks) is how they are asked.

    Raises:
        CanonicalError: a model inside of this one has no identity.
    """
    hidden: dict[str, object] = {}
    for name, value in (model.__pydantic_private__ or {}).items():
        if not keyed.of_model(name.lstrip("_"), value):
            continue
        path = getattr(value, "name_or_path", None)  # of weights and tokenizers
        if isinstance(value, BaseModel):
            hidden[name] = describe(name, value)
        elif isinstance(value, _PLAIN):
            with contextlib.suppress(CanonicalError):  # it holds objects, so it is no setting
                hidden[name] = describe(name, value)
        elif isinstance(path, str):
            hidden[name] = path
    return hidden


def hidden_of_postprocessor(part: BaseNodePostprocessor, describe: Describe) -> dict[str, object]:
    """Return the private functions and plain values of a postprocessor that its calls do not write.

    Raises:
        CanonicalError: a function has no identity.
    """
    state = written_by(type(part), _POSTPROCESSING)
    hidden: dict[str, object] = {}
    for name, value in (part.__pydantic_private__ or {}).items():
        if isinstance(value, FunctionType):
            hidden[name] = describe(name, value)
        elif isinstance(value, (*_PLAIN, *_MORE)) and name not in state:
            with contextlib.suppress(CanonicalError):  # it holds objects, so it is no setting
                hidden[name] = describe(name, value)
    return hidden


def endpoint_of(model: BaseLLM, *, aio: bool) -> str:
    """Return where a model is asked: by the client that it was given, else by its ``api_base``."""
    client = getattr(model, "_aclient" if aio else "_client", None)
    address = getattr(client, "base_url", None) or getattr(model, "api_base", None)
    return str(address or "").rstrip("/")


def endpoints_of(model: BaseLLM) -> list[str]:
    """Return where a model is asked, by threads and by tasks; mostly that is one place."""
    return sorted({endpoint_of(model, aio=aio) for aio in (False, True)} - {""})
