"""The fields that adapters put beside an answer, and the printed explanation."""

import json

import msgspec

from stampcache.adapters.reporting import fields
from stampcache.explain import Explanation
from stampcache.model import Answer, Level, Reason, Usage
from stampcache.outcome import Check, Hit, Miss, Stale
from stampcache.request import Request
from stampcache.testing.contract import make_entry

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
    explanation = Explanation(Request(question="q"), HIT)
    assert explanation.checks == CHECKS
    assert str(explanation).splitlines() == [
        "Hit (semantic, 0.9000): same question",
        "  answers: question k",
        f"  signature: {ENTRY.signature}",
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
    assert str(Explanation(Request(question="q"), bare)) == "Stale: expired"
