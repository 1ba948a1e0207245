"""What both levels of a lookup have in common: doubt, use, failure, and what is told (pure)."""

from msgspec.structs import replace

from stampcache import decide
from stampcache.decide import Objection
from stampcache.effects import (
    Fence,
    Flow,
    Note,
    ReachOf,
    Renew,
    StandingOf,
    Touch,
)
from stampcache.errors import (
    StampCacheError,
    StoreError,
)
from stampcache.flows.asking import Ask, Seen
from stampcache.flows.freshness import doubted, proved
from stampcache.model import (
    Entry,
    Reason,
)
from stampcache.outcome import Check, Hit, Miss, Outcome


def doubted_now(ask: Ask, entry: Entry) -> Flow[Objection | None]:
    """Say that an answer may have changed by itself; one that was just proved has not."""
    if ask.request.runs.watched:
        return None
    at = entry.early_at
    if at is None or ask.now < at:
        return None
    if ask.request.evidence is not None:
        if ask.record and entry.place == (ask.identity.partition, ask.identity.key):
            yield from proved(entry, ask)
        return None
    return (yield from doubted(entry, ask))


def untrusted(ask: Ask) -> Flow[Objection | None]:
    """Say why what is watched of the corpus cannot be trusted now.

    Asked before an entry is read: of all writes whose documents are there now, it then has the mark.
    """
    corpus = ask.request.runs.corpus
    return decide.standing((yield from StandingOf(corpus)), corpus, ask.now)


def explained(ask: Ask, hit: Hit) -> Flow[Hit]:
    """Return a hit that is not served, with what would end it where that is known."""
    if not ask.request.runs.watched:
        return hit
    try:
        reach = yield from ReachOf(hit.entry)
    except StoreError as error:
        yield from Note("store_error", error)
        return hit
    return replace(hit, trace=(*hit.trace, Check("watch", True, str(reach), hit.entry.id)))


def used(ask: Ask, entry: Entry) -> Flow[None]:
    """Note that the entry was served, and let it live longer where its lifetime slides."""
    try:
        yield Touch(entry, ask.identity.key)
        if ask.rules.sliding:
            yield from _renewed(ask, entry)
    except StoreError as error:
        yield from Note("touch", error)


def _renewed(ask: Ask, entry: Entry) -> Flow[None]:
    until = decide.renewal(entry, ask.now, ask.rules)
    if until is not None:
        yield from Renew(entry, until)


def with_fence(ask: Ask, seen: Seen) -> Flow[Outcome]:
    """Return the outcome at once, with the fence for an answer that is made all the same."""
    try:
        seen.fence = yield from Fence()
    except StoreError as error:
        return (yield from unavailable(ask, Reason.STORE_ERROR, error))
    return seen.outcome(ask)


def unavailable(ask: Ask, reason: Reason, error: StampCacheError) -> Flow[Miss]:
    """Return the Miss of a lookup that cannot go on; a strict cache raises what failed."""
    if ask.rules.strict:
        raise error
    yield from Note(reason.name.lower(), error)
    check = Check("availability", False, str(error))
    return Miss(
        reason=reason,
        detail=str(error),
        identity=ask.identity,
        scope=ask.scope,
        settings=ask.request.runs.digest,
        trace=(check,),
        controls=ask.controls,
        slot=ask.slot,
    )


def failed(ask: Ask, reason: Reason, error: StampCacheError) -> Flow[Objection]:
    """Count what failed and object by it; a strict cache raises it."""
    if ask.rules.strict:
        raise error
    yield from Note(reason.name.lower(), error)
    return Objection(reason, str(error))
