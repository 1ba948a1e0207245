"""What a vector store can tell of itself, and what stands for one of its chunks."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stampcache import canonical
from stampcache.corpora import Chunk
from stampcache.effects import Step

VOLATILE = frozenset({
    "crawled_at", "created_at", "creation_date", "indexed_at", "ingested_at", "last_accessed_at",
    "last_accessed_date", "last_modified", "last_modified_date", "loaded_at", "modified_at", "mtime",
    "timestamp", "updated_at",
})  # fmt: skip
"""Metadata that changes whenever a document is ingested, though what it says does not."""


class IndexView(Struct, frozen=True, kw_only=True):
    """What a vector store can tell of itself; ``None`` where it cannot.

    ``count`` is the number of its chunks, ``listing`` gives all of them, and ``look`` those of some
    ids that are there. Their vectors may be empty.
    """

    count: Step[int] | None = None
    listing: Step[Sequence[Chunk]] | None = None
    look: Callable[[Sequence[str]], Step[Sequence[Chunk]]] | None = None


def chunk_digest(text: str, metadata: Mapping[str, object], *, volatile: Iterable[str] = ()) -> str:
    """Return what stands for a chunk: its text, white space folded, and metadata that lasts.

    Raises:
        CanonicalError: metadata holds a value that is no JSON.
    """
    ignored = VOLATILE.union(volatile)
    lasting = {name: value for name, value in metadata.items() if name not in ignored}
    parts = [canonical.encode(canonical.text(text)), canonical.value(lasting)]
    return canonical.digest(parts, person=b"watched")


def with_vector(chunk: Chunk, others: Iterable[Chunk | None]) -> Chunk:
    """Return a chunk with the vector of another record of the same chunk, where its own is unknown."""
    if chunk.vector:
        return chunk
    same = (one for one in others if one is not None and one.digest == chunk.digest)
    return next((replace(chunk, vector=one.vector) for one in same), chunk)


def difference(known: Mapping[str, Chunk], there: Iterable[Chunk]) -> str:
    """Say in what an index differs from what is known of it; empty where it does not."""
    digests = {chunk.id: chunk.digest for chunk in there}
    new = len(digests.keys() - known.keys())
    gone = len(known.keys() - digests.keys())
    other = sum(known[one].digest != digests[one] for one in known.keys() & digests.keys())
    counts = ((new, "unknown"), (gone, "missing"), (other, "changed"))
    return ", ".join(f"{count} chunks {what}" for count, what in counts if count)
