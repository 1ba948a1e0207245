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
from llama_index_stampcache.requests import Asked, Requests, asked_of
from llama_index_stampcache.streaming import atee, tee
from llama_index_stampcache.usage import Meter
from stampcache import Answer, CodecError, Evidence, Hit, Level, Miss, Outcome, Reason, Request
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
    fields,
    shared_fields,
)

Result = TypeVar("Result")


class _Query(Struct, frozen=True, kw_only=True):
    """One query: what was asked, what was retrieved for it, and its request."""

    bundle: QueryBundle
    nodes: Sequence[NodeWithScore] | None
    request: Request
    aio: bool


class Serving:
    """One engine in front of one cache."""

    def __init__(self, inner: Inner, core: Core, requests: Requests, *, rechecked: bool) -> None:
        self._inner = inner
        self.front = Front(core, kind="llama-index.query-engine")
        self._requests = requests
        self._rechecked = rechecked
        self._in_two_steps = inner.in_two_steps

    def serve(self, bundle: QueryBundle, *, aio: bool) -> Flow[RESPONSE_TYPE]:
        """Answer one query; ``aio`` tells which driver runs the flow."""
        asked = asked_of(bundle)  # before retrieving, which notes its embedding in the bundle
        nodes = yield from self._retrieved(bundle)
        request = self._request(asked, nodes)
        ask = self._ask(request)
        if isinstance(ask, Miss):
            self.front.bypassed(ask)
            response = yield from self._making(bundle, nodes)
            return reported(response, fields(ask))
        query = _Query(bundle=bundle, nodes=nodes, request=ask.request, aio=aio)
        return (
            yield from self.front.serve(
                ask,
                recheck=self._recheck(),
                read=lambda answer, outcome: self._read(query, answer, outcome),
                make=lambda outcome: self._make(query, outcome),
            )
        )

    def explain(self, bundle: QueryBundle) -> Flow[Explanation]:
        """Tell which check would decide about a query now; nothing is served, made or counted."""
        asked = asked_of(bundle)  # before retrieving, which notes its embedding in the bundle
        nodes = yield from self._retrieved(bundle)
        ask = self._ask(self._request(asked, nodes))
        if isinstance(ask, Miss):
            return Explanation(Request(question=bundle.query_str), ask)
        return (yield from self.front.explain(ask, self._recheck()))

    # -- before the lookup -----------------------------------------------------------------------

    def _retrieved(self, bundle: QueryBundle) -> Flow[Sequence[NodeWithScore] | None]:
        if not self._rechecked:
            return None
        return (yield from self._inner.retrieve(bundle))

    def _request(self, asked: Asked, nodes: Sequence[NodeWithScore] | None) -> Request | Miss:
        try:
            return self._requests.of(asked, nodes)
        except CanonicalError as error:
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the engine answers without the cache
            self.front.failed("request", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))

    def _ask(self, request: Request | Miss) -> Ask | Miss:
        if isinstance(request, Miss):
            return request
        return self.front.ask(request, can_retrieve=self._rechecked)

    def _recheck(self) -> Recheck | None:
        if not self._rechecked:
            return None

        def recheck(question: str) -> Flow[Sequence[Evidence]]:
            nodes = yield from self._inner.retrieve(QueryBundle(question))
            return self._requests.evidence(nodes)

        return recheck

    def _read(self, query: _Query, answer: Answer, outcome: Outcome) -> RESPONSE_TYPE:
        """Make a response from a stored answer.

        Raises:
            CodecError: it cannot be read.
        """
        if answer.format != payloads.FORMAT:
            raise CodecError(f"The stored answer has the format {answer.format!r}.")
        by_meaning = isinstance(outcome, Hit) and outcome.level is Level.SEMANTIC
        try:
            response = payloads.respond(
                payloads.decode(answer.payload),
                retrieved=None if by_meaning else query.nodes,
                output_cls=self._inner.output_cls,
                aio=query.aio,
            )
        except PayloadError as error:
            raise CodecError(str(error)) from error
        return reported(response, shared_fields(outcome, answer))

    # -- making an answer ------------------------------------------------------------------------

    def _making(
        self, bundle: QueryBundle, nodes: Sequence[NodeWithScore] | None
    ) -> Step[RESPONSE_TYPE]:
        if nodes is None:
            return self._inner.query(bundle)
        return self._inner.synthesize(bundle, nodes)

    def _make(self, query: _Query, outcome: Outcome) -> Flow[Made[RESPONSE_TYPE]]:
        meter = Meter()
        nodes = query.nodes
        if nodes is None and self._in_two_steps:
            nodes = yield from _metered(self._inner.retrieve(query.bundle), meter)
        response = yield from _metered(self._making(query.bundle, nodes), meter)
        report = fields(outcome)
        draft = self._drafted(response, nodes)
        if draft is None:
            self.front.core.counters.event("adapter.not_storable")
            return Made(output=reported(response, report), answer=None)
        evidence = self._evidence(response.source_nodes or None if nodes is None else nodes)

        def ended(chunks: list[str]) -> Flow[None]:
            if all(isinstance(chunk, str) for chunk in chunks):
                answer = self._answer(payloads.with_chunks(draft, chunks), meter)
                yield from self.front.update(
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
            self.front.failed("draft", error)
            return None

    def _evidence(self, nodes: Sequence[NodeWithScore] | None) -> tuple[Evidence, ...] | None:
        """Return what an answer was made from; unknown where that was not seen, or media are in it."""
        try:
            return None if nodes is None else self._requests.evidence(nodes)
        except CanonicalError:
            return None

    def _answer(self, payload: Payload, meter: Meter) -> Answer:
        text = payload.text or ""
        return Answer(
            text="" if self._inner.is_empty(text) else text,  # so that it is refused as empty
            payload=payload.encode(),
            format=payloads.FORMAT,
            finish_reason=meter.finish_reason,
            usage=meter.usage,
            latency_s=meter.elapsed_s,
        )

    def _teed(
        self, response: RESPONSE_TYPE, meter: Meter, ended: Callable[[list[str]], Flow[None]]
    ) -> RESPONSE_TYPE | None:
        """Return a stream that tells when it was read to its end; ``None`` for what is no stream."""
        if isinstance(response, StreamingResponse):
            stream = tee(response.response_gen, meter, lambda told: self.front.run(ended(told)))
            return dataclasses.replace(response, response_gen=stream)
        if isinstance(response, AsyncStreamingResponse):
            astream = atee(response.response_gen, meter, lambda told: self.front.arun(ended(told)))
            return dataclasses.replace(response, response_gen=astream)
        return None


def _metered(step: Step[Result], meter: Meter) -> Step[Result]:
    return Step(sync=lambda: meter.call(step.sync), aio=lambda: meter.acall(step.aio))
