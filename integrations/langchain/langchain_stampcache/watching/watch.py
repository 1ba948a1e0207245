"""`watch`: puts a watch before a vector store, a record manager or a store of documents."""

from collections.abc import Iterable
from typing import Any, TypeVar, overload

from langchain_core.indexing import RecordManager
from langchain_core.stores import BaseStore
from langchain_core.vectorstores import VectorStore

from langchain_stampcache.schemas import name_of
from langchain_stampcache.watching.chunks import ChunkForm
from langchain_stampcache.watching.corpus import CorpusWatch
from langchain_stampcache.watching.docstore import WatchedDocstore
from langchain_stampcache.watching.embedder import put_before
from langchain_stampcache.watching.reading import Reads
from langchain_stampcache.watching.records import WatchedRecordManager
from langchain_stampcache.watching.searching import Searching
from langchain_stampcache.watching.store import WatchedVectorStore
from langchain_stampcache.watching.views import Known, Listing, known_of
from langchain_stampcache.watching.writing import Writes
from stampcache import AsyncCache, Cache, ConfigError
from stampcache.adapters import VOLATILE, IndexView, Metric

Key = TypeVar("Key")
Value = TypeVar("Value")

_WATCHED = (WatchedVectorStore, WatchedRecordManager, WatchedDocstore)
_METRICS = ", ".join(repr(one.value) for one in Metric)


@overload
def watch(
    thing: VectorStore,
    *,
    cache: Cache | AsyncCache,
    corpus: str = ...,
    metric: Metric | str | None = ...,
    volatile: Iterable[str] = ...,
    silence_s: float | None = ...,
    listing: Listing | None = ...,
) -> WatchedVectorStore: ...


@overload
def watch(
    thing: RecordManager,
    *,
    cache: Cache | AsyncCache,
    corpus: str = ...,
    silence_s: float | None = ...,
) -> WatchedRecordManager: ...


@overload
def watch(
    thing: BaseStore[Key, Value],
    *,
    cache: Cache | AsyncCache,
    corpus: str = ...,
    silence_s: float | None = ...,
) -> WatchedDocstore[Key, Value]: ...


def watch(
    thing: VectorStore | RecordManager | BaseStore[Any, Any],
    *,
    cache: Cache | AsyncCache,
    corpus: str = "",
    metric: Metric | str | None = None,
    volatile: Iterable[str] = (),
    silence_s: float | None = None,
    listing: Listing | None = None,
) -> WatchedVectorStore | WatchedRecordManager | WatchedDocstore[Any, Any]:
    """Return the same object, whose writes the cache hears of; use it in the place of the one given.

    A **vector store** says exactly which answers a write ends. Its embedder is replaced in place by one
    that listens, so that nothing is embedded twice. It is asked how many chunks it has, and, where it
    knows more or less than the cache, what they are: what was written without the watch is taken over.

    A **record manager** of the Indexing API is watched where the vector store cannot be: any document
    that changes ends all answers of the corpus. A **store** of parent documents is watched beside its
    vector store: any write to it ends all answers of the corpus.

    Args:
        thing: a vector store, a record manager, or a store of parent documents.
        cache: an open cache; whoever only ingests needs no tenant.
        corpus: the name of the documents of this one index, the same for all who write or ask; by
            default the cache's own. Where two indexes have one name, any write ends all answers.
        metric: how the vector store compares: ``"cosine"``, ``"dot"`` or ``"l2"``. Known of LangChain's
            in-memory store, Chroma and FAISS. Where it is unknown, any write ends all answers.
        volatile: names of metadata that change whenever a document is ingested, though what it says does
            not, beyond `stampcache.adapters.VOLATILE`.
        silence_s: at least so often (seconds) something must be heard of this corpus, else none of its
            answers is served; ``None``: silence says nothing.
        listing: gives all documents of the vector store, with their ids, where it is not known how to
            list them.

    Raises:
        ConfigError: the object is none of these, or is watched already; the corpus has no name; an
            option does not apply.
        StoreError: the cache could not be told.
    """
    name, form = corpus or cache.core.intake.terms.corpus, ChunkForm(VOLATILE.union(volatile))
    if isinstance(thing, _WATCHED):
        raise ConfigError(f"This {name_of(type(thing.inner))} is watched already; use it as it is.")
    if isinstance(thing, VectorStore):
        known = known_of(thing, form, listing)
        if metric is not None:
            known = known.measured(_metric(metric))
        over = CorpusWatch(
            cache.core, name, known.view, silence_s=silence_s, form=form, index=known.index
        )
        over.run(over.open())
        return _watched_store(thing, over, form, known)
    if metric is not None or listing is not None or set(volatile):
        raise ConfigError("metric=, volatile= and listing= are for vector stores.")
    beside = CorpusWatch(cache.core, name, IndexView(), silence_s=silence_s, form=form)
    if isinstance(thing, RecordManager):
        _open_beside(beside, silence_s)
        return WatchedRecordManager(thing, beside)
    if isinstance(thing, BaseStore):
        _open_beside(beside, silence_s)
        return WatchedDocstore(thing, beside)
    raise ConfigError(
        f"A {name_of(type(thing))} cannot be watched; give a VectorStore, a RecordManager or a BaseStore."
    )


def _watched_store(
    store: VectorStore, over: CorpusWatch, form: ChunkForm, known: Known
) -> WatchedVectorStore:
    embeddings = put_before(store)
    if embeddings is None:
        over.core.counters.event("watch.no_vectors")
    searching = Searching(form, known.options)
    reads = Reads(store, over.corpus, known.metric, searching, embeddings)
    return WatchedVectorStore(store, over, Writes(store, over, form, known, embeddings), reads)


def _open_beside(over: CorpusWatch, silence_s: float | None) -> None:
    """Begin to watch; what the watch of a vector store has said of the corpus stays as it is."""
    if silence_s is not None or over.core.store.corpora.standing(over.corpus) is None:
        over.run(over.open())


def _metric(given: Metric | str) -> Metric:
    try:
        return Metric(given)
    except ValueError as error:
        raise ConfigError(f"metric= is {given!r}; there are {_METRICS}.") from error
