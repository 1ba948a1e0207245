"""Guards: lexical findings that two questions are not the same one, explained word by word (pure)."""

from stampcache.guards.asked import Asked, profile_entry
from stampcache.guards.differing import Differences, differences
from stampcache.guards.pair import Finding, Guard, compare, findings, judge
from stampcache.guards.profile import Profile, profile
from stampcache.guards.signals import SIGNALS, weigh
from stampcache.guards.vetoes import VETOES, Shape, vetoes

__all__ = [
    "SIGNALS",
    "VETOES",
    "Asked",
    "Differences",
    "Finding",
    "Guard",
    "Profile",
    "Shape",
    "compare",
    "differences",
    "findings",
    "judge",
    "profile",
    "profile_entry",
    "vetoes",
    "weigh",
]
