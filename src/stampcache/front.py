"""The cache as an adapter stands behind it: written once for sync and async, and failing open.

An adapter's path through the cache is a flow of steps (`stampcache.steps`). The verbs here are parts
of such a flow: whatever fails in them is counted and logged, and the application goes on as if there
were no cache (unless the cache is strict). What fails in the application itself never passes here.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from stampcache.cache import AsyncCache, Cache
from stampcache.core import Core, flight_key
from stampcache.errors import CodecError, ScopeError
from stampcache.explain import Explanation
from stampcache.model import Answer, Evidence, Hit, Miss, Outcome, Reason, Request, Stale
from stampcache.steps import Flow, Step, arun, run

Done = TypeVar("Done")
Result = TypeVar("Result")
Output = TypeVar("Output")
Recheck: TypeAlias = Callable[[str], Flow[tuple[Evidence, ...]]]
FlightKey: TypeAlias = tuple[str, ...]
Read: TypeAlias = Callable[[Answer, Outcome], Output]


class Found(Struct, Generic[Output], frozen=True):
    """A hit, and what was read from it."""

    hit: Hit
    output: Output


class Made(Struct, Generic[Output], frozen=True, kw_only=True):
    """What an application made: for the caller, and in the form that is stored.

    ``answer`` is ``None`` where it has no stored form, or is a stream: nobody else can be given it.
    """

    output: Output
    answer: Answer | None
    evidence: Sequence[Evidence] | None = None


class _Shared(Struct, frozen=True):
    """What one lookup or making gives to all that asked for the same at once."""

    outcome: Outcome
    answer: Answer | None


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
        except ScopeError as error:
            return self._unscoped(error)
        except Exception as error:  # noqa: BLE001 - counted; the application runs without the cache
            self.failed("request", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        if isinstance(ask, Miss):
            return ask
        return (self._kind, *flight_key(ask.identity, request))

    def serve(
        self,
        request: Request,
        key: FlightKey,
        *,
        recheck: Recheck | None,
        read: Read[Output],
        make: Callable[[Miss | Stale], Flow[Made[Output]]],
    ) -> Flow[Output]:
        """Answer from the cache, else make and store; equal requests that run at once share it.

        Args:
            request: what is asked.
            key: what `flight` returned for it.
            recheck: gives the evidence of a question now.
            read: returns the caller's own copy of a stored answer; raises `CodecError` where that
                cannot be read.
            make: makes the answer after a lookup that found none. Its failure is the caller's.
        """
        own: list[Output] = []  # what this very caller was given

        def look_or_make() -> Flow[_Shared]:
            found = yield from self.look(request, recheck=recheck, read=read)
            if isinstance(found, Found):
                own.append(found.output)
                return _Shared(found.hit, found.hit.answer)
            made = yield from make(found)
            own.append(made.output)
            if made.answer is not None:
                yield from self.update(request, made.answer, outcome=found, evidence=made.evidence)
            return _Shared(found, made.answer)

        shared = yield from self.shared(key, look_or_make)
        if not own:
            own += self._copied(shared, read)
        if not own:
            yield from look_or_make()
        return own[-1]

    def look(
        self, request: Request, *, read: Read[Output], recheck: Recheck | None = None
    ) -> Flow[Found[Output] | Miss | Stale]:
        """Look up and read; an entry that cannot be read is dropped, and no hit.

        After that it is looked up once more, for the fence of the answer that is made now. Where
        that finds another unreadable one there is no fence, so the answer will not be stored.
        """
        for _ in range(2):
            outcome = yield from self.lookup(request, recheck)
            if not isinstance(outcome, Hit):
                return outcome
            try:
                return Found(outcome, read(outcome.entry.answer, outcome))
            except CodecError as error:
                unreadable = error
            yield from self.drop(outcome, unreadable)
        return Miss(reason=Reason.CORRUPT, detail="the stored answer is unreadable")

    def _copied(self, shared: _Shared, read: Read[Output]) -> list[Output]:
        """Return the own copy of one who waited; nothing where it has to make its own."""
        if shared.answer is None:
            return []
        try:
            copy = read(shared.answer, shared.outcome)
        except CodecError as error:
            self.core.counters.note("adapter.undecodable", error)
            return []
        self.followed(shared.outcome)
        return [copy]

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
        return (yield from self._guarded(step, "lookup"))

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
            scope = outcome.identity.scope if outcome.identity is not None else ""
            self.core.counters.followed(scope)

    def bypassed(self, miss: Miss) -> None:
        """Count a request in which the cache takes no part."""
        self.core.counters.outcome(miss, "")

    def failed(self, what: str, error: Exception) -> None:
        """Count and log a failure of the cache that the application does not see."""
        if self.core.setup.rules.strict:
            raise error
        self.core.counters.note(f"adapter.{what}", error)

    def _unscoped(self, error: ScopeError) -> Miss:
        self.core.counters.event("adapter.unscoped")
        return Miss(reason=Reason.UNSCOPED, detail=str(error))

    def _guarded(self, step: Step[Result], what: str) -> Flow[Result | Miss]:
        """Carry out a step; where it fails, count it and return a Miss."""
        try:
            return (yield from step)
        except ScopeError as error:
            return self._unscoped(error)
        except Exception as error:  # noqa: BLE001 - counted; the application runs without the cache
            self.failed(what, error)
            return Miss(reason=Reason.STORE_ERROR, detail=f"the {what} failed")


def _in_place(recheck: Recheck | None) -> Callable[[str], Sequence[Evidence]] | None:
    return None if recheck is None else lambda question: run(recheck(question))


def _awaited(
    recheck: Recheck | None,
) -> Callable[[str], Awaitable[Sequence[Evidence]]] | None:
    return None if recheck is None else lambda question: arun(recheck(question))
