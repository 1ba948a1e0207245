"""The path of one query through the cache, written once for sync and async.

`Serving.serve` retrieves (where evidence is rechecked), looks up, and on a miss lets the inner
engine answer and stores what it answered. Equal queries that run at once share one answer. Whatever
fails in the cache is counted, and the inner engine answers as if there were no cache; what fails in
the inner engine is the application's own and goes to it unchanged.
"""

import dataclasses
from collections.abc import Sequence
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
from llama_index_stampcache.reports import Landed, landed, reported, shared_fields
from llama_index_stampcache.requests import Asked, Requests, asked_of
from llama_index_stampcache.steps import Flow, Step, arun, run
from llama_index_stampcache.streaming import atee, tee
from llama_index_stampcache.usage import Meter
from stampcache import (
    Answer,
    AsyncCache,
    Cache,
    Evidence,
    Hit,
    Level,
    Miss,
    Outcome,
    Reason,
    Request,
    ScopeError,
)
from stampcache.core import Core, flight_key
from stampcache.errors import CanonicalError
from stampcache.reporting import fields

Result = TypeVar("Result")


class _Ask(Struct, frozen=True, kw_only=True):
    """One query: what was asked, what was retrieved for it, and its request."""

    bundle: QueryBundle
    nodes: Sequence[NodeWithScore] | None
    request: Request
    aio: bool


class _Served(Struct, frozen=True):
    """A response for its own caller, and the answer that others may share, if it can be shared."""

    response: RESPONSE_TYPE
    answer: Landed | None


class _NotShared(Exception):
    """What the leader got is a stream or cannot be taken down: each of the others makes its own."""


class Serving:
    """One engine in front of one cache."""

    def __init__(self, inner: Inner, core: Core, requests: Requests, *, rechecked: bool) -> None:
        self._inner = inner
        self._core = core
        self._cache = Cache.on(core)
        self._acache = AsyncCache.on(core)
        self._requests = requests
        self._rechecked = rechecked
        self._in_two_steps = inner.in_two_steps

    def serve(self, bundle: QueryBundle, *, aio: bool) -> Flow[RESPONSE_TYPE]:
        """Answer one query; ``aio`` tells which driver runs the flow."""
        asked = asked_of(bundle)
        nodes: Sequence[NodeWithScore] | None = None
        if self._rechecked:
            nodes = yield from self._inner.retrieve(bundle)
        request = self._request(asked, nodes)
        key = request if isinstance(request, Miss) else self._key(request)
        if isinstance(request, Miss) or isinstance(key, Miss):
            bypass = key if isinstance(key, Miss) else Miss(reason=Reason.UNCACHEABLE)
            self._core.counters.outcome(bypass, "")
            response = yield from self._making(bundle, nodes)
            return reported(response, fields(bypass))
        ask = _Ask(bundle=bundle, nodes=nodes, request=request, aio=aio)
        return (yield from self._shared(ask, key))

    # -- before the lookup -----------------------------------------------------------------------

    def _request(self, asked: Asked, nodes: Sequence[NodeWithScore] | None) -> Request | Miss:
        try:
            return self._requests.of(asked, nodes)
        except CanonicalError as error:
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the engine answers without the cache
            self._failed("adapter.request", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))

    def _key(self, request: Request) -> tuple[str, str, str] | Miss:
        """Return what equal queries share, or why this one bypasses the cache."""
        try:
            ask = self._core.ask(request, can_retrieve=self._rechecked, record=False)
        except ScopeError as error:
            self._core.counters.event("adapter.unscoped")
            return Miss(reason=Reason.UNSCOPED, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the engine answers without the cache
            self._failed("adapter.request", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        return ask if isinstance(ask, Miss) else flight_key(ask.identity, request)

    def _failed(self, what: str, error: Exception) -> None:
        """Count a failure of the cache that the application does not see (unless it is strict)."""
        if self._core.setup.rules.strict:
            raise error
        self._core.counters.note(what, error)

    def _guarded(self, step: Step[Result], what: str) -> Flow[Result | None]:
        try:
            return (yield from step)
        except Exception as error:  # noqa: BLE001 - counted; the engine answers without the cache
            self._failed(what, error)
            return None

    # -- one answer for equal queries ------------------------------------------------------------

    def _shared(self, ask: _Ask, key: tuple[str, str, str]) -> Flow[RESPONSE_TYPE]:
        own: list[_Served] = []  # what this very call has looked up or made

        def lead() -> Flow[Answer]:
            served = yield from self._look_or_make(ask)
            own.append(served)
            if served.answer is None:
                raise _NotShared
            return served.answer

        flights = self._core.flights
        try:
            answer = yield from Step(
                sync=lambda: flights.run(key, lambda: run(lead())),
                aio=lambda: flights.arun(key, lambda: arun(lead())),
            )
        except _NotShared:
            if not own:
                own.append((yield from self._look_or_make(ask)))
        if own:
            return own[-1].response
        return (yield from self._followed(ask, answer))

    def _followed(self, ask: _Ask, answer: Answer) -> Flow[RESPONSE_TYPE]:
        """Return the leader's answer as a response of our own."""
        hit = answer.hit if isinstance(answer, Landed) else None
        response = self._respond(ask, answer, hit)
        if response is None:
            return (yield from self._look_or_make(ask)).response
        if hit is None:
            self._core.counters.event("adapter.shared")
        else:
            self._core.counters.outcome(hit, hit.entry.identity.scope)
        return reported(response, shared_fields(answer))

    # -- hit or miss -----------------------------------------------------------------------------

    def _look_or_make(self, ask: _Ask) -> Flow[_Served]:
        outcome = yield from self._lookup(ask)
        if isinstance(outcome, Hit):
            response = self._respond(ask, outcome.answer, outcome)
            if response is not None:
                answer = landed(outcome.answer, outcome)
                return _Served(reported(response, fields(outcome)), answer)
            yield from self._drop(outcome)
            outcome = yield from self._lookup(ask)  # for the fence of the answer made now
            if isinstance(outcome, Hit):
                outcome = Miss(reason=Reason.CORRUPT, detail="the stored response is unreadable")
        return (yield from self._make(ask, outcome))

    def _lookup(self, ask: _Ask) -> Flow[Outcome]:
        def recheck(question: str) -> Flow[tuple[Evidence, ...]]:
            nodes = yield from self._inner.retrieve(QueryBundle(question))
            return self._requests.evidence(nodes)

        step: Step[Outcome] = Step(
            sync=lambda: self._cache.lookup(
                ask.request, retrieve=(lambda q: run(recheck(q))) if self._rechecked else None
            ),
            aio=lambda: self._acache.lookup(
                ask.request, retrieve=(lambda q: arun(recheck(q))) if self._rechecked else None
            ),
        )
        outcome = yield from self._guarded(step, "adapter.lookup")
        return outcome or Miss(reason=Reason.STORE_ERROR, detail="the lookup failed")

    def _respond(self, ask: _Ask, answer: Answer, hit: Hit | None) -> RESPONSE_TYPE | None:
        """Make a response from a stored answer; ``None`` where it cannot be read (counted)."""
        by_meaning = hit is not None and hit.level is Level.SEMANTIC
        try:
            if answer.format != payloads.FORMAT:
                raise PayloadError(f"The stored answer has the format {answer.format!r}.")
            return payloads.respond(
                payloads.decode(answer.payload),
                retrieved=None if by_meaning else ask.nodes,
                output_cls=self._inner.output_cls,
                aio=ask.aio,
            )
        except PayloadError as error:
            self._core.counters.note("adapter.undecodable", error)
            return None

    def _drop(self, hit: Hit) -> Flow[None]:
        step = Step(
            sync=lambda: self._cache.invalidate(entry=hit.entry_id),
            aio=lambda: self._acache.invalidate(entry=hit.entry_id),
        )
        yield from self._guarded(step, "adapter.drop")

    # -- making an answer ------------------------------------------------------------------------

    def _making(
        self, bundle: QueryBundle, nodes: Sequence[NodeWithScore] | None
    ) -> Step[RESPONSE_TYPE]:
        if nodes is None:
            return self._inner.query(bundle)
        return self._inner.synthesize(bundle, nodes)

    def _make(self, ask: _Ask, outcome: Outcome) -> Flow[_Served]:
        meter = Meter()
        nodes = ask.nodes
        if nodes is None and self._in_two_steps:
            nodes = yield from _metered(self._inner.retrieve(ask.bundle), meter)
        response = yield from _metered(self._making(ask.bundle, nodes), meter)
        draft = self._drafted(response, nodes)
        if draft is None:
            self._core.counters.event("adapter.not_storable")
            return _Served(reported(response, fields(outcome)), None)
        evidence = self._evidence(response.source_nodes or None if nodes is None else nodes)

        def ended(chunks: list[str]) -> Flow[None]:
            if all(isinstance(chunk, str) for chunk in chunks):
                answer = self._answer(payloads.with_chunks(draft, chunks), meter)
                yield from self._store(ask, answer, outcome, evidence)

        if isinstance(response, StreamingResponse):
            teed = dataclasses.replace(
                response, response_gen=tee(response.response_gen, meter, ended)
            )
            return _Served(reported(teed, fields(outcome)), None)
        if isinstance(response, AsyncStreamingResponse):
            stream = atee(response.response_gen, meter, ended)
            steed = dataclasses.replace(response, response_gen=stream)
            return _Served(reported(steed, fields(outcome)), None)
        answer = self._answer(draft, meter)
        yield from self._store(ask, answer, outcome, evidence)
        return _Served(reported(response, fields(outcome)), landed(answer, None))

    def _drafted(
        self, response: RESPONSE_TYPE, nodes: Sequence[NodeWithScore] | None
    ) -> Payload | None:
        try:
            return payloads.draft(response, nodes, self._inner.output_cls)
        except Exception as error:  # noqa: BLE001 - counted; the answer is given, but not stored
            self._failed("adapter.draft", error)
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

    def _store(
        self,
        ask: _Ask,
        answer: Answer,
        outcome: Outcome,
        evidence: tuple[Evidence, ...] | None,
    ) -> Flow[None]:
        step = Step(
            sync=lambda: self._cache.update(
                ask.request, answer, outcome=outcome, evidence=evidence
            ),
            aio=lambda: self._acache.update(
                ask.request, answer, outcome=outcome, evidence=evidence
            ),
        )
        yield from self._guarded(step, "adapter.update")


def _metered(step: Step[Result], meter: Meter) -> Step[Result]:
    return Step(sync=lambda: meter.call(step.sync), aio=lambda: meter.acall(step.aio))
