"""Lru agrees with the plainest model of it: a list in the order of use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.eviction import Lru, Policy

STEPS = st.lists(st.tuples(st.sampled_from(["add", "use", "drop"]), st.integers(0, 5)), max_size=60)


@given(STEPS)
def test_lru_agrees_with_a_list(steps: list[tuple[str, int]]) -> None:
    lru = Lru[int]()
    model: list[int] = []
    for verb, key in steps:
        getattr(lru, verb)(key)
        known = key in model
        if known:
            model.remove(key)
        if verb == "add" or (verb == "use" and known):
            model.append(key)
        assert len(lru) == len(model)
        if model:
            assert lru.victim() == model[0]


def test_the_victim_stays_known_until_it_is_dropped() -> None:
    lru: Policy[str] = Lru[str]()
    lru.add("a")
    lru.add("b")
    assert lru.victim() == lru.victim() == "a"
    lru.drop("a")
    assert lru.victim() == "b"


def test_nothing_known_is_an_error() -> None:
    with pytest.raises(KeyError, match="none can be evicted"):
        Lru[str]().victim()
