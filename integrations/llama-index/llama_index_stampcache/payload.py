"""Responses as bytes: versioned JSON of texts, chunks and nodes of known classes, nothing else.

A response is taken down before the application gets it and made anew on each hit, so that nobody's
changes to a response show in another one. What would not come back equal is not stored.
"""

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.schema import BaseNode, Document, IndexNode, Node, NodeWithScore, TextNode
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

FORMAT = "llama-index/1"
_NODE_CLASSES: Mapping[str, type[BaseNode]] = {
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


class Payload(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One response. ``as_retrieved``: its source nodes were the retrieved ones, in their order.

    ``metadata`` is ``None`` where it was made from the source nodes, as the framework does.
    """

    version: Literal[1] = 1
    kind: Literal["text", "pydantic", "stream"]
    text: str | None = None
    chunks: list[str] = []
    nodes: list[StoredNode]
    as_retrieved: bool
    node_metadata: bool
    metadata: dict[str, object] | None

    def encode(self) -> bytes:
        """Return it as JSON."""
        return msgspec.json.encode(self)


def draft(
    response: RESPONSE_TYPE, retrieved: Nodes | None, output_cls: type[BaseModel] | None
) -> Payload | None:
    """Return a response as it is to be stored; the text of a stream is added when it has ended.

    ``None`` where the response, a node or the metadata would not come back equal.
    """
    kind = _KINDS.get(type(response))
    if kind is None or _is_consumed(response) or response.source_nodes is None:
        return None
    nodes = [_stored_node(one) for one in response.source_nodes]
    kept = [one for one in nodes if one is not None]
    node_metadata = response.metadata == _node_metadata(response.source_nodes)
    metadata = None if node_metadata else response.metadata
    text = _text(response, output_cls)
    unread = isinstance(response, PydanticResponse) and text is None
    if len(kept) < len(nodes) or not _comes_back(metadata) or unread:
        return None
    return Payload(
        kind=kind,
        text=text,
        nodes=kept,
        as_retrieved=retrieved is not None and _same(response.source_nodes, retrieved),
        node_metadata=node_metadata,
        metadata=metadata,
    )


def with_chunks(payload: Payload, chunks: Sequence[str]) -> Payload:
    """Return the payload of a stream that has ended."""
    return replace(payload, text="".join(chunks), chunks=list(chunks))


def decode(data: bytes) -> Payload:
    """Read a payload.

    Raises:
        PayloadError: it is damaged, or of a version that this code does not know.
    """
    try:
        return msgspec.json.decode(data, type=Payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PayloadError(f"The stored response is unreadable: {error}") from error


def respond(
    payload: Payload,
    *,
    retrieved: Nodes | None,
    output_cls: type[BaseModel] | None,
    aio: bool,
) -> RESPONSE_TYPE:
    """Make the response anew, of the class that the caller of the engine expects.

    Args:
        payload: what was stored.
        retrieved: what the caller's own question retrieved just now, on an exact hit.
        output_cls: the class into which the engine parses its answers now.
        aio: the caller awaits: a stream is an async one.

    Raises:
        PayloadError: a node or the parsed answer cannot be rebuilt.
    """
    fresh = payload.as_retrieved and retrieved is not None
    nodes = list(retrieved) if fresh and retrieved is not None else _rebuilt(payload.nodes)
    metadata = _node_metadata(nodes) if payload.node_metadata else payload.metadata
    if payload.kind == "pydantic":
        return PydanticResponse(_parsed(payload.text or "", output_cls), nodes, metadata)
    if payload.kind == "text":
        return Response(payload.text, nodes, metadata)
    if aio:
        return AsyncStreamingResponse(_areplay(payload.chunks), nodes, metadata)
    return StreamingResponse(_replay(payload.chunks), nodes, metadata)


_KINDS: Mapping[type, Literal["text", "pydantic", "stream"]] = {
    Response: "text",
    PydanticResponse: "pydantic",
    StreamingResponse: "stream",
    AsyncStreamingResponse: "stream",
}


def _is_consumed(response: RESPONSE_TYPE) -> bool:
    if isinstance(response, StreamingResponse | AsyncStreamingResponse):
        return response.response_txt is not None
    return False


def _replay(chunks: Sequence[str]) -> Generator[str, None, None]:
    yield from chunks


async def _areplay(chunks: Sequence[str]) -> AsyncGenerator[str, None]:
    for chunk in chunks:
        yield chunk


def _node_metadata(nodes: Nodes) -> dict[str, object]:
    return {one.node.node_id: one.node.metadata for one in nodes}


def _same(left: Nodes, right: Nodes) -> bool:
    return len(left) == len(right) and all(
        one is other or one == other for one, other in zip(left, right, strict=True)
    )


def _text(response: RESPONSE_TYPE, output_cls: type[BaseModel] | None) -> str | None:
    if isinstance(response, Response):
        return response.response
    parsed = response.response if isinstance(response, PydanticResponse) else None
    if parsed is None or type(parsed) is not output_cls:
        return None
    dumped = parsed.model_dump_json()
    try:
        return dumped if _parsed(dumped, output_cls) == parsed else None
    except PayloadError:
        return None


def _parsed(text: str, output_cls: type[BaseModel] | None) -> BaseModel:
    if output_cls is None:
        raise PayloadError(
            "The stored answer is an object, and the engine has no output class now."
        )
    try:
        return output_cls.model_validate_json(text)
    except ValidationError as error:
        raise PayloadError(f"The stored answer is no {output_cls.__name__} now: {error}") from error


def _comes_back(metadata: dict[str, object] | None) -> bool:
    if metadata is None:
        return True
    try:
        back: object = msgspec.json.decode(msgspec.json.encode(metadata))
    except (msgspec.MsgspecError, TypeError, UnicodeError):
        return False
    return back == metadata


def _stored_node(one: NodeWithScore) -> StoredNode | None:
    """Return a node as it is stored, or ``None`` where it would not come back equal."""
    node = one.node
    linked = isinstance(node, IndexNode) and node.obj is not None
    if _NODE_CLASSES.get(type(node).__name__) is not type(node) or linked:
        return None
    score = None if one.score is None else float(one.score)
    stored = StoredNode(type(node).__name__, node.to_dict(), score)
    try:
        back = msgspec.json.decode(msgspec.json.encode(stored), type=StoredNode)
        return back if _rebuilt([back])[0].node == node else None
    except (msgspec.MsgspecError, PayloadError, TypeError, UnicodeError):
        return None


def _rebuilt(nodes: Sequence[StoredNode]) -> list[NodeWithScore]:
    return [NodeWithScore(node=_rebuilt_node(one), score=one.score) for one in nodes]


def _rebuilt_node(one: StoredNode) -> BaseNode:
    kind = _NODE_CLASSES.get(one.kind)
    if kind is None:
        raise PayloadError(f"The stored response has a node of the unknown class {one.kind!r}.")
    try:
        return kind.from_dict(one.node)
    except (ValidationError, TypeError) as error:
        raise PayloadError(f"A node of the stored response cannot be rebuilt: {error}") from error
