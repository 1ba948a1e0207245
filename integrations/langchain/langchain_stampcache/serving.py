"""The path of one question through a `CachedChain`, written once for sync and async.

`Serving.serve` retrieves (where evidence is rechecked) and looks up; on a miss the answer chain
runs and its answer is stored. Equal questions that run at once share one answer. What fails in the
cache is counted, and the chain answers as if there were no cache; what fails in the retriever or
the answer chain goes to the caller unchanged, and nothing is stored.
"""

import time
from typing import Any, TypeAlias, TypeVar, cast

from langchain_core.runnables import Runnable
from msgspec import Struct

from langchain_stampcache.asking import Asking
from langchain_stampcache.evidence import evidence_of
from langchain_stampcache.reports import cache_fields
from langchain_stampcache.results import Made, answer_of, output
from langchain_stampcache.retrieving import Retrieving
from langchain_stampcache.steps import Flow, Step, arun, run
from langchain_stampcache.turn import Turn
from stampcache import (
    Answer,
    AsyncCache,
    Cache,
    Evidence,
    Hit,
    Miss,
    Outcome,
    Reason,
    Request,
    ScopeError,
    StampCacheError,
)
from stampcache.core import Core, flight_key
from stampcache.errors import CanonicalError, CodecError
from stampcache.singleflight import Flights

Output: TypeAlias = dict[str, Any]
Result = TypeVar("Result")


class Parts(Struct, frozen=True, kw_only=True):
    """What a cached chain is made of."""

    retrieving: Retrieving
    answer: Runnable[Any, Any]
    asking: Asking
    corpus: str
    rechecked: bool


class _Shared(Struct, frozen=True, kw_only=True):
    """What one lookup or making gives to all that asked for the same at once.

    ``answer`` is ``None`` where the result has no stored form, and so cannot be copied.
    """

    outcome: Outcome
    answer: Answer | None


class _Key(Struct, frozen=True):
    """A request that takes part in the cache, and what makes two of them the same at one time."""

    request: Request
    flight: tuple[str, ...]


class Serving:
    """One chain in front of one cache; safe for threads and tasks."""

    def __init__(self, core: Core, parts: Parts) -> None:
        self._core = core
        self._cache = Cache.on(core)
        self._acache = AsyncCache.on(core)
        self._parts = parts
        # Their keys are prefixed, so that nothing but chains takes off in these flights.
        self._flights = cast("Flights[_Shared]", core.flights)

    def serve(self, turn: Turn) -> Flow[Output]:
        """Answer one question."""
        if self._parts.rechecked:
            turn.documents = yield from self._retrieve(turn, turn.question)
        key = self._key(turn)
        if isinstance(key, Miss):
            self._core.counters.outcome(key, "")
            return (yield from self._unshared(turn, key))
        request = key.request
        shared = yield from Step(
            sync=lambda: self._flights.run(
                key.flight, lambda: run(self._look_or_make(turn, request))
            ),
            aio=lambda: self._flights.arun(
                key.flight, lambda: arun(self._look_or_make(turn, request))
            ),
        )
        if turn.output is None and not self._copy(turn, shared):
            return (yield from self._unshared(turn, shared.outcome))
        assert turn.output is not None  # noqa: S101 - served, made or copied
        return turn.output

    # -- before the lookup -------------------------------------------------------------------------

    def _key(self, turn: Turn) -> _Key | Miss:
        """Return the request that takes part in the cache, or the Miss of one that does not."""
        try:
            if self._parts.rechecked:
                turn.evidence = evidence_of(turn.documents or (), corpus=self._parts.corpus)
        except CanonicalError as error:
            return Miss(reason=Reason.EVIDENCE_UNKNOWN, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the chain answers without the cache
            self._failed("adapter.evidence", error)
            return Miss(reason=Reason.EVIDENCE_UNKNOWN, detail=str(error))
        try:
            request = self._parts.asking.request(turn.inputs, turn.config, turn.evidence)
            ask = self._core.ask(request, can_retrieve=self._parts.rechecked, record=False)
        except CanonicalError as error:
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        except ScopeError as error:
            return Miss(reason=Reason.UNSCOPED, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the chain answers without the cache
            self._failed("adapter.request", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        if isinstance(ask, Miss):
            return ask
        return _Key(request, ("langchain.chain", *flight_key(ask.identity, request)))

    # -- hit or miss -------------------------------------------------------------------------------

    def _look_or_make(self, turn: Turn, request: Request) -> Flow[_Shared]:
        outcome = yield from self._lookup(turn, request)
        if isinstance(outcome, Hit) and not self._serve(turn, outcome):
            yield from self._drop(outcome)
            # Once more, for the fence of the answer that is made now.
            outcome = yield from self._lookup(turn, request)
            if isinstance(outcome, Hit) and not self._serve(turn, outcome):
                outcome = Miss(reason=Reason.CORRUPT, detail="the stored answer is unreadable")
        if isinstance(outcome, Hit):
            return _Shared(outcome=outcome, answer=outcome.entry.answer)
        made = yield from self._make(turn)
        turn.output = output(turn.inputs, made.result, cache_fields(outcome))
        answer = self._stored_form(turn, made)
        if answer is not None:
            yield from self._store(turn, request, answer, outcome)
        return _Shared(outcome=outcome, answer=answer)

    def _lookup(self, turn: Turn, request: Request) -> Flow[Outcome]:
        def recheck(question: str) -> Flow[tuple[Evidence, ...]]:
            documents = yield from self._retrieve(turn, question)
            return evidence_of(documents, corpus=self._parts.corpus)

        step: Step[Outcome] = Step(
            sync=lambda: self._cache.lookup(
                request, retrieve=(lambda q: run(recheck(q))) if self._parts.rechecked else None
            ),
            aio=lambda: self._acache.lookup(
                request, retrieve=(lambda q: arun(recheck(q))) if self._parts.rechecked else None
            ),
        )
        outcome = yield from self._guarded(step, "adapter.lookup")
        return outcome or Miss(reason=Reason.STORE_ERROR, detail="the lookup failed")

    def _drop(self, hit: Hit) -> Flow[None]:
        step = Step(
            sync=lambda: self._cache.invalidate(entry=hit.entry_id),
            aio=lambda: self._acache.invalidate(entry=hit.entry_id),
        )
        yield from self._guarded(step, "adapter.drop")

    def _serve(self, turn: Turn, hit: Hit) -> bool:
        """Give the turn its copy of a stored answer; tell whether that could be read."""
        try:
            turn.serve(hit.entry.answer, hit)
        except CodecError as error:
            self._core.counters.note("adapter.undecodable", error)
            return False
        return True

    def _copy(self, turn: Turn, shared: _Shared) -> bool:
        """Give the turn its copy of what an equal question just got; tell whether it could be."""
        if shared.answer is None:
            return False
        try:
            turn.serve(shared.answer, shared.outcome)
        except CodecError as error:
            self._core.counters.note("adapter.undecodable", error)
            return False
        if isinstance(shared.outcome, Hit):
            self._core.counters.outcome(shared.outcome, shared.outcome.entry.identity.scope)
        else:
            self._core.counters.event("adapter.shared")
        return True

    # -- making an answer --------------------------------------------------------------------------

    def _retrieve(self, turn: Turn, question: str) -> Step[list[Any]]:
        retrieving = self._parts.retrieving
        return Step(
            sync=lambda: retrieving.retrieve(question, turn.inputs, turn.config),
            aio=lambda: retrieving.aretrieve(question, turn.inputs, turn.config),
        )

    def _make(self, turn: Turn) -> Flow[Made]:
        if turn.documents is None:
            turn.documents = yield from self._retrieve(turn, turn.question)
        answer = self._parts.answer
        started = time.perf_counter()
        raw = yield from Step(
            sync=lambda: answer.invoke(turn.to_answer(), turn.metered()),
            aio=lambda: answer.ainvoke(turn.to_answer(), turn.metered()),
        )
        return turn.made(raw, time.perf_counter() - started)

    def _unshared(self, turn: Turn, outcome: Outcome) -> Flow[Output]:
        made = yield from self._make(turn)
        return output(turn.inputs, made.result, cache_fields(outcome))

    def _stored_form(self, turn: Turn, made: Made) -> Answer | None:
        try:
            if turn.evidence is None:
                turn.evidence = evidence_of(turn.documents or (), corpus=self._parts.corpus)
            return answer_of(made)
        except Exception as error:  # noqa: BLE001 - counted; the answer is given, but not stored
            self._failed("adapter.not_storable", error)
            return None

    def _store(self, turn: Turn, request: Request, answer: Answer, outcome: Outcome) -> Flow[None]:
        evidence = turn.evidence
        step = Step(
            sync=lambda: self._cache.update(request, answer, outcome=outcome, evidence=evidence),
            aio=lambda: self._acache.update(request, answer, outcome=outcome, evidence=evidence),
        )
        yield from self._guarded(step, "adapter.update")

    def _guarded(self, step: Step[Result], what: str) -> Flow[Result | None]:
        try:
            return (yield from step)
        except Exception as error:  # noqa: BLE001 - counted; the chain answers without the cache
            self._failed(what, error)
            return None

    def _failed(self, what: str, error: Exception) -> None:
        """Count a failure of the cache that the application does not see (unless it is strict)."""
        if self._core.setup.rules.strict and isinstance(error, StampCacheError):
            raise error
        self._core.counters.note(what, error)
