"""One cache behind its faces: its parts, and its verbs as flows that count what they come to.

`Cache`, `AsyncCache` and the adapters drive these same flows; none of them adds a rule of its own.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from stampcache import flows
from stampcache.corpora import Change, Reading
from stampcache.drivers import AsyncPorts, Ports
from stampcache.due import Due
from stampcache.effects import Fence, Fenced, Flow, Note, Observe, Step, VerdictOn
from stampcache.embedding import QuestionEmbedder, Told
from stampcache.errors import StoreError
from stampcache.explain import Explanation
from stampcache.flows import Ask
from stampcache.intake import Intake, Terms, as_answer, flight_key, refused, scope_part
from stampcache.journal import Observation
from stampcache.judging import as_judge
from stampcache.learning import Learning
from stampcache.model import Answer, Evidence, Selector
from stampcache.outcome import Hit, Miss, Outcome, Stale, Stored, Update, is_late, own
from stampcache.ports import AsyncStore, Following, Forgotten, Judge, Store, Telling
from stampcache.request import Request
from stampcache.sharing import Driven, Landed, Shared, together
from stampcache.singleflight import Flights
from stampcache.streams import Streams
from stampcache.telemetry import Counters, Stats, summarize
from stampcache.turns import Both, Turn, Turns
from stampcache.verify import AnyVerifier
from stampcache.working import Refresh, Work, Worker

_SAVE_COUNTERS_EVERY_S = 30.0
Value = TypeVar("Value")


def _tickets(store: Store, face: AsyncStore) -> Both | None:
    """Return the tickets of a store, if it has any."""
    sync, aio = getattr(store, "tickets", None), getattr(face, "tickets", None)
    return None if sync is None or aio is None else Both(sync, aio)


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """See `Clock.now`."""
        return time.time()


class Parts(Struct, frozen=True, kw_only=True):
    """What a cache is made of, after every argument has been checked."""

    store: Store
    terms: Terms
    embedding: QuestionEmbedder | None
    verifier: AnyVerifier | None
    flight_timeout_s: float
    judge: object = None


class Core:
    """Shared by all faces of one cache; safe for threads and tasks."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.store = parts.store
        self.intake = Intake(parts.terms)
        self.counters = Counters()
        self.flights = Flights(timeout_s=parts.flight_timeout_s)
        self.streams = Streams(timeout_s=parts.flight_timeout_s)
        face = parts.store.aio()
        self.turns = Turns(
            _tickets(parts.store, face),
            timeout_s=parts.flight_timeout_s,
            event=self.counters.event,
        )
        self.token = secrets.token_hex(8)
        self.writing: set[str] = set()
        """The ids of the intents of writes that run now."""
        self.torn: set[str] = set()
        """Those of them that were torn off their loop: threads may go on with them."""
        self.listeners: set[Callable[[str, Change], None]] = set()
        """Who in this process is told of each write to a watched corpus, by its name."""
        self.indexes: dict[str, WeakKeyDictionary[object, str]] = {}
        """The watches over each corpus in this process, with what tells their indexes apart."""
        self.indexes_seen: dict[str, set[str]] = {}
        """What told apart the indexes that were ever watched in this process, by corpus."""
        self._counters_saved_at = self.intake.now()
        rules = parts.terms.rules
        self.due = Due(rules.freshness, has_judge=rules.has_judge)
        self.judge = self._judge(parts)
        self.worker = Worker(self.due, self.judge, rules, self.intake.now, self.token)
        self.learning = Learning(self.intake, self.counters, parts.judge)
        self.ports, self.async_ports = self._ports(face)
        self.learning.look_at(self.ports)
        if isinstance(self.store, Telling):
            self.store.when_forgotten(self.let_go)

    def _ports(self, face: AsyncStore) -> tuple[Ports, AsyncPorts]:
        """Return what the flows of this cache run on, in threads and in tasks."""
        embedding = self.parts.embedding
        if embedding is not None:
            counters = self.counters
            embedding.tell(Told(self.intake.use_embedder, counters.note, counters.event))
        beside: dict[str, Any] = {
            "note": self.counters.note,
            "suspect": embedding.suspect if embedding else None,
            "verifier": self.parts.verifier,
            "judge": self.judge,
            "due": self.due,
            "noticed": self.learning.noticed,
            "equivalence": self.learning.judge,
        }
        sync = Ports(store=self.store, embed=embedding.embed if embedding else None, **beside)
        aio = AsyncPorts(store=face, embed=embedding.aembed if embedding else None, **beside)
        return sync, aio

    def _judge(self, parts: Parts) -> Judge | None:
        fresh = parts.terms.rules.freshness
        if parts.judge is None or fresh is None:
            return None
        kinds = [name for name in parts.terms.rules.lifetimes if name]
        event = self.counters.event
        return as_judge(parts.judge, fresh, kinds=kinds, now=self.intake.now, event=event)

    @property
    def strict(self) -> bool:
        """Whether failures of the cache are raised, for tests."""
        return self.parts.terms.rules.strict

    # -- verbs, as flows ---------------------------------------------------------------------------

    def counted(self, ask: Ask | Miss, outcome: Outcome) -> Outcome:
        """Count what a lookup came to.

        The faces drive `flows.lookup` themselves: a flow around it would cost a twentieth of a hit.
        """
        identity = ask.identity
        self.counters.outcome(outcome, "" if identity is None else identity.scope)
        return outcome

    def lookup_now(self, ask: Ask) -> Flow[Outcome]:
        """Look up and count, for one who may have waited for an equal request."""
        now = replace(ask, now=self.intake.now())
        return self.counted(ask, (yield from flows.lookup(now)))

    def get_or_create(
        self, request: Request, ask: Ask | Miss, make: Step[Answer | str], ports: Driven
    ) -> Flow[Answer]:
        """Return the cached answer, else the one that is made, once for all that ask meanwhile."""
        if isinstance(ask, Miss):
            self.counters.outcome(ask, "")
            alone = as_answer((yield from make))
            self.counters.made(alone.usage, "")
            return alone

        key = flight_key(ask)

        def look_or_make(since: int | None) -> Flow[Landed[Answer]]:
            outcome = yield from self.lookup_now(ask)
            if isinstance(outcome, Hit) or (ask.allow_stale and isinstance(outcome, Stale)):
                return Landed(outcome.answer, self.as_of(outcome, since))
            turn = yield from self.turn(ask, key, lambda: self.exactly_now(ask))
            if turn.found is not None:
                return Landed(turn.found.answer, since)
            return (yield from self.turns.held(turn.ticket, made(outcome, since)))

        def made(outcome: Outcome, since: int | None) -> Flow[Landed[Answer]]:
            answer = as_answer((yield from make))
            sequence = yield from self.sequence()
            done = yield from self.update(request, answer, outcome, None)
            return Landed(answer, since if is_late(done) else sequence)

        shared = yield from self.together(key, look_or_make, ports)
        if not shared.led:
            self.counters.followed(ask.identity.scope)
        return own(shared.value)

    def together(
        self, key: Hashable, lead: Callable[[int | None], Flow[Landed[Value]]], ports: Driven
    ) -> Flow[Shared[Value]]:
        """Run a flow once for all that ask the same meanwhile (see `stampcache.sharing`)."""
        since = yield from self.sequence()
        return (yield from together(self.flights, key, lambda: lead(since), ports, since))

    def as_of(self, outcome: Outcome, since: int | None) -> int | None:
        """Return as of which sequence others may be given what was found.

        A doubted answer is served once more to one (ADR 0022), and so is nobody else's.
        """
        fresh = self.intake.terms.rules.freshness
        if fresh is None or not isinstance(outcome, Hit):
            return since
        at = outcome.entry.doubtful_at
        return since if at is None or self.intake.now() < at else None

    def turn(
        self, ask: Ask, key: tuple[str, ...], again: Callable[[], Flow[Value | None]]
    ) -> Flow[Turn[Value]]:
        """Wait for the turn to make an answer, unless nobody else could be given it."""
        if ask.controls.no_cache or ask.controls.no_store:
            return Turn(None)
        return (yield from self.turns.turn(ask.identity.tenant, key, again))

    def exactly_now(self, ask: Ask) -> Flow[Hit | None]:
        """Return what somebody else has just stored for this very question."""
        return (yield from flows.exact(replace(ask, now=self.intake.now())))

    def sequence(self) -> Flow[int | None]:
        """Return the sequence of the last change; ``None`` where the store cannot say."""
        try:
            return (yield from Fence())
        except StoreError as error:
            if self.strict:
                raise
            yield from Note("sequence", error)
            return None

    def changed(self, ask: Ask, fence: int) -> Flow[bool]:
        """Tell whether a change came after a fence that may touch what is made of this request."""
        try:
            return bool((yield from Fenced(self.intake.anything(ask), fence)))
        except StoreError as error:
            if self.strict:
                raise
            yield from Note("sequence", error)
            return True

    def explain(self, request: Request, ask: Ask | Miss) -> Flow[Explanation]:
        """Look up without counting; whether it is recorded is said in the `Ask`."""
        outcome: Outcome = ask if isinstance(ask, Miss) else (yield from flows.lookup(ask))
        verdict = None
        if not isinstance(outcome, Miss):
            try:
                verdict = yield from VerdictOn(outcome.entry.id)
            except StoreError as error:
                yield from Note("explain", error)
        return Explanation(request, outcome, self.intake.now(), verdict)

    def update(
        self,
        request: Request,
        answer: Answer | str,
        outcome: Outcome | None,
        evidence: Sequence[Evidence] | None,
        readings: Sequence[Reading] = (),
    ) -> Flow[Update]:
        """Store an answer, and count what it came to."""
        fill = self.intake.fill(
            request,
            answer,
            None if evidence is None else tuple(evidence),
            outcome,
            tuple(readings),
        )
        if isinstance(fill, Miss):
            done: Update = refused(fill)
        else:
            done = yield from flows.update(fill)
            if isinstance(done, Stored):
                self.intake.revisions.saw(request.runs, done.entry.answer.revision)
        self.counters.update(done, scope_part(fill))
        if isinstance(answer, Answer):
            self.counters.made(answer.usage, scope_part(fill))
        if self.intake.now() - self._counters_saved_at >= _SAVE_COUNTERS_EVERY_S:
            yield from Step(
                sync=self.save_counters, aio=lambda: asyncio.to_thread(self.save_counters)
            )
        return done

    def invalidate(self, selector: Selector) -> Flow[int]:
        """Invalidate what a change made untrue; where answers age, note that a source changed."""
        marked = yield from flows.invalidate(selector)
        if self.intake.terms.rules.freshness is not None and selector.source:
            seen = Observation(selector.corpus or "", selector.source, True)
            try:
                yield from Observe([seen], self.intake.now())
            except StoreError as error:
                yield from Note("observe", error)
        return marked

    def work(self, limit: int, refresh: Refresh | None) -> Flow[Work]:
        """Look after entries that may have changed, then have pairs of questions labelled."""
        counts: Counter[str] = Counter()
        left = yield from self.worker.work(limit, refresh, counts)
        yield from self.learning.labelled(limit, counts)
        return Work(**counts, left=left)

    def purge(self) -> Flow[int]:
        """Delete whatever can no longer be served."""
        return (yield from flows.purge(self.intake.now()))

    def clear(self) -> Flow[int]:
        """Delete the entries of the scope in force; none where the call has no scope."""
        scope = self.intake.scope_of(None)
        if scope is None:
            self.counters.event("clear.unscoped")
            return 0
        return (yield from flows.clear(self.intake.scope_digest(scope)))

    def forget(self, tenant: str) -> Flow[Forgotten]:
        """Remove everything of a tenant: in the store, then in this process; say how much it was."""
        digest = self.intake.tenant_digest(tenant)
        try:
            forgotten = yield from flows.forget(digest)
        finally:
            others = self.intake.others(digest)
            self.let_go(digest)
            self.counters.forget(others)
        self.counters.event("forgotten.tenants")
        self.counters.event("forgotten.entries", forgotten.entries)
        return forgotten

    def let_go(self, tenant: str) -> None:
        """Keep nothing that was derived from questions of a tenant, by its digest.

        An empty one: of anybody, since somebody was forgotten by another process.
        """
        generation = self.intake.let_go(tenant)
        self.learning.noticed.let_go(tenant, generation)

    # -- counters and the end -----------------------------------------------------------------------

    def stats(self, *, everything: bool) -> Stats:
        """Return the figures of this process for the scope in force, or for all scopes together."""
        if everything:
            entries = self._entries(None)
            lag = self.store.lag() if isinstance(self.store, Following) else None
            return replace(summarize(self.counters.of(None), entries), lag=lag)
        scope = self.intake.scope_of(None)
        if scope is None:
            return summarize({}, 0)
        digest = self.intake.scope_digest(scope)
        return summarize(self.counters.of(digest), self._entries(digest))

    def _entries(self, scope: str | None) -> int:
        """Count the entries; what is counted must be readable above all when the store is away."""
        try:
            return self.store.stats(scope).entries
        except StoreError as error:
            if self.strict:
                raise
            self.counters.note("stats", error)
            return 0

    def save_counters(self) -> None:
        """Add what was counted to the store's lasting counters; a failure is counted, not raised."""
        self._counters_saved_at = self.intake.now()
        unsaved = self.counters.take_unsaved()
        try:
            self.store.tally(unsaved)
        except StoreError as error:
            self.counters.give_back(unsaved)
            self.counters.note("save_counters", error)
        self.learning.look_at(self.ports)

    def close(self) -> None:
        """Write what is pending and let go of the store."""
        self.save_counters()
        self.store.close()
