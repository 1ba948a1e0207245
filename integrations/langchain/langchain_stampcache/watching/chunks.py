"""Documents as the watch knows them."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from stampcache.adapters import CanonicalError, Chunk, chunk_digest, named_source


def unlike() -> str:
    """Return the digest of a chunk that is like no other one, as nobody can tell what it says."""
    return f"unlike:{secrets.token_hex(8)}"


class ChunkForm:
    """Turns documents into chunks; metadata named ``volatile`` says nothing about what they say."""

    def __init__(self, volatile: frozenset[str]) -> None:
        self.volatile = volatile

    def chunk(
        self, name: str, text: str, metadata: Mapping[str, Any] | None, vector: bytes = b""
    ) -> Chunk:
        """Return one chunk; one whose metadata cannot be compared is like no other."""
        given = metadata or {}
        try:
            digest = self.digest(text, given)
        except CanonicalError:
            digest = unlike()
        return Chunk(id=name, source=named_source(given), digest=digest, vector=vector)

    def of(self, document: Document, vector: bytes = b"") -> Chunk:
        """Return a document that has an id."""
        return self.chunk(document.id or "", document.page_content, document.metadata, vector)

    def digest(self, text: str, metadata: Mapping[str, Any]) -> str:
        """Return what stands for a chunk.

        Raises:
            CanonicalError: its metadata holds a value that is no JSON.
        """
        return chunk_digest(text, metadata, volatile=self.volatile)


def digests_of(form: ChunkForm, documents: Sequence[Document]) -> tuple[str, ...] | None:
    """Return the digests of found documents; ``None`` where one has no canonical form."""
    try:
        return tuple(form.digest(one.page_content, one.metadata) for one in documents)
    except CanonicalError:
        return None
