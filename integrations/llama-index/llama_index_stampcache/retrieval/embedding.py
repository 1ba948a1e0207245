"""`CachedEmbedding`: an embedding model whose vectors are kept."""

from typing import Any, TypeVar

from llama_index.core.base.embeddings.base import BaseEmbedding, Embedding, SimilarityMode
from pydantic import PrivateAttr

from stampcache import AsyncCache, Cache, Request, open_cache
from stampcache.adapters import Build, EmbedderSettings, Front, Role, Step, Vectors

Made = TypeVar("Made")


class CachedEmbedding(BaseEmbedding):
    """Stands where the inner model stood; what was embedded before comes from the cache.

    A vector is found by the very text, by the model with all of its settings as they are now, and by its
    role: the vector of a query is never given for a text. Events fire as without a cache, once, with the
    callback manager that the inner model has when this is made. Errors of the inner model reach the
    caller unchanged, and nothing is stored then. Failures of the cache are counted and logged, and the
    text is embedded without it; so it is where a tenant is required and none is in scope.

    An ``embeddings_cache`` of the inner model is not asked: it knows texts only, and would give one
    model's vectors for another's.
    """

    _inner: BaseEmbedding = PrivateAttr()
    _cache: Cache | AsyncCache = PrivateAttr()
    _front: Front = PrivateAttr()
    _vectors: Vectors = PrivateAttr()
    _settings: EmbedderSettings = PrivateAttr()

    def __init__(
        self,
        inner: BaseEmbedding,
        *,
        cache: Cache | AsyncCache | str,
        version: str | None = None,
    ) -> None:
        """Put a cache before an embedding model.

        Args:
            inner: the model that embeds what is not known.
            cache: an open cache, or the URL of one.
            version: stands for the parts of the model that cannot be identified; change it whenever its
                vectors change.

        Raises:
            ConfigError: a part of the model cannot be identified and there is no ``version``.
        """
        settings = EmbedderSettings(inner, framework="llama-index", version=version)
        settings.check()
        super().__init__(
            model_name=inner.model_name,
            embed_batch_size=inner.embed_batch_size,
            callback_manager=inner.callback_manager,
            num_workers=inner.num_workers,
        )
        self._inner = inner
        self._settings = settings
        self._cache = open_cache(cache) if isinstance(cache, str) else cache
        self._front = Front(self._cache.core, kind="llama-index.embedding")
        self._vectors = Vectors(self._front)

    @property
    def inner(self) -> BaseEmbedding:
        """The model that embeds what is not known."""
        return self._inner

    @property
    def cache(self) -> Cache | AsyncCache:
        """The cache, for its other verbs; close it if it was given by its URL."""
        return self._cache

    @property
    def stands_before(self) -> object:
        """What a cache that is given this as its ``embedder`` knows it by."""
        return self._inner

    @classmethod
    def class_name(cls) -> str:
        """See `BaseComponent.class_name`."""
        return "CachedEmbedding"

    def to_payload(self) -> dict[str, Any]:
        """Return what events say of the inner model."""
        return self._inner.to_payload()

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return the inner model as a dict: by it an ingestion pipeline knows its vectors again."""
        return self._inner.to_dict(**kwargs)

    def similarity(
        self,
        embedding1: Embedding,
        embedding2: Embedding,
        mode: SimilarityMode = SimilarityMode.DEFAULT,
    ) -> float:
        """Return what the inner model takes for the similarity of two vectors."""
        return self._inner.similarity(embedding1, embedding2, mode)

    def get_text_embedding_batch(
        self, texts: list[str], show_progress: bool = False, **kwargs: Any
    ) -> list[Embedding]:
        """Return the vectors of texts in their order; of equal ones one is embedded."""
        distinct = list(dict.fromkeys(texts))
        made = super().get_text_embedding_batch(distinct, show_progress, **kwargs)
        return _in_order(texts, distinct, made)

    async def aget_text_embedding_batch(
        self, texts: list[str], show_progress: bool = False, **kwargs: Any
    ) -> list[Embedding]:
        """See `get_text_embedding_batch`."""
        distinct = list(dict.fromkeys(texts))
        made = await super().aget_text_embedding_batch(distinct, show_progress, **kwargs)
        return _in_order(texts, distinct, made)

    # -- what the framework's public methods call, inside of their events ---------------------------

    def _get_query_embedding(self, query: str) -> Embedding:
        return self._front.run(self._vectors.one(query, self._asking("query"), self._query(query)))

    async def _aget_query_embedding(self, query: str) -> Embedding:
        asking = self._asking("query")
        return await self._front.arun(self._vectors.one(query, asking, self._query(query)))

    def _get_text_embedding(self, text: str) -> Embedding:
        return self._front.run(self._vectors.one(text, self._asking("document"), self._text(text)))

    async def _aget_text_embedding(self, text: str) -> Embedding:
        asking = self._asking("document")
        return await self._front.arun(self._vectors.one(text, asking, self._text(text)))

    def _get_text_embeddings(self, texts: list[str]) -> list[Embedding]:
        return self._front.run(self._vectors.many(texts, self._asking("document"), self._batch))

    async def _aget_text_embeddings(self, texts: list[str]) -> list[Embedding]:
        return await self._front.arun(
            self._vectors.many(texts, self._asking("document"), self._batch)
        )

    # -- the inner model, below its own events and its own cache ------------------------------------

    def _query(self, text: str) -> Step[Embedding]:
        inner = self._inner
        return self._paced(
            Step(
                sync=lambda: inner._get_query_embedding(text),
                aio=lambda: inner._aget_query_embedding(text),
            )
        )

    def _text(self, text: str) -> Step[Embedding]:
        inner = self._inner
        return self._paced(
            Step(
                sync=lambda: inner._get_text_embedding(text),
                aio=lambda: inner._aget_text_embedding(text),
            )
        )

    def _batch(self, texts: list[str]) -> Step[list[Embedding]]:
        inner = self._inner
        return self._paced(
            Step(
                sync=lambda: inner._get_text_embeddings(texts),
                aio=lambda: inner._aget_text_embeddings(texts),
            )
        )

    def _paced(self, step: Step[Made]) -> Step[Made]:
        """Return a step that waits for the rate limiter of the inner model: only what is made counts."""
        limiter: Any = getattr(self._inner, "rate_limiter", None)  # older versions have none
        if limiter is None:
            return step

        def paced() -> Made:
            limiter.acquire()
            return step.sync()

        async def apaced() -> Made:
            await limiter.async_acquire()
            return await step.aio()

        return Step(sync=paced, aio=apaced)

    def _asking(self, role: Role) -> Build:
        return lambda: Request(settings=self._settings.of(role))


def _in_order(texts: list[str], distinct: list[str], made: list[Embedding]) -> list[Embedding]:
    if len(distinct) == len(texts) or len(distinct) != len(made):
        return made
    by_text = dict(zip(distinct, made, strict=True))
    return [list(by_text[text]) for text in texts]
