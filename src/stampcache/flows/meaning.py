"""Level 2: the answer to the same question in other words (pure).

The question is embedded, and each neighbour goes through the checks from cheap to dear.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from stampcache import decide, signature
from stampcache.decide import Objection
from stampcache.effects import (
    Compare,
    Embed,
    Fence,
    Flow,
    Nearest,
    Read,
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
from stampcache.ports import Asking, Embedded


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
    others = [one for one in candidates if one.entry.identity.key != ask.identity.key]
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


def _choose(ask: Ask, seen: Seen, candidates: Sequence[Candidate]) -> Flow[Outcome]:
    """Serve the best of those that pass every check, as far as a score tells which that is."""
    said: dict[str, Objection] = {}
    verified = ask.comparing.threshold is not None
    ranked: Iterable[_Ranked]
    if verified:
        ranked = yield from _scored(ask, seen, candidates, said)
    else:
        asked = Asked(ask.request.question, ask.comparing.profile_stored)
        ranked = (_Ranked(one, _apparent(ask, asked, one, verified=False)) for one in candidates)
    for one in ranked:
        entry = one.candidate.entry
        finding = one.finding or (yield from _held(ask, entry))
        if finding is None:
            return (yield from _served(ask, seen, one))
        seen.reject("meaning", finding, entry)
        said[entry.id] = finding
        if finding.reason is Reason.BELOW_THRESHOLD:
            break  # the others are farther off
    nearest = said.get(candidates[0].entry.id) if candidates else None
    if nearest is not None and seen.stale is None and seen.finding.reason is Reason.NOT_FOUND:
        seen.finding = nearest
    return seen.outcome(ask)


class _Ranked(Struct, frozen=True):
    """A candidate with what speaks against it, and its score where a verifier gave one."""

    candidate: Candidate
    finding: Objection | None
    score: float | None = None

    def __str__(self) -> str:
        """Say how alike the questions are, as `explain` shows it."""
        scored = "" if self.score is None else f", score {self.score:.4f}"
        return f"similarity {self.candidate.similarity:.4f}{scored}"


def _scored(
    ask: Ask, seen: Seen, candidates: Sequence[Candidate], said: dict[str, Objection]
) -> Flow[list[_Ranked]]:
    """Return the candidates that nothing cheaper speaks against, by falling score."""
    asked = Asked(ask.request.question, ask.comparing.profile_stored)
    threshold = ask.comparing.threshold
    assert threshold is not None
    asking: Asking | None = None
    ranked = []
    for candidate in candidates:
        entry = candidate.entry
        score = 0.0
        finding = _apparent(ask, asked, candidate, verified=True)
        if finding is None:
            try:
                if not ask.comparing.reads:
                    score = yield from Verify(ask.request.question, entry.question)
                else:
                    asking = asking or (yield from Read(ask.request.question))
                    score = yield from Compare(
                        asking, entry.question, entry.seen, candidate.similarity
                    )
            except VerifierError as error:
                finding = yield from failed(ask, Reason.VERIFIER, error)
        if finding is None:
            ranked.append(_Ranked(candidate, decide.agreed(score, threshold), score))
            continue
        seen.reject("meaning", finding, entry)
        said[entry.id] = finding
        if finding.reason is Reason.BELOW_THRESHOLD:
            break  # the others are farther off
    return sorted(ranked, key=lambda one: (one.finding is not None, -(one.score or 0.0)))


def _served(ask: Ask, seen: Seen, one: _Ranked) -> Flow[Hit]:
    entry = one.candidate.entry
    if ask.record:
        yield from used(ask, entry)
    seen.checks.append(Check("meaning", True, str(one), entry.id))
    hit = Hit(
        entry=entry,
        level=Level.SEMANTIC,
        similarity=one.candidate.similarity,
        reason=Reason.SAME_QUESTION,
        trace=tuple(seen.checks),
    )
    return hit if ask.record else (yield from explained(ask, hit))


def _apparent(ask: Ask, asked: Asked, candidate: Candidate, *, verified: bool) -> Objection | None:
    """Say what speaks against a candidate as far as no model and no retriever need be asked."""
    calibration = ask.rules.calibration
    assert calibration is not None
    threshold = calibration.threshold_for(ask.scope.namespace)
    finding = decide.triage(candidate, asked, threshold, verified=verified)
    finding = finding or decide.validity(candidate.entry, None, ask.now)
    return finding or decide.revision(candidate.entry, ask.revision)


def _held(ask: Ask, entry: Entry) -> Flow[Objection | None]:
    """Say why the answer to a question that is the same one may not hold now."""
    finding = None
    if ask.request.evidence is not None:
        finding = yield from _grounded(ask, entry, ask.request.evidence)
    if finding is None and entry.doubtful_at is not None:
        finding = yield from doubted_now(ask, entry)
    return finding


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
