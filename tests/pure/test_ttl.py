"""Expiry: a stated lifetime is an upper bound, at most 5 % shorter, and the same everywhere."""

from hypothesis import given
from hypothesis import strategies as st

from stampcache.ttl import JITTER, expired, expiry

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
