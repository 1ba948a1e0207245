"""What the demo talks to: an example's application that answers, and says what the cache did."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from msgspec import Struct

from stampcache.adapters.reporting import CacheFields
from stampcache.cache import Cache
from stampcache.model import Vector

Encode: TypeAlias = Callable[[Sequence[str]], Vector]
Split: TypeAlias = Callable[[str], list[str]]


class Reply(Struct, frozen=True):
    """An answer, and the ``cache`` field that the adapters put beside it."""

    text: str
    cache: CacheFields


class RagApp(Protocol):
    """A RAG application. Who asks is set around it, with ``stampcache.scope``."""

    def ask(self, question: str) -> tuple[str, CacheFields]:
        """Answer a question from the documents; also tell what the cache did."""
        ...

    def explain(self, question: str) -> str:
        """Tell, in lines for people, which check of the cache would decide about a question now."""
        ...

    def edit(self, source: str, text: str) -> None:
        """Replace one document in the index."""
        ...


class IndexedRag(RagApp, Protocol):
    """The application of an example, which keeps its index in a folder."""

    def index(self, texts: Mapping[str, str]) -> None:
        """Bring the index up to date with all documents, by source."""
        ...


class Example(Protocol):
    """The module of an example; a model and embeddings are objects of its framework."""

    def MiniLM(self, encode: Encode) -> object:
        """Return the embeddings that a function makes."""
        ...

    def language_model(self, environment: Mapping[str, str], max_tokens: int = ...) -> object:
        """Return the model that the variables of an environment name."""
        ...

    def Rag(
        self, llm: object, embeddings: object, split: Split, cache: Cache, folder: Path
    ) -> IndexedRag:
        """Return the application."""
        ...
