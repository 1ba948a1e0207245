"""The watched corpora of the memory store. Its verbs take the store's lock; ``standing`` does not."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import takewhile
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from stampcache import reaching
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
from stampcache.reaching import LOST
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

    def record(self, trace: Trace) -> int:
        """Log a write, mark what it touches of the entries without reach; return its sequence."""
        ...


class _Kept(Struct, frozen=True):
    chunk: Chunk
    sequence: int


class _Corpus:
    def __init__(self, standing: Standing) -> None:
        self.standing = standing
        self.chunks: dict[str, _Kept] = {}
        self.reaches: Reaches[str] = Reaches()
        self.reach: dict[str, Reach] = {}
        self.differences: dict[str, tuple[Difference, ...]] = {}


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
            here = self._of(corpus)
            here.standing = replace(here.standing, heard_at=now, silence_s=silence_s)
            return here.standing

    def standing(self, corpus: str) -> Standing | None:
        """See `Corpora.standing`."""
        here = self._corpora.get(corpus)
        return None if here is None else here.standing

    def standings(self) -> Sequence[Standing]:
        """See `Corpora.standings`."""
        with self._open():
            return [self._corpora[name].standing for name in sorted(self._corpora)]

    def begin(self, corpus: str, intent: Intent) -> None:
        """See `Corpora.begin`."""
        with self._open():
            here = self._of(corpus)
            intents = (*here.standing.intents, intent)
            here.standing = replace(here.standing, intents=intents)

    def commit(self, corpus: str, intent: str, change: Change, *, now: float) -> Committed:
        """See `Corpora.commit`."""
        with self._open():
            here = self._of(corpus)
            named = here.chunks if change.emptied else reaching.named(change)
            done = reaching.written(self.chunks(corpus, list(named)), change)
            committed = Committed()
            if done:
                sequence = self._entries.record(reaching.trace_of(corpus, done))
                committed = self._take_over(here, done, sequence)
            left = tuple(one for one in here.standing.intents if one.id != intent)
            complete = not change.unknown and (change.emptied or here.standing.complete)
            here.standing = replace(
                here.standing,
                intents=left,
                heard_at=now,
                chunks=len(here.chunks),
                complete=complete,
            )
            return committed

    def chunks(self, corpus: str, ids: Sequence[str] | None) -> Mapping[str, Chunk]:
        """See `Corpora.chunks`."""
        with self._open():
            here = self._corpora.get(corpus)
            known = {} if here is None else here.chunks
            wanted: Iterable[str] = known if ids is None else ids
            return {one: known[one].chunk for one in wanted if one in known}

    def block(self, corpus: str, problem: str) -> None:
        """See `Corpora.block`."""
        with self._open():
            here = self._of(corpus)
            here.standing = replace(here.standing, problem=problem)

    def heard(self, corpus: str, *, now: float) -> None:
        """See `Corpora.heard`."""
        with self._open():
            here = self._of(corpus)
            here.standing = replace(here.standing, heard_at=now)

    def swept(self, corpus: str, *, now: float, checked: int, drifted: int) -> None:
        """See `Corpora.swept`."""
        with self._open():
            here = self._of(corpus)
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
        here = self._of(reach.corpus)
        here.reach[entry.id] = reach
        here.reaches.set(entry.id, reach)

    def forget(self, entry_id: str) -> None:
        """Forget an entry, if it has a reach."""
        for here in self._corpora.values():
            if here.reach.pop(entry_id, None) is not None:
                here.reaches.drop(entry_id)
                here.differences.pop(entry_id, None)

    def has_reach(self, entry_id: str, corpus: str) -> bool:
        """Tell whether an entry has a reach in this corpus."""
        here = self._corpora.get(corpus)
        return here is not None and entry_id in here.reach

    def added_since(self, reach: Reach, fence: int) -> bool:
        """Tell whether a chunk came within reach after the fence."""
        here = self._of(reach.corpus)
        newest_first = reversed(here.chunks.values())
        later = takewhile(lambda kept: kept.sequence > fence, newest_first)
        return reaching.is_reached(reach, [kept.chunk for kept in later])

    def _of(self, corpus: str) -> _Corpus:
        return self._corpora.setdefault(corpus, _Corpus(Standing(corpus=corpus)))

    def _take_over(self, here: _Corpus, done: Written, sequence: int) -> Committed:
        for chunk in done.removed:
            del here.chunks[chunk.id]  # so that a new one comes last, by its sequence
        for chunk in done.added:
            here.chunks[chunk.id] = _Kept(chunk, sequence)
        touched = here.reaches.touched(done)
        lost = here.reaches.everything() if done.unknown else _citing(here, self._entries, done)
        for one in lost:
            touched.setdefault(one, []).append(LOST)
        trace = str(reaching.trace_of(here.standing.corpus, done))
        counts = [self._shift(here, one, new, trace) for one, new in sorted(touched.items())]
        return Committed(stale=counts.count(1), restored=counts.count(-1))

    def _shift(self, here: _Corpus, one: str, new: Sequence[Difference], change: str) -> int:
        """Mark or restore an entry; return 1 where it went stale by this, -1 where it holds again."""
        entry = self._entries.by_id(one)
        assert entry is not None
        before = here.differences.get(one, ())
        if entry.invalidated and not before:
            return 0  # for another reason, which no write undoes
        after = reaching.settled(here.reach[one], before, new)
        here.differences.pop(one, None)
        if after:
            here.differences[one] = after
        if after and not before:
            self._entries.suspend(entry, change)
            return 1
        if before and not after:
            self._entries.restore(entry)
            return -1
        return 0


def _citing(here: _Corpus, entries: Entries, done: Written) -> list[str]:
    """Return the answers made from removed chunks of which nothing was known."""
    if not done.unseen:
        return []
    gone = set(done.unseen)
    found = []
    for one in here.reach:
        entry = entries.by_id(one)
        cited = {chunk.chunk for chunk in (entry.evidence if entry else None) or ()}
        if cited & gone:
            found.append(one)
    return found
