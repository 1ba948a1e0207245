"""The fields that adapters put beside an answer, and the printed explanation."""

import json

import msgspec
from msgspec.structs import replace

from stampcache.adapters.reporting import fields, stale_fields
from stampcache.explain import Explanation
from stampcache.model import Answer, Evidence, Level, Reason, Usage
from stampcache.outcome import Check, Hit, Miss, Stale
from stampcache.request import Request
from stampcache.signature import Moved, sign
from stampcache.testing.contract import NOW, make_entry

CHUNK = Evidence(text="chunk")
ENTRY = msgspec.structs.replace(
    make_entry("k", entry_id="e1"),
    answer=Answer(text="a", usage=Usage(input_tokens=3, output_tokens=4), cost=0.5, latency_s=2.0),
)
CHECKS = (Check("exact key", False, "not found"), Check("meaning", True, "similarity 0.9", "e1"))
HIT = Hit(
    entry=ENTRY, level=Level.SEMANTIC, similarity=0.9, reason=Reason.SAME_QUESTION, trace=CHECKS
)


def test_k5_a_hit_shows_level_similarity_entry_and_saving() -> None:
    assert fields(HIT) == {
        "hit": True,
        "level": "semantic",
        "similarity": 0.9,
        "reason": "same question",
        "entry_id": "e1",
        "saved": {"input_tokens": 3, "output_tokens": 4, "cost": 0.5, "latency_s": 2.0},
    }


def test_k6_no_hit_shows_its_reason() -> None:
    nothing: dict[str, object] = {
        "hit": False,
        "level": None,
        "similarity": None,
        "entry_id": None,
        "saved": {},
    }
    assert fields(Miss(reason=Reason.NOT_FOUND)) == {**nothing, "reason": "not found"}
    stale = Stale(reason=Reason.EXPIRED, entry=ENTRY)
    assert fields(stale) == {**nothing, "reason": "expired"}
    json.dumps([fields(HIT), fields(stale)])


def test_an_explanation_prints_one_line_per_check() -> None:
    explanation = Explanation(Request(question="q"), HIT, NOW + 90)
    assert explanation.checks == CHECKS
    assert str(explanation).splitlines() == [
        "Hit (semantic, 0.9000): same question",
        "  answers: question k",
        f"  signature: {ENTRY.signature}; moved: nothing that was compared",
        "  made 90 s ago, ends never",
        "  no  exact key: not found",
        "  ok  meaning [entry e1]: similarity 0.9",
    ]


def test_an_explanation_of_no_hit_says_why() -> None:
    miss = Miss(reason=Reason.GUARD, detail="number", trace=CHECKS[:1])
    assert str(Explanation(Request(question="q"), miss)).splitlines() == [
        "Miss: guard saw a difference (number)",
        "  no  exact key: not found",
    ]
    bare = Stale(reason=Reason.EXPIRED, entry=ENTRY)
    assert str(Explanation(Request(question="q"), bare, NOW)).splitlines()[0] == "Stale: expired"


def test_an_explanation_says_which_part_of_the_signature_moved() -> None:
    kept = replace(
        ENTRY,
        signature=sign(norm="1.000", evidence=(CHUNK,), now=NOW),
        kind="news",
        expires_at=NOW + 60,
    )
    changed = Request(question="q", evidence=(Evidence(text="edited"),))
    stale = Stale(reason=Reason.EVIDENCE_CHANGED, entry=kept, norm="2.000")
    told = Explanation(changed, stale, NOW + 10)
    assert told.moved == (Moved.NORM, Moved.EVIDENCE)
    assert told.age_s == 10
    assert str(told).splitlines()[1:] == [
        f"  signature: {kept.signature}; moved: embedding norm, evidence",
        "  made 10 s ago of kind 'news', ends in 50 s",
    ]
    same = Explanation(Request(question="q", evidence=(CHUNK,)), stale, NOW)
    assert same.moved == (Moved.NORM,)
    hit = Hit(entry=kept, level=Level.EXACT, similarity=1.0, reason=Reason.SAME_TOKENS)
    assert Explanation(Request(question="q"), hit, NOW).moved == ()
    nothing = Explanation(Request(question="q"), Miss(reason=Reason.NOT_FOUND), NOW)
    assert (nothing.moved, nothing.age_s) == ((), None)


def test_a_stale_answer_that_was_served_is_no_hit_but_names_its_entry() -> None:
    told = stale_fields(Stale(reason=Reason.EXPIRED, entry=ENTRY))
    assert (told["hit"], told["level"], told["reason"]) == (False, "exact", "expired")
    assert told["entry_id"] == ENTRY.id
    assert told["saved"] == fields(HIT)["saved"]
