"""Promises and pairs for tests."""

from stampcache.calibration import Promise, Subject, interval
from stampcache.pairs import Pair
from stampcache.testing.samples import NOW


def promised(
    *,
    threshold: float = 0.9,
    max_wrong: float = 0.01,
    namespace: str = "default",
    embedder: str = "",
    decider: str = "cosine+guards-3",
    entries: int = 100,
    digest: str = "d",
    made_at: float = NOW - 100.0,
    similarity_weight: float = 0.0,
) -> Promise:
    """Return a promise that was never proved."""
    return Promise(
        threshold=threshold,
        max_wrong=max_wrong,
        delta=0.05,
        subject=Subject(namespace=namespace, embedder=embedder, decider=decider),
        data="a test",
        entries=entries,
        pairs=500,
        groups=500,
        served=300,
        wrong=0,
        share=interval(300, 500),
        labellers={"a test": 500},
        made_at=made_at,
        digest=digest,
        similarity_weight=similarity_weight,
    )


def pair(
    asked: str = "a?",
    stored: str = "b?",
    *,
    score: float | None = 0.95,
    tenant: str = "t",
    scope: str = "",
    entry_id: str = "p/k",
    sampled: bool = True,
    served: bool = True,
    at: float = NOW,
    attempts: int = 0,
    subject: Subject | None = None,
    weight: float = 0.0,
    least: float = 0.0,
) -> Pair:
    """Return a pair."""
    return Pair(
        asked=asked,
        stored=stored,
        score=score,
        similarity=0.95,
        subject=subject or Subject(embedder="", decider="cosine+guards-3"),
        entry_id=entry_id,
        tenant=tenant,
        scope=scope,
        at=at,
        sampled=sampled,
        served=served,
        attempts=attempts,
        weight=weight,
        least=least,
    )
