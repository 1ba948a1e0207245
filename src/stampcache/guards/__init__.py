"""Guards: lexical findings that two questions are not the same one, explained word by word (pure)."""

from stampcache.guards.pair import Asked, Finding, Guard, compare, findings, profile_entry
from stampcache.guards.profile import Profile, profile

__all__ = [
    "Asked",
    "Finding",
    "Guard",
    "Profile",
    "compare",
    "findings",
    "profile",
    "profile_entry",
]
