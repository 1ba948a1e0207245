"""The watch over one corpus, for adapters: every write is announced, made, and told (ADR 0020).

An adapter stands before a vector store of its framework, says what a write will do as `Change`, and
runs the write through `Watch.writing`. While a write is under way no answer of the corpus is served.
What a store can tell of itself (`IndexView`) is used to find out what landed after a failure, and
which writes went around the watch; without it the watch assumes the worst.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from stampcache import canonical, drivers
from stampcache.core import Core
from stampcache.corpora import Change, Chunk, Committed, Intent, Standing
from stampcache.effects import Begin, Block, Commit, Declare, Flow, KnownChunks, StandingOf, Step
from stampcache.errors import ConfigError
from stampcache.owners import is_gone, this_owner

Done = TypeVar("Done")
Result = TypeVar("Result")

_LOGGER = logging.getLogger("stampcache")

VOLATILE = frozenset({
    "crawled_at", "created_at", "creation_date", "indexed_at", "ingested_at", "last_accessed_at",
    "last_accessed_date", "last_modified", "last_modified_date", "loaded_at", "modified_at", "mtime",
    "timestamp", "updated_at",
})  # fmt: skip
"""Metadata that changes whenever a document is ingested, though what it says does not."""


class IndexView(Struct, frozen=True, kw_only=True):
    """What a vector store can tell of itself; ``None`` where it cannot.

    ``count`` is the number of its chunks, ``listing`` gives all of them, and ``look`` those of some
    ids that are there. Their vectors may be empty.
    """

    count: Step[int] | None = None
    listing: Step[Sequence[Chunk]] | None = None
    look: Callable[[Sequence[str]], Step[Sequence[Chunk]]] | None = None


class Watch:
    """Announces and tells the writes to one corpus; safe for threads and tasks."""

    def __init__(
        self, core: Core, corpus: str, view: IndexView, *, silence_s: float | None = None
    ) -> None:
        """Watch a corpus.

        Args:
            core: of the cache that is told.
            corpus: its name.
            view: what its index can tell of itself.
            silence_s: at least so often (seconds) a write, a sweep or `Cache.heard` must be heard of,
                else no answer of the corpus is served; ``None``: silence says nothing.

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
        self._running: set[asyncio.Future[Any]] = set()
        """Flows that run in loops; what nothing refers to might be collected before its end."""

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
        return await asyncio.shield(task)

    # -- opening -----------------------------------------------------------------------------------

    def open(self) -> Flow[Standing]:
        """Begin to watch, or go on; find out whether anything was written meanwhile.

        What went around the watch is taken over where the index can be listed. Where it can only be
        counted, and has another number of chunks than is known, nothing is served until `resync`.
        """
        before = yield from StandingOf(self.corpus)
        standing = yield from Declare(self.corpus, self.core.intake.now(), self._silence_s)
        yield from self._clear_up(standing)
        if self._view.count is None:
            return standing
        count = yield from self._view.count
        if before is None and count == 0:
            yield from self._commit("", Change(emptied=True))  # from now on all of it is known
        elif count != standing.chunks:
            yield from self._missed(standing, count, first=before is None)
        now = yield from StandingOf(self.corpus)
        assert now is not None
        return now

    def _missed(self, standing: Standing, count: int, *, first: bool) -> Flow[None]:
        """Take over what was written without the watch, or say that it cannot be known."""
        if self._view.listing is not None:
            if not first:
                self._warn(f"{count} chunks are there, {standing.chunks} were known")
            yield from self._renew()
        elif standing.complete:
            yield from Block(
                self.corpus,
                f"the index holds {count} chunks, the watch knows of {standing.chunks}: documents"
                " were written around it; call resync() on the watched index",
            )

    def resync(self) -> Flow[Committed]:
        """Take over what the index holds now, whoever wrote it; then the corpus is served again.

        Without a listing of the index every answer of the corpus becomes stale.
        """
        standing = yield from StandingOf(self.corpus)
        if standing is not None:
            yield from self._clear_up(standing)
        return (yield from self._renew())

    def _renew(self) -> Flow[Committed]:
        standing = yield from StandingOf(self.corpus)
        if self._view.listing is None:
            done = yield from self._commit("", Change(unknown=True))
        else:
            done = yield from self._take_over(self._view.listing)
        if standing is not None and standing.problem:
            yield from Block(self.corpus, "")
        return done

    def _take_over(self, listing: Step[Sequence[Chunk]]) -> Flow[Committed]:
        """Take over a listing; what is written while it is made is contested, as with any write."""
        intent = yield from self._begin(None)
        try:
            try:
                found = yield from listing
            except Exception:
                yield from self._commit(intent.id, Change())
                raise
            known = yield from KnownChunks(self.corpus, None)
            added = tuple(_with_vector(chunk, (known.get(chunk.id),)) for chunk in found)
            return (yield from self._commit(intent.id, Change(added=added, emptied=True)))
        finally:
            self.core.writing.discard(intent.id)

    def examine(self) -> Flow[list[str]]:
        """Compare what the watch knows with what the index holds; return each problem as a sentence.

        Nothing is changed by it.
        """
        standing = yield from StandingOf(self.corpus)
        if standing is None:
            return [f"Nobody has watched corpus {self.corpus!r} so far."]
        found = list[str]()
        if standing.problem:
            found.append(f"Corpus {self.corpus!r} is not served: {standing.problem}.")
        now = self.core.intake.now()
        gone = [intent for intent in standing.intents if self._is_gone(intent, now)]
        if gone:
            found.append(
                f"Writes to corpus {self.corpus!r} that did not end: {len(gone)}; open the watch again"
                " or run `stampcache doctor --resolve`."
            )
        missed = yield from self._differing(standing)
        if missed:
            found.append(
                f"Corpus {self.corpus!r} was written to around the watch: {missed}; call resync() on"
                " the watched index."
            )
        return found

    def _differing(self, standing: Standing) -> Flow[str]:
        """Say in what the index differs from what is known; empty where that is not seen."""
        if self._view.listing is not None:
            there = {chunk.id: chunk.digest for chunk in (yield from self._view.listing)}
            known = yield from KnownChunks(self.corpus, None)
            new = len(there.keys() - known.keys())
            gone = len(known.keys() - there.keys())
            other = sum(known[one].digest != there[one] for one in known.keys() & there.keys())
            counts = ((new, "unknown"), (gone, "missing"), (other, "changed"))
            return ", ".join(f"{count} chunks {what}" for count, what in counts if count)
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
                result = yield from write
            except Exception:
                yield from self._find_out(intent, planned)
                raise
            change = told(result)
            if change is None:
                yield from self._find_out(intent, planned)
            else:
                yield from self._commit(intent.id, change)
            return result
        finally:
            self.core.writing.discard(intent.id)

    def announce(self, ids: Sequence[str] | None, *, beyond: bool = False) -> Flow[Intent]:
        """Say that a write begins, where others make it; whoever does must `tell` what came of it.

        Raises:
            StoreError: the cache could not be told; do not write.
        """
        standing = yield from StandingOf(self.corpus)
        if standing is None:
            standing = yield from self.open()
        yield from self._clear_up(standing)
        return (yield from self._begin(ids, beyond=beyond))

    def _begin(self, ids: Sequence[str] | None, *, beyond: bool = False) -> Flow[Intent]:
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
            self.core.writing.discard(intent.id)
            raise
        return intent

    def tell(self, intent: Intent, change: Change | None) -> Flow[None]:
        """Say what came of a write that was announced; ``None`` where that is not known."""
        try:
            if change is None:
                yield from self._resolve(intent, ())
            else:
                yield from self._commit(intent.id, change)
        finally:
            self.core.writing.discard(intent.id)

    def _find_out(self, intent: Intent, planned: Sequence[Chunk]) -> Flow[None]:
        try:
            yield from self._resolve(intent, planned)
        except Exception as error:  # noqa: BLE001 - counted; the intent stays, and blocks all hits
            self.core.counters.note("watch.unresolved", error)

    def _clear_up(self, standing: Standing) -> Flow[None]:
        """Resolve the intents of writers that are gone."""
        now = self.core.intake.now()
        for intent in standing.intents:
            if self._is_gone(intent, now):
                self._warn("a write did not end")
                yield from self._resolve(intent, ())

    def _is_gone(self, intent: Intent, now: float) -> bool:
        """Tell whether nobody will end a write; one of this very cache is known to run, or not to."""
        if intent.owner == this_owner(self.core.token):
            return intent.id not in self.core.writing
        return is_gone(intent, now)

    def _resolve(self, intent: Intent, planned: Sequence[Chunk]) -> Flow[None]:
        """Find out what a write that did not end has done, and tell that."""
        look = self._view.look
        if intent.beyond:
            yield from self._commit(intent.id, Change(unknown=True))
            return
        if not intent.all_known or look is None:
            if self._view.listing is None:
                yield from self._commit(intent.id, Change(unknown=True, removed=intent.chunks))
            else:
                yield from self._renew()
                yield from self._commit(intent.id, Change())
            return
        found = {chunk.id: chunk for chunk in (yield from look(intent.chunks))}
        known = yield from KnownChunks(self.corpus, intent.chunks)
        new = {chunk.id: chunk for chunk in planned}
        there = [_with_vector(one, (known.get(i), new.get(i))) for i, one in found.items()]
        gone = tuple(one for one in intent.chunks if one not in found)
        yield from self._commit(intent.id, Change(added=tuple(there), removed=gone))

    def _commit(self, intent: str, change: Change) -> Flow[Committed]:
        done = yield from Commit(self.corpus, intent, change, self.core.intake.now())
        for listen in tuple(self.core.listeners):
            listen(self.corpus, change)
        counters = self.core.counters
        counters.event("watch.writes")
        counters.event("watch.stale", done.stale)
        counters.event("watch.restored", done.restored)
        return done

    def _warn(self, what: str) -> None:
        self.core.counters.event("watch.missed")
        _LOGGER.warning("Corpus %r: %s; what the cache knows of it is renewed.", self.corpus, what)


def _with_vector(chunk: Chunk, others: Iterable[Chunk | None]) -> Chunk:
    """Return a chunk with the vector of another record of the same chunk, where its own is unknown."""
    if chunk.vector:
        return chunk
    same = (one for one in others if one is not None and one.digest == chunk.digest)
    return next((replace(chunk, vector=one.vector) for one in same), chunk)


def chunk_digest(text: str, metadata: Mapping[str, object], *, volatile: Iterable[str] = ()) -> str:
    """Return what stands for a chunk: its text, white space folded, and metadata that lasts.

    Raises:
        CanonicalError: metadata holds a value that is no JSON.
    """
    ignored = VOLATILE.union(volatile)
    lasting = {name: value for name, value in metadata.items() if name not in ignored}
    parts = [canonical.encode(canonical.text(text)), canonical.value(lasting)]
    return canonical.digest(parts, person=b"watched")
