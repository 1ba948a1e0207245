"""The watch over one corpus, for adapters: every write is announced, made, and told (ADR 0020).

An adapter stands before a vector store of its framework, says what a write will do as `Change`, and
runs the write through `Watch.writing`. While a write is under way no answer of the corpus is served.
What a store can tell of itself (`IndexView`) is used to find out what landed after a failure, and
which writes went around the watch (`Resolving`); without it the watch assumes the worst. The books
are kept by `Ledger`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from stampcache import drivers
from stampcache.adapters.index_view import IndexView, difference
from stampcache.adapters.ledger import Ledger
from stampcache.adapters.resolving import Resolving
from stampcache.core import Core
from stampcache.corpora import Change, Chunk, Committed, Intent, Standing
from stampcache.effects import Block, Declare, Flow, KnownChunks, StandingOf, Step
from stampcache.errors import ConfigError

Done = TypeVar("Done")
Result = TypeVar("Result")


class Watch:
    """Announces and tells the writes to one corpus; safe for threads and tasks."""

    def __init__(
        self,
        core: Core,
        corpus: str,
        view: IndexView,
        *,
        silence_s: float | None = None,
        index: str = "",
    ) -> None:
        """Watch a corpus.

        Args:
            core: of the cache that is told.
            corpus: its name.
            view: what its index can tell of itself.
            silence_s: at least so often (seconds) a write, a sweep or `Cache.heard` must be heard of,
                else no answer of the corpus is served; ``None``: silence says nothing.
            index: tells the watched index from others; empty for what stands beside one.

        Raises:
            ConfigError: the corpus has no name, or the number is no duration.
        """
        if not corpus:
            raise ConfigError("A watched index needs a name: give corpus=.")
        if silence_s is not None and not silence_s > 0:
            raise ConfigError(f"silence_s= is {silence_s!r}; give seconds above 0, or None.")
        self.core = core
        self.corpus = corpus
        self._view = view
        self._silence_s = silence_s
        self._ledger = Ledger(core, corpus, index)
        self._resolving = Resolving(self._ledger, view)
        self._running: set[asyncio.Future[Any]] = set()
        """Flows that run in loops; what nothing refers to might be collected before its end."""

    @property
    def is_alone(self) -> bool:
        """Whether this process watches no other index under this name."""
        return self._ledger.is_alone

    @property
    def apart(self) -> str:
        """What keeps the answers from its index apart, where this process has watched others, too."""
        return self._ledger.apart

    def run(self, flow: Flow[Done]) -> Done:
        """Drive a flow on the calling thread."""
        return drivers.run(flow, self.core.ports)

    async def arun(self, flow: Flow[Done]) -> Done:
        """Drive a flow to its end in the running loop, even if the caller is cancelled meanwhile.

        A write that was begun goes on in threads of its index anyway; it must be told of.
        """
        task = asyncio.ensure_future(drivers.arun(flow, self.core.async_ports))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._note_unheard)
            raise

    def _note_unheard(self, task: "asyncio.Future[Any]") -> None:
        """Count a failure of a flow that nobody waits for any more."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self.core.counters.note("watch.unheard", error)

    # -- opening -----------------------------------------------------------------------------------

    def open(self) -> Flow[Standing]:
        """Begin to watch, or go on; find out whether anything was written meanwhile.

        What went around the watch is taken over where the index can be listed. Where it can only be
        counted, and has another number of chunks than is known, nothing is served until `resync`.
        While others write, nobody can tell that.
        """
        before = yield from StandingOf(self.corpus)
        standing = yield from Declare(self.corpus, self.core.intake.now(), self._silence_s)
        yield from self._resolving.clear_up(standing)
        if self._view.count is not None:
            if before is None:
                yield from self._first(self._view.count)
            else:
                yield from self._compare(self._view.count)
        now = yield from StandingOf(self.corpus)
        assert now is not None
        return now

    def _first(self, counting: Step[int]) -> Flow[None]:
        """Learn what an index holds that nobody watched so far; of an empty one all is known."""
        intent = yield from self._ledger.begin(None)

        def learning() -> Flow[None]:
            count = yield from counting
            standing = yield from StandingOf(self.corpus)
            if standing is not None and standing.complete:  # another one was first
                yield from self._ledger.withdraw(intent)
            elif count == 0:
                yield from self._ledger.commit(intent, Change(emptied=True))
            elif self._view.listing is not None:
                yield from self._resolving.take_over(intent, self._view.listing)
            else:
                yield from self._ledger.withdraw(intent)

        yield from self._ledger.under(intent, learning())

    def _compare(self, counting: Step[int]) -> Flow[None]:
        """Compare the number of chunks with what is known; twice, as a write may have come between."""
        count = yield from self._unlike(counting)
        standing = yield from StandingOf(self.corpus)
        if count is None or standing is None or count != (yield from self._unlike(counting)):
            return
        if self._view.listing is not None:
            self._ledger.warn(f"{count} chunks are there, {standing.chunks} were known")
            yield from self._resolving.renew()
        elif standing.complete:
            yield from Block(
                self.corpus,
                f"the index holds {count} chunks, the watch knows of {standing.chunks}: documents"
                " were written around it; call resync() on the watched index",
            )

    def _unlike(self, counting: Step[int]) -> Flow[int | None]:
        """Count the chunks; ``None`` where they are as many as are known, or others write."""
        before = yield from StandingOf(self.corpus)
        count = yield from counting
        after = yield from StandingOf(self.corpus)
        if before is None or after is None or before.intents or after.intents:
            return None
        same = count == after.chunks or before.chunks != after.chunks
        return None if same else count

    def resync(self) -> Flow[Committed]:
        """Take over what the index holds now, whoever wrote it; then the corpus is served again.

        Without a listing of the index every answer of the corpus becomes stale. Whatever was torn off
        its loop while it wrote must have ended.
        """
        standing = yield from StandingOf(self.corpus)
        intents = () if standing is None else standing.intents
        torn = [intent for intent in intents if intent.id in self.core.torn]
        left = [] if standing is None else self._ledger.left_behind(standing)
        done = yield from self._resolving.renew()
        yield from self._resolving.let_go([*left, *torn])
        for intent in torn:
            self.core.torn.discard(intent.id)
            self._ledger.end(intent)
        return done

    def examine(self) -> Flow[list[str]]:
        """Compare what the watch knows with what the index holds; return each problem as a sentence.

        Nothing is changed by it. While somebody writes, both are not compared.
        """
        standing = yield from StandingOf(self.corpus)
        if standing is None:
            return [f"Nobody has watched corpus {self.corpus!r} so far."]
        found = list[str]()
        if standing.problem:
            found.append(f"Corpus {self.corpus!r} is not served: {standing.problem}.")
        left = self._ledger.left_behind(standing)
        if left:
            found.append(
                f"Writes to corpus {self.corpus!r} that did not end: {len(left)}; open the watch again"
                " or run `stampcache doctor --resolve`."
            )
        missed = "" if standing.intents else (yield from self._differing(standing))
        if missed:
            found.append(
                f"Corpus {self.corpus!r} was written to around the watch: {missed}; call resync() on"
                " the watched index."
            )
        return found

    def _differing(self, standing: Standing) -> Flow[str]:
        """Say in what the index differs from what is known; empty where that is not seen."""
        if self._view.listing is not None:
            there = yield from self._view.listing
            return difference((yield from KnownChunks(self.corpus, None)), there)
        if self._view.count is None or not standing.complete:
            return ""
        count = yield from self._view.count
        return "" if count == standing.chunks else f"{count} chunks instead of {standing.chunks}"

    def known(self, ids: Sequence[str] | None) -> Flow[Mapping[str, Chunk]]:
        """Return what is known of the chunks of these ids, or of all, by id."""
        wanted = None if ids is None else tuple(ids)
        return (yield from KnownChunks(self.corpus, wanted))

    # -- writing -----------------------------------------------------------------------------------

    def writing(
        self,
        write: Step[Result],
        *,
        told: Callable[[Result], Change | None],
        ids: Sequence[str] | None,
        planned: Sequence[Chunk] = (),
        beyond: bool = False,
    ) -> Flow[Result]:
        """Announce a write, make it, and tell what it did.

        Args:
            write: writes; its failure is the caller's.
            told: says what was done, from what ``write`` returned; ``None`` where that is not known:
                then the index is looked into.
            ids: of all chunks that may be touched; ``None`` where that is not known beforehand.
            planned: the chunks that are being added, to know their vectors if the write fails.
            beyond: whether it writes what the index does not hold, such as parent documents.

        Raises:
            StoreError: the cache could not be told. Before the write: it was not made. After it: it
                was, and no answer of the corpus is served until the cache was told of it.
        """
        intent = yield from self.announce(ids, beyond=beyond)
        try:
            try:
                result = yield from self._attended(intent, write)
            except Exception:
                yield from self._find_out(intent, planned)
                raise
            change = told(result)
            if change is None:
                yield from self._find_out(intent, planned)
            else:
                yield from self._commit(intent, change)
            return result
        finally:
            if intent.id not in self.core.torn:
                self._ledger.end(intent)

    def announce(self, ids: Sequence[str] | None, *, beyond: bool = False) -> Flow[Intent]:
        """Say that a write begins, where others make it; whoever does must `tell` what came of it.

        Raises:
            StoreError: the cache could not be told; do not write.
        """
        standing = yield from StandingOf(self.corpus)
        if standing is None:
            standing = yield from self.open()
        yield from self._resolving.clear_up(standing)
        return (yield from self._ledger.begin(ids, beyond=beyond))

    def tell(self, intent: Intent, change: Change | None) -> Flow[None]:
        """Say what came of a write that was announced; ``None`` where that is not known."""
        try:
            if change is None:
                yield from self._resolving.find_out(intent, ())
            else:
                yield from self._commit(intent, change)
        finally:
            self._ledger.end(intent)

    def _commit(self, intent: Intent, change: Change) -> Flow[None]:
        if intent.beyond and change.unknown:
            change = replace(change, beyond=True)
        yield from self._ledger.commit(intent, change)

    def _attended(self, intent: Intent, write: Step[Result]) -> Step[Result]:
        """Return a write that is noticed when it is torn off its loop, as when that is closed.

        Threads of the index may go on with it, and nobody will know when they end.
        """

        async def aio() -> Result:
            try:
                return await write.aio()
            except Exception:
                raise
            except BaseException:
                self.core.torn.add(intent.id)
                self.core.counters.event("watch.torn")
                raise

        return Step(sync=write.sync, aio=aio)

    def _find_out(self, intent: Intent, planned: Sequence[Chunk]) -> Flow[None]:
        try:
            yield from self._resolving.find_out(intent, planned)
        except Exception as error:  # noqa: BLE001 - counted; the intent stays, and blocks all hits
            self.core.counters.note("watch.unresolved", error)
