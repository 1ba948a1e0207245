"""Every branch of a lookup up to the search, driven by scripts."""

from typing import Any

import pytest
from msgspec.structs import replace

from stampcache import flows
from stampcache.decide import Rules
from stampcache.effects import (
    Effect,
    Embed,
    Fence,
    Fetch,
    Nearest,
    Note,
    Purge,
    Remove,
    Renew,
    Suspect,
    Touch,
)
from stampcache.errors import (
    CodecError,
    EmbedderError,
    StampCacheError,
    StoreError,
    WindowError,
)
from stampcache.model import Candidate, Controls, Entry, Evidence, Level, Reason
from stampcache.outcome import Hit, Stale
from stampcache.testing import run_script
from stampcache.testing.contract import NOW
from tests.asking import (
    EMBEDDED,
    ME,
    NOT_STORED,
    ONE,
    RULES,
    STRICT,
    TWO,
    VECTOR,
    Script,
    ask,
    entry,
    living,
    miss,
    near,
    stale_script,
)

# -- the exact key ---------------------------------------------------------------------------------


def test_an_exact_hit_is_noted_and_served() -> None:
    kept = entry()
    hit = run_script(flows.lookup(ask()), [(Fetch, kept), (Touch, None)])
    assert isinstance(hit, Hit)
    assert (hit.level, hit.reason, hit.similarity) == (Level.EXACT, Reason.SAME_TOKENS, 1.0)
    assert hit.entry is kept
    assert hit.trace[-1].passed


def test_a_hit_that_cannot_be_noted_is_served_all_the_same() -> None:
    script: Script = [(Fetch, entry()), (Touch, StoreError("read-only")), (Note, None)]
    assert isinstance(run_script(flows.lookup(ask(rules=STRICT)), script), Hit)


def test_explaining_touches_nothing() -> None:
    assert isinstance(run_script(flows.lookup(ask(record=False)), [(Fetch, entry())]), Hit)
    script: Script = [*NOT_STORED, (Embed, EMBEDDED), (Nearest, [near()])]
    assert isinstance(run_script(flows.lookup(ask(record=False)), script), Hit)


@pytest.mark.parametrize(
    ("kept", "evidence", "reason"),
    [
        (entry(expires_at=NOW), None, Reason.EXPIRED),
        (entry(evidence=(ONE,)), (TWO,), Reason.EVIDENCE_CHANGED),
        (entry(), (TWO,), Reason.EVIDENCE_UNKNOWN),
    ],
)
def test_an_entry_that_no_longer_holds_is_stale(
    kept: Entry, evidence: tuple[Evidence, ...] | None, reason: Reason
) -> None:
    script: Script = [*stale_script(kept), (Nearest, [Candidate(kept, 1.0)])]
    stale = run_script(flows.lookup(ask(evidence=evidence)), script)
    assert isinstance(stale, Stale)
    assert (stale.reason, stale.entry, stale.identity) == (reason, kept, ME)
    assert (stale.fence, stale.norm) == (7, "2.000")
    assert stale.vector is VECTOR
    assert stale.trace[0].entry_id == kept.id


def test_a_stale_entry_stays_the_reason_whatever_the_neighbours_say() -> None:
    kept = entry(expires_at=NOW)
    script: Script = [*stale_script(kept), (Nearest, [near(similarity=0.1)])]
    stale = run_script(flows.lookup(ask()), script)
    assert isinstance(stale, Stale) and stale.reason is Reason.EXPIRED
    script = [(Fetch, kept), (Fence, 7), (Embed, EmbedderError("down")), (Note, None)]
    stale = run_script(flows.lookup(ask()), script)
    assert isinstance(stale, Stale) and stale.reason is Reason.EXPIRED


def test_a_stale_entry_does_not_hide_a_neighbour_that_holds() -> None:
    kept = entry(expires_at=NOW)
    script: Script = [*stale_script(kept), (Nearest, [near()]), (Touch, None)]
    hit = run_script(flows.lookup(ask()), script)
    assert isinstance(hit, Hit) and hit.level is Level.SEMANTIC


def test_a_damaged_entry_is_noted_and_missed() -> None:
    script: Script = [(Fetch, CodecError("checksum")), (Note, None), (Fence, 7)]
    outcome = miss(run_script(flows.lookup(ask(rules=Rules())), script))
    assert (outcome.reason, outcome.detail, outcome.fence) == (Reason.CORRUPT, "checksum", 7)
    script = [*script, (Embed, EMBEDDED), (Nearest, [near(similarity=0.5)])]
    assert miss(run_script(flows.lookup(ask()), script)).reason is Reason.CORRUPT


# -- something is down -----------------------------------------------------------------------------

DOWN = StoreError("down")


@pytest.mark.parametrize(
    "before", [[], [(Fetch, None)], [(Fetch, None), (Fence, 7), (Embed, EMBEDDED)]]
)
def test_a_store_that_is_down_is_a_miss(before: Script) -> None:
    failing = (Fetch, Fence, None, Nearest)[len(before)]
    assert failing is not None
    script: Script = [*before, (failing, DOWN)]
    outcome = miss(run_script(flows.lookup(ask()), [*script, (Note, None)]))
    assert (outcome.reason, outcome.detail) == (Reason.STORE_ERROR, "down")
    assert outcome.identity == ME
    assert outcome.trace[-1].step == "availability"
    with pytest.raises(StoreError, match="down"):
        run_script(flows.lookup(ask(rules=STRICT)), script)


def test_an_embedder_that_is_down_is_a_miss() -> None:
    script: Script = [*NOT_STORED, (Embed, EmbedderError("no GPU"))]
    outcome = miss(run_script(flows.lookup(ask()), [*script, (Note, None)]))
    assert (outcome.reason, outcome.detail, outcome.fence) == (Reason.EMBEDDER_ERROR, "no GPU", 7)
    assert outcome.vector is None
    with pytest.raises(EmbedderError):
        run_script(flows.lookup(ask(rules=STRICT)), script)


@pytest.mark.parametrize("rules", [RULES, STRICT])
def test_a_question_beyond_the_window_is_no_error(rules: Rules) -> None:
    script: Script = [*NOT_STORED, (Embed, WindowError("300 tokens"))]
    outcome = miss(run_script(flows.lookup(ask(rules=rules)), script))
    assert outcome.reason is Reason.BEYOND_WINDOW


@pytest.mark.parametrize("effect", [Fetch, Embed])
def test_a_wrong_setting_is_always_raised(effect: type[Effect[Any]]) -> None:
    script: Script = [(Fetch, None), (Fence, 7)] if effect is Embed else []
    with pytest.raises(StampCacheError, match="dimension"):
        run_script(flows.lookup(ask()), [*script, (effect, StampCacheError("dimension"))])


# -- stale answers, sliding lives, a changed embedder ----------------------------------------------


def test_where_stale_answers_are_allowed_no_other_one_is_looked_for() -> None:
    kept = entry(expires_at=NOW - 1)
    script: Script = [(Fetch, kept), (Fence, 7)]
    stale = run_script(flows.lookup(ask(allow_stale=True)), script)
    assert isinstance(stale, Stale)
    assert (stale.answer, stale.entry_id, stale.fence) == (kept.answer, kept.id, 7)


def test_allowing_stale_answers_changes_nothing_for_a_question_without_one() -> None:
    script: Script = [*NOT_STORED, (Embed, EMBEDDED), (Nearest, [])]
    assert miss(run_script(flows.lookup(ask(allow_stale=True)), script)).reason is Reason.NOT_FOUND


def test_a_store_that_fails_after_a_stale_answer_is_a_miss() -> None:
    script: Script = [
        (Fetch, entry(expires_at=NOW - 1)),
        (Fence, StoreError("down")),
        (Note, None),
    ]
    assert (
        miss(run_script(flows.lookup(ask(allow_stale=True)), script)).reason is Reason.STORE_ERROR
    )


def test_a_hit_lets_a_sliding_answer_live_longer() -> None:
    rules = replace(RULES, lifetimes=living(100.0, cap_s=1000.0).lifetimes)
    script: Script = [(Fetch, entry(expires_at=NOW + 50.0)), (Touch, None), (Renew, None)]
    assert isinstance(run_script(flows.lookup(ask(rules=rules)), script), Hit)


def test_a_hit_that_would_lengthen_a_life_by_little_writes_nothing() -> None:
    rules = replace(RULES, lifetimes=living(100.0, cap_s=1000.0).lifetimes)
    script: Script = [(Fetch, entry(expires_at=NOW + 100.0)), (Touch, None)]
    assert isinstance(run_script(flows.lookup(ask(rules=rules)), script), Hit)


def test_b15_a_norm_that_moved_betrays_the_embedder_and_nothing_is_compared() -> None:
    kept = entry(expires_at=NOW - 1)
    kept = replace(kept, signature=replace(kept.signature, norm="1.000"))
    script: Script = [*stale_script(kept), (Suspect, True)]
    stale = run_script(flows.lookup(ask()), script)
    assert isinstance(stale, Stale)
    assert stale.reason is Reason.EXPIRED
    assert stale.vector is None  # of another embedder: it must not be stored beside the old ones
    assert "its norm was 1.000 and is 2.000" in stale.trace[-1].detail


def test_the_same_norm_betrays_nothing() -> None:
    kept = entry(expires_at=NOW - 1)
    kept = replace(kept, signature=replace(kept.signature, norm="2.000"))
    assert isinstance(run_script(flows.lookup(ask()), [*stale_script(kept), (Nearest, [])]), Stale)


@pytest.mark.parametrize("strict", [False, True])
def test_an_embedder_that_cannot_be_looked_at_again_has_failed(strict: bool) -> None:
    kept = entry(expires_at=NOW - 1)
    kept = replace(kept, signature=replace(kept.signature, norm="1.000"))
    script: Script = [*stale_script(kept), (Suspect, EmbedderError("down"))]
    if strict:
        with pytest.raises(EmbedderError):
            run_script(flows.lookup(ask(rules=STRICT)), script)
    else:
        assert isinstance(run_script(flows.lookup(ask()), [*script, (Note, None)]), Stale)


def test_the_small_flows_pass_on_what_the_store_says() -> None:
    kept = entry()
    assert run_script(flows.remove(kept), [(Remove, True)]) is True
    assert run_script(flows.purge(NOW), [(Purge, 3)]) == 3


# -- told otherwise for this one request (ADR 0016) -------------------------------------------------


def told(**controls: Any) -> Controls:
    return Controls(**controls)


def test_who_is_told_not_to_look_up_asks_for_the_fence_and_nothing_else() -> None:
    asked = replace(ask(allow_stale=True), controls=told(no_cache=True, ttl_s=5.0), slot=2)
    outcome = miss(run_script(flows.lookup(asked), [(Fence, 7)]))
    assert (outcome.reason, outcome.fence, outcome.vector) == (Reason.NO_CACHE, 7, None)
    assert (outcome.controls, outcome.slot) == (asked.controls, 2)
    assert outcome.trace[-1].step == "controls" and not outcome.trace[-1].passed


def test_not_looking_up_in_a_store_that_is_down_is_a_miss_that_keeps_its_controls() -> None:
    asked = replace(ask(), controls=told(no_cache=True, no_store=True), slot=1)
    script: Script = [(Fence, StoreError("down"))]
    outcome = miss(run_script(flows.lookup(asked), [*script, (Note, None)]))
    assert outcome.reason is Reason.STORE_ERROR
    assert (outcome.controls, outcome.slot) == (asked.controls, 1)
    with pytest.raises(StoreError):
        run_script(flows.lookup(replace(asked, rules=STRICT)), script)


def test_other_controls_change_nothing_of_a_lookup_and_are_carried_on() -> None:
    asked = replace(ask(), controls=told(no_store=True, ttl_s=5.0, variety=3), slot=1)
    outcome = miss(run_script(flows.lookup(asked), [*NOT_STORED, (Embed, EMBEDDED), (Nearest, [])]))
    assert (outcome.reason, outcome.controls, outcome.slot) == (
        Reason.NOT_FOUND,
        asked.controls,
        1,
    )
    kept = entry()
    assert isinstance(run_script(flows.lookup(asked), [(Fetch, kept), (Touch, None)]), Hit)
