"""A lookup: the answer to this very question, else to the same question in other words (pure).

The path, in order: `lookup` asks the store for the exact key and `decide.validity` for the entry found;
failing that `_by_meaning` embeds the question and offers each neighbour to `_examine`, which runs the
checks from cheap to dear. What is returned is a `Hit`, a `Stale` or a `Miss` with its reason.
"""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from stampcache import decide, signature
from stampcache.decide import Objection, Rules
from stampcache.effects import (
    Embed,
    Fence,
    Fetch,
    Flow,
    Nearest,
    Note,
    ReachOf,
    Renew,
    Retrieve,
    StandingOf,
    Suspect,
    Touch,
    Verify,
)
from stampcache.errors import (
    CodecError,
    EmbedderError,
    RetrieverError,
    StampCacheError,
    StoreError,
    VerifierError,
    WindowError,
)
from stampcache.flows.freshness import AHEAD_S, Doubt, doubted
from stampcache.guards import Asked, Profile, profile_entry
from stampcache.model import (
    AS_SET,
    Candidate,
    Controls,
    Entry,
    Evidence,
    Identity,
    Level,
    Reason,
    Scope,
)
from stampcache.outcome import Check, Hit, Miss, NoHit, Outcome, Stale
from stampcache.ports import Embedded
from stampcache.request import Request

_EXACT_TRACE = (Check("exact key", True, "same tokens, still valid"),)


class Ask(Struct, frozen=True, kw_only=True):
    """One lookup. ``record`` is off for `explain`: then the entry is not counted as used.

    ``embedder`` is the stamp in the Partition, ``revision`` that by which the model answered last.
    With ``allow_stale`` a stale entry of this very question is enough: no other one is looked for.
    ``controls`` are those in force, and ``slot`` the number of the answer in a variety. ``drawn`` is a
    random number in (0, 1].
    """

    request: Request
    identity: Identity
    scope: Scope
    rules: Rules
    now: float
    can_retrieve: bool = False
    verifier_threshold: float | None = None
    profile_stored: Callable[[str, str], Profile] = profile_entry
    embedder: str = ""
    revision: str = ""
    record: bool = True
    allow_stale: bool = False
    controls: Controls = AS_SET
    slot: int = 0
    has_judge: bool = False
    drawn: float = 1.0


class _Seen:
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


def lookup(ask: Ask) -> Flow[Outcome]:
    """Return the answer to this very question, else to the same question in other words."""
    identity = ask.identity
    if ask.controls.no_cache:
        return (yield from _not_looked_up(ask))
    damage: CodecError | None = None
    distrust: Objection | None = None
    try:
        if ask.request.runs.watched:
            distrust = yield from _untrusted(ask)
        entry: Entry | None = yield Fetch(identity.partition, identity.key)  # no detour: each hit's
    except CodecError as error:
        entry, damage = None, error
    except StoreError as error:
        return (yield from _unavailable(ask, Reason.STORE_ERROR, error))
    invalid = None
    if entry is not None:
        invalid = _invalid(ask, entry) or distrust
        if invalid is None and (at := entry.doubtful_at) is not None and at - AHEAD_S < ask.now:
            invalid = yield from _doubted(ask, entry)
        if invalid is None:
            if ask.record:
                yield from _used(ask, entry)
                return _exactly(entry)
            return (yield from _explained(ask, _exactly(entry)))
    seen = _Seen()
    if damage is not None:
        yield from Note("corrupt_entry", damage)
        seen.finding = Objection(Reason.CORRUPT, str(damage))
    if entry is not None and invalid is not None:
        seen.stale, seen.finding = entry, invalid
    seen.reject("exact key", seen.finding, entry)
    if ask.allow_stale and seen.stale is not None:
        return (yield from _with_fence(ask, seen))
    return (yield from _by_meaning(ask, seen))


def exact(ask: Ask) -> Flow[Hit | None]:
    """Return the answer to this very question, if it may be served, without a word of why it is not.

    For one who looks up again where there is none, and counts that: a failure is told then, too.
    """
    if ask.controls.no_cache:
        return None
    try:
        if ask.request.runs.watched and (yield from _untrusted(ask)) is not None:
            return None
        entry: Entry | None = yield Fetch(ask.identity.partition, ask.identity.key)
    except (CodecError, StoreError):
        return None
    if entry is None or _invalid(ask, entry) is not None:
        return None
    if (at := entry.doubtful_at) is not None and at - AHEAD_S < ask.now:
        fresh = ask.rules.freshness
        if fresh is not None and fresh.on_path and at <= ask.now:
            return None  # whoever looks up again asks the judge, once
        if (yield from _doubted(ask, entry)) is not None:
            return None
    if ask.record:
        yield from _used(ask, entry)
    return _exactly(entry)


def _doubted(ask: Ask, entry: Entry) -> Flow[Objection | None]:
    """Say that an answer may have changed by itself; one that was just proved has not."""
    if ask.request.evidence is not None or ask.request.runs.watched:
        return None
    doubt = Doubt(
        rules=ask.rules,
        scope=ask.scope,
        now=ask.now,
        has_judge=ask.has_judge,
        record=ask.record,
        drawn=ask.drawn,
    )
    return (yield from doubted(entry, doubt))


def _invalid(ask: Ask, entry: Entry) -> Objection | None:
    """Return what is wrong with an entry of this very question."""
    found = decide.validity(entry, ask.request.evidence, ask.now)
    return found or (decide.revision(entry, ask.revision) if ask.revision else None)


def _untrusted(ask: Ask) -> Flow[Objection | None]:
    """Say why what is watched of the corpus cannot be trusted now.

    Asked before an entry is read: of all writes whose documents are there now, it then has the mark.
    """
    corpus = ask.request.runs.corpus
    return decide.standing((yield from StandingOf(corpus)), corpus, ask.now)


def _explained(ask: Ask, hit: Hit) -> Flow[Hit]:
    """Return a hit that is not served, with what would end it where that is known."""
    if not ask.request.runs.watched:
        return hit
    try:
        reach = yield from ReachOf(hit.entry)
    except StoreError as error:
        yield from Note("store_error", error)
        return hit
    return replace(hit, trace=(*hit.trace, Check("watch", True, str(reach), hit.entry.id)))


def _exactly(entry: Entry) -> Hit:
    return Hit(
        entry=entry,
        level=Level.EXACT,
        similarity=1.0,
        reason=Reason.SAME_TOKENS,
        trace=_EXACT_TRACE,
    )


def _not_looked_up(ask: Ask) -> Flow[Outcome]:
    seen = _Seen()
    seen.finding = Objection(Reason.NO_CACHE)
    seen.reject("controls", seen.finding)
    return (yield from _with_fence(ask, seen))


def _used(ask: Ask, entry: Entry) -> Flow[None]:
    """Note that the entry was served, and let it live longer where its lifetime slides."""
    try:
        yield Touch(entry, ask.identity.key)
        if ask.rules.sliding:
            yield from _renewed(ask, entry)
    except StoreError as error:
        yield from Note("touch", error)


def _renewed(ask: Ask, entry: Entry) -> Flow[None]:
    until = decide.renewal(entry, ask.now, ask.rules)
    if until is not None:
        yield from Renew(entry, until)


def _with_fence(ask: Ask, seen: _Seen) -> Flow[Outcome]:
    """Return the outcome at once, with the fence for an answer that is made all the same."""
    try:
        seen.fence = yield from Fence()
    except StoreError as error:
        return (yield from _unavailable(ask, Reason.STORE_ERROR, error))
    return seen.outcome(ask)


def _unavailable(ask: Ask, reason: Reason, error: StampCacheError) -> Flow[Miss]:
    if ask.rules.strict:
        raise error
    yield from Note(reason.name.lower(), error)
    check = Check("availability", False, str(error))
    return Miss(
        reason=reason,
        detail=str(error),
        identity=ask.identity,
        scope=ask.scope,
        settings=ask.request.runs.digest,
        trace=(check,),
        controls=ask.controls,
        slot=ask.slot,
    )


def _by_meaning(ask: Ask, seen: _Seen) -> Flow[Outcome]:
    gate = decide.semantic_gate(ask.request, ask.rules)
    try:
        seen.fence = yield from Fence()
        if gate is None:
            embedded = yield from Embed(ask.request.question)
            gate = yield from _betrayed(ask, seen.stale, embedded)
        if gate is None:
            seen.embedded = embedded
            gate = (yield from _untrusted(ask)) if ask.request.runs.watched else None
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
        gate = yield from _failed(ask, Reason.EMBEDDER_ERROR, error)
    except StoreError as error:
        return (yield from _unavailable(ask, Reason.STORE_ERROR, error))
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


def _failed(ask: Ask, reason: Reason, error: StampCacheError) -> Flow[Objection]:
    if ask.rules.strict:
        raise error
    yield from Note(reason.name.lower(), error)
    return Objection(reason, str(error))


def _choose(ask: Ask, seen: _Seen, candidates: Iterator[Candidate]) -> Flow[Outcome]:
    first, asked = True, Asked(ask.request.question, ask.profile_stored)
    for candidate in candidates:
        entry = candidate.entry
        finding = yield from _examine(ask, asked, candidate)
        if finding is None:
            if ask.record:
                yield from _used(ask, entry)
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
            return hit if ask.record else (yield from _explained(ask, hit))
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
        finding = yield from _doubted(ask, candidate.entry)
    return finding


def _verified(ask: Ask, entry: Entry, threshold: float) -> Flow[Objection | None]:
    try:
        score = yield from Verify(ask.request.question, entry.question)
    except VerifierError as error:
        return (yield from _failed(ask, Reason.VERIFIER, error))
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
        return (yield from _failed(ask, Reason.EVIDENCE_UNKNOWN, error))
    return decide.validity(entry, own, ask.now)
