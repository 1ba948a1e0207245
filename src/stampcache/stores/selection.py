"""Which entries a change touches: one rule for marking them and for refusing late fills (pure)."""

from collections.abc import Iterable, Set
from typing import TypeAlias

from msgspec.structs import replace

from stampcache.corpora import Reach, Trace
from stampcache.model import Dependency, Entry, Selector, Stamps, stamp_values

FORGOTTEN = "the change log no longer reaches back to the lookup"
"""Why a fill is refused whose lookup is older than every change that is remembered."""


BEING_WRITTEN = "documents of corpus {!r} are being written"
"""Why a fill is refused: nobody knows whether it was made from what is there afterwards."""

Logged: TypeAlias = Selector | Trace
"""What a change log tells: what somebody said has changed, or what was written to a watched corpus."""


def touches(selector: Selector, entry: Entry) -> bool:
    """Tell whether the entry matches every field that the selector gives.

    A selector that gives nothing touches nothing: nobody makes everything stale by accident.
    """
    return _touches(selector, entry, entry.dependencies)


def refused(changes: Iterable[Logged], entry: Entry, reach: Reach | None = None) -> Logged | None:
    """Return the first of the changes since a fill began that touches its entry, if there is one.

    Chunks that were added within the reach of an entry are not seen here, but compared by its store.
    """
    parts = entry.dependencies
    for change in changes:
        if isinstance(change, Selector):
            found = _touches(change, entry, parts)
        elif reach is not None and reach.corpus == change.corpus:
            found = _takes_from(change, reach, entry)
        else:
            found = any(_touches(selector, entry, parts) for selector in change.selectors)
        if found:
            return change
    return None


def _takes_from(trace: Trace, reach: Reach, entry: Entry) -> bool:
    """Tell whether a write changed or removed what an entry with a reach was made from."""
    if trace.unknown or not reach.question:
        return True
    evidence = entry.evidence or ()
    if len(evidence) < len(reach.digests):  # nobody knows here what else was found
        return bool(trace.chunks)
    cited = {chunk.chunk for chunk in evidence}
    return "" in cited or not cited.isdisjoint(trace.chunks)


def names_document(selector: Selector) -> bool:
    """Tell whether the selector gives a corpus, a source or a chunk."""
    return (selector.corpus, selector.source, selector.chunk) != (None, None, None)


def unmarked(entry: Entry) -> Entry:
    """Return the entry as it is stored: what is made anew holds, whatever was said of it before."""
    return replace(entry, invalidated="") if entry.invalidated else entry


def _touches(selector: Selector, entry: Entry, parts: Set[Dependency]) -> bool:
    if selector == Selector():
        return False
    if selector.entry is not None and selector.entry != entry.id:
        return False
    if selector.scope is not None and selector.scope != entry.identity.scope:
        return False
    if selector.stamps is not None and not _stamped(selector.stamps, entry.stamps):
        return False
    return not names_document(selector) or any(_covers(selector, part) for part in parts)


def _stamped(asked: Stamps, stamps: Stamps) -> bool:
    pairs = zip(stamp_values(asked), stamp_values(stamps), strict=True)
    return asked != Stamps() and all(want in ("", have) for want, have in pairs)


def _covers(selector: Selector, part: Dependency) -> bool:
    """Tell whether the change may be to this part; a name of it that is empty may be any."""
    named = (
        (selector.corpus, part.corpus),
        (selector.source, part.source),
        (selector.chunk, part.chunk),
    )
    return all(want is None or have in (want, "") for want, have in named)
