"""A sweep: a sample of watched answers is retrieved for again, so that the watch is watched, too."""

import secrets
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from stampcache import decide
from stampcache.adapters.front import Front
from stampcache.effects import (
    Block,
    Fetch,
    Flow,
    Invalidate,
    Sample,
    StandingOf,
    Swept,
)
from stampcache.errors import CodecError, ConfigError
from stampcache.model import Entry, Evidence, Reason, Selector


class Sweep(Struct, frozen=True, kw_only=True):
    """What a sweep found: of ``checked`` answers, which (ids) do not hold though the watch said so.

    ``skipped`` could not be checked: they were changed or blocked meanwhile. ``problem`` says why
    nothing of the corpus is served any more, where that is so. ``seconds`` is what it took.
    """

    corpus: str
    checked: int
    drifted: tuple[str, ...] = ()
    skipped: int = 0
    problem: str = ""
    seconds: float = 0.0


def sweep(
    front: Front,
    *,
    corpus: str,
    settings: str,
    retrieve: Callable[[str], Flow[Sequence[Evidence]]],
    sample: int,
    tolerate: float,
) -> Flow[Sweep]:
    """Retrieve again for a random sample of answers; those that drifted are marked.

    Args:
        front: of the adapter.
        corpus: the watched one.
        settings: the digest of what was run for the answers.
        retrieve: gives the evidence of a question now; its failure is the caller's.
        sample: so many answers at most.
        tolerate: the share that may have drifted, as in an approximate index; with more, nothing of
            the corpus is served until it was resynced.
    """
    if sample < 1 or not 0 <= tolerate <= 1:
        raise ConfigError("A sweep takes sample= of 1 or more, and tolerate= between 0 and 1.")
    started = time.perf_counter()
    after = secrets.token_hex(8)
    entries = yield from Sample(corpus, settings, sample, after)
    drifted, skipped = list[str](), 0
    for entry in entries:
        evidence = tuple((yield from retrieve(entry.question)))
        if not (yield from _still_served(corpus, entry)):
            skipped += 1
            continue
        finding = decide.validity(entry, evidence, entry.created_at)
        if finding is not None and finding.reason is Reason.EVIDENCE_CHANGED:
            drifted.append(entry.id)
            yield from Invalidate(Selector(entry=entry.id))
    checked = len(entries) - skipped
    now = front.core.intake.now()
    yield from Swept(corpus, now, checked, len(drifted))
    front.core.counters.event("watch.checked", checked)
    front.core.counters.event("watch.drifted", len(drifted))
    problem = ""
    if len(drifted) > tolerate * checked:
        problem = (
            f"a sweep found that {len(drifted)} of {checked} answers do not hold: documents were"
            " written around the watch; call resync() on the watched index"
        )
        yield from Block(corpus, problem)
    return Sweep(
        corpus=corpus,
        checked=checked,
        drifted=tuple(drifted),
        skipped=skipped,
        problem=problem,
        seconds=time.perf_counter() - started,
    )


def _still_served(corpus: str, entry: Entry) -> Flow[bool]:
    """Tell whether an answer would be served now: no write came between, or is under way."""
    standing = yield from StandingOf(corpus)
    if standing is None or standing.intents:
        return False
    try:
        now = yield from Fetch(*entry.place)
    except CodecError:
        return False
    return now is not None and now.id == entry.id and not now.invalidated
