"""The two faces of the cache: `Cache` for threads, `AsyncCache` for tasks. Same names, same flows.

Both may stand on one core: ``cache.aio`` is the async face of the same cache.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from stampcache import flows
from stampcache.calibration import Calibration
from stampcache.decide import MAX_ANSWER_BYTES
from stampcache.drivers import arun, run
from stampcache.effects import Flow
from stampcache.explain import Explanation
from stampcache.face import Face
from stampcache.intake import Tenants, as_answer, flight_key, own
from stampcache.manifest import Manifest
from stampcache.model import Answer, Evidence, Scope, Stamps
from stampcache.opening import CAPACITY, LIFETIME_S, Revisions
from stampcache.outcome import AsOf, Hit, Miss, Outcome, Stale, Update, is_late
from stampcache.ports import Clock, Store, Verifier
from stampcache.request import Request
from stampcache.telemetry import Stats
from stampcache.ttl import Lifetime

Retrieve = Callable[[str], Sequence[Evidence]]
AsyncRetrieve = Callable[[str], Awaitable[Sequence[Evidence]]]
Done = TypeVar("Done")


class _Given(Struct, frozen=True):
    """What one making gives to all that waited, and as of which change it is known to be true."""

    answer: Answer
    as_of: AsOf


class Cache(Face):
    """A cache for sync code. Open one with `stampcache.open_cache`; it may be shared by all threads.

    A lookup, an update and `get_or_create` never raise because something is down: the outcome is then
    a Miss (or the update Refused), counted, and the application goes on. They do raise `ConfigError`
    and `ScopeError`, and everything when the cache was opened with ``strict=True``.
    """

    @property
    def aio(self) -> "AsyncCache":
        """The async face of this same cache."""
        return AsyncCache.on(self.core)

    def lookup(
        self, request: Request, *, retrieve: Retrieve | None = None, allow_stale: bool = False
    ) -> Outcome:
        """Return a `Hit`, a `Stale` or a `Miss`, each with its reason.

        Args:
            request: what would be run. With ``evidence`` an entry is served only while that
                question still retrieves the same chunks.
            retrieve: gives the evidence of any question now; with it a grounded request may also be
                answered by meaning, after the entry's own question has been rechecked.
            allow_stale: a stale answer to this very question is enough: it is returned as `Stale`,
                with its reason, and nothing is embedded or compared.
        """
        ask = self.core.intake.ask(
            request, can_retrieve=retrieve is not None, allow_stale=allow_stale
        )
        return self._drive(self.core.lookup(ask), retrieve)

    def update(
        self,
        request: Request,
        answer: Answer | str,
        *,
        outcome: Outcome | None = None,
        evidence: Sequence[Evidence] | None = None,
    ) -> Update:
        """Store the answer to a request; return `Stored`, or `Refused` with the reason.

        Args:
            request: the request that was looked up.
            answer: what the application answered.
            outcome: what `lookup` returned. It carries the question's vector and the fence, without
                which an answer made from an old document could be stored after the document changed.
            evidence: the chunks the answer was made from, in rank order; default: the request's.
        """
        return self._drive(self.core.update(request, answer, outcome, evidence))

    def get_or_create(
        self,
        request: Request,
        make: Callable[[], Answer | str],
        *,
        retrieve: Retrieve | None = None,
        allow_stale: bool = False,
    ) -> Answer:
        """Return the cached answer, else the one that ``make`` gives, which is then stored.

        Equal requests that run at once, in threads and tasks alike, share one making and its failure.
        With ``allow_stale`` an answer that no longer holds is good enough, too.
        """
        ask = self.core.intake.ask(
            request, can_retrieve=retrieve is not None, allow_stale=allow_stale
        )
        if isinstance(ask, Miss):
            self.core.counters.outcome(ask, "")
            return as_answer(make())

        led: list[bool] = []
        since = self._drive(self.core.sequence())

        def look_or_make() -> _Given:
            led.append(True)
            outcome = self._drive(self.core.lookup_now(ask), retrieve)
            if isinstance(outcome, Hit) or (allow_stale and isinstance(outcome, Stale)):
                return _Given(outcome.answer, AsOf(since))
            answer = as_answer(make())
            sequence = self._drive(self.core.sequence())
            done = self.update(request, answer, outcome=outcome)
            return _Given(answer, AsOf(sequence, late=is_late(done)))

        key, flights = flight_key(ask), self.core.flights
        given = flights.run(key, look_or_make)
        while not led and not given.as_of.holds_for(since):
            given = flights.run(key, look_or_make)
        if not led:
            self.core.counters.followed(ask.identity.scope)
        return own(given.answer)

    def invalidate(
        self,
        *,
        corpus: str | None = None,
        source: str | None = None,
        chunk: str | None = None,
        entry: str | None = None,
        stamps: Stamps | None = None,
        scope: Scope | None = None,
    ) -> int:
        """Make all entries stale that match everything given, in all scopes; return how many.

        They are never served again unless a caller allows stale answers; `purge` deletes them.
        Answers being made meanwhile from what was named will not be stored either. No tenant is
        needed: whoever ingests documents knows none.

        Args:
            corpus: the body of documents that changed; with ``source`` or ``chunk``, where they are.
            source: a document that was added, changed or removed.
            chunk: a chunk that was changed or removed.
            entry: one entry, by its id.
            stamps: a version that must not be served any more.
            scope: exactly this scope.

        Raises:
            StoreError: the store could not do it; the entries are still served.
        """
        selector = self._selector(corpus, source, chunk, entry, stamps, scope)
        return self._drive(self.core.invalidate(selector))

    def report_bad(self, entry_id: str) -> bool:
        """Delete a wrongly served entry, and never serve that pair of questions again.

        Returns whether the entry was still there.
        """
        return self._drive(flows.report_bad(entry_id))

    def explain(self, request: Request, *, retrieve: Retrieve | None = None) -> Explanation:
        """Look up without serving, counting or touching anything, and tell which check decided.

        An entry that turns out to be damaged is dropped all the same.
        """
        ask = self.core.intake.ask(request, can_retrieve=retrieve is not None, record=False)
        return self._drive(self.core.explain(request, ask), retrieve)

    def purge(self) -> int:
        """Delete all entries, of all scopes, that are invalidated or expired; return how many."""
        return self._drive(self.core.purge())

    def clear(self) -> int:
        """Delete the entries of the scope in force, and nothing else; return how many went."""
        return self._drive(self.core.clear())

    def stats(self, *, everything: bool = False) -> Stats:
        """Return the figures of this process for the scope in force, or for all scopes together."""
        return self.core.stats(everything=everything)

    def close(self) -> None:
        """Write what is pending and let go of the store."""
        self.core.close()

    def _drive(self, flow: Flow[Done], retrieve: Retrieve | None = None) -> Done:
        ports = self.core.ports
        return run(flow, ports if retrieve is None else replace(ports, retrieve=retrieve))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AsyncCache(Face):
    """A cache for tasks: the verbs of `Cache`, none of which blocks the event loop."""

    @property
    def sync(self) -> Cache:
        """The sync face of this same cache."""
        return Cache.on(self.core)

    async def lookup(
        self,
        request: Request,
        *,
        retrieve: AsyncRetrieve | None = None,
        allow_stale: bool = False,
    ) -> Outcome:
        """See `Cache.lookup`."""
        ask = self.core.intake.ask(
            request, can_retrieve=retrieve is not None, allow_stale=allow_stale
        )
        return await self._drive(self.core.lookup(ask), retrieve)

    async def update(
        self,
        request: Request,
        answer: Answer | str,
        *,
        outcome: Outcome | None = None,
        evidence: Sequence[Evidence] | None = None,
    ) -> Update:
        """See `Cache.update`."""
        return await self._drive(self.core.update(request, answer, outcome, evidence))

    async def get_or_create(
        self,
        request: Request,
        make: Callable[[], Awaitable[Answer | str]],
        *,
        retrieve: AsyncRetrieve | None = None,
        allow_stale: bool = False,
    ) -> Answer:
        """See `Cache.get_or_create`."""
        ask = self.core.intake.ask(
            request, can_retrieve=retrieve is not None, allow_stale=allow_stale
        )
        if isinstance(ask, Miss):
            self.core.counters.outcome(ask, "")
            return as_answer(await make())

        led: list[bool] = []
        since = await self._drive(self.core.sequence())

        async def look_or_make() -> _Given:
            led.append(True)
            outcome = await self._drive(self.core.lookup_now(ask), retrieve)
            if isinstance(outcome, Hit) or (allow_stale and isinstance(outcome, Stale)):
                return _Given(outcome.answer, AsOf(since))
            answer = as_answer(await make())
            sequence = await self._drive(self.core.sequence())
            done = await self.update(request, answer, outcome=outcome)
            return _Given(answer, AsOf(sequence, late=is_late(done)))

        key, flights = flight_key(ask), self.core.flights
        given = await flights.arun(key, look_or_make)
        while not led and not given.as_of.holds_for(since):
            given = await flights.arun(key, look_or_make)
        if not led:
            self.core.counters.followed(ask.identity.scope)
        return own(given.answer)

    async def invalidate(
        self,
        *,
        corpus: str | None = None,
        source: str | None = None,
        chunk: str | None = None,
        entry: str | None = None,
        stamps: Stamps | None = None,
        scope: Scope | None = None,
    ) -> int:
        """See `Cache.invalidate`."""
        selector = self._selector(corpus, source, chunk, entry, stamps, scope)
        return await self._drive(self.core.invalidate(selector))

    async def report_bad(self, entry_id: str) -> bool:
        """See `Cache.report_bad`."""
        return await self._drive(flows.report_bad(entry_id))

    async def explain(
        self, request: Request, *, retrieve: AsyncRetrieve | None = None
    ) -> Explanation:
        """See `Cache.explain`."""
        ask = self.core.intake.ask(request, can_retrieve=retrieve is not None, record=False)
        return await self._drive(self.core.explain(request, ask), retrieve)

    async def purge(self) -> int:
        """See `Cache.purge`."""
        return await self._drive(self.core.purge())

    async def clear(self) -> int:
        """See `Cache.clear`."""
        return await self._drive(self.core.clear())

    async def stats(self, *, everything: bool = False) -> Stats:
        """See `Cache.stats`."""
        return await asyncio.to_thread(self.core.stats, everything=everything)

    async def close(self) -> None:
        """See `Cache.close`."""
        await asyncio.to_thread(self.core.close)

    async def _drive(self, flow: Flow[Done], retrieve: AsyncRetrieve | None = None) -> Done:
        ports = self.core.async_ports
        return await arun(flow, ports if retrieve is None else replace(ports, retrieve=retrieve))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def open_cache(
    store: Store | str,
    *,
    embedder: object = None,
    calibration: Calibration | Mapping[str, object] | float | None = None,
    verifier: Verifier | None = None,
    tokenizer: object = None,
    tenants: Tenants = "optional",
    stamps: Stamps | None = None,
    manifest: Manifest | str | Path | None = None,
    secret: bytes | str | None = None,
    capacity: int = CAPACITY,
    ttl_s: float | None = LIFETIME_S,
    lifetimes: Mapping[str, Lifetime] | None = None,
    revisions: Revisions = "shown",
    max_answer_bytes: int = MAX_ANSWER_BYTES,
    flight_timeout_s: float = 120.0,
    strict: bool = False,
    clock: Clock | None = None,
) -> Cache:
    """Open a cache over a store, given as an object or by its URL.

    Args:
        store: ``memory://``, ``sqlite:///path``, or an object that is a `stampcache.ports.Store`.
        embedder: turns semantic hits on: ``"minilm"``, the name of a sentence-transformers model, a
            LangChain ``Embeddings``, a LlamaIndex ``BaseEmbedding``, or an object with ``embed`` and
            ``name``. Without one there are exact hits only.
        calibration: the cosine at or above which two questions may be the same, for an embedder that
            stampcache has not measured; a number, or thresholds by namespace.
        verifier: a second opinion on each pair (see `stampcache.ports.Verifier`).
        tokenizer: a Hugging Face tokenizer by whose token ids questions are keyed; default: their
            canonical text.
        tenants: ``"required"`` raises `ScopeError` where no tenant is in scope. ``"optional"`` serves
            the tenant ``default``, until another tenant is seen: then unscoped calls bypass the cache.
        stamps: versions that the cache cannot see, for all its entries.
        manifest: what the index was made with: a `Manifest`, or the path of the file that ingestion
            wrote; its tokenizer must be the one in use.
        secret: from which each tenant's key is derived; default: drawn once and kept in the store.
        capacity: a hard bound on the number of entries, for a store given by URL.
        revisions: ``"stale"``: an answer goes stale when this process has seen its model served by
            another revision (``system_fingerprint``) since; ``"shown"``: `explain` shows it.
        ttl_s: the life of an answer of no stated kind in seconds; ``None``: until it is invalidated.
        lifetimes: lifetimes by kind of data, besides and instead of those of `stampcache.ttl.KINDS`; a
            request says its ``kind``.
        max_answer_bytes: larger answers are not stored.
        flight_timeout_s: how long an equal request waits for the one that is being made.
        strict: raise `StoreError`, `EmbedderError` and `VerifierError` instead of going on without the
            cache: for tests.
        clock: tells the time; for tests.

    Raises:
        ConfigError: something given is wrong; the sentence says what to change.
    """
    return Cache(
        store,
        embedder=embedder,
        calibration=calibration,
        verifier=verifier,
        tokenizer=tokenizer,
        tenants=tenants,
        stamps=stamps,
        manifest=manifest,
        secret=secret,
        capacity=capacity,
        ttl_s=ttl_s,
        lifetimes=lifetimes,
        revisions=revisions,
        max_answer_bytes=max_answer_bytes,
        flight_timeout_s=flight_timeout_s,
        strict=strict,
        clock=clock,
    )
