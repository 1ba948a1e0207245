"""The path of one question through a `CachedChain`, written once for sync and async.

`Serving.serve` retrieves (where evidence is rechecked) and looks up; on a miss the answer chain
runs and its answer is stored. Where nothing is rechecked it retrieves after the lookup that missed,
so that the fence of that lookup covers a document that changes meanwhile. Equal questions that run
at once share one answer. What fails in the cache is counted, and the chain answers as if there were
no cache; what fails in the retriever or the answer chain goes to the caller unchanged, and nothing
is stored.
"""

import time
from collections.abc import Sequence
from typing import Any, TypeAlias

from langchain_core.runnables import Runnable
from msgspec import Struct

from langchain_stampcache.evidence import evidence_of
from langchain_stampcache.requests import Requests
from langchain_stampcache.results import Making, answer_of, output
from langchain_stampcache.retrieving import Retrieving
from langchain_stampcache.turn import Turn
from stampcache import Answer, Evidence, Miss, Outcome, Reason, Request
from stampcache.adapters import (
    Ask,
    CanonicalError,
    Core,
    Explanation,
    Flow,
    Front,
    Made,
    Recheck,
    Step,
    Validity,
    fields,
)

Output: TypeAlias = dict[str, Any]


class ChainParts(Struct, frozen=True, kw_only=True):
    """What a cached chain is made of."""

    retrieving: Retrieving
    answer: Runnable[Any, Any]
    requests: Requests
    validity: Validity


class Serving:
    """One chain in front of one cache; safe for threads and tasks."""

    def __init__(self, core: Core, parts: ChainParts) -> None:
        self.front = Front(core, kind="langchain.chain")
        self._parts = parts

    def serve(self, turn: Turn) -> Flow[Output]:
        """Answer one question."""
        yield from self._prepare(turn)
        ask = self._ask(turn)
        if isinstance(ask, Miss):
            self.front.bypassed(ask)
            making = yield from self._make(turn)
            return output(turn.inputs, making.result, fields(ask))
        return (
            yield from self.front.serve(
                ask,
                recheck=self._recheck(turn),
                read=turn.copied,
                make=lambda outcome: self._made(turn, outcome),
            )
        )

    def explain(self, turn: Turn) -> Flow[Explanation]:
        """Tell which check would decide about a question now; nothing is served, made or counted."""
        yield from self._prepare(turn)
        ask = self._ask(turn)
        if isinstance(ask, Miss):
            return Explanation(Request(question=turn.question), ask)
        return (yield from self.front.explain(ask, self._recheck(turn)))

    # -- before the lookup -------------------------------------------------------------------------

    def _prepare(self, turn: Turn) -> Flow[None]:
        if self._parts.validity.rechecked:
            turn.documents = yield from self._retrieve(turn, turn.question)

    def _ask(self, turn: Turn) -> Ask | Miss:
        """Return what is asked of the cache, or the Miss of a question that bypasses it."""
        try:
            if self._parts.validity.rechecked:
                turn.evidence = evidence_of(
                    turn.documents or (), corpus=self._parts.validity.corpus
                )
        except CanonicalError as error:
            return Miss(reason=Reason.EVIDENCE_UNKNOWN, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the chain answers without the cache
            self.front.failed("evidence", error)
            return Miss(reason=Reason.EVIDENCE_UNKNOWN, detail=str(error))
        try:
            request = self._parts.requests.of(turn.inputs, turn.config, turn.evidence)
        except CanonicalError as error:
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the chain answers without the cache
            self.front.failed("request", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        validity = self._parts.validity
        return self.front.ask(
            request, can_retrieve=validity.rechecked, allow_stale=validity.allow_stale
        )

    def _recheck(self, turn: Turn) -> Recheck | None:
        if not self._parts.validity.rechecked:
            return None

        def recheck(question: str) -> Flow[Sequence[Evidence]]:
            documents = yield from self._retrieve(turn, question)
            return evidence_of(documents, corpus=self._parts.validity.corpus)

        return recheck

    # -- making an answer --------------------------------------------------------------------------

    def _retrieve(self, turn: Turn, question: str) -> Step[list[Any]]:
        retrieving = self._parts.retrieving
        return Step(
            sync=lambda: retrieving.retrieve(question, turn.inputs, turn.config),
            aio=lambda: retrieving.aretrieve(question, turn.inputs, turn.config),
        )

    def _make(self, turn: Turn) -> Flow[Making]:
        if turn.documents is None:
            turn.documents = yield from self._retrieve(turn, turn.question)
        answer = self._parts.answer
        started = time.perf_counter()
        raw = yield from Step(
            sync=lambda: answer.invoke(turn.to_answer(), turn.metered()),
            aio=lambda: answer.ainvoke(turn.to_answer(), turn.metered()),
        )
        return turn.made(raw, time.perf_counter() - started)

    def _made(self, turn: Turn, outcome: Outcome) -> Flow[Made[Output]]:
        making = yield from self._make(turn)
        self._note_evidence(turn)
        answer = self._stored_form(making) if self._may_be_kept(turn) else None
        given = output(turn.inputs, making.result, fields(outcome))
        return Made(output=given, answer=answer, evidence=turn.evidence)

    def _note_evidence(self, turn: Turn) -> None:
        """Note what the answer was made from, unless that is unknown; without a retriever it is."""
        if turn.evidence is not None or not self._parts.retrieving.retrieves:
            return
        try:
            turn.evidence = evidence_of(turn.documents or (), corpus=self._parts.validity.corpus)
        except CanonicalError:
            return  # metadata that is no JSON; `_may_be_kept` counts it
        except Exception as error:  # noqa: BLE001 - counted; the answer is given all the same
            self.front.failed("evidence", error)

    def _may_be_kept(self, turn: Turn) -> bool:
        if turn.evidence is not None or not self._parts.validity.needs_evidence:
            return True
        self.front.event("adapter.evidence_unknown")
        return False

    def _stored_form(self, making: Making) -> Answer | None:
        try:
            return answer_of(making)
        except CanonicalError:
            self.front.event("adapter.not_storable")
            return None
        except Exception as error:  # noqa: BLE001 - counted; the answer is given, but not stored
            self.front.failed("not_storable", error)
            return None
