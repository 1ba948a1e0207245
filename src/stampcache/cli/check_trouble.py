"""Counters that point to trouble: failures that the application did not see."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from stampcache.cli.check_result import CheckResult, ok, warn

_FAILURES = "error."
_SEE_LOG = 'see the log of "stampcache" at level WARNING for what failed'
_MENDS = MappingProxyType(
    {
        "error.store_error": "see that the disk has room and the file may be written",
        "error.embedder_error": "run doctor with --embedder as the application has it",
        "error.corrupt_entry": "damaged entries were dropped; check the disk if it goes on",
        "error.save_counters": "see that the disk has room and the file may be written",
        "error.verifier": "see that the verifier's model answers; its candidates are rejected",
        "miss.uncacheable": "`stampcache explain` says which part has no canonical form",
        "miss.uncalibrated": "give calibration= a threshold that was measured for this embedder",
        "miss.unscoped": "run the calls inside `with stampcache.scope(tenant=...)`",
    }
)


def trouble_findings(counts: Mapping[str, int]) -> Iterator[CheckResult]:
    """Yield a warning per counter that points to trouble, or one finding that there is none."""
    troubles = {
        name: count
        for name, count in sorted(counts.items())
        if count and (name.startswith(_FAILURES) or name in _MENDS)
    }
    for name, count in troubles.items():
        times = "once" if count == 1 else f"{count:,} times"
        yield warn("counters", f"{name} happened {times}", _MENDS.get(name, _SEE_LOG))
    if not troubles:
        yield ok("counters", "no failure was counted")
