"""`CachedEmbeddings`: an embedding model whose vectors are kept."""

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import ensure_config

from stampcache import AsyncCache, Cache, Request
from stampcache.adapters import (
    Build,
    EmbedderSettings,
    Front,
    Role,
    Step,
    Vectors,
    controls_in,
    scope_in,
)

Vector = list[float]


class CachedEmbeddings(Embeddings):
    """Stands where the inner embeddings stood; what was embedded before comes from the cache.

    A vector is found by the very text, by the embedding model with all of its settings as they are now,
    and by its role: the vector of a query is never given for a document. Errors of the inner embeddings
    reach the caller unchanged, and nothing is stored then. Failures of the cache are counted and logged,
    and the text is embedded without it; so it is where a tenant is required and none is in scope.

    Who asks is said by `stampcache.scope`, or by ``metadata`` and ``configurable`` of the config under
    which the surrounding Runnable runs.
    """

    def __init__(
        self, inner: Embeddings, *, cache: Cache | AsyncCache, version: str | None = None
    ) -> None:
        """Put a cache before embeddings.

        Args:
            inner: the embeddings that embed what is not known.
            cache: an open cache.
            version: stands for the parts of the inner embeddings that cannot be identified, such as a
                client; change it whenever the vectors change.

        Raises:
            ConfigError: a part cannot be identified and there is no ``version``.
        """
        self._inner = inner
        self._cache = cache
        self._settings = EmbedderSettings(inner, framework="langchain", version=version)
        self._settings.check()
        self._front = Front(cache.core, kind="langchain.embeddings")
        self._vectors = Vectors(self._front)

    @property
    def inner(self) -> Embeddings:
        """The embeddings that embed what is not known."""
        return self._inner

    @property
    def cache(self) -> Cache | AsyncCache:
        """The cache, for its other verbs."""
        return self._cache

    @property
    def stands_before(self) -> object:
        """What a cache that is given this as its ``embedder`` knows it by."""
        return self._inner

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, as the caller's own list."""
        return self._front.run(self._vectors.one(text, self._asking("query"), self._query(text)))

    async def aembed_query(self, text: str) -> Vector:
        """See `embed_query`; the event loop is never blocked by the cache."""
        asking = self._asking("query")
        return await self._front.arun(self._vectors.one(text, asking, self._query(text)))

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        """Return the vectors of texts in their order; one call of the inner embeds what is missing."""
        asking = self._asking("document")
        return self._front.run(self._vectors.many(texts, asking, self._documents))

    async def aembed_documents(self, texts: list[str]) -> list[Vector]:
        """See `embed_documents`; the event loop is never blocked by the cache."""
        asking = self._asking("document")
        return await self._front.arun(self._vectors.many(texts, asking, self._documents))

    def _query(self, text: str) -> Step[Vector]:
        inner = self._inner
        return Step(sync=lambda: inner.embed_query(text), aio=lambda: inner.aembed_query(text))

    def _documents(self, texts: list[str]) -> Step[list[Vector]]:
        inner = self._inner
        return Step(
            sync=lambda: inner.embed_documents(texts), aio=lambda: inner.aembed_documents(texts)
        )

    def _asking(self, role: Role) -> Build:
        def request() -> Request:
            config = ensure_config()  # of the Runnable around, if there is one
            places = (config.get("metadata"), config.get("configurable"))
            return Request(
                settings=self._settings.of(role),
                scope=scope_in(*places),
                controls=controls_in(*places),
            )

        return request
