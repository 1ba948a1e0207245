"""How the watched corpora of a store stand, and how one is mended without its index."""

import time
from collections.abc import Iterator, Sequence

from stampcache import decide
from stampcache.cli.check_result import CheckResult, fail, ok, warn
from stampcache.corpora import Change, Intent, Standing
from stampcache.owners import is_gone
from stampcache.ports import Store

_MEND = "open the watch of its index again, which looks at what landed, or run with --resolve"
_RESYNC = "call resync() on the watched index, or run with --resolve: its answers become stale"


def corpus_findings(store: Store) -> Iterator[CheckResult]:
    """Say of each watched corpus whether its answers are served, and why not."""
    now = time.time()
    for standing in store.corpora.standings():
        yield _finding(standing, now)


def _finding(standing: Standing, now: float) -> CheckResult:
    name = f"corpus {standing.corpus!r}"
    gone = [intent for intent in standing.intents if is_gone(intent, now)]
    if gone:
        return fail(name, f"{_writes(gone)} did not end, so nothing of it is served", _MEND)
    if standing.problem:
        return fail(name, standing.problem, _RESYNC)
    trouble = decide.standing(standing, standing.corpus, now)
    if standing.intents:
        return ok(name, f"{_writes(standing.intents)} under way; nothing is served meanwhile")
    if trouble is not None:
        mend = "run the sweep or the ingestion that is to be heard of, or `stampcache heard`"
        return fail(name, trouble.detail, mend)
    if not standing.complete:
        mend = "give watch(...) a listing= of the index, so that what was there before is known too"
        return warn(name, f"{_known(standing, now)}; there may be others", mend)
    return ok(name, _known(standing, now))


def _known(standing: Standing, now: float) -> str:
    said = f"{standing.chunks:,} chunks known, last heard of {_ago(now - standing.heard_at)}"
    if standing.swept_at is None:
        return f"{said}, never swept"
    swept = f"swept {_ago(now - standing.swept_at)}"
    return f"{said}, {swept}: {standing.drifted} of {standing.checked} answers did not hold"


def _writes(intents: Sequence[Intent]) -> str:
    count = len(intents)
    return f"{count} write" if count == 1 else f"{count} writes"


def _ago(seconds: float) -> str:
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name} ago"
    return f"{max(seconds, 0):.0f} s ago"


def resolve(store: Store) -> Iterator[str]:
    """Serve the watched corpora again that are blocked, and say of each what that took.

    What landed of a write that did not end cannot be seen from here, so all answers of its corpus
    become stale.
    """
    now = time.time()
    for standing in store.corpora.standings():
        gone: list[Intent] = [one for one in standing.intents if is_gone(one, now)]
        stale = 0
        for intent in gone:
            change = Change(unknown=True, removed=intent.chunks, beyond=intent.beyond)
            done = store.corpora.commit(standing.corpus, intent.id, change, now=now)
            stale += done.stale
        if standing.problem:
            stale += store.corpora.commit(standing.corpus, "", Change(unknown=True), now=now).stale
            store.corpora.block(standing.corpus, "")
        if gone or standing.problem:
            left = decide.standing(store.corpora.standing(standing.corpus), standing.corpus, now)
            again = "is served again" if left is None else f"is not served yet ({left.detail})"
            yield f"Corpus {standing.corpus!r} {again}; {stale} answers of it became stale."
