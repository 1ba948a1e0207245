"""Two applications that differ in nothing but the cache."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct


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
