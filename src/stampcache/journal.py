"""What is remembered of changes and verdicts: records, and the port to them (ADR 0022)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from stampcache.freshness import Observed
from stampcache.model import Entry, Scope, Usage


class Observation(Struct, frozen=True):
    """Whether a source was found changed, of which so many seconds were looked at.

    ``None``: a change of it was announced, and counts since the one before, or since the source was
    first seen. One of a source that was never seen counts for nothing: nobody looked until then.
    """

    corpus: str
    source: str
    changed: bool
    seconds: float | None = None


class Verdict(Struct, frozen=True, kw_only=True):
    """What a judge said of an entry: still fresh or not, and why; ``failure`` where it did not say.

    ``kind`` is the kind of data that it was taken for. ``at`` is in epoch seconds, ``seconds`` what
    asking took; ``asked`` is off where no model was asked.
    ``tenant`` is the digest of whose entry it is, with whom it is forgotten; empty: nobody's.
    """

    entry_id: str
    question: str
    fresh: bool
    reason: str
    at: float
    judge: str = ""
    seconds: float = 0.0
    usage: Usage = Usage()
    failure: str = ""
    kind: str = ""
    tenant: str = ""
    asked: bool = True

    def __str__(self) -> str:
        if self.failure:
            return f"not fresh: {self.failure}"
        return f"{'fresh' if self.fresh else 'not fresh'}: {self.reason}"


class Noted(Struct, frozen=True):
    """An entry on the list of what is to be looked after, as it was when it was put there.

    ``place`` is its address, ``scope`` that in which it was asked for, and ``early`` says that it was
    not doubted then.
    """

    entry_id: str
    place: tuple[str, str]
    scope: Scope
    doubtful_at: float
    early: bool


class Listed(Struct, frozen=True):
    """What came of putting an entry on the list: whether it may be served once more, though doubted.

    ``period_s`` is the time between two calls of `Cache.work`, wherever they run; 0: not known yet.
    """

    may: bool
    period_s: float = 0.0


LEASE_S = 300.0
"""What somebody took from the list and did not put back is free again after this time."""


class Journal(Protocol):
    """Observed changes of sources, verdicts on entries, and which ones are to be looked after.

    All verbs raise `StoreError` only.
    """

    def observe(self, observations: Sequence[Observation], *, now: float) -> None:
        """Add what was seen of sources."""
        ...

    def observed(self, corpus: str, sources: Sequence[str]) -> Mapping[str, Observed]:
        """Return what was seen of these sources, as far as anything was.

        What was announced of a source in no named corpus counts in all.
        """
        ...

    def confirm(self, entry: Entry, *, at: float, doubtful_at: float | None) -> bool:
        """Note that this very entry was found fresh at that time; from when it is doubted again.

        Tells whether it is still there and holds, and nobody has put off its doubt meanwhile; otherwise
        nothing is noted.
        """
        ...

    def judged(self, verdict: Verdict) -> None:
        """Keep a verdict; the latest 10,000 stay.

        One that says whose entry it is on is kept only while that entry is there: it may have been
        forgotten while the judge was asked.
        """
        ...

    def verdict(self, entry_id: str) -> Verdict | None:
        """Return the latest verdict on an entry."""
        ...

    def verdicts(self, count: int) -> Sequence[Verdict]:
        """Return the latest verdicts, newest first."""
        ...

    def list_due(self, entry: Entry, scope: Scope, *, early: bool) -> Listed:
        """Put this very entry on the list, if it is there and holds.

        One that is doubted may be served once more for each doubt, whoever puts it there first. The
        list holds an entry once, and none that was deleted, so it never outgrows the store.
        """
        ...

    def due(self, count: int, *, now: float) -> Sequence[Noted]:
        """Return the entries that wait for longest, hold, and were not confirmed since."""
        ...

    def waiting(self, *, now: float) -> int:
        """Return how many entries `due` would return, and those that somebody has taken."""
        ...

    def take(self, noted: Noted, *, owner: str, now: float) -> bool:
        """Begin to look after an entry; tell whether it waits and nobody else has taken it.

        It is the owner's for `LEASE_S` seconds, who may take it again.
        """
        ...

    def end(self, noted: Noted, *, owner: str, done: bool) -> None:
        """Take an entry from the list, or put it to its end for another attempt.

        Nothing is done to what another owner has taken.
        """
        ...

    def worked(self, *, now: float) -> float:
        """Note that somebody works through the list; return the time between two such calls."""
        ...
