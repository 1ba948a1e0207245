"""Why a store's caches serve hits by meaning, or none: what is proved, and what waits for a label."""

from collections.abc import Iterator

from stampcache import tuning
from stampcache.calibration import Promise, Refusal
from stampcache.cli.check_result import CheckResult, ok, warn
from stampcache.ports import Store

_TUNE = "run `stampcache tune` with --judge or --by-hand"


def promise_findings(store: Store) -> Iterator[CheckResult]:
    """Say of each subject whose lookups were drawn what is promised of its hits, or what is missing."""
    promises = tuning.promises(store)
    entries = store.stats().entries
    promised = set()
    for promise in promises:
        promised.add(promise.subject)
        yield _finding(
            promise,
            promises.covering(promise.subject, max_wrong=promise.max_wrong, entries=entries),
        )
    for one in tuning.known(store):
        if one.subject not in promised:
            found = f"nothing is proved: {one.labelled:,} pairs are labelled, {one.waiting:,} wait"
            where = f"meaning in {one.subject.namespace!r}"
            yield warn(where, f"{found}; with max_wrong= there are no hits by meaning", _TUNE)


def _finding(promise: Promise, found: Promise | Refusal) -> CheckResult:
    where = f"meaning in {promise.subject.namespace!r}"
    if isinstance(found, Refusal):
        return warn(where, f"no hits with max_wrong={promise.max_wrong:g}: {found}", _TUNE)
    return ok(where, str(found))
