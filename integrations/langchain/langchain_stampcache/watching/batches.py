"""The batches of indexing runs: when each begins to be written, and when that is over.

A run is known by where it runs, its thread and its task: the Indexing API gives it no name. It begins
with the question for the time. Of a batch it first asks which keys exist, may refresh those, writes the
others, and notes all of them; of what is to be deleted it lists the keys, deletes, and notes that.
"""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from stampcache.adapters import Change, Flow, Intent, Watch


class Place(Struct, frozen=True, eq=False):
    """Where a run runs; it is over when that is."""

    thread: threading.Thread
    task: "asyncio.Task[Any] | None"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Place) and self.thread is other.thread
        return same and isinstance(other, Place) and self.task is other.task

    def __hash__(self) -> int:
        return hash((id(self.thread), id(self.task)))

    @property
    def is_over(self) -> bool:
        """Whether nothing runs there any more."""
        return not self.thread.is_alive() or (self.task is not None and self.task.done())


class Batch:
    """Keys whose documents are being written or deleted, and what a watched store told of them."""

    def __init__(self, intent: Intent, corpus: str, keys: Sequence[str], left: set[str]) -> None:
        self.intent = intent
        self.keys = frozenset(keys)
        self.left = left
        """The keys that may be written."""
        self._corpus = corpus
        self._told: set[str] = set()

    def hear(self, corpus: str, change: Change) -> None:
        """Note what a watched store told of."""
        if corpus == self._corpus:
            self._told.update(chunk.id for chunk in change.added)
            self._told.update(change.removed)

    @property
    def is_told(self) -> bool:
        """Whether all of it was told of, or nothing was written."""
        return self.left <= self._told


class Batches:
    """The runs of one record manager; safe for threads and tasks."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._lock = threading.Lock()
        self._open: dict[Place, Batch | None] = {}
        self._noted: dict[Place, frozenset[str]] = {}
        """The keys of the last batch of a run, which may be noted again."""

    def here(self) -> Place:
        """Return where the caller runs."""
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        return Place(threading.current_thread(), task)

    def run_begins(self, here: Place) -> Flow[None]:
        """Resolve what runs that are over left open, here and elsewhere."""
        with self._lock:
            over = [place for place in self._open if place == here or place.is_over]
            left = [self._open.pop(place) for place in over]
            for place in over:
                self._noted.pop(place, None)
            self._open[here] = None
        yield from self._give_up(left)

    def settle(self) -> Flow[None]:
        """Resolve everything that was left open."""
        with self._lock:
            left = list(self._open.values())
            self._open.clear()
            self._noted.clear()
        yield from self._give_up(left)

    def asked(self, here: Place, keys: Sequence[str]) -> Flow[None]:
        """Announce a batch, whatever of it is there already: it may be written again."""
        yield from self._begin(here, keys, set(keys))

    def listed(self, here: Place, keys: Sequence[str]) -> Flow[None]:
        """Announce that documents will be deleted."""
        if keys:
            yield from self._begin(here, keys, set(keys))

    def noted(self, here: Place, keys: Sequence[str], *, grouped: bool) -> Flow[None]:
        """Tell what was written when the last key of a batch is noted.

        Args:
            here: where it was noted.
            keys: that were noted.
            grouped: whether their sources were noted, too; that comes after the documents were written.
        """
        batch, given = self._batch(here), frozenset(keys)
        if batch is None:
            if not given <= self._noted.get(here, frozenset()):
                yield from self._surprise()
            return
        if not grouped:  # those that are there already, and will not be written
            batch.left -= given
        if grouped or not batch.left:
            yield from self._end(here, batch, given)

    def deleted(self, here: Place, keys: Sequence[str]) -> Flow[None]:
        """Tell what was deleted."""
        batch = self._batch(here)
        if batch is None:
            yield from self._surprise()
        else:
            yield from self._end(here, batch, frozenset(keys))

    # -- inside ------------------------------------------------------------------------------------

    def _batch(self, here: Place) -> Batch | None:
        with self._lock:
            return self._open.get(here)

    def _begin(self, here: Place, keys: Sequence[str], left: set[str]) -> Flow[None]:
        with self._lock:
            if here not in self._open:
                return  # nobody indexes here
            before = self._open[here]
            self._open[here] = None
        yield from self._give_up([before])
        intent = yield from self._watch.announce(None)
        batch = Batch(intent, self._watch.corpus, keys, left)
        self._watch.core.listeners.add(batch.hear)
        with self._lock:
            self._open[here] = batch

    def _end(self, here: Place, batch: Batch, given: frozenset[str]) -> Flow[None]:
        with self._lock:
            if self._open.get(here) is not batch:
                return
            self._open[here] = None
            self._noted[here] = batch.keys
        self._watch.core.listeners.discard(batch.hear)
        is_told = batch.is_told and batch.keys <= given
        yield from self._watch.tell(batch.intent, Change() if is_told else None)

    def _give_up(self, batches: Sequence[Batch | None]) -> Flow[None]:
        for batch in batches:
            if batch is not None:
                self._watch.core.listeners.discard(batch.hear)
                yield from self._watch.tell(batch.intent, None)

    def _surprise(self) -> Flow[None]:
        """Tell of what was noted without any run: it was written, or will be, without a word."""
        intent = yield from self._watch.announce(None)
        yield from self._watch.tell(intent, None)
