"""An update: an answer is stored, unless it must not be or what it was made from changed (pure)."""

from msgspec import Struct
from msgspec.structs import replace

from stampcache import decide, freshness, kinds, reaching, signature, ttl
from stampcache.corpora import Reach, Reading
from stampcache.decide import Objection, Rules
from stampcache.effects import (
    Alike,
    Embed,
    Fence,
    Fenced,
    Fetch,
    Flow,
    Note,
    Put,
    Read,
    StandingOf,
)
from stampcache.errors import (
    CodecError,
    EmbedderError,
    StoreError,
    VerifierError,
    WindowError,
)
from stampcache.flows.comparing import AS_MEASURED, Comparing
from stampcache.flows.freshness import life_of, noted, observed_of
from stampcache.model import (
    AS_SET,
    Answer,
    Controls,
    Entry,
    Evidence,
    Identity,
    Reason,
    Stamps,
)
from stampcache.outcome import Miss, Refused, Stale, Stored, Update
from stampcache.ports import Embedded
from stampcache.request import Request, Seam


class Fill(Struct, frozen=True, kw_only=True):
    """One update: the answer, what it was made from, and what the Miss before it carried.

    ``readings`` are the searches of watched indexes that were seen while it was made.
    """

    request: Request
    identity: Identity
    answer: Answer
    evidence: tuple[Evidence, ...] | None
    stamps: Stamps
    entry_id: str
    rules: Rules
    now: float
    outcome: Stale | Miss | None
    controls: Controls = AS_SET
    embedder: str = ""
    corpus: str = ""
    readings: tuple[Reading, ...] = ()
    comparing: Comparing = AS_MEASURED


def update(fill: Fill) -> Flow[Update]:
    """Store an answer that may be stored, unless a source changed while it was made."""
    refusal = decide.admit(fill.answer, fill.request.runs.seam, fill.rules)
    if refusal is None and fill.controls.no_store:
        refusal = Objection(Reason.NO_STORE)
    if refusal is not None:
        return (yield from _refused(fill, refusal))
    try:
        embedded = yield from _vector(fill)
        fence = fill.outcome.fence if fill.outcome is not None else (yield from Fence())
        before = yield from _before(fill)
        yield from _compared(fill, before)
        seen = (yield from _seen(fill)) if embedded else b""
        entry = yield from _aged(fill, _entry(fill, embedded, seen), before)
        reach = None
        if fill.request.runs.watched:
            unwatched = yield from _unwatched(fill)
            if unwatched is not None:
                return (yield from _refused(fill, unwatched))
            reach = yield from _reach(fill)
        receipt = yield from Put(entry, embedded.vector if embedded else None, fence, reach)
    except StoreError as error:
        if fill.rules.strict:
            raise
        yield from Note("store_error", error)
        return Refused(Reason.STORE_ERROR, str(error))
    if not receipt.stored:
        return _late(receipt.change)
    return Stored(entry, receipt.evicted)


def _unwatched(fill: Fill) -> Flow[Objection | None]:
    """Say what an answer was made from of which no write would be seen."""
    if (yield from StandingOf(fill.corpus)) is None:
        return Objection(Reason.UNWATCHED, f"nobody watches corpus {fill.corpus!r}")
    others = {reading.corpus for reading in fill.readings} - {fill.corpus}
    if others:
        return Objection(Reason.UNWATCHED, f"corpus {min(others)!r} was searched, too")
    unseen = next((one.unseen for one in fill.readings if one.unseen), "")
    return Objection(Reason.UNWATCHED, unseen) if unseen else None


def _reach(fill: Fill) -> Flow[Reach]:
    """Return what a write must reach to change what this answer was made from."""
    found = {chunk for reading in fill.readings for chunk in reading.chunks}
    known = yield from Alike(fill.corpus, tuple(sorted(found)))
    cited = None if fill.evidence is None else [chunk.chunk for chunk in fill.evidence]
    reach = reaching.reach_of(fill.corpus, fill.readings, cited, known)
    # else its question does not say what was retrieved for it
    alone = bool(fill.request.question) and not fill.request.history
    return replace(reach, settings=fill.request.runs.digest if alone else "")


def _before(fill: Fill) -> Flow[Entry | None]:
    """Return the answer that this one takes the place of, where answers age."""
    outcome = fill.outcome
    if fill.rules.freshness is None or outcome is None:
        return None
    if isinstance(outcome, Stale):
        return outcome.entry
    if outcome.reason is not Reason.NO_CACHE:
        return None
    try:  # made anew ahead of time: nobody looked at it
        return (yield from Fetch(fill.identity.partition, fill.identity.key))
    except CodecError as error:
        yield from Note("corrupt_entry", error)
        return None


def _compared(fill: Fill, before: Entry | None) -> Flow[None]:
    """Note what changed since the answer before; the doubt of this one knows of it already."""
    if fill.rules.freshness is None or fill.outcome is None:
        return
    try:
        yield from noted(fill.corpus, before, fill.evidence, fill.now)
    except StoreError as error:
        yield from Note("observe", error)


def _aged(fill: Fill, entry: Entry, before: Entry | None) -> Flow[Entry]:
    """Return the entry with its life as what it cites has been seen to change (ADR 0022)."""
    fresh = fill.rules.freshness
    proved = fill.request.evidence is not None or fill.request.runs.watched
    if fresh is None or proved or fill.request.runs.seam is Seam.VECTOR:  # which cannot change
        return entry
    observed = yield from observed_of(fill.corpus, fill.evidence)
    per_second = freshness.rate(observed, fill.rules.lifetime(entry.kind).ttl_s)
    after = freshness.doubted_after(per_second, fresh.limit)
    doubtful_at = None if after is None else fill.now + after
    if entry.lifetime_s is None:
        return replace(entry, doubtful_at=doubtful_at)
    lifetime_s = life_of(before, entry.lifetime_s, per_second, fresh)
    expires_at = ttl.expiry(fill.now, lifetime_s, entry.id)
    return replace(entry, lifetime_s=lifetime_s, expires_at=expires_at, doubtful_at=doubtful_at)


def _refused(fill: Fill, refusal: Objection) -> Flow[Refused]:
    """Say why it is not stored: whoever waits for this answer must know if it is late, above all."""
    change = ""
    if fill.outcome is not None:
        entry = _entry(fill, None)
        if fill.request.runs.watched:  # what a write must reach is not known: any may change it
            entry = replace(entry, evidence=None)
        try:
            change = yield from Fenced(entry, fill.outcome.fence)
        except StoreError as error:
            yield from Note("store_error", error)
    return _late(change) if change else Refused(refusal.reason, refusal.detail)


def _late(change: str) -> Refused:
    return Refused(Reason.FENCED, f"while it was made: {change}")


def _vector(fill: Fill) -> Flow[Embedded | None]:
    """Return the vector that the Miss carries, or embed the question: once per request, never twice."""
    if decide.semantic_gate(fill.request, fill.rules) is not None:
        return None
    before = fill.outcome
    if before is not None and before.reason is not Reason.NO_CACHE:  # then nothing was embedded
        if before.vector is None or before.embedder != fill.embedder:  # of another generation
            return None
        return Embedded(before.vector, before.norm, before.embedder)
    try:
        embedded = yield from Embed(fill.request.question)
        return embedded if embedded.embedder == fill.embedder else None
    except EmbedderError as error:
        if fill.rules.strict and not isinstance(error, WindowError):
            raise
        yield from Note("embedder_error", error)
        return None


def _seen(fill: Fill) -> Flow[bytes]:
    """Return what the verifier sees of the question, so that no lookup need read it again."""
    if not fill.comparing.reads:
        return b""
    try:
        return (yield from Read(fill.request.question)).seen
    except VerifierError as error:
        if fill.rules.strict:
            raise
        yield from Note("verifier", error)
        return b""


def _entry(fill: Fill, embedded: Embedded | None, seen: bytes = b"") -> Entry:
    evidence = fill.evidence
    ttl_s = fill.controls.ttl_s
    kind = fill.request.kind
    fresh = fill.rules.freshness
    if not kind and fresh is not None and fresh.guess_kinds and fill.request.question:
        kind = kinds.shorter(kinds.kind_of(fill.request.question), fill.rules.lifetimes)
    lifetime = decide.lifetime(evidence, kind, fill.rules, ttl_s)
    settings = fill.request.runs
    return Entry(
        id=fill.entry_id,
        identity=fill.identity,
        question=fill.request.question,
        answer=fill.answer,
        signature=signature.sign(
            norm=embedded.norm if embedded else "",
            evidence=evidence,
            now=fill.now,
            granularity_s=lifetime.granularity_s,
        ),
        evidence=None if evidence is None else tuple(chunk.sealed() for chunk in evidence),
        stamps=fill.stamps,
        created_at=fill.now,
        expires_at=ttl.expiry(fill.now, lifetime.ttl_s, fill.entry_id),
        kind=kind if ttl_s is None else "",  # whose life never slides
        lifetime_s=None if ttl_s is not None or evidence == () else lifetime.ttl_s,
        corpus=fill.corpus,
        whole_corpus=settings.whole_corpus,
        seen=seen,
    )
