"""The journal of the memory store; its verbs take the store's lock."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stampcache.freshness import ONE_CHANGE_S, Observed, period, together
from stampcache.journal import LEASE_S, Listed, Noted, Observation, Verdict
from stampcache.model import Entry, Scope
from stampcache.ttl import expired

VERDICTS_KEPT = 10_000


class _Place(Struct, frozen=True):
    """A source in a corpus, and how it was seen to change: by a comparison or by what was announced."""

    corpus: str
    source: str
    announced: bool


class _Source(Struct, frozen=True):
    """How often it changed; when that was announced last, or for comparisons, when they began."""

    observed: Observed
    at: float


class _DueRow(Struct, frozen=True):
    """An entry on the list: whether it was served though doubted, still waits, and who has taken it."""

    noted: Noted
    served: bool
    waiting: bool = True
    owner: str = ""
    taken_at: float = 0.0


class MemoryJournal:
    """Journal in dictionaries, under the lock of its store."""

    def __init__(
        self,
        confirm: Callable[[Entry, float, float | None], bool],
        by_id: Callable[[str], Entry | None],
        opened: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self._confirm = confirm
        self._by_id = by_id
        self._open = opened
        self._sources: dict[_Place, _Source] = {}
        self._due: OrderedDict[str, _DueRow] = OrderedDict()
        self._worked_at: float | None = None
        self._period_s = 0.0
        self._verdicts: deque[Verdict] = deque(maxlen=VERDICTS_KEPT)

    def observe(self, observations: Sequence[Observation], *, now: float) -> None:
        """See `Journal.observe`."""
        with self._open():
            for one in observations:
                if one.seconds is None:
                    self._announced(one, now)
                else:
                    place = _Place(one.corpus, one.source, announced=False)
                    known = self._sources.get(place, _Source(Observed(), now))
                    total = _more(known.observed, one.changed, one.seconds)
                    self._sources[place] = _Source(total, known.at)

    def observed(self, corpus: str, sources: Sequence[str]) -> Mapping[str, Observed]:
        """See `Journal.observed`."""
        with self._open():
            found = {source: list(self._of(corpus, source)) for source in sources}
            return {source: together(seen) for source, seen in found.items() if seen}

    def _announced(self, one: Observation, now: float) -> None:
        place = _Place(one.corpus, one.source, announced=True)
        known = self._sources.get(place)
        compared = self._sources.get(_Place(one.corpus, one.source, announced=False))
        since = known or compared
        if known is not None and now - known.at < ONE_CHANGE_S:
            return
        total = Observed() if known is None else known.observed
        if since is not None:
            total = _more(total, True, max(0.0, now - since.at))
        self._sources[place] = _Source(total, now)

    def _of(self, corpus: str, source: str) -> Iterator[Observed]:
        for place in (corpus, "") if corpus else ("",):
            for announced in (False, True):
                known = self._sources.get(_Place(place, source, announced))
                if known is not None:
                    seen = known.observed
                    yield Observed(0, 0.0, seen.changes, seen.seconds) if announced else seen

    def confirm(self, entry: Entry, *, at: float, doubtful_at: float | None) -> bool:
        """See `Journal.confirm`."""
        with self._open():
            return self._confirm(entry, at, doubtful_at)

    def judged(self, verdict: Verdict) -> None:
        """See `Journal.judged`."""
        with self._open():
            if not verdict.tenant or self._by_id(verdict.entry_id) is not None:
                self._verdicts.append(verdict)

    def verdict(self, entry_id: str) -> Verdict | None:
        """See `Journal.verdict`."""
        with self._open():
            newest = reversed(self._verdicts)
            return next((one for one in newest if one.entry_id == entry_id), None)

    def verdicts(self, count: int) -> Sequence[Verdict]:
        """See `Journal.verdicts`."""
        with self._open():
            return list(islice(reversed(self._verdicts), count))

    def forget(self, tenant: str) -> int:
        """Remove the verdicts on a tenant's entries; return how many bytes these took."""
        gone = [one for one in self._verdicts if one.tenant == tenant]
        kept = [one for one in self._verdicts if one.tenant != tenant]
        self._verdicts = deque(kept, maxlen=VERDICTS_KEPT)
        return sum(len(msgspec.msgpack.encode(one)) for one in gone)

    # -- the list ----------------------------------------------------------------------------------

    def list_due(self, entry: Entry, scope: Scope, *, early: bool) -> Listed:
        """See `Journal.list_due`."""
        with self._open():
            kept, at = self._by_id(entry.id), entry.doubtful_at
            if kept is None or kept.invalidated or at is None or kept.doubtful_at != at:
                return Listed(False, self._period_s)
            known = self._due.get(entry.id)
            same = known if known is not None and known.noted.doubtful_at == at else None
            served = same is not None and same.served
            if same is None or not same.waiting:
                noted = Noted(entry.id, entry.place, scope, at, early)
                self._due[entry.id] = _DueRow(noted, served or not early)
                self._due.move_to_end(entry.id)
            elif not early and not served:
                noted = replace(same.noted, early=False)
                self._due[entry.id] = replace(same, noted=noted, served=True)
            return Listed(early or not served, self._period_s)

    def due(self, count: int, *, now: float) -> Sequence[Noted]:
        """See `Journal.due`."""
        with self._open():
            return list(islice(self._waiting(now), max(0, count)))

    def waiting(self, *, now: float) -> int:
        """See `Journal.waiting`."""
        with self._open():
            return sum(1 for _ in self._waiting(now))

    def take(self, noted: Noted, *, owner: str, now: float) -> bool:
        """See `Journal.take`."""
        with self._open():
            row = self._row(noted)
            if row is None or not row.waiting:
                return False
            if row.owner not in ("", owner) and 0 <= now - row.taken_at < LEASE_S:
                return False
            self._due[noted.entry_id] = replace(row, owner=owner, taken_at=now)
            return True

    def end(self, noted: Noted, *, owner: str, done: bool) -> None:
        """See `Journal.end`."""
        with self._open():
            row = self._row(noted)
            if row is None or row.owner not in ("", owner):
                return
            waiting = row.waiting and not done
            self._due[noted.entry_id] = replace(row, waiting=waiting, owner="")
            if not done:
                self._due.move_to_end(noted.entry_id)

    def worked(self, *, now: float) -> float:
        """See `Journal.worked`."""
        with self._open():
            if self._worked_at is not None:
                self._period_s = period(self._worked_at, self._period_s, now)
            self._worked_at = now
            return self._period_s

    def deleted(self, entry_id: str) -> None:
        """Take an entry from the list that is deleted."""
        self._due.pop(entry_id, None)

    def _row(self, noted: Noted) -> "_DueRow | None":
        row = self._due.get(noted.entry_id)
        return row if row is not None and row.noted.doubtful_at == noted.doubtful_at else None

    def _waiting(self, now: float) -> Iterator[Noted]:
        for row in self._due.values():
            kept = self._by_id(row.noted.entry_id)
            if kept is None or kept.invalidated or expired(kept.expires_at, now):
                continue
            if row.waiting and kept.doubtful_at == row.noted.doubtful_at:
                yield row.noted


def _more(observed: Observed, changed: bool, seconds: float) -> Observed:
    return Observed(observed.changes + changed, observed.seconds + seconds)
