"""How long an entry lives: absolute expiry, jittered per entry (pure; ADR 0008).

The jitter spreads the expiries of entries that were made together, so that they are not all made
anew together. It only ever shortens, so that a stated lifetime is an upper bound, and it is drawn
from the entry's id, so that the same entry has the same expiry wherever it is computed.
"""

import hashlib

JITTER = 0.05
_SCALE = 2**32


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
