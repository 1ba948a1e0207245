"""From what a user passes to the checked parts of a cache: what is wrong is refused, in one sentence."""

import secrets
from collections.abc import Mapping
from math import isfinite
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from stampcache import ttl
from stampcache.calibration import Calibration, as_calibration
from stampcache.core import Core, Parts
from stampcache.decide import Proof, Rules
from stampcache.embed import as_embedder, dimension_of
from stampcache.embedding import QuestionEmbedder
from stampcache.errors import ConfigError, EmbedderError
from stampcache.flows.comparing import AS_MEASURED, Comparing
from stampcache.identity import refuse_mixture
from stampcache.intake import Tenants, Terms
from stampcache.model import Stamps
from stampcache.ports import Clock, Embedder, ReadingVerifier, Store, Tokenizer
from stampcache.tokens import as_tokenizer
from stampcache.verify import AnyVerifier, GivenVerifier, as_verifier, calibrated, shipped

CAPACITY = 100_000
LIFETIME_S = 7 * ttl.DAY_S
SAMPLE = 0.05
Consult: TypeAlias = Literal["later", "now"]
Revisions: TypeAlias = Literal["shown", "stale"]
_TENANTS = ("optional", "required")


class Models(Struct, frozen=True):
    """What a user passes for the models and the tokenizer of a cache."""

    embedder: object
    calibration: Calibration | Mapping[str, object] | float | None
    verifier: GivenVerifier
    tokenizer: object
    judge: object = None


def assemble(
    store: Store,
    *,
    models: Models,
    tenants: Tenants,
    stamps: Stamps,
    secret: bytes | str | None,
    rules: Rules,
    corpus: str,
    flight_timeout_s: float,
    clock: Clock,
) -> Core:
    """Return the core of a cache.

    Raises:
        ConfigError: something given is wrong or contradicts the store.
    """
    embedder = None if models.embedder is None else as_embedder(models.embedder)
    tokenizer = as_tokenizer(models.tokenizer)
    verifier = as_verifier(models.verifier, embedder)
    calibration = _calibration(models, embedder)
    if rules.proof is not None and rules.proof.max_wrong is not None:
        _check_proof(models, embedder)
    embedding = None
    if embedder is not None:
        embedding = _embedding(embedder, store, compared=calibration is not None)
    terms = Terms(
        tenants=tenants,
        stamps=_stamps(stamps, tokenizer, embedding),
        rules=replace(
            rules,
            semantic=embedder is not None,
            calibration=calibration,
            has_judge=models.judge is not None,
        ),
        clock=clock,
        corpus=corpus,
        tokenizer=tokenizer,
        comparing=_comparing(models, embedder, verifier, calibration),
        master_secret=_master_secret(store, secret),
    )
    return Core(
        Parts(
            store=store,
            terms=terms,
            embedding=embedding,
            verifier=verifier,
            flight_timeout_s=flight_timeout_s,
            judge=models.judge,
        )
    )


def _check_proof(models: Models, embedder: Embedder | None) -> None:
    if embedder is None:
        raise ConfigError(
            "max_wrong= is given without embedder=; without one no hit is by meaning."
        )
    if models.calibration is not None:
        raise ConfigError(
            "max_wrong= and calibration= are given; a threshold is proved or told, so give one of both."
        )


def _stamps(
    given: Stamps, tokenizer: Tokenizer | None, embedding: QuestionEmbedder | None
) -> Stamps:
    seen = Stamps(
        tokenizer=tokenizer.stamp if tokenizer else "",
        embedder=embedding.stamp if embedding else "",
    )
    refuse_mixture("tokenizer", made=given.tokenizer, where="stamps=", runs=seen.tokenizer)
    return seen.over(given)


def _embedding(embedder: Embedder, store: Store, *, compared: bool) -> QuestionEmbedder:
    embedding = QuestionEmbedder(embedder, store)
    dimension = dimension_of(embedder)
    if dimension is not None:
        embedding.check_dimension(dimension)
    if compared:  # else no vector of it is ever used
        try:
            embedding.verify()
        except (
            EmbedderError
        ) as error:  # counted by the core; looked at again before its first vector
            embedding.problem = error
    return embedding


def is_stale(revisions: Revisions) -> bool:
    """Tell whether another served revision makes an answer stale.

    Raises:
        ConfigError: the word is none of ours.
    """
    if revisions not in ("shown", "stale"):
        raise ConfigError(f'revisions= is {revisions!r}; give "shown" or "stale".')
    return revisions == "stale"


def check(tenants: Tenants, rules: Rules, flight_timeout_s: float) -> None:
    """Refuse wrong settings, before anything is opened or created.

    Raises:
        ConfigError: one is wrong.
    """
    if tenants not in _TENANTS:
        raise ConfigError(f'tenants= is {tenants!r}; give "optional" or "required".')
    if not (flight_timeout_s > 0 and isfinite(flight_timeout_s)):
        raise ConfigError(
            f"flight_timeout_s= is {flight_timeout_s}; give a finite number of seconds above 0."
        )
    if rules.max_answer_bytes < 1:
        raise ConfigError(f"max_answer_bytes= is {rules.max_answer_bytes}; give 1 or more.")


def _calibration(models: Models, embedder: Embedder | None) -> Calibration | None:
    """Return from which cosine on candidates are looked at: as told, or as measured."""
    if embedder is None:
        if models.calibration is not None:
            raise ConfigError("calibration= is given without embedder=; give both or neither.")
        return None
    return as_calibration(models.calibration) or calibrated(models.verifier, embedder)


def _comparing(
    models: Models,
    embedder: Embedder | None,
    verifier: AnyVerifier | None,
    calibration: Calibration | None,
) -> Comparing:
    if verifier is None:
        return AS_MEASURED
    known = shipped(models.verifier, embedder)
    told = None if models.calibration is None else calibration
    return Comparing(
        threshold=verifier.threshold,
        reads=isinstance(verifier, ReadingVerifier),
        verifier=verifier.name,
        languages=known.languages if known is not None else frozenset(),
        told=None if told is None else told.threshold,
    )


def proof_of(
    max_wrong: float | None, sample: float | None, consult: Consult, *, has_judge: bool
) -> Proof | None:
    """Return what is to be proved and learnt of hits by meaning; ``None``: nothing.

    Raises:
        ConfigError: one is no share, or they contradict each other.
    """
    if consult not in ("later", "now"):
        raise ConfigError(f'consult= is {consult!r}; give "later" or "now".')
    if consult == "now" and not has_judge:
        raise ConfigError('consult="now" asks a judge about doubtful pairs; give judge=, too.')
    if consult == "now" and max_wrong is not None:
        raise ConfigError(
            'max_wrong= promises hits of a threshold, and consult="now" adds others; give one of both.'
        )
    for name, share in (("max_wrong", max_wrong), ("sample", sample)):
        if share is not None and (type(share) not in (int, float) or not 0 <= share <= 1):
            raise ConfigError(
                f"{name}= is {share!r}; give a share such as 0.01 for one in a hundred."
            )
    if max_wrong is not None and not 0 < max_wrong < 1:
        raise ConfigError(
            f"max_wrong= is {max_wrong!r}; give a share above 0 and below 1, as 0.01."
        )
    if max_wrong is None and sample is None and not has_judge:
        return None
    drawn = SAMPLE if sample is None else sample
    return Proof(max_wrong=max_wrong, sample=drawn, consult=consult == "now")


def _master_secret(store: Store, given: bytes | str | None) -> bytes:
    if given is None:
        return bytes.fromhex(store.claim("secret", secrets.token_hex(32)))
    raw = given.encode() if isinstance(given, str) else given
    if len(raw) < 16:
        raise ConfigError(f"secret= has {len(raw)} bytes; give at least 16 random ones.")
    return raw
