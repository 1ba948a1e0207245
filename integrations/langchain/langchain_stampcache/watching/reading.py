"""What is read from a watched store: each search is run as it is, and told."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from langchain_core.vectorstores import VectorStore

from langchain_stampcache.watching.embedder import Heard, HeardEmbeddings
from langchain_stampcache.watching.searching import Search, Searching
from langchain_stampcache.watching.views import gives_straight_relevances
from stampcache.adapters import Metric, Reading, hear, is_heard

# The searches of the framework that rank by one vector; all others are more than that.
_PLAIN = frozenset({
    "similarity_search", "similarity_search_by_vector",
    "similarity_search_by_vector_with_relevance_scores", "similarity_search_with_relevance_scores",
    "similarity_search_with_score", "similarity_search_with_score_by_vector",
})  # fmt: skip
_PROBLEMS = {
    "get_by_ids": "documents were fetched by their ids",
    "max_marginal_relevance_search": "its search was for maximal marginal relevance",
    "max_marginal_relevance_search_by_vector": "its search was for maximal marginal relevance",
}
_GUESSED = "its question was searched for by a guessed answer"
_RELEVANCE = "similarity_search_with_relevance_scores"


class Reads:
    """The searches of one store; safe for threads and tasks."""

    def __init__(
        self,
        store: VectorStore,
        corpus: str,
        metric: Metric | None,
        searching: Searching,
        embeddings: HeardEmbeddings | None,
    ) -> None:
        self._store = store
        self._corpus = corpus
        self._metric = metric
        self._searching = searching
        self._embeddings = embeddings
        self._problem = _GUESSED if _guesses(embeddings) else ""

    def search(self, name: str, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Run a search of the store, and tell of it."""
        method = getattr(self._store, name)
        if not is_heard():
            return method(*args, **options)
        search, heard = self._plan(method, name, args, options), Heard()
        with self._telling_failures(), self._hearing(heard):
            found = method(*args, **options)
        self._tell(search, heard, found)
        return found

    async def asearch(self, name: str, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """See `search`."""
        method = getattr(self._store, name)
        if not is_heard():
            return await method(*args, **options)
        search, heard = self._plan(method, name, args, options), Heard()
        with self._telling_failures(), self._hearing(heard):
            found = await method(*args, **options)
        self._tell(search, heard, found)
        return found

    def heard(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method of the store that is told of: as a search, or as one nothing is known of."""
        name = method.__name__
        if name.removeprefix("a") not in _PLAIN | _PROBLEMS.keys() and name not in _PLAIN:
            return self._unknown(method)
        if inspect.iscoroutinefunction(method):

            @functools.wraps(method)
            async def arun(*args: Any, **options: Any) -> Any:
                return await self.asearch(name, args, options)

            return arun

        @functools.wraps(method)
        def run(*args: Any, **options: Any) -> Any:
            return self.search(name, args, options)

        return run

    def _unknown(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method after whose call any write ends what is made."""
        problem = f"it was read by {method.__name__}()"

        @functools.wraps(method)
        def run(*args: Any, **options: Any) -> Any:
            if is_heard():
                search = self._searching.unknown(problem, args, options)
                unseen = self._searching.unseen(search, ())
                hear(Reading(corpus=self._corpus, problem=problem, unseen=unseen))
            return method(*args, **options)

        return run

    def _plan(
        self,
        method: Callable[..., Any],
        name: str,
        args: Sequence[Any],
        options: Mapping[str, Any],
    ) -> Search:
        plain = name if name in _PLAIN else name.removeprefix("a")
        named = method if _names_its_arguments(method) else getattr(self._store, plain, method)
        problem = "" if plain in _PLAIN else _PROBLEMS.get(plain, f"it was searched by {name}()")
        if self._problem and not plain.endswith("by_vector"):
            problem = problem or self._problem
        straight = plain == _RELEVANCE and gives_straight_relevances(self._store, self._metric)
        return self._searching.plan(named, args, options, has_relevances=straight, problem=problem)

    def _hearing(self, heard: Heard) -> Any:
        return nullcontext() if self._embeddings is None else self._embeddings.hearing(heard)

    @contextmanager
    def _telling_failures(self) -> Iterator[None]:
        """A search that failed may be answered from otherwise; that is not one of the k nearest."""
        try:
            yield
        except BaseException:
            hear(Reading(corpus=self._corpus, problem="a search of it failed"))
            raise

    def _tell(self, search: Search, heard: Heard, found: object) -> None:
        hear(self._searching.reading(self._corpus, self._metric, search, heard.query, found))


def _guesses(embeddings: HeardEmbeddings | None) -> bool:
    """Tell whether an embedder asks a model what an answer may look like (HyDE)."""
    inner = None if embeddings is None else embeddings.stands_before
    return any(kind.__name__ == "HypotheticalDocumentEmbedder" for kind in type(inner).__mro__)


def _names_its_arguments(method: Callable[..., Any]) -> bool:
    """Tell whether a method says what its arguments are; the framework's own async ones do not all."""
    kinds = [one.kind for one in inspect.signature(method).parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL not in kinds
