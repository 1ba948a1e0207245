"""The cache as an adapter stands behind it: written once for sync and async, and failing open.

An adapter's path through the cache is a flow of steps (`stampcache.steps`). The verbs here are parts
of such a flow: whatever fails in them is counted and logged, and the application goes on as if there
were no cache (unless the cache is strict). What fails in the application itself never passes here.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

from stampcache.cache import AsyncCache, Cache
from stampcache.core import Core, flight_key
from stampcache.errors import CanonicalError, ScopeError
from stampcache.explain import Explanation
from stampcache.model import Answer, Evidence, Hit, Miss, Outcome, Reason, Request
from stampcache.steps import Flow, Step, arun, run

Done = TypeVar("Done")
Result = TypeVar("Result")
Recheck: TypeAlias = Callable[[str], Flow[tuple[Evidence, ...]]]
FlightKey: TypeAlias = tuple[str, ...]


class Front:
    """One adapter in front of one cache. ``kind`` keeps its flights apart from other adapters'."""

    def __init__(self, core: Core, *, kind: str) -> None:
        self.core = core
        self._kind = kind
        self._cache = Cache.on(core)
        self._acache = AsyncCache.on(core)

    def flight(self, request: Request, *, can_retrieve: bool) -> FlightKey | Miss:
        """Return what equal requests share while they run, or the Miss of one that bypasses."""
        try:
            ask = self.core.ask(request, can_retrieve=can_retrieve, record=False)
        except CanonicalError as error:
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        except ScopeError as error:
            self.core.counters.event("adapter.unscoped")
            return Miss(reason=Reason.UNSCOPED, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the application runs without the cache
            self.failed("request", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        if isinstance(ask, Miss):
            return ask
        return (self._kind, *flight_key(ask.identity, request))

    def shared(self, key: FlightKey, lead: Callable[[], Flow[Done]]) -> Step[Done]:
        """Run a flow once for all that ask for the same key meanwhile; its failure is shared too."""
        flights = self.core.flights
        return Step(
            sync=lambda: flights.run(key, lambda: run(lead())),
            aio=lambda: flights.arun(key, lambda: arun(lead())),
        )

    def lookup(self, request: Request, recheck: Recheck | None = None) -> Flow[Outcome]:
        """Look up; ``recheck`` gives the evidence of a question now."""
        step: Step[Outcome] = Step(
            sync=lambda: self._cache.lookup(request, retrieve=_in_place(recheck)),
            aio=lambda: self._acache.lookup(request, retrieve=_awaited(recheck)),
        )
        outcome = yield from self._guarded(step, "lookup")
        return outcome or Miss(reason=Reason.STORE_ERROR, detail="the lookup failed")

    def update(
        self,
        request: Request,
        answer: Answer,
        *,
        outcome: Outcome | None,
        evidence: Sequence[Evidence] | None = None,
    ) -> Flow[None]:
        """Store an answer, if it may be stored."""
        step = Step(
            sync=lambda: self._cache.update(request, answer, outcome=outcome, evidence=evidence),
            aio=lambda: self._acache.update(request, answer, outcome=outcome, evidence=evidence),
        )
        yield from self._guarded(step, "update")

    def drop(self, hit: Hit, error: Exception) -> Flow[None]:
        """Delete an entry whose payload cannot be read, and count it."""
        self.core.counters.note("adapter.undecodable", error)
        step = Step(
            sync=lambda: self._cache.invalidate(entry=hit.entry_id),
            aio=lambda: self._acache.invalidate(entry=hit.entry_id),
        )
        yield from self._guarded(step, "drop")

    def explain(self, request: Request, recheck: Recheck | None = None) -> Step[Explanation]:
        """Tell which check would decide about a request now; here a failure is an error."""
        return Step(
            sync=lambda: self._cache.explain(request, retrieve=_in_place(recheck)),
            aio=lambda: self._acache.explain(request, retrieve=_awaited(recheck)),
        )

    def followed(self, outcome: Outcome) -> None:
        """Count a request that got what an equal one was just given."""
        if isinstance(outcome, Hit):
            self.core.counters.outcome(outcome, outcome.entry.identity.scope)
        else:
            self.core.counters.event("adapter.shared")

    def bypassed(self, miss: Miss) -> None:
        """Count a request in which the cache takes no part."""
        self.core.counters.outcome(miss, "")

    def failed(self, what: str, error: Exception) -> None:
        """Count and log a failure of the cache that the application does not see."""
        if self.core.setup.rules.strict:
            raise error
        self.core.counters.note(f"adapter.{what}", error)

    def _guarded(self, step: Step[Result], what: str) -> Flow[Result | None]:
        try:
            return (yield from step)
        except Exception as error:  # noqa: BLE001 - counted; the application runs without the cache
            self.failed(what, error)
            return None


def _in_place(recheck: Recheck | None) -> Callable[[str], Sequence[Evidence]] | None:
    return None if recheck is None else lambda question: run(recheck(question))


def _awaited(
    recheck: Recheck | None,
) -> Callable[[str], Awaitable[Sequence[Evidence]]] | None:
    return None if recheck is None else lambda question: arun(recheck(question))
