"""`Cache.work`: look after the entries on the list, off the path of requests (ADR 0022)."""

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from stampcache import decide, flows
from stampcache.decide import Rules
from stampcache.due import Due, DueEntry
from stampcache.effects import (
    DueNow,
    EndDue,
    Fetch,
    Flow,
    Note,
    Paced,
    Step,
    TakeDue,
    Waiting,
    Worked,
)
from stampcache.errors import CodecError, StoreError
from stampcache.journal import Noted
from stampcache.model import Entry
from stampcache.ports import Judge

Refresh: TypeAlias = Callable[[DueEntry], Step[object]]
FAILURES_IN_A_ROW = 3
"""After so many, the judge or the application is taken to be down, and the rest waits for its turn."""


class Work(Struct, frozen=True, kw_only=True):
    """What was done for entries that may have changed: how many were judged, and made anew.

    ``failed`` counts verdicts that said nothing and refreshes that raised; ``left`` entries wait.
    ``same`` and ``not_same`` are pairs of questions that were labelled (ADR 0024), ``unlabelled`` those
    of which the judge said nothing, and ``withdrawn`` the promises that no longer count by the labels.
    """

    fresh: int = 0
    not_fresh: int = 0
    failed: int = 0
    refreshed: int = 0
    left: int = 0
    same: int = 0
    not_same: int = 0
    unlabelled: int = 0
    withdrawn: int = 0


class Worker:
    """Looks after what is on the list; safe for threads and tasks.

    ``due`` is this process's part of the list, and ``owner`` names the process to the others.
    """

    def __init__(
        self, due: Due, judge: Judge | None, rules: Rules, now: Callable[[], float], owner: str
    ) -> None:
        self._due = due
        self._judge = judge
        self._rules = rules
        self._now = now
        self._owner = owner

    def work(self, limit: int, refresh: Refresh | None, counts: "Counter[str]") -> Flow[int]:
        """Ask the judge about what waits, if there is one, and make anew what is not fresh.

        Count that, and return how many entries still wait.
        """
        left = 0
        try:
            yield from Paced((yield from Worked(self._now())))
            if self._judge is not None or refresh is not None:
                yield from self._each(limit, refresh, counts)
            left = yield from Waiting(self._now())
        except StoreError as error:
            if self._rules.strict:
                raise
            yield from Note("work", error)
        return left

    def _each(self, limit: int, refresh: Refresh | None, counts: "Counter[str]") -> Flow[None]:
        failures = 0
        for noted in (yield from DueNow(limit, self._now())):
            if self._judge is not None and not self._judge.may_ask():
                return
            before = counts["failed"]
            yield from self._taken(noted, refresh, counts)
            failures = failures + 1 if counts["failed"] > before else 0
            if failures == FAILURES_IN_A_ROW:
                return

    def _taken(self, noted: Noted, refresh: Refresh | None, counts: "Counter[str]") -> Flow[None]:
        """Look after one entry, unless somebody else does.

        Where this is torn off, by a cancelled task for example, nobody else takes it before its lease
        ends, and this process may take it again at once.
        """
        if not self._due.take(noted.entry_id):
            return
        try:
            if (yield from TakeDue(noted, self._owner, self._now())):
                done = yield from self._looked_after(noted, refresh, counts)
                yield from EndDue(noted, self._owner, done)
        finally:
            self._due.end(noted.entry_id)

    def _looked_after(
        self, noted: Noted, refresh: Refresh | None, counts: "Counter[str]"
    ) -> Flow[bool]:
        """Look after one entry; tell whether that is done."""
        now = self._now()
        entry = yield from self._found(noted, now)
        if entry is None:
            return True
        if self._judge is not None:
            verdict = yield from flows.examined(entry, self._rules, now)
            if verdict.failure:
                counts["failed"] += verdict.asked
                return False
            counts["fresh" if verdict.fresh else "not_fresh"] += 1
            if verdict.fresh:
                return True
        if refresh is None:
            return True
        try:
            yield from refresh(DueEntry(entry, noted.scope, noted.early))
        except Exception as error:  # noqa: BLE001 - counted; others wait for their turn
            yield from Note("refresh", error)
            counts["failed"] += 1
            return False
        counts["refreshed"] += 1
        return True

    def _found(self, noted: Noted, now: float) -> Flow[Entry | None]:
        """Return the entry if it still needs to be looked after."""
        try:
            entry = yield from Fetch(*noted.place)
        except CodecError as error:
            yield from Note("work", error)
            return None
        if entry is None or entry.id != noted.entry_id or decide.validity(entry, None, now):
            return None
        return entry if entry.doubtful_at == noted.doubtful_at else None
