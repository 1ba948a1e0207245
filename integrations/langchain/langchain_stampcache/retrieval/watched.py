"""Which watched corpus a retriever reads from; every part of it must read from that one.

Nobody tells the cache of what is written to an index that is not watched. So a part that reads from
one, or from what it holds itself, is refused when the wrapper is made, and named. It is looked for
anew for each answer that is made, since parts may be exchanged.
"""

import functools
import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from langchain_core.documents import BaseDocumentTransformer, Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from langchain_stampcache.schemas import name_of
from stampcache import ConfigError
from stampcache.adapters import VOLATILE, Core, Validity, Watch

_NOTHING = (str, bytes, int, float, type, types.ModuleType, Core)
_READS_NOTHING = (Embeddings, BaseLanguageModel, BasePromptTemplate)
_LOOKED_INTO = (BaseModel, BaseStore, Runnable, VectorStore)
_TELLS_TIME = frozenset({"TimeWeightedVectorStoreRetriever"})
_ELSE = 'or take grounding="recheck"'
_FRAMEWORK = frozenset({
    "langchain", "langchain_classic", "langchain_core", "langchain_stampcache", "langgraph", "pydantic",
    "stampcache",
})  # fmt: skip
MAX_DEPTH = 24


class Source(Struct, frozen=True, kw_only=True):
    """What is watched: the name of the corpus, the metadata that does not count there, its indexes."""

    corpus: str
    volatile: frozenset[str] = VOLATILE
    stores: tuple[object, ...] = ()


def watch_of(node: object) -> Watch | None:
    """Return the watch that an object stands behind; ``None`` where nobody watches it."""
    watched = getattr(node, "watched", None)
    return watched if isinstance(watched, Watch) else None


def source_of(retriever: object, *, where: str = "retriever") -> Source:
    """Return what a retriever reads from.

    Raises:
        ConfigError: a part of it reads from what nobody watches, or from another corpus.
    """
    found = found_in(retriever, where=where)
    if found is None:
        raise ConfigError(
            f"{_said(retriever, where)} reads from no watched index: put watch(...) around the vector"
            f" store that it reads from, {_ELSE}."
        )
    return found


def found_in(node: object, *, where: str) -> Source | None:
    """Return what an object reads from as far as is seen; ``None`` where nothing is seen.

    Raises:
        ConfigError: see `source_of`.
    """
    search = _Search()
    search.look(node, where)
    return search.source


def of_source(given: Validity, source: Source | None) -> Validity:
    """Return how answers are kept true with the corpus that is watched, where that is seen.

    Raises:
        ConfigError: another one was given.
    """
    if source is None:
        return given
    if given.corpus not in ("", source.corpus):
        raise ConfigError(
            f"corpus= is {given.corpus!r}, and what is retrieved from is watched as"
            f" {source.corpus!r}; leave corpus= out, or give the same name to watch(...)."
        )
    return replace(given, corpus=source.corpus)


class _Search:
    """One walk over what an object holds."""

    def __init__(self) -> None:
        self.source: Source | None = None
        self._first = ""
        self._seen: dict[int, bool] = {}
        self._depth = 0

    def look(self, node: object, where: str) -> bool:
        """Tell whether an object reads from a watched index; refuse it where it reads from another."""
        if node is None or isinstance(node, _NOTHING):
            return False
        if id(node) in self._seen:
            return self._seen[id(node)]
        if self._depth > MAX_DEPTH:
            raise ConfigError(
                f"{where} lies too deep to be looked into: what it reads from is not seen, {_ELSE}."
            )
        self._seen[id(node)] = False
        self._depth += 1
        try:
            found = self._seen[id(node)] = self._look(node, where)
            return found
        finally:
            self._depth -= 1

    def _look(self, node: object, where: str) -> bool:
        watch = watch_of(node)
        if watch is not None:
            return self._note(node, watch, where)
        match node:
            case VectorStore() | BaseStore():
                raise ConfigError(
                    f"{_said(node, where)} is watched by nobody: put watch(...) around it, {_ELSE}."
                )
            case Document():
                raise ConfigError(
                    f"{where} holds documents of its own, to which the cache sees no writes:"
                    f" put them into a watched index, {_ELSE}."
                )
            case _ if isinstance(node, _READS_NOTHING):
                return False
            case BaseRetriever():
                return self._retriever(node, where)
            case types.FunctionType() if _is_framework(node.__module__):
                return False
        return self._any(_held_by(node), where)

    def _retriever(self, node: BaseRetriever, where: str) -> bool:
        if any(kind.__name__ in _TELLS_TIME for kind in type(node).__mro__):
            raise ConfigError(
                f"{_said(node, where)} finds other documents as time goes by, which no write tells"
                " of: put the cache around its model instead."
            )
        if _is_ours(node) and getattr(node, "grounding", None) != "watch":
            raise ConfigError(
                f"{_said(node, where)} keeps documents that may be older than its index: give it"
                ' grounding="watch", too, or leave it out.'
            )
        if _is_ours(node) and getattr(node, "allow_stale", False):
            raise ConfigError(
                f"{_said(node, where)} may give documents that no longer hold: leave out its"
                " allow_stale=."
            )
        if not self._any(_held_by(node), where):
            raise ConfigError(
                f"{_said(node, where)} reads from no watched index: put watch(...) around the vector"
                f" store that it reads from, {_ELSE}."
            )
        return True

    def _any(self, held: Iterator[tuple[str, object]], where: str) -> bool:
        found = [self.look(one, f"{where}{name}") for name, one in held]
        return any(found)

    def _note(self, node: object, watch: Watch, where: str) -> bool:
        before = self.source
        if before is None:
            before, self._first = Source(corpus=watch.corpus), where
        volatile = before.volatile | getattr(watch, "volatile", frozenset())
        self.source = replace(before, volatile=volatile, stores=(*before.stores, node))
        if before.corpus != watch.corpus:
            raise ConfigError(
                f"{where} reads from corpus {watch.corpus!r} and {self._first} from"
                f" {before.corpus!r}; answers from several corpora cannot be watched: retrieve"
                f" from one, {_ELSE}."
            )
        return True


def _held_by(node: object) -> Iterator[tuple[str, object]]:
    """Yield what an object may read from, each with how it is reached from there."""
    match node:
        case Mapping():
            yield from ((f"[{name!r}]", one) for name, one in node.items())
        case list() | tuple() | set() | frozenset():
            yield from ((f"[{at}]", one) for at, one in enumerate(node))
        case types.FunctionType():
            yield from _seen_by(node)
        case types.MethodType(__func__=types.FunctionType() as function):
            yield from _seen_by(function)
            yield ".__self__", node.__self__
            yield from _named(node.__self__, ".__self__", _names_in(function.__code__))
        case functools.partial():
            yield ".func", node.func
            yield ".args", node.args
            yield ".keywords", node.keywords
        case BaseModel() | Runnable() | BaseDocumentTransformer():
            yield from _attributes(node)
            if isinstance(node, BaseRetriever) and not _is_framework(type(node).__module__):
                yield from _seen_by_methods(type(node))


def _attributes(node: object) -> Iterator[tuple[str, object]]:
    if isinstance(node, BaseRetriever) and _is_ours(node):  # its cache is no part of what it finds
        yield ".inner", getattr(node, "inner", None)
        return
    held: dict[str, Any] = {**getattr(node, "__dict__", {})}
    held |= getattr(node, "__pydantic_private__", None) or {}
    if watch_of(held.get("docstore")) is not None:
        held.pop("byte_store", None)  # it is read through the docstore only
    yield from ((f".{name}", one) for name, one in held.items())


def _seen_by_methods(kind: type) -> Iterator[tuple[str, object]]:
    for name in ("_get_relevant_documents", "_aget_relevant_documents"):
        method: object = getattr(kind, name)
        if isinstance(method, types.FunctionType) and not _is_framework(method.__module__):
            yield from _seen_by(method)


def _seen_by(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    """Yield what a function sees from around it, under the names in its code."""
    code, around = function.__code__, function.__globals__
    names = _names_in(code)
    seen = {name: around[name] for name in names if name in around}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a name that is bound later
            seen[name] = cell.cell_contents
    for name, one in sorted(seen.items(), key=lambda each: each[0]):
        yield f" ({name})", one
        yield from _named(one, f" ({name})", names)
    yield "", function.__defaults__
    yield "", function.__kwdefaults__


def _named(owner: object, where: str, names: frozenset[str]) -> Iterator[tuple[str, object]]:
    """Yield the attributes of an app's object that the code of a function names."""
    if isinstance(owner, _LOOKED_INTO) or watch_of(owner) is not None:
        return
    held = getattr(owner, "__dict__", {})
    yield from ((f"{where}.{name}", held[name]) for name in sorted(names) if name in held)


@functools.lru_cache(maxsize=256)
def _names_in(code: types.CodeType) -> frozenset[str]:
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return frozenset(code.co_names).union(*map(_names_in, inner))


def _is_framework(module: str) -> bool:
    return module.partition(".")[0] in _FRAMEWORK


def _is_ours(node: object) -> bool:
    return type(node).__module__.partition(".")[0] == __package__.partition(".")[0]


def _said(node: object, where: str) -> str:
    return f"{where} ({name_of(type(node)).rpartition('.')[2]})"
