"""How one cache tells whether two questions are the same one: guards, and a verifier over them (pure).

Without a verifier the cosine decides, and whatever a guard sees rejects. With one, only those guards
still reject that may veto: what the others see is in its score (ADR 0006).
"""

from collections.abc import Callable

from msgspec import Struct

from stampcache.guards import Profile, profile_entry


class Comparing(Struct, frozen=True, kw_only=True):
    """What a cache compares questions with.

    ``threshold`` is the score at or above which its verifier says that questions are the same; ``None``
    where it has none. ``reads`` tells that the verifier reads each question once.
    """

    profile_stored: Callable[[str, str], Profile] = profile_entry
    threshold: float | None = None
    reads: bool = False


AS_MEASURED = Comparing()
"""Cosine and guards alone."""
