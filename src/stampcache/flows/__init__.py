"""Every operation of the cache, written once, as generators of effects (pure; ADR 0002).

Nothing here performs IO, reads a clock or draws a random number.
"""

from stampcache.flows.asking import Ask
from stampcache.flows.change import clear, forget, invalidate, purge, remove, report_bad
from stampcache.flows.comparing import Comparing
from stampcache.flows.freshness import examined
from stampcache.flows.lookup import exact, lookup
from stampcache.flows.update import Fill, update

__all__ = [
    "Ask",
    "Comparing",
    "Fill",
    "clear",
    "exact",
    "examined",
    "forget",
    "invalidate",
    "lookup",
    "purge",
    "remove",
    "report_bad",
    "update",
]
