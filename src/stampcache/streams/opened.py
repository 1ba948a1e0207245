"""A stream that has begun, and what both kinds of readers know of those under way."""

from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Generic, TypeVar

from msgspec import Struct

from stampcache.errors import StampCacheError

Head = TypeVar("Head")
Item = TypeVar("Item")

INSIDE: ContextVar[frozenset[object]] = ContextVar("stampcache_streams_inside", default=frozenset())
"""The streams inside of whose making the running code is: to read one of them is to wait for oneself."""


class Opened(Struct, Generic[Head, Item], frozen=True):
    """A stream that has begun: what is known of it at once, and what is still to come."""

    head: Head
    items: Iterator[Item]


class AsyncOpened(Struct, Generic[Head, Item], frozen=True):
    """See `Opened`."""

    head: Head
    items: AsyncIterator[Item]


class HandedOver(StampCacheError):
    """The request that read the source for all was interrupted, or keeps all waiting for too long.

    Whoever has been given nothing yet makes its own stream; others are told so by this error.
    """


def may_share(since: int | None, begun: int | None) -> bool:
    """Tell whether one who asks at a sequence of changes may join a stream of another."""
    return since is not None and since == begun


def no_end(error: Exception) -> Exception:
    """Return what fails in a making; one that would look like the end of the stream becomes another."""
    if not isinstance(error, StopIteration | StopAsyncIteration):
        return error
    unlike = RuntimeError(f"making a stream raised {type(error).__name__}")
    unlike.__cause__ = error
    return unlike
