"""A veto is one clean difference of a kind whose precision was measured; the rest is evidence."""

import pytest
from hypothesis import given, settings

from stampcache.guards import VETOES, Asked, Guard, Shape, profile, vetoes
from tests.guards.test_findings import QUESTIONS


@pytest.mark.parametrize(
    ("asked", "stored", "guard"),
    [
        ("Give me 5 tips", "Give me 10 tips", Guard.NUMBER),
        ("Hotels in Munich", "Hotels in Berlin", Guard.NAME),
        ("How do I enable logging?", "How do I disable logging?", Guard.ANTONYM),
        ("Flights from Paris to Rome", "Flights from Rome to Paris", Guard.DIRECTION),
    ],
)
def test_the_one_difference_of_a_measured_kind_is_a_veto(
    asked: str, stored: str, guard: Guard
) -> None:
    seen = vetoes(profile(asked), profile(stored))
    assert [finding.guard for finding in seen] == [guard]
    assert Asked(asked).vetoes(stored, "e") == seen


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("How do I reset my password?", "how can I reset my password"),  # no finding
        ("Cancel my order", "Don't cancel my order"),  # precise on templates, not on a forum
        ("do iranian cats purr", "do iranian dogs purr"),  # of a kind that is wrong too often
        ("Who won in 1998?", "Who won in 2002?"),  # of a kind of which too few were measured
        ("What does `try` do?", "What does `with` do?"),  # the same
        ("Is it more useful?", "Is it less useful?"),  # measured in one sentence only
        ("Are hotels cheap?", "Are hotels in Munich cheap?"),  # one side says nothing
        ("Hotels in Munich in 1998", "Hotels in Berlin in 2002"),  # two findings
        ("Give me 5 tips on knots", "Give me 10 ideas for sails"),  # other words differ as well
        ("Give me 5 tips, all or some", "Give me 10 tips"),  # a cue differs as well
        ("Hotels in Munich for two", "Hotels in Berlin"),  # an amount that may be no count does
        ("今天的天气", "明天的天气"),  # in Chinese nothing was precise on pairs by other hands
        ("从家到公司怎么走？", "从公司到家怎么走？"),
        ("从上海到北京多少公里", "从北京到上海多少公里"),
        ("Give me 5 tips", "Give me 5 tips"),
    ],
)
def test_anything_else_is_no_veto(asked: str, stored: str) -> None:
    assert vetoes(profile(asked), profile(stored)) == ()
    assert Asked(asked).vetoes(stored, "e") == ()


def test_every_veto_is_said_by_both_questions() -> None:
    assert {shape for shape in VETOES if not shape.both} == set()
    assert Shape(Guard.SUBSTITUTION, both=True) not in VETOES


@settings(max_examples=40)
@given(QUESTIONS, QUESTIONS)
def test_a_veto_is_a_finding(asked: str, stored: str) -> None:
    sides = Asked(asked)
    assert set(sides.vetoes(stored, "e")) <= set(sides.findings(stored, "e"))


def test_stored_questions_are_profiled_by_whoever_remembers_them() -> None:
    known = {"e": profile("Give me 5 tips")}
    asked = Asked("Give me 10 tips", lambda entry_id, _: known[entry_id])
    assert asked.stored("Give me 5 tips", "e") is known["e"]
    assert asked.findings("Give me 5 tips", "e") == asked.vetoes("Give me 5 tips", "e")
