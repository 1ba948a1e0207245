"""Signatures: what an entry was made from, and which part of it moved (pure; ADR 0005)."""

import enum
from collections.abc import Sequence

from stampcache import canonical
from stampcache.model import Evidence, Signature


class Moved(enum.Enum):
    """A part of a signature that differs between two."""

    NORM = "embedding norm"
    EVIDENCE = "evidence"
    CREATED = "creation time"


NORM_TOLERANCE = 2e-3
"""Relative difference of the norms of one text up to which the embedder counts as the same."""


def evidence_digest(evidence: Sequence[Evidence] | None) -> str:
    """Return the digest over the chunks in rank order: contents, never ids.

    Empty where the contents are unknown, of all chunks or of one.
    """
    if evidence is None or not all(chunk.digest for chunk in evidence):
        return ""
    return canonical.digest([chunk.digest.encode() for chunk in evidence], person=b"evidence")


def sign(
    *, norm: str, evidence: Sequence[Evidence] | None, now: float, granularity_s: int = 1
) -> Signature:
    """Return the signature of an entry made now; its time is floored to the granularity (seconds)."""
    created = int(now) // granularity_s * granularity_s
    return Signature(norm=norm, evidence=evidence_digest(evidence), created=created)


def norm_moved(old: str, new: str) -> bool:
    """Tell whether two norms of one text betray two embedders; one that is hidden betrays nothing."""
    if not old or not new:
        return False
    return abs(float(old) - float(new)) > max(NORM_TOLERANCE * float(old), 1e-3)


def moved(old: Signature, new: Signature) -> tuple[Moved, ...]:
    """Return the parts that differ, in the order of the printed form.

    A norm that either side does not know is not compared: it only betrays an embedder that changed
    under its name, and only between embeddings of one text.
    """
    parts: list[Moved] = []
    if norm_moved(old.norm, new.norm):
        parts.append(Moved.NORM)
    if old.evidence != new.evidence:
        parts.append(Moved.EVIDENCE)
    if old.created != new.created:
        parts.append(Moved.CREATED)
    return tuple(parts)
