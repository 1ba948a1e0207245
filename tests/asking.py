"""Lookups and their scripts, for the tests of flows."""

from typing import Any

import msgspec
import numpy as np

from stampcache import flows
from stampcache.calibration import Calibration
from stampcache.decide import Rules
from stampcache.effects import Effect, Embed, Fence, Fetch, Nearest
from stampcache.flows import Ask, Comparing
from stampcache.model import Candidate, Entry, Evidence, Identity, Scope
from stampcache.outcome import Miss, Outcome
from stampcache.ports import Embedded
from stampcache.request import Request
from stampcache.signature import sign
from stampcache.testing import run_script
from stampcache.testing.contract import NOW, make_entry
from stampcache.ttl import Lifetime

Step = tuple[type[Effect[Any]], object]
Script = list[Step]
ME = Identity("p", "k", "s", "t")
ONE, TWO = Evidence(source="one.md", text="1"), Evidence(source="two.md", text="2")
VECTOR = np.asarray([1, 0], np.float32)


def living(ttl_s: float | None, *, cap_s: float | None = None) -> Rules:
    """Return rules by which answers of no kind live so long."""
    return Rules(lifetimes={"": Lifetime(ttl_s=ttl_s, cap_s=cap_s)})


RULES = Rules(semantic=True, calibration=Calibration(0.9, namespaces={"strictly": 0.99}))
EMBEDDED = Embedded(VECTOR, "2.000")


def ask(
    *,
    evidence: tuple[Evidence, ...] | None = None,
    rules: Rules = RULES,
    can_retrieve: bool = False,
    threshold: float | None = None,
    reads: bool = False,
    record: bool = True,
    namespace: str = "default",
    history: tuple[str, ...] = (),
    allow_stale: bool = False,
    now: float = NOW,
    sampled: bool = False,
    entries: int = 0,
    embedder: str = "",
    question: str = "What is a map?",
) -> Ask:
    return Ask(
        request=Request(question=question, evidence=evidence, history=history),
        identity=ME,
        scope=Scope(namespace=namespace),
        rules=rules,
        now=now,
        allow_stale=allow_stale,
        can_retrieve=can_retrieve,
        comparing=Comparing(threshold=threshold, reads=reads),
        record=record,
        sampled=sampled,
        entries=entries,
        embedder=embedder,
    )


def entry(
    key: str = "k",
    *,
    evidence: tuple[Evidence, ...] | None = None,
    question: str = "What is a map",
    expires_at: float | None = None,
) -> Entry:
    made = make_entry(key, evidence=evidence, expires_at=expires_at)
    signature = sign(norm="", evidence=evidence, now=NOW)
    return msgspec.structs.replace(made, question=question, signature=signature)


def near(key: str = "n", similarity: float = 0.95, **options: object) -> Candidate:
    return Candidate(entry(key, **options), similarity)  # type: ignore[arg-type]


def miss(outcome: Outcome) -> Miss:
    assert isinstance(outcome, Miss)
    return outcome


STRICT = msgspec.structs.replace(RULES, strict=True)
NOT_STORED: Script = [(Fetch, None), (Fence, 7)]


def stale_script(kept: Entry) -> Script:
    """Return the steps up to the search after an entry that no longer holds was found."""
    return [(Fetch, kept), (Fence, 7), (Embed, EMBEDDED)]


def look(asked: Ask, candidates: list[Candidate], *script: Step) -> Outcome:
    first: Script = [*NOT_STORED, (Embed, EMBEDDED), (Nearest, candidates)]
    return run_script(flows.lookup(asked), [*first, *script])
