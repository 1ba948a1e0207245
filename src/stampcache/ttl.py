"""How long an entry lives: by its kind of data, absolute, jittered per entry (pure; ADR 0008).

The jitter spreads the expiries of entries that were made together, so that they are not all made
anew together. It only ever shortens, so that a stated lifetime is an upper bound, and it is drawn
from the entry's id, so that the same entry has the same expiry wherever it is computed.
"""

import hashlib
from math import isfinite
from types import MappingProxyType

from msgspec import Struct

from stampcache.errors import ConfigError

JITTER = 0.05
MINUTE_S = 60.0
HOUR_S = 3_600.0
DAY_S = 86_400.0
SKEW_S = 60.0
RENEWED_BY = 0.1
_SCALE = 2**32


class Lifetime(Struct, frozen=True, kw_only=True):
    """How long answers of one kind live; all in seconds.

    ``ttl_s`` counts from the making of an answer; ``None``: until it is invalidated. With ``cap_s`` it
    slides: each hit lets the answer live ``ttl_s`` more, but never past ``cap_s`` after its making.
    ``granularity_s`` is how exactly its signature tells when it was made.

    Raises:
        ConfigError: a number is none that a lifetime can have.
    """

    ttl_s: float | None
    cap_s: float | None = None
    granularity_s: int = 1

    def __post_init__(self) -> None:
        for name, seconds in (("ttl_s", self.ttl_s), ("cap_s", self.cap_s)):
            if seconds is not None and not (seconds > 0 and isfinite(seconds)):
                raise ConfigError(f"{name}= is {seconds}; give a finite number of seconds above 0.")
        if self.granularity_s < 1:
            raise ConfigError(f"granularity_s= is {self.granularity_s}; give 1 second or more.")
        if self.cap_s is not None and (self.ttl_s is None or self.cap_s < self.ttl_s):
            raise ConfigError(
                f"cap_s= is {self.cap_s}, less than ttl_s= ({self.ttl_s}); a sliding lifetime needs"
                " a ttl_s, and a cap_s that is not below it."
            )


KINDS = MappingProxyType(
    {
        "static": Lifetime(ttl_s=30 * DAY_S, granularity_s=86_400),
        "policy": Lifetime(ttl_s=7 * DAY_S, granularity_s=3_600),
        "catalogue": Lifetime(ttl_s=DAY_S, granularity_s=3_600),
        "price": Lifetime(ttl_s=HOUR_S, granularity_s=60),
        "news": Lifetime(ttl_s=15 * MINUTE_S, granularity_s=60),
        "personal": Lifetime(ttl_s=5 * MINUTE_S),
    }
)
"""Lifetimes by kind of data, for users who have none of their own."""


def expiry(now: float, lifetime_s: float | None, entry_id: str) -> float | None:
    """Return the epoch second at which the entry ends; ``None`` lives until it is invalidated."""
    if lifetime_s is None:
        return None
    drawn = hashlib.blake2b(entry_id.encode(), digest_size=4, person=b"jitter").digest()
    share = int.from_bytes(drawn) / _SCALE
    return now + lifetime_s * (1.0 - JITTER * share)


def expired(expires_at: float | None, now: float) -> bool:
    """Tell whether the entry's time is over."""
    return expires_at is not None and now >= expires_at


def renewed(
    lifetime: Lifetime, made_at: float, expires_at: float, now: float, end: float | None = None
) -> float | None:
    """Return until when a hit lets an entry live; ``None`` where that changes too little to write.

    It is never past ``end``, where one is given.
    """
    if lifetime.cap_s is None or lifetime.ttl_s is None:
        return None
    until = min(now + lifetime.ttl_s * (1.0 - JITTER), made_at + lifetime.cap_s)
    until = until if end is None else min(until, end)
    return until if until - expires_at > RENEWED_BY * lifetime.ttl_s else None
