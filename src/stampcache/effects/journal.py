"""Effects on what is remembered of changes and verdicts, and on who judges (pure; ADR 0022)."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from stampcache.effects.base import Effect
from stampcache.freshness import Observed
from stampcache.journal import Journal, Listed, Noted, Observation, Verdict
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


class Confirm(OnJournal[bool], frozen=True):
    """An entry was found fresh; whether it is still there and holds."""

    entry: Entry
    at: float
    doubtful_at: float | None

    def on(self, journal: Journal) -> bool:
        """See `Journal.confirm`."""
        return journal.confirm(self.entry, at=self.at, doubtful_at=self.doubtful_at)


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


class Early(Effect[bool], frozen=True):
    """Whether this request is the one that has an entry looked after before it is doubted (XFetch)."""

    entry: Entry
    now: float


class Late(Effect[bool], frozen=True):
    """Whether this process has not put a doubted entry on the list yet."""

    entry: Entry


class Proved(Effect[bool], frozen=True):
    """Whether this process has put an entry on the list, which has been proved now."""

    entry: Entry


class ListDue(OnJournal[Listed], frozen=True):
    """Put an entry on the list of what is to be looked after."""

    entry: Entry
    scope: Scope
    early: bool

    def on(self, journal: Journal) -> Listed:
        """See `Journal.list_due`."""
        return journal.list_due(self.entry, self.scope, early=self.early)


class Paced(Effect[None], frozen=True):
    """So much time is between two calls of `Cache.work`."""

    period_s: float


class Worked(OnJournal[float], frozen=True):
    """Somebody works through the list."""

    now: float

    def on(self, journal: Journal) -> float:
        """See `Journal.worked`."""
        return journal.worked(now=self.now)


class DueNow(OnJournal[Sequence[Noted]], frozen=True):
    """What waits on the list."""

    count: int
    now: float

    def on(self, journal: Journal) -> Sequence[Noted]:
        """See `Journal.due`."""
        return journal.due(self.count, now=self.now)


class Waiting(OnJournal[int], frozen=True):
    """How much waits on the list."""

    now: float

    def on(self, journal: Journal) -> int:
        """See `Journal.waiting`."""
        return journal.waiting(now=self.now)


class TakeDue(OnJournal[bool], frozen=True):
    """Begin to look after an entry."""

    noted: Noted
    owner: str
    now: float

    def on(self, journal: Journal) -> bool:
        """See `Journal.take`."""
        return journal.take(self.noted, owner=self.owner, now=self.now)


class EndDue(OnJournal[None], frozen=True):
    """Look after an entry no longer."""

    noted: Noted
    owner: str
    done: bool

    def on(self, journal: Journal) -> None:
        """See `Journal.end`."""
        journal.end(self.noted, owner=self.owner, done=self.done)
