"""Changes of what is stored: one effect each, and failure is an error (pure)."""

from stampcache.effects import (
    Clear,
    Flow,
    Forget,
    Invalidate,
    Purge,
    Remove,
    ReportBad,
)
from stampcache.model import (
    Entry,
    Selector,
)
from stampcache.ports import Forgotten


def invalidate(selector: Selector) -> Flow[int]:
    """Mark every entry that a change made stale; return how many it was. Failure is an error."""
    return (yield from Invalidate(selector))


def remove(entry: Entry) -> Flow[bool]:
    """Purge this very entry, not a newer one in its place. Failure is an error."""
    return (yield from Remove(entry))


def purge(now: float) -> Flow[int]:
    """Delete what can no longer be served; return how many went. Failure is an error."""
    return (yield from Purge(now))


def clear(scope: str) -> Flow[int]:
    """Delete every entry of one scope; return how many went. Failure is an error."""
    return (yield from Clear(scope))


def forget(tenant: str) -> Flow[Forgotten]:
    """Remove everything that is kept of a tenant; say how much. Failure is an error."""
    return (yield from Forget(tenant))


def report_bad(entry_id: str) -> Flow[bool]:
    """Delete a wrongly served entry and never serve that pair of questions again."""
    return (yield from ReportBad(entry_id))
