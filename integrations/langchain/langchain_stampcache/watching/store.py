"""`WatchedVectorStore`: a vector store whose writes and searches the cache hears of."""

import functools
from collections.abc import Callable, Iterable, Sequence
from types import MethodType
from typing import Any, NoReturn

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from langchain_stampcache.watching.embedder import HeardEmbeddings
from langchain_stampcache.watching.names import is_function, is_write
from langchain_stampcache.watching.reading import Reads
from langchain_stampcache.watching.unknown import Anything
from langchain_stampcache.watching.writing import Writes
from stampcache.adapters import Committed, Standing, Watch

_OWN = frozenset({"_anything", "_inner", "_reads", "_watch", "_writes"})


class WatchedVectorStore(VectorStore):
    """Stands where a vector store stood, and does what that does; the cache hears of it.

    Each write is announced to the cache, made by the inner store, and told. While it is made no answer
    of the corpus is served. Then exactly those answers are stale whose retrieval it changed, where that
    can be computed, else all of the corpus. Errors of the inner store reach the caller unchanged. If the
    cache cannot be told that a write begins, a `stampcache.StoreError` is raised and nothing is written.

    A method of the inner store whose name sounds like a write is taken for one that may change anything;
    everything else is passed through. Writes to the inner store itself are not seen: `resync` takes them
    over. A cancelled write goes on to its end.
    """

    _anything: Anything
    _inner: VectorStore
    _reads: Reads
    _watch: Watch
    _writes: Writes

    def __init__(self, inner: VectorStore, watch: Watch, writes: Writes, reads: Reads) -> None:
        """Use `langchain_stampcache.watch`."""
        own = {"_inner": inner, "_watch": watch, "_writes": writes, "_reads": reads}
        self.__dict__.update(own, _anything=Anything(watch))

    # -- what is watched ---------------------------------------------------------------------------

    @property
    def inner(self) -> VectorStore:
        """The store that is watched; what is written to it directly is not seen."""
        return self._inner

    @property
    def watched(self) -> Watch:
        """The watch over its corpus."""
        return self._watch

    @property
    def sees_vectors(self) -> bool:
        """Whether the vectors of chunks and questions are seen; if not, any write ends all answers."""
        return self._writes.sees_vectors

    def standing(self) -> Standing | None:
        """Return how the corpus stands."""
        return self._watch.core.store.corpora.standing(self._watch.corpus)

    def problems(self) -> list[str]:
        """Return where the inner store and the cache differ, each as a sentence that says what to do."""
        return self._watch.run(self._watch.examine())

    async def aproblems(self) -> list[str]:
        """See `problems`."""
        return await self._watch.arun(self._watch.examine())

    def resync(self) -> Committed:
        """Take over what the inner store holds now, whoever wrote it; then its answers are served again.

        Where it cannot be listed, every answer of the corpus becomes stale.
        """
        return self._watch.run(self._watch.resync())

    async def aresync(self) -> Committed:
        """See `resync`."""
        return await self._watch.arun(self._watch.resync())

    # -- writes ------------------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts, as the inner store does."""
        return self._writes.add(self._writes.texts(texts, metadatas, args, kwargs))

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> list[str]:
        """See `add_texts`."""
        return await self._writes.aadd(self._writes.texts(texts, metadatas, args, kwargs))

    def add_documents(self, documents: list[Document], *args: Any, **kwargs: Any) -> list[str]:
        """Add documents, as the inner store does."""
        return self._writes.add(self._writes.documents(documents, args, kwargs))

    async def aadd_documents(
        self, documents: list[Document], *args: Any, **kwargs: Any
    ) -> list[str]:
        """See `add_documents`."""
        return await self._writes.aadd(self._writes.documents(documents, args, kwargs))

    def delete(self, *args: Any, **kwargs: Any) -> bool | None:
        """Delete documents, as the inner store does."""
        return self._writes.delete(args, kwargs)

    async def adelete(self, *args: Any, **kwargs: Any) -> bool | None:
        """See `delete`."""
        return await self._writes.adelete(args, kwargs)

    @classmethod
    def from_texts(cls, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: ARG003 - the framework's
        """Refuse: make the inner store, and watch that."""
        raise TypeError("Make the vector store by its own class, then watch(...) it.")

    @classmethod
    async def afrom_texts(cls, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: ARG003 - as above
        """Refuse: make the inner store, and watch that."""
        cls.from_texts()

    # -- searches ----------------------------------------------------------------------------------

    def similarity_search(self, *args: Any, **kwargs: Any) -> list[Document]:
        """Search, as the inner store does."""
        found: list[Document] = self._reads.search("similarity_search", args, kwargs)
        return found

    async def asimilarity_search(self, *args: Any, **kwargs: Any) -> list[Document]:
        """See `similarity_search`."""
        found: list[Document] = await self._reads.asearch("asimilarity_search", args, kwargs)
        return found

    def similarity_search_with_score(
        self, *args: Any, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Search, as the inner store does."""
        found: list[tuple[Document, float]]
        found = self._reads.search("similarity_search_with_score", args, kwargs)
        return found

    async def asimilarity_search_with_score(
        self, *args: Any, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """See `similarity_search_with_score`."""
        found: list[tuple[Document, float]]
        found = await self._reads.asearch("asimilarity_search_with_score", args, kwargs)
        return found

    def similarity_search_by_vector(self, *args: Any, **kwargs: Any) -> list[Document]:
        """Search, as the inner store does."""
        found: list[Document] = self._reads.search("similarity_search_by_vector", args, kwargs)
        return found

    async def asimilarity_search_by_vector(self, *args: Any, **kwargs: Any) -> list[Document]:
        """See `similarity_search_by_vector`."""
        found: list[Document]
        found = await self._reads.asearch("asimilarity_search_by_vector", args, kwargs)
        return found

    def similarity_search_with_relevance_scores(
        self, *args: Any, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Search, as the inner store does."""
        found: list[tuple[Document, float]]
        found = self._reads.search("similarity_search_with_relevance_scores", args, kwargs)
        return found

    async def asimilarity_search_with_relevance_scores(
        self, *args: Any, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """See `similarity_search_with_relevance_scores`."""
        found: list[tuple[Document, float]]
        found = await self._reads.asearch("asimilarity_search_with_relevance_scores", args, kwargs)
        return found

    def max_marginal_relevance_search(self, *args: Any, **kwargs: Any) -> list[Document]:
        """Search, as the inner store does; any write ends what is made from it."""
        found: list[Document] = self._reads.search("max_marginal_relevance_search", args, kwargs)
        return found

    async def amax_marginal_relevance_search(self, *args: Any, **kwargs: Any) -> list[Document]:
        """See `max_marginal_relevance_search`."""
        found: list[Document]
        found = await self._reads.asearch("amax_marginal_relevance_search", args, kwargs)
        return found

    def max_marginal_relevance_search_by_vector(self, *args: Any, **kwargs: Any) -> list[Document]:
        """Search, as the inner store does; any write ends what is made from it."""
        found: list[Document]
        found = self._reads.search("max_marginal_relevance_search_by_vector", args, kwargs)
        return found

    async def amax_marginal_relevance_search_by_vector(
        self, *args: Any, **kwargs: Any
    ) -> list[Document]:
        """See `max_marginal_relevance_search_by_vector`."""
        found: list[Document]
        found = await self._reads.asearch("amax_marginal_relevance_search_by_vector", args, kwargs)
        return found

    def search(self, query: str, search_type: str, **kwargs: Any) -> list[Document]:
        """Search, as the inner store does."""
        if type(self._inner).search is VectorStore.search:
            return super().search(query, search_type, **kwargs)
        found: list[Document] = self._reads.search("search", (query, search_type), kwargs)
        return found

    async def asearch(self, query: str, search_type: str, **kwargs: Any) -> list[Document]:
        """See `search`."""
        if type(self._inner).asearch is VectorStore.asearch:
            return await super().asearch(query, search_type, **kwargs)
        found: list[Document] = await self._reads.asearch("asearch", (query, search_type), kwargs)
        return found

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return documents, as the inner store does; any write ends what is made from them."""
        found: list[Document] = self._reads.search("get_by_ids", (ids,), {})
        return found

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """See `get_by_ids`."""
        found: list[Document] = await self._reads.asearch("aget_by_ids", (ids,), {})
        return found

    def as_retriever(self, **kwargs: Any) -> VectorStoreRetriever:
        """Return the retriever that the inner store makes; it reads through the watch."""
        if type(self._inner).as_retriever is VectorStore.as_retriever:
            return super().as_retriever(**kwargs)
        made = self._inner.as_retriever(**kwargs)
        return made.model_copy(update={"vectorstore": self})

    # -- everything else ---------------------------------------------------------------------------

    @property
    def embeddings(self) -> Embeddings | None:
        """The embeddings of the inner store, as it was given them."""
        found = self._inner.embeddings
        while isinstance(found, HeardEmbeddings):
            found = found.stands_before
        return found

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return self._inner._select_relevance_score_fn()

    def _get_retriever_tags(self) -> list[str]:
        named = (self._inner, self.embeddings)
        return [type(one).__name__ for one in named if one]

    def __getattr__(self, name: str) -> Any:
        if name in _OWN or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        value = getattr(self._inner, name)
        if is_write(name) and is_function(value):
            return self._anything.of(value)
        is_own = isinstance(value, MethodType) and value.__self__ is self._inner
        return self._reads.heard(value) if is_own and not name.startswith("_") else value

    def __setattr__(self, name: str, value: object) -> None:
        self._anything.of(functools.partial(setattr, self._inner))(name, value)

    def __delattr__(self, name: str) -> None:
        self._anything.of(functools.partial(delattr, self._inner))(name)

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *dir(self._inner)})

    def __repr__(self) -> str:
        return f"watched({self._inner!r}, corpus={self._watch.corpus!r})"

    def __copy__(self) -> "WatchedVectorStore":
        return WatchedVectorStore(self._inner, self._watch, self._writes, self._reads)

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError(_ONE_INDEX)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(_ONE_INDEX)


_ONE_INDEX = (
    "A watched vector store is neither pickled nor copied deeply: the cache would not hear of writes to"
    " the other one. Copy its inner store, and watch that under a corpus= of its own."
)
