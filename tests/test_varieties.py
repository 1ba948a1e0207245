"""Whose turn it is among the answers of a question."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache import varieties
from stampcache.identity import Realm
from stampcache.model import Identity
from stampcache.varieties import Varieties

WHERE = Realm("p", "s", "t", b"secret")


def at(partition: str, key: str) -> Identity:
    return Identity(partition, key, "s", "t")


@given(st.integers(1, 7), st.integers(1, 50))
def test_each_number_comes_before_any_comes_again(variety: int, times: int) -> None:
    kept = Varieties()
    given_out = [kept.next(at("p", "k"), variety, take=True) for _ in range(times)]
    assert given_out == [number % variety for number in range(times)]


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=40))
def test_looking_takes_nothing_and_the_last_is_what_was_taken_last(
    moves: list[tuple[int, bool]],
) -> None:
    kept = Varieties()
    for variety, take in moves:
        seen = kept.next(at("p", "k"), variety, take=False)
        assert 0 <= seen < variety
        assert kept.next(at("p", "k"), variety, take=take) == seen
        if take:
            assert kept.to_fill(at("p", "k"), WHERE, variety, None) == seen


def test_threads_take_no_number_twice() -> None:
    kept = Varieties()
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: kept.next(at("p", "k"), 50, take=True), range(1000)))
    assert Counter(taken) == dict.fromkeys(range(50), 20)


def test_questions_and_partitions_are_counted_apart_in_bounded_space(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(varieties, "KEPT", 3)
    kept = Varieties()
    for place in ("a", "b", "c", "a", "d"):
        kept.next(at(place, "k"), 5, take=True)
    assert len(kept) == 3
    assert [kept.next(at(place, "k"), 5, take=False) for place in "abcd"] == [2, 0, 1, 1]
    assert kept.to_fill(at("b", "k"), WHERE, 5, None) == 0
    assert kept.next(at("a", "other"), 5, take=False) == 0


def test_a_forked_child_waits_for_no_lock_of_its_parent() -> None:
    kept = Varieties()
    kept._lock.acquire()
    kept._pid = os.getpid() - 1  # as a child sees it
    assert kept.next(at("p", "k"), 2, take=True) == 0


def test_numbers_of_all_questions_take_bounded_space() -> None:
    kept = Varieties()
    for number in range(varieties.KEPT + 10):
        assert kept.next(at("p", str(number)), 2, take=True) == 0
    assert len(kept) == varieties.KEPT
    assert kept.to_fill(at("p", "0"), WHERE, 2, None) == 0
    assert kept.next(at("p", str(varieties.KEPT)), 2, take=True) == 1
    assert kept.to_fill(at("p", str(varieties.KEPT)), WHERE, 2, None) == 1
