"""Asking a retriever, whichever of LangChain's forms it has."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from langchain_stampcache.retrieval.fields import (
    RetrieverFields,
    WatchedRunnable,
    described_store,
)
from langchain_stampcache.retrieval.settings import RetrieverSettings
from langchain_stampcache.retrieval.watched import Source, source_of
from stampcache.adapters import CanonicalError

Retriever: TypeAlias = (
    BaseRetriever | Runnable[dict[str, Any], list[Document]] | Callable[[str], list[Document]]
)


class Retrieving:
    """A retriever behind one interface: a question, and the inputs that came with it."""

    def __init__(
        self, retriever: Retriever | None, *, watched: bool = False, version: str | None = None
    ) -> None:
        """``watched``: nothing is retrieved on a hit, so all that decides what is found is read.

        Then ``version`` stands for what of it cannot be identified.

        Raises:
            ConfigError: it is to be watched, and reads from what is not.
        """
        self._given = retriever
        self._version = version
        self._source = source_of(retriever) if watched and retriever is not None else None
        self._takes_inputs = isinstance(retriever, Runnable) and not isinstance(
            retriever, BaseRetriever
        )
        self._runnable: Runnable[Any, list[Document]] | None = None
        if retriever is not None:
            plain = not isinstance(retriever, Runnable)
            self._runnable = RunnableLambda(retriever) if plain else retriever  # type: ignore[assignment, arg-type]  # both are Runnables of documents
        self._settings = RetrieverSettings()
        self._whole = WatchedRunnable(version=version)
        self._fields = RetrieverFields(retriever) if isinstance(retriever, BaseRetriever) else None

    @property
    def retrieves(self) -> bool:
        """Whether there is a retriever at all."""
        return self._given is not None

    @property
    def source(self) -> Source | None:
        """What the retriever reads from, where that is watched."""
        return self._source

    @property
    def volatile(self) -> frozenset[str] | None:
        """Metadata that does not count in the watched index; ``None`` where none is."""
        return None if self._source is None else self._source.volatile

    def still_watched(self) -> bool:
        """Tell whether all parts of the retriever read from its source as they are now.

        Raises:
            ConfigError: they do not; it says which one.
        """
        return self._source is None or source_of(self._given).corpus == self._source.corpus

    def described(self, config: RunnableConfig | None) -> object:
        """Return what the retriever is set to do under this config; ``None`` without a retriever.

        Raises:
            CanonicalError: a setting of it has no canonical form.
        """
        if self._given is None:
            return None
        if self._source is None:
            return self._settings.described(self._given, config)
        if self._fields is not None:
            try:
                return self._fields.read(config, {})
            except CanonicalError:
                if self._version is None:
                    raise
        return {
            "runs": self._whole.read(self._given, config).described,
            "stores": [described_store(one) for one in self._source.stores],
        }

    def retrieve(
        self, question: str, inputs: Mapping[str, Any], config: RunnableConfig
    ) -> list[Document]:
        """Return the documents for a question; errors of the retriever pass through."""
        if self._runnable is None:
            return []
        return list(self._runnable.invoke(self._input(question, inputs), config))

    async def aretrieve(
        self, question: str, inputs: Mapping[str, Any], config: RunnableConfig
    ) -> list[Document]:
        """Return the same as `retrieve`."""
        if self._runnable is None:
            return []
        return list(await self._runnable.ainvoke(self._input(question, inputs), config))

    def _input(self, question: str, inputs: Mapping[str, Any]) -> object:
        return {**inputs, "input": question} if self._takes_inputs else question
