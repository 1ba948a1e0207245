"""One lookup: what is asked, and what was found out about it so far (pure)."""

from typing import Any

from msgspec import Struct

from stampcache.decide import Objection, Rules
from stampcache.flows.comparing import AS_MEASURED, Comparing
from stampcache.model import (
    AS_SET,
    Controls,
    Entry,
    Identity,
    Reason,
    Scope,
)
from stampcache.outcome import Check, Miss, NoHit, Stale
from stampcache.ports import Embedded
from stampcache.request import Request


class Ask(Struct, frozen=True, kw_only=True):
    """One lookup. ``record`` is off for `explain`: then the entry is not counted as used.

    ``embedder`` is the stamp in the Partition, ``revision`` that by which the model answered last.
    With ``allow_stale`` a stale entry of this very question is enough: no other one is looked for.
    ``controls`` are those in force, and ``slot`` the number of the answer in a variety. ``sampled``: its
    pair was drawn for a label; ``entries`` are about those of the store. ``explains``: somebody wants to
    know why. ``generation`` counts up when what was kept of questions is let go of.
    """

    request: Request
    identity: Identity
    scope: Scope
    rules: Rules
    now: float
    can_retrieve: bool = False
    comparing: Comparing = AS_MEASURED
    embedder: str = ""
    revision: str = ""
    record: bool = True
    allow_stale: bool = False
    controls: Controls = AS_SET
    slot: int = 0
    sampled: bool = False
    entries: int = 0
    explains: bool = False
    generation: int = 0


class Seen:
    """What a lookup has found out so far: its checks, and the best reason not to serve."""

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.finding = Objection(Reason.NOT_FOUND, "this question was not asked before")
        self.stale: Entry | None = None
        self.fence = 0
        self.embedded: Embedded | None = None

    def reject(self, step: str, finding: Objection, entry: Entry | None = None) -> None:
        """Record a failed check of an entry, or of the whole step."""
        self.checks.append(Check(step, False, _said(finding), entry.id if entry else ""))

    def outcome(self, ask: Ask) -> Stale | Miss:
        """Return what the caller gets when nothing could be served."""
        embedded = self.embedded
        miss = Miss(
            reason=self.finding.reason,
            detail=self.finding.detail,
            identity=ask.identity,
            scope=ask.scope,
            settings=ask.request.runs.digest,
            vector=embedded.vector if embedded else None,
            norm=embedded.norm if embedded else "",
            embedder=embedded.embedder if embedded else "",
            fence=self.fence,
            trace=tuple(self.checks),
            controls=ask.controls,
            slot=ask.slot,
        )
        return miss if self.stale is None else Stale(entry=self.stale, **_shared(miss))


def _shared(miss: Miss) -> dict[str, Any]:
    return {name: getattr(miss, name) for name in NoHit.__struct_fields__}


def _said(finding: Objection) -> str:
    return f"{finding.reason.value}: {finding.detail}" if finding.detail else finding.reason.value
