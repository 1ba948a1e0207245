"""The two faces of the cache: `Cache` for threads, `AsyncCache` for tasks. Same names, same flows.

Both may stand on one core: ``cache.aio`` is the async face of the same cache.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from msgspec.structs import replace

from stampcache import flows
from stampcache.calibration import Promise, Refusal
from stampcache.corpora import Reading, Standing
from stampcache.drivers import AsyncPorts, Ports, arun, run
from stampcache.due import DueEntry
from stampcache.effects import Flow, Heard, StandingOf, Step
from stampcache.explain import Explanation
from stampcache.face import Face
from stampcache.model import Answer, Evidence, Scope, Stamps
from stampcache.outcome import Miss, Outcome, Update
from stampcache.ports import Forgotten
from stampcache.request import Request
from stampcache.sharing import Driven
from stampcache.telemetry import Stats
from stampcache.working import Work

Retrieve = Callable[[str], Sequence[Evidence]]
AsyncRetrieve = Callable[[str], Awaitable[Sequence[Evidence]]]
Done = TypeVar("Done")


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
        if isinstance(ask, Miss):
            return self.core.counted(ask, ask)
        return self.core.counted(ask, self._drive(flows.lookup(ask), retrieve))

    def update(
        self,
        request: Request,
        answer: Answer | str,
        *,
        outcome: Outcome | None = None,
        evidence: Sequence[Evidence] | None = None,
        readings: Sequence[Reading] = (),
    ) -> Update:
        """Store the answer to a request; return `Stored`, or `Refused` with the reason.

        Args:
            request: the request that was looked up.
            answer: what the application answered.
            outcome: what `lookup` returned. It carries the question's vector and the fence, without
                which an answer made from an old document could be stored after the document changed.
            evidence: the chunks the answer was made from, in rank order; default: the request's.
            readings: the searches of watched indexes it was made from; without them, any write to its
                corpus makes the answer of a watched request stale.
        """
        return self._drive(self.core.update(request, answer, outcome, evidence, readings))

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
        making: Step[Answer | str] = Step(sync=make, aio=lambda: asyncio.to_thread(make))
        driven = Driven(self._ports(retrieve), self.core.async_ports)
        return run(self.core.get_or_create(request, ask, making, driven), driven.sync)

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
            StoreError: the store did not say that it is done; what was named may still be served.
                Tell it again.
        """
        selector = self._selector(corpus, source, chunk, entry, stamps, scope)
        return self._drive(self.core.invalidate(selector))

    def standing(self, corpus: str) -> Standing | None:
        """Return whether the answers from a watched corpus may be trusted, and why not.

        ``None`` where nobody watches it; see ``watch`` of the adapters.
        """
        return self._drive(StandingOf(corpus).__iter__())

    def heard(self, corpus: str) -> None:
        """Tell that the watch of a corpus is alive, where somebody must be heard of regularly."""
        self._drive(Heard(corpus, self.core.intake.now()).__iter__())

    def report_bad(self, entry_id: str) -> bool:
        """Delete a wrongly served entry, and never serve that pair of questions again.

        Returns whether the entry was still there. What this process served it to is kept as labels of
        pairs that are not the same (ADR 0024).
        """
        return self._drive(self.core.learning.report(entry_id, same=False))

    def report_good(self, entry_id: str) -> bool:
        """Note that an entry served by meaning answered the question: a label of that pair (ADR 0024).

        Returns whether this process remembers to which question it was served; if to several ones, it is
        a label of none.
        """
        return self._drive(self.core.learning.report(entry_id, same=True))

    def promise(self) -> Promise | Refusal | None:
        """Return what is promised of hits by meaning in the scope in force, or why nothing is.

        ``None``: the cache was opened without ``max_wrong``.
        """
        return self._drive(self.core.learning.promise())

    def explain(self, request: Request, *, retrieve: Retrieve | None = None) -> Explanation:
        """Look up without serving, counting or touching anything, and tell which check decided.

        An entry that turns out to be damaged is dropped all the same.
        """
        ask = self.core.intake.ask(request, can_retrieve=retrieve is not None, record=False)
        return self._drive(self.core.explain(request, ask), retrieve)

    def work(
        self, *, limit: int = 100, refresh: Callable[[DueEntry], object] | None = None
    ) -> Work:
        """Look after entries that were asked for and may have changed; run it where you like.

        Args:
            limit: look at so many at most.
            refresh: makes an answer anew that is not fresh: it is given the entry and the scope it was
                asked in, and runs the application for that question, told ``no_cache``.
        """

        def made(due: DueEntry) -> Step[object]:
            assert refresh is not None
            return Step(sync=lambda: refresh(due), aio=lambda: asyncio.to_thread(refresh, due))

        return self._drive(self.core.work(limit, None if refresh is None else made))

    def purge(self) -> int:
        """Delete all entries, of all scopes, that are invalidated or expired; return how many."""
        return self._drive(self.core.purge())

    def clear(self) -> int:
        """Delete the entries of the scope in force, and nothing else; return how many went."""
        return self._drive(self.core.clear())

    def forget(self, tenant: str) -> Forgotten:
        """Remove every byte of a tenant, in all its scopes; return how much that was.

        What is being made for it meanwhile is not stored. It takes as long as writing the whole store
        anew, and every process then reads it anew. A tenant of another ``secret=`` is not found.

        Raises:
            StoreError: it is not done; what was removed is not served any more, but may still be
                there. Do it again.
        """
        return self._drive(self.core.forget(tenant))

    def stats(self, *, everything: bool = False) -> Stats:
        """Return the figures of this process for the scope in force, or for all scopes together."""
        return self.core.stats(everything=everything)

    def close(self) -> None:
        """Write what is pending and let go of the store."""
        self.core.close()

    def _drive(self, flow: Flow[Done], retrieve: Retrieve | None = None) -> Done:
        return run(flow, self._ports(retrieve))

    def _ports(self, retrieve: Retrieve | None) -> Ports:
        ports = self.core.ports
        return ports if retrieve is None else replace(ports, retrieve=retrieve)

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
        if isinstance(ask, Miss):
            return self.core.counted(ask, ask)
        return self.core.counted(ask, await self._drive(flows.lookup(ask), retrieve))

    async def update(
        self,
        request: Request,
        answer: Answer | str,
        *,
        outcome: Outcome | None = None,
        evidence: Sequence[Evidence] | None = None,
        readings: Sequence[Reading] = (),
    ) -> Update:
        """See `Cache.update`."""
        return await self._drive(self.core.update(request, answer, outcome, evidence, readings))

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
        making: Step[Answer | str] = Step(sync=_awaited_only, aio=make)
        driven = Driven(self.core.ports, self._ports(retrieve))
        return await arun(self.core.get_or_create(request, ask, making, driven), driven.aio)

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

    async def standing(self, corpus: str) -> Standing | None:
        """See `Cache.standing`."""
        return await self._drive(StandingOf(corpus).__iter__())

    async def heard(self, corpus: str) -> None:
        """See `Cache.heard`."""
        await self._drive(Heard(corpus, self.core.intake.now()).__iter__())

    async def report_bad(self, entry_id: str) -> bool:
        """See `Cache.report_bad`."""
        return await self._drive(self.core.learning.report(entry_id, same=False))

    async def report_good(self, entry_id: str) -> bool:
        """See `Cache.report_good`."""
        return await self._drive(self.core.learning.report(entry_id, same=True))

    async def promise(self) -> Promise | Refusal | None:
        """See `Cache.promise`."""
        return await self._drive(self.core.learning.promise())

    async def explain(
        self, request: Request, *, retrieve: AsyncRetrieve | None = None
    ) -> Explanation:
        """See `Cache.explain`."""
        ask = self.core.intake.ask(request, can_retrieve=retrieve is not None, record=False)
        return await self._drive(self.core.explain(request, ask), retrieve)

    async def work(
        self, *, limit: int = 100, refresh: Callable[[DueEntry], Awaitable[object]] | None = None
    ) -> Work:
        """See `Cache.work`."""

        def made(due: DueEntry) -> Step[object]:
            assert refresh is not None
            return Step(sync=_awaited_only, aio=lambda: refresh(due))

        return await self._drive(self.core.work(limit, None if refresh is None else made))

    async def purge(self) -> int:
        """See `Cache.purge`."""
        return await self._drive(self.core.purge())

    async def clear(self) -> int:
        """See `Cache.clear`."""
        return await self._drive(self.core.clear())

    async def forget(self, tenant: str) -> Forgotten:
        """See `Cache.forget`."""
        return await self._drive(self.core.forget(tenant))

    async def stats(self, *, everything: bool = False) -> Stats:
        """See `Cache.stats`."""
        return await asyncio.to_thread(self.core.stats, everything=everything)

    async def close(self) -> None:
        """See `Cache.close`."""
        await asyncio.to_thread(self.core.close)

    async def _drive(self, flow: Flow[Done], retrieve: AsyncRetrieve | None = None) -> Done:
        return await arun(flow, self._ports(retrieve))

    def _ports(self, retrieve: AsyncRetrieve | None) -> AsyncPorts:
        ports = self.core.async_ports
        return ports if retrieve is None else replace(ports, retrieve=retrieve)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _awaited_only() -> str:
    raise AssertionError("a making of tasks was asked for by sync code")
