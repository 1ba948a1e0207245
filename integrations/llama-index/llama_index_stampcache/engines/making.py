"""Making an answer with the inner engine, and taking it down for the cache."""

import logging
from collections.abc import Sequence

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.schema import NodeWithScore, QueryBundle
from msgspec import Struct

from llama_index_stampcache.engines import payload as payloads
from llama_index_stampcache.engines.inner import Inner
from llama_index_stampcache.engines.payload import Payload
from llama_index_stampcache.engines.requests import Requests
from llama_index_stampcache.usage import Meter, metered
from llama_index_stampcache.watching.heard import UNWATCHED, Heard, Watching
from stampcache import Answer, Evidence
from stampcache.adapters import (
    CanonicalError,
    Flow,
    Front,
    Kept,
    Reading,
    Step,
    Validity,
    listening,
)

_LOGGER = logging.getLogger("stampcache")
_TOLD = 16
NOT_STORABLE = "adapter.not_storable"
EVIDENCE_UNKNOWN = "adapter.evidence_unknown"
"""No change could be told to concern such an answer."""


class Query(Struct, frozen=True, kw_only=True):
    """One query: what was asked, and what was retrieved or given for it; ``more`` is cited beside it.

    ``aio``: the caller awaits the answer.
    """

    bundle: QueryBundle
    nodes: Sequence[NodeWithScore] | None
    aio: bool
    more: Sequence[NodeWithScore] = ()


class Fresh(Struct, frozen=True, kw_only=True):
    """What the engine answered; ``payload`` is ``None`` where that is not to be stored."""

    response: RESPONSE_TYPE
    payload: Payload | None
    evidence: tuple[Evidence, ...] | None
    meter: Meter
    unfit: str
    readings: Sequence[Reading] = ()


class Telling:
    """Says what of an engine's answers cannot be stored, once each; it would not be seen otherwise."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._told: set[str] = set()

    def unstorable(self, problem: str) -> None:
        """Say it."""
        if problem not in self._told and len(self._told) < _TOLD:
            self._told.add(problem)
            _LOGGER.warning("An answer of %s is not stored: %s.", self._engine, problem)


class Making:
    """Makes the answers of one engine; safe for threads and tasks."""

    def __init__(
        self,
        inner: Inner,
        front: Front,
        requests: Requests,
        validity: Validity,
        telling: Telling,
        watching: Watching | None = None,
    ) -> None:
        """``watching`` reads the searches of a watched index; ``None`` where none is watched."""
        self._inner = inner
        self._front = front
        self._requests = requests
        self._validity = validity
        self._in_two_steps = inner.in_two_steps
        self._telling = telling
        self._watching = watching

    def step(
        self, query: Query, nodes: Sequence[NodeWithScore] | None = None
    ) -> Step[RESPONSE_TYPE]:
        """Return the step that makes an answer, and does nothing else."""
        given = query.nodes if nodes is None else nodes
        if given is None:
            return self._inner.query(query.bundle)
        return self._inner.synthesize(query.bundle, given, query.more)

    def fresh(self, query: Query) -> Flow[Fresh]:
        """Make an answer and take it down."""
        meter, heard = Meter(), list[Reading]()
        nodes = query.nodes
        if nodes is None and self._in_two_steps:
            step = listening(self._inner.retrieve(query.bundle), heard)
            nodes = yield from metered(step, meter)
        response = yield from metered(listening(self.step(query, nodes), heard), meter)
        payload = self._drafted(response, query, nodes)
        evidence = self._evidence(response, nodes)
        read = self._read(query, heard, nodes)
        unfit = ""
        if evidence is None and self._validity.needs_evidence:
            unfit = EVIDENCE_UNKNOWN
        elif read.problem:
            unfit = UNWATCHED
        elif payload is None:
            unfit = NOT_STORABLE
        return Fresh(
            response=response,
            payload=None if unfit else payload,
            evidence=evidence,
            meter=meter,
            unfit=unfit,
            readings=read.readings,
        )

    def _read(
        self, query: Query, heard: Sequence[Reading], nodes: Sequence[NodeWithScore] | None
    ) -> Heard:
        """Return what was heard; who gives the nodes is answered from these, whatever is written."""
        if self._watching is None or query.nodes is not None:
            return Heard()
        read = self._watching.read(heard, nodes)
        if read.problem:
            self._telling.unstorable(read.problem)
        return read

    def kept(self, fresh: Fresh, texts: Sequence[str] | None = None) -> Kept | None:
        """Return what is stored of an answer that has ended; a stream gave these texts."""
        payload = fresh.payload
        if payload is None:
            return None
        if payload.kind == "stream":
            if not all(isinstance(text, str) for text in texts or ()):
                return None
            payload = payloads.with_chunks(payload, texts or ())
        return Kept(self._answer(payload, fresh.meter), fresh.evidence, fresh.readings)

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

    def _drafted(
        self, response: RESPONSE_TYPE, query: Query, nodes: Sequence[NodeWithScore] | None
    ) -> Payload | None:
        try:
            output, tools = self._inner.output_cls, self._inner.tools
            cited = None if nodes is None else [*nodes, *query.more]
            drafted = payloads.draft(response, cited, output, tools)
            if drafted is None:
                self._telling.unstorable(payloads.problem(response, output, tools))
        except Exception as error:  # noqa: BLE001 - counted; the answer is given, but not stored
            self._front.failed("draft", error)
            return None
        return drafted

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
            if told is None:
                return None
            return self._requests.evidence(told if nodes is not None else self._inner.found(told))
        except CanonicalError:
            return None
        except Exception as error:  # noqa: BLE001 - counted; the answer is given all the same
            self._front.failed("evidence", error)
            return None
