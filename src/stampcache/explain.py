"""What `Cache.explain` returns: which entries were looked at, which check decided, what moved."""

from collections.abc import Iterator

from msgspec import Struct

from stampcache import signature
from stampcache.journal import Verdict
from stampcache.model import Entry, Signature
from stampcache.outcome import Check, Hit, Miss, Outcome
from stampcache.request import Request
from stampcache.signature import Moved


class Explanation(Struct, frozen=True):
    """One lookup, told. Printing it gives one line per check."""

    request: Request
    outcome: Outcome
    now: float = 0.0
    verdict: Verdict | None = None

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks in the order in which they were made; the last one decided."""
        return self.outcome.trace

    @property
    def moved(self) -> tuple[Moved, ...]:
        """The parts of the entry's signature that are others now; empty after a miss.

        The evidence is compared where the request has some, the norm where the question was embedded
        anew. That time went on is no change: `age_s` tells how far.
        """
        outcome = self.outcome
        if isinstance(outcome, Miss):
            return ()
        kept = outcome.entry.signature
        norm = "" if isinstance(outcome, Hit) else outcome.norm
        fresh = signature.sign(norm=norm, evidence=self.request.evidence, now=kept.created)
        evidence = kept.evidence if self.request.evidence is None else fresh.evidence
        return signature.moved(kept, Signature(norm, evidence, kept.created))

    @property
    def age_s(self) -> float | None:
        """Seconds since the entry was made; ``None`` after a miss."""
        outcome = self.outcome
        return None if isinstance(outcome, Miss) else self.now - outcome.entry.created_at

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        outcome = self.outcome
        kind = type(outcome).__name__
        if isinstance(outcome, Hit):
            level = f"{outcome.level.value}, {outcome.similarity:.4f}"
            yield f"{kind} ({level}): {outcome.reason.value}"
            yield f"  answers: {outcome.entry.question}"
        else:
            detail = f" ({outcome.detail})" if outcome.detail else ""
            yield f"{kind}: {outcome.reason.value}{detail}"
        if not isinstance(outcome, Miss):
            yield from self._of(outcome.entry)
        for check in self.checks:
            mark = "ok" if check.passed else "no"
            entry = f" [entry {check.entry_id}]" if check.entry_id else ""
            yield f"  {mark}  {check.step}{entry}: {check.detail}"

    def _of(self, entry: Entry) -> Iterator[str]:
        moved = ", ".join(part.value for part in self.moved) or "nothing that was compared"
        yield f"  signature: {entry.signature}; moved: {moved}"
        kind = f" of kind {entry.kind!r}" if entry.kind else ""
        ends = "never" if entry.expires_at is None else f"in {entry.expires_at - self.now:.0f} s"
        by = f" by {entry.answer.revision}" if entry.answer.revision else ""
        yield f"  made {self.age_s:.0f} s ago{by}{kind}, ends {ends}"
        if entry.doubtful_at is not None:
            left = entry.doubtful_at - self.now
            yield f"  may have changed {'in' if left > 0 else 'for'} {abs(left):.0f} s"
        if self.verdict is not None:
            ago = self.now - self.verdict.at
            spent = f"{self.verdict.seconds:.1f} s, {self.verdict.usage.total:,} tokens"
            yield f"  judged {ago:.0f} s ago by {self.verdict.judge}, {self.verdict} ({spent})"
