"""From a call of a framework to what is asked of the cache, where building its request may fail."""

from collections.abc import Callable
from typing import TypeAlias

from stampcache.adapters.front import Front
from stampcache.errors import CanonicalError, ScopeError
from stampcache.flows import Ask
from stampcache.model import Reason
from stampcache.outcome import Miss
from stampcache.request import Request

Build: TypeAlias = Callable[[], Request]
"""Builds the request of one call; raises where it has no canonical form, or nobody knows who asks."""


def built(front: Front, build: Build) -> Request | Miss:
    """Return the request of a call, or the Miss of one that bypasses the cache; failures are counted."""
    try:
        return build()
    except CanonicalError as error:
        return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
    except ScopeError as error:
        front.event("adapter.unscoped")
        return Miss(reason=Reason.UNSCOPED, detail=str(error))
    except Exception as error:  # noqa: BLE001 - counted; the application runs without the cache
        front.failed("request", error)
        return Miss(reason=Reason.UNCACHEABLE, detail=str(error))


def asked(
    front: Front, build: Build, *, can_retrieve: bool = False, allow_stale: bool = False
) -> Ask | Miss:
    """Return what a call asks of the cache, or the Miss of one that bypasses it; see `Front.ask`."""
    request = built(front, build)
    if isinstance(request, Miss):
        return request
    return front.ask(request, can_retrieve=can_retrieve, allow_stale=allow_stale)
