"""Is a valid answer still fresh: doubt, the judge, and what follows from a verdict (pure; ADR 0022).

Nothing here runs for an answer that `recheck` or a watch has just proved, nor for one that is far from
its doubt: that is a comparison of two numbers in `flows.lookup`.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from stampcache import freshness
from stampcache.decide import Objection, Rules
from stampcache.effects import (
    AskJudge,
    Confirm,
    Flow,
    Invalidate,
    Judged,
    MarkDue,
    Note,
    Observe,
    ObservedOf,
    Renew,
    VerdictOn,
)
from stampcache.errors import StoreError
from stampcache.freshness import Freshness, Observed
from stampcache.journal import Observation, Verdict
from stampcache.model import BY_JUDGE, Entry, Evidence, Reason, Scope, Selector
from stampcache.ports import Facts

AHEAD_S = 600.0
"""An answer is looked at early no sooner than this before it is doubted."""


class Doubt(Struct, frozen=True, kw_only=True):
    """What decides whether a valid entry is served; ``drawn`` is a random number in (0, 1]."""

    rules: Rules
    scope: Scope
    now: float
    has_judge: bool
    record: bool
    drawn: float


def doubted(entry: Entry, doubt: Doubt) -> Flow[Objection | None]:
    """Say why a valid entry is not served now, since it may have changed; ``None``: it is served."""
    fresh = doubt.rules.freshness
    ends_at = entry.doubtful_at
    if fresh is None or ends_at is None:
        return None
    now = doubt.now
    if now < ends_at:
        cost_s = max(entry.answer.latency_s, fresh.deadline_s if doubt.has_judge else 0.0)
        if doubt.record and freshness.early(ends_at, now, cost_s, fresh.beta, doubt.drawn):
            yield from MarkDue(entry, doubt.scope, early=True)
        return None
    finding = Objection(Reason.DOUBTFUL, f"for {now - ends_at:.0f} s its sources may have changed")
    if not doubt.record:
        return finding
    if fresh.on_path and doubt.has_judge:
        verdict = yield from examined(entry, doubt.rules, now)
        return None if verdict.fresh else Objection(Reason.JUDGED, str(verdict))
    may = yield from MarkDue(entry, doubt.scope, early=False)
    return None if may and now < ends_at + fresh.grace_s else finding


def examined(entry: Entry, rules: Rules, now: float) -> Flow[Verdict]:
    """Ask the judge about an entry, and do what follows; whatever fails is a verdict against it."""
    fresh = rules.freshness
    assert fresh is not None
    try:
        observed = yield from observed_of(entry.corpus, entry.evidence)
        if not entry.kind:  # the judge may have named it before, and need not again
            before = yield from VerdictOn(entry.id)
            entry = replace(entry, kind=before.kind) if before and before.kind else entry
        updated_at = entry.confirmed_at or entry.created_at
        facts = Facts(entry=entry, updated_at=updated_at, now=now, observed=observed)
        verdict = replace((yield from AskJudge(facts)), tenant=entry.identity.tenant)
        yield from Judged(verdict)
        if verdict.fresh:
            yield from _confirmed(entry, rules, fresh, observed, verdict)
        elif not verdict.failure:
            because = f"{BY_JUDGE}: {verdict.reason}"
            yield from Invalidate(Selector(entry=entry.id, because=because))
    except StoreError as error:
        yield from Note("judge", error)
        return Verdict(
            entry_id=entry.id,
            question=entry.question,
            fresh=False,
            reason="",
            at=now,
            failure=f"the store failed: {error}",
        )
    return verdict


def _confirmed(
    entry: Entry, rules: Rules, fresh: Freshness, observed: Observed, verdict: Verdict
) -> Flow[None]:
    """Let an entry live on: doubted again as late as its sources allow, and never past its bounds."""
    kind = entry.kind or verdict.kind
    known = rules.lifetime(kind if kind in rules.lifetimes else "")
    per_second = freshness.rate(observed, known.ttl_s)
    after = freshness.doubted_after(per_second, fresh.limit)
    doubtful_at = None if after is None else verdict.at + after
    yield from Confirm(entry, verdict.at, doubtful_at)
    if entry.expires_at is not None and entry.lifetime_s is not None:
        longer = freshness.adapted(entry.lifetime_s, freshness.expected_life(per_second), fresh)
        until = min(verdict.at + longer, entry.created_at + fresh.cap_s)
        if until > entry.expires_at:
            yield from Renew(entry, until)


def observed_of(corpus: str, evidence: Sequence[Evidence] | None) -> Flow[Observed]:
    """Return how often what an answer cites was seen to change."""
    seen: list[Observed] = []
    for place, sources in _by_corpus(corpus, evidence or ()).items():
        found = yield from ObservedOf(place, tuple(sorted(sources)))
        seen.extend(found.values())
    return freshness.together(seen)


def noted(corpus: str, old: Entry | None, new: Sequence[Evidence] | None, now: float) -> Flow[None]:
    """Note which sources changed unannounced, where an answer is made anew; and which are new."""
    if new is None:
        return
    there = {one.digest for one in new}
    seen = {
        (place, source): Observation(place, source, False, 0.0)
        for place, sources in _by_corpus(corpus, new).items()
        for source in sources
    }
    if old is not None and _unannounced(old):
        age = max(0.0, now - old.created_at)
        for one in old.evidence or ():
            if one.source and one.digest:
                at = (one.corpus or corpus, one.source)
                changed = one.digest not in there or (at in seen and seen[at].changed)
                looked_s = age / 2 if changed else age  # when in that time it changed, nobody saw
                seen[at] = Observation(*at, changed, looked_s)
    if seen:
        yield from Observe([seen[at] for at in sorted(seen)], now)


def _unannounced(old: Entry) -> bool:
    """Tell whether nobody said that what an entry cites has changed; a judge only guesses."""
    return not old.invalidated or old.invalidated.startswith(BY_JUDGE)


def _by_corpus(corpus: str, evidence: Sequence[Evidence]) -> dict[str, set[str]]:
    """Return which sources are cited of which corpus."""
    found: dict[str, set[str]] = {}
    for one in evidence:
        if one.source:
            found.setdefault(one.corpus or corpus, set()).add(one.source)
    return found


def life_of(before: Entry | None, base_s: float, per_second: float, fresh: Freshness) -> float:
    """Return how long a new answer lives: a step from how long the one before it was given."""
    if before is None or before.lifetime_s is None:
        return base_s
    return freshness.adapted(before.lifetime_s, freshness.expected_life(per_second), fresh)
