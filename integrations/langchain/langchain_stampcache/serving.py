"""The path of one question through a `CachedChain`, written once for sync and async.

`Serving.serve` retrieves (where evidence is rechecked) and looks up; on a miss the answer chain
runs and its answer is stored. Equal questions that run at once share one answer. What fails in the
cache is counted, and the chain answers as if there were no cache; what fails in the retriever or
the answer chain goes to the caller unchanged, and nothing is stored.
"""

import time
from typing import Any, TypeAlias

from langchain_core.runnables import Runnable
from msgspec import Struct

from langchain_stampcache.asking import Asking
from langchain_stampcache.evidence import evidence_of
from langchain_stampcache.results import Made, answer_of, output
from langchain_stampcache.retrieving import Retrieving
from langchain_stampcache.turn import Turn
from stampcache import Answer, Evidence, Hit, Miss, Outcome, Reason, Request
from stampcache.core import Core
from stampcache.errors import CanonicalError, CodecError
from stampcache.explain import Explanation
from stampcache.front import FlightKey, Front, Recheck
from stampcache.reporting import fields
from stampcache.steps import Flow, Step

Output: TypeAlias = dict[str, Any]


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
    flight: FlightKey


class Serving:
    """One chain in front of one cache; safe for threads and tasks."""

    def __init__(self, core: Core, parts: Parts) -> None:
        self._front = Front(core, kind="langchain.chain")
        self._parts = parts

    def serve(self, turn: Turn) -> Flow[Output]:
        """Answer one question."""
        yield from self._prepare(turn)
        key = self._key(turn)
        if isinstance(key, Miss):
            self._front.bypassed(key)
            return (yield from self._unshared(turn, key))
        request = key.request
        shared = yield from self._front.shared(
            key.flight, lambda: self._look_or_make(turn, request)
        )
        if turn.output is None and not self._copy(turn, shared):
            return (yield from self._unshared(turn, shared.outcome))
        assert turn.output is not None  # noqa: S101 - served, made or copied
        return turn.output

    def explain(self, turn: Turn) -> Flow[Explanation]:
        """Tell which check would decide about a question now; nothing is served, made or counted."""
        yield from self._prepare(turn)
        key = self._key(turn)
        if isinstance(key, Miss):
            return Explanation(Request(question=turn.question), key)
        return (yield from self._front.explain(key.request, self._recheck(turn)))

    # -- before the lookup -------------------------------------------------------------------------

    def _prepare(self, turn: Turn) -> Flow[None]:
        if self._parts.rechecked:
            turn.documents = yield from self._retrieve(turn, turn.question)

    def _key(self, turn: Turn) -> _Key | Miss:
        """Return the request that takes part in the cache, or the Miss of one that does not."""
        try:
            if self._parts.rechecked:
                turn.evidence = evidence_of(turn.documents or (), corpus=self._parts.corpus)
        except CanonicalError as error:
            return Miss(reason=Reason.EVIDENCE_UNKNOWN, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the chain answers without the cache
            self._front.failed("evidence", error)
            return Miss(reason=Reason.EVIDENCE_UNKNOWN, detail=str(error))
        try:
            request = self._parts.asking.request(turn.inputs, turn.config, turn.evidence)
        except CanonicalError as error:
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the chain answers without the cache
            self._front.failed("request", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        flight = self._front.flight(request, can_retrieve=self._parts.rechecked)
        return flight if isinstance(flight, Miss) else _Key(request, flight)

    # -- hit or miss -------------------------------------------------------------------------------

    def _look_or_make(self, turn: Turn, request: Request) -> Flow[_Shared]:
        recheck = self._recheck(turn)
        outcome = yield from self._front.lookup(request, recheck)
        if isinstance(outcome, Hit) and not (yield from self._served(turn, outcome)):
            # Once more, for the fence of the answer that is made now.
            outcome = yield from self._front.lookup(request, recheck)
            if isinstance(outcome, Hit) and not (yield from self._served(turn, outcome)):
                outcome = Miss(reason=Reason.CORRUPT, detail="the stored answer is unreadable")
        if isinstance(outcome, Hit):
            return _Shared(outcome=outcome, answer=outcome.entry.answer)
        made = yield from self._make(turn)
        turn.output = output(turn.inputs, made.result, fields(outcome))
        answer = self._stored_form(turn, made)
        if answer is not None:
            yield from self._front.update(request, answer, outcome=outcome, evidence=turn.evidence)
        return _Shared(outcome=outcome, answer=answer)

    def _recheck(self, turn: Turn) -> Recheck | None:
        if not self._parts.rechecked:
            return None

        def recheck(question: str) -> Flow[tuple[Evidence, ...]]:
            documents = yield from self._retrieve(turn, question)
            return evidence_of(documents, corpus=self._parts.corpus)

        return recheck

    def _served(self, turn: Turn, hit: Hit) -> Flow[bool]:
        """Give the turn its copy of a stored answer; one that cannot be read is dropped."""
        try:
            turn.serve(hit.entry.answer, hit)
        except CodecError as error:
            yield from self._front.drop(hit, error)
            return False
        return True

    def _copy(self, turn: Turn, shared: _Shared) -> bool:
        """Give the turn its copy of what an equal question just got; tell whether it could be."""
        if shared.answer is None:
            return False
        turn.serve(shared.answer, shared.outcome)
        self._front.followed(shared.outcome)
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
        return output(turn.inputs, made.result, fields(outcome))

    def _stored_form(self, turn: Turn, made: Made) -> Answer | None:
        try:
            if turn.evidence is None:
                turn.evidence = evidence_of(turn.documents or (), corpus=self._parts.corpus)
            return answer_of(made)
        except Exception as error:  # noqa: BLE001 - counted; the answer is given, but not stored
            self._front.failed("not_storable", error)
            return None
