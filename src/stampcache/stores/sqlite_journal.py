"""The journal of a SQLite store: observed changes of sources, verdicts, what is to be looked after."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from stampcache.errors import CodecError
from stampcache.freshness import ONE_CHANGE_S, Observed, period, together
from stampcache.journal import LEASE_S, Listed, Noted, Observation, Verdict
from stampcache.model import Entry, Scope
from stampcache.stores import sqlite_text
from stampcache.stores import sqlite_writes as writes
from stampcache.stores.codec import Codec
from stampcache.stores.sqlite_file import SqliteFile, translated

VERDICTS_KEPT = 10_000
_VERDICT = msgspec.msgpack.Decoder(Verdict)
_SCOPE = msgspec.msgpack.Decoder(Scope)


class SqliteJournal:
    """Journal in the tables of a SQLite store."""

    def __init__(self, file: SqliteFile, codec: Codec, same_process: Callable[[], None]) -> None:
        self._file = file
        self._codec = codec
        self._same_process = same_process

    def observe(self, observations: Sequence[Observation], *, now: float) -> None:
        """See `Journal.observe`."""
        self._same_process()
        with self._file.transaction() as writer:
            for one in observations:
                place = (one.corpus, one.source)
                if one.seconds is None:
                    writer.execute(sqlite_text.ANNOUNCE, (*place, now, ONE_CHANGE_S))
                else:
                    values = (*place, one.changed, one.seconds, now)
                    writer.execute(sqlite_text.OBSERVE, values)

    def observed(self, corpus: str, sources: Sequence[str]) -> Mapping[str, Observed]:
        """See `Journal.observed`."""
        self._same_process()
        found = {}
        with self._file.reading, translated():
            for source in dict.fromkeys(sources):
                asked = self._file.reader.execute(sqlite_text.OBSERVED, (corpus, source))
                seen = [
                    Observed(0, 0.0, *counted) if announced else Observed(*counted)
                    for announced, *counted in asked.fetchall()
                ]
                if seen:
                    found[source] = together(seen)
        return found

    def confirm(self, entry: Entry, *, at: float, doubtful_at: float | None) -> bool:
        """See `Journal.confirm`."""
        self._same_process()
        with self._file.transaction() as writer:
            return writes.confirm(writer, entry, at, doubtful_at)

    def judged(self, verdict: Verdict) -> None:
        """See `Journal.judged`."""
        self._same_process()
        raw = msgspec.msgpack.encode(verdict)
        body = self._codec.hide(raw, "verdict", verdict.entry_id)
        with self._file.transaction() as writer:
            writer.execute(sqlite_text.JUDGED, (verdict.entry_id, verdict.tenant, body))
            writer.execute(sqlite_text.TRIM_VERDICTS, (VERDICTS_KEPT,))

    def verdict(self, entry_id: str) -> Verdict | None:
        """See `Journal.verdict`."""
        self._same_process()
        with self._file.reading, translated():
            row = self._file.reader.execute(sqlite_text.VERDICT, (entry_id,)).fetchone()
        return None if row is None else self._shown(row[0], entry_id)

    def verdicts(self, count: int) -> Sequence[Verdict]:
        """See `Journal.verdicts`."""
        self._same_process()
        with self._file.reading, translated():
            rows = self._file.reader.execute(sqlite_text.VERDICTS, (count,)).fetchall()
        shown = (self._shown(body, entry_id) for body, entry_id in rows)
        return [verdict for verdict in shown if verdict is not None]

    def _shown(self, body: bytes, entry_id: str) -> Verdict | None:
        """Return a verdict; one that cannot be read says nothing."""
        try:
            return _VERDICT.decode(self._codec.show(body, "verdict", entry_id))
        except CodecError:
            return None

    # -- the list ----------------------------------------------------------------------------------

    def list_due(self, entry: Entry, scope: Scope, *, early: bool) -> Listed:
        """See `Journal.list_due`."""
        self._same_process()
        hidden = self._codec.hide(msgspec.msgpack.encode(scope), "due", entry.id)
        with self._file.transaction() as writer:
            may = writes.list_due(writer, entry, hidden, early=early)
            _, period_s = writer.execute(sqlite_text.PERIOD).fetchone() or (0.0, 0.0)
            return Listed(may, period_s)

    def due(self, count: int, *, now: float) -> Sequence[Noted]:
        """See `Journal.due`."""
        self._same_process()
        with self._file.reading, translated():
            rows = self._file.reader.execute(sqlite_text.DUE, (now, max(0, count))).fetchall()
        found = []
        for entry_id, partition, key, hidden, doubtful_at, early in rows:
            try:
                scope = _SCOPE.decode(self._codec.show(hidden, "due", entry_id))
            except CodecError:  # of another key: whoever has that one finds it
                continue
            found.append(Noted(entry_id, (partition, key), scope, doubtful_at, bool(early)))
        return found

    def waiting(self, *, now: float) -> int:
        """See `Journal.waiting`."""
        self._same_process()
        with self._file.reading, translated():
            (count,) = self._file.reader.execute(sqlite_text.WAITING, (now,)).fetchone()
        return int(count)

    def take(self, noted: Noted, *, owner: str, now: float) -> bool:
        """See `Journal.take`."""
        self._same_process()
        with self._file.transaction() as writer:
            values = (owner, now, LEASE_S, noted.entry_id, noted.doubtful_at)
            return writer.execute(sqlite_text.TAKE, values).rowcount > 0

    def end(self, noted: Noted, *, owner: str, done: bool) -> None:
        """See `Journal.end`."""
        self._same_process()
        with self._file.transaction() as writer:
            ended = sqlite_text.TAKE_FROM_LIST if done else sqlite_text.PUT_TO_END
            writer.execute(ended, (owner, noted.entry_id, noted.doubtful_at))

    def worked(self, *, now: float) -> float:
        """See `Journal.worked`."""
        self._same_process()
        with self._file.transaction() as writer:
            before = writer.execute(sqlite_text.PERIOD).fetchone()
            period_s = 0.0 if before is None else period(before[0], before[1], now)
            writer.execute(sqlite_text.WORKED, (now, period_s))
            return period_s
