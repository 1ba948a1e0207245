"""A sweep: a sample of watched answers is retrieved for again, so that the watch is watched, too."""

import secrets
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from stampcache import decide
from stampcache.adapters.front import Front
from stampcache.effects import (
    Block,
    Fetch,
    Flow,
    Invalidate,
    Sample,
    StandingOf,
    Swept,
)
from stampcache.errors import CodecError, ConfigError
from stampcache.model import Entry, Evidence, Reason, Selector
from stampcache.scope import current_scope

_SCANNED = 500
"""So many answers are read at once to find those of one scope."""


class Sweep(Struct, frozen=True, kw_only=True):
    """What a sweep found: of ``checked`` answers, which (ids) do not hold though the watch said so.

    ``skipped`` could not be checked: they were changed or blocked meanwhile. ``problem`` says why
    nothing of the corpus is served any more, where that is so. ``seconds`` is what it took.
    """

    corpus: str
    checked: int
    drifted: tuple[str, ...] = ()
    skipped: int = 0
    problem: str = ""
    seconds: float = 0.0


def sweep(
    front: Front,
    *,
    corpus: str,
    settings: str,
    retrieve: Callable[[str], Flow[Sequence[Evidence]]],
    sample: int,
    tolerate: float,
) -> Flow[Sweep]:
    """Retrieve again for a random sample of answers; those that drifted are marked.

    Inside of a scope only its answers are looked at: what is retrieved may depend on who asks, and
    nobody retrieves for the questions of another tenant.

    Args:
        front: of the adapter.
        corpus: the watched one.
        settings: the digest of what was run for the answers.
        retrieve: gives the evidence of a question now; its failure is the caller's.
        sample: so many answers at most.
        tolerate: the share that may have drifted, as in an approximate index; with more, nothing of
            the corpus is served until it was resynced.
    """
    if sample < 1 or not 0 <= tolerate <= 1:
        raise ConfigError("A sweep takes sample= of 1 or more, and tolerate= between 0 and 1.")
    started = time.perf_counter()
    entries = yield from _sampled(front, corpus, settings, sample)
    tally = _Tally()
    try:
        for entry in entries:
            holds = yield from _holds(corpus, entry, retrieve)
            tally.count(entry, holds)
            if holds is False:
                yield from Invalidate(Selector(entry=entry.id))
        yield from Swept(corpus, front.core.intake.now(), tally.checked, len(tally.drifted))
    except Exception:  # what was found before stops hits all the same
        yield from _stopped(front, corpus, tally, tolerate)
        raise
    problem = yield from _stopped(front, corpus, tally, tolerate)
    return Sweep(
        corpus=corpus,
        checked=tally.checked,
        drifted=tuple(tally.drifted),
        skipped=len(entries) - tally.checked,
        problem=problem,
        seconds=time.perf_counter() - started,
    )


def _sampled(front: Front, corpus: str, settings: str, sample: int) -> Flow[Sequence[Entry]]:
    """Return a random sample of answers; in a scope, of its own."""
    after, scope = secrets.token_hex(8), current_scope()
    if scope is None:
        return (yield from Sample(corpus, settings, sample, after))
    own = front.core.intake.scope_digest(scope)
    seen, mine = set[str](), list[Entry]()
    while len(mine) < sample:
        some = yield from Sample(corpus, settings, max(sample, _SCANNED), after)
        new = [one for one in some if one.id not in seen]
        if not new:
            break
        seen.update(one.id for one in new)
        mine += [one for one in new if one.identity.scope == own]
        after = new[-1].id
    return mine[:sample]


class _Tally:
    """What a sweep has found so far."""

    def __init__(self) -> None:
        self.checked = 0
        self.drifted: list[str] = []

    def count(self, entry: Entry, holds: bool | None) -> None:
        self.checked += holds is not None
        if holds is False:
            self.drifted.append(entry.id)


def _stopped(front: Front, corpus: str, tally: _Tally, tolerate: float) -> Flow[str]:
    """Stop the hits of a corpus if too many answers drifted; say why, or nothing."""
    drifted = len(tally.drifted)
    front.core.counters.event("watch.checked", tally.checked)
    front.core.counters.event("watch.drifted", drifted)
    if drifted <= tolerate * tally.checked:
        return ""
    problem = (
        f"a sweep found that {drifted} of {tally.checked} answers do not hold: documents were written"
        " around the watch; call resync() on the watched index"
    )
    yield from Block(corpus, problem)
    return problem


def _holds(
    corpus: str, entry: Entry, retrieve: Callable[[str], Flow[Sequence[Evidence]]]
) -> Flow[bool | None]:
    """Retrieve for an answer again; ``None`` where it cannot be compared.

    What does not hold is retrieved for once more: a write that was undone may have come between.
    """
    for _ in range(2):
        evidence = tuple((yield from retrieve(entry.question)))
        if not (yield from _still_served(corpus, entry)):
            return None
        finding = decide.validity(entry, evidence, entry.created_at)
        if finding is None:
            return True
        if finding.reason is not Reason.EVIDENCE_CHANGED:
            return None
    return False


def _still_served(corpus: str, entry: Entry) -> Flow[bool]:
    """Tell whether an answer would be served now: no write came between, or is under way."""
    standing = yield from StandingOf(corpus)
    if standing is None or standing.intents:
        return False
    try:
        now = yield from Fetch(*entry.place)
    except CodecError:
        return False
    return now is not None and now.id == entry.id and not now.invalidated
