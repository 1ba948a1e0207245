"""What is compared in a pair, and that it makes no difference who asks first."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.errors import VerifierError
from stampcache.verifying import pair, table
from stampcache.verifying.reading import read

WORDS = ["card", "lost", "refund", "paris", "london", "cost", "stolen", "ticket"]
ROWS = np.eye(len(WORDS), 8, dtype=np.int8)
ROWS[6] = ROWS[1] + ROWS[7]  # stolen is near to lost
TABLE = table.unpack("t1", WORDS, bytes([100, 90, 120, 180, 170, 80, 110, 130]), ROWS.tobytes())
VOCABULARY = """
    how do I not get a lost card ticket in Paris London 2 24 refund from to before Kafka cost price
"""
QUESTIONS = st.lists(st.sampled_from(VOCABULARY.split()), min_size=1, max_size=12).map(" ".join)


def of(one: str, other: str, similarity: float = 0.8) -> dict[str, float]:
    values = pair.features(read(one, TABLE), read(other, TABLE), similarity, TABLE)
    return dict(zip(pair.NAMES, values, strict=True))


def test_equal_questions_leave_nothing_unexplained():
    seen = of("How do I block a lost card?", "how do i block a lost card", 1.0)
    assert seen["all words equal"] == 1.0
    assert seen["covered, less"] == seen["trigrams"] == seen["common beginning"] == 1.0
    assert seen["unexplained, more"] == seen["unmatched words, more"] == 0.0


def test_a_word_that_nothing_stands_for_is_unexplained():
    near = of("Where is my lost card?", "Where is my stolen card?")
    far = of("Where is my lost card?", "Where is my Kafka card?")
    assert near["nearest substitute"] > far["nearest substitute"]
    assert near["most unexplained, more"] < far["most unexplained, more"]


def test_words_of_one_concept_match_and_are_counted_as_such():
    seen = of("the price of a ticket", "the cost of a ticket")
    assert seen["covered, less"] == 1.0
    assert seen["by concept only"] > 0


def test_a_mistyped_word_matches():
    assert of("is my ticket lost", "is my tikcet lost")["typos"] == 1.0


def test_order_is_seen():
    assert of("from paris to london", "from london to paris")["turned round"] == 1.0


def test_names_and_numbers_on_both_sides():
    seen = of("a card for 24 people in Kafka", "a card for 48 people in Redis")
    assert seen["unmatched numbers, less"] == seen["unmatched numbers, more"] == 1.0
    assert seen["unmatched names, less"] >= 1.0


def test_closed_classes_are_counted():
    assert of("do I pay before Paris", "do I pay after Paris")["time, less"] == 1.0
    assert of("do I pay", "do I not pay")["negating, more"] >= 1.0


def test_a_question_of_small_words_only():
    seen = of("how do you do", "where is it")
    assert all(np.isfinite(list(seen.values())))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ticket", "tikcet", True), ("ticket", "tickets", True), ("ticket", "tacket", True),
        ("ticket", "picket", False), ("tick", "tock", False), ("ticket", "ticketing", False),
        ("ticket", "thicker", False), ("abc12", "abc13", False), ("ticket", "tickst", True),
    ],
)  # fmt: skip
def test_typos(one: str, other: str, same: bool):
    assert pair.mistyped(one, other) is same
    assert pair.mistyped(other, one) is same


@given(QUESTIONS, QUESTIONS, st.floats(-1, 1))
def test_features_are_symmetric_and_finite(one: str, other: str, similarity: float):
    here = pair.features(read(one, TABLE), read(other, TABLE), similarity, TABLE)
    there = pair.features(read(other, TABLE), read(one, TABLE), similarity, TABLE)
    assert here == pytest.approx(there)
    assert np.isfinite(here).all()
    assert len(here) == len(pair.NAMES) == len(set(pair.NAMES))


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_have_features_or_are_refused(one: str, other: str):
    try:
        values = pair.features(read(one, TABLE), read(other, TABLE), 0.5, TABLE)
    except VerifierError:
        return
    assert np.isfinite(values).all()


@given(QUESTIONS, st.lists(QUESTIONS, min_size=1, max_size=4))
def test_a_side_that_is_compared_again_gives_the_same_to_the_last_bit(one: str, others: list[str]):
    try:
        asked = pair.asking(read(one, TABLE), TABLE)
        stored = [read(other, TABLE) for other in others]
    except VerifierError:
        return  # such words alone are no English question
    once = [pair.features(read(one, TABLE), side, 0.5, TABLE) for side in stored]
    assert [pair.compared(asked, pair.ready(side, TABLE), 0.5) for side in stored] == once


def test_words_without_a_vector_are_near_to_none():
    seen = of("How do I paint zebras?", "How do I paint okapis?")
    assert seen["nearest substitute"] == seen["furthest substitute"] == 0.0


def test_letters_by_three_are_the_share_of_both_texts():
    # " a cab " and " a cat " share " a ", "a c" and " ca" of five each
    assert of("a cab", "a cat")["trigrams"] == pytest.approx(2 * 3 / 10)
    assert of("card", "card card")["trigrams"] == pytest.approx(2 * 4 / (4 + 5))


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=4))
def test_the_nearest_is_rounded_as_decimals_are(row: list[float]):
    assert pair.nearest([row]) == [max(0.0, round(max(row), 4))]
