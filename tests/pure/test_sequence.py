"""Thresholds that are proved: what a claim covers, ties, and how often one is false."""

import itertools
from collections.abc import Callable, Sequence
from math import inf, nextafter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.calibration.bounds import at_most, needed
from stampcache.calibration.sequence import Claim, Failure, claimed, starts

Pairs = Sequence[tuple[float, bool]]

SCORES = st.floats(0, 1, width=32)
PAIRS = st.lists(st.tuples(SCORES, st.booleans()), max_size=60)
COARSE = st.lists(st.tuples(st.sampled_from([0.2, 0.4, 0.6]), st.booleans()), max_size=60)


def falling(count: int, wrong: Sequence[int] = ()) -> Pairs:
    """Return pairs with falling scores, of which these (from 0) are wrong."""
    return [(1 - at / 1000, at not in wrong) for at in range(count)]


def proved(pairs: Pairs, max_wrong: float = 0.2, delta: float = 0.3) -> Sequence[Claim]:
    found = claimed(pairs, max_wrong=max_wrong, delta=delta)
    return [] if isinstance(found, Failure) else found


# -- starts ----------------------------------------------------------------------------------------


@given(st.integers(0, 20_000), st.sampled_from([0.005, 0.05, 0.3]), st.floats(0.01, 0.3))
def test_starts_double_and_each_can_prove_something(
    count: int, max_wrong: float, delta: float
) -> None:
    found = starts(count, max_wrong, delta)
    assert bool(found) == (count > needed(0, max_wrong, delta))
    assert all(later == 2 * start for start, later in itertools.pairwise(found))
    for start in found:
        assert start < count
        assert at_most(0, start, max_wrong) <= delta / len(found)
    if len(found) > 1:
        assert 2 * found[-1] <= count


def test_few_pairs_have_one_start_and_many_have_several() -> None:
    assert starts(299, 0.01, 0.05) == []
    assert starts(300, 0.01, 0.05) == [299]
    assert starts(2_000, 0.01, 0.05) == [368, 736]


# -- claims ----------------------------------------------------------------------------------------


def test_it_goes_down_until_a_test_fails() -> None:
    first_wrong = 20
    pairs = falling(60, range(first_wrong, 60))
    (claim,) = proved(pairs, max_wrong=0.2, delta=0.05)
    start = needed(0, 0.2, 0.05)
    served = [same for score, same in pairs if score >= claim.low]
    assert claim.high == nextafter(pairs[start][0], inf)
    assert at_most(served.count(False), len(served), 0.2) <= 0.05
    assert at_most(served.count(False) + 1, len(served) + 1, 0.2) > 0.05


def test_without_an_error_all_but_the_last_are_served() -> None:
    pairs = falling(40)
    assert min(one.low for one in proved(pairs)) == nextafter(pairs[-1][0], inf)


def test_a_wrong_pair_at_the_top_does_not_spoil_a_later_start() -> None:
    pairs = falling(200, [0])
    assert len(starts(200, 0.2, 0.3)) > 1
    assert proved(pairs)


def test_failures_say_what_came_closest() -> None:
    assert claimed(falling(298), max_wrong=0.01, delta=0.05) == Failure(wanted=300)
    found = claimed(falling(300, [3, 5]), max_wrong=0.01, delta=0.05)
    assert isinstance(found, Failure)
    assert (found.tested, found.wrong, found.wanted, found.tied) == (299, 2, 300, False)
    assert at_most(2, 299, found.bound) == pytest.approx(0.05)
    several = claimed(falling(900, [0, *range(500, 900)]), max_wrong=0.01, delta=0.05)
    assert isinstance(several, Failure)
    assert several.wrong == 1


def test_equal_scores_are_served_together_or_not_at_all() -> None:
    tied = [(0.9, True)] * 10 + [(0.5, True)] * 10 + [(0.5, False)] * 10 + [(0.1, False)] * 5
    assert [one.low for one in proved(tied, 0.2, 0.2)] == [nextafter(0.5, inf)]


def test_where_all_scores_are_equal_no_threshold_is_proved() -> None:
    found = claimed([(1.0, True)] * 100, max_wrong=0.2, delta=0.3)
    assert isinstance(found, Failure)
    assert found.tied


def test_a_start_within_equal_scores_proves_no_threshold_above_them() -> None:
    pairs = [(1.0, True)] * 30 + falling(2)[1:]
    (first, *_) = starts(len(pairs), 0.2, 0.3)
    assert first < 30
    assert all(one.high == 1.0 for one in proved(pairs))


@given(PAIRS | COARSE, st.floats(0.02, 0.5), st.floats(0.02, 0.5))
def test_what_is_claimed_passes_its_own_test(pairs: Pairs, max_wrong: float, delta: float) -> None:
    for claim in proved(pairs, max_wrong, delta):
        assert claim.low <= claim.high
        served = [same for score, same in pairs if score >= claim.low]
        assert at_most(served.count(False), len(served), max_wrong) <= delta + 1e-9


@given(PAIRS, st.integers(0, 59))
def test_one_more_error_never_proves_more(pairs: Pairs, at: int) -> None:
    worse = [(score, same and place != at) for place, (score, same) in enumerate(pairs)]
    better, found = proved(pairs), proved(worse)
    assert len(found) <= len(better)
    if found:
        assert min(one.low for one in found) >= min(one.low for one in better)


@given(st.lists(SCORES, unique=True, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_says_nothing(scores: list[float], random: object) -> None:
    pairs = [(score, at % 7 > 0) for at, score in enumerate(scores)]
    turned = pairs.copy()
    random.shuffle(turned)  # type: ignore[attr-defined]  # a random.Random of hypothesis
    assert claimed(turned, max_wrong=0.3, delta=0.3) == claimed(pairs, max_wrong=0.3, delta=0.3)


# -- how often a claim is false ----------------------------------------------------------------------

FINE = 100_000
Curve = Callable[[np.ndarray], np.ndarray]

RISKS: dict[str, Curve] = {
    "rising": lambda at: 0.02 + 0.5 * at**2,
    "at the limit": lambda at: np.full_like(at, 0.1 + 1e-9),
    "step": lambda at: np.where(at < 0.3, 0.05, 0.6),
    "noisy top": lambda at: np.where(at < 0.1, 0.3, 0.02) + 0.4 * at**3,
    "in waves": lambda at: 0.1 + 0.1 * np.sin(40 * at),
}


@pytest.mark.parametrize(
    ("name", "levels"), [*((name, 0) for name in RISKS), ("step", 16), ("noisy top", 16)]
)
def test_a_claim_is_false_as_seldom_as_stated(name: str, levels: int) -> None:
    """250 draws of 120 pairs: the share with any false claim against delta and its allowance."""
    chooser = np.random.default_rng(7)
    max_wrong, delta, draws = 0.1, 0.1, 250
    rate = np.cumsum(RISKS[name](np.arange(1, FINE + 1) / FINE)) / np.arange(1, FINE + 1)
    false = 0
    for _ in range(draws):
        at = chooser.random(120)
        same = chooser.random(120) >= RISKS[name](at)
        seen = np.ceil(at * levels) / levels if levels else at
        claims = proved(list(zip((-seen).tolist(), same.tolist(), strict=True)), max_wrong, delta)
        false += any(rate[_place(-one.low, levels)] > max_wrong for one in claims)
    assert at_most(false - 1, draws, delta) <= 0.99


def _place(reached: float, levels: int) -> int:
    """Return how far down the risk curve a threshold serves: to the end of its level."""
    share = np.floor(reached * levels) / levels if levels else reached
    return max(int(share * FINE) - 1, 0)
