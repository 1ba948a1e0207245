"""Nodes as the watch knows them."""

import secrets

from llama_index.core.schema import BaseNode

from llama_index_stampcache.evidence import node_digest, source_of
from stampcache.adapters import VOLATILE, CanonicalError, Chunk, as_bytes

_READ_WITH_FILES = frozenset({"file_size"})  # another with every blank, beside what the file says
_NO_TEXT = "no text"
_UNLIKE = "unlike:"


class NodeForm:
    """Turns nodes into chunks; see `llama_index_stampcache.evidence.node_digest`."""

    def __init__(self, volatile: frozenset[str]) -> None:
        """``volatile`` is metadata that changes though the document does not, beside what always does."""
        self.volatile = VOLATILE | _READ_WITH_FILES | volatile

    def of(self, node: BaseNode) -> Chunk:
        """Return a node with its own embedding."""
        return self.chunk(node.node_id, node, b"" if node.embedding is None else vector(node))

    def chunk(self, name: str, node: BaseNode | None, vector: bytes) -> Chunk:
        """Return what an index has under an id; it may have lost the text of it."""
        if node is None:
            return Chunk(id=name, digest=_NO_TEXT, vector=vector)
        return Chunk(id=name, source=source_of(node), digest=self.like(node), vector=vector)

    def like(self, node: BaseNode) -> str:
        """Return the digest of a node; of one that cannot be compared, one that is like no other."""
        try:
            return self.digest(node)
        except CanonicalError:
            return unlike()

    def digest(self, node: BaseNode) -> str:
        """Return what stands for a node.

        Raises:
            CanonicalError: its metadata holds a value that is no JSON.
        """
        return node_digest(node, self.volatile)


def vector(node: BaseNode) -> bytes:
    """Return the embedding that a node carries."""
    return as_bytes(node.get_embedding())


def unlike() -> str:
    """Return a digest that no other node has."""
    return _UNLIKE + secrets.token_hex(8)
