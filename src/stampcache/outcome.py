"""What a lookup and an update come to: `Hit`, `Stale` or `Miss`; `Stored` or `Refused`."""

from copy import deepcopy
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from stampcache.model import Answer, Entry, Identity, Level, Reason, Scope, Vector


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


def _copied(kept: Answer) -> Answer:
    return replace(kept, tool_calls=deepcopy(kept.tool_calls)) if kept.tool_calls else kept


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
        return _copied(self.entry.answer)

    @property
    def entry_id(self) -> str:
        """What `Cache.report_bad` and ``invalidate(entry=)`` take."""
        return self.entry.id

    @property
    def saved(self) -> Saved:
        """What serving it saved."""
        return saved_by(self.entry.answer)


class Miss(Struct, frozen=True, kw_only=True):
    """Nothing can be served. Hand it to `Cache.update`: it carries the vector and the fence.

    ``identity`` is ``None`` where the cache does not take part (uncacheable, unscoped).
    """

    reason: Reason
    detail: str = ""
    identity: Identity | None = None
    scope: Scope | None = None
    vector: Vector | None = field(default=None)
    norm: str = ""
    fence: int = 0
    trace: tuple[Check, ...] = ()


class Stale(Struct, frozen=True, kw_only=True):
    """There is an entry, but what it was made from no longer holds. Update as after a Miss."""

    reason: Reason
    entry: Entry
    detail: str = ""
    identity: Identity | None = None
    scope: Scope | None = None
    vector: Vector | None = field(default=None)
    norm: str = ""
    fence: int = 0
    trace: tuple[Check, ...] = ()

    @property
    def answer(self) -> Answer:
        """The answer that no longer holds, as the caller's own copy: for who allows stale answers."""
        return _copied(self.entry.answer)

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


class AsOf(Struct, frozen=True):
    """As of which change an answer that several wait for is known to be true.

    ``sequence`` is that of the last change then; a ``late`` answer is not even true as of its making.
    """

    sequence: int
    late: bool = False

    def holds_for(self, since: int) -> bool:
        """Tell whether one may be given it who began when the last change had this sequence."""
        return not self.late and since <= self.sequence


def is_late(update: object) -> bool:
    """Tell whether what an answer was made from changed while it was made."""
    return isinstance(update, Refused) and update.reason is Reason.FENCED
