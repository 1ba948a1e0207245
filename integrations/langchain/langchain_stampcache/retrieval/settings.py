"""What a retriever is set to do, as plain data: its class, ``k``, filters; never what it holds.

A changed document is seen by the evidence of the answers made from it, or is announced. It must not
make the answers from all other documents stale, so no documents, indexes or clients are read here.
"""

import enum
import functools
import types
from collections.abc import Callable, Mapping
from types import NoneType

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.vectorstores import VectorStore
from pydantic import BaseModel

from langchain_stampcache.fingerprint import Fingerprint
from langchain_stampcache.schemas import name_of
from stampcache.adapters import CanonicalError, callable_identity

# What LangChain's retrievers call their settings; read wherever they exist.
SETTINGS = frozenset({
    "alpha", "fetch_k", "filter", "k", "lambda_mult", "score_threshold", "search_kwargs",
    "search_type", "top_k", "weights",
})  # fmt: skip
RETRIEVERS_KEPT = 64
_CODES_KEPT = 256
_SCALARS = (str, int, float, NoneType, enum.Enum)
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)


class RetrieverSettings(Fingerprint):
    """Reads one retriever, again and again, also one that is made of others."""

    def __init__(self, *, version: str | None = "not seen") -> None:
        super().__init__(version=version)  # what it holds is no setting of it, so it needs none
        self._first: dict[int, tuple[BaseRetriever, frozenset[str]]] = {}

    def described(self, retriever: object, config: RunnableConfig | None) -> object:
        """Return what a retriever, or a function in its place, is set to do.

        Raises:
            CanonicalError: a setting of it has no canonical form.
        """
        described = self.read(retriever, config).described
        if isinstance(retriever, Runnable) and not isinstance(retriever, BaseModel):
            named = {
                name: getattr(retriever, name) for name in SETTINGS if hasattr(retriever, name)
            }
            return {"is": described, "settings": self.read(named, config).described}
        return described

    def values_of(self, node: BaseModel) -> Mapping[str, object]:
        """Return the fields of an object that are settings."""
        if isinstance(node, Document):
            return {}
        values = super().values_of(node)
        if not isinstance(node, BaseRetriever):
            return values
        given = self._given_to(node)
        kept = {
            name: name_of(type(value)) if isinstance(value, VectorStore) else value
            for name, value in values.items()
            if _is_setting(name, value, given)
        }
        extra = {
            name: getattr(node, name) for name in SETTINGS - kept.keys() if hasattr(node, name)
        }
        return {**kept, **extra}

    def function(self, item: object, resolve: Callable[[object], object]) -> object:
        """Return the code of a function, and of what it sees plain values and retrievers."""
        match item:
            case types.FunctionType():
                return callable_identity(_without_holdings(item), resolve=resolve)
            case types.MethodType():
                owner = item.__self__
                known = resolve(owner) if isinstance(owner, BaseModel) else name_of(type(owner))
                return {"method": item.__func__.__qualname__, "of": known}
            case functools.partial():
                given = {"args": list(item.args), "keywords": dict(item.keywords)}
                return {"partial": self.function(item.func, resolve), "with": resolve(given)}
        raise CanonicalError(f"a {name_of(type(item))} is no plain function")

    def _given_to(self, retriever: BaseRetriever) -> frozenset[str]:
        """Return which fields were set when it was first seen; one set later may be a counter."""
        now = frozenset(retriever.model_fields_set)
        known = self._first.get(id(retriever))
        if known is not None:
            return known[1]
        if len(self._first) < RETRIEVERS_KEPT:  # those beyond it are made for one call each
            self._first[id(retriever)] = (retriever, now)  # alive, so that its id stays its own
        return now


class WholeChain(RetrieverSettings):
    """Reads a chain with retrievers in it: of these their settings, of all else what it would do."""

    def __init__(self, *, version: str | None) -> None:
        super().__init__(version=version)
        self.has_retriever = False

    def values_of(self, node: BaseModel) -> Mapping[str, object]:
        """Return the fields of an object that say what it does."""
        if isinstance(node, BaseRetriever):
            self.has_retriever = True
            return super().values_of(node)
        return Fingerprint.values_of(self, node)

    def function(self, item: object, resolve: Callable[[object], object]) -> object:
        """Return what a function would do, with all that it sees."""
        return Fingerprint.function(self, item, resolve)


def _is_setting(name: str, value: object, given: frozenset[str]) -> bool:
    if name in SETTINGS or isinstance(value, Runnable | BaseDocumentCompressor | VectorStore):
        return True
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(each, Runnable) for each in value)
    return name in given and isinstance(value, (*_SCALARS, *_FUNCTIONS))


def _without_holdings(function: types.FunctionType) -> types.FunctionType:
    """Return a function of the same code that sees only plain values and retrievers."""
    around = function.__globals__
    seen = {name: around[name] for name in _names_in(function.__code__) if name in around}
    seen = {name: one for name, one in seen.items() if _is_seen(one)}
    bare = types.FunctionType(
        function.__code__,
        {**seen, "__name__": function.__module__},
        function.__name__,
        tuple(one if _is_seen(one) else None for one in function.__defaults__ or ()),
        tuple(_cell(cell) for cell in function.__closure__ or ()),
    )
    defaults = function.__kwdefaults__ or {}
    bare.__kwdefaults__ = {name: one for name, one in defaults.items() if _is_seen(one)}
    bare.__qualname__ = function.__qualname__
    return bare


@functools.lru_cache(maxsize=_CODES_KEPT)
def _names_in(code: types.CodeType) -> frozenset[str]:
    """Return the names that a function may read from around it, those of functions in it too."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return frozenset(code.co_names).union(*map(_names_in, inner))


def _cell(cell: types.CellType) -> types.CellType:
    try:
        return cell if _is_seen(cell.cell_contents) else types.CellType()
    except ValueError:  # a name that is bound later
        return types.CellType()


def _is_seen(value: object) -> bool:
    return isinstance(value, (*_SCALARS, BaseRetriever))
