"""A cached model inside what its inner model builds of itself: tools, structured output, configurations.

Providers build these in their own ways, of `Runnable`s around themselves. What they built is taken as it
is, with the cached model in the place of the inner one.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.configurable import RunnableConfigurableFields
from langchain_core.runnables.utils import ConfigurableFieldSpec, Input, Output
from pydantic import BaseModel

Built = TypeVar("Built")
Around: TypeAlias = Callable[[BaseChatModel], BaseChatModel]
_NOT_BUILT = frozenset({"config", "kwargs"})  # of a binding: what the model is given, not what runs


def with_model_cached(built: Built, around: Around) -> Built:
    """Return a Runnable with ``around(model)`` for each chat model in it; itself if there is none."""
    replaced: Built = _Replacing(around).one(built)
    return replaced


class _Replacing:
    def __init__(self, around: Around) -> None:
        self._around = around

    def one(self, item: Any) -> Any:
        match item:
            case BaseChatModel():
                return self._around(item)
            case list():
                made = [self.one(one) for one in item]
                return item if all(map(_is, item, made)) else made
            case Mapping():
                named = {name: self.one(one) for name, one in item.items()}
                return item if all(map(_is, item.values(), named.values())) else named
            case Runnable() if isinstance(item, BaseModel):
                return self._parts(item)
        return item

    def _parts(self, item: BaseModel) -> BaseModel:
        changed: dict[str, Any] = {}
        for name in type(item).model_fields.keys() - _NOT_BUILT:
            part = getattr(item, name)
            if isinstance(part, Runnable | list | Mapping):
                made = self.one(part)
                if made is not part:
                    changed[name] = made
        return item.model_copy(update=changed) if changed else item


def _is(old: object, new: object) -> bool:
    return old is new


class ConfigurableCachedModel(RunnableConfigurableFields[Input, Output]):
    """A cached model, of whose inner model the config of each call may set fields."""

    of_inner: Any  # `RunnableConfigurableFields`, whose parameters pydantic would check
    around: Around

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """What the config of a call may set."""
        specs: list[ConfigurableFieldSpec] = self.of_inner.config_specs
        return specs

    def _prepare(
        self, config: RunnableConfig | None = None
    ) -> tuple[Runnable[Input, Output], RunnableConfig]:
        inner, config = self.of_inner._prepare(config)
        if inner is self.of_inner.default or not isinstance(inner, BaseChatModel):
            return self.default, config
        return cast(Runnable[Input, Output], self.around(inner)), config
