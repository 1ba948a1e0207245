"""Every rule of reuse, as pure functions over values (each cites the ADR that argues for it).

Hard conditions never reach this module: an entry of another Partition is invisible. What is decided
here is soft and reported: is the entry still valid, is the candidate the same question, may the
answer be stored, for how long.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import force_setattr

from stampcache import guards, signature, ttl
from stampcache.calibration import Calibration
from stampcache.corpora import Standing
from stampcache.errors import ConfigError
from stampcache.freshness import Freshness
from stampcache.model import BY_JUDGE, Answer, Candidate, Entry, Evidence, Reason
from stampcache.refusals import looks_refused
from stampcache.request import Request, Seam, Settings
from stampcache.ttl import SKEW_S, Lifetime

MAX_ANSWER_BYTES = 8 * 2**20
_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "incomplete"})
_REFUSALS = frozenset(
    {"content_filter", "refusal", "safety", "blocked", "recitation", "prohibited_content"}
)
_FAILURES = frozenset({"error", "failed", "network_error", "insufficient_system_resource"})
_ABORTS = frozenset({"abort", "aborted", "cancelled", "canceled", "interrupted"})
_WAITING = frozenset({"tool_calls", "function_call", "tool_use"})


class Proof(Struct, frozen=True, kw_only=True):
    """What is proved of hits by meaning, and how it is learnt (ADR 0024).

    With ``max_wrong`` there are such hits only where a promise covers them. Of the lookups by meaning the
    share ``sample`` is kept for a judge or a person. ``consult``: a pair that the decider is in doubt of
    is put to the judge at once; else it is kept, too.
    """

    max_wrong: float | None = None
    sample: float = 0.0
    consult: bool = False


class Rules(Struct, frozen=True, kw_only=True):
    """How one cache decides; made once when it is opened. ``sliding``: some lifetime of it slides."""

    semantic: bool = False
    calibration: Calibration | None = None
    neighbours: int = 8
    lifetimes: Mapping[str, Lifetime] = MappingProxyType({"": Lifetime(ttl_s=7 * ttl.DAY_S)})
    no_evidence_ttl_s: float = 300.0
    revisions_matter: bool = False
    max_answer_bytes: int = MAX_ANSWER_BYTES
    strict: bool = False
    deterministic_only: bool = False
    sliding: bool = False
    freshness: Freshness | None = None
    proof: Proof | None = None
    has_judge: bool = False

    def __post_init__(self) -> None:
        slides = any(known.cap_s is not None for known in self.lifetimes.values())
        force_setattr(self, "sliding", slides)

    def lifetime(self, kind: str) -> Lifetime:
        """Return the lifetime of a kind of data.

        Raises:
            ConfigError: there is no such kind.
        """
        known = self.lifetimes.get(kind)
        if known is None:
            names = ", ".join(repr(name) for name in self.lifetimes if name)
            raise ConfigError(
                f"kind= is {kind!r}; this cache knows {names}. Give lifetimes= for others."
            )
        return known


class Objection(Struct, frozen=True):
    """Why something was decided against: the reason, and what was seen."""

    reason: Reason
    detail: str = ""


def validity(entry: Entry, evidence: Sequence[Evidence] | None, now: float) -> Objection | None:
    """Say why the entry no longer holds for its own question, or ``None`` (ADR 0005, ADR 0008).

    ``evidence`` is what that question retrieves now; ``None`` where the caller does not recheck.
    """
    if entry.invalidated:
        judged = entry.invalidated.startswith(BY_JUDGE)
        return Objection(Reason.JUDGED if judged else Reason.INVALIDATED, entry.invalidated)
    if entry.created_at - now > SKEW_S:
        return Objection(Reason.EXPIRED, f"made {entry.created_at - now:.0f} s after now")
    if ttl.expired(entry.expires_at, now):
        return Objection(Reason.EXPIRED, f"ended {now - (entry.expires_at or now):.0f} s ago")
    if evidence is None:
        return None
    if entry.evidence is None or not entry.signature.evidence:
        return Objection(Reason.EVIDENCE_UNKNOWN, "the entry was stored without its evidence")
    found = signature.evidence_digest(evidence)
    if not found:
        return Objection(Reason.EVIDENCE_UNKNOWN, "a retrieved chunk has neither text nor digest")
    if found != entry.signature.evidence:
        return Objection(Reason.EVIDENCE_CHANGED, _difference(entry.evidence, evidence))
    return None


def revision(entry: Entry, latest: str) -> Objection | None:
    """Say that another revision of the model has answered since, or ``None`` (ADR 0014).

    ``latest`` is the one that answered last; empty where that is unknown or does not matter.
    """
    made_by = entry.answer.revision
    if not latest or not made_by or made_by == latest:
        return None
    return Objection(Reason.REVISION_CHANGED, f"made by {made_by}, {latest} answered last")


def standing(known: Standing | None, corpus: str, now: float) -> Objection | None:
    """Say why what is watched of a corpus cannot be trusted now, or ``None`` (ADR 0020)."""
    if known is None:
        return Objection(
            Reason.UNWATCHED, f"nobody watches corpus {corpus!r}; put watch(...) around its index"
        )
    if known.problem:
        return Objection(Reason.WATCH_BROKEN, known.problem)
    if known.intents:
        began = now - min(intent.at for intent in known.intents)
        return Objection(
            Reason.BEING_WRITTEN, f"a write that began {began:.0f} s ago has not ended"
        )
    silent = now - known.heard_at
    if known.silence_s is not None and silent > known.silence_s:
        allowed = f"at most {known.silence_s:.0f} s are allowed"
        return Objection(Reason.WATCH_BROKEN, f"silent for {silent:.0f} s, {allowed}")
    return None


def _difference(old: Sequence[Evidence], new: Sequence[Evidence]) -> str:
    gone = {chunk.digest for chunk in old} - {chunk.digest for chunk in new}
    sources = sorted({chunk.source for chunk in old if chunk.digest in gone and chunk.source})
    named = f" of {', '.join(sources)}" if sources else ""
    if gone:
        return f"{len(gone)} of {len(old)} cited chunks{named} are no longer retrieved"
    return f"retrieves {len(new)} chunks, cited {len(old)}, or in another order"


def semantic_gate(request: Request, rules: Rules) -> Objection | None:
    """Say why this request cannot be answered by meaning at all, or ``None`` (ADR 0006)."""
    if not request.runs.seam.is_reply:
        return Objection(Reason.NOT_FOUND, f"{request.runs.seam.value} are matched exactly only")
    if not rules.semantic:
        return Objection(Reason.NOT_FOUND, "no embedder is configured: exact hits only")
    if rules.calibration is None and (rules.proof is None or rules.proof.max_wrong is None):
        return Objection(
            Reason.UNCALIBRATED,
            "no threshold was measured for this embedder; pass calibration= to give one",
        )
    if not request.question.strip():
        return Objection(Reason.NOT_FOUND, "there is no question to compare, only a prompt")
    if request.history:
        return Objection(Reason.NOT_FOUND, "a question with history is matched exactly only")
    if request.prompt is not None:
        return Objection(
            Reason.NOT_FOUND, "a prompt is matched exactly only, as what else it holds is not known"
        )
    lacks = rules.calibration.lacks(request.question) if rules.calibration is not None else ""
    if lacks:
        return Objection(
            Reason.UNCALIBRATED,
            f"no threshold was measured for questions in {lacks} with this embedder; pass "
            "calibration= to give one",
        )
    return None


def variable(settings: Settings) -> Objection | None:
    """Say why a model may answer otherwise the next time, or ``None`` if its settings forbid it (N5).

    Every temperature in the parameters must be 0; a missing one is the provider's default, not 0.
    """
    found = list(_temperatures(settings.params))
    if not found:
        return Objection(Reason.NOT_DETERMINISTIC, "no temperature is set")
    others = [each for each in found if isinstance(each, bool) or each != 0]
    if others:
        return Objection(Reason.NOT_DETERMINISTIC, f"temperature is {others[0]}")
    return None


def _temperatures(params: object) -> Iterator[object]:
    if isinstance(params, Mapping):
        for name, value in params.items():
            if name == "temperature":
                yield value
            else:
                yield from _temperatures(value)
    elif isinstance(params, list | tuple):
        for value in params:
            yield from _temperatures(value)


def triage(
    candidate: Candidate, asked: guards.Asked, threshold: float, *, verified: bool = False
) -> Objection | None:
    """Say why the candidate's question is not the asked one, or ``None`` if it may be (ADR 0006).

    ``verified``: a verifier has the last word, and only what may veto it is looked at.
    """
    far = near(candidate.similarity, threshold)
    if far is not None:
        return far
    if candidate.reported_bad:
        return Objection(Reason.REPORTED_BAD, "this pair was reported as a wrong hit")
    look = asked.vetoes if verified else asked.findings
    seen = look(candidate.entry.question, candidate.entry.id)
    if seen:
        return Objection(Reason.GUARD, "; ".join(str(finding) for finding in seen))
    return None


def languages(candidate: Candidate, asked: str, rules: Rules) -> Objection | None:
    """Say that two questions are in two languages, and thresholds are of one each, or ``None``."""
    if rules.calibration is None:
        return None
    both = rules.calibration.between(asked, candidate.entry.question)
    if both is None:
        return None
    return Objection(
        Reason.UNCALIBRATED,
        f"one question is in {both[0]} and the other in {both[1]}, and no threshold was measured "
        "for such a pair",
    )


def near(similarity: float, threshold: float) -> Objection | None:
    """Say that two questions are too far apart to be compared, or ``None`` (ADR 0006)."""
    if similarity >= threshold:
        return None
    return Objection(Reason.BELOW_THRESHOLD, f"similarity {similarity:.4f} < {threshold:.4f}")


def in_doubt(score: float, threshold: float) -> bool:
    """Tell whether a verifier's score is too low for a hit and too high to be sure (ADR 0024)."""
    return threshold / 2 <= score < threshold


def agreed(score: float, threshold: float) -> Objection | None:
    """Say that a verifier does not take two questions for the same one, or ``None`` (ADR 0006)."""
    if threshold <= score <= 1.0:  # a percentage, or not a number, is no probability
        return None
    return Objection(Reason.VERIFIER, f"score {score:.4f} is not in [{threshold:.4f}, 1]")


def witness(entry: Entry, asked: Sequence[Evidence]) -> Objection | None:
    """Say why the asked question's own evidence speaks against the entry, or ``None`` (ADR 0005).

    The first chunk for the asked question must be among those that the entry cites. Asking for equal
    lists would refuse nearly every paraphrase.
    """
    if entry.evidence is None:
        return Objection(Reason.EVIDENCE_UNKNOWN, "the entry was stored without its evidence")
    if not asked or not entry.evidence:
        same = not asked and not entry.evidence
        return None if same else Objection(Reason.EVIDENCE_CHANGED, "only one of both has evidence")
    if not asked[0].digest:
        return Objection(Reason.EVIDENCE_UNKNOWN, "the first chunk has neither text nor digest")
    if asked[0].digest not in {chunk.digest for chunk in entry.evidence}:
        return Objection(Reason.EVIDENCE_CHANGED, "the first chunk for this question is not cited")
    return None


def same_evidence(entry: Entry, asked: Sequence[Evidence]) -> Objection | None:
    """Say how the evidence of the asked question differs from the entry's, or ``None`` (ADR 0005).

    For who cannot retrieve for the entry's own question: the very chunks that the entry was made from
    are those that the asked question would be answered from now, in whatever order.
    """
    if entry.evidence is None:
        return Objection(Reason.EVIDENCE_UNKNOWN, "the entry was stored without its evidence")
    old, new = (sorted(chunk.digest for chunk in chunks) for chunks in (entry.evidence, asked))
    if "" in (*old, *new):
        return Objection(Reason.EVIDENCE_UNKNOWN, "a chunk has neither text nor digest")
    if old != new:
        return Objection(Reason.EVIDENCE_CHANGED, _difference(entry.evidence, asked))
    return None


def admit(answer: Answer, seam: Seam, rules: Rules) -> Objection | None:
    """Say why the answer must not be stored, or ``None`` (ADR 0007)."""
    if not seam.is_reply:
        return _unstorable(answer, rules)
    stopped = _stopped(answer.finish_reason.lower())
    if stopped is not None:
        return stopped
    if seam is Seam.ANSWER and (answer.tool_calls or answer.finish_reason.lower() in _WAITING):
        return Objection(Reason.PENDING_TOOLS, "the answer asks for tools")
    if not answer.text.strip() and not answer.tool_calls:
        return Objection(Reason.EMPTY, "the answer has no text")
    if looks_refused(answer.text):
        return Objection(Reason.REFUSED, "the text opens as a refusal or an apology")
    return _unstorable(answer, rules)


def _stopped(finish: str) -> Objection | None:
    for words, reason in (
        (_CUT_OFF, Reason.TRUNCATED),
        (_REFUSALS, Reason.REFUSED),
        (_FAILURES, Reason.FAILED),
        (_ABORTS, Reason.ABORTED),
    ):
        if finish in words:
            return Objection(reason, f"finish reason {finish!r}")
    return None


def _unstorable(answer: Answer, rules: Rules) -> Objection | None:
    try:
        size = len(answer.text.encode()) + len(answer.payload)
    except UnicodeEncodeError as error:
        return Objection(
            Reason.UNCACHEABLE, f"the answer is no valid Unicode text ({error.reason})"
        )
    if size > rules.max_answer_bytes:
        return Objection(Reason.TOO_LARGE, f"{size:,} bytes > {rules.max_answer_bytes:,}")
    return None


def lifetime(
    evidence: Sequence[Evidence] | None, kind: str, rules: Rules, ttl_s: float | None = None
) -> Lifetime:
    """Return how an answer may live: one made from no evidence at all lives short (ADR 0008).

    ``ttl_s`` is what its request says; it takes the place of what its kind says.

    Raises:
        ConfigError: the kind of data is none that the cache knows.
    """
    known = rules.lifetime(kind)
    if ttl_s is not None:
        known = Lifetime(ttl_s=ttl_s, granularity_s=known.granularity_s)
    if evidence is None or evidence:
        return known
    short = min(rules.no_evidence_ttl_s, known.ttl_s or rules.no_evidence_ttl_s)
    return Lifetime(ttl_s=short, granularity_s=known.granularity_s)


def renewal(entry: Entry, now: float, rules: Rules) -> float | None:
    """Return until when this hit lets the entry live, where its lifetime slides (ADR 0008).

    A popular answer that may have changed by itself lives no longer for being popular.
    """
    known = rules.lifetimes.get(entry.kind)
    if known is None or known.cap_s is None or entry.expires_at is None or entry.evidence == ():
        return None
    end = None if entry.doubtful_at is None else max(entry.doubtful_at, entry.expires_at)
    return ttl.renewed(known, entry.created_at, entry.expires_at, now, end)
