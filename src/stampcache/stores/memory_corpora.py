"""The watched corpora of the memory store. Its verbs take the store's lock; ``standing`` does not."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import takewhile
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stampcache import differing, reaching
from stampcache.corpora import (
    Change,
    Chunk,
    Committed,
    Difference,
    Intent,
    Reach,
    Standing,
    Trace,
    Written,
)
from stampcache.model import Entry
from stampcache.stores.reaches import Reaches


class Entries(Protocol):
    """What the corpora need of the entries beside them; called under the store's lock."""

    def by_id(self, entry_id: str) -> Entry | None:
        """Return an entry."""
        ...

    def suspend(self, entry: Entry, change: str) -> None:
        """Mark an entry that may hold again."""
        ...

    def restore(self, entry: Entry) -> None:
        """Take the mark away."""
        ...

    def note(self, change: Trace) -> int:
        """Log a write; return its sequence."""
        ...

    def record(self, trace: Trace) -> int:
        """Log a write, mark what it touches of the entries without reach; return its sequence."""
        ...


class _Kept(Struct, frozen=True):
    chunk: Chunk
    sequence: int


class _Corpus:
    def __init__(self, standing: Standing) -> None:
        self.standing = standing
        self.watched = False
        self.doubted = 0
        """Chunks that were added before this sequence may have gone or changed unseen."""
        self.chunks: dict[str, _Kept] = {}
        self.same_vector: dict[bytes, dict[str, Chunk]] = {}
        self.reaches: Reaches[str] = Reaches()
        self.reach: dict[str, Reach] = {}
        self.differences: dict[str, tuple[Difference, ...]] = {}

    def known(self, ids: Sequence[str] | None) -> Mapping[str, Chunk]:
        """Return the chunks of these ids, or all, by id, for comparison with what is written."""
        some = self.chunks if ids is None else [one for one in ids if one in self.chunks]
        return {
            one: differing.doubtful(kept.chunk) if kept.sequence < self.doubted else kept.chunk
            for one, kept in ((one, self.chunks[one]) for one in some)
        }

    def drop(self, chunk: Chunk) -> None:
        """Forget a chunk; whatever takes its place comes last, by its sequence."""
        del self.chunks[chunk.id]
        same = self.same_vector[chunk.vector]
        del same[chunk.id]
        if not same:
            del self.same_vector[chunk.vector]

    def add(self, chunk: Chunk, sequence: int) -> None:
        """Take up a chunk."""
        self.chunks[chunk.id] = _Kept(chunk, sequence)
        self.same_vector.setdefault(chunk.vector, {})[chunk.id] = chunk

    def doubt(self, name: str) -> None:
        """Note that a chunk was found otherwise than it is known."""
        kept = self.chunks.get(name)
        if kept is not None:
            chunk = differing.doubtful(kept.chunk)
            self.chunks[name] = replace(kept, chunk=chunk)
            self.same_vector[chunk.vector][name] = chunk

    def other_of(self, chunk: Chunk) -> Chunk | None:
        """Return a chunk of the same vector and another digest."""
        same = self.same_vector[chunk.vector].values() if chunk.vector else ()
        return next((one for one in same if one.digest != chunk.digest), None)


class MemoryCorpora:
    """Corpora in dictionaries, under the lock of their store."""

    def __init__(
        self, entries: Entries, opened: Callable[[], AbstractContextManager[object]]
    ) -> None:
        self._entries = entries
        self._open = opened
        self._corpora: dict[str, _Corpus] = {}

    def declare(self, corpus: str, *, now: float, silence_s: float | None) -> Standing:
        """See `Corpora.declare`."""
        with self._open():
            here = self._of(corpus, now)
            here.standing = replace(here.standing, heard_at=now, silence_s=silence_s)
            return here.standing

    def standing(self, corpus: str) -> Standing | None:
        """See `Corpora.standing`."""
        here = self._corpora.get(corpus)  # which nobody ever takes away
        return here.standing if here is not None and here.watched else None

    def standings(self) -> Sequence[Standing]:
        """See `Corpora.standings`."""
        with self._open():
            watched = (self._corpora[name] for name in sorted(self._corpora))
            return [here.standing for here in watched if here.watched]

    def begin(self, corpus: str, intent: Intent) -> None:
        """See `Corpora.begin`."""
        with self._open():
            here = self._of(corpus, intent.at)
            others = [one for one in here.standing.intents if one.id != intent.id]
            intents = sorted([*others, intent], key=lambda one: one.id)
            here.standing = replace(here.standing, intents=tuple(intents))

    def commit(self, corpus: str, intent: str, change: Change, *, now: float) -> Committed:
        """See `Corpora.commit`."""
        with self._open():
            here = self._of(corpus, now)
            intents = {one.id: one for one in here.standing.intents}
            change = differing.contested(change, differing.own_intent(intents, intent, now))
            known = here.known(None if change.emptied else differing.named(change))
            done = differing.written(known, change, complete=here.standing.complete)
            committed = Committed()
            if done:
                sequence = self._entries.record(differing.trace_of(corpus, done))
                if change.doubts:
                    here.doubted = sequence
                committed = self._take_over(here, done, sequence)
            here.standing = replace(
                here.standing,
                intents=tuple(_left(intents, intent, change)),
                heard_at=now,
                chunks=len(here.chunks),
                complete=differing.is_complete(change, before=here.standing.complete),
            )
            return committed

    def chunks(self, corpus: str, ids: Sequence[str] | None) -> Mapping[str, Chunk]:
        """See `Corpora.chunks`."""
        with self._open():
            here = self._corpora.get(corpus)
            known = {} if here is None else here.chunks
            wanted: Iterable[str] = known if ids is None else ids
            return {one: known[one].chunk for one in wanted if one in known}

    def alike(self, corpus: str, ids: Sequence[str]) -> Mapping[str, Chunk]:
        """See `Corpora.alike`."""
        with self._open():
            known = dict(self.chunks(corpus, ids))
            others = [self._corpora[corpus].other_of(chunk) for chunk in known.values()]
            return known | {other.id: other for other in others if other is not None}

    def block(self, corpus: str, problem: str) -> None:
        """See `Corpora.block`."""
        with self._open():
            here = self._at(corpus)
            if here.watched:
                here.standing = replace(here.standing, problem=problem)

    def heard(self, corpus: str, *, now: float) -> None:
        """See `Corpora.heard`."""
        with self._open():
            here = self._at(corpus)
            if here.watched:
                here.standing = replace(here.standing, heard_at=now)

    def swept(self, corpus: str, *, now: float, checked: int, drifted: int) -> None:
        """See `Corpora.swept`."""
        with self._open():
            here = self._at(corpus)
            if here.watched:
                here.standing = replace(
                    here.standing, heard_at=now, swept_at=now, checked=checked, drifted=drifted
                )

    def sample(self, corpus: str, settings: str, count: int, *, after: str) -> Sequence[Entry]:
        """See `Corpora.sample`."""
        with self._open():
            here = self._corpora.get(corpus)
            reaches = {} if here is None else here.reach
            ids = sorted(one for one, reach in reaches.items() if reach.settings == settings)
            order = [one for one in ids if one > after] + [one for one in ids if one <= after]
            found = (self._entries.by_id(one) for one in order)
            holding = (entry for entry in found if entry is not None and not entry.invalidated)
            return [entry for entry, _ in zip(holding, range(count), strict=False)]

    def reach(self, entry: Entry) -> Reach | None:
        """See `Corpora.reach`."""
        with self._open():
            for here in self._corpora.values():
                if entry.id in here.reach:
                    return here.reach[entry.id]
            return None

    # -- for the store ---------------------------------------------------------------------------------

    def keep(self, entry: Entry, reach: Reach) -> None:
        """Take up an entry that was stored with a reach."""
        here = self._at(reach.corpus)
        here.reach[entry.id] = reach
        here.reaches.update({entry.id: reach})
        for one in reach.doubts:
            here.doubt(one)

    def forget(self, entry_id: str) -> None:
        """Forget an entry, if it has a reach."""
        for here in self._corpora.values():
            if here.reach.pop(entry_id, None) is not None:
                here.reaches.drop(entry_id)
                here.differences.pop(entry_id, None)

    def size(self, entry_id: str) -> int:
        """Return how many bytes the reach of an entry takes, if it has one."""
        reaches = (here.reach.get(entry_id) for here in self._corpora.values())
        return sum(len(msgspec.msgpack.encode(reach)) for reach in reaches if reach is not None)

    def has_reach(self, entry_id: str, corpus: str) -> bool:
        """Tell whether an entry has a reach in this corpus."""
        here = self._corpora.get(corpus)
        return here is not None and entry_id in here.reach

    def is_written(self, corpus: str) -> bool:
        """Tell whether somebody is writing to a corpus."""
        return bool(self._at(corpus).standing.intents)

    def added_since(self, reach: Reach, fence: int) -> bool:
        """Tell whether a chunk came within reach after the fence."""
        here = self._at(reach.corpus)
        newest_first = reversed(here.chunks.values())
        later = takewhile(lambda kept: kept.sequence > fence, newest_first)
        return reaching.is_reached(reach, [kept.chunk for kept in later])

    def _at(self, corpus: str) -> _Corpus:
        """Return what is kept of a corpus, watched or not."""
        return self._corpora.setdefault(corpus, _Corpus(Standing(corpus=corpus)))

    def _of(self, corpus: str, now: float) -> _Corpus:
        """Return what is kept of a corpus, which is watched from now on."""
        here = self._at(corpus)
        if not here.watched:
            here.standing, here.watched = replace(here.standing, heard_at=now), True
            self._entries.note(Trace(corpus=corpus, unknown=True))
        return here

    def _take_over(self, here: _Corpus, done: Written, sequence: int) -> Committed:
        for chunk in done.removed:
            here.drop(chunk)
        for chunk in done.added:
            here.add(chunk, sequence)
        touched = here.reaches.touched(done)
        trace = str(differing.trace_of(here.standing.corpus, done))
        counts = [self._shift(here, one, touched[one], trace) for one in self._by_place(touched)]
        return Committed(stale=counts.count(1), restored=counts.count(-1))

    def _by_place(self, ids: Iterable[str]) -> list[str]:
        found = (self._entries.by_id(one) for one in ids)
        return [one.id for one in sorted(filter(None, found), key=lambda one: one.place)]

    def _shift(self, here: _Corpus, one: str, new: Sequence[Difference], change: str) -> int:
        """Mark or restore an entry; return 1 where it went stale by this, -1 where it holds again."""
        entry = self._entries.by_id(one)
        assert entry is not None
        after = differing.settled(here.reach[one], here.differences.pop(one, ()), new)
        if after:
            here.differences[one] = after
        holds = differing.holds(here.reach[one], after)
        if holds is not bool(entry.invalidated):
            return 0
        if holds:
            self._entries.restore(entry)
            return -1
        self._entries.suspend(entry, change)
        return 1


def _left(intents: Mapping[str, Intent], own: str, change: Change) -> Iterator[Intent]:
    """Yield the intents that stay after a commit, each with what it contests."""
    for one in intents.values():
        if one.id != own:
            yield differing.contesting(one, change)
        elif change.unfinished:
            yield one
