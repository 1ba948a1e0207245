"""A lookup: the answer to this very question, else to the same question in other words (pure).

The path, in order: `lookup` asks the store for the exact key and `decide.validity` for the entry found;
failing that `flows.meaning.by_meaning` embeds the question and runs the checks of each neighbour from
cheap to dear. What is returned is a `Hit`, a `Stale` or a `Miss` with its reason.
"""

from stampcache import decide
from stampcache.decide import Objection
from stampcache.effects import (
    Fetch,
    Flow,
    Note,
)
from stampcache.errors import (
    CodecError,
    StoreError,
)
from stampcache.flows.asking import Ask, Seen
from stampcache.flows.meaning import by_meaning
from stampcache.flows.serving import (
    doubted_now,
    explained,
    unavailable,
    untrusted,
    used,
    with_fence,
)
from stampcache.model import (
    Entry,
    Level,
    Reason,
)
from stampcache.outcome import Check, Hit, Outcome

_EXACT_TRACE = (Check("exact key", True, "same tokens, still valid"),)


def lookup(ask: Ask) -> Flow[Outcome]:
    """Return the answer to this very question, else to the same question in other words."""
    identity = ask.identity
    if ask.controls.no_cache:
        return (yield from _not_looked_up(ask))
    damage: CodecError | None = None
    distrust: Objection | None = None
    try:
        if ask.request.runs.watched:
            distrust = yield from untrusted(ask)
        entry: Entry | None = yield Fetch(identity.partition, identity.key)  # no detour: each hit's
    except CodecError as error:
        entry, damage = None, error
    except StoreError as error:
        return (yield from unavailable(ask, Reason.STORE_ERROR, error))
    invalid = None
    if entry is not None:
        invalid = _invalid(ask, entry) or distrust
        if invalid is None and (at := entry.early_at) is not None and at <= ask.now:
            invalid = yield from doubted_now(ask, entry)
        if invalid is None:
            if ask.record:
                yield from used(ask, entry)
                return _exactly(entry)
            return (yield from explained(ask, _exactly(entry)))
    seen = Seen()
    if damage is not None:
        yield from Note("corrupt_entry", damage)
        seen.finding = Objection(Reason.CORRUPT, str(damage))
    if entry is not None and invalid is not None:
        seen.stale, seen.finding = entry, invalid
    seen.reject("exact key", seen.finding, entry)
    if ask.allow_stale and seen.stale is not None:
        return (yield from with_fence(ask, seen))
    return (yield from by_meaning(ask, seen))


def exact(ask: Ask) -> Flow[Hit | None]:
    """Return the answer to this very question, if it may be served, without a word of why it is not.

    For one who looks up again where there is none, and counts that: a failure is told then, too.
    """
    if ask.controls.no_cache:
        return None
    try:
        if ask.request.runs.watched and (yield from untrusted(ask)) is not None:
            return None
        entry: Entry | None = yield Fetch(ask.identity.partition, ask.identity.key)
    except (CodecError, StoreError):
        return None
    if entry is None or _invalid(ask, entry) is not None:
        return None
    if (at := entry.early_at) is not None and at <= ask.now:
        fresh, until = ask.rules.freshness, entry.doubtful_at
        if fresh is not None and fresh.on_path and until is not None and until <= ask.now:
            return None  # whoever looks up again asks the judge, once
        if (yield from doubted_now(ask, entry)) is not None:
            return None
    if ask.record:
        yield from used(ask, entry)
    return _exactly(entry)


def _invalid(ask: Ask, entry: Entry) -> Objection | None:
    """Return what is wrong with an entry of this very question."""
    found = decide.validity(entry, ask.request.evidence, ask.now)
    return found or (decide.revision(entry, ask.revision) if ask.revision else None)


def _exactly(entry: Entry) -> Hit:
    return Hit(
        entry=entry,
        level=Level.EXACT,
        similarity=1.0,
        reason=Reason.SAME_TOKENS,
        trace=_EXACT_TRACE,
    )


def _not_looked_up(ask: Ask) -> Flow[Outcome]:
    seen = Seen()
    seen.finding = Objection(Reason.NO_CACHE)
    seen.reject("controls", seen.finding)
    return (yield from with_fence(ask, seen))
