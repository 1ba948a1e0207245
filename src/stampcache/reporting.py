"""The fields that adapters put beside an answer: was it a hit, at which level, why, and what it saved."""

from typing import TypedDict

import msgspec

from stampcache.model import Hit, Outcome


class CacheFields(TypedDict):
    """The ``cache`` field of an answer; plain JSON. ``saved`` holds tokens, cost and seconds."""

    hit: bool
    level: str | None
    similarity: float | None
    reason: str
    entry_id: str | None
    saved: dict[str, float]


def fields(outcome: Outcome) -> CacheFields:
    """Return what an adapter reports of a lookup."""
    if isinstance(outcome, Hit):
        return CacheFields(
            hit=True,
            level=outcome.level.value,
            similarity=outcome.similarity,
            reason=outcome.reason.value,
            entry_id=outcome.entry_id,
            saved=msgspec.structs.asdict(outcome.saved),
        )
    return CacheFields(
        hit=False,
        level=None,
        similarity=None,
        reason=outcome.reason.value,
        entry_id=None,
        saved={},
    )
