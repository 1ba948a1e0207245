"""Which entries a change touches: one rule for deleting them and for refusing late fills (pure)."""

from collections.abc import Iterable

from stampcache.model import Entry, Evidence, Selector, Stamps, stamp_values


def touches(selector: Selector, entry: Entry) -> bool:
    """Tell whether the entry matches every field that the selector gives.

    A selector that gives nothing touches nothing: there is no way to delete everything by accident.
    """
    if selector == Selector():
        return False
    if selector.entry is not None and selector.entry != entry.id:
        return False
    if selector.scope is not None and selector.scope != entry.identity.scope:
        return False
    if selector.stamps is not None and not _stamped(selector.stamps, entry.stamps):
        return False
    cites = (selector.corpus, selector.source, selector.chunk)
    if cites == (None, None, None):
        return True
    return any(_cited(selector, chunk) for chunk in entry.evidence or ())


def _stamped(asked: Stamps, stamps: Stamps) -> bool:
    pairs = zip(stamp_values(asked), stamp_values(stamps), strict=True)
    return asked != Stamps() and all(want in ("", have) for want, have in pairs)


def _cited(selector: Selector, chunk: Evidence) -> bool:
    wanted = (
        (selector.corpus, chunk.corpus),
        (selector.source, chunk.source),
        (selector.chunk, chunk.chunk),
    )
    return all(want is None or want == have for want, have in wanted)


def refused(changes: Iterable[Selector], entry: Entry) -> bool:
    """Tell whether any of the changes that came after a fill began touches its entry."""
    return any(touches(change, entry) for change in changes)
