"""Hits by meaning under a promise, and the pairs that lookups leave behind, driven by scripts."""

import msgspec
import pytest

from stampcache import flows
from stampcache.decide import Proof
from stampcache.effects import (
    Effect,
    Embed,
    Fence,
    Fetch,
    Kept,
    Late,
    Nearest,
    Note,
    Notice,
    SamePairs,
    Touch,
    Verify,
)
from stampcache.errors import StoreError, VerifierError
from stampcache.flows import Ask
from stampcache.freshness import Freshness
from stampcache.model import Candidate, Reason
from stampcache.outcome import Hit, Stale
from stampcache.pairs import Pair, promise_record, withdrawal_record
from stampcache.ports import Sameness
from stampcache.shelf import Record
from stampcache.testing import run_script
from stampcache.testing.contract import NOW
from tests.asking import (
    EMBEDDED,
    NOT_STORED,
    ONE,
    RULES,
    TWO,
    Script,
    ask,
    entry,
    look,
    miss,
    near,
)
from tests.promised import promised

PROVED = msgspec.structs.replace(RULES, calibration=None, proof=Proof(max_wrong=0.01))
LEARNING = msgspec.structs.replace(RULES, proof=Proof(sample=0.5))
CONSULTING = msgspec.structs.replace(RULES, proof=Proof(consult=True))


def kept(*records: Record) -> tuple[type[Kept], object]:
    return (Kept, list(records))


def test_without_a_promise_there_is_no_hit_by_meaning_and_the_reason_says_what_to_do() -> None:
    outcome = miss(look(ask(rules=PROVED, entries=100), [near(similarity=0.999)], kept()))
    assert outcome.reason is Reason.UNPROVED
    assert "stampcache tune" in outcome.detail


def test_a_promise_sets_the_bar() -> None:
    proved = kept(promise_record(promised(threshold=0.8)))
    notice = [(Notice, None), (Touch, None)]
    hit = look(ask(rules=PROVED, entries=100), [near(similarity=0.81)], proved, *notice)
    assert isinstance(hit, Hit)
    outcome = miss(look(ask(rules=PROVED, entries=100), [near(similarity=0.79)], proved))
    assert outcome.reason is Reason.BELOW_THRESHOLD


@pytest.mark.parametrize(
    ("promise", "entries"),
    [
        (promised(max_wrong=0.02), 100),
        (promised(namespace="other"), 100),
        (promised(embedder="other"), 100),
        (promised(decider="other"), 100),
        (promised(), 401),
        (promised(), 24),
    ],
)
def test_a_promise_of_something_else_is_none(promise: object, entries: int) -> None:
    proved = kept(promise_record(promise))  # type: ignore[arg-type]  # a promise, above
    outcome = miss(look(ask(rules=PROVED, entries=entries), [near(similarity=0.999)], proved))
    assert outcome.reason is Reason.UNPROVED


def test_where_nothing_is_proved_no_verifier_is_asked_for_nothing() -> None:
    asked = ask(rules=PROVED, entries=100, threshold=0.5)
    assert miss(look(asked, [near()], kept())).reason is Reason.UNPROVED
    explains = msgspec.structs.replace(asked, explains=True, record=False)
    outcome = miss(look(explains, [near()], kept(), (Verify, 0.7)))
    assert outcome.reason is Reason.UNPROVED
    stale = [(Fetch, entry("k", expires_at=NOW)), (Fence, 7), (Embed, EMBEDDED)]
    found = run_script(flows.lookup(asked), [*stale, (Nearest, [near()]), kept()])
    assert (type(found), found.reason) == (Stale, Reason.EXPIRED)


def test_a_promise_of_another_version_promises_nothing_and_raises_nothing() -> None:
    record = promise_record(promised())
    later = record.body.replace(b"version\x01", b"version\x02")
    assert later != record.body
    newer = kept(Record(key=record.key, body=later))
    outcome = miss(look(ask(rules=PROVED, entries=100), [near(similarity=0.999)], newer))
    assert outcome.reason is Reason.UNPROVED


def test_a_withdrawal_counts_though_nobody_can_read_why() -> None:
    gone = Record(key="withdrawn:d", body=b"?")
    proved = kept(gone, promise_record(promised()))
    outcome = miss(look(ask(rules=PROVED, entries=100), [near(similarity=0.999)], proved))
    assert (outcome.reason, "cannot be read why" in outcome.detail) == (Reason.UNPROVED, True)


def test_a_withdrawn_promise_no_longer_counts() -> None:
    proved = kept(withdrawal_record(promised(), "9 of 10 were wrong"), promise_record(promised()))
    outcome = miss(look(ask(rules=PROVED, entries=100), [near(similarity=0.999)], proved))
    assert outcome.reason is Reason.UNPROVED
    assert "9 of 10 were wrong" in outcome.detail


def test_what_nobody_can_read_promises_nothing() -> None:
    broken = [Record(key="x", body=b"?"), Record(key="withdrawn:y", body=b"?")]
    outcome = miss(look(ask(rules=PROVED), [near()], kept(*broken)))
    assert outcome.reason is Reason.UNPROVED


def test_with_a_verifier_the_promise_is_about_its_score() -> None:
    asked = ask(rules=PROVED, entries=100, threshold=0.5)
    proved = kept(promise_record(promised(threshold=0.7)))
    hit = look(asked, [near()], proved, (Verify, 0.7), (Notice, None), (Touch, None))
    assert isinstance(hit, Hit)
    outcome = miss(look(asked, [near()], proved, (Verify, 0.6)))
    assert (outcome.reason, outcome.detail) == (
        Reason.VERIFIER,
        "score 0.6000 is not in [0.7000, 1]",
    )


def test_a_store_that_cannot_say_what_is_promised_serves_nothing_by_meaning() -> None:
    down: Script = [(Kept, StoreError("down")), (Note, None)]
    assert miss(look(ask(rules=PROVED), [near()], *down)).reason is Reason.STORE_ERROR


# -- the pair of a lookup --------------------------------------------------------------------------


def noticed(
    asked: Ask, candidates: list[object], *script: tuple[type[Effect[object]], object]
) -> list[Pair]:
    """Run a lookup and return the pairs that it noticed."""
    pairs: list[Pair] = []
    steps: Script = [*NOT_STORED, (Embed, EMBEDDED), (Nearest, candidates), *script]
    flow = flows.lookup(asked)
    try:
        effect = next(flow)
        while True:
            if isinstance(effect, Notice):
                pairs.append(effect.pair)
                effect = flow.send(None)
                continue
            expected, answer = steps.pop(0)
            assert isinstance(effect, expected), effect
            effect = flow.throw(answer) if isinstance(answer, Exception) else flow.send(answer)
    except StopIteration:
        assert not steps
    return pairs


def test_a_drawn_lookup_leaves_its_best_pair_whatever_came_of_it() -> None:
    drawn = ask(rules=LEARNING, sampled=True)
    (served,) = noticed(drawn, [near()], (Touch, None))
    assert (served.served, served.sampled, served.score, served.entry_id) == (
        True,
        True,
        0.95,
        "p/n",
    )
    (far,) = noticed(drawn, [near(similarity=0.3)])
    assert (far.served, far.score, far.similarity) == (False, 0.3, 0.3)
    (vetoed,) = noticed(drawn, [near(question="What is not a map?")])
    assert (vetoed.served, vetoed.score) == (False, None)
    vetoes = near("v", 0.99, question="What is not a map?")
    (second,) = noticed(drawn, [vetoes, near(similarity=0.5)])
    assert (second.entry_id, second.score) == ("p/n", 0.5)
    assert noticed(drawn, []) == []


def test_the_pair_of_a_drawn_lookup_is_the_best_whose_evidence_holds() -> None:
    """It is what every threshold serves that it reaches; the first one is served by none."""
    drawn = ask(rules=LEARNING, sampled=True, evidence=(ONE,))
    moved, cited = near("m", 0.85, evidence=(TWO,)), near("c", 0.8, evidence=(ONE, TWO))
    equal = near("e", 0.7, evidence=(ONE,))
    (left,) = noticed(drawn, [moved, equal])
    assert (left.entry_id, left.score, left.served) == ("p/e", 0.7, False)
    (none,) = noticed(drawn, [moved, cited])
    assert (none.entry_id, none.score, none.served) == ("p/m", None, False)
    above = near("m", 0.99, evidence=(TWO,)), near("e", 0.95, evidence=(ONE,))
    (served,) = noticed(drawn, list(above), (Touch, None))
    assert (served.entry_id, served.score, served.served) == ("p/e", 0.95, True)


def test_under_a_promise_that_is_missing_pairs_are_drawn_so_that_there_can_be_one() -> None:
    rules = msgspec.structs.replace(PROVED, proof=Proof(max_wrong=0.01, sample=1.0))
    (left,) = noticed(ask(rules=rules, sampled=True), [near()], kept())
    assert (left.served, left.score) == (False, 0.95)


def test_a_lookup_that_was_not_drawn_leaves_a_pair_only_if_it_served_or_was_in_doubt() -> None:
    assert noticed(ask(rules=LEARNING), [near(similarity=0.8)]) == []
    (served,) = noticed(ask(rules=LEARNING), [near()], (Touch, None))
    assert (served.served, served.sampled) == (True, False)
    doubt = ask(rules=LEARNING, threshold=0.8)
    (doubted,) = noticed(doubt, [near()], (Verify, 0.5))
    assert (doubted.served, doubted.score) == (False, 0.5)
    assert noticed(doubt, [near()], (Verify, 0.3)) == []


def test_explaining_and_caches_that_learn_nothing_leave_no_pair() -> None:
    assert noticed(ask(rules=LEARNING, sampled=True, record=False), [near()]) == []
    assert noticed(ask(sampled=True), [near()], (Touch, None)) == []


def test_of_a_verifier_that_failed_the_pair_has_no_score() -> None:
    failed: Script = [(Verify, VerifierError("down")), (Note, None)]
    (left,) = noticed(ask(rules=LEARNING, sampled=True, threshold=0.8), [near()], *failed)
    assert left.score is None


# -- a judge on the path ---------------------------------------------------------------------------


def test_a_judge_that_is_asked_at_once_may_serve_what_the_verifier_doubts() -> None:
    asked = ask(rules=CONSULTING, threshold=0.8)
    same: Script = [(SamePairs, [Sameness(True, "r")]), (Notice, None), (Touch, None)]
    assert isinstance(look(asked, [near()], (Verify, 0.5), *same), Hit)


@pytest.mark.parametrize(
    "said", [Sameness(False, "another year"), Sameness(False, "", failure="the deadline passed")]
)
def test_a_judge_that_says_no_or_nothing_serves_nothing(said: Sameness) -> None:
    asked = ask(rules=CONSULTING, threshold=0.8)
    outcome = miss(look(asked, [near()], (Verify, 0.5), (SamePairs, [said]), (Notice, None)))
    assert (outcome.reason, outcome.detail) == (Reason.JUDGED, str(said))


def test_a_judge_is_not_asked_where_the_verifier_is_sure_or_nothing_is_recorded() -> None:
    outcome = miss(look(ask(rules=CONSULTING, threshold=0.8), [near()], (Verify, 0.39)))
    assert outcome.reason is Reason.VERIFIER
    explained = ask(rules=CONSULTING, threshold=0.8, record=False)
    assert miss(look(explained, [near()], (Verify, 0.5))).reason is Reason.VERIFIER


# -- the best candidate and no other ---------------------------------------------------------------


def of_cosine(weight: float = 20.0) -> tuple[type[Kept], object]:
    """Give a promise of scores from 0.5 on, with the cosine counted at this weight."""
    return kept(promise_record(promised(threshold=0.5, similarity_weight=weight)))


def two() -> list[Candidate]:
    """Return the nearest with the lower score, and a farther one with the higher."""
    return [near("n", 0.99), near("best", 0.8)]


def test_the_cosine_is_counted_as_it_was_promised() -> None:
    asked = ask(rules=PROVED, entries=100, threshold=0.5)
    served: Script = [(Notice, None), (Touch, None)]
    hit = look(asked, [near(similarity=0.99)], of_cosine(), (Verify, 0.6), *served)
    assert isinstance(hit, Hit)
    outcome = miss(look(asked, [near(similarity=0.9)], of_cosine(), (Verify, 0.6)))
    assert (outcome.reason, outcome.detail) == (
        Reason.VERIFIER,
        "score 0.1687 is not in [0.5, 1]; it was 0.6000 before similarity 0.9000 counted at 20",
    )


def test_no_second_candidate_is_served_where_the_cosine_counts() -> None:
    asked = ask(rules=PROVED, entries=100, threshold=0.5)
    scores: Script = [(Verify, 0.9), (Verify, 0.98)]
    outcome = miss(look(asked, two(), of_cosine(), *scores))
    assert outcome.reason is Reason.VERIFIER
    assert "it was 0.9800 before similarity 0.8000" in outcome.detail
    explains = msgspec.structs.replace(asked, explains=True, record=False)
    told = [check.detail for check in miss(look(explains, two(), of_cosine(), *scores)).trace]
    assert any("proved of the best candidate alone" in detail for detail in told)


@pytest.mark.parametrize("weight", [0.0, 20.0])
def test_no_second_candidate_is_served_for_a_best_one_that_is_doubted(weight: float) -> None:
    rules = msgspec.structs.replace(PROVED, freshness=Freshness())
    asked = ask(rules=rules, entries=100, threshold=0.5)
    best = near("best", 0.99)
    doubted = Candidate(msgspec.structs.replace(best.entry, doubtful_at=NOW - 1.0), 0.99)
    given = [doubted, near("n", 0.98)]
    scores: Script = [(Verify, 0.99), (Verify, 0.98), (Late, False)]
    assert miss(look(asked, given, of_cosine(weight), *scores)).reason is Reason.DOUBTFUL
    drawn = msgspec.structs.replace(asked, sampled=True)
    (left,) = noticed(drawn, list(given), of_cosine(weight), *scores)
    assert (left.entry_id, left.score, left.served) == ("p/best", 0.99, False)


def test_whether_evidence_holds_is_asked_only_where_that_matters() -> None:
    asked = ask(rules=PROVED, entries=100, threshold=0.5, evidence=(ONE,))
    low: Script = [(Verify, 0.7), (Verify, 0.8)]
    retrieving = msgspec.structs.replace(asked, can_retrieve=True)
    given = [near("n", 0.9, evidence=(ONE,)), near("best", 0.8, evidence=(ONE,))]
    assert miss(look(retrieving, given, of_cosine(), *low)).reason is Reason.VERIFIER
    moved = [near("n", 0.99, evidence=(ONE,)), near("best", 0.8, evidence=(TWO,))]
    served: Script = [(Notice, None), (Touch, None)]
    hit = look(asked, moved, of_cosine(), (Verify, 0.9), (Verify, 0.98), *served)
    assert isinstance(hit, Hit) and hit.entry.id == "p/n"


def test_a_promise_of_a_counted_cosine_needs_a_score() -> None:
    outcome = miss(look(ask(rules=PROVED, entries=100), [near(similarity=0.999)], of_cosine()))
    assert outcome.reason is Reason.UNPROVED
    assert "no verifier gives one" in outcome.detail


def test_a_pair_says_from_which_score_on_it_was_served() -> None:
    asked = ask(rules=PROVED, entries=100, threshold=0.5, sampled=True)
    (pair,) = noticed(asked, [near(similarity=0.99)], of_cosine(), (Verify, 0.9), (Touch, None))
    assert (pair.served, pair.weight, pair.least, pair.score) == (True, 20.0, 0.5, 0.9)
    (by_cosine,) = noticed(ask(rules=LEARNING, sampled=True), [near()], (Touch, None))
    assert (by_cosine.weight, by_cosine.least) == (0.0, 0.9)


def test_a_drawn_lookup_leaves_its_best_pair_though_a_judge_had_another_one_served() -> None:
    rules = msgspec.structs.replace(RULES, proof=Proof(sample=1.0, consult=True))
    drawn = ask(rules=rules, threshold=0.8, sampled=True)
    said: Script = [(SamePairs, [Sameness(False, "r")]), (SamePairs, [Sameness(True, "r")])]
    given = [near("best", 0.95), near("other", 0.94)]
    scores: Script = [(Verify, 0.75), (Verify, 0.6)]
    left, served = noticed(drawn, list(given), *scores, *said, (Touch, None))
    assert (left.entry_id, left.score, left.served, left.sampled) == ("p/best", 0.75, False, True)
    assert (served.entry_id, served.served, served.sampled) == ("p/other", True, False)
