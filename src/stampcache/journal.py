"""What is remembered of changes and verdicts: records, and the port to them (ADR 0022)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from stampcache.freshness import Observed
from stampcache.model import Entry, Usage


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

    ``kind`` is the kind of data that it found it to be, where nobody had said one. ``at`` is in epoch
    seconds, ``seconds`` what asking took.
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

    def __str__(self) -> str:
        if self.failure:
            return f"not fresh: {self.failure}"
        return f"{'fresh' if self.fresh else 'not fresh'}: {self.reason}"


class Journal(Protocol):
    """Observed changes of sources, and verdicts on entries. All verbs raise `StoreError` only."""

    def observe(self, observations: Sequence[Observation], *, now: float) -> None:
        """Add what was seen of sources."""
        ...

    def observed(self, corpus: str, sources: Sequence[str]) -> Mapping[str, Observed]:
        """Return what was seen of these sources, as far as anything was.

        What was announced of a source in no named corpus counts in all. What is compared and what is
        announced are two rates of the same source, which add up (`stampcache.freshness.together`).
        """
        ...

    def confirm(self, entry: Entry, *, at: float, doubtful_at: float | None) -> None:
        """Note that this very entry was found fresh at that time; from when it is doubted again."""
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
