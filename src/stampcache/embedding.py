"""The embedder of one cache: questions in, checked vectors of the store's size out."""

import asyncio
import threading

from stampcache import canonical
from stampcache.embed import aembed_question, embed_question
from stampcache.errors import ConfigError
from stampcache.ports import Embedded, Embedder, Store


class QuestionEmbedder:
    """Embeds the questions of one cache, and keeps vectors of another size out of its store."""

    def __init__(self, embedder: Embedder, store: Store) -> None:
        self.embedder = embedder
        self._store = store
        self._known_dimension: int | None = None
        self._lock = threading.Lock()

    def embed(self, question: str) -> Embedded:
        """Return the vector of a question, having checked that its size is the store's."""
        embedded = embed_question(self.embedder, canonical.text(question))
        self.check_dimension(len(embedded.vector))
        return embedded

    async def aembed(self, question: str) -> Embedded:
        """Return the same as `embed` without blocking the event loop."""
        embedded = await aembed_question(self.embedder, canonical.text(question))
        if len(embedded.vector) != self._known_dimension:
            await asyncio.to_thread(self.check_dimension, len(embedded.vector))
        return embedded

    def check_dimension(self, dimension: int) -> None:
        """Record the size of the embedder's vectors in the store, or compare it with the record.

        Raises:
            ConfigError: the store holds vectors of another size under this embedder's name.
        """
        if dimension == self._known_dimension:
            return
        name = self.embedder.name
        with self._lock:
            known = int(self._store.claim(f"dimension:{name}", str(dimension)))
            self._known_dimension = known
        if known != dimension:
            raise ConfigError(
                f"The embedder {name!r} gives vectors of {dimension} numbers, but this store holds"
                f" its vectors of {known}: give the changed embedder another name, or open another"
                " store. Nothing was lost."
            )
