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

from stampcache.adapters import CacheFields

_KNOWN = frozenset({Response, PydanticResponse, StreamingResponse, AsyncStreamingResponse})


def reported(response: RESPONSE_TYPE, report: CacheFields) -> RESPONSE_TYPE:
    """Return a response with the report in its metadata; the given one is left as it is.

    An object of another class, which an engine may invent, is returned unchanged.
    """
    if type(response) not in _KNOWN:
        return response
    metadata = {**(response.metadata or {}), "cache": msgspec.to_builtins(report)}
    return dataclasses.replace(response, metadata=metadata)
