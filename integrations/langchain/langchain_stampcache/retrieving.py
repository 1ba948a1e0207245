"""Asking a retriever, and naming it: what it is set to do, not the documents that it holds."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from langchain_stampcache.fingerprint import Fingerprint
from langchain_stampcache.schemas import name_of

Retriever: TypeAlias = (
    BaseRetriever | Runnable[dict[str, Any], list[Document]] | Callable[[str], list[Document]]
)
# What retrievers are set to do. What they hold must not be read here: a changed document is seen by
# its evidence and makes its own answers stale, not those of all other documents.
SETTINGS = (
    "alpha", "fetch_k", "filter", "k", "lambda_mult", "score_threshold", "search_kwargs",
    "search_type", "top_k", "weights",
)  # fmt: skip


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
            self._runnable = RunnableLambda(retriever) if plain else retriever  # type: ignore[assignment, arg-type]
        self._printed = Fingerprint(version="opaque")

    def described(self) -> object:
        """Return what the retriever is set to do, as plain data."""
        given = self._given
        if given is None:
            return None
        if not isinstance(given, Runnable):
            return {"function": f"{given.__module__}.{getattr(given, '__qualname__', '')}"}
        settings = {name: getattr(given, name) for name in SETTINGS if hasattr(given, name)}
        return {
            "class": name_of(type(given)),
            "settings": self._printed.read(settings, None).described,
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
