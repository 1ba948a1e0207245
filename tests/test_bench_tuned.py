"""The benchmarks `tuned` and `quality`: what is asked, and which way to score the other half chooses."""

from pathlib import Path

import numpy as np

from benchmarks import tuned
from benchmarks.quality import curves, systems
from benchmarks.quality.systems import System
from stampcache.calibration import WEIGHTS

FEW = 30


def test_nothing_is_asked_that_is_stored_and_nothing_is_asked_twice_by_halves() -> None:
    given = tuned.traffic(FEW)
    assert len(given.stored) == FEW
    first, then = ({one.text for one in asked} for asked in (given.first, given.then))
    assert not first & given.stored.keys() and not then & given.stored.keys()
    assert not first & then
    groups = {one.group for one in (*given.first, *given.then)}
    assert -1 in groups and groups - {-1} <= {*given.stored.values()}


def test_few_lookups_prove_nothing_and_serve_nothing(tmp_path: Path) -> None:
    given = tuned.traffic(FEW)
    rows = [*tuned.through_a_cache("ours", None, given, tmp_path), *tuned.by_cosine(given)]
    assert {row["promised"] for row in rows[:4]} == {"not 1%", "not 2%", "not 5%", "not 10%"}
    assert {row["wrong, of hits"] for row in rows[:4]} == {"-"}
    assert len(rows) == 8


def test_the_other_half_chooses_the_way_that_serves_most() -> None:
    same = np.arange(400) % 2 == 0
    useless = np.random.default_rng(1).random(400)
    useful = useless + same
    alone, both = (curves.cross_tuned(ways, same, 0.05) for ways in ([useless], [useless, useful]))
    assert alone.hits < 0.2 and both.hits == 1.0
    assert curves.cross_fitted(useless, same, 0.05) == alone


def test_ours_is_counted_at_each_weight_and_what_is_never_served_stays_so() -> None:
    ours = System("ours", np.array([0.9, systems.NEVER]))
    counted = systems.counted(ours, np.array([0.8, 0.99]))
    assert len(counted) == len(WEIGHTS)
    assert [one[1] for one in counted] == [systems.NEVER] * len(WEIGHTS)
    assert sorted((one[0] for one in counted), reverse=True) == [one[0] for one in counted]
