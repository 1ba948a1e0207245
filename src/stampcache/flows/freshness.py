"""Is a valid answer still fresh: doubt, the judge, and what follows from a verdict (pure; ADR 0022).

Nothing here runs for an answer that `recheck` or a watch has just proved, nor for one that is far from
its doubt: that is a comparison of two numbers in `flows.lookup`.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from stampcache import freshness
from stampcache.decide import Objection, Rules
from stampcache.effects import (
    AskJudge,
    Confirm,
    Early,
    EndDue,
    Flow,
    Invalidate,
    Judged,
    Late,
    ListDue,
    Note,
    Observe,
    ObservedOf,
    Paced,
    Proved,
    Renew,
    VerdictOn,
)
from stampcache.errors import StoreError
from stampcache.flows.asking import Ask
from stampcache.freshness import Freshness, Observed
from stampcache.journal import Noted, Observation, Verdict
from stampcache.model import BY_JUDGE, Entry, Evidence, Reason, Selector
from stampcache.ports import Facts


def doubted(entry: Entry, ask: Ask) -> Flow[Objection | None]:
    """Say why a valid entry is not served now, since it may have changed; ``None``: it is served."""
    fresh = ask.rules.freshness
    ends_at = entry.doubtful_at
    if fresh is None or ends_at is None:
        return None
    now = ask.now
    if now < ends_at:
        if ask.record and (yield Early(entry, now)):  # no detour: many a hit's
            yield from _listed(entry, ask, early=True)
        return None
    finding = Objection(Reason.DOUBTFUL, f"for {now - ends_at:.0f} s its sources may have changed")
    if not ask.record:
        return finding
    if fresh.on_path and ask.rules.has_judge:
        verdict = yield from examined(entry, ask.rules, now)
        return None if verdict.fresh else Objection(Reason.JUDGED, str(verdict))
    may = (yield from Late(entry)) and (yield from _listed(entry, ask, early=False))
    life_s = entry.lifetime_s
    if life_s is None and entry.expires_at is not None:
        life_s = entry.expires_at - entry.created_at
    return None if may and now < ends_at + freshness.grace_of(fresh, life_s) else finding


def _listed(entry: Entry, ask: Ask, *, early: bool) -> Flow[bool]:
    """Put an entry on the list; tell whether it may be served once more, if it is doubted."""
    try:
        listed = yield from ListDue(entry, ask.scope, early)
    except StoreError as error:
        if ask.rules.strict:
            raise
        yield from Note("due", error)
        return False
    yield from Paced(listed.period_s)
    return listed.may


def proved(entry: Entry, ask: Ask) -> Flow[None]:
    """Take an entry from the list whose evidence has just been compared: no judge need be asked."""
    at = entry.doubtful_at
    if at is None or not (yield from Proved(entry)):
        return
    noted = Noted(entry.id, entry.place, ask.scope, at, early=False)
    try:
        yield from EndDue(noted, "", done=True)
    except StoreError as error:
        yield from Note("due", error)


def examined(entry: Entry, rules: Rules, now: float) -> Flow[Verdict]:
    """Ask the judge about an entry, and do what follows; whatever fails is a verdict against it."""
    fresh = rules.freshness
    assert fresh is not None
    try:
        observed = yield from observed_of(entry.corpus, entry.evidence)
        if not entry.kind:  # the judge may have named it before, and need not again
            before = yield from VerdictOn(entry.id)
            entry = replace(entry, kind=before.kind) if before and before.kind else entry
        # what a judge found since is a guess, which must not become the ground of the next one
        facts = Facts(entry=entry, updated_at=entry.created_at, now=now, observed=observed)
        verdict = replace((yield from AskJudge(facts)), tenant=entry.identity.tenant)
        if entry.kind and not verdict.kind:
            verdict = replace(verdict, kind=entry.kind)
        if verdict.asked:
            yield from Judged(verdict)
        if verdict.fresh:
            if not (yield from _confirmed(entry, rules, fresh, observed, verdict)):
                return _against(entry, now, "it changed while the judge was asked")
        elif not verdict.failure:
            because = f"{BY_JUDGE}: {verdict.reason}"
            yield from Invalidate(Selector(entry=entry.id, because=because))
    except StoreError as error:
        yield from Note("judge", error)
        return _against(entry, now, f"the store failed: {error}")
    return verdict


def _against(entry: Entry, now: float, failure: str) -> Verdict:
    """Return the verdict that an entry is not served, whatever a judge may have said."""
    return Verdict(
        entry_id=entry.id,
        question=entry.question,
        fresh=False,
        reason="",
        at=now,
        failure=failure,
        asked=False,
    )


def _confirmed(
    entry: Entry, rules: Rules, fresh: Freshness, observed: Observed, verdict: Verdict
) -> Flow[bool]:
    """Let an entry live on: doubted again as late as its sources allow, and never past its bounds.

    Tell whether it is still there and holds.
    """
    doubtful_at = _doubted_at(verdict.kind, rules, fresh, observed, verdict.at)
    if not (yield from Confirm(entry, verdict.at, doubtful_at)):
        return False
    if entry.expires_at is not None and entry.lifetime_s is not None:
        per_second = _rate(verdict.kind, rules, observed)
        longer = freshness.adapted(entry.lifetime_s, freshness.expected_life(per_second), fresh)
        until = min(verdict.at + longer, entry.created_at + fresh.cap_s)
        if until > entry.expires_at:
            yield from Renew(entry, until)
    return True


def _rate(kind: str, rules: Rules, observed: Observed) -> float:
    known = rules.lifetime(kind if kind in rules.lifetimes else "")
    return freshness.rate(observed, known.ttl_s)


def _doubted_at(
    kind: str, rules: Rules, fresh: Freshness, observed: Observed, since: float
) -> float | None:
    after = freshness.doubted_after(_rate(kind, rules, observed), fresh.limit)
    return None if after is None else since + after


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
