"""The watched corpora of a Redis store: chunks, intents, and the answers that writes reach.

What a write differs in and whom it reaches is computed here, from a reading of the server; one Lua verb
then writes it all, unless the corpus has changed since: then it is computed again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from stampcache import differing
from stampcache.corpora import (
    Change,
    Chunk,
    Committed,
    Difference,
    Intent,
    Reach,
    Standing,
    Written,
)
from stampcache.errors import CodecError, StoreError
from stampcache.model import Entry
from stampcache.stores.reaches import Reaches, Touched
from stampcache.stores.redis import records
from stampcache.stores.redis.asking import Command, Run, Verb, Word
from stampcache.stores.redis.keeping import Keeper
from stampcache.stores.redis.names import imprint
from stampcache.stores.redis.replica import Replica
from stampcache.stores.redis.secrets import Facts
from stampcache.stores.redis.verbs import Verbs
from stampcache.stores.telling import Holding

_LOADED_AT_ONCE = 500
_TRIES = 50
_REACH = msgspec.msgpack.Decoder(Reach)
_DIFFERENCES = msgspec.msgpack.Decoder(tuple[Difference, ...])


class _Loaded:
    """The reaches of one corpus, as of a sequence of the log, by the numbers of their rows."""

    def __init__(self, flushes: int) -> None:
        self.flushes = flushes
        self.reaches: Reaches[bytes] = Reaches()
        self.by_row: dict[bytes, Reach] = {}
        self.sequence = b"0"

    def take(self, rows: Sequence[tuple[bytes, bytes, bytes]], keeper: Keeper) -> None:
        """Take up reaches."""
        new = {row: _REACH.decode(keeper.unpack(raw, "reach")) for row, _, raw in rows if raw}
        self.reaches.update(new)
        self.by_row.update(new)
        if rows:
            self.sequence = b"%d" % int(float(rows[-1][1]))

    def drop(self, row: bytes) -> None:
        """Forget one that is gone."""
        self.reaches.drop(row)
        self.by_row.pop(row, None)


class _Known(Struct, frozen=True):
    """What a commit is compared with, and the version of the corpus that this was read at."""

    version: bytes
    complete: bool
    intents: Mapping[str, Intent]
    chunks: Mapping[str, Chunk]


class RedisCorpora:
    """Corpora in the keys of a Redis store."""

    def __init__(
        self, run: Callable[[Verb[Any]], Any], verbs: Verbs, replica: Replica, facts: Facts
    ) -> None:
        self._run = run
        self._verbs = verbs
        self._replica = replica
        self._facts = facts
        self.begin_anew()

    def begin_anew(self) -> None:
        """Know nothing, as in a new process."""
        self._scoring = Holding(self._drop)
        self._loaded: dict[str, _Loaded] = {}

    def let_go(self) -> None:
        """Keep nothing that was read of answers: some are forgotten."""
        self._scoring.let_go()

    def _drop(self) -> None:
        self._loaded = {}

    # -- how corpora stand -------------------------------------------------------------------------

    def standing(self, corpus: str) -> Standing | None:
        """See `Corpora.standing`."""
        standing: Standing | None = self._run(self._verbs.standing(corpus))
        return standing

    def standings(self) -> Sequence[Standing]:
        """See `Corpora.standings`."""
        names = self._run(_asked(Command("SMEMBERS", b"corpora")))
        found = (self.standing(name) for name in sorted(one.decode() for one in names))
        return [standing for standing in found if standing is not None]

    def declare(self, corpus: str, *, now: float, silence_s: float | None) -> Standing:
        """See `Corpora.declare`."""
        keeper = self._run(self._facts.keeper())
        words = (
            corpus,
            records.number(now),
            records.number(silence_s),
            records.unknown(corpus, keeper),
        )
        standing = records.standing_of(corpus, self._written(Run("declare", words)))
        assert standing is not None
        return standing

    def block(self, corpus: str, problem: str) -> None:
        """See `Corpora.block`."""
        self._note(corpus, "problem", problem)

    def heard(self, corpus: str, *, now: float) -> None:
        """See `Corpora.heard`."""
        self._note(corpus, "heard", records.number(now))

    def swept(self, corpus: str, *, now: float, checked: int, drifted: int) -> None:
        """See `Corpora.swept`."""
        at = records.number(now)
        self._note(corpus, "heard", at, "swept", at, "checked", checked, "drifted", drifted)

    def begin(self, corpus: str, intent: Intent) -> None:
        """See `Corpora.begin`."""
        keeper = self._run(self._facts.keeper())
        at, body = records.number(intent.at), records.pack(intent)
        self._written(Run("begin", (corpus, at, records.unknown(corpus, keeper), intent.id, body)))

    def _note(self, corpus: str, *what: Word) -> None:
        self._written(Run("note", (corpus, *what)))

    def _written(self, ask: Run) -> Any:
        """Write something, and know it here, too."""
        reply = self._run(_asked(ask))
        self._run(self._verbs.reread())
        return reply

    # -- writes ------------------------------------------------------------------------------------

    def commit(self, corpus: str, intent: str, change: Change, *, now: float) -> Committed:
        """See `Corpora.commit`."""
        with self._scoring:
            for _ in range(_TRIES):
                done: Committed | None = self._run(self._commit(corpus, intent, change, now))
                if done is not None:
                    self._run(self._verbs.reread())
                    return done
        raise StoreError(
            f"The Redis store failed (corpus {corpus!r} changes faster than a write is compared);"
            " write again."
        )

    def _commit(
        self, corpus: str, intent: str, change: Change, now: float
    ) -> Verb[Committed | None]:
        """Commit once; ``None`` where the corpus changed meanwhile."""
        keeper = yield from self._facts.keeper()
        known = yield from self._known(corpus, change)
        if known is None:
            return None
        change = differing.contested(change, differing.own_intent(known.intents, intent, now))
        done = differing.written(known.chunks, change, complete=known.complete)
        others = [
            differing.contesting(one, change) for one in known.intents.values() if one.id != intent
        ]
        touched: Touched[bytes] = {}
        rows: list[tuple[bytes, bytes, bytes]] = []
        if done:
            loaded = yield from self._catch_up(corpus)
            touched = loaded.reaches.touched(done)
            rows = yield from self._reached(corpus, loaded, list(touched))
        told = _told(corpus, change, done)
        told |= {
            "version": known.version.decode(),
            "now": records.number(now),
            "resolved": "" if change.unfinished else intent,
            "intents": len(others),
            "answers": len(rows),
        }
        words: list[Word] = [records.pack(told), records.unknown(corpus, keeper)]
        trace = differing.trace_of(corpus, done)
        words += [keeper.pack(trace, "change"), keeper.mark(str(trace))]
        for one in others:
            words += [one.id, records.pack(one)]
        for chunk in done.added:
            words += records.chunk_words(chunk)
        by_row = self._loaded[corpus].by_row if rows else {}
        for row, mark, raw in rows:
            before = _DIFFERENCES.decode(keeper.unpack(raw, "differences")) if raw else ()
            after = differing.settled(by_row[row], before, touched[row])
            words += [row, _becomes(by_row[row], after, mark)]
            words.append(keeper.pack(after, "differences") if after else b"")
        reply = yield Run("commit", tuple(words), slow=True)
        if reply[0] == b"closing":
            yield from self._verbs.sweep_all()
            return None
        return None if reply[0] == b"again" else Committed(int(reply[1]), int(reply[2]))

    def _known(self, corpus: str, change: Change) -> Verb[_Known | None]:
        ids: Sequence[str] = differing.named(change)
        if change.emptied:
            ids = [one.decode() for one in (yield Command("HKEYS", b"chunks:" + corpus.encode()))]
        found: dict[str, Chunk] = {}
        known: _Known | None = None
        for start in range(0, max(1, len(ids)), _LOADED_AT_ONCE):
            some = records.pack(list(ids[start : start + _LOADED_AT_ONCE]))
            version, complete, doubted, intents, chunks = yield Run("chunks", (corpus, some))
            if known is not None and known.version != version:
                return None
            found |= {one.id: one for one in _chunks(chunks, doubted=int(doubted))}
            by_id = {one.id: one for one in records.intents_of(intents)}
            known = _Known(version, complete == b"1", by_id, found)
        return known

    def _catch_up(self, corpus: str) -> Verb[_Loaded]:
        """Load the reaches that were stored since, some at a time."""
        keeper = yield from self._facts.keeper()
        loaded = self._loaded.get(corpus)
        if loaded is None or loaded.flushes != self._replica.flushes:
            loaded = self._loaded[corpus] = _Loaded(self._replica.flushes)
        while True:
            rows = yield Run("reaches", (corpus, loaded.sequence, _LOADED_AT_ONCE))
            loaded.take(rows, keeper)
            if len(rows) < _LOADED_AT_ONCE:
                return loaded

    def _reached(
        self, corpus: str, loaded: _Loaded, rows: Sequence[bytes]
    ) -> Verb[list[tuple[bytes, bytes, bytes]]]:
        """Return the answers that are still there, with their marks and differences, by address."""
        found: list[Sequence[bytes]] = []
        for start in range(0, len(rows), _LOADED_AT_ONCE):
            some = rows[start : start + _LOADED_AT_ONCE]
            there = yield Run("reached", (corpus, *some))
            for gone in set(some) - {row for row, *_ in there}:
                loaded.drop(gone)
            found += there
        ordered = sorted(found, key=lambda one: (one[3], one[4]))
        return [(one[0], one[1], one[2]) for one in ordered]

    # -- what is known -----------------------------------------------------------------------------

    def chunks(self, corpus: str, ids: Sequence[str] | None) -> Mapping[str, Chunk]:
        """See `Corpora.chunks`."""
        found: Mapping[str, Chunk] = self._run(self._chunks(corpus, ids))
        return found

    def _chunks(self, corpus: str, ids: Sequence[str] | None) -> Verb[Mapping[str, Chunk]]:
        if ids is None:
            raw = yield Command("HKEYS", b"chunks:" + corpus.encode())
            ids = [one.decode() for one in raw]
        found: dict[str, Chunk] = {}
        for start in range(0, len(ids), _LOADED_AT_ONCE):
            some = records.pack(list(ids[start : start + _LOADED_AT_ONCE]))
            reply = yield Run("chunks", (corpus, some))
            found |= {one.id: one for one in _chunks(reply[4], doubted=0)}
        return found

    def alike(self, corpus: str, ids: Sequence[str]) -> Mapping[str, Chunk]:
        """See `Corpora.alike`."""
        found: Mapping[str, Chunk] = self._run(self._alike(corpus, ids))
        return found

    def _alike(self, corpus: str, ids: Sequence[str]) -> Verb[Mapping[str, Chunk]]:
        known = dict((yield from self._chunks(corpus, ids)))
        words: list[Word] = [corpus]
        for chunk in known.values():
            if chunk.vector:
                words += [chunk.id, imprint(chunk.vector), chunk.digest]
        others = _chunks((yield Run("alike", tuple(words))), doubted=0)
        return known | {one.id: one for one in others}

    def sample(self, corpus: str, settings: str, count: int, *, after: str) -> Sequence[Entry]:
        """See `Corpora.sample`."""
        found: Sequence[Entry] = self._run(self._sample(corpus, settings, count, after))
        return found

    def _sample(self, corpus: str, settings: str, count: int, after: str) -> Verb[Sequence[Entry]]:
        found: list[Entry] = []
        for partition, key, entry_id in (
            yield Run("sample", (corpus, settings, after, count), slow=True)
        ):
            try:
                entry = yield from self._verbs.fetch((partition.decode(), key.decode()))
            except CodecError:
                continue  # whoever asks for it is told
            if entry is not None and entry.id == entry_id.decode() and not entry.invalidated:
                found.append(entry)
        return found

    def reach(self, entry: Entry) -> Reach | None:
        """See `Corpora.reach`."""
        raw = self._run(_asked(Run("reach", (entry.id,))))
        keeper = self._run(self._facts.keeper())
        return _REACH.decode(keeper.unpack(raw, "reach")) if raw else None


def _asked(ask: Run | Command) -> Verb[Any]:
    return (yield ask)


def _chunks(raw: Iterable[Sequence[Any]], *, doubted: int) -> list[Chunk]:
    """Return chunks from the reply of a verb; those are doubtful that came before ``doubted``."""
    found = []
    for _, record, sequence, otherwise in raw:
        chunk = records.chunk_of(record)
        if otherwise or float(sequence) < doubted:
            chunk = differing.doubtful(chunk)
        found.append(chunk)
    return found


def _told(corpus: str, change: Change, done: Written) -> dict[str, object]:
    """Return what is written of a corpus, but for what follows as arguments."""
    trace = differing.trace_of(corpus, done)
    stays = differing.is_complete(change, before=True)
    selectors = [records.selecting(one) for one in trace.selectors] if done else []
    return {
        "corpus": corpus,
        "done": bool(done),
        "doubts": change.doubts,
        "selectors": selectors,
        "removed": [[one.id, imprint(one.vector).decode()] for one in done.removed],
        "added": len(done.added),
        "complete": "" if stays and not change.emptied else str(int(stays)),
    }


def _becomes(reach: Reach, after: Sequence[Difference], mark: bytes) -> str:
    """Return what becomes of an answer that differs so now."""
    holds = differing.holds(reach, after)
    if holds is not bool(mark):
        return ""
    return "restored" if holds else "stale"
