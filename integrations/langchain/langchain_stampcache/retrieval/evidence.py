"""Retrieved documents as evidence: what of them decides whether an answer still holds."""

from collections.abc import Sequence, Set

from langchain_core.documents import Document

from stampcache import Evidence
from stampcache.adapters import chunk_digest, named_source

# What a retriever or reranker writes into the metadata of an unchanged document, differently from
# one query to the next. Everything else may reach the model, and is part of the evidence.
VOLATILE_METADATA = frozenset({
    "_distance", "_relevance_score", "_score", "_similarity", "_similarity_score", "buffer_idx",
    "distance", "last_accessed_at", "query_similarity_score", "relevance_score", "rerank_score",
    "retrieved_at", "score", "similarity", "similarity_score",
})  # fmt: skip
_SCORES = ("relevance_score", "_relevance_score", "rerank_score", "_score", "score", "similarity")


def evidence_of(
    documents: Sequence[Document], *, corpus: str, volatile: Set[str] | None = None
) -> tuple[Evidence, ...]:
    """Return one piece of evidence per document, in rank order.

    Its source is what the metadata calls so (`stampcache.adapters.SOURCE_NAMES`). Where that names
    none it is left empty: it may be any. Its chunk is the document's id. With ``volatile`` it is compared
    as the watch of an index does: that metadata does not count, nor does white space.

    Raises:
        CanonicalError: metadata holds a value that is no JSON; its evidence is unknown.
    """
    return tuple(_evidence(each, rank, corpus, volatile) for rank, each in enumerate(documents))


def _evidence(document: Document, rank: int, corpus: str, volatile: Set[str] | None) -> Evidence:
    metadata = document.metadata
    scores = (metadata.get(name) for name in _SCORES)
    score = next((each for each in scores if isinstance(each, (int, float))), None)
    lasting = {name: item for name, item in metadata.items() if name not in VOLATILE_METADATA}
    text = document.page_content
    return Evidence(
        corpus=corpus,
        source=named_source(metadata),
        chunk=document.id or "",
        text=text,
        metadata=lasting,
        digest="" if volatile is None else chunk_digest(text, lasting, volatile=volatile),
        score=None if score is None else float(score),
        rank=rank,
    )
