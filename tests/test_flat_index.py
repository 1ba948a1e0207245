"""The flat index agrees with brute force after any history of writes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.indexes.flat import FlatIndex
from stampcache.model import Vector
from stampcache.testing.contract import unit

DIRECTIONS = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)
KEYS = st.integers(0, 30).map(str)
STEPS = st.lists(
    st.tuples(st.just("set"), KEYS, DIRECTIONS) | st.tuples(st.just("remove"), KEYS, DIRECTIONS),
    max_size=80,
)


def brute(model: dict[str, Vector], asked: Vector) -> list[tuple[float, str]]:
    return sorted((-float(vector @ asked), key) for key, vector in model.items())


@given(STEPS, DIRECTIONS, st.integers(0, 40))
def test_search_agrees_with_brute_force(
    steps: list[tuple[str, str, list[int]]], direction: list[int], k: int
) -> None:
    index = FlatIndex(3)
    model: dict[str, Vector] = {}
    for verb, key, numbers in steps:
        if verb == "set":
            model[key] = unit(*numbers)
            index.set(key, model[key])
        else:
            model.pop(key, None)
            index.remove(key)
    asked = unit(*direction)
    found = index.search(asked, k)
    expected = brute(model, asked)[:k]
    assert len(index) == len(model)
    assert len(found) == len(expected) == len({one.key for one in found})
    for one, (similarity, _) in zip(found, expected, strict=True):
        assert one.similarity == pytest.approx(-similarity, abs=1e-5)
        assert one.similarity == pytest.approx(float(model[one.key] @ asked), abs=1e-5)
        assert -1.0 <= one.similarity <= 1.0
    assert all((key in index) == (key in model) for key in map(str, range(31)))


def test_equal_neighbours_come_by_key() -> None:
    index = FlatIndex(2)
    for key in "cab":
        index.set(key, unit(1, 0))
    assert [one.key for one in index.search(unit(1, 0), 3)] == ["a", "b", "c"]


@given(st.lists(DIRECTIONS, min_size=1, max_size=40))
def test_a_similarity_never_leaves_its_range(directions: list[list[int]]) -> None:
    index = FlatIndex(3)
    for at, numbers in enumerate(directions):
        index.set(f"+{at}", unit(*numbers))
        index.set(f"-{at}", -unit(*numbers))
    for numbers in directions:
        for one in index.search(unit(*numbers), 100):
            assert -1.0 <= one.similarity <= 1.0


def test_many_vectors_are_taken_over_at_once_and_may_be_followed_by_more() -> None:
    index = FlatIndex(2)
    vectors = np.stack([unit(1, at) for at in range(40)])
    index.fill((str(at) for at in range(40)), vectors)
    for at in range(40, 80):
        index.set(str(at), unit(1, at))
    for at in range(0, 80, 2):
        index.remove(str(at))
    found = index.search(unit(1, 0), 3)
    assert [one.key for one in found] == ["1", "3", "5"]
    assert (len(index), index.dimension) == (40, 2)


def test_nothing_is_found_in_nothing() -> None:
    index = FlatIndex(2)
    assert index.search(unit(1, 0), 3) == []
    index.set("a", unit(1, 0))
    assert index.search(unit(1, 0), 0) == []
    index.remove("b")
    index.remove("a")
    assert index.search(unit(1, 0), 3) == []
