"""The journal of a SQLite store: observed changes of sources, and verdicts on entries."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from stampcache.errors import CodecError
from stampcache.freshness import ONE_CHANGE_S, Observed, together
from stampcache.journal import Observation, Verdict
from stampcache.model import Entry
from stampcache.stores import sqlite_text
from stampcache.stores import sqlite_writes as writes
from stampcache.stores.codec import Codec
from stampcache.stores.sqlite_file import SqliteFile, translated

VERDICTS_KEPT = 10_000
_VERDICT = msgspec.msgpack.Decoder(Verdict)


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
                seen = [Observed(*row) for row in asked.fetchall()]
                if seen:
                    found[source] = together(seen)
        return found

    def confirm(self, entry: Entry, *, at: float, doubtful_at: float | None) -> None:
        """See `Journal.confirm`."""
        self._same_process()
        with self._file.transaction() as writer:
            writes.confirm(writer, entry.id, at, doubtful_at)

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
