"""Entries and vectors for tests of stores."""

import numpy as np

from stampcache.model import Answer, Entry, Evidence, Identity, Signature, Stamps, Vector

NOW = 1_764_430_000.0


def unit(*numbers: float) -> Vector:
    """Return a unit vector in the direction of these numbers."""
    raw = np.asarray(numbers, np.float32)
    return (raw / np.linalg.norm(raw)).astype(np.float32)


def make_entry(
    key: str,
    *,
    partition: str = "p",
    scope: str = "s",
    tenant: str = "t",
    entry_id: str | None = None,
    text: str = "answer",
    evidence: tuple[Evidence, ...] | None = None,
    stamps: Stamps | None = None,
    expires_at: float | None = None,
    corpus: str = "",
    whole_corpus: bool = False,
) -> Entry:
    """Return an entry at (partition, key) with little to say."""
    return Entry(
        id=entry_id or f"{partition}/{key}",
        identity=Identity(partition, key, scope, tenant),
        question=f"question {key}",
        answer=Answer(text=text),
        signature=Signature("1.000", "v1:00", int(NOW)),
        evidence=evidence,
        stamps=stamps or Stamps(),
        created_at=NOW,
        expires_at=expires_at,
        corpus=corpus,
        whole_corpus=whole_corpus,
    )
