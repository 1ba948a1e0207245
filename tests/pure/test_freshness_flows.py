"""Every branch of doubt, of a verdict and of what follows, driven by scripts."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stampcache import Freshness, decide, flows
from stampcache.decide import Objection, Rules
from stampcache.effects import (
    AskJudge,
    Confirm,
    Early,
    Effect,
    Embed,
    EndDue,
    Fence,
    Fetch,
    Flow,
    Invalidate,
    Judged,
    Late,
    ListDue,
    Nearest,
    Note,
    Observe,
    ObservedOf,
    Paced,
    Proved,
    Put,
    Renew,
    Touch,
    VerdictOn,
)
from stampcache.errors import CodecError, StoreError
from stampcache.flows.freshness import doubted, examined, noted, observed_of, proved
from stampcache.freshness import STEP, Observed
from stampcache.journal import Listed, Noted, Observation, Verdict
from stampcache.model import (
    AS_SET,
    BY_JUDGE,
    EARLY,
    Answer,
    Controls,
    Entry,
    Evidence,
    Reason,
    Scope,
)
from stampcache.outcome import Hit, Miss, Stale, Stored
from stampcache.ports import Receipt
from stampcache.request import Request, Seam, Settings
from stampcache.testing import run_script
from stampcache.testing.contract import NOW, make_entry
from stampcache.ttl import DAY_S, HOUR_S, KINDS, Lifetime
from tests.asking import EMBEDDED, ME, NOT_STORED, RULES, Script, ask, entry, miss, near

FRESH = Freshness(limit=0.2, grace_s=60.0, deadline_s=3.0, beta=1.0)
COMMON = Rules(lifetimes={**KINDS, "": Lifetime(ttl_s=7 * DAY_S)}, freshness=FRESH, has_judge=True)
T = Scope(tenant="t")
CITED = (Evidence(corpus="c", source="a.md", text="a").sealed(),)
ON_PATH = replace(COMMON, freshness=replace(FRESH, on_path=True))


def doubt(*, rules: Rules = COMMON, now: float = NOW, record: bool = True) -> flows.Ask:
    return replace(ask(rules=rules), scope=T, now=now, record=record)


def late(may: bool, first: bool = True) -> Script:
    """Return what is asked for of an answer that is doubted, and off the path."""
    return [(Late, first), *[(ListDue, Listed(may, 9.0)), (Paced, None)] * first]


def kept(doubtful_at: float | None = NOW, **said: Any) -> Entry:
    made = make_entry("k", evidence=CITED, corpus="c", expires_at=NOW + 7 * DAY_S)
    return replace(made, doubtful_at=doubtful_at, **{"lifetime_s": 7 * DAY_S, **said})


def verdict(**said: Any) -> Verdict:
    given: dict[str, Any] = {"fresh": True, "reason": "r", "at": NOW, **said}
    return Verdict(entry_id="p/k", question="q", judge="j", **given)


def steps(flow: Flow[Any], *answers: object) -> list[Effect[Any]]:
    """Drive a flow by answers to whatever it asks for; return what it asked for."""
    asked: list[Effect[Any]] = []
    pending = list(answers)
    try:
        asked.append(next(flow))
        while True:
            answer = pending.pop(0)
            if isinstance(answer, Exception):
                asked.append(flow.throw(answer))
            else:
                asked.append(flow.send(answer))
    except StopIteration:
        assert not pending
        return asked


# -- doubt -----------------------------------------------------------------------------------------


def test_what_is_not_doubted_asks_for_nothing() -> None:
    assert run_script(doubted(kept(None), doubt()), []) is None
    assert run_script(doubted(kept(NOW + 9.0), doubt(record=False)), []) is None
    assert run_script(doubted(kept(), doubt(rules=replace(COMMON, freshness=None))), []) is None


def test_a_doubted_answer_is_served_once_in_its_grace() -> None:
    assert run_script(doubted(kept(), doubt()), late(True)) is None
    assert run_script(doubted(kept(), doubt(now=NOW + 59.9)), late(True)) is None


@pytest.mark.parametrize(
    ("script", "later"),
    [(late(False), 0.0), (late(True), 60.0), (late(True), 1e6), (late(True, first=False), 0.0)],
)
def test_after_that_it_is_stale(script: Script, later: float) -> None:
    finding = run_script(doubted(kept(), doubt(now=NOW + later)), script)
    assert finding == Objection(Reason.DOUBTFUL, f"for {later:.0f} s its sources may have changed")


@pytest.mark.parametrize(
    ("grace_s", "share", "said", "most_s"),
    [
        (0.0, 0.5, {}, 0.0),
        (DAY_S, 0.0, {}, 0.0),
        (DAY_S, 0.5, {"lifetime_s": HOUR_S}, 0.5 * HOUR_S),
        (DAY_S, 0.5, {"lifetime_s": None, "expires_at": NOW + HOUR_S}, 0.5 * HOUR_S),
        (DAY_S, 0.5, {"lifetime_s": None, "expires_at": None}, DAY_S),
        (DAY_S, 0.5, {}, DAY_S),
    ],
)
def test_the_grace_is_a_share_of_the_life_and_bounded(
    grace_s: float, share: float, said: dict[str, Any], most_s: float
) -> None:
    fresh = replace(FRESH, grace_s=grace_s, grace_share=share)
    old = kept(NOW, **{"created_at": NOW, **said})
    rules = replace(COMMON, freshness=fresh)
    ended = run_script(doubted(old, doubt(rules=rules, now=NOW + most_s)), late(True))
    assert ended is not None and ended.reason is Reason.DOUBTFUL
    if most_s:
        before = doubt(rules=rules, now=NOW + most_s - 1.0)
        assert run_script(doubted(old, before), late(True)) is None


def test_explaining_lists_nothing_and_asks_nobody() -> None:
    for rules in (COMMON, ON_PATH):
        finding = run_script(doubted(kept(), doubt(rules=rules, record=False)), [])
        assert finding is not None and finding.reason is Reason.DOUBTFUL
    assert run_script(doubted(kept(NOW + 0.1), doubt(record=False)), []) is None


def test_near_its_doubt_an_answer_is_listed_early_by_chance() -> None:
    soon = kept(NOW + 10.0, created_at=NOW - 90.0)
    asked = steps(doubted(soon, doubt()), True, Listed(True, 7.0), None)
    assert asked == [Early(soon, NOW), ListDue(soon, T, early=True), Paced(7.0)]
    assert steps(doubted(soon, doubt()), False) == asked[:1]


def test_what_cannot_be_listed_is_counted_and_not_served_if_it_is_doubted() -> None:
    down = StoreError("down")
    soon = kept(NOW + 1.0, created_at=NOW - 99.0)
    early: Script = [(Early, True), (ListDue, down), (Note, None)]
    assert run_script(doubted(soon, doubt()), early) is None
    finding = run_script(doubted(kept(), doubt()), [(Late, True), (ListDue, down), (Note, None)])
    assert finding is not None and finding.reason is Reason.DOUBTFUL
    strict = doubt(rules=replace(COMMON, strict=True))
    with pytest.raises(StoreError):
        run_script(doubted(kept(), strict), [(Late, True), (ListDue, down)])


def test_what_is_proved_is_taken_from_the_list() -> None:
    off = Noted("p/k", kept().place, T, NOW, early=False)
    assert steps(proved(kept(), doubt()), True, None) == [
        Proved(kept()),
        EndDue(off, "", done=True),
    ]
    assert steps(proved(kept(), doubt()), False) == [Proved(kept())]
    assert steps(proved(kept(None), doubt())) == []
    script: Script = [(Proved, True), (EndDue, StoreError("down")), (Note, None)]
    assert run_script(proved(kept(), doubt()), script) is None


def test_on_the_path_the_judge_is_asked_at_once() -> None:
    script: Script = [(ObservedOf, {}), (VerdictOn, None), (AskJudge, verdict()), (Judged, None)]
    served = [*script, (Confirm, True)]
    assert run_script(doubted(kept(), doubt(rules=ON_PATH)), served) is None
    script[2] = (AskJudge, verdict(fresh=False, reason="it moved"))
    finding = run_script(doubted(kept(), doubt(rules=ON_PATH)), [*script, (Invalidate, 1)])
    assert finding == Objection(Reason.JUDGED, "not fresh: it moved")


def test_on_the_path_a_failure_is_not_fresh_and_leaves_the_entry() -> None:
    failed = verdict(fresh=False, reason="", failure="the deadline passed")
    script: Script = [(ObservedOf, {}), (VerdictOn, None), (AskJudge, failed), (Judged, None)]
    finding = run_script(doubted(kept(), doubt(rules=ON_PATH)), script)
    assert finding == Objection(Reason.JUDGED, "not fresh: the deadline passed")


def test_on_the_path_without_a_judge_is_off_the_path() -> None:
    without = doubt(rules=replace(ON_PATH, has_judge=False))
    assert run_script(doubted(kept(), without), late(True)) is None


# -- in a lookup -----------------------------------------------------------------------------------


@pytest.mark.parametrize("flow", [flows.lookup, flows.exact])
def test_a_hit_far_from_its_doubt_asks_for_no_more_than_any_hit(flow: Any) -> None:
    far = kept(NOW + EARLY * 100.0 + 0.1, created_at=NOW - (1.0 - EARLY) * 100.0 + 0.1)
    script: Script = [(Fetch, far), (Touch, None)]
    assert isinstance(run_script(flow(ask(rules=COMMON)), script), Hit)


@pytest.mark.parametrize("flow", [flows.lookup, flows.exact])
def test_a_hit_near_its_doubt_is_listed_by_chance(flow: Any) -> None:
    near_it = kept(NOW + 9.0, created_at=NOW - 99.0)
    script: Script = [(Fetch, near_it), (Early, True), (ListDue, Listed(True)), (Paced, None)]
    assert isinstance(run_script(flow(ask(rules=COMMON)), [*script, (Touch, None)]), Hit)


def test_a_doubted_entry_is_stale_and_nothing_is_lost_of_it() -> None:
    doubtful = kept(NOW - 100.0)
    found = run_script(
        flows.lookup(ask(rules=replace(RULES, freshness=FRESH), allow_stale=True)),
        [(Fetch, doubtful), (Late, False), (Fence, 7)],
    )
    assert isinstance(found, Stale)
    assert (found.reason, found.entry, found.fence) == (Reason.DOUBTFUL, doubtful, 7)


def test_who_looks_up_again_does_not_ask_the_judge_twice() -> None:
    assert run_script(flows.exact(ask(rules=ON_PATH)), [(Fetch, kept())]) is None
    assert run_script(flows.exact(ask(rules=COMMON)), [(Fetch, kept()), (Late, False)]) is None


def test_what_was_just_proved_is_not_doubted() -> None:
    grounded = replace(kept(NOW - 9e9), signature=entry(evidence=CITED).signature)
    asked = ask(rules=COMMON, evidence=CITED)
    for flow in (flows.lookup, flows.exact):
        script: Script = [(Fetch, grounded), (Proved, False), (Touch, None)]
        assert isinstance(run_script(flow(asked), script), Hit)
        explained = replace(asked, record=False)
        assert isinstance(run_script(flow(explained), [(Fetch, grounded)]), Hit)


def test_another_wording_is_doubted_too() -> None:
    rules = replace(RULES, freshness=FRESH)
    candidate = near()
    doubtful = replace(candidate, entry=replace(candidate.entry, doubtful_at=NOW - 1.0))
    script: Script = [*NOT_STORED, (Embed, EMBEDDED), (Nearest, [doubtful])]
    found = miss(run_script(flows.lookup(ask(rules=rules)), [*script, (Late, False)]))
    assert found.reason is Reason.DOUBTFUL
    served = run_script(flows.lookup(ask(rules=rules)), [*script, *late(True), (Touch, None)])
    assert isinstance(served, Hit)
    far = replace(candidate, entry=replace(candidate.entry, doubtful_at=NOW + DAY_S))
    script[-1] = (Nearest, [far])
    assert isinstance(run_script(flows.lookup(ask(rules=rules)), [*script, (Touch, None)]), Hit)


# -- a verdict -------------------------------------------------------------------------------------


def test_the_judge_is_told_what_was_seen_and_since_when() -> None:
    seen = {"a.md": Observed(2, 4 * HOUR_S)}
    asked = steps(
        examined(
            kept(confirmed_at=NOW - 50.0, created_at=NOW - 90.0, kind="news"), COMMON, NOW + 9.0
        ),
        seen,
        verdict(),
        None,
        False,
    )
    assert [type(one) for one in asked] == [ObservedOf, AskJudge, Judged, Confirm]
    facts = asked[1].facts  # type: ignore[attr-defined]  # the type says less than the object
    assert (facts.updated_at, facts.now, facts.entry.kind) == (NOW - 90.0, NOW + 9.0, "news")
    assert facts.observed.per_hour == pytest.approx(0.5)


def test_what_does_not_hold_any_more_is_not_served_whatever_was_said() -> None:
    script: Script = [(ObservedOf, {}), (VerdictOn, None), (AskJudge, verdict()), (Judged, None)]
    said = run_script(examined(kept(), COMMON, NOW), [*script, (Confirm, False)])
    assert not said.fresh
    assert said.failure == "it changed while the judge was asked"


def test_a_judge_that_was_not_asked_leaves_no_verdict() -> None:
    unasked = verdict(fresh=False, failure="the budget of this minute is spent", asked=False)
    script: Script = [(ObservedOf, {}), (VerdictOn, None), (AskJudge, unasked)]
    said = run_script(examined(kept(), COMMON, NOW), script)
    assert (said.fresh, said.failure) == (False, unasked.failure)


def test_a_kind_that_was_named_once_is_told_from_then_on() -> None:
    named = verdict(kind="price")
    asked = steps(examined(kept(), COMMON, NOW), {}, named, verdict(), None, False)
    assert asked[2].facts.entry.kind == "price"  # type: ignore[attr-defined]  # the type says less than the object
    kept_kind, confirmed = asked[-2:]
    assert isinstance(kept_kind, Judged) and kept_kind.verdict.kind == "price"
    assert isinstance(confirmed, Confirm) and confirmed.doubtful_at is not None
    assert confirmed.doubtful_at - NOW == pytest.approx(0.2231 * HOUR_S, rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "named", "hours"),
    [("", "", 7 * 24), ("price", "", 1), ("", "news", 0.25), ("no longer known", "", 7 * 24)],
)
def test_a_confirmed_answer_is_doubted_again_as_its_kind_says(
    kind: str, named: str, hours: float
) -> None:
    flow = examined(kept(kind=kind, lifetime_s=None), COMMON, NOW)
    known: Sequence[object] = () if kind else (None,)
    asked = steps(flow, {}, *known, verdict(kind=named, at=NOW + 2.0), None, True)
    confirmed = next(one for one in asked if isinstance(one, Confirm))
    assert confirmed.at == NOW + 2.0
    assert confirmed.doubtful_at is not None
    assert confirmed.doubtful_at - confirmed.at == pytest.approx(0.2231 * hours * HOUR_S, rel=1e-3)


def test_a_verdict_against_it_marks_this_entry_alone_and_says_why() -> None:
    said = verdict(fresh=False, reason="the price moved")
    asked = steps(examined(kept(), COMMON, NOW), {}, None, said, None, 1)
    marked = asked[-1]
    assert isinstance(marked, Invalidate)
    assert marked.selector.entry == "p/k"
    assert str(marked.selector) == f"{BY_JUDGE}: the price moved"
    assert (marked.selector.source, marked.selector.scope) == (None, None)


@pytest.mark.parametrize("broken", range(5))
def test_whatever_fails_in_the_store_is_a_verdict_against_it(broken: int) -> None:
    answers: list[object] = [{}, None, verdict(), None, True]
    answers[broken] = StoreError("down")
    flow = examined(kept(), COMMON, NOW)
    script: Script = list(
        zip((ObservedOf, VerdictOn, AskJudge, Judged, Confirm), answers, strict=True)
    )
    said = run_script(flow, [*script[: broken + 1], (Note, None)])
    assert not said.fresh
    assert said.failure == "the store failed: down"


@pytest.mark.parametrize(
    ("later_s", "seen", "until_s"),
    [
        (0.0, Observed(), None),  # nothing says that it lives longer than it was given
        (6 * DAY_S, Observed(), (6 + 7.0) * DAY_S),
        (6 * DAY_S, Observed(99, 99 * DAY_S), (6 + 5.25) * DAY_S),
        (6 * DAY_S, Observed(0, 900 * DAY_S), (6 + 8.75) * DAY_S),
        (28 * DAY_S, Observed(0, 900 * DAY_S), 30 * DAY_S),  # the cap, counted from its making
        (40 * DAY_S, Observed(0, 900 * DAY_S), None),
    ],
)
def test_a_confirmed_answer_lives_on_by_a_step(
    later_s: float, seen: Observed, until_s: float | None
) -> None:
    old = kept(expires_at=NOW + max(7 * DAY_S, later_s + 1.0), kind="policy")
    said = verdict(at=NOW + later_s)
    flow = examined(old, COMMON, NOW + later_s)
    asked = steps(flow, {"a.md": seen}, said, None, True, *[None] * (until_s is not None))
    renewed = [one.expires_at - NOW for one in asked if isinstance(one, Renew)]
    assert renewed == ([] if until_s is None else [pytest.approx(until_s)])


@given(
    lifetime_s=st.floats(60.0, 30 * DAY_S),
    later_s=st.floats(0.0, 60 * DAY_S),
    changes=st.integers(0, 99),
    looked_s=st.floats(0.0, 900 * DAY_S),
)
def test_no_verdict_adds_more_than_a_step_or_goes_past_the_cap(
    lifetime_s: float, later_s: float, changes: int, looked_s: float
) -> None:
    old = kept(expires_at=NOW + lifetime_s, lifetime_s=lifetime_s, kind="policy")
    seen = {"a.md": Observed(changes, looked_s)}
    flow = examined(old, COMMON, NOW + later_s)
    answers: list[object] = [seen, verdict(at=NOW + later_s), None, True]
    asked: list[Effect[Any]] = [next(flow)]
    try:
        while True:
            asked.append(flow.send(answers.pop(0) if answers else None))
    except StopIteration:
        pass
    for one in asked:
        if isinstance(one, Renew):
            assert one.expires_at > NOW + lifetime_s
            assert one.expires_at <= NOW + later_s + lifetime_s * (1 + STEP) + 1e-3
            assert one.expires_at <= NOW + FRESH.cap_s


@pytest.mark.parametrize("said", [{"expires_at": None}, {"lifetime_s": None}])
def test_a_life_that_was_told_is_not_made_longer(said: dict[str, None]) -> None:
    old = kept(kind="policy", **said)
    asked = steps(examined(old, COMMON, NOW), {}, verdict(), None, True)
    assert isinstance(asked[-1], Confirm)


@given(
    asked_s=st.floats(0.0, 100.0),
    doubt_s=st.none() | st.floats(-10.0, 300.0),
)
def test_being_asked_for_lets_nothing_live_beyond_its_doubt(
    asked_s: float, doubt_s: float | None
) -> None:
    """A sliding lifetime ends where the doubt begins, and slides as ever before that."""
    sliding = Rules(lifetimes={"": Lifetime(ttl_s=100.0, cap_s=200.0)})
    popular = kept(None, expires_at=NOW + 95.0)
    free = decide.renewal(popular, NOW + asked_s, sliding)
    doubtful = replace(popular, doubtful_at=None if doubt_s is None else NOW + doubt_s)
    until = decide.renewal(doubtful, NOW + asked_s, sliding)
    if doubt_s is None or (free is not None and free <= NOW + doubt_s):
        assert until == free
    elif until is not None:
        assert free is not None and NOW + 95.0 < until == NOW + doubt_s < free


# -- observations ----------------------------------------------------------------------------------

B = Evidence(corpus="c", source="b.md", text="b").sealed()
A_AGAIN = Evidence(corpus="c", source="a.md", text="a, edited").sealed()


def seen_of(old: Entry | None, new: Sequence[Evidence] | None) -> list[Observation]:
    asked = steps(noted("c", old, new, NOW + 80.0), *[None] * (new is not None and new != ()))
    return [seen for one in asked if isinstance(one, Observe) for seen in one.observations]


def test_a_first_answer_says_only_that_there_are_sources() -> None:
    assert seen_of(None, [*CITED, B]) == [
        Observation("c", "a.md", False, 0.0),
        Observation("c", "b.md", False, 0.0),
    ]
    assert seen_of(None, None) == []
    assert seen_of(None, ()) == []
    assert steps(noted("c", None, [Evidence(text="x")], NOW)) == []


def test_an_answer_made_anew_says_what_stayed_and_what_changed() -> None:
    assert seen_of(kept(), CITED) == [Observation("c", "a.md", False, 80.0)]
    assert seen_of(kept(), [A_AGAIN]) == [Observation("c", "a.md", True, 40.0)]
    assert seen_of(kept(), [B]) == [
        Observation("c", "a.md", True, 40.0),
        Observation("c", "b.md", False, 0.0),
    ]


def test_one_changed_chunk_is_a_changed_source() -> None:
    both = kept(evidence=(*CITED, A_AGAIN))
    for new in ([A_AGAIN], list(CITED)):
        assert seen_of(both, new) == [Observation("c", "a.md", True, 40.0)]
    assert seen_of(both, [A_AGAIN, *CITED]) == [Observation("c", "a.md", False, 80.0)]


def test_what_was_announced_is_not_counted_again_but_a_judge_only_guesses() -> None:
    announced = kept(invalidated="source 'a.md' changed")
    assert seen_of(announced, [A_AGAIN]) == [Observation("c", "a.md", False, 0.0)]
    judged = kept(invalidated=f"{BY_JUDGE}: r")
    assert seen_of(judged, CITED) == [Observation("c", "a.md", False, 80.0)]


def test_what_has_no_digest_cannot_be_compared() -> None:
    ids_only = (Evidence(corpus="c", source="a.md", chunk="1"),)
    assert seen_of(kept(evidence=ids_only), CITED) == [Observation("c", "a.md", False, 0.0)]
    assert seen_of(kept(evidence=None), CITED) == [Observation("c", "a.md", False, 0.0)]


def test_a_clock_that_went_back_looked_at_nothing() -> None:
    asked = steps(noted("c", kept(created_at=NOW + 99.0), CITED, NOW), None)
    assert asked == [Observe([Observation("c", "a.md", False, 0.0)], NOW)]


def test_each_corpus_is_asked_for_its_own_sources() -> None:
    cited = [
        Evidence(source="x", text="1"),
        Evidence(corpus="d", source="z", text="2"),
        Evidence(corpus="d", source="y", text="3"),
        Evidence(text="no source"),
    ]
    asked = steps(observed_of("c", cited), {"x": Observed(1, 10.0)}, {"y": Observed(1, 10.0)})
    assert asked == [ObservedOf("c", ("x",)), ObservedOf("d", ("y", "z"))]
    assert run_script(observed_of("c", None), []) == Observed()


# -- in an update ----------------------------------------------------------------------------------


def aged(
    outcome: Stale | Miss | None,
    *script: tuple[type[Effect[Any]], object],
    request: Request | None = None,
    rules: Rules = COMMON,
    controls: Controls = AS_SET,
    evidence: tuple[Evidence, ...] | None = CITED,
) -> Entry:
    """Store an answer at NOW; return the entry."""
    fill = flows.Fill(
        request=request or Request(question="What is a map?"),
        identity=ME,
        answer=Answer(text="answer"),
        evidence=evidence,
        stamps=make_entry("k").stamps,
        entry_id="e",
        rules=rules,
        now=NOW,
        outcome=outcome,
        controls=controls,
        corpus="c",
    )
    done = run_script(flows.update(fill), list(script))
    assert isinstance(done, Stored)
    return done.entry


FIRST = Miss(reason=Reason.NOT_FOUND)
PUT: tuple[type[Effect[Any]], object] = (Put, Receipt(stored=True))
UNSEEN: tuple[type[Effect[Any]], object] = (ObservedOf, {})
OBSERVE: tuple[type[Effect[Any]], object] = (Observe, None)


def test_a_new_answer_is_doubted_as_its_kind_and_its_sources_say() -> None:
    made = aged(FIRST, OBSERVE, UNSEEN, PUT)
    assert made.doubtful_at == pytest.approx(NOW + 0.22314 * 7 * DAY_S, rel=1e-6)
    assert made.lifetime_s == 7 * DAY_S
    seen = {"a.md": Observed(11, 10 * HOUR_S)}
    made = aged(FIRST, OBSERVE, (ObservedOf, seen), PUT)
    assert made.doubtful_at is not None
    assert made.doubtful_at - NOW == pytest.approx(0.22314 * HOUR_S, rel=0.01)


def test_a_kind_is_guessed_by_rule_to_shorten_only() -> None:
    price = Request(question="How much is a map?")
    assert aged(FIRST, OBSERVE, UNSEEN, PUT, request=price).kind == "price"
    said = Request(question="How much is a map?", kind="static")
    assert aged(FIRST, OBSERVE, UNSEEN, PUT, request=said).kind == "static"
    off = replace(COMMON, freshness=replace(FRESH, guess_kinds=False))
    assert aged(FIRST, OBSERVE, UNSEEN, PUT, request=price, rules=off).kind == ""
    none = replace(COMMON, freshness=None)
    assert aged(FIRST, PUT, request=price, rules=none).kind == ""


def test_the_next_answer_lives_a_step_longer_or_shorter() -> None:
    old = kept(lifetime_s=10 * HOUR_S)
    stale = Stale(reason=Reason.EXPIRED, entry=old)
    often = {"a.md": Observed(99, 99 * HOUR_S)}
    made = aged(stale, OBSERVE, (ObservedOf, often), PUT)
    assert made.lifetime_s == 7.5 * HOUR_S
    assert made.expires_at is not None
    assert NOW + 7.5 * HOUR_S * 0.95 <= made.expires_at <= NOW + 7.5 * HOUR_S
    never = {"a.md": Observed(0, 999 * DAY_S)}
    assert aged(stale, OBSERVE, (ObservedOf, never), PUT).lifetime_s == 12.5 * HOUR_S


def test_one_made_ahead_of_time_takes_the_place_of_the_one_that_is_there() -> None:
    ahead = Miss(reason=Reason.NO_CACHE)
    old = kept(lifetime_s=10 * HOUR_S)
    made = aged(ahead, (Fetch, old), OBSERVE, UNSEEN, PUT)
    assert made.lifetime_s == 12.5 * HOUR_S
    assert aged(ahead, (Fetch, None), OBSERVE, UNSEEN, PUT).lifetime_s == 7 * DAY_S
    damaged: Script = [(Fetch, CodecError("damaged")), (Note, None), OBSERVE, UNSEEN, PUT]
    assert aged(ahead, *damaged).lifetime_s == 7 * DAY_S


def test_a_told_life_and_one_of_nothing_found_do_not_adapt() -> None:
    stale = Stale(reason=Reason.EXPIRED, entry=kept(lifetime_s=10 * HOUR_S))
    told = aged(stale, OBSERVE, UNSEEN, PUT, controls=Controls(ttl_s=50.0))
    assert told.lifetime_s is None and told.expires_at is not None
    assert told.expires_at <= NOW + 50.0
    nothing = aged(stale, OBSERVE, PUT, evidence=())
    assert nothing.lifetime_s is None and nothing.expires_at is not None
    assert nothing.expires_at <= NOW + 300.0
    after = Stale(reason=Reason.EXPIRED, entry=nothing)
    assert aged(after, OBSERVE, UNSEEN, PUT).lifetime_s == 7 * DAY_S


def test_endless_lives_are_doubted_by_what_was_seen_alone() -> None:
    endless = replace(COMMON, lifetimes={"": Lifetime(ttl_s=None)})
    made = aged(FIRST, OBSERVE, UNSEEN, PUT, rules=endless)
    assert (made.doubtful_at, made.expires_at) == (None, None)
    seen = {"a.md": Observed(1, 10 * HOUR_S)}
    made = aged(FIRST, OBSERVE, (ObservedOf, seen), PUT, rules=endless)
    assert made.doubtful_at is not None and made.expires_at is None


def test_what_is_proved_at_each_hit_is_never_doubted_but_observed() -> None:
    grounded = Request(question="What is a map?", evidence=CITED)
    assert aged(FIRST, OBSERVE, PUT, request=grounded).doubtful_at is None


def test_what_an_embedder_makes_of_a_text_does_not_change_by_itself() -> None:
    vector = Request(question="What is a map?", settings=Settings(seam=Seam.VECTOR))
    assert aged(FIRST, PUT, request=vector, evidence=None).doubtful_at is None


def test_what_cannot_be_noted_is_stored_all_the_same() -> None:
    down: Script = [(Observe, StoreError("down")), (Note, None), UNSEEN, PUT]
    assert aged(FIRST, *down).doubtful_at is not None


def test_without_an_outcome_nothing_is_compared() -> None:
    made = aged(None, (Fence, 1), UNSEEN, PUT)
    assert made.doubtful_at is not None
