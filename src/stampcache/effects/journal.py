"""Effects on what is remembered of changes and verdicts, and on who judges (pure; ADR 0022)."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from stampcache.effects.base import Effect
from stampcache.freshness import Observed
from stampcache.journal import Journal, Observation, Verdict
from stampcache.model import Entry, Scope
from stampcache.ports import Facts

Result = TypeVar("Result")


class OnJournal(Effect[Result], frozen=True):
    """Something about the journal of the store that may take its time."""

    def on(self, journal: Journal) -> Result:
        """Do it."""
        raise NotImplementedError


class Observe(OnJournal[None], frozen=True):
    """Add what was seen of sources."""

    observations: Sequence[Observation]
    now: float

    def on(self, journal: Journal) -> None:
        """See `Journal.observe`."""
        journal.observe(self.observations, now=self.now)


class ObservedOf(OnJournal[Mapping[str, Observed]], frozen=True):
    """What was seen of sources."""

    corpus: str
    sources: tuple[str, ...]

    def on(self, journal: Journal) -> Mapping[str, Observed]:
        """See `Journal.observed`."""
        return journal.observed(self.corpus, self.sources)


class Confirm(OnJournal[None], frozen=True):
    """An entry was found fresh."""

    entry: Entry
    at: float
    doubtful_at: float | None

    def on(self, journal: Journal) -> None:
        """See `Journal.confirm`."""
        journal.confirm(self.entry, at=self.at, doubtful_at=self.doubtful_at)


class Judged(OnJournal[None], frozen=True):
    """Keep a verdict."""

    verdict: Verdict

    def on(self, journal: Journal) -> None:
        """See `Journal.judged`."""
        journal.judged(self.verdict)


class VerdictOn(OnJournal[Verdict | None], frozen=True):
    """The latest verdict on an entry."""

    entry_id: str

    def on(self, journal: Journal) -> Verdict | None:
        """See `Journal.verdict`."""
        return journal.verdict(self.entry_id)


class AskJudge(Effect[Verdict], frozen=True):
    """Ask the judge whether an entry is still fresh; it never fails but by its verdict."""

    facts: Facts


class MarkDue(Effect[bool], frozen=True):
    """Let an entry be looked after by whoever works; tell whether it may be served once more."""

    entry: Entry
    scope: Scope
    early: bool
