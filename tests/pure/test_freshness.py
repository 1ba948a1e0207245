"""The figures of doubt: rates, chances, lifetimes, and when an answer is looked at early."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache import Freshness
from stampcache.errors import ConfigError
from stampcache.freshness import (
    AHEAD,
    STEP,
    Observed,
    adapted,
    ahead_of,
    chance,
    doubted_after,
    early,
    expected_life,
    grace_of,
    period,
    rate,
    together,
)

HOUR_S = 3_600.0
seconds = st.floats(1e-3, 1e9)
limits = st.floats(0.01, 0.99)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"limit": 0.0}, "limit= is 0.0"),
        ({"limit": 1.0}, "limit= is 1.0"),
        ({"limit": math.nan}, "limit= is nan"),
        ({"deadline_s": 0.0}, "deadline_s= is 0.0"),
        ({"deadline_s": math.inf}, "deadline_s= is inf"),
        ({"floor_s": -1.0}, "floor_s= is -1.0"),
        ({"cap_s": math.nan}, "cap_s= is nan"),
        ({"grace_s": -1.0}, "grace_s= is -1.0"),
        ({"grace_share": 1.5}, "grace_share= is 1.5"),
        ({"grace_share": math.nan}, "grace_share= is nan"),
        ({"beta": math.inf}, "beta= is inf"),
        ({"calls_per_minute": -1}, "calls_per_minute= is -1"),
        ({"floor_s": 100.0, "cap_s": 99.0}, "below floor_s="),
    ],
)
def test_a_number_out_of_range_is_refused_by_name(wrong: dict[str, float], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Freshness(**wrong)  # type: ignore[arg-type]  # given as the test has it


def test_the_bounds_themselves_are_allowed() -> None:
    Freshness(limit=0.01, grace_s=0.0, beta=0.0, calls_per_minute=0, floor_s=5.0, cap_s=5.0)


def test_a_rate_is_said_as_it_was_measured() -> None:
    assert Observed(3, 6 * HOUR_S).per_hour == 0.5
    assert str(Observed(3, 6 * HOUR_S)) == "0.5 per hour: changed 3 times in 6 hours"
    assert str(Observed(1, 2 * HOUR_S)) == "0.5 per hour: changed once in 2 hours"
    assert str(Observed(0, 2 * HOUR_S)) == "0 per hour: changed 0 times in 2 hours"


def test_nothing_is_invented() -> None:
    assert Observed().per_hour is None
    assert Observed(1, 0.0).per_hour is None
    assert str(Observed()) == "unknown: nothing was observed yet"
    assert rate(Observed(), None) == 0.0
    assert doubted_after(0.0, 0.2) is None
    assert expected_life(0.0) is None


def test_several_sources_change_as_often_as_all_of_them_together() -> None:
    seen = together([Observed(2, 4 * HOUR_S), Observed(1, 1 * HOUR_S), Observed(0, 9 * HOUR_S)])
    assert seen.changes == 3
    assert seen.per_hour == pytest.approx(1.5)
    assert together([Observed(0, 2.0), Observed(0, 3.0)]) == Observed(0, 3.0)
    assert together([Observed(1, 0.0)]) == together([]) == Observed()


def test_before_anything_was_seen_the_kind_of_data_says_the_rate() -> None:
    assert rate(Observed(), 100.0) == pytest.approx(1 / 100)
    assert rate(Observed(1, 100.0), 100.0) == pytest.approx(2 / 200)
    assert rate(Observed(1, 1.0), 100.0) == pytest.approx(2 / 101), "one change may be chance"
    assert rate(Observed(11, 10.0), 100.0) == pytest.approx(10 / 10), "eleven are not"
    assert rate(Observed(2, 0.0), 100.0) == pytest.approx(3 / 100)
    assert rate(Observed(0, 900.0), 100.0) == pytest.approx(1 / 1_000)
    assert rate(Observed(5, 100.0), None) == pytest.approx(5 / 100)


@given(seconds, limits)
def test_the_chance_at_the_time_of_doubt_is_the_limit(lifetime_s: float, limit: float) -> None:
    per_second = rate(Observed(), lifetime_s)
    after = doubted_after(per_second, limit)
    assert after is not None
    assert chance(per_second, after) == pytest.approx(limit)
    assert chance(per_second, after * 0.99) < limit


@given(seconds, seconds, seconds)
def test_the_chance_grows_with_age_and_is_one(per_second: float, age_s: float, more: float) -> None:
    assert 0.0 <= chance(per_second, age_s) <= chance(per_second, age_s + more) <= 1.0
    assert chance(per_second, 0.0) == chance(per_second, -age_s) == 0.0


@given(st.integers(0, 50), seconds, seconds, limits)
def test_one_more_change_never_lets_an_answer_live_longer(
    changes: int, looked_s: float, lifetime_s: float, limit: float
) -> None:
    fewer = doubted_after(rate(Observed(changes, looked_s), lifetime_s), limit)
    more = doubted_after(rate(Observed(changes + 1, looked_s), lifetime_s), limit)
    assert fewer is not None and more is not None
    assert more <= fewer


@given(previous_s=seconds, target_s=st.none() | seconds, floor_s=seconds, more_s=seconds)
def test_a_lifetime_moves_by_a_quarter_at_most_and_towards_its_bounds(
    previous_s: float, target_s: float | None, floor_s: float, more_s: float
) -> None:
    fresh = Freshness(floor_s=floor_s, cap_s=floor_s + more_s)
    lifetime_s = adapted(previous_s, target_s, fresh)
    assert previous_s * (1 - STEP) <= lifetime_s <= previous_s * (1 + STEP)
    if fresh.floor_s <= previous_s <= fresh.cap_s:
        assert fresh.floor_s <= lifetime_s <= fresh.cap_s
    if previous_s < fresh.floor_s:
        assert lifetime_s > previous_s
    if previous_s > fresh.cap_s:
        assert lifetime_s < previous_s


@pytest.mark.parametrize(
    ("previous_s", "target_s", "expected"),
    [
        (100.0, 110.0, 110.0),
        (100.0, 1_000.0, 125.0),
        (100.0, 1.0, 75.0),
        (100.0, None, 125.0),
        (70.0, 1.0, 60.0),
        (590.0, None, 600.0),
        (10.0, 1.0, 12.5),
        (1_000.0, None, 750.0),
    ],
)
def test_the_next_lifetime(previous_s: float, target_s: float | None, expected: float) -> None:
    fresh = Freshness(floor_s=60.0, cap_s=600.0)
    assert adapted(previous_s, target_s, fresh) == pytest.approx(expected)


def test_a_judge_is_asked_earlier_than_an_answer_is_made_anew() -> None:
    fresh = Freshness(deadline_s=3.0)
    assert ahead_of(fresh, False, latency_s=2.0, until_doubt_s=100.0) == 2.0
    assert ahead_of(fresh, True, latency_s=2.0, until_doubt_s=100.0) == 3.0 + AHEAD * 100.0
    assert ahead_of(fresh, True, latency_s=9.0, until_doubt_s=100.0) == 9.0 + AHEAD * 100.0


@given(grace_s=st.just(0.0) | seconds, share=st.floats(0.0, 1.0), life_s=st.none() | seconds)
def test_a_grace_is_never_longer_than_what_was_set(
    grace_s: float, share: float, life_s: float | None
) -> None:
    found = grace_of(Freshness(grace_s=grace_s, grace_share=share), life_s)
    assert found == (grace_s if life_s is None else min(grace_s, share * life_s))


def test_the_time_between_two_rounds_grows_at_once_and_shrinks_by_and_by() -> None:
    assert period(0.0, 0.0, 60.0) == 60.0
    assert period(0.0, 60.0, 3_600.0) == 3_600.0
    assert period(0.0, 3_600.0, 60.0) == 1_830.0
    assert period(100.0, 60.0, 0.0) == 30.0, "a clock that went back"
    assert period(0.0, 60.0, 9e9) == 86_400.0


def test_early_is_a_matter_of_luck_time_and_cost() -> None:
    assert not early(100.0, 98.0, 1.0, 1.0, 1.0), "log 1 is 0: only when it ends"
    assert early(100.0, 100.0, 1.0, 1.0, 1.0)
    assert early(100.0, 98.0, 1.0, 1.0, 0.1), "-log 0.1 is 2.3 s"
    assert not early(100.0, 97.0, 1.0, 1.0, 0.1)
    assert early(100.0, 97.0, 2.0, 1.0, 0.1), "what costs more is looked at earlier"
    assert early(100.0, 97.0, 1.0, 2.0, 0.1)
    assert not early(100.0, 100.0, 1.0, 0.0, 0.1), "beta 0: never"
    assert not early(1e9, 0.0, 1.0, 1.0, 0.0), "no draw is endlessly lucky"


def test_early_comes_as_often_as_the_paper_says() -> None:
    random_ = random.Random(7)
    for left_s in (0.5, 1.0, 3.0):
        drawn = (1.0 - random_.random() for _ in range(20_000))
        share = sum(early(left_s, 0.0, 1.0, 1.0, one) for one in drawn) / 20_000
        assert share == pytest.approx(math.exp(-left_s), abs=0.02)


def test_what_is_announced_is_told_beside_and_raises_no_rate() -> None:
    quiet, told = Observed(1, 10 * HOUR_S), Observed(1, 10 * HOUR_S, 40, 10 * HOUR_S)
    assert rate(told, 7 * 24 * HOUR_S) == rate(quiet, 7 * 24 * HOUR_S)
    assert str(quiet) == "0.1 per hour: changed once in 10 hours"
    beside = "; 4 per hour besides were announced, and such a change ends an answer"
    assert str(told) == f"{quiet}{beside}"
    assert str(Observed(0, 0.0, 40, 10 * HOUR_S)).startswith("unknown: nothing was observed yet; 4")
    assert str(Observed(0, 0.0, 0, 5.0)) == "unknown: nothing was observed yet"
    both = together([told, told])
    assert both == Observed(2, 10 * HOUR_S, 80, 10 * HOUR_S)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_comparing_at_refills_gives_the_rate_where_the_doubt_sets_the_age(share: float) -> None:
    """Of several changes between two looks one is seen, and nobody knows when it was."""
    random_ = random.Random(5)
    per_second = 1 / (10 * HOUR_S)
    age_s = doubted_after(per_second, share)
    assert age_s is not None
    changed = sum(random_.random() < chance(per_second, age_s) for _ in range(20_000))
    looked_s = (20_000 - changed) * age_s + changed * age_s / 2
    assert rate(Observed(changed, looked_s), None) == pytest.approx(per_second, rel=0.06)


def test_lifetimes_settle_at_the_time_between_two_changes() -> None:
    """From far too long and far too short, with what is seen fed back at each refill."""
    per_second = 1 / (10 * HOUR_S)
    fresh = Freshness(limit=0.2, floor_s=60.0, cap_s=1e7)
    right_s = expected_life(per_second)
    assert right_s == pytest.approx(10 * HOUR_S)
    for start_s in (168 * HOUR_S, 0.01 * HOUR_S):
        random_ = random.Random(11)
        seen, lifetime_s = Observed(), start_s
        for _ in range(1_000):
            after_s = doubted_after(rate(seen, start_s), fresh.limit) or lifetime_s
            age_s = min(lifetime_s, after_s)  # made anew when doubted, or when its time is over
            changed = random_.random() < chance(per_second, age_s)
            looked_s = age_s / 2 if changed else age_s
            seen = Observed(seen.changes + changed, seen.seconds + looked_s)
            lifetime_s = adapted(lifetime_s, expected_life(rate(seen, start_s)), fresh)
        assert lifetime_s == pytest.approx(right_s, rel=0.25)
