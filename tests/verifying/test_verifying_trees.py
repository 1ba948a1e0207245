"""Packed trees give what walking them one by one gives."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.verifying.trees import Packed, Trees, probability

DEPTH, COUNT, WIDTH = 3, 5, 4
CHANCE = np.random.default_rng(1)
FEATURES = CHANCE.integers(0, WIDTH, COUNT * (2**DEPTH - 1)).astype(np.uint8)
LIMITS = CHANCE.normal(size=len(FEATURES)).astype("<f4")
LEAVES = CHANCE.normal(size=COUNT * 2**DEPTH).astype("<f4")
PACKED = Packed(
    count=COUNT, depth=DEPTH, features=FEATURES.tobytes(), limits=LIMITS.tobytes(),
    leaves=LEAVES.tobytes(), start=0.25, slope=1.5, shift=-0.5,
)  # fmt: skip


def walked(values: list[float]) -> float:
    total = PACKED.start
    inner = 2**DEPTH - 1
    for tree in range(COUNT):
        at = 0
        while at < inner:
            node = tree * inner + at
            at = 2 * at + 1 + (np.float32(values[FEATURES[node]]) > LIMITS[node])
        total += float(LEAVES[tree * (inner + 1) + at - inner])
    return total


@given(st.lists(st.floats(-3, 3, width=32), min_size=WIDTH, max_size=WIDTH))
def test_the_margin_is_the_sum_of_the_leaves(values: list[float]):
    assert Trees(PACKED).margin(values) == pytest.approx(walked(values))


@given(st.lists(st.floats(-3, 3, width=32), min_size=WIDTH, max_size=WIDTH))
def test_the_margin_is_the_same_to_the_last_bit_however_it_is_walked(values: list[float]):
    reached = []
    for tree in range(COUNT):
        at = 0
        while at < 2**DEPTH - 1:
            node = tree * (2**DEPTH - 1) + at
            at = 2 * at + 1 + (np.float32(values[FEATURES[node]]) > LIMITS[node])
        reached.append(float(LEAVES[tree * 2**DEPTH + at - 2**DEPTH + 1]))
    assert Trees(PACKED).margin(values) == PACKED.start + float(np.array(reached).sum())


def test_a_value_that_is_no_number_goes_left():
    assert Trees(PACKED).margin([math.nan] * WIDTH) == pytest.approx(
        Trees(PACKED).margin([-1e9] * WIDTH)
    )


@given(st.floats(-1e6, 1e6), st.floats(0.1, 3), st.floats(-3, 3))
def test_probabilities_rise_and_stay_inside(margin: float, slope: float, shift: float):
    one = probability(margin, slope, shift)
    assert 0 < one < 1
    assert probability(margin + 1, slope, shift) >= one


def test_a_probability_is_the_logistic_of_the_margin():
    margin = Trees(PACKED).margin([0.0] * WIDTH)
    assert Trees(PACKED).probability([0.0] * WIDTH) == pytest.approx(
        1 / (1 + math.exp(-(1.5 * margin - 0.5)))
    )
