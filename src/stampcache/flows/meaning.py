"""Level 2: the answer to the same question in other words (pure).

The question is embedded, and each neighbour goes through the checks from cheap to dear.
"""

from collections.abc import Sequence

from stampcache import decide, signature
from stampcache.decide import Objection
from stampcache.effects import (
    Because,
    Compare,
    Embed,
    Fence,
    Flow,
    Nearest,
    Note,
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
from stampcache.flows.proving import Bar, Ranked, bar, consulted, noticed
from stampcache.flows.serving import doubted_now, explained, failed, unavailable, untrusted, used
from stampcache.guards import Asked
from stampcache.model import (
    Candidate,
    Entry,
    Level,
    Reason,
)
from stampcache.outcome import Check, Hit, Outcome
from stampcache.ports import Asking, Embedded

_NOT_BEST = Objection(Reason.UNPROVED, "the bound is proved of the best candidate alone")


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
    """Serve the best of the candidates that pass every check."""
    known = yield from bar(ask)
    if known.unproved is not None and candidates and not (ask.sampled or ask.explains):
        return _not_compared(ask, seen, known.unproved)
    ranked = yield from _ranked(ask, known, candidates)
    said = {one.candidate.entry.id: one.finding for one in ranked if one.finding is not None}
    for one in ranked:
        if one.finding is not None:
            seen.reject("meaning", one.told(one.finding), one.candidate.entry)
    best = sorted([one for one in ranked if one.finding is None], key=lambda one: -one.rank)
    drawn: Ranked | None = None  # the best one whose evidence holds: what a label is about
    for at, one in enumerate(best):
        entry = one.candidate.entry
        finding = known.lacks(one)
        if finding is None and known.only_best and drawn is not None:
            finding = _NOT_BEST
        if finding is not None and finding.reason is Reason.VERIFIER:
            finding = yield from consulted(ask, one, finding)  # never where only the best is served
        if finding is None or (drawn is None and _matters(ask, known, best[at + 1 :])):
            evidence = yield from _cited(ask, entry)
            finding = finding or evidence
            drawn = drawn or (one if evidence is None else None)
        if finding is None and entry.early_at is not None:
            finding = yield from doubted_now(ask, entry)
        if finding is None:
            yield from _noticed_hit(ask, known, one, drawn or one)
            return (yield from _served(ask, seen, one))
        seen.reject("meaning", one.told(finding), entry)
        said[entry.id] = finding
        if finding is _NOT_BEST and drawn is not None:  # of interest is what the best one lacks
            said[entry.id] = said[drawn.candidate.entry.id]
    if ranked:
        left = drawn or (best or ranked)[0]
        holds, sampled = left is drawn, ask.sampled
        yield from noticed(ask, left, known, served=False, holds=holds, sampled=sampled)
    nearest = said.get(candidates[0].entry.id) if candidates else None
    if nearest is not None and seen.stale is None and seen.finding.reason is Reason.NOT_FOUND:
        seen.finding = nearest
    return seen.outcome(ask)


def _noticed_hit(ask: Ask, known: Bar, one: Ranked, best: Ranked) -> Flow[None]:
    """Remember what is served, and of a drawn lookup the best pair, too, if that was held back."""
    if ask.sampled and best is not one:
        yield from noticed(ask, best, known, served=False, holds=True, sampled=True)
    sampled = ask.sampled and best is one
    yield from noticed(ask, one, known, served=True, holds=True, sampled=sampled)


def _matters(ask: Ask, known: Bar, others: Sequence[Ranked]) -> bool:
    """Tell whether it matters if the evidence of a candidate holds that is not served itself."""
    return ask.sampled or (known.only_best and any(known.lacks(one) is None for one in others))


def _not_compared(ask: Ask, seen: Seen, unproved: Objection) -> Outcome:
    """Return the outcome where nothing is served, whatever a verifier would say."""
    seen.reject("meaning", unproved)
    if seen.stale is None and seen.finding.reason is Reason.NOT_FOUND:
        seen.finding = unproved
    return seen.outcome(ask)


def _ranked(ask: Ask, known: Bar, candidates: Sequence[Candidate]) -> Flow[list[Ranked]]:
    """Return the candidates with what speaks against them, up to the first that is too far off."""
    asked = Asked(ask.request.question, ask.comparing.profile_stored)
    verified = ask.comparing.threshold is not None
    # what is drawn for a label is the best candidate whatever its similarity
    floor = -1.0 if ask.sampled and not verified else known.similarity
    asking: Asking | None = None
    ranked = []
    for candidate in candidates:
        entry = candidate.entry
        finding = decide.triage(candidate, asked, floor, verified=verified)
        finding = finding or decide.languages(candidate, ask.request.question, ask.rules)
        finding = finding or decide.validity(entry, None, ask.now)
        finding = finding or decide.revision(entry, ask.revision)
        one = Ranked(candidate, finding)
        if finding is None and verified:
            try:
                if ask.comparing.reads:
                    asking = asking or (yield from Read(ask.request.question))
                one = yield from _scored(ask, candidate, asking)
            except VerifierError as error:
                one = Ranked(candidate, (yield from failed(ask, Reason.VERIFIER, error)))
        ranked.append(one)
        if finding is not None and finding.reason is Reason.BELOW_THRESHOLD:
            break  # the others are farther off
    return ranked


def _scored(ask: Ask, candidate: Candidate, asking: Asking | None) -> Flow[Ranked]:
    """Return a candidate with the verifier's score, and where it is explained, with what moved it."""
    entry = candidate.entry
    because: tuple[str, ...] = ()
    if asking is None:
        score = yield from Verify(ask.request.question, entry.question)
    else:
        about = (asking, entry.question, entry.seen, candidate.similarity)
        score = yield from Compare(*about)
        if ask.explains:
            because = yield from _because(Because(*about))
    if not 0.0 <= score <= 1.0:  # not a number, too: it has no place among others
        raise VerifierError(f"The score {score} is no probability; a verifier gives one in [0, 1].")
    return Ranked(candidate, None, score, because)


def _because(why: Because) -> Flow[tuple[str, ...]]:
    try:
        return tuple((yield from why))
    except VerifierError as error:
        yield from Note("explain", error)
        return ()


def _served(ask: Ask, seen: Seen, one: Ranked) -> Flow[Hit]:
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


def _cited(ask: Ask, entry: Entry) -> Flow[Objection | None]:
    """Say how the evidence that the asked question has speaks against an entry."""
    asked = ask.request.evidence
    if asked is None:
        return None
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
