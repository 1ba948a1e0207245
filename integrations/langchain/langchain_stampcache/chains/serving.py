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
from stampcache import ConfigError, Evidence, Miss, Outcome, Reason, Request
from stampcache.adapters import (
    FROM_CACHE,
    Ask,
    CanonicalError,
    Core,
    Explanation,
    Flow,
    Front,
    Kept,
    Made,
    Reading,
    Recheck,
    Step,
    Sweep,
    Validity,
    asked,
    fields,
    hear,
    listening,
    sweep,
)


class ChainParts(Struct, frozen=True, kw_only=True):
    """What a cached chain is made of.

    ``begin`` makes the turn of one call. With ``retrieves_first`` the documents are retrieved here
    and given to ``runnable``; without, it retrieves for itself. ``forms`` are those in which a question
    may be asked alone.
    """

    begin: Callable[[object, RunnableConfig, Caller], Turn]
    runnable: Runnable[Any, Any]
    retrieving: Retrieving
    requests: Requests
    validity: Validity
    flow: Flowing
    retrieves_first: bool
    condense: Runnable[Any, Any] | None = None
    forms: tuple[str, ...] = ("",)


class Serving:
    """One chain in front of one cache; safe for threads and tasks."""

    def __init__(self, core: Core, parts: ChainParts, *, kind: str) -> None:
        self.front = Front(core, kind=kind)
        self.parts = parts

    def serve(self, turn: Turn) -> Flow[Any]:
        """Answer one question."""
        self.tell()
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

    def tell(self) -> None:
        """Tell whoever is answered from this chain that what it read may not have been searched for."""
        if self.parts.retrieving.retrieves or self.parts.validity.corpus:
            hear(Reading(corpus=self.parts.validity.corpus, problem=FROM_CACHE))

    def explain(self, turn: Turn) -> Flow[Explanation]:
        """Tell which check would decide about a question now; nothing is answered or counted."""
        yield from self.prepare(turn)
        ask = self.ask(turn)
        if isinstance(ask, Miss):
            return Explanation(Request(question=turn.question), ask)
        return (yield from self.front.explain(ask, self.recheck(turn)))

    def sweep(self, *, sample: int, tolerate: float) -> Flow[Sweep]:
        """Retrieve again for a sample of answers to a question alone; see `adapters.sweep`.

        Raises:
            ConfigError: nothing is watched, there is no retriever, or a number is out of range.
        """
        parts = self.parts
        corpus = parts.validity.swept
        if not parts.retrieving.retrieves:
            raise ConfigError(
                "A sweep retrieves again, which a chain that is not looked into does for itself: give"
                " retriever=, the one that it uses."
            )

        def evidence(question: str) -> Flow[Sequence[Evidence]]:
            retrieving = parts.retrieving
            documents = yield from Step(
                sync=lambda: retrieving.retrieve(question, {}, {}),
                aio=lambda: retrieving.aretrieve(question, {}, {}),
            )
            return self._evidence(documents)

        found = Sweep(corpus=corpus, checked=0)
        for form in parts.forms:
            one = yield from sweep(
                self.front,
                corpus=corpus,
                settings=parts.requests.settings({}, {}, form=form).digest,
                retrieve=evidence,
                sample=sample,
                tolerate=tolerate,
            )
            found = _both(found, one)
        return found

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
                turn.evidence = self._evidence(turn.documents or ())
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
            return self._evidence((yield from self._retrieve(turn, question)))

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
            return Kept(turn.stored(raw), turn.evidence, turn.heard)
        except CanonicalError:
            return None

    def _retrieve(self, turn: Turn, question: str) -> Step[list[Any]]:
        retrieving = self.parts.retrieving
        retrieve = Step(
            sync=lambda: retrieving.retrieve(question, turn.to_retrieve(), turn.config),
            aio=lambda: retrieving.aretrieve(question, turn.to_retrieve(), turn.config),
        )
        return self._heard(turn, retrieve)

    def _heard(self, turn: Turn, step: Step[Any]) -> Step[Any]:
        """Return a step whose searches of the watched index are noted.

        Those of the answer chain are noted, too: what it searches for itself, its answer depends on.
        """
        return listening(step, turn.heard) if self.parts.validity.watched else step

    def _make(self, turn: Turn) -> Flow[object]:
        yield from self.ready(turn)
        runnable = self.parts.runnable
        started = time.perf_counter()
        run = Step(
            sync=lambda: runnable.invoke(turn.to_run(), turn.running()),
            aio=lambda: runnable.ainvoke(turn.to_run(), turn.running()),
        )
        raw = yield from self._heard(turn, run)
        turn.latency_s = time.perf_counter() - started
        return raw

    def _made(self, turn: Turn, outcome: Outcome) -> Flow[Made[Any]]:
        raw = yield from self._make(turn)
        kept = self.front.kept(lambda: self.kept(turn, raw))
        return Made(
            output=turn.output(raw, fields(outcome)),
            answer=None if kept is None else kept.answer,
            evidence=turn.evidence,
            readings=turn.heard,
        )

    def _note_evidence(self, turn: Turn, sources: Callable[[], Sequence[Document] | None]) -> None:
        """Note what the answer is made from, unless that is known already, or unknown for good."""
        if turn.evidence is not None:
            return
        try:
            found = sources()
            if found is not None:
                turn.evidence = self._evidence(found)
        except CanonicalError:
            return  # metadata that is no JSON; `_may_be_kept` counts it
        except Exception as error:  # noqa: BLE001 - counted; the answer is given all the same
            self.front.failed("evidence", error)

    def _evidence(self, documents: Sequence[Document]) -> tuple[Evidence, ...]:
        parts = self.parts
        return evidence_of(
            documents, corpus=parts.validity.corpus, volatile=parts.retrieving.volatile
        )

    def _may_be_kept(self, turn: Turn) -> bool:
        """Tell whether something would tell if the answer did not hold any more."""
        validity = self.parts.validity
        if validity.watched:
            return self._is_watched(turn)
        whole = validity.whole_corpus and bool(validity.corpus)
        if turn.evidence is not None or whole or not validity.needs_evidence:
            return True
        self.front.event("adapter.evidence_unknown")
        return False

    def _is_watched(self, turn: Turn) -> bool:
        """Tell whether the cache would be told of all writes to what an answer was made from."""
        corpus = self.parts.validity.corpus
        try:
            watched = self.parts.retrieving.still_watched()
        except ConfigError as error:  # a part was exchanged since
            self.front.core.counters.note("adapter.unwatched", error)
            return False
        if watched and all(reading.corpus == corpus for reading in turn.heard):
            return True
        self.front.event("adapter.unwatched")
        return False


def _both(one: Sweep, other: Sweep) -> Sweep:
    return Sweep(
        corpus=one.corpus,
        checked=one.checked + other.checked,
        drifted=one.drifted + other.drifted,
        skipped=one.skipped + other.skipped,
        problem=one.problem or other.problem,
        seconds=one.seconds + other.seconds,
    )


def _text(alone: object) -> str:
    if isinstance(alone, BaseMessage):
        return str(alone.text)
    if not isinstance(alone, str):
        raise TypeError(f"condense= returned a {type(alone).__name__}; it returns the question.")
    return alone
