"""Every rule of reuse, with the cases from just inside and just outside."""

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stampcache import decide
from stampcache.calibration import Calibration
from stampcache.decide import Objection, Rules
from stampcache.errors import ConfigError
from stampcache.guards import Asked
from stampcache.model import Answer, Candidate, Entry, Evidence, Reason
from stampcache.request import Request, Seam, Settings
from stampcache.signature import sign
from stampcache.testing.contract import NOW, make_entry
from stampcache.ttl import KINDS, Lifetime
from tests.asking import living

ONE, TWO, THREE = (Evidence(source=f"{name}.md", text=name) for name in ("one", "two", "three"))
NAMELESS = Evidence(text="nameless")
RULES = Rules(semantic=True, calibration=Calibration(0.9))


def entry(
    evidence: tuple[Evidence, ...] | None = None,
    *,
    expires_at: float | None = None,
    question: str = "What is a map?",
) -> Entry:
    made = make_entry("k", evidence=evidence, expires_at=expires_at)
    signature = sign(norm="", evidence=evidence, now=NOW)
    return Entry(
        id=made.id,
        identity=made.identity,
        question=question,
        answer=made.answer,
        signature=signature,
        evidence=evidence,
        stamps=made.stamps,
        created_at=NOW,
        expires_at=expires_at,
    )


def reason(finding: Objection | None) -> Reason | None:
    return None if finding is None else finding.reason


# -- validity --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kept", "now", "expected"),
    [
        ((ONE, TWO), (ONE, TWO), None),
        ((ONE, TWO), None, None),
        (None, None, None),
        ((), (), None),
        (None, (), Reason.EVIDENCE_UNKNOWN),
        (None, (ONE,), Reason.EVIDENCE_UNKNOWN),
        ((), (ONE,), Reason.EVIDENCE_CHANGED),
        ((ONE,), (), Reason.EVIDENCE_CHANGED),
        ((ONE, TWO), (TWO, ONE), Reason.EVIDENCE_CHANGED),
        ((ONE, TWO), (ONE,), Reason.EVIDENCE_CHANGED),
        ((ONE,), (ONE, TWO), Reason.EVIDENCE_CHANGED),
        ((ONE, TWO), (ONE, THREE), Reason.EVIDENCE_CHANGED),
    ],
)
def test_f1_an_entry_holds_only_while_its_evidence_does(
    kept: tuple[Evidence, ...] | None,
    now: tuple[Evidence, ...] | None,
    expected: Reason | None,
) -> None:
    assert reason(decide.validity(entry(kept), now, NOW)) is expected


def test_the_difference_is_told() -> None:
    def said(kept: tuple[Evidence, ...], now: tuple[Evidence, ...]) -> str:
        finding = decide.validity(entry(kept), now, NOW)
        assert finding is not None
        return finding.detail

    assert "2 of 3 cited chunks of one.md, two.md" in said((ONE, TWO, THREE), (THREE,))
    assert said((NAMELESS,), ()) == "1 of 1 cited chunks are no longer retrieved"
    assert "retrieves 2 chunks, cited 1" in said((ONE,), (ONE, TWO))


@given(st.floats(-1e6, 1e6))
def test_an_entry_is_expired_from_its_expiry_on(after: float) -> None:
    kept = replace(entry((ONE,), expires_at=NOW), created_at=NOW - 1e9)
    finding = decide.validity(kept, (TWO,), NOW + after)
    expected = Reason.EXPIRED if NOW + after >= NOW else Reason.EVIDENCE_CHANGED
    assert reason(finding) is expected


# -- what may be compared by meaning ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "rules", "expected"),
    [
        (Request(question="q"), RULES, None),
        (Request(question="q", prompt="p"), RULES, Reason.NOT_FOUND),
        (Request(question="q", prompt="p", evidence=()), RULES, Reason.NOT_FOUND),
        (Request(question="q", evidence=()), RULES, None),
        (Request(question="q"), Rules(), Reason.NOT_FOUND),
        (Request(question="q"), Rules(semantic=True), Reason.UNCALIBRATED),
        (Request(question=" \n", prompt="p"), RULES, Reason.NOT_FOUND),
        (Request(question="and then?", history=["hi"]), RULES, Reason.NOT_FOUND),
    ],
)
def test_c3_d4_the_gate_to_meaning(asked: Request, rules: Rules, expected: Reason | None) -> None:
    assert reason(decide.semantic_gate(asked, rules)) is expected


IN_ENGLISH = Rules(semantic=True, calibration=Calibration(0.9, languages={"English": 0.9}))


def test_a_language_without_a_threshold_is_matched_exactly() -> None:
    assert decide.semantic_gate(Request(question="How?"), IN_ENGLISH) is None
    finding = decide.semantic_gate(Request(question="怎么办？"), IN_ENGLISH)
    assert reason(finding) is Reason.UNCALIBRATED
    assert finding is not None and "questions in Chinese" in finding.detail


@pytest.mark.parametrize(
    ("rules", "stored", "expected"),
    [
        (IN_ENGLISH, "What is a map?", None),
        (IN_ENGLISH, "地图是什么？", Reason.UNCALIBRATED),
        (RULES, "地图是什么？", None),
        (Rules(semantic=True), "地图是什么？", None),
    ],
)
def test_a_pair_in_two_languages_has_no_threshold(
    rules: Rules, stored: str, expected: Reason | None
) -> None:
    candidate = Candidate(entry(question=stored), 1.0)
    finding = decide.languages(candidate, "What is a map?", rules)
    assert reason(finding) is expected
    assert finding is None or "in English and the other in Chinese" in finding.detail


@pytest.mark.parametrize(
    ("stored", "similarity", "bad", "expected"),
    [
        ("What is a map?", 0.9, False, None),
        ("What is a map?", 0.8999, False, Reason.BELOW_THRESHOLD),
        ("What is a map?", 1.0, True, Reason.REPORTED_BAD),
        ("What is not a map?", 1.0, False, Reason.GUARD),
        ("What is a map?", 0.5, True, Reason.BELOW_THRESHOLD),
    ],
)
def test_c8_triage(stored: str, similarity: float, bad: bool, expected: Reason | None) -> None:
    candidate = Candidate(entry(question=stored), similarity, bad)
    finding = decide.triage(candidate, Asked("What is a map?"), 0.9)
    assert reason(finding) is expected


PAIRS = [
    ("How do I turn on the light?", "How do I turn off the light?"),
    ("How do I get from Paris to Rome?", "How do I get from Rome to Paris?"),
    ("Is it safe?", "Is it not safe?"),
    ("What is new in Python 3.11?", "What is new in Python 3.12?"),
    ("What costs 5 dollars?", "What costs 50 dollars?"),
    ("Who founded Apple?", "Who founded Google?"),
    ("What happened in 1989?", "What happened in 1990?"),
]


@pytest.mark.parametrize(("asked", "stored"), PAIRS)
def test_c4_c5_c11_a_difference_in_words_is_a_veto(asked: str, stored: str) -> None:
    for one, other in ((asked, stored), (stored, asked)):
        candidate = Candidate(entry(question=other), 1.0)
        assert reason(decide.triage(candidate, Asked(one), 0.5)) is Reason.GUARD


@pytest.mark.parametrize(
    ("kept", "asked", "expected"),
    [
        ((ONE, TWO), (TWO, THREE), None),
        ((ONE, TWO), (THREE, ONE), Reason.EVIDENCE_CHANGED),
        ((), (), None),
        ((), (ONE,), Reason.EVIDENCE_CHANGED),
        ((ONE,), (), Reason.EVIDENCE_CHANGED),
        (None, (ONE,), Reason.EVIDENCE_UNKNOWN),
        (None, (), Reason.EVIDENCE_UNKNOWN),
    ],
)
def test_the_first_chunk_of_the_asked_question_must_be_cited(
    kept: tuple[Evidence, ...] | None, asked: tuple[Evidence, ...], expected: Reason | None
) -> None:
    assert reason(decide.witness(entry(kept), asked)) is expected


# -- what is never stored --------------------------------------------------------------------------

CALL = ({"name": "search", "args": {}},)


@pytest.mark.parametrize(
    ("answer", "seam", "expected"),
    [
        (Answer(text="Yes."), Seam.ANSWER, None),
        (Answer(text="Yes.", finish_reason="stop"), Seam.ANSWER, None),
        (Answer(text="Yes.", finish_reason="END_TURN"), Seam.MODEL, None),
        (Answer(text=""), Seam.ANSWER, Reason.EMPTY),
        (Answer(text=" \n\t"), Seam.MODEL, Reason.EMPTY),
        (Answer(text="Ye", finish_reason="length"), Seam.ANSWER, Reason.TRUNCATED),
        (Answer(text="Ye", finish_reason="MAX_TOKENS"), Seam.MODEL, Reason.TRUNCATED),
        (Answer(text="x", finish_reason="content_filter"), Seam.ANSWER, Reason.REFUSED),
        (Answer(text="x", finish_reason="SAFETY"), Seam.ANSWER, Reason.REFUSED),
        (Answer(text="I'm sorry, I can't help."), Seam.ANSWER, Reason.REFUSED),
        (Answer(text="x", finish_reason="error"), Seam.ANSWER, Reason.FAILED),
        (
            Answer(text="x", finish_reason="insufficient_system_resource"),
            Seam.MODEL,
            Reason.FAILED,
        ),
        (Answer(text="x", finish_reason="aborted"), Seam.ANSWER, Reason.ABORTED),
        (Answer(text="x", finish_reason="cancelled"), Seam.MODEL, Reason.ABORTED),
        (Answer(text="x", tool_calls=CALL), Seam.ANSWER, Reason.PENDING_TOOLS),
        (Answer(text="x", finish_reason="tool_calls"), Seam.ANSWER, Reason.PENDING_TOOLS),
        (Answer(text="", tool_calls=CALL), Seam.ANSWER, Reason.PENDING_TOOLS),
        (Answer(text="", tool_calls=CALL, finish_reason="tool_calls"), Seam.MODEL, None),
        (Answer(text="", tool_calls=CALL, finish_reason="length"), Seam.MODEL, Reason.TRUNCATED),
        (Answer(text="half \ud83d"), Seam.ANSWER, Reason.UNCACHEABLE),
    ],
)
def test_n1_n4_admission(answer: Answer, seam: Seam, expected: Reason | None) -> None:
    assert reason(decide.admit(answer, seam, RULES)) is expected


def test_b7_a_call_of_a_model_that_asks_for_tools_is_a_whole_answer() -> None:
    answer = Answer(text="", tool_calls=CALL, finish_reason="tool_use")
    assert decide.admit(answer, Seam.MODEL, RULES) is None


@pytest.mark.parametrize(("size", "expected"), [(10, None), (11, Reason.TOO_LARGE)])
def test_the_size_counts_bytes_of_text_and_payload(size: int, expected: Reason | None) -> None:
    rules = Rules(max_answer_bytes=10)
    answer = Answer(text="\u00e9" * 2, payload=b"x" * (size - 4))
    assert reason(decide.admit(answer, Seam.ANSWER, rules)) is expected


# -- how long --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "rules", "expected"),
    [
        ((ONE,), living(100.0), 100.0),
        (None, living(100.0), 100.0),
        (None, living(None), None),
        ((), living(1000.0), 300.0),
        ((), living(100.0), 100.0),
        ((), living(None), 300.0),
    ],
)
def test_f3_an_answer_from_nothing_lives_short(
    evidence: tuple[Evidence, ...] | None, rules: Rules, expected: float | None
) -> None:
    assert decide.lifetime(evidence, "", rules).ttl_s == expected


@given(st.none() | st.floats(min_value=1e-6, max_value=1e12))
def test_f13_no_rule_lengthens_a_lifetime(ttl_s: float | None) -> None:
    for evidence in (None, (), (ONE,)):
        lifetime = decide.lifetime(evidence, "", living(ttl_s)).ttl_s
        assert (math.inf if lifetime is None else lifetime) <= (
            math.inf if ttl_s is None else ttl_s
        )


def test_retrieved_chunks_of_unknown_contents_prove_nothing() -> None:
    known = (Evidence(text="known"),)
    unknown = (Evidence(source="s", chunk="1"),)
    signed = entry(known)
    assert decide.validity(signed, known, NOW) is None
    assert reason(decide.validity(signed, unknown, NOW)) is Reason.EVIDENCE_UNKNOWN
    assert decide.witness(signed, known) is None
    assert reason(decide.witness(signed, unknown)) is Reason.EVIDENCE_UNKNOWN


def test_a_kind_of_data_has_a_lifetime_of_its_own() -> None:
    rules = Rules(lifetimes={**KINDS, "": Lifetime(ttl_s=None)})
    assert decide.lifetime((ONE,), "news", rules) == KINDS["news"]
    assert decide.lifetime((), "static", rules) == Lifetime(ttl_s=300.0, granularity_s=86_400)
    with pytest.raises(ConfigError, match="kind= is 'nws'; this cache knows 'static', 'policy'"):
        decide.lifetime(None, "nws", rules)


@pytest.mark.parametrize(
    ("now", "rules", "evidence", "expected"),
    [
        (50.0, living(100.0, cap_s=1000.0), None, 145.0),
        (50.0, living(100.0, cap_s=120.0), None, 120.0),
        (5.0, living(100.0, cap_s=1000.0), None, None),  # too little to write down
        (50.0, living(100.0), None, None),  # absolute
        (50.0, Rules(lifetimes={}), None, None),  # of a kind that is no longer known
        (50.0, living(100.0, cap_s=1000.0), (), None),  # made from nothing: lives short
        (50.0, living(None), None, None),
    ],
)
def test_f13_a_hit_lengthens_a_sliding_lifetime_up_to_its_cap(
    now: float, rules: Rules, evidence: tuple[Evidence, ...] | None, expected: float | None
) -> None:
    kept = entry(evidence=evidence, expires_at=NOW + 100.0)
    until = decide.renewal(kept, NOW + now, rules)
    assert until == (None if expected is None else NOW + expected)


def test_an_entry_that_never_ends_is_not_renewed() -> None:
    assert decide.renewal(entry(), NOW, living(100.0, cap_s=200.0)) is None


def test_what_a_change_invalidated_is_stale_for_every_question() -> None:
    kept = replace(entry(evidence=(ONE,)), invalidated="source 'one.md' changed")
    found = decide.validity(kept, (ONE,), NOW)
    assert found is not None
    assert (found.reason, found.detail) == (Reason.INVALIDATED, "source 'one.md' changed")


@pytest.mark.parametrize(("ahead", "expected"), [(59.0, None), (61.0, Reason.EXPIRED)])
def test_f14_an_entry_from_the_future_is_not_served(ahead: float, expected: Reason | None) -> None:
    assert reason(decide.validity(entry(), None, NOW - ahead)) is expected


# -- what is matched exactly only, and evidence without a retriever ---------------------------------

NO_REPLIES = [seam for seam in Seam if not seam.is_reply]


@pytest.mark.parametrize("seam", NO_REPLIES)
def test_what_is_no_reply_is_never_matched_by_meaning(seam: Seam) -> None:
    asked = Request(question="What is a map?", settings=Settings(seam=seam))
    gate = decide.semantic_gate(asked, Rules(semantic=True, calibration=Calibration(0.9)))
    assert gate is not None
    assert (gate.reason, gate.detail) == (
        Reason.NOT_FOUND,
        f"{seam.value} are matched exactly only",
    )


@pytest.mark.parametrize("seam", NO_REPLIES)
def test_what_is_no_reply_is_admitted_by_its_size_only(seam: Seam) -> None:
    assert decide.admit(Answer(text="", payload=b"1", finish_reason="error"), seam, Rules()) is None
    assert decide.admit(Answer(text="I'm sorry, but I can't help."), seam, Rules()) is None
    large = decide.admit(Answer(text="", payload=b"12"), seam, Rules(max_answer_bytes=1))
    assert large is not None and large.reason is Reason.TOO_LARGE


A, B, UNKNOWN = Evidence(text="a"), Evidence(text="b"), Evidence(chunk="only an id")


@pytest.mark.parametrize(
    ("kept", "asked", "expected"),
    [
        ((A, B), (A, B), None),
        ((A, B), (B, A), None),
        ((), (), None),
        ((A, A, B), (A, B, A), None),
        ((A, A, B), (A, B), Reason.EVIDENCE_CHANGED),
        ((A, A, B), (A, B, B), Reason.EVIDENCE_CHANGED),
        ((A,), (A, B), Reason.EVIDENCE_CHANGED),
        ((A, B), (A,), Reason.EVIDENCE_CHANGED),
        ((A,), (), Reason.EVIDENCE_CHANGED),
        (None, (A,), Reason.EVIDENCE_UNKNOWN),
        ((UNKNOWN,), (UNKNOWN,), Reason.EVIDENCE_UNKNOWN),
        ((A,), (UNKNOWN,), Reason.EVIDENCE_UNKNOWN),
    ],
)
def test_the_very_same_chunks_in_whatever_order_are_the_same_evidence(
    kept: tuple[Evidence, ...] | None, asked: tuple[Evidence, ...], expected: Reason | None
) -> None:
    finding = decide.same_evidence(make_entry("k", evidence=kept), asked)
    assert (finding.reason if finding else None) is expected


CHUNKS = st.lists(st.sampled_from([A, B, Evidence(text="c")]), max_size=5)


@given(CHUNKS, CHUNKS)
def test_same_evidence_is_equality_of_multisets(
    kept: list[Evidence], asked: list[Evidence]
) -> None:
    finding = decide.same_evidence(make_entry("k", evidence=tuple(kept)), asked)
    digests = [Counter(chunk.digest for chunk in chunks) for chunks in (kept, asked)]
    assert (finding is None) == (digests[0] == digests[1])


@pytest.mark.parametrize(
    ("evidence", "told_s", "expected_s"),
    [(None, None, 10.0), (None, 5.0, 5.0), ((A,), 60.0, 60.0), ((), 60.0, 60.0), ((), 9e9, 300.0)],
)
def test_what_a_request_says_of_its_life_takes_the_place_of_what_its_kind_says(
    evidence: tuple[Evidence, ...] | None, told_s: float | None, expected_s: float
) -> None:
    rules = Rules(
        lifetimes={"": Lifetime(ttl_s=1.0), "faq": Lifetime(ttl_s=10.0, granularity_s=60)}
    )
    lives = decide.lifetime(evidence, "faq", rules, told_s)
    assert (lives.ttl_s, lives.cap_s, lives.granularity_s) == (expected_s, None, 60)
    with pytest.raises(ConfigError):
        decide.lifetime(evidence, "unknown", rules, told_s)


@pytest.mark.parametrize(
    ("params", "detail"),
    [
        ({"temperature": 0}, None),
        ({"temperature": 0.0, "top_p": 1}, None),
        ({"answer": [{"model": {"temperature": 0}}]}, None),
        ({}, "no temperature is set"),
        ({"temperature": None}, "temperature is None"),
        ({"temperature": False}, "temperature is False"),
        ({"temperature": 0.7}, "temperature is 0.7"),
        ({"answer": ({"temperature": 0}, {"temperature": 1})}, "temperature is 1"),
    ],
)
def test_n5_settings_are_deterministic_only_with_a_temperature_of_0(
    params: dict[str, Any], detail: str | None
) -> None:
    objection = decide.variable(Settings(params=params))
    assert (objection.detail if objection else None) == detail
