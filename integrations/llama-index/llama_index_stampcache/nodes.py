"""Nodes as plain data, and back: those of known classes that come back equal, and no others."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec
from llama_index.core.schema import BaseNode, Document, IndexNode, Node, NodeWithScore, TextNode
from msgspec import Struct
from pydantic import ValidationError

NODE_CLASSES: Mapping[str, type[BaseNode]] = {
    kind.__name__: kind for kind in (TextNode, IndexNode, Node, Document)
}
Nodes: TypeAlias = Sequence[NodeWithScore]


class PayloadError(ValueError):
    """A stored response cannot be read, or not under the engine's present output class."""


class StoredNode(Struct, frozen=True):
    """A node by the name of its class, and its score."""

    kind: str
    node: dict[str, object]
    score: float | None


def stored_node(one: NodeWithScore) -> StoredNode | None:
    """Return a node as it is stored, or ``None`` where it would not come back equal."""
    node = one.node
    linked = isinstance(node, IndexNode) and node.obj is not None
    if NODE_CLASSES.get(type(node).__name__) is not type(node) or linked:
        return None
    score = None if one.score is None else float(one.score)
    stored = StoredNode(type(node).__name__, node.to_dict(), score)
    try:
        back = msgspec.json.decode(msgspec.json.encode(stored), type=StoredNode)
        return back if rebuilt([back])[0].node == node else None
    except (msgspec.MsgspecError, PayloadError, TypeError, UnicodeError):
        return None


def rebuilt(nodes: Sequence[StoredNode]) -> list[NodeWithScore]:
    """Return the nodes anew.

    Raises:
        PayloadError: one is of an unknown class, or damaged.
    """
    return [NodeWithScore(node=_rebuilt_node(one), score=one.score) for one in nodes]


def _rebuilt_node(one: StoredNode) -> BaseNode:
    kind = NODE_CLASSES.get(one.kind)
    if kind is None:
        raise PayloadError(f"The stored response has a node of the unknown class {one.kind!r}.")
    try:
        return kind.from_dict(one.node)
    except (ValidationError, TypeError) as error:
        raise PayloadError(f"A node of the stored response cannot be rebuilt: {error}") from error
