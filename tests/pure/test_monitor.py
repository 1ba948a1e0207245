"""A promise is withdrawn when judged hits speak against it, and seldom otherwise."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.calibration import Interval, Monitor, Promise, Subject, monitor_of
from stampcache.errors import ConfigError


def new(max_wrong: float = 0.05, alarm: float = 0.05) -> Monitor:
    return Monitor(digest="labels", max_wrong=max_wrong, alarm=alarm)


def after(monitor: Monitor, risk: float, samples: int, seed: int) -> Monitor:
    chooser = np.random.default_rng(seed)
    for wrong in chooser.random(samples) < risk:
        monitor = monitor.seen(same=not wrong)
    return monitor


def test_it_begins_with_a_promise() -> None:
    promise = Promise(
        threshold=0.9,
        max_wrong=0.02,
        delta=0.05,
        subject=Subject(embedder="one", decider="another"),
        data="",
        entries=1,
        pairs=1,
        groups=1,
        served=1,
        wrong=0,
        share=Interval(1, 0, 1),
        labellers={},
        made_at=0,
        digest="d",
    )
    monitor = monitor_of(promise)
    assert (monitor.digest, monitor.max_wrong, monitor.withdrawn) == ("d", 0.02, False)
    assert monitor.evidence == pytest.approx(1.0)


def test_what_was_seen_is_said() -> None:
    good = after(new(), 0.0, 50, 1)
    assert str(good) == "0 of 50 judged hits were wrong, which does not speak against at most 5 %"
    bad = after(new(), 1.0, 50, 1)
    assert bad.withdrawn
    assert (
        str(bad) == f"{bad.wrong} of {bad.wrong} judged hits were wrong, too many for at most 5 %"
    )


def test_it_is_withdrawn_for_good() -> None:
    bad = after(new(), 1.0, 10, 1)
    assert bad.withdrawn_at == bad.judged < 10
    assert after(bad, 0.0, 1_000, 1) == bad


@pytest.mark.parametrize("max_wrong", [0.01, 0.05, 0.3])
def test_it_is_a_fair_bet(max_wrong: float) -> None:
    """At the promised rate nothing can be expected to be won, however long it went on before."""
    monitor = new(max_wrong)
    for same in [True] * 30 + [False] + [True] * 30:
        won = (1 - max_wrong) * monitor.seen(same=True).evidence
        won += max_wrong * monitor.seen(same=False).evidence
        assert won == pytest.approx(monitor.evidence)
        monitor = monitor.seen(same=same)


@given(st.floats(0.001, 0.9), st.lists(st.booleans(), max_size=60), st.integers(0, 59))
def test_a_wrong_hit_speaks_against_it(max_wrong: float, said: list[bool], at: int) -> None:
    better = worse = new(max_wrong, alarm=1e-300)
    for place, same in enumerate(said):
        better = better.seen(same=same)
        worse = worse.seen(same=same and place != at)
    assert worse.evidence >= better.evidence * (1 - 1e-9)
    assert better.judged == len(said)


def test_false_alarms_are_as_seldom_as_stated_although_it_always_looks() -> None:
    alarms = sum(after(new(alarm=0.1), 0.05, 400, seed).withdrawn for seed in range(150))
    assert alarms <= 23  # 0.1 is the most: 15 expected at most, and more than 23 with 1 %


def test_it_sees_a_rate_of_three_times_the_promised_one() -> None:
    ends = [after(new(), 0.15, 600, seed) for seed in range(50)]
    assert sum(end.withdrawn for end in ends) >= 48
    assert np.median([end.judged for end in ends]) < 150


def test_long_good_times_do_not_hide_what_comes_after() -> None:
    ends = [after(after(new(), 0.01, 1_500, seed), 0.25, 300, seed) for seed in range(10)]
    assert all(end.withdrawn for end in ends)
    assert np.median([end.judged for end in ends]) < 1_600


def test_its_state_goes_through_json() -> None:
    monitor = after(new(), 0.1, 20, 3)
    read = msgspec.json.decode(msgspec.json.encode(monitor), type=Monitor)
    assert read == monitor
    assert read.seen(same=False) == monitor.seen(same=False)


def test_what_cannot_be_is_refused() -> None:
    for told in ({"max_wrong": 0.0}, {"alarm": 1.0}):
        with pytest.raises(ConfigError, match="give a share"):
            Monitor(digest="", **{"max_wrong": 0.1, **told})
    with pytest.raises(ConfigError, match="another release"):
        Monitor(digest="", max_wrong=0.1, stakes=(1.0,))
