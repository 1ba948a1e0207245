"""What `Cache` and `AsyncCache` are both made of: one core, opened from what a user passes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from stampcache.assembly import (
    CAPACITY,
    LIFETIME_S,
    Consult,
    Models,
    Revisions,
    assemble,
    check,
    is_stale,
    proof_of,
)
from stampcache.calibration import Calibration
from stampcache.core import Core, SystemClock
from stampcache.decide import MAX_ANSWER_BYTES, Rules
from stampcache.errors import ConfigError
from stampcache.freshness import Freshness
from stampcache.intake import Tenants
from stampcache.manifest import Manifest, as_manifest
from stampcache.model import Scope, Selector, Stamps
from stampcache.ports import Clock, Store
from stampcache.stores.keys import EncryptionKey
from stampcache.stores.urls import open_store
from stampcache.ttl import KINDS, Lifetime
from stampcache.verify import GivenVerifier


class Face:
    """A cache in use; `Cache` and `AsyncCache` add the verbs."""

    def __init__(
        self,
        store: Store | str,
        *,
        embedder: object = None,
        calibration: Calibration | Mapping[str, object] | float | None = None,
        verifier: GivenVerifier = "trained",
        judge: object = None,
        max_wrong: float | None = None,
        sample: float | None = None,
        consult: Consult = "later",
        freshness: Freshness | None = None,
        tokenizer: object = None,
        tenants: Tenants = "optional",
        stamps: Stamps | None = None,
        manifest: Manifest | str | Path | None = None,
        secret: bytes | str | None = None,
        encryption_key: EncryptionKey | None = None,
        capacity: int = CAPACITY,
        ttl_s: float | None = LIFETIME_S,
        lifetimes: Mapping[str, Lifetime] | None = None,
        revisions: Revisions = "shown",
        deterministic_only: bool = False,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        flight_timeout_s: float = 120.0,
        strict: bool = False,
        clock: Clock | None = None,
    ) -> None:
        """Open a cache; `open_cache` tells what each argument means."""
        rules = Rules(
            lifetimes=_lifetimes(ttl_s, lifetimes or {}),
            revisions_matter=is_stale(revisions),
            deterministic_only=deterministic_only,
            max_answer_bytes=max_answer_bytes,
            strict=strict,
            freshness=Freshness() if freshness is None and judge is not None else freshness,
            proof=proof_of(max_wrong, sample, consult, has_judge=judge is not None),
        )
        known, made = stamps or Stamps(), as_manifest(manifest)
        check(tenants, rules, flight_timeout_s)
        if encryption_key is not None and not isinstance(store, str):
            raise ConfigError(
                "encryption_key= is given beside a store object: give it to the store itself,"
                " as SqliteStore(path, encryption_key=...)."
            )
        opened = None
        if isinstance(store, str):
            opened = open_store(
                store, capacity=capacity, encryption_key=encryption_key, secret=secret
            )
        try:
            self.core: Core = assemble(
                opened or store,  # type: ignore[arg-type]  # an object where it is no URL
                models=Models(embedder, calibration, verifier, tokenizer, judge),
                tenants=tenants,
                stamps=known if made is None else made.checked(known),
                secret=secret,
                rules=rules,
                corpus="" if made is None else made.corpus,
                flight_timeout_s=flight_timeout_s,
                clock=clock or SystemClock(),
            )
        except BaseException:
            if opened is not None:
                opened.close()
            raise

    @classmethod
    def on(cls, core: Core) -> Self:
        """Return a face of an existing core."""
        face = cls.__new__(cls)
        face.core = core
        return face

    def _selector(
        self,
        corpus: str | None,
        source: str | None,
        chunk: str | None,
        entry: str | None,
        stamps: Stamps | None,
        scope: Scope | None,
    ) -> Selector:
        selector = Selector(
            corpus=corpus,
            source=source,
            chunk=chunk,
            entry=entry,
            stamps=None if stamps == Stamps() else stamps,
            scope=None if scope is None else self.core.intake.scope_digest(scope),
        )
        if selector == Selector():
            raise ConfigError(
                "invalidate() needs to know what changed: give corpus=, source=, chunk=, entry=,"
                " stamps= or scope=; to empty a scope, use clear()."
            )
        return selector


def _lifetimes(ttl_s: float | None, given: Mapping[str, Lifetime]) -> Mapping[str, Lifetime]:
    if "" in given:
        raise ConfigError(
            'lifetimes= has the kind ""; give the life of answers of no kind as ttl_s=.'
        )
    return {**KINDS, **given, "": Lifetime(ttl_s=ttl_s)}
