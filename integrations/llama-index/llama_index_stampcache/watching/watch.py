"""`watch`: from now on the cache is told what is written to an index."""

import secrets
from collections.abc import Iterable
from typing import TypeVar, overload

from llama_index.core.indices import VectorStoreIndex
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from msgspec import Struct

from llama_index_stampcache.watching.chunks import NodeForm
from llama_index_stampcache.watching.documents import DocumentTexts, WatchedDocumentStore
from llama_index_stampcache.watching.index import check_index, see, stores_of
from llama_index_stampcache.watching.searches import Searches
from llama_index_stampcache.watching.store import WatchedVectorStore
from llama_index_stampcache.watching.stores import Listing, known_of
from llama_index_stampcache.watching.writes import Writes
from stampcache import AsyncCache, Cache, ConfigError
from stampcache.adapters import Flow, Metric, Watch

Index = TypeVar("Index", bound=VectorStoreIndex)


class _Wanted(Struct, frozen=True, kw_only=True):
    """What the caller of `watch` says."""

    cache: Cache | AsyncCache
    corpus: str
    metric: Metric | None
    form: NodeForm
    silence_s: float | None
    listing: Listing | None


@overload
def watch(
    thing: Index,
    *,
    cache: Cache | AsyncCache,
    corpus: str,
    metric: Metric | str | None = None,
    volatile: Iterable[str] = (),
    silence_s: float | None = None,
    listing: Listing | None = None,
) -> Index: ...
@overload
def watch(
    thing: BasePydanticVectorStore,
    *,
    cache: Cache | AsyncCache,
    corpus: str,
    metric: Metric | str | None = None,
    volatile: Iterable[str] = (),
    silence_s: float | None = None,
    listing: Listing | None = None,
) -> WatchedVectorStore: ...
def watch(
    thing: VectorStoreIndex | BasePydanticVectorStore,
    *,
    cache: Cache | AsyncCache,
    corpus: str,
    metric: Metric | str | None = None,
    volatile: Iterable[str] = (),
    silence_s: float | None = None,
    listing: Listing | None = None,
) -> VectorStoreIndex | WatchedVectorStore:
    """Watch an index: answers with ``grounding="watch"`` end by what is written to it, and not before.

    A vector store is returned behind a `WatchedVectorStore`; write and search through that one, as in an
    `IngestionPipeline` or a `VectorStoreIndex` that is made from it. A `VectorStoreIndex` is watched in
    place and returned: whoever has it writes through the watch from now on, since in its own hands and
    in those of its storage context there are watched stores instead of the bare ones. Retrievers and
    engines that were made before hold the bare ones still, and are refused; make them anew.

    Of a `SimpleVectorStore`, a `ChromaVectorStore` and a `FaissVectorStore` it is known how they compare
    and what they hold. Of others, tell it: ``metric``, or any write ends an answer; and ``listing``, or
    deleting a document, or by metadata, ends all answers. What was written without the watch, as by
    another program, is looked for now.

    Args:
        thing: a vector store that keeps the texts, or a `VectorStoreIndex`.
        cache: the cache that is told; open it on the same store wherever documents are written.
        corpus: names the documents, for all that watch or ask them.
        metric: how the vector store compares: ``"cosine"``, ``"dot"`` or ``"l2"``.
        volatile: names of metadata that change though the document does not, beside the usual ones
            (`stampcache.adapters.VOLATILE`, ``file_size``). Filters over these are answered uncached.
        silence_s: if nobody was heard of for so long (seconds), no answer of the corpus is served.
        listing: gives all nodes that the vector store holds.

    Raises:
        ConfigError: it cannot be watched; the sentence says what to do.
        StoreError: the cache cannot be told.
    """
    wanted = _Wanted(
        cache=cache,
        corpus=corpus,
        metric=_metric(metric),
        form=NodeForm(frozenset(volatile)),
        silence_s=silence_s,
        listing=listing,
    )
    if isinstance(thing, VectorStoreIndex):
        return _watched_index(thing, wanted)
    if isinstance(thing, BasePydanticVectorStore):
        return _watched_store(thing, wanted)
    raise ConfigError(
        f"A {type(thing).__name__} cannot be watched: only a VectorStoreIndex and vector stores can. For"
        ' other indexes take grounding="recheck", or "version" with cache.invalidate(...).'
    )


def _watched_store(store: BasePydanticVectorStore, wanted: _Wanted) -> WatchedVectorStore:
    if isinstance(store, WatchedVectorStore):
        _check_same(store, wanted)
        return store
    if not store.stores_text:
        raise ConfigError(
            f"A {type(store).__name__} keeps no texts, which are written beside it: watch the"
            " VectorStoreIndex over it instead."
        )
    return _opened(store, wanted, None)


def _watched_index(index: VectorStoreIndex, wanted: _Wanted) -> VectorStoreIndex:
    check = index._vector_store
    if isinstance(check, WatchedVectorStore):
        _check_same(check, wanted)
        return index
    check_index(index)
    store, documents = stores_of(index)
    if isinstance(documents, WatchedDocumentStore):
        raise ConfigError(
            f"The documents of this index are watched as {documents.watched.corpus!r} with another one:"
            " give each index a StorageContext of its own."
        )
    texts = None
    if not store.stores_text:
        texts = DocumentTexts(lambda: dict(index.index_struct.nodes_dict), documents)
    watched = _opened(store, wanted, texts)
    see(index, watched, WatchedDocumentStore(documents, writes=watched.writes))
    return index


def _opened(
    store: BasePydanticVectorStore, wanted: _Wanted, texts: DocumentTexts | None
) -> WatchedVectorStore:
    known = known_of(store, wanted.form, texts, wanted.listing)
    core = wanted.cache.core
    index = known.index or f"object {secrets.token_hex(8)}"
    watch = Watch(core, wanted.corpus, known.view, silence_s=wanted.silence_s, index=index)
    uncounted = known.view.count is None and known.view.listing is not None
    watch.run(_open(watch, lists=known.fleeting or uncounted))
    metric = wanted.metric or known.metric
    scale = known.scale if metric is known.metric else None
    searches = Searches(wanted.corpus, wanted.form, texts, metric=metric, scale=scale)
    writes = Writes(watch, known, wanted.form)
    return WatchedVectorStore(store, writes=writes, searches=searches)


def _open(watch: Watch, *, lists: bool) -> Flow[None]:
    """Begin to watch; an index that is loaded from a file may be older than its last write."""
    yield from watch.open()
    if lists:
        yield from watch.resync()


def _metric(given: Metric | str | None) -> Metric | None:
    if given is None or isinstance(given, Metric):
        return given
    try:
        return Metric(given)
    except ValueError:
        names = ", ".join(repr(metric.value) for metric in Metric)
        raise ConfigError(f"metric= is {given!r}; there are {names}.") from None


def _check_same(store: WatchedVectorStore, wanted: _Wanted) -> None:
    watch = store.watched
    if watch.corpus != wanted.corpus or watch.core is not wanted.cache.core:
        raise ConfigError(
            f"It is watched already, as {watch.corpus!r}; one index has one corpus and one cache."
        )
