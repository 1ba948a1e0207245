"""What a chain would run, read from its live objects as plain data: prompts, models, functions.

Read anew for each request, so that a changed temperature is another identity (case A2). Of a model
are read the parameters that it says identify it, those that it was constructed with, and every
known one; never keys and secrets. A part that cannot be identified is refused, or stands for the
``version`` that the user gives.
"""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableGenerator, RunnableLambda
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.tools import BaseTool
from msgspec import Struct
from pydantic import BaseModel, SecretBytes, SecretStr

from langchain_stampcache import keyed
from langchain_stampcache.parameters import (
    ENDPOINTS,
    MODEL_NAMES,
    MODEL_PARAMETERS,
    first_text,
    is_core,
    is_framework,
    is_provider,
    tells_its_parameters,
    untold_fields,
)
from langchain_stampcache.schemas import name_of, schema_of
from stampcache import ConfigError
from stampcache.adapters import CALLING, CanonicalError, callable_identity, shaping

MAX_DEPTH = 48
KEPT = 1_024
_TYPING_ONLY = frozenset({"custom_input_type", "custom_output_type", "input_types", "output_type"})
_WITH_HISTORY = "langchain_core.runnables.history"
_PLAIN = (str, bool, int, float)


class Running(Struct, frozen=True):
    """What a chain would run: its plain description, the first model in it, and all its prompts."""

    described: object
    model: str
    endpoint: str
    prompts: Sequence[object]


class Fingerprint:
    """Reads the parts of one chain, again and again; what it remembers of them is bounded."""

    def __init__(self, *, version: str | None) -> None:
        self.version = version
        self._classes: dict[type, object] = {}
        self._fields: dict[type, tuple[str, ...]] = {}
        self._parameters: dict[type, frozenset[str]] = {}
        self._given: dict[int, tuple[BaseLanguageModel[Any], frozenset[str]]] = {}

    def read(self, root: object, config: RunnableConfig | None) -> Running:
        """Return what would run under this config.

        Raises:
            CanonicalError: a part has no identity and there is no version; the message names it.
            ConfigError: a part keeps conversations itself.
        """
        walk = _Walk(self, config or {})
        described = walk.value(root, type(root).__name__)
        models = walk.models or [{}]
        return Running(
            described,
            first_text(models[0], MODEL_NAMES),
            first_text(models[0], ENDPOINTS),
            walk.prompts,
        )

    def parameters_of(self, model: BaseLanguageModel[Any], *, prepared: bool) -> frozenset[str]:
        """Return the names of the fields of a model that are parameters, not its state.

        Those are the fields of providers' classes, the known ones, and, of a model that does not
        say what identifies it, those that were set when it was first seen here (or, in an object
        that was ``prepared`` for one call, now), or later to something else than a number, which may
        be a counter of its calls.
        """
        kind = type(model)
        known = self._parameters.get(kind)
        if known is None:
            _make_room(self._parameters)
            bases = [base for base in kind.__mro__ if is_provider(base)]
            declared = {name for base in bases for name in base.model_fields}
            known = self._parameters[kind] = MODEL_PARAMETERS | declared
        tells = tells_its_parameters(kind)
        untold = untold_fields(kind) if tells else frozenset(kind.model_fields)
        if not untold:
            return known
        given = untold & model.model_fields_set
        if prepared:
            return known | given
        if id(model) not in self._given:
            _make_room(self._given)
        first = (model, frozenset(model.model_fields_set))  # alive, so that its id stays its own
        seen = self._given.setdefault(id(model), first)[1]
        return known | {name for name in given if name in seen or not _counts(getattr(model, name))}

    def state_of(self, model: BaseLanguageModel[Any]) -> list[object]:
        """Return the values from which `read` describes a model of this class, as they are now.

        Where they are plain data, equal ones are described alike.
        """
        parameters = self.parameters_of(model, prepared=False)
        names = [name for name in self.fields_of(type(model)) if name in parameters]
        fields = {
            name: value for name in names if keyed.of_model(name, value := getattr(model, name))
        }
        says = getattr(model, "_identifying_params", {})
        return [fields, {name: one for name, one in says.items() if keyed.of_model(str(name), one)}]

    def class_of(self, kind: type) -> object:
        """Return a class by its name and, outside of LangChain, the code of its methods."""
        known = self._classes.get(kind)
        if known is None:
            _make_room(self._classes)
            named = is_framework(kind)
            known = self._classes[kind] = name_of(kind) if named else callable_identity(kind)
        return known

    def fields_of(self, kind: type[BaseModel]) -> tuple[str, ...]:
        """Return the names of the fields of a class that say what its objects do."""
        known = self._fields.get(kind)
        if known is None:
            _make_room(self._fields)
            skipped = _TYPING_ONLY
            if issubclass(kind, BaseTool):
                skipped |= CALLING
            elif issubclass(kind, Runnable):
                skipped |= CALLING | {"name"}  # of its runs; that of a tool the model sees
            known = self._fields[kind] = tuple(
                name
                for name, field in kind.model_fields.items()
                if name not in skipped and field.exclude is not True
            )
        return known

    def values_of(self, node: BaseModel) -> Mapping[str, object]:
        """Return the fields of an object that say what it does."""
        fields = {name: getattr(node, name) for name in self.fields_of(type(node))}
        return {**fields, **(node.model_extra or {})}

    def function(self, item: object, resolve: Callable[[object], object]) -> object:
        """Return what a function would do; ``resolve`` reads the objects that it sees."""
        return callable_identity(item, resolve=resolve)

    def schema(self, kind: type) -> object:
        """Return a class that is a value, with its schema if it is a pydantic one."""
        if not issubclass(kind, BaseModel):
            return {"type": self.class_of(kind)}
        return {"type": self.class_of(kind), "schema": schema_of(kind)}


class _Walk:
    """One reading; ``prepared`` is set inside what was configured for this call alone."""

    def __init__(self, owner: Fingerprint, config: RunnableConfig) -> None:
        self._owner = owner
        self._config = config
        self._depth = 0
        self._prepared = False
        self._in_model = False
        self.models: list[Mapping[str, object]] = []
        self.prompts: list[object] = []

    def value(self, item: object, where: str) -> object:
        """Return an object as plain data."""
        if item is None or type(item) in _PLAIN:
            return item
        if self._depth > MAX_DEPTH:
            raise CanonicalError(f"{where} is nested deeper than {MAX_DEPTH} levels")
        self._depth += 1
        try:
            return self._value(item, where)
        finally:
            self._depth -= 1

    def _value(self, item: object, where: str) -> object:
        match item:
            case enum.Enum():
                return {"enum": name_of(type(item)), "name": item.name}
            case None | str() | bool() | int() | float():
                return item
            case Mapping():
                rule = keyed.no_secret if self._in_model else keyed.everything
                return self._entries(item, where, rule)
            case list() | tuple():
                return [self.value(one, where) for one in item]
            case SecretStr() | SecretBytes():
                return {"secret": type(item).__name__}
            case type():
                return self._owner.schema(item)
            case Runnable():
                return self._runnable(item, where)
            case BaseModel():
                return self._fields(item, where)
        return self._function(item, where)

    def _entries(
        self, given: Mapping[Any, object], where: str, is_keyed: keyed.Keyed
    ) -> dict[str, object]:
        read: dict[str, object] = {}
        for key, one in given.items():
            name = _key(key, where)
            if not is_keyed(name, one):
                continue
            plain = one is None or type(one) in _PLAIN
            read[name] = one if plain else self.value(shaping(name, one), f"{where}.{name}")
        return read

    def _runnable(self, node: Runnable[object, object], where: str) -> object:
        outer, self._in_model = self._in_model, isinstance(node, BaseLanguageModel)
        try:
            return self._kind(node, where)
        finally:
            self._in_model = outer

    def _kind(self, node: Runnable[object, object], where: str) -> object:
        if _remembers(node):
            raise ConfigError(
                f"{where} is a {name_of(type(node))} that keeps conversations itself, which no cache"
                " around it sees; put the cache inside of it, and pass the history to that."
            )
        match node:
            case BaseLanguageModel():
                return self._model(node, where)
            case DynamicRunnable():
                return self._configured(node, where)
            case RunnableBindingBase():
                return self._binding(node, where)
            case RunnableLambda():
                ways = [getattr(node, name, None) for name in ("func", "afunc")]
                return {"lambda": [self.value(way, where) for way in ways if way is not None]}
            case RunnableGenerator():
                ways = [getattr(node, name, None) for name in ("_transform", "_atransform")]
                return {"generator": [self.value(way, where) for way in ways if way is not None]}
            case BaseModel():
                return self._fields(node, where)
        return self._opaque(node, where)

    def _model(self, model: BaseLanguageModel[Any], where: str) -> object:
        parameters = self._owner.parameters_of(model, prepared=self._prepared)
        fields = {
            name: getattr(model, name)
            for name in self._owner.fields_of(type(model))
            if name in parameters
        }
        # an iterator is the state of a scripted fake
        fields = {name: one for name, one in fields.items() if not isinstance(one, Iterator)}
        read = self._entries(fields, where, keyed.of_model)
        says = getattr(model, "_identifying_params", {})
        params = self._entries(says, where, keyed.of_model)
        self.models.append({**read, **params})
        return {"model": self._owner.class_of(type(model)), "params": params, "fields": read}

    def _configured(self, node: DynamicRunnable[object, object], where: str) -> object:
        prepared, config = node.prepare(self._config)
        outer, before = self._config, self._prepared
        self._config, self._prepared = config, True
        try:
            return self.value(prepared, where)
        finally:
            self._config, self._prepared = outer, before

    def _binding(self, node: RunnableBindingBase[object, object], where: str) -> object:
        outer = self._config
        added = node.config.get("configurable") or {}
        if added:
            self._config = {
                **outer,
                "configurable": {**(outer.get("configurable") or {}), **added},
            }
        try:
            bound = self.value(node.bound, where)
        finally:
            self._config = outer
        self._in_model = _is_model(node.bound)
        rule = keyed.of_model if self._in_model else keyed.everything
        return {"bound": bound, "with": self._entries(node.kwargs, f"{where}.bind", rule)}

    def _fields(self, node: BaseModel, where: str) -> object:
        rule = keyed.everything if is_core(type(node)) else keyed.no_secret
        read = self._entries(self._owner.values_of(node), where, rule)
        described = {"class": self._owner.class_of(type(node)), "fields": read}
        if isinstance(node, BasePromptTemplate):
            self.prompts.append(described)
        return described

    def _function(self, item: object, where: str) -> object:
        try:
            return self._owner.function(item, lambda seen: self.value(seen, where))
        except CanonicalError as error:
            if self._owner.version is None:
                raise CanonicalError(f"{where}: {error}") from error
            return self._opaque(item, where)

    def _opaque(self, item: object, where: str) -> object:
        """Return what stands for a part whose state cannot be seen."""
        if self._owner.version is None:
            raise CanonicalError(f"{where} is a {name_of(type(item))}, whose state is unknown")
        return {"opaque": name_of(type(item)), "version": self._owner.version}


def _make_room(known: dict[Any, Any]) -> None:
    """Forget all where too much is kept: classes and models that are made for one call."""
    if len(known) >= KEPT:
        known.clear()


def _counts(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _remembers(node: object) -> bool:
    """Tell whether a part answers from what it keeps of earlier calls, whatever it is given."""
    homes = {kind.__module__ for kind in type(node).__mro__}
    is_graph = any(home.startswith("langgraph.") for home in homes)
    return _WITH_HISTORY in homes or (is_graph and bool(getattr(node, "checkpointer", None)))


def _is_model(node: object) -> bool:
    """Tell whether what a binding hands its options to is a model."""
    while isinstance(node, RunnableBindingBase | DynamicRunnable):
        node = node.bound if isinstance(node, RunnableBindingBase) else node.default
    return isinstance(node, BaseLanguageModel)


def _key(key: object, where: str) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, int | float | None):
        return f"{type(key).__name__}:{key}"
    raise CanonicalError(f"{where} has a key of type {type(key).__qualname__}")
