"""From a request to the input of a flow: who asks, where its answers live, what time it is.

Everything that a flow must not do itself is done here, once per call: the clock is read, the scope is
taken from the context, the identity is digested, an entry id is drawn.
"""

import random
import secrets
import threading
from collections.abc import Set
from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from stampcache import canonical, decide, identity, signature
from stampcache.corpora import Reading
from stampcache.decide import Rules
from stampcache.errors import CanonicalError, ConfigError, ScopeError
from stampcache.flows import Ask, Comparing, Fill
from stampcache.model import (
    AS_SET,
    Answer,
    Controls,
    Entry,
    Evidence,
    Reason,
    Scope,
    Stamps,
)
from stampcache.outcome import Check, Hit, Miss, Outcome, Refused, Stale, own
from stampcache.ports import Clock, Tokenizer
from stampcache.realms import Realms
from stampcache.request import Request, Seam, Settings
from stampcache.revisions import Revisions
from stampcache.scope import Surroundings, surroundings
from stampcache.varieties import Varieties

Tenants: TypeAlias = Literal["optional", "required"]
_PROFILES_KEPT = 4_096


class Terms(Struct, frozen=True, kw_only=True):
    """On what terms one cache takes requests."""

    tenants: Tenants
    stamps: Stamps
    rules: Rules
    clock: Clock
    tokenizer: Tokenizer | None
    corpus: str
    comparing: Comparing
    master_secret: bytes


_DEFAULT = Scope()


class Intake:
    """Turns requests into the inputs of flows; safe for threads and tasks."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.now = terms.clock.now
        self.stamps = terms.stamps
        self.revisions = Revisions(matter=terms.rules.revisions_matter)
        self._realms = Realms(terms.master_secret)
        self._varieties = Varieties()
        self.entries = 0
        """About how many entries the store has."""
        self._seen_tenant = False
        self._generation = 0
        self._counting = threading.Lock()
        self._comparing = self._remembering()

    def _remembering(self) -> Comparing:
        """Return what questions are compared with, with a memory of stored ones."""
        comparing = self.terms.comparing
        remembered = lru_cache(maxsize=_PROFILES_KEPT)(comparing.profile_stored)
        return replace(comparing, profile_stored=remembered)

    def scope_of(self, given: Scope | None) -> Scope | None:
        """Return who asks; ``None`` where the call must bypass the cache.

        Raises:
            ScopeError: the cache requires a tenant and the call has none.
        """
        said = surroundings()
        return self._scope_of(given, said)

    def _scope_of(self, given: Scope | None, said: Surroundings | None) -> Scope | None:
        scope = given
        if scope is None and said is not None:
            scope = said.scope
        named = scope is not None and scope.tenant not in ("", "default")
        if self.terms.tenants == "required" and not named:
            raise ScopeError(_NO_TENANT)
        self._seen_tenant = self._seen_tenant or named
        if scope is None or not scope.tenant:  # nobody said which tenant
            if self._seen_tenant:
                return None
            scope = _DEFAULT if scope is None else replace(scope, tenant="default")
        return scope

    def use_embedder(self, stamp: str) -> None:
        """Go on with another embedder: what was embedded by the one before is not seen any more."""
        self.stamps = replace(self.stamps, embedder=stamp)

    def scope_digest(self, scope: Scope) -> str:
        """Return the digest under which a store knows a scope."""
        return self._realms.of(scope, Settings(), self.stamps).scope

    def tenant_digest(self, tenant: str) -> str:
        """Return the digest under which a store knows a tenant.

        Raises:
            ConfigError: it is no name of a tenant.
        """
        if not isinstance(tenant, str) or not tenant:
            raise ConfigError(f"The tenant to forget is {tenant!r}; give its name.")
        return identity.tenant_digest(self.terms.master_secret, tenant)

    def others(self, tenant: str) -> Set[str]:
        """Return the digests of scopes that are known not to be of this tenant, by its digest."""
        return self._realms.others(tenant)

    def let_go(self, tenant: str) -> int:
        """Let go of what this process keeps of a tenant, by its digest; of anybody by an empty one.

        Of what cannot be told apart nothing is kept of anybody: it is only there to save time. Lookups
        that are under way go on with a memory that ends with them. Returns the generation of lookups
        that begins now.
        """
        self._realms.forget(tenant)
        self._varieties.forget()
        self._comparing = self._remembering()
        with self._counting:
            self._generation += 1
            return self._generation

    def _varies(self, request: Request) -> Miss | None:
        """Return the Miss of a reply that may be another one each time, where such are not kept."""
        if not (self.terms.rules.deterministic_only and request.runs.seam.is_reply):
            return None
        variable = decide.variable(request.runs)
        return None if variable is None else _bypass(variable.reason, variable.detail)

    def ask(
        self,
        request: Request,
        *,
        can_retrieve: bool,
        record: bool = True,
        allow_stale: bool = False,
        before: Miss | Stale | None = None,
        filled: bool = False,
        served: Hit | None = None,
    ) -> Ask | Miss:
        """Return the input of `flows.lookup`, or the Miss of a request that bypasses the cache.

        ``before`` is the outcome of an earlier call that this one continues, wherever it runs: in its
        scope, and under its controls besides those in force. ``filled`` says that an answer is here
        already; it takes the place of the one that was ``served``, if any, in a variety.

        Raises:
            ConfigError: the request is of a kind that this cache does not know.
        """
        if request.kind:
            self.terms.rules.lifetime(request.kind)  # refused before anything is made
        said = surroundings()
        scope = before.scope if before is not None else self._scope_of(request.scope, said)
        if scope is None:
            return _bypass(Reason.UNSCOPED, _UNSCOPED)
        varies = self._varies(request)
        if varies is not None:
            return varies
        try:
            stamps = self.stamps
            where = self._realms.of(scope, request.runs, stamps)
            address = identity.identify(request, where, self.terms.tokenizer)
        except CanonicalError as error:
            return _bypass(Reason.UNCACHEABLE, str(error))
        ask = Ask(
            request=request,
            identity=address,
            scope=scope,
            rules=self.terms.rules,
            now=self.now(),
            can_retrieve=can_retrieve,
            comparing=self._comparing.about(request.question),
            embedder=stamps.embedder,
            revision=self.revisions.latest(request.runs),
            record=record,
            allow_stale=allow_stale,
            sampled=record and self._sampled(),
            explains=not record,
            entries=self.entries,
            generation=self._generation,
        )
        controls = _controls(request, said, before)
        if controls is AS_SET:  # nearly always
            return ask
        if before is not None:
            slot = before.slot
        elif controls.variety == 1 or not request.runs.seam.is_reply:
            slot = 0
        elif filled:
            slot = self._varieties.to_fill(address, where, controls.variety, served)
        else:
            slot = self._varieties.next(address, controls.variety, take=record)
        return replace(
            ask,
            identity=identity.of_variety(address, slot, where),
            controls=controls,
            slot=slot,
            record=record and not controls.no_store,  # not even which question was asked
        )

    def _sampled(self) -> bool:
        """Draw whether the pair of this lookup is kept for a label."""
        proof = self.terms.rules.proof
        return proof is not None and random.random() < proof.sample  # noqa: S311 - no secret

    def fill(
        self,
        request: Request,
        answer: Answer | str,
        evidence: tuple[Evidence, ...] | None,
        outcome: Outcome | None,
        readings: tuple[Reading, ...] = (),
    ) -> Fill | Miss:
        """Return the input of `flows.update`, or the Miss of a request that bypasses the cache."""
        before = None if isinstance(outcome, Hit) else outcome
        if before is not None and before.identity is None:
            return _bypass(before.reason, before.detail)
        served = outcome if isinstance(outcome, Hit) else None
        asked = self.ask(request, can_retrieve=False, before=before, filled=True, served=served)
        if isinstance(asked, Miss):
            return asked
        if before is not None and not _continues(before, asked):
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
            rules=self.terms.rules,
            now=self.now(),
            outcome=before,
            controls=asked.controls,
            embedder=asked.embedder,
            corpus=self._corpus_of(request.runs),
            readings=readings,
            comparing=asked.comparing,
        )

    def anything(self, ask: Ask) -> Entry:
        """Return an entry that stands for whatever is made of a request: any document may be cited."""
        return Entry(
            id="",
            identity=ask.identity,
            question=ask.request.question,
            answer=Answer(text=""),
            signature=signature.sign(norm="", evidence=None, now=ask.now),
            evidence=(Evidence(),),
            stamps=self.stamps_of(ask.request.runs),
            created_at=ask.now,
            expires_at=None,
        )

    def _corpus_of(self, settings: Settings) -> str:
        """Return the corpus that was asked: that of the manifest, but for a bare call of a model."""
        asked_none = settings.seam in (Seam.MODEL, Seam.VECTOR)
        return settings.corpus or ("" if asked_none else self.terms.corpus)

    def stamps_of(self, settings: Settings) -> Stamps:
        """Return all stamps that an entry of these settings carries."""
        stamps = settings.stamps.over(self.stamps)
        return stamps.over(Stamps(model=settings.model))


def _controls(request: Request, said: Surroundings | None, before: Miss | Stale | None) -> Controls:
    """Return the controls in force: the request's, those around it, and those of an earlier call."""
    controls = request.controls
    if said is not None and said.controls is not AS_SET:
        controls = controls.over(said.controls)
    if before is not None and before.controls is not AS_SET:
        controls = controls.over(before.controls)
    return controls


_NO_TENANT = (
    'This cache requires a tenant (and "default" is none): run the call inside '
    "`with stampcache.scope(tenant=...)`, or give the request a scope."
)
_UNSCOPED = (
    "this cache has served named tenants, so a call without a scope is not cached; "
    "run it inside `with stampcache.scope(tenant=...)`"
)


def _continues(before: Miss | Stale, asked: Ask) -> bool:
    """Tell whether an outcome is that of this request, whatever embedder there was then."""
    assert before.identity is not None
    then, now = before.identity, asked.identity
    same = (then.key, then.scope) == (now.key, now.scope)
    return same and before.settings == asked.request.runs.digest


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


def flight_key(ask: Ask) -> tuple[str, str, str]:
    """Return what makes two concurrent requests the same: address, evidence, and what is allowed.

    One that is not to be answered from the cache is like no other.
    """
    evidence = ask.request.evidence
    cited = "" if evidence is None else _cited(evidence)
    allowed = "stale:" if ask.allow_stale else ""
    controls = ask.controls
    if controls is not AS_SET:
        allowed += "unstored:" if controls.no_store else ""
        allowed += "" if controls.ttl_s is None else f"{float(controls.ttl_s)!r}:"
        allowed += secrets.token_hex(8) if controls.no_cache else ""
    return (ask.identity.partition, ask.identity.key, allowed + cited)


def _cited(evidence: tuple[Evidence, ...]) -> str:
    """Tell evidence apart by its contents, and by its ids too, as contents may be unknown."""
    parts = [
        canonical.encode(part)
        for chunk in evidence
        for part in (chunk.digest, chunk.corpus, chunk.source, chunk.chunk)
    ]
    return canonical.digest([b"%d" % len(evidence), *parts], person=b"flight")


def scope_part(asked: Ask | Fill | Miss) -> str:
    """Return the scope digest under which a call is counted; empty for a bypass."""
    return asked.identity.scope if asked.identity is not None else ""
