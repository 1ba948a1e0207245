"""Whose classes parts of a chain are, and which fields of a model are its parameters."""

import functools
import inspect
import sys
from collections.abc import Mapping
from typing import Any, TypeGuard

from langchain_core.language_models import BaseLanguageModel
from pydantic import BaseModel

ENDPOINTS = (
    "openai_api_base", "base_url", "api_base", "azure_endpoint", "endpoint", "endpoint_url",
)  # fmt: skip
MODEL_NAMES = ("model_name", "model", "model_id")
# Parameters of models under the names that providers' classes give them; keyed wherever they exist.
MODEL_PARAMETERS = frozenset({
    *MODEL_NAMES, *ENDPOINTS, "azure_deployment", "default_headers", "default_query",
    "deployment_name", "extra_body", "frequency_penalty", "logit_bias", "max_completion_tokens",
    "max_output_tokens", "max_tokens", "min_p", "model_kwargs", "n", "openai_organization",
    "openai_proxy", "organization", "presence_penalty", "project", "reasoning", "reasoning_effort",
    "region_name", "repetition_penalty", "response_format", "seed", "service_tier", "stop",
    "temperature", "thinking", "top_k", "top_p", "verbosity",
})  # fmt: skip
_FRAMEWORK = ("langchain", "langgraph")
_CLASSES_KEPT = 256
_MISSING = getattr(BaseModel, "__getattr__", None)  # how pydantic looks for what is not there


def is_framework(kind: type) -> bool:
    """Tell whether a class comes with LangChain or one of its packages, not from the app."""
    top = kind.__module__.partition(".")[0]
    if top.partition("_")[0] not in _FRAMEWORK:
        return False
    return hasattr(sys.modules.get(top), "__path__")  # a package, not a module of that prefix


def is_core(kind: type) -> bool:
    """Tell whether a class is one of LangChain's own parts: none has a field that is a secret text.

    The ``keys`` that a ``RunnablePick`` picks are none, for example.
    """
    return is_framework(kind) and kind.__module__.partition(".")[0] == "langchain_core"


def is_provider(kind: type) -> TypeGuard[type[BaseModel]]:
    """Tell whether a class comes with a provider's package and declares what the provider takes."""
    return issubclass(kind, BaseModel) and is_framework(kind) and not is_core(kind)


def tells_its_parameters(kind: type[BaseLanguageModel[Any]]) -> bool:
    """Tell whether a class of models overrides what LangChain takes to identify it."""
    return kind._identifying_params is not BaseLanguageModel._identifying_params


def attribute_of(model: BaseModel, name: str) -> Any:
    """Return a public attribute of an object, or ``None`` where it has none.

    Like ``getattr``, but for the error that pydantic writes where there is none.
    """
    kind = type(model)
    if kind.__getattribute__ is not object.__getattribute__:
        return getattr(model, name, None)
    try:
        return object.__getattribute__(model, name)
    except AttributeError:
        is_plain = getattr(kind, "__getattr__", None) is _MISSING and not model.model_extra
        return None if is_plain else getattr(model, name, None)


@functools.lru_cache(maxsize=_CLASSES_KEPT)
def untold_classes(kind: type[BaseLanguageModel[Any]]) -> tuple[type, ...]:
    """Return the app's own classes of a model of which nothing tells LangChain.

    Those are the ones derived from the class that says what identifies a model: its name and its
    parameters are theirs, too, whatever they have added.
    """
    untold: list[type] = []
    for base in kind.__mro__:
        if is_framework(base) or "_identifying_params" in vars(base):
            break
        untold.append(base)
    return tuple(untold)


@functools.lru_cache(maxsize=_CLASSES_KEPT)
def untold_fields(kind: type[BaseLanguageModel[Any]]) -> frozenset[str]:
    """Return the fields of `untold_classes`."""
    named = (name for base in untold_classes(kind) for name in inspect.get_annotations(base))
    return frozenset(named) & kind.model_fields.keys()


def first_text(params: Mapping[str, object], names: tuple[str, ...]) -> str:
    """Return the first of the named parameters that is a non-empty string, else an empty one."""
    found = (params.get(name) for name in names)
    return next((each for each in found if isinstance(each, str) and each), "")
