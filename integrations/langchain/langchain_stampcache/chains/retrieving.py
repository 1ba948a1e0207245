"""Asking a retriever, whichever of LangChain's forms it has."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from langchain_stampcache.retrieval.settings import RetrieverSettings

Retriever: TypeAlias = (
    BaseRetriever | Runnable[dict[str, Any], list[Document]] | Callable[[str], list[Document]]
)


class Retrieving:
    """A retriever behind one interface: a question, and the inputs that came with it."""

    def __init__(self, retriever: Retriever | None) -> None:
        self._given = retriever
        self._takes_inputs = isinstance(retriever, Runnable) and not isinstance(
            retriever, BaseRetriever
        )
        self._runnable: Runnable[Any, list[Document]] | None = None
        if retriever is not None:
            plain = not isinstance(retriever, Runnable)
            self._runnable = RunnableLambda(retriever) if plain else retriever  # type: ignore[assignment, arg-type]  # both are Runnables of documents
        self._settings = RetrieverSettings()

    @property
    def retrieves(self) -> bool:
        """Whether there is a retriever at all."""
        return self._given is not None

    def described(self, config: RunnableConfig | None) -> object:
        """Return what the retriever is set to do under this config; ``None`` without a retriever.

        Raises:
            CanonicalError: a setting of it has no canonical form.
        """
        return None if self._given is None else self._settings.described(self._given, config)

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
