"""Responses as bytes: versioned JSON of texts, chunks and nodes of known classes, nothing else.

A response is taken down before the application gets it and made anew on each hit, so that nobody's
changes to a response show in another one. What would not come back equal is not stored. What the
framework's composed engines put into the metadata (the choice of a router, the steps of a
multi-step engine) is written in a form of its own.
"""

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, TypeAlias

import msgspec
from llama_index.core.base.base_selector import MultiSelection, SingleSelection
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.tools.types import BaseTool
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from llama_index_stampcache.nodes import Nodes, PayloadError, StoredNode, rebuilt, stored_node

FORMAT = "llama-index/1"
REPORT = "cache"
"""The key of our report in the metadata; it tells of one response, and so is never stored."""
Tools: TypeAlias = Mapping[str, BaseTool]
_NO_TOOLS: Tools = MappingProxyType({})


class Selected(Struct, frozen=True, tag="selected"):
    """Which engines a router chose, and why."""

    indexes: list[int]
    reasons: list[str]


class Step(Struct, frozen=True):
    """One step of a multi-step engine: what it asked, and what it was answered."""

    question: str
    response: "Payload"


class Steps(Struct, frozen=True, tag="steps"):
    """All steps, in their order."""

    steps: list[Step]


class Named(Struct, frozen=True, tag="tools"):
    """Tools that a router retrieved, by their names: they are the engine's own objects."""

    names: list[str]


Part: TypeAlias = Selected | Steps | Named


class Payload(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One response. ``as_retrieved``: its source nodes were the retrieved ones, in their order.

    ``metadata`` is ``None`` where it was made from the source nodes, as the framework does.
    ``parts`` are the entries of it that are no plain data.
    """

    version: Literal[1] = 1
    kind: Literal["text", "pydantic", "stream"]
    text: str | None = None
    chunks: list[str] = []
    nodes: list[StoredNode]
    as_retrieved: bool
    node_metadata: bool
    metadata: dict[str, object] | None
    parts: dict[str, Part] = {}

    def encode(self) -> bytes:
        """Return it as JSON."""
        return msgspec.json.encode(self)


def draft(
    response: RESPONSE_TYPE,
    retrieved: Nodes | None,
    output_cls: type[BaseModel] | None,
    tools: Tools = _NO_TOOLS,
) -> Payload | None:
    """Return a response as it is to be stored; the text of a stream is added when it has ended.

    ``None`` where the response, a node or the metadata would not come back equal.
    """
    kind = _KINDS.get(type(response))
    if kind is None or _is_consumed(response) or response.source_nodes is None:
        return None
    nodes = [stored_node(one) for one in response.source_nodes]
    kept = [one for one in nodes if one is not None]
    parts = _parts(response.metadata, output_cls, tools)
    plain = _plain(response.metadata, parts)
    node_metadata = plain == _node_metadata(response.source_nodes)
    metadata = None if node_metadata else plain
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
        parts=parts,
    )


def problem(
    response: RESPONSE_TYPE, output_cls: type[BaseModel] | None, tools: Tools = _NO_TOOLS
) -> str:
    """Say what of a response has no stored form, for one of which `draft` made nothing."""
    kind = type(response).__name__
    if type(response) not in _KINDS:
        return f"a {kind} is no response of the framework"
    if _is_consumed(response):
        return "its stream was read already"
    nodes: Nodes | None = response.source_nodes
    if nodes is None:
        return "it has no source nodes"
    for one in nodes:
        if stored_node(one) is None:
            return (
                f"its source node {one.node.node_id!r} ({type(one.node).__name__}) is no plain one"
            )
    if isinstance(response, PydanticResponse) and _text(response, output_cls) is None:
        return f"its {type(response.response).__name__} is not the output class of the engine"
    parts = _parts(response.metadata, output_cls, tools)
    for name, value in (_plain(response.metadata, parts) or {}).items():
        if not _comes_back({name: value}):
            return f"the entry {name!r} of its metadata ({type(value).__name__}) is no plain data"
    return "it would not come back equal"


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
    tools: Tools = _NO_TOOLS,
    stream: Generator[str, None, None] | AsyncGenerator[str, None] | None = None,
) -> RESPONSE_TYPE:
    """Make the response anew, of the class that the caller of the engine expects.

    Args:
        payload: what was stored.
        retrieved: what the caller's own question retrieved just now, on an exact hit.
        output_cls: the class into which the engine parses its answers now.
        aio: the caller awaits: a stream is an async one.
        tools: the engine's tools by their names.
        stream: what the caller is to read, where the stream has not ended.

    Raises:
        PayloadError: a node, a tool or the parsed answer cannot be rebuilt.
    """
    fresh = payload.as_retrieved and retrieved is not None
    nodes = list(retrieved) if fresh and retrieved is not None else rebuilt(payload.nodes)
    metadata = _node_metadata(nodes) if payload.node_metadata else payload.metadata
    if payload.parts:
        made = {name: _made(part, output_cls, tools) for name, part in payload.parts.items()}
        metadata = {**(metadata or {}), **made}
    if payload.kind == "pydantic":
        return PydanticResponse(_parsed(payload.text or "", output_cls), nodes, metadata)
    if payload.kind == "text":
        return Response(payload.text, nodes, metadata)
    if isinstance(stream, AsyncGenerator) or (stream is None and aio):
        return AsyncStreamingResponse(stream or _areplay(payload.chunks), nodes, metadata)
    return StreamingResponse(stream or _replay(payload.chunks), nodes, metadata)


_KINDS: Mapping[type, Literal["text", "pydantic", "stream"]] = {
    Response: "text",
    PydanticResponse: "pydantic",
    StreamingResponse: "stream",
    AsyncStreamingResponse: "stream",
}


def _parts(
    metadata: Mapping[str, object] | None, output_cls: type[BaseModel] | None, tools: Tools
) -> dict[str, Part]:
    parts = {name: _part(value, output_cls, tools) for name, value in (metadata or {}).items()}
    return {name: part for name, part in parts.items() if part is not None}


def _part(value: object, output_cls: type[BaseModel] | None, tools: Tools) -> Part | None:
    if type(value) is MultiSelection:
        return Selected([one.index for one in value.selections], value.reasons)
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(one, BaseTool) for one in value):
        names = [one.metadata.name or "" for one in value]
        known = all(tools.get(name) is one for name, one in zip(names, value, strict=True))
        return Named(names) if known else None
    steps: list[Step] = []
    for one in value:
        match one:
            case (str(question), answer) if type(one) is tuple:
                response = draft(answer, None, output_cls, tools)
                if response is None:
                    return None
                steps.append(Step(question, response))
            case _:
                return None
    return Steps(steps)


def _made(part: Part, output_cls: type[BaseModel] | None, tools: Tools) -> object:
    if isinstance(part, Selected):
        pairs = zip(part.indexes, part.reasons, strict=False)
        return MultiSelection(selections=[SingleSelection(index=i, reason=r) for i, r in pairs])
    if isinstance(part, Named):
        if any(name not in tools for name in part.names):
            raise PayloadError("The stored answer names a tool that the engine does not have now.")
        return [tools[name] for name in part.names]
    return [
        (
            step.question,
            respond(step.response, retrieved=None, output_cls=output_cls, aio=False, tools=tools),
        )
        for step in part.steps
    ]


def _plain(
    metadata: Mapping[str, object] | None, parts: Mapping[str, Part]
) -> dict[str, object] | None:
    """Return what of the metadata is to be plain data; the report of an inner cache is dropped."""
    if metadata is None:
        return None
    plain = {name: value for name, value in metadata.items() if name not in (REPORT, *parts)}
    return plain or (None if metadata else {})


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
