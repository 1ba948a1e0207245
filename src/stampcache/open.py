"""`open_cache`: a cache over a store, and what each of its settings means."""

from collections.abc import Mapping
from pathlib import Path

from stampcache.assembly import CAPACITY, LIFETIME_S, Consult, Revisions
from stampcache.cache import Cache
from stampcache.calibration import Calibration
from stampcache.decide import MAX_ANSWER_BYTES
from stampcache.freshness import Freshness
from stampcache.intake import Tenants
from stampcache.manifest import Manifest
from stampcache.model import Stamps
from stampcache.ports import Clock, Store
from stampcache.stores.keys import EncryptionKey
from stampcache.ttl import Lifetime
from stampcache.verify import GivenVerifier


def open_cache(
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
) -> Cache:
    """Open a cache over a store, given as an object or by its URL.

    Args:
        store: ``memory://``, ``sqlite:///path``, ``redis://host``, or an object that is a
            `stampcache.ports.Store`.
        embedder: turns semantic hits on: ``"minilm"``, the name of a sentence-transformers model, a
            LangChain ``Embeddings``, a LlamaIndex ``BaseEmbedding``, or an object with ``embed`` and
            ``name``. Without one there are exact hits only.
        calibration: the cosine at or above which two questions may be the same, for an embedder that
            stampcache has not measured; a number, or thresholds by namespace.
        verifier: says how probably two questions are the same. ``"trained"`` is the one that stampcache
            ships, where one was trained beside the embedder (MiniLM; for Chinese questions beside the
            multilingual one); ``None``: cosine and guards alone;
            or one of your own (see `stampcache.ports.Verifier`), as a cross-encoder.
        judge: a LangChain chat model, a LlamaIndex LLM, or a function of a prompt, that is asked whether
            an old answer is still fresh, off the path of requests (`Cache.work`). It is never asked
            about what `recheck` or a watch has proved.
        max_wrong: the share of hits by meaning that may be wrong, as 0.01 for one in a hundred: there are
            such hits only where a promise was proved that covers it (`stampcache tune`, ADR 0024).
        sample: the share of lookups by meaning whose pair of questions is kept for a judge or a person to
            label; default: 0.05 with ``judge`` or ``max_wrong``, else nothing is kept.
        consult: ``"now"`` asks the judge at once whether two questions are the same where the verifier is
            in doubt, which takes the judge's time; ``"later"`` keeps the pair for `Cache.work`.
        freshness: when answers are doubted, and what happens then (`stampcache.Freshness`); without a
            judge, a doubted answer is stale after its grace. Default: off, or with a judge its defaults.
        tokenizer: a Hugging Face tokenizer by whose token ids questions are keyed; default: their
            canonical text.
        tenants: ``"required"`` raises `ScopeError` where no tenant is in scope. ``"optional"`` serves
            the tenant ``default``, until another tenant is seen: then unscoped calls bypass the cache.
        stamps: versions that the cache cannot see, for all its entries.
        manifest: what the index was made with: a `Manifest`, or the path of the file that ingestion
            wrote; its tokenizer must be the one in use.
        secret: from which each tenant's key is derived; default: drawn once and kept in the store.
        encryption_key: 32 bytes, or these as URL-safe base64 text: questions and answers are unreadable
            in what the store named by a URL keeps, which must be a new one. Of a list of keys the first
            one encrypts, and all of them decrypt. Needs ``stampcache[encryption]``.
        capacity: a hard bound on the number of entries, for a store given by URL.
        revisions: ``"stale"``: an answer goes stale when this process has seen its model served by
            another revision (``system_fingerprint``) since; ``"shown"``: `explain` shows it.
        ttl_s: the life of an answer of no stated kind in seconds; ``None``: until it is invalidated.
        lifetimes: lifetimes by kind of data, besides and instead of those of `stampcache.ttl.KINDS`; a
            request says its ``kind``.
        deterministic_only: keep no answers of models whose temperature is not set to 0.
        max_answer_bytes: larger answers are not stored.
        flight_timeout_s: how long an equal request waits for the one that is being made.
        strict: raise `StoreError`, `EmbedderError` and `VerifierError` instead of going on without the
            cache: for tests.
        clock: tells the time; for tests.

    Raises:
        ConfigError: something given is wrong; the sentence says what to change.
    """
    return Cache(
        store,
        embedder=embedder,
        calibration=calibration,
        verifier=verifier,
        judge=judge,
        max_wrong=max_wrong,
        sample=sample,
        consult=consult,
        freshness=freshness,
        tokenizer=tokenizer,
        tenants=tenants,
        stamps=stamps,
        manifest=manifest,
        secret=secret,
        encryption_key=encryption_key,
        capacity=capacity,
        ttl_s=ttl_s,
        lifetimes=lifetimes,
        revisions=revisions,
        deterministic_only=deterministic_only,
        max_answer_bytes=max_answer_bytes,
        flight_timeout_s=flight_timeout_s,
        strict=strict,
        clock=clock,
    )
