"""The books of one watched corpus: which writes are under way, and what each of them came to.

A write stands in the store from when it is announced until all of it was told. That of a large one is
told in parts, so that no transaction takes long; until the last of them no answer is served.
"""

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from stampcache import differing
from stampcache.core import Core
from stampcache.corpora import Change, Chunk, Committed, Intent, Standing
from stampcache.effects import Begin, Commit, Flow, KnownChunks
from stampcache.errors import StoreError
from stampcache.owners import is_gone, this_owner

PART = 256
"""So many chunks are told of in one transaction."""

Done = TypeVar("Done")

_LOGGER = logging.getLogger("stampcache")


class Ledger:
    """Begins and ends the writes to one corpus in the store of a cache; safe for threads and tasks.

    What is known of a corpus is known of one index. Where this process watches two of them under one
    name, nobody can say what a write differs in, so each ends all answers.
    """

    def __init__(self, core: Core, corpus: str, index: str = "") -> None:
        """``index`` tells the watched index from others; empty for what stands beside one."""
        self.core = core
        self.corpus = corpus
        self._index = index
        if not index:
            return
        core.indexes.setdefault(corpus, WeakKeyDictionary())[self] = index
        core.indexes_seen.setdefault(corpus, set()).add(index)
        if not self.is_alone:
            core.counters.event("watch.two_indexes")
            _LOGGER.warning(
                "Corpus %r: two indexes are watched under one name. Any write to one of them ends all"
                " answers; give each index a corpus= of its own.",
                corpus,
            )

    @property
    def is_alone(self) -> bool:
        """Whether this process watches no other index under this name."""
        return len({*self.core.indexes.get(self.corpus, {}).values()}) < 2

    @property
    def apart(self) -> str:
        """What keeps its answers apart from those of another index that was watched under this name."""
        several = len(self.core.indexes_seen.get(self.corpus, ())) > 1
        return self._index if several else ""

    def begin(self, ids: Sequence[str] | None, *, beyond: bool = False) -> Flow[Intent]:
        """Write down that a write begins; whoever does so calls `end` however it ends.

        Raises:
            StoreError: that could not be written down.
        """
        intent = Intent(
            id=secrets.token_hex(8),
            at=self.core.intake.now(),
            owner=this_owner(self.core.token),
            chunks=tuple(ids or ()),
            all_known=ids is not None,
            beyond=beyond,
        )
        self.core.writing.add(intent.id)
        try:
            yield from Begin(self.corpus, intent)
        except Exception:
            self.end(intent)
            raise
        return intent

    def under(self, intent: Intent, work: Flow[Done]) -> Flow[Done]:
        """Do what commits under an intent; it is withdrawn where that fails, but for the store."""
        try:
            return (yield from work)
        except StoreError:
            raise
        except Exception:
            yield from self.withdraw(intent)
            raise
        finally:
            self.end(intent)

    def end(self, intent: Intent) -> None:
        """Say that nobody works on a write any more: if it was not told of, it was left behind."""
        self.core.writing.discard(intent.id)

    def commit(self, intent: Intent, change: Change) -> Flow[Committed]:
        """Tell what a write did; then it is over. Answers that go and come with it count as both."""
        stale = restored = 0
        if not self.is_alone:
            change = replace(change, unknown=True)
        for part in (yield from self._parts(change)):
            done = yield from Commit(self.corpus, intent.id, part, self.core.intake.now())
            stale, restored = stale + done.stale, restored + done.restored
        for listen in tuple(self.core.listeners):
            listen(self.corpus, change)
        counters = self.core.counters
        counters.event("watch.writes")
        counters.event("watch.stale", stale)
        counters.event("watch.restored", restored)
        return Committed(stale, restored)

    def withdraw(self, intent: Intent) -> Flow[None]:
        """Say that a write did nothing after all, or that its work was told of by somebody else."""
        yield from Commit(self.corpus, intent.id, Change(), self.core.intake.now())

    def left_behind(self, standing: Standing) -> list[Intent]:
        """Return the writes that nobody will end."""
        now = self.core.intake.now()
        return [intent for intent in standing.intents if self._is_left(intent, now)]

    def warn(self, what: str) -> None:
        """Count and log that something went past the watch."""
        self.core.counters.event("watch.missed")
        _LOGGER.warning("Corpus %r: %s; what the cache knows of it is renewed.", self.corpus, what)

    def _is_left(self, intent: Intent, now: float) -> bool:
        """Tell whether nobody will end a write; one of this very cache is known to run, or not to."""
        if intent.owner == this_owner(self.core.token):
            return intent.id not in self.core.writing
        return is_gone(intent, now)

    def _parts(self, change: Change) -> Flow[Sequence[Change]]:
        """Divide a change; with the last part of it the write is over."""
        if len(change.added) + len(change.removed) <= PART and not change.emptied:
            return [change]
        names = None if change.emptied else differing.named(change)
        known = yield from KnownChunks(self.corpus, names)
        parts = list(_divided(_steps(change, known), known))
        if len(parts) < 2:
            return [change]
        if (
            change.emptied
        ):  # whoever wrote in between is found by the last part, which names them all
            return [*parts, change]
        first = replace(parts[0], unknown=change.unknown, beyond=change.beyond)
        return [first, *parts[1:-1], replace(parts[-1], unfinished=False)]


def _steps(change: Change, known: Mapping[str, Chunk]) -> dict[str, Chunk | None]:
    """Return what becomes of each chunk, by id; ``None`` where it goes."""
    steps: dict[str, Chunk | None] = {chunk.id: chunk for chunk in change.added}
    for one in (*change.removed, *(known if change.emptied else ())):
        steps.setdefault(one, None)
    if change.emptied:
        return {one: chunk for one, chunk in steps.items() if known.get(one) != chunk}
    return steps


def _divided(steps: Mapping[str, Chunk | None], known: Mapping[str, Chunk]) -> Iterator[Change]:
    """Yield parts of a change; what goes and comes back under another id is in one of them."""

    def digest(one: str) -> str:
        chunk = steps[one] or known.get(one)
        return "" if chunk is None else chunk.digest

    ordered = sorted(steps, key=digest)
    for start in range(0, len(ordered), PART):
        ids = ordered[start : start + PART]
        yield Change(
            added=_present(steps[one] for one in ids),
            removed=tuple(one for one in ids if steps[one] is None),
            unfinished=True,
        )


def _present(chunks: Iterable[Chunk | None]) -> tuple[Chunk, ...]:
    return tuple(chunk for chunk in chunks if chunk is not None)
