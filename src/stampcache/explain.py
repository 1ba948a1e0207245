"""What `Cache.explain` returns: which entries were looked at, and which check decided."""

from msgspec import Struct

from stampcache.outcome import Check, Hit, Outcome
from stampcache.request import Request


class Explanation(Struct, frozen=True):
    """One lookup, told. Printing it gives one line per check."""

    request: Request
    outcome: Outcome

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks in the order in which they were made; the last one decided."""
        return self.outcome.trace

    def __str__(self) -> str:
        outcome = self.outcome
        kind = type(outcome).__name__
        if isinstance(outcome, Hit):
            lines = [
                f"{kind} ({outcome.level.value}, {outcome.similarity:.4f}): {outcome.reason.value}"
            ]
            lines.append(f"  answers: {outcome.entry.question}")
            lines.append(f"  signature: {outcome.entry.signature}")
        else:
            detail = f" ({outcome.detail})" if outcome.detail else ""
            lines = [f"{kind}: {outcome.reason.value}{detail}"]
        for check in self.checks:
            mark = "ok" if check.passed else "no"
            entry = f" [entry {check.entry_id}]" if check.entry_id else ""
            lines.append(f"  {mark}  {check.step}{entry}: {check.detail}")
        return "\n".join(lines)
