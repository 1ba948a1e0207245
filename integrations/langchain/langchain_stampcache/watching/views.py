"""What known vector stores can tell of themselves, and how they compare vectors.

They are known by the names of their classes, so that none of them is imported here. A metric is told
of a class itself only, never of its subclasses, which may search otherwise.
"""

import asyncio
import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from msgspec import Struct
from msgspec.structs import replace

from langchain_stampcache.schemas import name_of
from langchain_stampcache.watching.chunks import ChunkForm
from stampcache import ConfigError
from stampcache.adapters import Chunk, IndexView, Metric, Step, as_bytes, holds_secret

IN_MEMORY = frozenset({"langchain_core.vectorstores.in_memory.InMemoryVectorStore"})
CHROMA = frozenset({
    "langchain_chroma.vectorstores.Chroma", "langchain_community.vectorstores.chroma.Chroma",
})  # fmt: skip
FAISS = frozenset({"langchain_community.vectorstores.faiss.FAISS"})
_SPACES = {"cosine": Metric.COSINE, "l2": Metric.L2, "ip": Metric.DOT}
_PAGE = 2_000
"""So many chunks are asked of a database at once."""
_INNER_PRODUCT, _L2 = 0, 1
"""What FAISS calls its metrics."""

Result = TypeVar("Result")
Listing = Callable[[], Iterable[Document]]


class Keeping(enum.Enum):
    """What a store keeps of a document that is written to it."""

    GIVEN = "given"
    """Exactly what it was given."""
    MERGED = "merged"
    """What it was given, and metadata that was there before; it can be read at once."""
    UNKNOWN = "unknown"


class Known(Struct, frozen=True, kw_only=True):
    """What is known of a store's class.

    ``numbered`` says that it gives chunks without ids random ones, and takes ids as they are;
    ``options`` are further names of search options that leave a search a plain one; ``index`` tells the
    index behind the store from others of its kind.
    """

    view: IndexView
    metric: Metric | None = None
    numbered: bool = False
    keeping: Keeping = Keeping.UNKNOWN
    options: frozenset[str] = frozenset()
    index: str = ""

    def measured(self, metric: Metric) -> "Known":
        """Return the same with the metric that its user says."""
        return replace(self, metric=metric)


def known_of(store: VectorStore, form: ChunkForm, listing: Listing | None) -> Known:
    """Return what is known of a store; ``listing`` is what its user can list of it."""
    names = {name_of(kind) for kind in type(store).__mro__}
    itself = name_of(type(store))
    if names & IN_MEMORY:
        known = _in_memory(store, form, exact=itself in IN_MEMORY)
    elif names & CHROMA:
        known = _chroma(store, form, exact=itself in CHROMA)
    elif names & FAISS:
        known = _faiss(store, form, exact=itself in FAISS)
    else:
        known = Known(view=IndexView(look=_looking(store, form)))
    if not known.index:
        known = replace(known, index=f"{itself} {_named(store)}")
    if listing is None:
        return known
    listed = threaded(lambda: [_listed(form, one) for one in listing()])
    return replace(known, view=replace(known.view, listing=listed))


def gives_straight_relevances(store: VectorStore, metric: Metric | None) -> bool:
    """Tell whether the relevance that a store gives is known to be a straight line over its scores.

    Where it bends, a threshold cannot be told on another scale.
    """
    named = name_of(type(store))
    if named not in CHROMA | FAISS or metric not in (Metric.COSINE, Metric.L2):
        return False
    if getattr(store, "override_relevance_score_fn", None) is not None:
        return False
    strategy = getattr(getattr(store, "distance_strategy", None), "value", "")
    return named in CHROMA or strategy in ("COSINE", "EUCLIDEAN_DISTANCE")


def threaded(call: Callable[[], Result]) -> Step[Result]:
    """Return a step that waits, if it must, in a thread of its own."""
    return Step(sync=call, aio=lambda: asyncio.to_thread(call))


def _named(store: VectorStore) -> dict[str, object]:
    """Return the plain attributes of a store, such as the name of its collection."""
    held = getattr(store, "__dict__", {})
    plain = (name for name in sorted(held) if isinstance(held[name], str | int | float))
    return {name: held[name] for name in plain if not holds_secret(name.lstrip("_"), held[name])}


def _listed(form: ChunkForm, document: Document) -> Chunk:
    if not document.id:
        raise ConfigError("listing= must give documents with the ids that they have in the store.")
    return form.of(document)


def _looking(
    store: VectorStore, form: ChunkForm
) -> Callable[[Sequence[str]], Step[Sequence[Chunk]]] | None:
    """Look for documents by their ids, where a store can; their vectors are not seen."""
    if type(store).get_by_ids is VectorStore.get_by_ids:
        return None

    def chunks(found: Sequence[Document]) -> list[Chunk]:
        return [form.of(one) for one in found if one.id]

    def look(ids: Sequence[str]) -> Step[Sequence[Chunk]]:
        async def aio() -> list[Chunk]:
            return chunks(await store.aget_by_ids(list(ids)))

        return Step(sync=lambda: chunks(store.get_by_ids(list(ids))), aio=aio)

    return look


def _object(store: object) -> str:
    """Return what stands for an index that is the store itself."""
    return f"object {id(store)}"


def _in_memory(store: Any, form: ChunkForm, *, exact: bool) -> Known:
    def chunk(kept: dict[str, Any]) -> Chunk:
        return form.chunk(kept["id"], kept["text"], kept["metadata"], as_bytes(kept["vector"]))

    def some(ids: Sequence[str]) -> list[Chunk]:
        kept = (store.store.get(one) for one in ids)
        return [chunk(one) for one in kept if one is not None]

    return Known(
        view=IndexView(
            count=threaded(lambda: len(store.store)),
            listing=threaded(lambda: [chunk(one) for one in list(store.store.values())]),
            look=lambda ids: threaded(lambda: some(ids)),
        ),
        metric=Metric.COSINE if exact else None,
        numbered=exact,
        keeping=Keeping.GIVEN if exact else Keeping.UNKNOWN,
        index=_object(store),
    )


def _chroma(store: Any, form: ChunkForm, *, exact: bool) -> Known:
    include = ["documents", "metadatas", "embeddings"]

    def chunks(got: dict[str, Any]) -> Iterator[Chunk]:
        rows = zip(got["ids"], got["documents"], got["metadatas"], got["embeddings"], strict=True)
        for name, text, metadata, vector in rows:
            yield form.chunk(name, text or "", metadata, as_bytes(vector))

    def everything() -> list[Chunk]:
        found: list[Chunk] = []
        while True:
            page = store.get(limit=_PAGE, offset=len(found), include=include)
            found += chunks(page)
            if len(page["ids"]) < _PAGE:
                return found

    def some(ids: Sequence[str]) -> list[Chunk]:
        pages = (list(ids[at : at + _PAGE]) for at in range(0, len(ids), _PAGE))
        return [one for page in pages for one in chunks(store.get(ids=page, include=include))]

    return Known(
        view=IndexView(
            count=threaded(lambda: int(store._collection.count())),
            listing=threaded(everything),
            look=lambda ids: threaded(lambda: some(ids)),
        ),
        metric=_chroma_metric(store) if exact else None,
        numbered=exact,
        keeping=Keeping.MERGED if exact else Keeping.UNKNOWN,
        options=frozenset({"where_document"}),
        index=f"collection {store._collection.id}",
    )


def _chroma_metric(store: Any) -> Metric | None:
    configuration = store._collection.configuration_json
    parts = (configuration.get(name) or {} for name in ("hnsw", "spann"))
    spaces = [part["space"] for part in parts if part.get("space")]
    return _SPACES.get(spaces[0]) if spaces else None


def _faiss(store: Any, form: ChunkForm, *, exact: bool) -> Known:
    def chunk(place: int, name: str) -> Chunk | None:
        document = store.docstore.search(name)
        if not isinstance(document, Document):
            return None
        try:
            vector = as_bytes(store.index.reconstruct(place))
        except RuntimeError:  # this kind of index does not keep them
            vector = b""
        return form.chunk(name, document.page_content, document.metadata, vector)

    def some(ids: Sequence[str] | None) -> list[Chunk]:
        wanted = None if ids is None else set(ids)
        places = list(store.index_to_docstore_id.items())
        found = (chunk(at, name) for at, name in places if wanted is None or name in wanted)
        return [one for one in found if one is not None]

    return Known(
        view=IndexView(
            count=threaded(lambda: len(store.index_to_docstore_id)),
            listing=threaded(lambda: some(None)),
            look=lambda ids: threaded(lambda: some(ids)),
        ),
        metric=_faiss_metric(store) if exact else None,
        numbered=exact,
        keeping=Keeping.GIVEN if exact else Keeping.UNKNOWN,
        options=frozenset({"fetch_k"}),
        index=_object(store),
    )


def _faiss_metric(store: Any) -> Metric | None:
    """Return the metric of the index itself; of vectors of length 1 each is the cosine."""
    kind = getattr(store.index, "metric_type", None)
    if kind not in (_INNER_PRODUCT, _L2):
        return None
    if getattr(store, "_normalize_L2", False):
        return Metric.COSINE
    return Metric.DOT if kind == _INNER_PRODUCT else Metric.L2
