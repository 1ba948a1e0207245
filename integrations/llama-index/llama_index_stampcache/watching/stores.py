"""What known vector stores can tell of themselves, and how they compare vectors.

They are known by the names of their classes, so that none of them is imported here. What is told of a
class holds for itself only, never for its subclasses, which may search and write otherwise.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from llama_index.core.vector_stores.utils import metadata_dict_to_node
from msgspec import Struct
from msgspec.structs import replace

from llama_index_stampcache.parts import class_name
from llama_index_stampcache.watching.chunks import NodeForm
from stampcache.adapters import Chunk, IndexView, Metric, Step, as_bytes

SIMPLE = "llama_index.core.vector_stores.simple.SimpleVectorStore"
CHROMA = "llama_index.vector_stores.chroma.base.ChromaVectorStore"
FAISS = "llama_index.vector_stores.faiss.base.FaissVectorStore"
_SPACES = {"cosine": Metric.COSINE, "l2": Metric.L2, "ip": Metric.DOT}
_FAISS_METRICS = {0: Metric.DOT, 1: Metric.L2}  # as FAISS numbers them
_PAGE = 2_000
"""So many chunks are asked of a database at once."""

Result = TypeVar("Result")
Listing = Callable[[], Iterable[BaseNode]]
Scale = Callable[[float], float]


class Texts(Protocol):
    """Where the texts are of an index whose vector store keeps none."""

    def names(self) -> Mapping[str, str]:
        """Return the ids of nodes, by the ids that the vector store gave them."""
        ...

    def nodes(self, ids: Sequence[str]) -> Mapping[str, BaseNode]:
        """Return those nodes that there are, by their ids."""
        ...


class Known(Struct, frozen=True, kw_only=True):
    """What is known of a vector store.

    ``scale`` turns a similarity that it gives into a score of ``metric``, where it ranks by it.
    ``replaces`` says that an added node takes the place of one of its id, and ``steady`` that one which
    is added as it was may be found in no other order than before. ``fleeting`` says that it is in
    this process, and may be older than what the cache knows when it is loaded. ``of_document`` gives
    the ids of the nodes of a document, and such nodes may be deleted by their ids instead. ``index``
    tells the index behind the store from others; empty where it is the object itself.
    """

    view: IndexView
    metric: Metric | None = None
    scale: Scale | None = None
    replaces: bool = False
    steady: bool = False
    fleeting: bool = False
    of_document: Callable[[str], Step[Sequence[str]]] | None = None
    index: str = ""


def known_of(
    store: BasePydanticVectorStore, form: NodeForm, texts: Texts | None, listing: Listing | None
) -> Known:
    """Return what is known of a store; ``listing`` is what its user can list of it."""
    name = class_name(type(store))
    if name == SIMPLE and texts is not None:
        known = _simple(store, form, texts)
    elif name == FAISS and texts is not None:
        known = _faiss(store, form, texts)
    elif name == CHROMA:
        known = _chroma(store, form)
    else:
        known = Known(view=IndexView(look=_looking(store, form)))
    if listing is None:
        return known
    listed: Step[Sequence[Chunk]] = threaded(lambda: [form.of(one) for one in listing()])
    view = IndexView(count=known.view.count, listing=listed, look=known.view.look)
    return replace(known, view=view)


def threaded(call: Callable[[], Result]) -> Step[Result]:
    """Return a step that waits, if it must, in a thread of its own."""
    return Step(sync=call, aio=lambda: asyncio.to_thread(call))


def _looking(
    store: BasePydanticVectorStore, form: NodeForm
) -> Callable[[Sequence[str]], Step[Sequence[Chunk]]] | None:
    """Look for nodes by their ids, where a store can; their vectors are not seen."""
    if type(store).get_nodes is BasePydanticVectorStore.get_nodes or not store.stores_text:
        return None

    def look(ids: Sequence[str]) -> Step[Sequence[Chunk]]:
        return threaded(lambda: [form.of(one) for one in store.get_nodes(list(ids))])

    return look


def _simple(store: Any, form: NodeForm, texts: Texts) -> Known:
    def some(ids: Iterable[str]) -> list[Chunk]:
        vectors = {one: found for one in ids if (found := store.data.embedding_dict.get(one))}
        nodes = texts.nodes(list(vectors))
        return [form.chunk(one, nodes.get(one), as_bytes(raw)) for one, raw in vectors.items()]

    def of_document(document: str) -> list[str]:
        pairs = list(store.data.text_id_to_ref_doc_id.items())
        return [one for one, of in pairs if of == document]

    return Known(
        view=IndexView(
            count=threaded(lambda: len(store.data.embedding_dict)),
            listing=threaded(lambda: some(list(store.data.embedding_dict))),
            look=lambda ids: threaded(lambda: some(ids)),
        ),
        metric=Metric.COSINE,
        scale=_as_it_is,
        replaces=True,
        steady=True,
        fleeting=True,
        of_document=lambda document: threaded(lambda: of_document(document)),
    )


def _faiss(store: Any, form: NodeForm, texts: Texts) -> Known:
    """A node that was added twice is there twice: then its vector is not known."""

    def placed(wanted: Callable[[str], bool]) -> list[Chunk]:
        places = [(at, name) for at, name in texts.names().items() if wanted(name)]
        counts = Counter(name for _, name in places)
        nodes = texts.nodes(list(counts))
        return [
            form.chunk(name, nodes.get(name), vector(at) if counts[name] == 1 else b"")
            for name, at in {name: at for at, name in places}.items()
        ]

    def vector(place: str) -> bytes:
        try:
            return as_bytes(store.client.reconstruct(int(place)))
        except (RuntimeError, ValueError):  # this kind of index does not keep them
            return b""

    metric = _FAISS_METRICS.get(getattr(store.client, "metric_type", -1))

    def some(ids: Sequence[str]) -> list[Chunk]:
        wanted = set(ids)
        return placed(lambda name: name in wanted)

    return Known(
        view=IndexView(
            count=threaded(lambda: int(store.client.ntotal)),
            listing=threaded(lambda: placed(lambda _: True)),
            look=lambda ids: threaded(lambda: some(ids)),
        ),
        metric=metric,
        scale=_as_it_is if metric is Metric.DOT else None,  # else it gives distances
        steady=True,
        fleeting=True,
    )


def _chroma(store: Any, form: NodeForm) -> Known:
    collection = store.client
    metric = _chroma_metric(collection)
    nearest = 0.0 if metric is Metric.L2 else 1.0  # similarities are exp(-distance)
    include = ["documents", "metadatas", "embeddings"]

    def chunks(got: Mapping[str, Any]) -> Iterator[Chunk]:
        rows = (got["ids"], got["documents"], got["metadatas"], got["embeddings"])
        for name, text, metadata, raw in zip(*rows, strict=True):
            yield form.chunk(name, _node(metadata, text), as_bytes(raw))

    def everything() -> list[Chunk]:
        found: list[Chunk] = []
        while True:
            page = collection.get(limit=_PAGE, offset=len(found), include=include)
            found += chunks(page)
            if len(page["ids"]) < _PAGE:
                return found

    def some(ids: Sequence[str]) -> list[Chunk]:
        pages = (list(ids[at : at + _PAGE]) for at in range(0, len(ids), _PAGE))
        return [one for page in pages for one in chunks(collection.get(ids=page, include=include))]

    def of_document(document: str) -> list[str]:
        return list(collection.get(where={"document_id": document}, include=[])["ids"])

    return Known(
        view=IndexView(
            count=threaded(lambda: int(collection.count())),
            listing=threaded(everything),
            look=lambda ids: threaded(lambda: some(ids)),
        ),
        metric=metric,
        scale=lambda similarity: nearest + _logarithm(similarity),
        steady=True,
        of_document=lambda document: threaded(lambda: of_document(document)),
        index=f"collection {collection.id}",
    )


def _as_it_is(similarity: float) -> float:
    return similarity


def _logarithm(similarity: float) -> float:
    return math.log(similarity) if similarity > 0 else float("-inf")


def _node(metadata: dict[str, Any], text: str | None) -> BaseNode | None:
    try:
        return metadata_dict_to_node(metadata, text=text)
    except ValueError:  # something else wrote it
        return None


def _chroma_metric(collection: Any) -> Metric | None:
    configuration = collection.configuration
    parts = (configuration.get(name) or {} for name in ("hnsw", "spann"))
    spaces = [part["space"] for part in parts if part.get("space")]
    return _SPACES.get(spaces[0]) if spaces else None
