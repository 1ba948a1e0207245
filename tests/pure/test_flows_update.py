"""Every branch of an update and of the deleting flows, driven by scripts."""

from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from stampcache import decide, flows
from stampcache.calibration import Calibration
from stampcache.decide import Rules
from stampcache.effects import Clear, Effect, Embed, Fence, Fenced, Invalidate, Note, Put, ReportBad
from stampcache.errors import EmbedderError, StoreError, WindowError
from stampcache.flows import Fill
from stampcache.model import Answer, Controls, Evidence, Identity, Reason, Selector, Stamps
from stampcache.outcome import Miss, Refused, Stale, Stored, Update
from stampcache.ports import Embedded, Receipt
from stampcache.request import Request
from stampcache.signature import evidence_digest
from stampcache.testing import run_script
from stampcache.testing.contract import NOW, make_entry
from stampcache.ttl import DAY_S, Lifetime

Script = list[tuple[type[Effect[Any]], object]]
ME = Identity("p", "k", "s", "t")
VECTOR = np.asarray([1, 0], np.float32)
RULES = Rules(semantic=True, calibration=Calibration(0.9))
STRICT = msgspec.structs.replace(RULES, strict=True)
CHUNK = Evidence(corpus="c", source="s.md", text="long text", metadata={"p": 1})
MISS = Miss(reason=Reason.NOT_FOUND, identity=ME, vector=VECTOR, norm="2.000", fence=7)
STORED = (Put, Receipt(stored=True))


def fill(
    *,
    text: str = "An image of land.",
    evidence: tuple[Evidence, ...] | None = (CHUNK,),
    rules: Rules = RULES,
    outcome: Stale | Miss | None = MISS,
    question: str = "What is a map?",
) -> Fill:
    return Fill(
        request=Request(question=question, prompt=None if question else "p"),
        identity=ME,
        answer=Answer(text=text),
        evidence=evidence,
        stamps=Stamps(model="m"),
        entry_id="e1",
        rules=rules,
        now=NOW + 0.7,
        outcome=outcome,
    )


def stored(update: Update) -> Stored:
    assert isinstance(update, Stored)
    return update


def refused(update: Update) -> Reason:
    assert isinstance(update, Refused)
    return update.reason


def test_an_update_after_a_miss_embeds_and_asks_for_nothing_again() -> None:
    done = stored(run_script(flows.update(fill()), [(Put, Receipt(stored=True, evicted=2))]))
    assert done.evicted == 2
    entry = done.entry
    assert (entry.id, entry.identity, entry.stamps) == ("e1", ME, Stamps(model="m"))
    assert entry.signature.norm == "2.000"
    assert entry.signature.evidence == evidence_digest([CHUNK])
    assert entry.signature.created == int(NOW)
    assert entry.created_at == NOW + 0.7
    assert entry.evidence == (CHUNK.sealed(),)
    assert entry.evidence is not None and entry.evidence[0].text == ""


def test_what_is_put_carries_the_fence_and_the_vector_of_the_miss() -> None:
    for outcome in (MISS, Stale(reason=Reason.EXPIRED, entry=make_entry("k"), fence=9)):
        flow = flows.update(fill(outcome=outcome))
        put = next(flow)
        assert isinstance(put, Put)
        assert put.fence == outcome.fence
        assert put.vector is outcome.vector
        flow.close()


def test_an_update_on_its_own_embeds_and_asks_for_the_fence() -> None:
    script: Script = [(Embed, Embedded(VECTOR, "")), (Fence, 3), STORED]
    assert stored(run_script(flows.update(fill(outcome=None)), script)).entry.signature.norm == ""


@pytest.mark.parametrize(
    ("rules", "question"), [(Rules(), "q"), (Rules(semantic=True), "q"), (RULES, "")]
)
def test_what_is_never_compared_is_stored_without_a_vector(rules: Rules, question: str) -> None:
    asked = fill(outcome=None, rules=rules, question=question)
    stored(run_script(flows.update(asked), [(Fence, 3), STORED]))


def test_an_answer_that_must_not_be_stored_costs_nothing() -> None:
    assert refused(run_script(flows.update(fill(text=" ", outcome=None)), [])) is Reason.EMPTY


@pytest.mark.parametrize(("change", "expected"), [("", Reason.EMPTY), ("x", Reason.FENCED)])
def test_one_that_is_late_as_well_is_late_above_all(change: str, expected: Reason) -> None:
    assert refused(run_script(flows.update(fill(text=" ")), [(Fenced, change)])) is expected


def test_whether_it_is_late_may_be_unknown() -> None:
    script: Script = [(Fenced, StoreError("down")), (Note, None)]
    assert refused(run_script(flows.update(fill(text=" ")), script)) is Reason.EMPTY


def test_a_refused_fence_is_said() -> None:
    script: Script = [(Put, Receipt(stored=False))]
    assert refused(run_script(flows.update(fill()), script)) is Reason.FENCED


@pytest.mark.parametrize("before", [[], [(Embed, Embedded(VECTOR, ""))]])
def test_a_store_that_is_down_refuses(before: Script) -> None:
    outcome = None if before else MISS
    failing: tuple[type[Effect[Any]], object] = (Fence if before else Put, StoreError("disk full"))
    script: Script = [*before, failing]
    done = run_script(flows.update(fill(outcome=outcome)), [*script, (Note, None)])
    assert refused(done) is Reason.STORE_ERROR
    with pytest.raises(StoreError, match="disk full"):
        run_script(flows.update(fill(outcome=outcome, rules=STRICT)), script)


@pytest.mark.parametrize("rules", [RULES, STRICT])
def test_an_embedder_that_is_down_means_an_exact_entry_only(rules: Rules) -> None:
    script: Script = [(Embed, WindowError("too long")), (Note, None), (Fence, 3), STORED]
    stored(run_script(flows.update(fill(outcome=None, rules=rules)), script))


def test_a_failing_embedder_is_raised_only_if_strict() -> None:
    script: Script = [(Embed, EmbedderError("down")), (Note, None), (Fence, 3), STORED]
    stored(run_script(flows.update(fill(outcome=None)), script))
    with pytest.raises(EmbedderError):
        run_script(flows.update(fill(outcome=None, rules=STRICT)), script[:1])


@pytest.mark.parametrize(
    ("evidence", "rules", "longest"),
    [
        ((CHUNK,), RULES, 7 * DAY_S),
        (None, RULES, 7 * DAY_S),
        ((), RULES, 300.0),
        ((CHUNK,), msgspec.structs.replace(RULES, lifetimes={"": Lifetime(ttl_s=60.0)}), 60.0),
    ],
)
def test_f13_every_fill_has_an_expiry(
    evidence: tuple[Evidence, ...] | None, rules: Rules, longest: float
) -> None:
    entry = stored(run_script(flows.update(fill(evidence=evidence, rules=rules)), [STORED])).entry
    assert entry.expires_at is not None
    assert 0.95 * longest <= entry.expires_at - entry.created_at <= longest


def test_without_a_ttl_an_entry_lives_until_it_is_invalidated() -> None:
    rules = msgspec.structs.replace(RULES, lifetimes={"": Lifetime(ttl_s=None)})
    assert stored(run_script(flows.update(fill(rules=rules)), [STORED])).entry.expires_at is None


def test_deleting_flows_ask_for_one_thing_and_let_its_failure_through() -> None:
    selector = Selector(source="s.md")
    assert run_script(flows.invalidate(selector), [(Invalidate, 3)]) == 3
    assert run_script(flows.clear("s"), [(Clear, 2)]) == 2
    assert run_script(flows.report_bad("e1"), [(ReportBad, True)])
    for flow, effect in (
        (flows.invalidate(selector), Invalidate),
        (flows.clear("s"), Clear),
        (flows.report_bad("e1"), ReportBad),
    ):
        with pytest.raises(StoreError):
            run_script(flow, [(effect, StoreError("down"))])


# -- told otherwise for this one request (ADR 0016) -------------------------------------------------

UNLOOKED = Miss(reason=Reason.NO_CACHE, identity=ME, fence=7)


def test_who_is_told_not_to_store_still_learns_that_it_is_late() -> None:
    asked = replace(fill(), controls=Controls(no_store=True))
    done = run_script(flows.update(asked), [(Fenced, "")])
    assert refused(done) is Reason.NO_STORE
    assert refused(run_script(flows.update(asked), [(Fenced, "a change")])) is Reason.FENCED
    assert refused(run_script(flows.update(replace(asked, outcome=None)), [])) is Reason.NO_STORE


def test_an_answer_that_must_not_be_stored_is_refused_for_what_it_is_all_the_same() -> None:
    asked = replace(fill(text=""), controls=Controls(no_store=True))
    assert refused(run_script(flows.update(asked), [(Fenced, "")])) is Reason.EMPTY


def test_what_was_not_looked_up_is_embedded_when_it_is_stored() -> None:
    asked = replace(fill(outcome=UNLOOKED), controls=Controls(no_cache=True))
    done = stored(run_script(flows.update(asked), [(Embed, Embedded(VECTOR, "2.000")), STORED]))
    assert done.entry.signature.norm == "2.000"


def test_a_control_that_comes_with_the_answer_embeds_nothing_again() -> None:
    asked = replace(fill(), controls=Controls(no_cache=True))
    assert stored(run_script(flows.update(asked), [STORED])).entry.signature.norm == "2.000"


@pytest.mark.parametrize(
    ("evidence", "lives_s"), [((CHUNK,), 60.0), (None, 60.0), ((), 60.0), ((CHUNK,), 9e9)]
)
def test_a_stated_life_is_an_upper_bound_and_does_not_slide(
    evidence: tuple[Evidence, ...] | None, lives_s: float
) -> None:
    sliding = replace(
        RULES, lifetimes={"": Lifetime(ttl_s=DAY_S), "faq": Lifetime(ttl_s=10.0, cap_s=20.0)}
    )
    asked = replace(fill(evidence=evidence, rules=sliding), controls=Controls(ttl_s=lives_s))
    asked = replace(asked, request=replace(asked.request, kind="faq"))
    entry = stored(run_script(flows.update(asked), [STORED])).entry
    assert entry.expires_at is not None
    assert 0.95 * lives_s <= entry.expires_at - entry.created_at <= lives_s
    assert decide.renewal(entry, entry.expires_at - 1, sliding) is None
