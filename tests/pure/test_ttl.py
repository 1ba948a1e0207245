"""Expiry: a stated lifetime is an upper bound, at most 5 % shorter, and the same everywhere."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stampcache.errors import ConfigError
from stampcache.ttl import JITTER, Lifetime, expired, expiry, renewed

NOW = 1_764_430_000.0
LIFETIMES = st.floats(min_value=1e-3, max_value=1e9)
IDS = st.text(alphabet="0123456789abcdef", min_size=1, max_size=16)


@given(LIFETIMES, IDS)
def test_f6_the_jitter_only_shortens_and_only_a_little(lifetime_s: float, entry_id: str) -> None:
    ends = expiry(NOW, lifetime_s, entry_id)
    assert ends is not None
    assert NOW + lifetime_s * (1 - JITTER) <= ends <= NOW + lifetime_s
    assert ends == expiry(NOW, lifetime_s, entry_id)


@given(LIFETIMES, IDS)
def test_an_entry_ends_at_its_expiry_and_not_before(lifetime_s: float, entry_id: str) -> None:
    ends = expiry(NOW, lifetime_s, entry_id)
    assert ends is not None
    assert expired(ends, ends)
    assert expired(ends, ends + 1)
    assert not expired(ends, ends - 1e-3)


def test_entries_made_together_do_not_end_together() -> None:
    ends = {expiry(NOW, 3600.0, f"{at:x}") for at in range(100)}
    assert len(ends) == 100


def test_without_a_lifetime_an_entry_never_expires() -> None:
    assert expiry(NOW, None, "1") is None
    assert not expired(None, float("inf"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ttl_s": 0.0}, "ttl_s="),
        ({"ttl_s": math.nan}, "ttl_s="),
        ({"ttl_s": 1.0, "cap_s": -1.0}, "cap_s="),
        ({"ttl_s": 10.0, "cap_s": 5.0}, "needs a ttl_s"),
        ({"ttl_s": None, "cap_s": 5.0}, "needs a ttl_s"),
        ({"ttl_s": 1.0, "granularity_s": 0}, "granularity_s="),
    ],
)
def test_a_lifetime_that_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Lifetime(**given)


@given(st.floats(1, 1e6), st.floats(1, 100), st.lists(st.floats(0, 1e6), max_size=20), st.text())
def test_f13_no_number_of_hits_lengthens_a_life_past_its_cap(
    ttl_s: float, times: float, hits: list[float], entry_id: str
) -> None:
    lifetime = Lifetime(ttl_s=ttl_s, cap_s=ttl_s * times)
    ends = expiry(NOW, ttl_s, entry_id)
    assert ends is not None
    for hit in sorted(hits):
        if expired(ends, NOW + hit):
            break
        ends = renewed(lifetime, NOW, ends, NOW + hit) or ends
        assert ends <= NOW + ttl_s * times + 1e-3


def test_without_a_cap_a_lifetime_is_absolute() -> None:
    assert renewed(Lifetime(ttl_s=10.0), NOW, NOW + 10.0, NOW + 9.0) is None
