"""A search of a watched store as a reading: what was asked, what was found, and whether it is plain."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from msgspec import Struct

from langchain_stampcache.watching.chunks import ChunkForm, digests_of
from langchain_stampcache.watching.filters import function_looks_at, looked_at, text_looked_at
from stampcache.adapters import Metric, Reading, as_bytes

_OPTIONS = frozenset({"embedding", "filter", "k", "query", "score_threshold"})
_NO_FILTERS = frozenset({"embedding", "fetch_k", "k", "query", "score_threshold"})
_NO_DOCUMENT = "what was found is no list of documents"


class Search(Struct, frozen=True, kw_only=True):
    """What a search was called with: how many are wanted, above which score, by which vector.

    ``has_relevances`` says that the scores it returns are relevances, which are a straight line over
    the scores of the metric. ``problem`` says why it is not simply one of the k nearest; ``looks_at``
    is metadata that it looks at and that changes unseen; ``lets`` is a function that filters.
    """

    wanted: int = 0
    vector: bytes = b""
    threshold: float | None = None
    has_relevances: bool = False
    problem: str = ""
    looks_at: str = ""
    lets: Callable[..., Any] | None = None


class Searching:
    """Reads calls of one store's searches."""

    def __init__(self, form: ChunkForm, options: frozenset[str]) -> None:
        """``options`` are further names that leave a search of this store a plain one."""
        self._form = form
        self._plain = _OPTIONS | options

    def plan(
        self,
        method: Callable[..., Any],
        args: Sequence[Any],
        options: Mapping[str, Any],
        *,
        has_relevances: bool,
        problem: str = "",
    ) -> Search:
        """Return what a call of a search comes to; what cannot be read is a problem.

        Args:
            method: the search.
            args: of the call.
            options: of the call.
            has_relevances: whether it gives relevances that are a straight line over scores.
            problem: why it is none of the k nearest, whatever it is called with.
        """
        try:
            bound = inspect.signature(method).bind(*args, **options)
        except (TypeError, ValueError):  # it will fail, or is written in C
            looks_at = looked_at([args, options], self._form.volatile)
            return Search(problem=problem or "its arguments are unknown", looks_at=looks_at)
        given = {name: value for name, value in _flat(bound) if value is not None}
        bound.apply_defaults()
        wanted = dict(_flat(bound)).get("k")
        problem = problem or self._unplain(given, wanted)
        threshold, lets = given.get("score_threshold"), given.get("filter")
        return Search(
            wanted=wanted if type(wanted) is int else 0,
            vector=_vector(given.get("embedding")),
            threshold=None if threshold is None or problem else float(threshold),
            has_relevances=has_relevances and threshold is not None,
            problem=problem,
            looks_at=self._looks_at(given),
            lets=lets if callable(lets) else None,
        )

    def unknown(self, problem: str, args: Sequence[Any], options: Mapping[str, Any]) -> Search:
        """Return what a call comes to of which nothing is known."""
        looks_at = looked_at([args, options], self._form.volatile)
        of_text = text_looked_at(options.get("where_document"))
        return Search(problem=problem, looks_at=looks_at or of_text)

    def _looks_at(self, given: Mapping[str, Any]) -> str:
        filters = {name: value for name, value in given.items() if name not in _NO_FILTERS}
        found = (looked_at(value, self._form.volatile) for value in filters.values())
        of_text = text_looked_at(filters.get("where_document"))
        return next((one for one in found if one), of_text)

    def _unplain(self, given: Mapping[str, Any], wanted: object) -> str:
        unknown = next((name for name in given if name not in self._plain), "")
        if unknown:
            return f"its option {unknown!r} is unknown"
        if type(wanted) is not int or wanted < 1:
            return f"it asks for {wanted!r} chunks"
        if not isinstance(given.get("score_threshold", 0), int | float):
            return "its threshold is no number"
        filters = (given[name] for name in ("filter", "where_document") if name in given)
        others = (type(one).__name__ for one in filters if not isinstance(one, Mapping))
        return next((f"its filter is a {one}" for one in others), "")

    def reading(
        self, corpus: str, metric: Metric | None, search: Search, query: bytes, result: object
    ) -> Reading:
        """Return what is told of a search.

        Args:
            corpus: that was asked.
            metric: by which the store compares.
            search: what it was called with.
            query: the vector of its query, where the store embedded one.
            result: what it returned.
        """
        found = _found(result)
        unseen = self.unseen(search, found.documents if found else ())
        if found is None:
            return Reading(corpus=corpus, problem=search.problem or _NO_DOCUMENT, unseen=unseen)
        documents, relevances = found.documents, found.scores
        digests = digests_of(self._form, documents)
        if digests is None or not all(one.id for one in documents):
            what = "has no id" if digests else "has metadata that cannot be compared"
            problem = search.problem or f"a chunk found {what}"
            return Reading(corpus=corpus, problem=problem, unseen=unseen)
        return Reading(
            corpus=corpus,
            vector=search.vector or query,
            metric=metric,
            chunks=tuple(one.id or "" for one in documents),
            digests=digests,
            wanted=search.wanted,
            relevances=relevances if search.has_relevances else (),
            threshold=search.threshold,
            problem=search.problem,
            unseen=unseen,
        )

    def unseen(self, search: Search, found: Sequence[Document]) -> str:
        """Say why a search may find something else though nobody tells of a write."""
        looks_at = search.looks_at
        if not looks_at and search.lets is not None:
            looks_at = function_looks_at(search.lets, found, self._form.volatile)
        return f"its search looks at {looks_at!r}, which changes unseen" if looks_at else ""


class _Found(Struct, frozen=True):
    documents: list[Document]
    scores: tuple[float, ...]


def _found(result: object) -> _Found | None:
    """Return the documents of a result, and their scores where it has those."""
    if not isinstance(result, list):
        return None
    documents, scores = list[Document](), list[float]()
    for one in result:
        document, *score = one if isinstance(one, tuple) else (one,)
        if not isinstance(document, Document):
            return None
        documents.append(document)
        scores += [float(each) for each in score if isinstance(each, int | float)]
    return _Found(documents, tuple(scores) if len(scores) == len(documents) else ())


def _flat(bound: inspect.BoundArguments) -> Iterator[tuple[str, Any]]:
    """Give all arguments by their names; positional ones beyond those that are named have none."""
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            yield from value.items()
        elif kind is not inspect.Parameter.VAR_POSITIONAL:
            yield name, value
        elif value:
            yield f"*{name}", value


def _vector(given: object) -> bytes:
    if given is None:
        return b""
    try:
        return as_bytes(given)  # type: ignore[arg-type]  # what is no vector has none
    except (TypeError, ValueError):
        return b""
