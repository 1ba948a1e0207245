"""The application's index behind a watch: its writes are told with their vectors, as an adapter does."""

from benchmarks.validity.app import CORPUS, TOP_K, App, Change
from stampcache import Cache
from stampcache.adapters import Change as Written
from stampcache.adapters import (
    Chunk,
    IndexView,
    Metric,
    Reading,
    Step,
    Watch,
    as_bytes,
    chunk_digest,
)


class WatchedShelf:
    """Tells the cache of each written document, and of what a question found."""

    def __init__(self, cache: Cache, app: App) -> None:
        self._app = app
        self._watch = Watch(cache.core, CORPUS, IndexView())
        self._watch.run(self._watch.open())
        self._counts: dict[str, int] = {}
        for source, chunks in app.documents.items():
            self.written(Change(source, chunks, "there from the beginning"))

    def written(self, change: Change) -> None:
        """Tell of a document that was written or deleted."""
        texts = change.chunks or ()
        added = tuple(self._chunk(change.source, at, text) for at, text in enumerate(texts))
        before = self._counts.pop(change.source, 0)
        removed = tuple(f"{change.source}#{at}" for at in range(len(texts), before))
        if texts:
            self._counts[change.source] = len(texts)
        done = Written(added=added, removed=removed)
        ids = [*(one.id for one in added), *removed]
        self._watch.run(self._watch.writing(_NOTHING, told=lambda _: done, ids=ids))

    def reading(self, question: str) -> Reading:
        """Return what a question finds, as the search of a watched index tells it."""
        found = self._app.retrieved(question)
        return Reading(
            corpus=CORPUS,
            vector=as_bytes(self._app.vectors.known(question)),
            metric=Metric.COSINE,
            chunks=tuple(one.chunk for one in found),
            digests=tuple(chunk_digest(one.text, {}) for one in found),
            wanted=TOP_K,
        )

    def _chunk(self, source: str, at: int, text: str) -> Chunk:
        return Chunk(
            id=f"{source}#{at}",
            source=source,
            digest=chunk_digest(text, {}),
            vector=as_bytes(self._app.vectors.known(text)),
        )


async def _nothing() -> None:
    pass


_NOTHING: Step[None] = Step(sync=lambda: None, aio=_nothing)
"""The application has written already, between two requests."""
