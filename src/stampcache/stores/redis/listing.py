"""What is to be looked after in a Redis store: the list of due entries (ADR 0022)."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from stampcache.errors import CodecError
from stampcache.freshness import period
from stampcache.journal import LEASE_S, Listed, Noted
from stampcache.model import Entry, Scope
from stampcache.stores.redis import records
from stampcache.stores.redis.asking import Command, Run, Verb
from stampcache.stores.redis.secrets import Facts

_SCOPE = msgspec.msgpack.Decoder(Scope)
_KIND = "due"


class DueList:
    """The list, whose entries go with those of the store. The scope in each is hidden like a question."""

    def __init__(self, run: Callable[[Verb[Any]], Any], facts: Facts) -> None:
        self._run = run
        self._facts = facts

    def list_due(self, entry: Entry, scope: Scope, *, early: bool) -> Listed:
        """See `Journal.list_due`."""
        listed: Listed = self._run(self._list(entry, scope, early))
        return listed

    def _list(self, entry: Entry, scope: Scope, early: bool) -> Verb[Listed]:
        keeper = yield from self._facts.keeper()
        hidden = keeper.close(records.pack(scope), _KIND, entry.id)
        at = records.number(entry.doubtful_at)
        words = (entry.id, *entry.place, at, hidden, str(int(early)))
        may, period_s = yield Run("list-due", words)
        return Listed(bool(may), float(period_s))

    def due(self, count: int, *, now: float) -> Sequence[Noted]:
        """See `Journal.due`."""
        found: Sequence[Noted] = self._run(self._due(max(0, count), now))
        return found

    def _due(self, count: int, now: float) -> Verb[Sequence[Noted]]:
        keeper = yield from self._facts.keeper()
        _, rows = yield Run("due", (records.number(now), count), slow=True)
        found = []
        for entry_id, partition, key, hidden, at, early in rows:
            name = entry_id.decode()
            try:
                scope = _SCOPE.decode(keeper.open(hidden, _KIND, name))
            except CodecError:  # of another key: whoever has that one finds it
                continue
            place = (partition.decode(), key.decode())
            found.append(Noted(name, place, scope, float(at), early == b"1"))
        return found

    def waiting(self, *, now: float) -> int:
        """See `Journal.waiting`."""
        return int(self._run(_asked(Run("due", (records.number(now), 0), slow=True)))[0])

    def take(self, noted: Noted, *, owner: str, now: float) -> bool:
        """See `Journal.take`."""
        at, lease_s = records.number(noted.doubtful_at), records.number(LEASE_S)
        words = (noted.entry_id, at, owner, records.number(now), lease_s)
        return bool(self._run(_asked(Run("take-due", words))))

    def end(self, noted: Noted, *, owner: str, done: bool) -> None:
        """See `Journal.end`."""
        at = records.number(noted.doubtful_at)
        self._run(_asked(Run("end-due", (noted.entry_id, at, owner, str(int(done))))))

    def worked(self, *, now: float) -> float:
        """See `Journal.worked`."""
        return float(self._run(_worked(now)))


def _worked(now: float) -> Verb[float]:
    at, before = yield Command("HMGET", b"meta", ("work-at", "work-period"))
    period_s = 0.0 if at is None else period(float(at), float(before), now)
    told = ("work-at", records.number(now), "work-period", records.number(period_s))
    yield Command("HSET", b"meta", told)
    return period_s


def _asked(ask: Run | Command) -> Verb[Any]:
    return (yield ask)
