"""What `Cache` and `AsyncCache` share: one configuration, and the way from a request to a flow's input.

Everything that a flow must not do itself is done here once per call: the clock is read, the scope is
taken from the context, the identity is digested, an entry id is drawn.
"""

import asyncio
import secrets
import threading
import time
from copy import deepcopy
from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from stampcache import canonical, identity
from stampcache.decide import Rules
from stampcache.effects import AsyncPorts, Ports
from stampcache.embed import aembed_question, embed_question
from stampcache.errors import CanonicalError, ConfigError, ScopeError, StoreError
from stampcache.flows import Ask, Fill
from stampcache.guards import profile_entry
from stampcache.identity import Realm
from stampcache.model import (
    Answer,
    Check,
    Evidence,
    Hit,
    Identity,
    Miss,
    Outcome,
    Reason,
    Refused,
    Request,
    Scope,
    Settings,
    Stamps,
)
from stampcache.ports import Clock, Embedded, Embedder, Store, Tokenizer, Verifier
from stampcache.scope import current_scope
from stampcache.singleflight import Flights
from stampcache.telemetry import Counters, Stats, summarize

Tenants: TypeAlias = Literal["optional", "required"]
_REALMS_KEPT = 4_096
_PROFILES_KEPT = 4_096
_SAVE_COUNTERS_EVERY_S = 30.0


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """See `Clock.now`."""
        return time.time()


class Configuration(Struct, frozen=True, kw_only=True):
    """What a cache was opened with, after every argument has been checked."""

    store: Store
    embedder: Embedder | None
    verifier: Verifier | None
    tokenizer: Tokenizer | None
    tenants: Tenants
    stamps: Stamps
    rules: Rules
    clock: Clock
    master_secret: bytes
    flight_timeout_s: float


class Core:
    """Shared by the sync and the async face of one cache; safe for threads and tasks."""

    def __init__(self, setup: Configuration) -> None:
        self.setup = setup
        self.store = setup.store
        self.counters = Counters()
        self.flights = Flights(timeout_s=setup.flight_timeout_s)
        self._now = setup.clock.now
        self._realms: dict[tuple[Scope, str], Realm] = {}
        self._seen_tenant = False
        self._known_dimension: int | None = None
        self._dimension_lock = threading.Lock()
        self._counters_saved_at = setup.clock.now()
        self.ports = Ports(
            store=setup.store,
            note=self.counters.note,
            embed=self.embed,
            verifier=setup.verifier,
        )
        self.async_ports = AsyncPorts(
            store=setup.store.aio(),
            note=self.counters.note,
            embed=self.aembed,
            verifier=setup.verifier,
        )
        self._profile_stored = lru_cache(maxsize=_PROFILES_KEPT)(profile_entry)
        self._verifier_threshold = setup.verifier.threshold if setup.verifier else None

    # -- who asks ----------------------------------------------------------------------------------

    def scope_of(self, given: Scope | None) -> Scope | None:
        """Return who asks; ``None`` where the call must bypass the cache.

        Raises:
            ScopeError: the cache requires a tenant and the call has none.
        """
        scope = given if given is not None else current_scope()
        named = scope is not None and scope.tenant not in ("", "default")
        if self.setup.tenants == "required" and not named:
            raise ScopeError(_NO_TENANT)
        self._seen_tenant = self._seen_tenant or named
        if scope is None or not scope.tenant:  # nobody said which tenant
            if self._seen_tenant:
                return None
            scope = Scope() if scope is None else replace(scope, tenant="default")
        return scope

    def realm(self, scope: Scope, settings: Settings) -> Realm:
        """Return the digests that all requests of this scope and these settings share."""
        place = (scope, settings.digest)
        known = self._realms.get(place)
        if known is None:
            known = identity.realm(self.setup.master_secret, scope, settings, self.setup.stamps)
            if len(self._realms) >= _REALMS_KEPT:
                self._realms.clear()
            self._realms[place] = known
        return known

    def scope_digest(self, scope: Scope) -> str:
        """Return the digest under which a store knows a scope."""
        return self.realm(scope, Settings()).scope

    # -- inputs of flows ---------------------------------------------------------------------------

    def ask(
        self,
        request: Request,
        *,
        can_retrieve: bool,
        record: bool = True,
        scope: Scope | None = None,
    ) -> Ask | Miss:
        """Return the input of `flows.lookup`, or the Miss of a request that bypasses the cache.

        ``scope`` is the one of an earlier call that this one continues, wherever it runs.
        """
        scope = scope if scope is not None else self.scope_of(request.scope)
        if scope is None:
            return _bypass(Reason.UNSCOPED, _UNSCOPED)
        try:
            where = self.realm(scope, request.runs)
            address = identity.identify(request, where, self.setup.tokenizer)
        except CanonicalError as error:
            return _bypass(Reason.UNCACHEABLE, str(error))
        return Ask(
            request=request,
            identity=address,
            scope=scope,
            rules=self.setup.rules,
            now=self._now(),
            can_retrieve=can_retrieve,
            verifier_threshold=self._verifier_threshold,
            profile_stored=self._profile_stored,
            record=record,
        )

    def fill(
        self,
        request: Request,
        answer: Answer | str,
        evidence: tuple[Evidence, ...] | None,
        outcome: Outcome | None,
    ) -> Fill | Miss:
        """Return the input of `flows.update`, or the Miss of a request that bypasses the cache."""
        before = None if isinstance(outcome, Hit) else outcome
        if before is not None and before.identity is None:
            return _bypass(before.reason, before.detail)
        scope = before.scope if before is not None else None
        asked = self.ask(request, can_retrieve=False, scope=scope)
        if isinstance(asked, Miss):
            return asked
        if before is not None and asked.identity != before.identity:
            raise ConfigError(
                "outcome= belongs to another request; pass what lookup returned for this very one."
            )
        return Fill(
            request=request,
            identity=asked.identity,
            answer=own(as_answer(answer)),
            evidence=evidence if evidence is not None else request.evidence,
            stamps=self.stamps_of(request.runs),
            entry_id=secrets.token_hex(8),
            rules=self.setup.rules,
            now=self._now(),
            outcome=before,
        )

    def stamps_of(self, settings: Settings) -> Stamps:
        """Return all stamps that an entry of these settings carries."""
        stamps = settings.stamps.over(self.setup.stamps)
        return stamps.over(Stamps(model=settings.model))

    # -- the embedder ------------------------------------------------------------------------------

    def embed(self, question: str) -> Embedded:
        """Return the vector of a question, having checked that its size is the store's."""
        assert self.setup.embedder is not None
        embedded = embed_question(self.setup.embedder, canonical.text(question))
        self.check_dimension(len(embedded.vector))
        return embedded

    async def aembed(self, question: str) -> Embedded:
        """Return the same as `embed` without blocking the event loop."""
        assert self.setup.embedder is not None
        embedded = await aembed_question(self.setup.embedder, canonical.text(question))
        if len(embedded.vector) != self._known_dimension:
            await asyncio.to_thread(self.check_dimension, len(embedded.vector))
        return embedded

    def check_dimension(self, dimension: int) -> None:
        """Record the size of the embedder's vectors in the store, or compare it with the record.

        Raises:
            ConfigError: the store holds vectors of another size under this embedder's name.
        """
        if dimension == self._known_dimension:
            return
        assert self.setup.embedder is not None
        name = self.setup.embedder.name
        with self._dimension_lock:
            known = int(self.store.claim(f"dimension:{name}", str(dimension)))
            self._known_dimension = known
        if known != dimension:
            raise ConfigError(
                f"The embedder {name!r} gives vectors of {dimension} numbers, but this store holds"
                f" its vectors of {known}: give the changed embedder another name, or open another"
                " store. Nothing was lost."
            )

    # -- counters and the end -----------------------------------------------------------------------

    def stats(self, *, everything: bool) -> Stats:
        """Return the figures of this process for the scope in force, or for all scopes together."""
        if everything:
            return summarize(self.counters.of(None), self.store.stats().entries)
        scope = self.scope_of(None)
        if scope is None:
            return summarize({}, 0)
        digest = self.scope_digest(scope)
        return summarize(self.counters.of(digest), self.store.stats(digest).entries)

    def counters_due(self) -> bool:
        """Tell whether counters were last saved more than 30 seconds ago."""
        return self._now() - self._counters_saved_at >= _SAVE_COUNTERS_EVERY_S

    def save_counters(self) -> None:
        """Add what was counted to the store's lasting counters; a failure is counted, not raised."""
        self._counters_saved_at = self._now()
        unsaved = self.counters.take_unsaved()
        try:
            self.store.tally(unsaved)
        except StoreError as error:
            self.counters.give_back(unsaved)
            self.counters.note("save_counters", error)

    def close(self) -> None:
        """Write what is pending and let go of the store."""
        self.save_counters()
        self.store.close()


_NO_TENANT = (
    'This cache requires a tenant (and "default" is none): run the call inside '
    "`with stampcache.scope(tenant=...)`, or give the request a scope."
)
_UNSCOPED = (
    "this cache has served named tenants, so a call without a scope is not cached; "
    "run it inside `with stampcache.scope(tenant=...)`"
)


def _bypass(reason: Reason, detail: str) -> Miss:
    return Miss(reason=reason, detail=detail, trace=(Check("identity", False, detail),))


def refused(bypass: Miss) -> Refused:
    """Return what an update of a bypassing request comes to."""
    return Refused(bypass.reason, bypass.detail)


def as_answer(made: Answer | str) -> Answer:
    """Return an answer for what a user's function made; texts of a string subclass become plain.

    Raises:
        ConfigError: it is neither a text nor an answer with one.
    """
    if isinstance(made, str):
        return Answer(text=str.__str__(made))
    if not isinstance(made, Answer) or not isinstance(made.text, str):
        raise ConfigError(f"An answer is a string or an Answer with a text, not {made!r}.")
    return made if type(made.text) is str else replace(made, text=str.__str__(made.text))


def own(answer: Answer) -> Answer:
    """Return the answer with its mutable parts copied: what others hold of it may be changed."""
    calls = answer.tool_calls
    return replace(answer, tool_calls=deepcopy(calls)) if calls else answer


def flight_key(address: Identity, request: Request) -> tuple[str, str, str]:
    """Return what makes two concurrent requests the same: their address and their evidence."""
    cited = "" if request.evidence is None else _cited(request.evidence)
    return (address.partition, address.key, cited)


def _cited(evidence: tuple[Evidence, ...]) -> str:
    """Tell evidence apart by its contents, and by its ids too, as contents may be unknown."""
    parts = [
        canonical.encode(part)
        for chunk in evidence
        for part in (chunk.digest, chunk.corpus, chunk.source, chunk.chunk)
    ]
    return canonical.digest([b"%d" % len(evidence), *parts], person=b"flight")


def scope_part(ask: Ask | Miss) -> str:
    """Return the scope digest under which a lookup is counted; empty for a bypass."""
    return ask.identity.scope if ask.identity is not None else ""
