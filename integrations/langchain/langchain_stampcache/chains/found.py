"""What the retrievers of one run found, where the chain does not show its documents."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, get_type_hints

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document

from stampcache.adapters import CacheFields

_FIELDS = frozenset(get_type_hints(CacheFields))


class Finds(BaseCallbackHandler):
    """A callback handler of one run: it hears the retrievers that run inside of it, and no others."""

    run_inline = True  # under an async manager too: nothing here waits

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = 0
        self._ended = 0
        self._found: list[Document] = []

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:  # noqa: ARG002 - the framework's signature
        """Note that a retriever is asked."""
        with self._lock:
            self._begun += 1

    def on_retriever_end(self, documents: Sequence[Document], **kwargs: Any) -> None:  # noqa: ARG002 - the framework's signature
        """Note what it found."""
        with self._lock:
            self._ended += 1
            for one in documents:  # a retriever that asks others tells of theirs once more
                if one not in self._found:
                    self._found.append(_as_found(one))

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the framework's signature
        """Note what a cached chain inside answered from: on a hit it asks no retriever."""
        told = outputs.get("cache") if isinstance(outputs, Mapping) else None
        if not isinstance(told, Mapping) or not told.keys() >= _FIELDS:
            return
        self.on_retriever_start(None, "")
        context = outputs.get("context")
        if isinstance(context, list) and all(isinstance(one, Document) for one in context):
            self.on_retriever_end(context)

    @property
    def documents(self) -> list[Document] | None:
        """All that was found; ``None`` where no retriever was asked, or one did not end well."""
        with self._lock:
            return list(self._found) if self._begun and self._begun == self._ended else None


def _as_found(document: Document) -> Document:
    """Return a document that stays as it is, whatever the chain then writes into its metadata."""
    return document.model_copy(update={"metadata": dict(document.metadata)})
