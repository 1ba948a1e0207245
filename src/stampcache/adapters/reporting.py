"""The fields that adapters put beside an answer: was it a hit, at which level, why, and what it saved."""

from typing import TypedDict

import msgspec

from stampcache.model import Answer, Level, Reason
from stampcache.outcome import Hit, Outcome, Saved, Stale, saved_by


class CacheFields(TypedDict):
    """The ``cache`` field of an answer; plain JSON. ``saved`` holds tokens, cost and seconds."""

    hit: bool
    level: str | None
    similarity: float | None
    reason: str
    entry_id: str | None
    saved: dict[str, float]


def fields(outcome: Outcome) -> CacheFields:
    """Return what an adapter reports of a lookup after which the answer was made anew, or of a hit."""
    if isinstance(outcome, Hit):
        return CacheFields(
            hit=True,
            level=outcome.level.value,
            similarity=outcome.similarity,
            reason=outcome.reason.value,
            entry_id=outcome.entry_id,
            saved=_told(outcome.saved),
        )
    return _no_hit(outcome.reason, {})


def stale_fields(outcome: Stale) -> CacheFields:
    """Return what an adapter reports of a stale answer that it served: no hit, but from this entry."""
    return CacheFields(
        hit=False,
        level=Level.EXACT.value,
        similarity=1.0,
        reason=outcome.reason.value,
        entry_id=outcome.entry_id,
        saved=_told(saved_by(outcome.entry.answer)),
    )


def shared_fields(outcome: Outcome, answer: Answer) -> CacheFields:
    """Return what an adapter reports of a request that got what an equal one had just been given.

    Args:
        outcome: of that other request's lookup.
        answer: what it got; after a miss its making is what this request saved.
    """
    if isinstance(outcome, Hit):
        return fields(outcome)
    return _no_hit(Reason.SHARED, _told(saved_by(answer)))


def _no_hit(reason: Reason, saved: dict[str, float]) -> CacheFields:
    return CacheFields(
        hit=False, level=None, similarity=None, reason=reason.value, entry_id=None, saved=saved
    )


def _told(saved: Saved) -> dict[str, float]:
    """Return what was saved, without the counts that the provider did not tell."""
    named = msgspec.structs.asdict(saved)
    return {name: count for name, count in named.items() if count is not None}
