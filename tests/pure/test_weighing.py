"""How much the cosine counts beside a score: what weighing does to it, and what is proved then."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stampcache.calibration import WEIGHTS, Labelled, Promise, Refusal, Subject, prove, weighed
from stampcache.calibration.weighing import reweighed
from stampcache.errors import ConfigError

SUBJECT = Subject(embedder="an embedder", decider="a verifier+guards-3")
SCORES = st.floats(0.0, 1.0)
COSINES = st.floats(-1.0, 1.0)
SOME = st.sampled_from(WEIGHTS[1:])


def label(number: int, same: bool, score: float | None, similarity: float) -> Labelled:
    return Labelled(
        asked=f"asked {number}",
        stored=f"stored {number}",
        same=same,
        score=score,
        similarity=similarity,
        labeller="a person",
        at=0.0,
        subject=SUBJECT,
    )


def proof(
    labels: list[Labelled], max_wrong: float = 0.05, weights: tuple[float, ...] = WEIGHTS
) -> Promise | Refusal:
    return prove(
        labels, SUBJECT, max_wrong=max_wrong, entries=99, data="d", made_at=0.0, weights=weights
    )


# -- weighing --------------------------------------------------------------------------------------


def test_the_score_alone_is_tried_first() -> None:
    assert WEIGHTS[0] == 0.0 and len(set(WEIGHTS)) == len(WEIGHTS)


@given(SCORES, COSINES)
def test_without_a_weight_a_score_stays_as_it_is(score: float, similarity: float) -> None:
    assert weighed(score, similarity, 0.0) == score


@given(st.sampled_from([0.0, 1.0, math.nan, 97.0, -0.5]), COSINES, SOME)
def test_what_says_all_or_is_no_probability_stays(
    score: float, similarity: float, weight: float
) -> None:
    got = weighed(score, similarity, weight)
    assert got == score or (math.isnan(got) and math.isnan(score))


@given(SCORES, COSINES, SOME)
def test_a_score_stays_a_probability_and_never_rises(
    score: float, similarity: float, weight: float
) -> None:
    assert 0.0 <= weighed(score, similarity, weight) <= score or math.isclose(
        weighed(score, similarity, weight), score, rel_tol=1e-9
    )


@given(SCORES, SCORES, COSINES, SOME)
def test_of_two_scores_at_one_cosine_the_higher_stays_the_higher(
    one: float, other: float, similarity: float, weight: float
) -> None:
    low, high = sorted((one, other))
    assert weighed(low, similarity, weight) <= weighed(high, similarity, weight) * (1 + 1e-9)


@given(SCORES, COSINES, COSINES, SOME)
def test_of_one_score_the_nearer_is_at_least_as_high(
    score: float, one: float, other: float, weight: float
) -> None:
    far, near = sorted((one, other))
    assert weighed(score, far, weight) <= weighed(score, near, weight)


def test_it_is_a_difference_in_log_odds() -> None:
    assert weighed(0.5, 0.8, 5.0) == pytest.approx(1 / (1 + math.e))
    assert weighed(0.9, 1.0 + 1e-7, 20.0) == pytest.approx(0.9)
    assert weighed(5e-324, -1.0, 20.0) == pytest.approx(0.0)
    assert (weighed(1.0, 0.0, 1e6), weighed(0.999, 0.0, 1e6)) == (1.0, 0.0)


def test_labels_are_weighed_but_for_vetoes() -> None:
    labels = [label(1, True, 0.5, 0.8), label(2, True, None, 0.8)]
    assert [one.score for one in reweighed(labels, 5.0)] == [weighed(0.5, 0.8, 5.0), None]
    assert reweighed(labels, 0.0) == labels


# -- what is proved --------------------------------------------------------------------------------


def told_by_cosine(count: int) -> list[Labelled]:
    """Return pairs of which the score says nothing, and the cosine all."""
    return [
        label(at, at % 2 == 0, 0.6 + (at * 7919 % count) / count / 10, 1.0 if at % 2 == 0 else 0.4)
        for at in range(count)
    ]


def test_where_the_cosine_tells_them_apart_it_counts() -> None:
    labels = told_by_cosine(800)
    assert isinstance(proof(labels, weights=(0.0,)), Refusal)
    promise = proof(labels)
    assert isinstance(promise, Promise)
    assert promise.similarity_weight > 0
    assert promise.served >= 380
    assert f"the cosine counted at {promise.similarity_weight:g}, at" in str(promise)
    for one in labels:
        assert one.score is not None
        assert one.same or not promise.reached(one.score, one.similarity) or promise.wrong > 0


def test_where_the_score_tells_them_apart_it_counts_alone() -> None:
    labels = [label(at, at < 400, 1 - at / 1000, 0.9 if at % 3 else 0.5) for at in range(1, 800)]
    promise = proof(labels)
    assert isinstance(promise, Promise)
    assert promise.similarity_weight == 0.0
    assert "cosine counted" not in str(promise)


def test_what_may_be_chosen_from_costs_labels() -> None:
    labels = [label(at, True, 1 - at / 10_000, 0.9) for at in range(330)]
    alone, chosen = (proof(labels, 0.01, weights) for weights in ((0.0,), WEIGHTS))
    assert isinstance(alone, Promise) and isinstance(chosen, Refusal)
    assert chosen.needed == 369


@pytest.mark.parametrize(
    ("weights", "part"),
    [
        ((), "give different ones"),
        ((5.0, 5.0), "give different ones"),
        ((0.0, -1.0), "is -1.0"),
        ((math.nan,), "is nan"),
        ((math.inf,), "is inf"),
    ],
)
def test_what_is_no_choice_of_weights_is_refused(weights: tuple[float, ...], part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        proof(told_by_cosine(10), weights=weights)


def test_a_promise_of_no_weight_is_refused() -> None:
    promise = proof(told_by_cosine(800))
    assert isinstance(promise, Promise)
    with pytest.raises(ConfigError, match=r"is -5.0"):
        replace(promise, similarity_weight=-5.0)


def test_a_promise_of_before_counts_no_cosine() -> None:
    promise = proof(told_by_cosine(800))
    assert isinstance(promise, Promise)
    told = msgspec.to_builtins(promise)
    assert msgspec.convert(told, Promise) == promise
    del told["similarity_weight"]
    assert msgspec.convert(told, Promise).similarity_weight == 0.0


@pytest.mark.parametrize(("by", "count"), [("score", 369), ("cosine", 438)])
def test_the_parts_of_delta_sum_up_to_it(by: str, count: int) -> None:
    """So many pairs without an error prove 1 % at a half of 5 %, and so many at a quarter."""
    fall = [1 - at / 10_000 for at in range(count)]
    pairs = [(one, 0.9) if by == "score" else (0.9, one) for one in fall]
    labels = [label(at, True, *pair) for at, pair in enumerate(pairs)]
    found = proof(labels, 0.01)
    assert isinstance(found, Promise)
    assert found.delta == 0.05 and (found.similarity_weight == 0.0) == (by == "score")
    assert isinstance(proof(labels[:-1], 0.01), Refusal)


def test_a_refusal_names_the_confidence_that_was_asked_for() -> None:
    refusal = proof([label(1, True, 0.9, 0.9)], 0.01)
    assert "at 95 % confidence" in str(refusal)


def test_a_choice_among_weights_is_false_as_seldom_as_one_alone() -> None:
    """Just above the rate at each threshold and weight: every promise is false, one in 20 is allowed."""
    chooser = np.random.default_rng(5)
    false = 0
    for _ in range(200):
        labels = [
            label(at, chooser.random() >= 0.055, float(chooser.random()), float(chooser.random()))
            for at in range(300)
        ]
        false += isinstance(proof(labels), Promise)
    assert false <= 18  # binomial with 5 % of 200 is above it once in a hundred
