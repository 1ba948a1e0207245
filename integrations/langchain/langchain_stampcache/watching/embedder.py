"""The embedder of a watched store, heard by the watch: no text is embedded twice for it.

What a call of the store embeds is noted for that very call, in whatever thread or task it runs, as
long as that inherits the context. Other calls of the same embedder are not touched.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from stampcache.adapters import as_bytes

Vector: TypeAlias = list[float]


class Heard:
    """What one call of a store embeds: documents, whose vectors may be ready, and queries."""

    def __init__(self, texts: Sequence[str] = (), vectors: Sequence[Vector] = ()) -> None:
        self._lock = threading.Lock()
        self._ready = _by_text(texts, vectors)
        self._given: defaultdict[str, deque[bytes]] = defaultdict(deque)
        self._embedded = 0
        self._queries: list[bytes] = []

    def ready(self, text: str) -> Vector | None:
        """Take a vector that was computed before; each serves once."""
        with self._lock:
            waiting = self._ready[text]
            return waiting.popleft() if waiting else None

    def gave(self, texts: Sequence[str], vectors: Sequence[Vector], *, anew: int) -> None:
        """Note what the store was given, and how many of them had to be embedded for it."""
        with self._lock:
            for text, vector in zip(texts, vectors, strict=False):
                self._given[text].append(as_bytes(vector))
            self._embedded += anew

    def asked(self, vector: Vector) -> None:
        """Note the vector of a query."""
        with self._lock:
            self._queries.append(as_bytes(vector))

    @property
    def is_otherwise(self) -> bool:
        """Whether the store embedded something else than was computed for it, or did not ask for it."""
        with self._lock:
            return bool(self._embedded) or any(self._ready.values())

    @property
    def query(self) -> bytes:
        """The vector of the query; empty where there was not exactly one."""
        with self._lock:
            return self._queries[0] if len(self._queries) == 1 else b""

    def vectors_of(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vectors that the store was given for its texts; empty where it did not ask.

        Texts that are equal and were asked for once have one vector.
        """
        with self._lock:
            given = {text: deque(vectors) for text, vectors in self._given.items()}
        found = list[bytes]()
        for text in texts:
            vectors = given.get(text, deque([b""]))
            found.append(vectors.popleft() if len(vectors) > 1 else vectors[0])
        return found


_CALL: ContextVar[tuple["HeardEmbeddings", Heard] | None] = ContextVar(
    "stampcache_watched_call", default=None
)


class HeardEmbeddings(Embeddings):
    """Stands in a watched store where its embeddings stood, and does what they do."""

    def __init__(self, inner: Embeddings) -> None:
        self._inner = inner

    @property
    def stands_before(self) -> Embeddings:
        """What a cache that is given this as its ``embedder`` knows it by."""
        return self._inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_inner":
            raise AttributeError(name)
        return getattr(self._inner, name)

    @contextmanager
    def hearing(self, heard: Heard) -> Iterator[None]:
        """Note what is embedded inside."""
        token = _CALL.set((self, heard))
        try:
            yield
        finally:
            _CALL.reset(token)

    def ahead(self, texts: list[str]) -> list[Vector]:
        """Return the vectors of texts that the store will ask for."""
        return self._inner.embed_documents(texts)

    async def aahead(self, texts: list[str]) -> list[Vector]:
        """See `ahead`."""
        return await self._inner.aembed_documents(texts)

    def embed_documents(self, texts: list[str]) -> list[Vector]:
        """Return the vectors of texts, those that are ready without embedding them again."""
        heard = self._heard()
        if heard is None:
            return self._inner.embed_documents(texts)
        taken = [heard.ready(text) for text in texts]
        missing = _missing(texts, taken)
        new = self._inner.embed_documents(missing) if missing else []
        return _filled(heard, texts, taken, new)

    async def aembed_documents(self, texts: list[str]) -> list[Vector]:
        """See `embed_documents`."""
        heard = self._heard()
        if heard is None:
            return await self._inner.aembed_documents(texts)
        taken = [heard.ready(text) for text in texts]
        missing = _missing(texts, taken)
        new = await self._inner.aembed_documents(missing) if missing else []
        return _filled(heard, texts, taken, new)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query."""
        vector = self._inner.embed_query(text)
        heard = self._heard()
        if heard is not None:
            heard.asked(vector)
        return vector

    async def aembed_query(self, text: str) -> Vector:
        """See `embed_query`."""
        vector = await self._inner.aembed_query(text)
        heard = self._heard()
        if heard is not None:
            heard.asked(vector)
        return vector

    def _heard(self) -> Heard | None:
        call = _CALL.get()
        return call[1] if call is not None and call[0] is self else None


def put_before(store: VectorStore) -> HeardEmbeddings | None:
    """Put a listener before the embeddings of a store, in the store; ``None`` where that cannot be."""
    inner = store.embeddings
    if inner is None or isinstance(inner, HeardEmbeddings):  # one listener serves all watches
        return inner
    places = [name for name, value in getattr(store, "__dict__", {}).items() if value is inner]
    if not places:
        return None
    heard = HeardEmbeddings(inner)
    for name in places:
        setattr(store, name, heard)
    if store.embeddings is heard:
        return heard
    for name in places:
        setattr(store, name, inner)
    return None


def _by_text(texts: Sequence[str], vectors: Sequence[Vector]) -> defaultdict[str, deque[Vector]]:
    ready: defaultdict[str, deque[Vector]] = defaultdict(deque)
    for text, vector in zip(texts, vectors, strict=False):
        ready[text].append(vector)
    return ready


def _missing(texts: Sequence[str], taken: Sequence[Vector | None]) -> list[str]:
    return [text for text, vector in zip(texts, taken, strict=True) if vector is None]


def _filled(
    heard: Heard, texts: Sequence[str], taken: Sequence[Vector | None], new: Sequence[Vector]
) -> list[Vector]:
    """Return the vectors in the order of their texts, and note them."""
    others = iter(new)
    vectors = [next(others) if vector is None else vector for vector in taken]
    heard.gave(texts, vectors, anew=len(new))
    return vectors
