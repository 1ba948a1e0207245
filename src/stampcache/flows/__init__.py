"""Every operation of the cache, written once, as generators of effects (pure; ADR 0002).

Nothing here performs IO, reads a clock or draws a random number.
"""

from stampcache.flows.asking import Ask
from stampcache.flows.change import clear, forget, invalidate, purge, remove, report_bad
from stampcache.flows.comparing import Comparing
from stampcache.flows.freshness import examined
from stampcache.flows.labelling import BATCH, compared, label, reported
from stampcache.flows.lookup import exact, lookup
from stampcache.flows.proving import promised
from stampcache.flows.update import Fill, update

__all__ = [
    "BATCH",
    "Ask",
    "Comparing",
    "Fill",
    "clear",
    "compared",
    "exact",
    "examined",
    "forget",
    "invalidate",
    "label",
    "lookup",
    "promised",
    "purge",
    "remove",
    "report_bad",
    "reported",
    "update",
]
