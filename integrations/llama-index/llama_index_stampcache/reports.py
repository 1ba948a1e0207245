"""What a response says about the cache: the ``cache`` field of its metadata."""

import dataclasses

import msgspec
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)

from stampcache import Answer, Hit
from stampcache.reporting import CacheFields, fields

SHARED = "shared with an equal request"
_KNOWN = frozenset({Response, PydanticResponse, StreamingResponse, AsyncStreamingResponse})


class Landed(Answer, frozen=True, kw_only=True):
    """An answer that equal queries share; ``hit`` where it came from the cache."""

    hit: Hit | None = None


def landed(answer: Answer, hit: Hit | None) -> Landed:
    """Return an answer for those who wait for it."""
    return Landed(**{name: getattr(answer, name) for name in Answer.__struct_fields__}, hit=hit)


def shared_fields(answer: Answer) -> CacheFields:
    """Return the report of a query that waited for an equal one, and so made nothing itself."""
    if isinstance(answer, Landed) and answer.hit is not None:
        return fields(answer.hit)
    spent = answer.usage
    return CacheFields(
        hit=False,
        level=None,
        similarity=None,
        reason=SHARED,
        entry_id=None,
        saved={
            "input_tokens": spent.input_tokens or 0,
            "output_tokens": spent.output_tokens or 0,
            "cost": answer.cost,
            "latency_s": answer.latency_s,
        },
    )


def reported(response: RESPONSE_TYPE, report: CacheFields) -> RESPONSE_TYPE:
    """Return a response with the report in its metadata; the given one is left as it is.

    An object of another class, which an engine may invent, is returned unchanged.
    """
    if type(response) not in _KNOWN:
        return response
    metadata = {**(response.metadata or {}), "cache": msgspec.to_builtins(report)}
    return dataclasses.replace(response, metadata=metadata)
