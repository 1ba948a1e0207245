"""Two applications that differ in nothing but the cache."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec import Struct

from stampcache import Cache


class Pair(Struct, frozen=True, kw_only=True):
    """Two applications; ``made`` counts the answers of both models, ``fits`` checks one answer.

    ``apart`` is asked in the place of ``cached`` by many threads, where one object is one conversation.
    """

    alone: Callable[[str], Any]
    cached: Callable[[str], Any]
    acached: Callable[[str], Awaitable[Any]]
    made: Callable[[], int]
    fits: Callable[[str, Any], bool]
    close: Callable[[], None]
    apart: Callable[[str], Any] | None = None


class Counting(Protocol):
    """A model that counts its answers."""

    @property
    def made(self) -> int:
        """How often it has answered."""
        ...


def paired(
    cache: Cache,
    models: tuple[Counting, Counting],
    alone: Callable[[str], Any],
    cached: Callable[[str], Any],
    acached: Callable[[str], Awaitable[Any]],
    says: Callable[[Any], object],
) -> Pair:
    """Return two applications, of which one stands before this cache; ``says`` reads their answers."""
    return Pair(
        alone=alone,
        cached=cached,
        acached=acached,
        made=lambda: sum(model.made for model in models),
        fits=lambda question, given: str(says(given)).strip().endswith(question),
        close=cache.close,
    )
