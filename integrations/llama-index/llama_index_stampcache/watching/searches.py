"""A search of a watched vector store as a reading: what was asked, and what was found."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from msgspec import Struct

from llama_index_stampcache.watching.chunks import NodeForm
from llama_index_stampcache.watching.stores import Scale, Texts
from stampcache.adapters import CanonicalError, Metric, Reading, as_bytes

_IDS = frozenset({"doc_id", "document_id", "id", "id_", "node_id", "ref_doc_id"})
"""What stores note of a node and its document; what is ingested again may have others."""
_CLOSE = 1e-6
"""How far two computations of one similarity may be apart, as a share of it."""


class Unkept(Reading, frozen=True, kw_only=True):
    """A search that no write would tell of: what was made from it must not be kept."""


class Searches:
    """Reads the searches of one watched vector store."""

    def __init__(
        self,
        corpus: str,
        form: NodeForm,
        texts: Texts | None,
        *,
        metric: Metric | None,
        scale: Scale | None,
    ) -> None:
        """Read searches; see `stores.Known` for the metric and the scale."""
        self.scale = scale
        self._corpus = corpus
        self._metric = metric
        self._form = form
        self._texts = texts

    def reading(
        self,
        query: VectorStoreQuery,
        options: Mapping[str, object],
        result: VectorStoreQueryResult,
        beyond: VectorStoreQueryResult | None,
    ) -> Reading:
        """Return what is told of a search; ``beyond`` is what `one_more` found."""
        names = {*_names(query.filters), *_names(options)}
        unseen = sorted(name for name in names if name in self._not_told or name.startswith("_"))
        if unseen:
            problem = f"its filter looks at {unseen[0]!r}, whose changes are not told"
            return Unkept(corpus=self._corpus, problem=problem)
        if self._is_restricted(query):
            problem = "it is restricted to nodes or documents by their ids"
            return Reading(corpus=self._corpus, problem=problem)
        found = self._found(result)
        if self._is_by_chance(result if beyond is None else beyond):
            problem = "chunks that differ are equally close, so that chance chooses among them"
            return Reading(corpus=self._corpus, problem=problem)
        scale = self.scale
        return Reading(
            corpus=self._corpus,
            vector=as_bytes(query.query_embedding or []),
            metric=self._metric,
            chunks=found.chunks,
            digests=found.digests,
            wanted=query.similarity_top_k,
            relevances=tuple(map(scale, result.similarities or ())) if scale else (),
            problem=_unplain(query, options),
        )

    def one_more(
        self, query: VectorStoreQuery, result: VectorStoreQueryResult
    ) -> VectorStoreQuery | None:
        """Return the search for one chunk more, to see whether it is as close as the last one found."""
        count = len(result.similarities or ())
        if query.mode is not VectorStoreQueryMode.DEFAULT or count < query.similarity_top_k:
            return None
        return dataclasses.replace(query, similarity_top_k=query.similarity_top_k + 1)

    def _is_by_chance(self, result: VectorStoreQueryResult) -> bool:
        """Tell whether chunks that were found one after the other might be the other way."""
        scores, digests = result.similarities or [], self._found(result).digests
        if len(scores) != len(digests):
            return True  # it cannot be seen
        return any(
            abs(one - other) <= _CLOSE * max(1.0, abs(one)) and first != second
            for (one, other), (first, second) in zip(
                pairwise(scores), pairwise(digests), strict=True
            )
        )

    @property
    def _not_told(self) -> frozenset[str]:
        return self._form.volatile | _IDS

    def _is_restricted(self, query: VectorStoreQuery) -> bool:
        """Tell whether a search is among some nodes only.

        A retriever of an index is given all that the index has when it is made.
        """
        if query.doc_ids:
            return True
        if self._texts is None:
            return bool(query.node_ids)
        return query.node_ids is not None and {*query.node_ids} != {*self._texts.names().values()}

    def _found(self, result: VectorStoreQueryResult) -> "_Found":
        if result.nodes is not None:
            return self._of(list(result.nodes), [node.node_id for node in result.nodes])
        if self._texts is None:
            return _Found(tuple(result.ids or ()), ())
        names = self._texts.names()
        ids = [names.get(one, one) for one in result.ids or ()]
        nodes = self._texts.nodes(ids)
        return self._of([nodes.get(one) for one in ids], ids)

    def _of(self, nodes: Sequence[BaseNode | None], ids: Sequence[str]) -> "_Found":
        return _Found(tuple(ids), tuple("" if one is None else self._digest(one) for one in nodes))

    def _digest(self, node: BaseNode) -> str:
        try:
            return self._form.digest(node)
        except CanonicalError:
            return ""  # it is like none


class _Found(Struct, frozen=True):
    chunks: tuple[str, ...]
    digests: tuple[str, ...]


def _unplain(query: VectorStoreQuery, options: Mapping[str, object]) -> str:
    """Say why a search is not simply one of the k nearest; empty where it is."""
    if query.mode is not VectorStoreQueryMode.DEFAULT:
        return f"it is a search of mode {query.mode.value!r}"
    if query.query_embedding is None:
        return "it is no search by a vector"
    for name in ("embedding_field", "hybrid_top_k", "sparse_top_k", "mmr_threshold"):
        if getattr(query, name, None) is not None:
            return f"it has the option {name!r}"
    given = next((name for name, value in options.items() if value is not None), None)
    return "" if given is None else f"its option {given!r} is unknown"


def _names(given: object) -> Iterator[str]:
    """Yield every name in a filter, however deep, and the parts of dotted ones."""
    if isinstance(given, MetadataFilters):
        for one in given.filters:
            yield from _names(one if isinstance(one, MetadataFilters) else one.key)
    elif isinstance(given, Mapping):
        for name, inner in given.items():
            yield from str(name).split(".")
            yield from _names(inner)
    elif isinstance(given, list | tuple):
        for inner in given:
            yield from _names(inner)
    elif isinstance(given, str):
        yield from given.split(".")
