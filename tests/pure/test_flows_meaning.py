"""Every branch of a lookup by meaning, driven by scripts."""

import pytest
from msgspec.structs import replace

from stampcache import flows
from stampcache.calibration import Calibration
from stampcache.decide import Rules
from stampcache.effects import Because, Compare, Note, Read, Retrieve, Touch, Verify
from stampcache.errors import (
    RetrieverError,
    VerifierError,
)
from stampcache.flows import Ask
from stampcache.model import Candidate, Level, Reason
from stampcache.outcome import Hit
from stampcache.testing import ScriptedReader, run_script
from stampcache.testing.contract import NOW
from tests.asking import (
    NOT_STORED,
    ONE,
    RULES,
    STRICT,
    TWO,
    VECTOR,
    Script,
    ask,
    entry,
    look,
    miss,
    near,
)

# -- by meaning ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (ask(rules=Rules()), Reason.NOT_FOUND),
        (ask(rules=Rules(semantic=True)), Reason.UNCALIBRATED),
        (ask(history=("hello",)), Reason.NOT_FOUND),
    ],
)
def test_what_cannot_be_compared_is_not_embedded(asked: Ask, reason: Reason) -> None:
    outcome = miss(run_script(flows.lookup(asked), NOT_STORED))
    assert (outcome.reason, outcome.fence, outcome.vector) == (reason, 7, None)
    assert [check.step for check in outcome.trace] == ["exact key", "meaning"]


def test_a_neighbour_is_a_semantic_hit() -> None:
    hit = look(ask(), [near()], (Touch, None))
    assert isinstance(hit, Hit)
    assert (hit.level, hit.reason, hit.similarity) == (Level.SEMANTIC, Reason.SAME_QUESTION, 0.95)
    assert [check.passed for check in hit.trace] == [False, True]


def test_no_neighbour_is_not_found_and_carries_vector_and_fence() -> None:
    outcome = miss(look(ask(), []))
    assert (outcome.reason, outcome.norm, outcome.fence) == (Reason.NOT_FOUND, "2.000", 7)
    assert outcome.vector is VECTOR
    own = miss(look(ask(), [Candidate(entry("k"), 1.0)]))  # only its own, stale entry
    assert own.reason is Reason.NOT_FOUND


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (near(similarity=0.89), Reason.BELOW_THRESHOLD),
        (Candidate(entry("n"), 0.99, True), Reason.REPORTED_BAD),
        (near(question="What is not a map?"), Reason.GUARD),
        (near(expires_at=NOW), Reason.EXPIRED),
    ],
)
def test_each_reason_against_a_neighbour(candidate: Candidate, reason: Reason) -> None:
    outcome = miss(look(ask(), [candidate]))
    assert outcome.reason is reason
    assert outcome.trace[-1].entry_id == candidate.entry.id


def test_c13_thresholds_differ_by_namespace() -> None:
    assert miss(look(ask(namespace="strictly"), [near()])).reason is Reason.BELOW_THRESHOLD


def test_c5_a_rejected_neighbour_is_followed_by_the_next() -> None:
    vetoed = near("v", 0.99, question="What is not a map?")
    hit = look(ask(), [vetoed, near()], (Touch, None))
    assert isinstance(hit, Hit) and hit.entry.identity.key == "n"
    assert [check.entry_id for check in hit.trace] == ["", "p/v", "p/n"]


def test_the_nearest_neighbour_gives_the_reason_and_far_ones_are_not_looked_at() -> None:
    far = [near(f"f{at}", 0.8) for at in range(5)]
    outcome = miss(look(ask(), [near(question="What is not a map?"), *far]))
    assert outcome.reason is Reason.GUARD
    assert len(outcome.trace) == 3


# -- the verifier ----------------------------------------------------------------------------------


def test_a_neighbour_in_another_language_is_no_hit_where_thresholds_are_of_languages() -> None:
    rules = replace(RULES, calibration=Calibration(0.9, languages={"English": 0.9}))
    outcome = miss(look(ask(rules=rules), [near(question="地图是什么？")]))
    assert outcome.reason is Reason.UNCALIBRATED
    assert isinstance(look(ask(rules=rules), [near()], (Touch, None)), Hit)


@pytest.mark.parametrize("score", [0.5, 1.0])
def test_a_verifier_may_agree(score: float) -> None:
    outcome = look(ask(threshold=0.5), [near()], (Verify, score), (Touch, None))
    assert isinstance(outcome, Hit)


@pytest.mark.parametrize("score", [0.0, 0.49])
def test_a_verifier_may_disagree(score: float) -> None:
    outcome = miss(look(ask(threshold=0.5), [near()], (Verify, score)))
    assert outcome.reason is Reason.VERIFIER


@pytest.mark.parametrize("score", [float("nan"), 87.0, float("inf"), -0.1])
def test_a_score_that_is_no_probability_is_a_failure_and_has_no_place_among_others(
    score: float,
) -> None:
    strange = (Verify, score), (Note, None)
    outcome = miss(look(ask(threshold=0.5), [near()], *strange))
    assert (outcome.reason, "no probability" in outcome.detail) == (Reason.VERIFIER, True)
    three = [near("a"), near("b"), near("c")]
    scored = (Verify, 0.6), *strange, (Verify, 0.9), (Touch, None)
    hit = look(ask(threshold=0.5), three, *scored)
    assert isinstance(hit, Hit) and hit.entry.identity.key == "c"


def test_c5_a_verifier_that_fails_means_no_hit_then_the_next_is_tried() -> None:
    failed: Script = [(Verify, VerifierError("timeout")), (Note, None)]
    outcome = miss(look(ask(threshold=0.5), [near()], *failed))
    assert (outcome.reason, outcome.detail) == (Reason.VERIFIER, "timeout")
    hit = look(ask(threshold=0.5), [near("a"), near("b")], *failed, (Verify, 1.0), (Touch, None))
    assert isinstance(hit, Hit) and hit.entry.identity.key == "b"
    with pytest.raises(VerifierError):
        look(ask(threshold=0.5, rules=STRICT), [near()], failed[0])


def test_the_verifier_is_not_asked_about_what_cheaper_checks_reject() -> None:
    reported = Candidate(entry("n"), 0.99, True)
    assert miss(look(ask(threshold=0.5), [reported])).reason is Reason.REPORTED_BAD
    paris = ask(threshold=0.5, question="How do I get to Paris?")
    rome = near(question="How do I get to Rome?")
    assert miss(look(paris, [rome])).reason is Reason.GUARD


def test_what_is_no_veto_is_the_affair_of_the_verifier() -> None:
    negated = near(question="What is not a map?")
    assert miss(look(ask(), [negated])).reason is Reason.GUARD
    outcome = look(ask(threshold=0.5), [negated], (Verify, 0.6), (Touch, None))
    assert isinstance(outcome, Hit)


@pytest.mark.parametrize(
    ("scores", "expected"), [((0.7, 0.9), "b"), ((0.9, 0.7), "a"), ((0.8, 0.8), "a")]
)
def test_of_several_that_pass_the_best_is_served(
    scores: tuple[float, float], expected: str
) -> None:
    both = [near("a", 0.97), near("b", 0.91)]
    steps: Script = [(Verify, score) for score in scores]
    hit = look(ask(threshold=0.5), both, *steps, (Touch, None))
    assert isinstance(hit, Hit) and hit.entry.identity.key == expected
    assert f"score {max(scores):.4f}" in hit.trace[-1].detail


def test_what_one_neighbour_lacks_the_next_may_have() -> None:
    asked = ask(evidence=(ONE,), can_retrieve=True, threshold=0.5)
    found = [near("a", 0.97, evidence=(TWO,)), near("b", 0.91, evidence=(ONE,))]
    steps: Script = [(Verify, 0.9), (Verify, 0.8), (Retrieve, (ONE,)), (Touch, None)]
    hit = look(asked, found, *steps)
    assert isinstance(hit, Hit) and hit.entry.identity.key == "b"


READING = ScriptedReader({})
"""Only its question is looked at: a script gives the scores."""


def test_a_verifier_that_reads_reads_the_asked_question_once_for_all_neighbours() -> None:
    reading = READING.asking("What is a map?")
    steps: Script = [(Read, reading), (Compare, 0.6), (Compare, 0.8), (Touch, None)]
    hit = look(ask(threshold=0.5, reads=True), [near("a"), near("b"), near("c", 0.8)], *steps)
    assert isinstance(hit, Hit) and hit.entry.identity.key == "b"


def explaining(asked: Ask) -> Ask:
    return replace(asked, record=False, explains=True)


def test_an_explanation_tells_what_moved_the_score_and_a_lookup_does_not_ask() -> None:
    reading = READING.asking("What is a map?")
    told: Script = [(Compare, 0.8), (Because, ["trigrams 0.9 (+0.4)", "kind 1 (+0.1)"])]
    asked = ask(threshold=0.5, reads=True)
    hit = look(explaining(asked), [near()], (Read, reading), *told)
    assert isinstance(hit, Hit)
    assert hit.trace[-1].detail.endswith("; moved most by trigrams 0.9 (+0.4), kind 1 (+0.1)")
    others: Script = [(Compare, 0.3), (Because, ["kind 2 (-0.5)"])]
    outcome = miss(look(explaining(asked), [near()], (Read, reading), *others))
    assert outcome.trace[-1].detail.endswith("is not in [0.5000, 1]; moved most by kind 2 (-0.5)")
    plain = look(asked, [near()], (Read, reading), told[0], (Touch, None))
    assert isinstance(plain, Hit) and "moved" not in str(plain.trace)


def test_what_cannot_be_explained_is_explained_without_it() -> None:
    steps: Script = [(Read, READING.asking("What is a map?")), (Compare, 0.8)]
    failed: Script = [(Because, VerifierError("no words for it")), (Note, None)]
    hit = look(explaining(ask(threshold=0.5, reads=True)), [near()], *steps, *failed)
    assert isinstance(hit, Hit)


def test_a_verifier_that_reads_is_not_asked_where_nothing_is_near() -> None:
    outcome = miss(look(ask(threshold=0.5, reads=True), [near(similarity=0.8)]))
    assert outcome.reason is Reason.BELOW_THRESHOLD


def test_what_a_verifier_cannot_read_is_no_hit() -> None:
    cannot = VerifierError("in a language that it was not calibrated for")
    steps: Script = [(Read, cannot), (Note, None)]
    outcome = miss(look(ask(threshold=0.5, reads=True), [near()], *steps))
    assert (outcome.reason, outcome.detail) == (Reason.VERIFIER, str(cannot))


# -- grounding -------------------------------------------------------------------------------------


def grounded(can_retrieve: bool = True, rules: Rules = RULES) -> Ask:
    return ask(evidence=(ONE, TWO), can_retrieve=can_retrieve, rules=rules)


CITED = near(evidence=(ONE,))


def test_a_grounded_hit_rechecks_the_entrys_own_question() -> None:
    hit = look(grounded(), [CITED], (Retrieve, (ONE,)), (Touch, None))
    assert isinstance(hit, Hit) and hit.level is Level.SEMANTIC


@pytest.mark.parametrize(
    ("candidate", "script", "reason"),
    [
        (near(), [], Reason.EVIDENCE_UNKNOWN),
        (near(evidence=(TWO,)), [], Reason.EVIDENCE_CHANGED),
        (CITED, [(Retrieve, (TWO,))], Reason.EVIDENCE_CHANGED),
        (CITED, [(Retrieve, ())], Reason.EVIDENCE_CHANGED),
        (
            CITED,
            [(Retrieve, RetrieverError("down")), (Note, None)],
            Reason.EVIDENCE_UNKNOWN,
        ),
    ],
)
def test_a_neighbour_whose_evidence_does_not_hold_is_rejected(
    candidate: Candidate, script: Script, reason: Reason
) -> None:
    assert miss(look(grounded(), [candidate], *script)).reason is reason


def test_without_a_retriever_other_evidence_is_not_answered_by_meaning() -> None:
    outcome = miss(look(grounded(can_retrieve=False), [CITED]))
    assert outcome.reason is Reason.EVIDENCE_CHANGED


def test_a_retriever_that_is_down_is_raised_only_if_strict() -> None:
    with pytest.raises(RetrieverError):
        look(grounded(rules=STRICT), [CITED], (Retrieve, RetrieverError("down")))


def test_a_candidate_that_the_verifier_rejects_is_not_retrieved_for() -> None:
    asked = ask(evidence=(ONE,), can_retrieve=True, threshold=0.5)
    assert miss(look(asked, [CITED], (Verify, 0.1))).reason is Reason.VERIFIER
