"""Exact bounds of a counted share: against fractions, against scipy, and what they promise."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.calibration import Interval, interval, needed
from stampcache.calibration.bounds import at_most, check_share, upper
from stampcache.errors import ConfigError

RISKS = st.floats(0, 1, allow_subnormal=False)
DELTAS = st.floats(0.001, 0.5)


def exactly(errors: int, trials: int, risk: Fraction) -> Fraction:
    return sum(
        (
            math.comb(trials, one) * risk**one * (1 - risk) ** (trials - one)
            for one in range(errors + 1)
        ),
        Fraction(0),
    )


@given(st.integers(1, 60), st.data())
def test_the_tail_is_that_of_the_binomial(trials: int, data: st.DataObject) -> None:
    errors = data.draw(st.integers(0, trials - 1))
    risk = Fraction(data.draw(st.integers(1, 999)), 1000)
    found = at_most(errors, trials, float(risk))
    assert math.isclose(found, exactly(errors, trials, risk), abs_tol=1e-11)


@pytest.mark.parametrize("trials", [7, 300, 4_000, 100_000])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.3, 0.99])
def test_it_agrees_with_another_one(trials: int, share: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    errors = int(trials * share)
    spread = math.sqrt(share * (1 - share) / trials) + 1 / trials
    for away in (-5, -1, 0, 1, 5):
        risk = min(max(share + away * spread, 1e-9), 1 - 1e-9)
        assert abs(at_most(errors, trials, risk) - stats.binom.cdf(errors, trials, risk)) < 1e-9
    exact = stats.beta.ppf(0.95, errors + 1, trials - errors)
    assert abs(upper(errors, trials, 0.05) - exact) < 1e-9


@pytest.mark.parametrize(
    ("errors", "trials", "risk", "chance"),
    [(-1, 5, 0.5, 0.0), (5, 5, 0.5, 1.0), (0, 5, 0.0, 1.0), (4, 5, 1.0, 0.0), (0, 0, 0.5, 1.0)],
)
def test_the_ends_are_certain(errors: int, trials: int, risk: float, chance: float) -> None:
    assert at_most(errors, trials, risk) == chance


@given(st.integers(1, 400), st.data(), RISKS, RISKS)
def test_a_higher_risk_makes_few_errors_less_likely(
    trials: int, data: st.DataObject, one: float, other: float
) -> None:
    errors = data.draw(st.integers(0, trials))
    low, high = sorted((one, other))
    assert at_most(errors, trials, high) <= at_most(errors, trials, low) + 1e-12


@given(st.integers(1, 300), st.data(), DELTAS)
def test_more_errors_bear_more_and_more_trials_bear_less(
    trials: int, data: st.DataObject, delta: float
) -> None:
    errors = data.draw(st.integers(0, trials))
    bound = upper(errors, trials, delta)
    assert errors / trials <= bound <= upper(min(errors + 1, trials), trials, delta) + 1e-12
    assert upper(errors, trials + 1, delta) <= bound + 1e-12
    assert upper(errors, trials, delta / 2) >= bound - 1e-12


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("trials", [1, 2, 5, 12, 25])
def test_the_bound_is_exceeded_as_seldom_as_stated(trials: int, delta: float) -> None:
    """Enumerated: over all counts, the chance that the bound lies below the true risk."""
    bounds = [upper(errors, trials, delta) for errors in range(trials + 1)]
    for risk in (Fraction(at, 200) for at in range(1, 200)):
        missed = sum(
            math.comb(trials, errors) * risk**errors * (1 - risk) ** (trials - errors)
            for errors, bound in enumerate(bounds)
            if bound < risk
        )
        assert missed <= delta


@given(st.integers(0, 12), st.floats(0.004, 0.9), st.floats(0.01, 0.5))
def test_as_few_trials_as_prove_it(errors: int, max_wrong: float, delta: float) -> None:
    trials = needed(errors, max_wrong, delta)
    assert at_most(errors, trials, max_wrong) <= delta
    assert at_most(errors, trials - 1, max_wrong) > delta
    assert needed(errors + 1, max_wrong, delta) > trials


def test_without_an_error_it_is_the_known_figure() -> None:
    assert [needed(0, risk, 0.05) for risk in (0.005, 0.01, 0.02, 0.05)] == [598, 299, 149, 59]


def test_an_interval_lies_around_its_share() -> None:
    assert interval(0, 0) == Interval(0.0, 0.0, 1.0)
    assert interval(0, 10).low == 0.0
    assert interval(10, 10).high == 1.0
    one = interval(30, 100)
    assert 0.2 < one.low < one.share == 0.3 < one.high < 0.41
    assert str(interval(351, 1000)) == "35.1 % (32.1 to 38.1)"


@pytest.mark.parametrize("share", [0, 1, -0.1, 2, math.nan])
def test_what_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match="max_wrong= is"):
        check_share("max_wrong", share)
