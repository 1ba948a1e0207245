"""What the demo talks to: an application that answers, and says what the cache did."""

from pathlib import Path
from typing import Protocol

from msgspec import Struct

from stampcache.adapters.reporting import CacheFields
from stampcache.cache import Cache
from stampcache.demo.endpoint import Endpoint
from stampcache.ports import Embedder


class Reply(Struct, frozen=True):
    """An answer, and the ``cache`` field that the adapters put beside it."""

    text: str
    cache: CacheFields


class RagApp(Protocol):
    """A RAG application. Who asks is set around it, with ``stampcache.scope``."""

    def ask(self, question: str) -> Reply:
        """Answer a question from the documents."""
        ...

    def explain(self, question: str) -> str:
        """Tell, in lines for people, which check of the cache would decide about a question now."""
        ...

    def edit(self, source: str, text: str) -> None:
        """Replace one document in the index."""
        ...


class Build(Protocol):
    """The function ``build`` of an example."""

    def __call__(
        self, *, cache: Cache, embedder: Embedder, endpoint: Endpoint, folder: Path
    ) -> RagApp:
        """Return the application; its index is kept in the folder and brought up to date."""
        ...
