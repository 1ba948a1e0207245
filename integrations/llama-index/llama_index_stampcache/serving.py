"""The path of one query through the cache, written once for sync and async.

`Serving.serve` retrieves (where evidence is rechecked), looks up, and on a miss lets the inner
engine answer and stores what it answered. Equal queries that run at once share one answer. Whatever
fails in the cache is counted, and the inner engine answers as if there were no cache; what fails in
the inner engine is the application's own and goes to it unchanged.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeVar

from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    StreamingResponse,
)
from llama_index.core.schema import NodeWithScore, QueryBundle
from msgspec import Struct

from llama_index_stampcache import payload as payloads
from llama_index_stampcache.inner import Inner
from llama_index_stampcache.payload import Payload, PayloadError
from llama_index_stampcache.reports import reported
from llama_index_stampcache.requests import Inputs, Requests, inputs_of
from llama_index_stampcache.streaming import atee, tee
from llama_index_stampcache.usage import Meter
from stampcache import Answer, CodecError, Evidence, Level, Miss, Reason, Request, Stale
from stampcache.adapters import (
    Ask,
    CacheFields,
    CanonicalError,
    Explanation,
    Flow,
    Front,
    Made,
    Recheck,
    Step,
    Validity,
    fields,
)

Result = TypeVar("Result")


class _Query(Struct, frozen=True, kw_only=True):
    """One query: what was asked, what was retrieved for it, and its request."""

    bundle: QueryBundle
    nodes: Sequence[NodeWithScore] | None
    request: Request
    aio: bool


class Serving:
    """One engine behind one cache; safe for threads and tasks."""

    def __init__(self, inner: Inner, front: Front, requests: Requests, validity: Validity) -> None:
        self._inner = inner
        self._front = front
        self._requests = requests
        self._validity = validity
        self._in_two_steps = inner.in_two_steps

    def serve(self, bundle: QueryBundle, *, aio: bool) -> Flow[RESPONSE_TYPE]:
        """Answer one query; ``aio`` tells which driver runs the flow."""
        inputs = inputs_of(bundle)  # before retrieving, which notes its embedding in the bundle
        nodes = yield from self._retrieved(bundle)
        request = self._request(inputs, nodes)
        ask = self._ask(request)
        if isinstance(ask, Miss):
            self._front.bypassed(ask)
            response = yield from self._making(bundle, nodes)
            return reported(response, fields(ask))
        query = _Query(bundle=bundle, nodes=nodes, request=ask.request, aio=aio)
        return (
            yield from self._front.serve(
                ask,
                recheck=self._recheck(),
                read=lambda answer, report: self._read(query, answer, report),
                make=lambda outcome: self._make(query, outcome),
            )
        )

    def explain(self, bundle: QueryBundle) -> Flow[Explanation]:
        """Tell which check would decide about a query now; nothing is served, made or counted."""
        inputs = inputs_of(bundle)  # before retrieving, which notes its embedding in the bundle
        nodes = yield from self._retrieved(bundle)
        ask = self._ask(self._request(inputs, nodes))
        if isinstance(ask, Miss):
            return Explanation(Request(question=bundle.query_str), ask)
        return (yield from self._front.explain(ask, self._recheck()))

    # -- before the lookup -----------------------------------------------------------------------

    def _retrieved(self, bundle: QueryBundle) -> Flow[Sequence[NodeWithScore] | None]:
        if not self._validity.rechecked:
            return None
        return (yield from self._inner.retrieve(bundle))

    def _request(self, inputs: Inputs, nodes: Sequence[NodeWithScore] | None) -> Request | Miss:
        try:
            return self._requests.of(inputs, nodes)
        except CanonicalError as error:
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the engine answers without the cache
            self._front.failed("request", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))

    def _ask(self, request: Request | Miss) -> Ask | Miss:
        if isinstance(request, Miss):
            return request
        return self._front.ask(
            request,
            can_retrieve=self._validity.rechecked,
            allow_stale=self._validity.allow_stale,
        )

    def _recheck(self) -> Recheck | None:
        if not self._validity.rechecked:
            return None

        def recheck(question: str) -> Flow[Sequence[Evidence]]:
            nodes = yield from self._inner.retrieve(QueryBundle(question))
            return self._requests.evidence(nodes)

        return recheck

    def _read(self, query: _Query, answer: Answer, report: CacheFields) -> RESPONSE_TYPE:
        """Make a response from a stored answer.

        Raises:
            CodecError: it cannot be read.
        """
        if answer.format != payloads.FORMAT:
            raise CodecError(f"The stored answer has the format {answer.format!r}.")
        try:
            response = payloads.respond(
                payloads.decode(answer.payload),
                retrieved=query.nodes if _is_from_same_nodes(report) else None,
                output_cls=self._inner.output_cls,
                aio=query.aio,
            )
        except PayloadError as error:
            raise CodecError(str(error)) from error
        return reported(response, report)

    # -- making an answer ------------------------------------------------------------------------

    def _making(
        self, bundle: QueryBundle, nodes: Sequence[NodeWithScore] | None
    ) -> Step[RESPONSE_TYPE]:
        if nodes is None:
            return self._inner.query(bundle)
        return self._inner.synthesize(bundle, nodes)

    def _make(self, query: _Query, outcome: Miss | Stale) -> Flow[Made[RESPONSE_TYPE]]:
        meter = Meter()
        nodes = query.nodes
        if nodes is None and self._in_two_steps:
            nodes = yield from _metered(self._inner.retrieve(query.bundle), meter)
        response = yield from _metered(self._making(query.bundle, nodes), meter)
        report = fields(outcome)
        draft = self._drafted(response, nodes)
        evidence = self._evidence(response, nodes)
        unfit = self._unfit(draft, evidence)
        if draft is None or unfit:
            self._front.event(unfit)
            return Made(output=reported(response, report), answer=None)

        def ended(chunks: list[str]) -> Flow[None]:
            if all(isinstance(chunk, str) for chunk in chunks):
                answer = self._answer(payloads.with_chunks(draft, chunks), meter)
                yield from self._front.update(
                    query.request, answer, outcome=outcome, evidence=evidence
                )

        teed = self._teed(response, meter, ended)
        if teed is not None:
            return Made(output=reported(teed, report), answer=None)
        answer = self._answer(draft, meter)
        return Made(output=reported(response, report), answer=answer, evidence=evidence)

    def _drafted(
        self, response: RESPONSE_TYPE, nodes: Sequence[NodeWithScore] | None
    ) -> Payload | None:
        try:
            return payloads.draft(response, nodes, self._inner.output_cls)
        except Exception as error:  # noqa: BLE001 - counted; the answer is given, but not stored
            self._front.failed("draft", error)
            return None

    def _evidence(
        self, response: RESPONSE_TYPE, nodes: Sequence[NodeWithScore] | None
    ) -> tuple[Evidence, ...] | None:
        """Return what an answer was made from; unknown where that was not seen, or media are in it.

        An engine in one step tells it beside its answer. Without documents it tells of none, which
        under ``"none"`` is no sign that something is missing.
        """
        told = nodes
        if nodes is None:
            without = self._validity.grounding == "none" and not response.source_nodes
            told = None if without else response.source_nodes
        try:
            return None if told is None else self._requests.evidence(told)
        except CanonicalError:
            return None
        except Exception as error:  # noqa: BLE001 - counted; the answer is given all the same
            self._front.failed("evidence", error)
            return None

    def _unfit(self, draft: Payload | None, evidence: tuple[Evidence, ...] | None) -> str:
        """Return the event for an answer that is not offered to the cache; empty for any other."""
        if evidence is None and self._validity.needs_evidence:
            return "adapter.evidence_unknown"  # no change could be told to concern it
        return "adapter.not_storable" if draft is None else ""

    def _answer(self, payload: Payload, meter: Meter) -> Answer:
        text = payload.text or ""
        return Answer(
            text="" if self._inner.is_empty(text) else text,  # so that it is refused as empty
            payload=payload.encode(),
            format=payloads.FORMAT,
            finish_reason=meter.finish_reason,
            revision=meter.revision,
            usage=meter.usage,
            latency_s=meter.elapsed_s,
        )

    def _teed(
        self, response: RESPONSE_TYPE, meter: Meter, ended: Callable[[list[str]], Flow[None]]
    ) -> RESPONSE_TYPE | None:
        """Return a stream that tells when it was read to its end; ``None`` for what is no stream."""
        if isinstance(response, StreamingResponse):
            stream = tee(response.response_gen, meter, lambda told: self._front.run(ended(told)))
            return dataclasses.replace(response, response_gen=stream)
        if isinstance(response, AsyncStreamingResponse):
            astream = atee(response.response_gen, meter, lambda told: self._front.arun(ended(told)))
            return dataclasses.replace(response, response_gen=astream)
        return None


def _metered(step: Step[Result], meter: Meter) -> Step[Result]:
    return Step(sync=lambda: meter.call(step.sync), aio=lambda: meter.acall(step.aio))


def _is_from_same_nodes(report: CacheFields) -> bool:
    """Tell whether an answer was made from what was retrieved now: not if by meaning, or stale."""
    shared = report["level"] is None
    return shared or (report["hit"] and report["level"] == Level.EXACT.value)
