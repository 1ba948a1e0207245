"""Signals count what differs, guard by guard, for whoever weighs them."""

import pytest
from hypothesis import given, settings

from stampcache.guards import SIGNALS, compare, differences, judge, profile, weigh
from tests.guards.test_findings import QUESTIONS


def signals(asked: str, stored: str) -> dict[str, float]:
    return dict(zip(SIGNALS, weigh(profile(asked), profile(stored)), strict=True))


@pytest.mark.parametrize(
    ("asked", "stored", "wanted"),
    [
        ("Give me 5 tips", "Give me 10 tips", {"number.conflict": 1}),
        ("Give me 5 tips", "Give me tips", {"number.extra": 1}),
        ("Give me tips", "Give me two tips", {"count.missing": 1}),
        ("Is it open today?", "Is it open tomorrow?", {"date.conflict": 1}),
        ("Is it open?", "Is it open tomorrow?", {"date.missing": 1}),
        ("List all users", "List only users", {"scope.extra": 1, "scope.missing": 1}),
        ("Hotels in Munich", "Hotels in Berlin", {"name.conflict": 1, "substitution.conflict": 1}),
        ("Is it on?", "Is it not on?", {"negation.conflict": 1, "polarity": 1}),
        (
            "Is it not off?",
            "Is it on?",
            {"negation.extra": 1, "antonym.conflict": 1, "polarity": 0},
        ),
        ("Is it more useful?", "Is it less useful?", {"comparative.conflict": 1, "polarity": 1}),
        ("From Rome to Oslo", "From Oslo to Rome", {"direction.conflict": 1}),
        ("What does `try` do?", "What does `with` do?", {"code.conflict": 1}),
        (
            "How do I fix a bike?",
            "How do I repair a bike?",
            {"content.shared": 0.5, "content.reworded": 0.5},
        ),
        ("What is it?", "Why?", {"content.shared": 0, "question.conflict": 1}),
    ],
)
def test_signals_count_the_difference(asked: str, stored: str, wanted: dict[str, float]) -> None:
    seen = signals(asked, stored)
    assert {name: seen[name] for name in wanted} == wanted


@settings(max_examples=40)
@given(QUESTIONS, QUESTIONS)
def test_changing_places_changes_extra_and_missing(asked: str, stored: str) -> None:
    swap = {"extra": "missing", "missing": "extra"}
    turned = {}
    for name, value in signals(stored, asked).items():
        guard, _, kind = name.partition(".")
        turned[f"{guard}.{swap.get(kind, kind)}".rstrip(".")] = value
    assert signals(asked, stored) == turned


@settings(max_examples=40)
@given(QUESTIONS)
def test_a_question_has_no_signals_beside_itself(question: str) -> None:
    seen = signals(question, question)
    assert {name for name, value in seen.items() if value and name != "content.shared"} == set()


@settings(max_examples=40)
@given(QUESTIONS, QUESTIONS)
def test_differences_that_are_known_are_not_looked_for_again(asked: str, stored: str) -> None:
    one, other = profile(asked), profile(stored)
    seen = differences(one, other)
    assert weigh(one, other, seen) == weigh(one, other)
    assert judge(one, other, seen) == compare(one, other)
