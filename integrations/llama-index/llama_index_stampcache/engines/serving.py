"""The path of one query through the cache, written once for sync and async.

`Serving.serve` retrieves (where evidence is rechecked), looks up, and on a miss lets the inner
engine answer and stores what it answered. Equal queries that run at once share one answer, and read one
stream together. Whatever fails in the cache is counted, and the inner engine answers as if there were no
cache; what fails in the inner engine is the application's own and goes to it unchanged.
"""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Callable, Sequence

from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
)
from llama_index.core.schema import NodeWithScore, QueryBundle
from msgspec import Struct

from llama_index_stampcache import events
from llama_index_stampcache.engines import payload as payloads
from llama_index_stampcache.engines.inner import Inner
from llama_index_stampcache.engines.making import NOT_STORABLE, Fresh, Making, Query, Telling
from llama_index_stampcache.engines.requests import Inputs, Requests, inputs_of
from llama_index_stampcache.engines.streaming import (
    STREAMS,
    Along,
    Opening,
    asource,
    readable,
    source,
)
from llama_index_stampcache.nodes import PayloadError
from llama_index_stampcache.reports import reported
from llama_index_stampcache.watching.heard import Watching
from stampcache import (
    Answer,
    CodecError,
    ConfigError,
    Evidence,
    Level,
    Miss,
    Reason,
    Request,
    Stale,
)
from stampcache.adapters import (
    FROM_CACHE,
    Ask,
    AsyncOpened,
    CacheFields,
    CanonicalError,
    Explanation,
    Flow,
    Front,
    Kept,
    Made,
    Opened,
    Reading,
    Recheck,
    Replay,
    Step,
    Streaming,
    Sweep,
    Validity,
    fields,
    hear,
    sweep,
)


class Told(Struct, frozen=True):
    """A response, and what is reported of it."""

    response: RESPONSE_TYPE
    report: CacheFields


class Serving:
    """One engine behind one cache; safe for threads and tasks."""

    def __init__(
        self,
        inner: Inner,
        front: Front,
        requests: Requests,
        validity: Validity,
        telling: Telling,
        watching: Watching | None = None,
    ) -> None:
        """``watching`` is given where an index is watched."""
        self._inner = inner
        self._front = front
        self._requests = requests
        self._validity = validity
        self._making = Making(inner, front, requests, validity, telling, watching)
        self._streaming = Streaming(front)

    def serve(
        self, bundle: QueryBundle, *, aio: bool, inputs: Callable[[], Inputs] | None = None
    ) -> Flow[RESPONSE_TYPE]:
        """Answer one query; ``aio`` tells which driver runs the flow.

        ``inputs`` tell what identifies a turn of a conversation.
        """
        # whoever is answered from this engine sees no search if it has the answer already
        hear(Reading(corpus=self._validity.corpus, problem=FROM_CACHE))
        request, nodes = yield from self._asked(bundle, inputs)
        query = Query(bundle=bundle, nodes=nodes, aio=aio)
        return (yield from self._answered(query, request, "query" if inputs is None else "chat"))

    def synthesize(
        self,
        bundle: QueryBundle,
        nodes: Sequence[NodeWithScore],
        more: Sequence[NodeWithScore],
        *,
        aio: bool,
    ) -> Flow[RESPONSE_TYPE]:
        """Answer from the caller's own nodes; a hit is an answer to this question from exactly these."""
        asked = inputs_of(bundle)
        query = Query(bundle=bundle, nodes=nodes, aio=aio, more=more)
        request = self._request(lambda: self._requests.from_nodes(asked, nodes, more))
        return (yield from self._answered(query, request, "synthesize", chosen=True))

    def explain(
        self, bundle: QueryBundle, inputs: Callable[[], Inputs] | None = None
    ) -> Flow[Explanation]:
        """Tell which check would decide about a query now; nothing is served, made or counted."""
        request, _ = yield from self._asked(bundle, inputs)
        ask = self._ask(request, chosen=False)
        if isinstance(ask, Miss):
            return Explanation(Request(question=bundle.query_str), ask)
        return (yield from self._front.explain(ask, self._recheck(chosen=False)))

    def sweep(self, *, sample: int, tolerate: float) -> Flow[Sweep]:
        """Retrieve again for a sample of the watched answers; see `stampcache.adapters.sweep`.

        Raises:
            ConfigError: nothing is watched, or this engine does not show what it retrieves.
        """
        corpus = self._validity.swept
        if not self._inner.in_two_steps:
            raise ConfigError(
                f"{type(self._inner.engine).__name__} does not show what it retrieves, so that it cannot"
                " be swept; sweep an engine over one retriever of the same corpus."
            )

        def evidence(question: str) -> Flow[Sequence[Evidence]]:
            nodes = yield from self._inner.retrieve(QueryBundle(question))
            return self._requests.evidence(nodes)

        return (
            yield from sweep(
                self._front,
                corpus=corpus,
                settings=self._requests.settings(),
                retrieve=evidence,
                sample=sample,
                tolerate=tolerate,
            )
        )

    # -- before the lookup -----------------------------------------------------------------------

    def _asked(
        self, bundle: QueryBundle, inputs: Callable[[], Inputs] | None
    ) -> Flow[tuple[Request | Miss, Sequence[NodeWithScore] | None]]:
        """Return the request for a query, and what was retrieved for it where that is rechecked."""
        asked = inputs_of(bundle)  # before retrieving, which notes its embedding in the bundle
        nodes: Sequence[NodeWithScore] | None = None
        if self._validity.rechecked:
            nodes = yield from self._inner.retrieve(bundle)
        request = self._request(
            lambda: self._requests.of(asked if inputs is None else inputs(), nodes)
        )
        return request, nodes

    def _request(self, make: Callable[[], Request]) -> Request | Miss:
        try:
            return make()
        except CanonicalError as error:
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the engine answers without the cache
            self._front.failed("request", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))

    def _ask(self, request: Request | Miss, *, chosen: bool) -> Ask | Miss:
        if isinstance(request, Miss):
            return request
        return self._front.ask(
            request,
            can_retrieve=self._validity.rechecked and not chosen,
            allow_stale=self._validity.allow_stale,
        )

    def _recheck(self, *, chosen: bool) -> Recheck | None:
        if chosen or not self._validity.rechecked:
            return None

        def recheck(question: str) -> Flow[Sequence[Evidence]]:
            nodes = yield from self._inner.retrieve(QueryBundle(question))
            return self._requests.evidence(nodes)

        return recheck

    # -- the answer ------------------------------------------------------------------------------

    def _answered(
        self, query: Query, request: Request | Miss, seam: str, *, chosen: bool = False
    ) -> Flow[RESPONSE_TYPE]:
        ask = self._ask(request, chosen=chosen)
        if isinstance(ask, Miss):
            self._front.bypassed(ask)
            told = yield from self._uncached(query, fields(ask))
        elif self._inner.may_stream:
            told = yield from self._streamed(query, ask, self._recheck(chosen=chosen))
        else:
            told = yield from self._front.serve(
                ask,
                recheck=self._recheck(chosen=chosen),
                read=lambda answer, report: self._read(query, answer, report),
                make=lambda outcome: self._make(query, outcome),
            )
        events.tell(told.report, seam)
        return told.response

    def _uncached(self, query: Query, report: CacheFields) -> Flow[Told]:
        response = yield from self._making.step(query)
        return Told(reported(response, report), report)

    def _make(self, query: Query, outcome: Miss | Stale) -> Flow[Made[Told]]:
        fresh = yield from self._making.fresh(query)
        report = fields(outcome)
        told = Told(reported(fresh.response, report), report)
        kept = self._making.kept(fresh)
        if kept is None:
            self._front.event(fresh.unfit)
            return Made(output=told, answer=None)
        return Made(output=told, answer=kept.answer, evidence=kept.evidence, readings=kept.readings)

    def _read(self, query: Query, answer: Answer, report: CacheFields) -> Told:
        """Make a response from a stored answer.

        Raises:
            CodecError: it cannot be read.
        """
        response = self._response(query, _decoded(answer), report)
        return Told(reported(response, report), report)

    def _response(
        self,
        query: Query,
        payload: payloads.Payload,
        report: CacheFields,
        along: Along | None = None,
    ) -> RESPONSE_TYPE:
        retrieved = None if query.nodes is None else [*query.nodes, *query.more]
        try:
            return payloads.respond(
                payload,
                retrieved=retrieved if _is_from_same_nodes(report) else None,
                output_cls=self._inner.output_cls,
                aio=query.aio,
                tools=self._inner.tools,
                stream=None if along is None else along.texts(),
            )
        except PayloadError as error:
            raise CodecError(str(error)) from error

    # -- an answer that may be a stream ----------------------------------------------------------

    def _streamed(self, query: Query, ask: Ask, recheck: Recheck | None) -> Flow[Told]:
        along = yield from self._along(query, ask, recheck)
        begun = yield from along.head()
        opening, led = begun.head, along.led
        if not opening.streams:
            yield from along.end()  # so that it is stored before anybody has it
        report = begun.report(led=led)
        response = None
        if led and opening.fresh is not None:
            response = _going_on(opening.fresh.response, along)
        elif opening.payload is not None:
            response = self._given(query, opening.payload, report, along)
        if response is None:  # only its maker can be given it
            yield from along.leave()
            return (yield from self._uncached(query, fields(begun.outcome)))
        self._streaming.report(begun, led=led)  # counts it
        return Told(reported(response, report), report)

    def _given(
        self, query: Query, payload: payloads.Payload, report: CacheFields, along: Along
    ) -> RESPONSE_TYPE | None:
        try:
            return self._response(query, payload, report, along)
        except CodecError as error:
            self._front.failed("undecodable", error)
            return None

    def _along(self, query: Query, ask: Ask, recheck: Recheck | None) -> Step[Along]:
        replay = Replay(read=lambda answer: self._replayed(query, answer), keep=self._keep)
        front, streaming, making = self._front, self._streaming, self._making

        def make(_: Miss | Stale) -> Opened[Opening, str]:
            fresh = readable(front.run(making.fresh(query)))
            return Opened(self._opening(fresh), source(fresh))

        async def amake(_: Miss | Stale) -> AsyncOpened[Opening, str]:
            fresh = await front.arun(making.fresh(query))
            return AsyncOpened(self._opening(fresh), asource(fresh))

        def along() -> Along:
            return Along(streaming.stream(ask, replay, make, recheck=recheck))

        async def aalong() -> Along:
            if self._inner.streams_plainly:  # then the caller reads the stream as a thread does
                return await asyncio.to_thread(along)
            return Along(await streaming.astream(ask, replay, amake, recheck=recheck))

        return Step(sync=along, aio=aalong)

    def _opening(self, fresh: Fresh) -> Opening:
        if fresh.payload is None and fresh.unfit != NOT_STORABLE:  # that is counted at its end
            self._front.event(fresh.unfit)
        return Opening(fresh.payload, fresh)

    def _replayed(self, query: Query, answer: Answer) -> Opened[Opening, str]:
        payload = _decoded(answer)
        self._response(query, payload, fields(Miss(reason=Reason.NOT_FOUND)))  # it can be read
        return Opened(Opening(payload, None), iter(payload.chunks))

    def _keep(self, opening: Opening, texts: Sequence[str]) -> Kept | None:
        return None if opening.fresh is None else self._making.kept(opening.fresh, texts)


def _decoded(answer: Answer) -> payloads.Payload:
    if answer.format != payloads.FORMAT:
        raise CodecError(f"The stored answer has the format {answer.format!r}.")
    try:
        return payloads.decode(answer.payload)
    except PayloadError as error:
        raise CodecError(str(error)) from error


def _going_on(response: RESPONSE_TYPE, along: Along) -> RESPONSE_TYPE:
    """Return the response of who made it, as it goes on for all that read it."""
    if not isinstance(response, STREAMS) or type(response) not in STREAMS:
        return response
    texts = along.texts()
    if isinstance(texts, AsyncGenerator):
        return AsyncStreamingResponse(texts, response.source_nodes, response.metadata)
    if isinstance(response, AsyncStreamingResponse):  # the engine gave it to a thread
        return response
    return dataclasses.replace(response, response_gen=texts)


def _is_from_same_nodes(report: CacheFields) -> bool:
    """Tell whether an answer was made from what was retrieved now: not if by meaning, or stale."""
    shared = report["level"] is None
    return shared or (report["hit"] and report["level"] == Level.EXACT.value)
