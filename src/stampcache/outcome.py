"""What a lookup and an update come to: `Hit`, `Stale` or `Miss`; `Stored` or `Refused`."""

from copy import deepcopy
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from stampcache.model import (
    AS_SET,
    Answer,
    Controls,
    Entry,
    Identity,
    Level,
    Reason,
    Scope,
    Vector,
)


class Check(Struct, frozen=True):
    """One step of a lookup as `Cache.explain` shows it."""

    step: str
    passed: bool
    detail: str = ""
    entry_id: str = ""


class Saved(Struct, frozen=True, kw_only=True):
    """What a hit saved: the tokens, cost and seconds that making the answer had taken.

    ``cached_tokens`` and ``reasoning_tokens`` are parts of the others; ``None`` where unknown.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float = 0.0
    latency_s: float = 0.0


def saved_by(answer: Answer) -> Saved:
    """Return what is saved by not making this answer again."""
    return Saved(
        input_tokens=answer.usage.input_tokens or 0,
        output_tokens=answer.usage.output_tokens or 0,
        cached_tokens=answer.usage.cached_tokens,
        reasoning_tokens=answer.usage.reasoning_tokens,
        cost=answer.cost,
        latency_s=answer.latency_s,
    )


def own(answer: Answer) -> Answer:
    """Return the answer with its mutable parts copied: what others hold of it may be changed."""
    calls = answer.tool_calls
    return replace(answer, tool_calls=deepcopy(calls)) if calls else answer


class Hit(Struct, frozen=True, kw_only=True):
    """A cached answer that still holds."""

    entry: Entry
    level: Level
    similarity: float
    reason: Reason
    trace: tuple[Check, ...] = ()

    @property
    def answer(self) -> Answer:
        """The cached answer, as the caller's own copy."""
        return own(self.entry.answer)

    @property
    def entry_id(self) -> str:
        """What `Cache.report_bad` and ``invalidate(entry=)`` take."""
        return self.entry.id

    @property
    def saved(self) -> Saved:
        """What serving it saved."""
        return saved_by(self.entry.answer)


class NoHit(Struct, frozen=True, kw_only=True):
    """What `Miss` and `Stale` have in common: hand it to `Cache.update` with the answer made meanwhile.

    It carries the question's ``vector``, the stamp of the ``embedder`` that made it, and the ``fence``;
    ``identity``, ``scope`` and ``settings`` (a digest) say of which request it is the outcome.
    ``identity`` is ``None`` where the cache does not take part (uncacheable, unscoped). ``controls``
    are those in force, and ``slot`` which of a variety of answers is to be made.
    """

    reason: Reason
    detail: str = ""
    identity: Identity | None = None
    scope: Scope | None = None
    settings: str = ""
    vector: Vector | None = field(default=None)
    norm: str = ""
    embedder: str = ""
    fence: int = 0
    trace: tuple[Check, ...] = ()
    controls: Controls = AS_SET
    slot: int = 0


class Miss(NoHit, frozen=True, kw_only=True):
    """Nothing can be served."""


class Stale(NoHit, frozen=True, kw_only=True):
    """There is an entry, but what it was made from no longer holds."""

    entry: Entry

    @property
    def answer(self) -> Answer:
        """The answer that no longer holds, as the caller's own copy: for who allows stale answers."""
        return own(self.entry.answer)

    @property
    def entry_id(self) -> str:
        """The id of the entry."""
        return self.entry.id


Outcome: TypeAlias = Hit | Stale | Miss


class Stored(Struct, frozen=True):
    """An update was acknowledged by the store."""

    entry: Entry
    evicted: int = 0


class Refused(Struct, frozen=True):
    """An update was not stored; the application's answer is unaffected."""

    reason: Reason
    detail: str = ""


Update: TypeAlias = Stored | Refused


def is_late(update: Update | Miss | None) -> bool:
    """Tell whether what an answer was made from changed while it was made."""
    return isinstance(update, Refused) and update.reason is Reason.FENCED
