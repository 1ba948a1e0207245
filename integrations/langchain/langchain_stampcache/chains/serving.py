"""The path of one question through a cached chain, written once for sync and async.

`Serving.serve` retrieves (where evidence is rechecked) and looks up; on a miss the chain runs and
its answer is stored. Where nothing is rechecked it retrieves after the lookup that missed, so that
the fence of that lookup covers a document that changes meanwhile. Equal questions that run at once
share one answer. What fails in the cache is counted, and the chain answers as if there were no cache;
what fails in the app (its condenser, its retriever, its answer chain) goes to the caller unchanged,
and nothing is stored.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from msgspec import Struct

from langchain_stampcache.caller import Caller
from langchain_stampcache.chains.requests import Requests
from langchain_stampcache.chains.retrieving import Retrieving
from langchain_stampcache.chains.turn import Turn
from langchain_stampcache.pieces import Flowing
from langchain_stampcache.retrieval.evidence import evidence_of
from stampcache import Evidence, Miss, Outcome, Reason, Request
from stampcache.adapters import (
    Ask,
    CanonicalError,
    Core,
    Explanation,
    Flow,
    Front,
    Kept,
    Made,
    Recheck,
    Step,
    Validity,
    asked,
    fields,
)


class ChainParts(Struct, frozen=True, kw_only=True):
    """What a cached chain is made of.

    ``begin`` makes the turn of one call. With ``retrieves_first`` the documents are retrieved here
    and given to ``runnable``; without, it retrieves for itself.
    """

    begin: Callable[[object, RunnableConfig, Caller], Turn]
    runnable: Runnable[Any, Any]
    retrieving: Retrieving
    requests: Requests
    validity: Validity
    flow: Flowing
    retrieves_first: bool
    condense: Runnable[Any, Any] | None = None


class Serving:
    """One chain in front of one cache; safe for threads and tasks."""

    def __init__(self, core: Core, parts: ChainParts, *, kind: str) -> None:
        self.front = Front(core, kind=kind)
        self.parts = parts

    def serve(self, turn: Turn) -> Flow[Any]:
        """Answer one question."""
        yield from self.prepare(turn)
        ask = self.ask(turn)
        if isinstance(ask, Miss):
            self.front.bypassed(ask)
            return turn.output((yield from self._make(turn)), fields(ask))
        return (
            yield from self.front.serve(
                ask,
                recheck=self.recheck(turn),
                read=turn.copied,
                make=lambda outcome: self._made(turn, outcome),
            )
        )

    def explain(self, turn: Turn) -> Flow[Explanation]:
        """Tell which check would decide about a question now; nothing is answered or counted."""
        yield from self.prepare(turn)
        ask = self.ask(turn)
        if isinstance(ask, Miss):
            return Explanation(Request(question=turn.question), ask)
        return (yield from self.front.explain(ask, self.recheck(turn)))

    # -- before the lookup -------------------------------------------------------------------------

    def prepare(self, turn: Turn) -> Flow[None]:
        """Find out what is asked, and what it is asked of where that is compared."""
        condense = self.parts.condense
        if condense is not None and turn.has_history:
            alone = yield from Step(
                sync=lambda: condense.invoke(dict(turn.inputs), turn.config),
                aio=lambda: condense.ainvoke(dict(turn.inputs), turn.config),
            )
            turn.condensed = _text(alone)
        if self.parts.validity.rechecked:
            turn.documents = yield from self._retrieve(turn, turn.question)

    def ask(self, turn: Turn) -> Ask | Miss:
        """Return what is asked of the cache, or the Miss of a question that bypasses it."""
        validity = self.parts.validity
        if validity.rechecked:
            try:
                turn.evidence = evidence_of(turn.documents or (), corpus=validity.corpus)
            except CanonicalError as error:
                return Miss(reason=Reason.EVIDENCE_UNKNOWN, detail=str(error))
            except Exception as error:  # noqa: BLE001 - counted; the chain answers without the cache
                self.front.failed("evidence", error)
                return Miss(reason=Reason.EVIDENCE_UNKNOWN, detail=str(error))
        return asked(
            self.front,
            lambda: self.parts.requests.of(turn.asked(), turn.config, turn.evidence),
            can_retrieve=validity.rechecked,
            allow_stale=validity.allow_stale,
        )

    def recheck(self, turn: Turn) -> Recheck | None:
        """Return what gives the evidence of a question now, where that is compared."""
        if not self.parts.validity.rechecked:
            return None

        def recheck(question: str) -> Flow[Sequence[Evidence]]:
            documents = yield from self._retrieve(turn, question)
            return evidence_of(documents, corpus=self.parts.validity.corpus)

        return recheck

    # -- making an answer --------------------------------------------------------------------------

    def ready(self, turn: Turn) -> Flow[None]:
        """Retrieve what the answer is made from, unless that was done, or is the chain's own affair.

        The evidence is noted now: a chain may write into the documents that it is given.
        """
        if turn.documents is None and self.parts.retrieves_first:
            turn.documents = yield from self._retrieve(turn, turn.question)
            if self.parts.retrieving.retrieves:
                self._note_evidence(turn, lambda: turn.documents)

    def kept(self, turn: Turn, raw: object) -> Kept | None:
        """Return what is stored of an answer; ``None`` where nothing is."""
        if not self.parts.retrieves_first:
            self._note_evidence(turn, lambda: turn.sources(raw))
        if not self._may_be_kept(turn):
            return None
        try:
            return Kept(turn.stored(raw), turn.evidence)
        except CanonicalError:
            return None

    def _retrieve(self, turn: Turn, question: str) -> Step[list[Any]]:
        retrieving = self.parts.retrieving
        return Step(
            sync=lambda: retrieving.retrieve(question, turn.to_retrieve(), turn.config),
            aio=lambda: retrieving.aretrieve(question, turn.to_retrieve(), turn.config),
        )

    def _make(self, turn: Turn) -> Flow[object]:
        yield from self.ready(turn)
        runnable = self.parts.runnable
        started = time.perf_counter()
        raw = yield from Step(
            sync=lambda: runnable.invoke(turn.to_run(), turn.running()),
            aio=lambda: runnable.ainvoke(turn.to_run(), turn.running()),
        )
        turn.latency_s = time.perf_counter() - started
        return raw

    def _made(self, turn: Turn, outcome: Outcome) -> Flow[Made[Any]]:
        raw = yield from self._make(turn)
        kept = self.front.kept(lambda: self.kept(turn, raw))
        return Made(
            output=turn.output(raw, fields(outcome)),
            answer=None if kept is None else kept.answer,
            evidence=turn.evidence,
        )

    def _note_evidence(self, turn: Turn, sources: Callable[[], Sequence[Document] | None]) -> None:
        """Note what the answer is made from, unless that is known already, or unknown for good."""
        if turn.evidence is not None:
            return
        try:
            found = sources()
            if found is not None:
                turn.evidence = evidence_of(found, corpus=self.parts.validity.corpus)
        except CanonicalError:
            return  # metadata that is no JSON; `_may_be_kept` counts it
        except Exception as error:  # noqa: BLE001 - counted; the answer is given all the same
            self.front.failed("evidence", error)

    def _may_be_kept(self, turn: Turn) -> bool:
        """Tell whether something would tell if the answer did not hold any more."""
        validity = self.parts.validity
        whole = validity.whole_corpus and bool(validity.corpus)
        if turn.evidence is not None or whole or not validity.needs_evidence:
            return True
        self.front.event("adapter.evidence_unknown")
        return False


def _text(alone: object) -> str:
    if isinstance(alone, BaseMessage):
        return str(alone.text)
    if not isinstance(alone, str):
        raise TypeError(f"condense= returned a {type(alone).__name__}; it returns the question.")
    return alone
