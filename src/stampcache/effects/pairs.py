"""Effects on the pairs that lookups by meaning end with (pure; ADR 0024)."""

from collections.abc import Sequence

from stampcache.effects.base import Effect
from stampcache.pairs import Pair
from stampcache.ports import Sameness


class Notice(Effect[None], frozen=True):
    """Remember a pair: for a judge or a person, and for who reports on the entry."""

    pair: Pair
    doubtful: bool
    generation: int = 0


class SamePairs(Effect[Sequence[Sameness]], frozen=True):
    """Ask the judge of each pair whether both are the same question; it never fails but by its word."""

    pairs: Sequence[tuple[str, str]]
