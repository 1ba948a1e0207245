"""Level 2: the answer to the same question in other words (pure).

The question is embedded, and each neighbour goes through the checks from cheap to dear.
"""

from collections.abc import Iterator

from stampcache import decide, signature
from stampcache.decide import Objection
from stampcache.effects import (
    Embed,
    Fence,
    Flow,
    Nearest,
    Retrieve,
    Suspect,
    Verify,
)
from stampcache.errors import (
    EmbedderError,
    RetrieverError,
    StoreError,
    VerifierError,
    WindowError,
)
from stampcache.flows.asking import Ask, Seen
from stampcache.flows.serving import doubted_now, explained, failed, unavailable, untrusted, used
from stampcache.guards import Asked
from stampcache.model import (
    Candidate,
    Entry,
    Evidence,
    Level,
    Reason,
)
from stampcache.outcome import Check, Hit, Outcome
from stampcache.ports import Embedded


def by_meaning(ask: Ask, seen: Seen) -> Flow[Outcome]:
    """Return the answer to a question that is the same in other words, else why there is none."""
    gate = decide.semantic_gate(ask.request, ask.rules)
    try:
        seen.fence = yield from Fence()
        if gate is None:
            embedded = yield from Embed(ask.request.question)
            gate = yield from _betrayed(ask, seen.stale, embedded)
        if gate is None:
            seen.embedded = embedded
            gate = (yield from untrusted(ask)) if ask.request.runs.watched else None
        if gate is None:
            candidates = yield from Nearest(
                ask.identity.partition,
                embedded.vector,
                ask.rules.neighbours,
                ask.identity.key,
                ask.now,
            )
    except WindowError as error:
        gate = Objection(Reason.BEYOND_WINDOW, str(error))
    except EmbedderError as error:
        gate = yield from failed(ask, Reason.EMBEDDER_ERROR, error)
    except StoreError as error:
        return (yield from unavailable(ask, Reason.STORE_ERROR, error))
    if gate is not None:
        seen.reject("meaning", gate)
        if seen.stale is None and seen.finding.reason is Reason.NOT_FOUND:
            seen.finding = gate
        return seen.outcome(ask)
    others = (one for one in candidates if one.entry.identity.key != ask.identity.key)
    return (yield from _choose(ask, seen, others))


def _betrayed(ask: Ask, stale: Entry | None, embedded: Embedded) -> Flow[Objection | None]:
    """Say that the embedder is not the one that made the vectors of this Partition.

    It may have been found out meanwhile, or the norm of this very question tells so now.
    """
    if embedded.embedder != ask.embedder:
        return Objection(Reason.EMBEDDER_CHANGED, f"it is {embedded.embedder} by now")
    if stale is None or not signature.norm_moved(stale.signature.norm, embedded.norm):
        return None
    if not (yield from Suspect()):
        return None
    norms = f"its norm was {stale.signature.norm} and is {embedded.norm}"
    return Objection(Reason.EMBEDDER_CHANGED, f"{norms} for the same text")


def _choose(ask: Ask, seen: Seen, candidates: Iterator[Candidate]) -> Flow[Outcome]:
    first, asked = True, Asked(ask.request.question, ask.profile_stored)
    for candidate in candidates:
        entry = candidate.entry
        finding = yield from _examine(ask, asked, candidate)
        if finding is None:
            if ask.record:
                yield from used(ask, entry)
            seen.checks.append(
                Check("meaning", True, f"similarity {candidate.similarity:.4f}", entry.id)
            )
            hit = Hit(
                entry=entry,
                level=Level.SEMANTIC,
                similarity=candidate.similarity,
                reason=Reason.SAME_QUESTION,
                trace=tuple(seen.checks),
            )
            return hit if ask.record else (yield from explained(ask, hit))
        seen.reject("meaning", finding, entry)
        if first and seen.stale is None and seen.finding.reason is Reason.NOT_FOUND:
            seen.finding, first = finding, False
        if finding.reason is Reason.BELOW_THRESHOLD:
            break
    return seen.outcome(ask)


def _examine(ask: Ask, asked: Asked, candidate: Candidate) -> Flow[Objection | None]:
    """Run the checks of one candidate from cheap to dear and return the first that fails."""
    calibration = ask.rules.calibration
    assert calibration is not None
    finding = decide.triage(candidate, asked, calibration.threshold_for(ask.scope.namespace))
    finding = finding or decide.validity(candidate.entry, None, ask.now)
    finding = finding or decide.revision(candidate.entry, ask.revision)
    if finding is not None:
        return finding
    if ask.verifier_threshold is not None:
        finding = yield from _verified(ask, candidate.entry, ask.verifier_threshold)
    if finding is None and ask.request.evidence is not None:
        finding = yield from _grounded(ask, candidate.entry, ask.request.evidence)
    if finding is None and candidate.entry.doubtful_at is not None:
        finding = yield from doubted_now(ask, candidate.entry)
    return finding


def _verified(ask: Ask, entry: Entry, threshold: float) -> Flow[Objection | None]:
    try:
        score = yield from Verify(ask.request.question, entry.question)
    except VerifierError as error:
        return (yield from failed(ask, Reason.VERIFIER, error))
    if not threshold <= score <= 1.0:  # a percentage, or not a number, is no probability
        return Objection(Reason.VERIFIER, f"score {score:.4f} is not in [{threshold:.4f}, 1]")
    return None


def _grounded(ask: Ask, entry: Entry, asked: tuple[Evidence, ...]) -> Flow[Objection | None]:
    finding = decide.witness(entry, asked)
    if finding is not None:
        return finding
    if not ask.can_retrieve:
        return decide.same_evidence(entry, asked)
    try:
        own = yield from Retrieve(entry.question)
    except RetrieverError as error:
        return (yield from failed(ask, Reason.EVIDENCE_UNKNOWN, error))
    return decide.validity(entry, own, ask.now)
