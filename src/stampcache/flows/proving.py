"""From which score on a candidate is served, and which pair is remembered (pure; ADR 0024)."""

from msgspec import Struct

from stampcache import decide
from stampcache.calibration import LOWEST, Promise, Refusal, Subject, weighed
from stampcache.decide import Objection
from stampcache.effects import Flow, Kept, Notice, SamePairs
from stampcache.errors import StoreError
from stampcache.flows.asking import Ask
from stampcache.flows.serving import failed
from stampcache.model import Candidate, Reason
from stampcache.pairs import PROMISES, PROMISES_KEPT, Pair, promises_of


class Bar(Struct, frozen=True):
    """What a candidate must reach: a cosine, a verifier's score where there is one.

    ``unproved`` says why none is served at all. The score is compared with the cosine counted at
    ``weight`` (ADR 0028). ``only_best``: it is proved of the best candidate by score, and of no other.
    """

    similarity: float
    score: float | None
    unproved: Objection | None = None
    weight: float = 0.0
    only_best: bool = False

    @property
    def least(self) -> float:
        """What a candidate must reach in what decides."""
        return self.similarity if self.score is None else self.score

    def lacks(self, one: "Ranked") -> Objection | None:
        """Say what a candidate lacks that nothing else speaks against."""
        similarity = one.candidate.similarity
        finding = self.unproved or decide.near(similarity, self.similarity)
        if finding is None and self.score is not None:
            finding = self._agreed(one.score or 0.0, similarity, self.score)
        return finding

    def _agreed(self, score: float, similarity: float, threshold: float) -> Objection | None:
        if not self.weight:
            return decide.agreed(score, threshold)
        counted = weighed(score, similarity, self.weight)
        if decide.agreed(counted, threshold) is None:
            return None
        return Objection(
            Reason.VERIFIER,
            f"score {counted:.4g} is not in [{threshold:.4g}, 1]; it was {score:.4f} before "
            f"similarity {similarity:.4f} counted at {self.weight:g}",
        )


class Ranked(Struct, frozen=True):
    """A candidate with what speaks against it, and its score where a verifier gave one.

    ``because``: what moved that score most, where it is explained.
    """

    candidate: Candidate
    finding: Objection | None
    score: float | None = None
    because: tuple[str, ...] = ()

    @property
    def rank(self) -> float:
        """By what candidates are told apart, higher is better."""
        return self.candidate.similarity if self.score is None else self.score

    def __str__(self) -> str:
        """Say how alike the questions are, as `explain` shows it."""
        scored = "" if self.score is None else f", score {self.score:.4f}"
        return f"similarity {self.candidate.similarity:.4f}{scored}{self._moved}"

    def told(self, finding: Objection) -> Objection:
        """Return what speaks against it as `explain` shows it."""
        return Objection(finding.reason, f"{finding.detail}{self._moved}")

    @property
    def _moved(self) -> str:
        return f"; moved most by {', '.join(self.because)}" if self.because else ""


def bar(ask: Ask) -> Flow[Bar]:
    """Return the bar of this lookup: as it was measured, or where a bound is asked for, as proved."""
    calibration, proof = ask.rules.calibration, ask.rules.proof
    own = LOWEST
    if calibration is not None:
        own = calibration.threshold_for(ask.scope.namespace, ask.request.question)
    if proof is None or proof.max_wrong is None:
        return Bar(own, ask.comparing.threshold)
    try:
        promises = promises_of((yield from Kept(PROMISES, PROMISES_KEPT)))
    except StoreError as error:
        return Bar(
            own, ask.comparing.threshold, (yield from failed(ask, Reason.STORE_ERROR, error))
        )
    found = promises.covering(subject(ask), max_wrong=proof.max_wrong, entries=ask.entries)
    if isinstance(found, Refusal):
        return Bar(own, ask.comparing.threshold, Objection(Reason.UNPROVED, str(found)))
    if ask.comparing.threshold is not None:
        return Bar(own, found.threshold, None, found.similarity_weight, only_best=True)
    if found.similarity_weight:
        odd = "the promise counts the cosine beside a score, and no verifier gives one; tune again"
        return Bar(own, None, Objection(Reason.UNPROVED, odd))
    return Bar(found.threshold, None, only_best=True)


def promised(ask: Ask, max_wrong: float) -> Flow[Promise | Refusal]:
    """Return what covers this lookup, or what is missing; failure is an error."""
    promises = promises_of((yield from Kept(PROMISES, PROMISES_KEPT)))
    return promises.covering(subject(ask), max_wrong=max_wrong, entries=ask.entries)


def subject(ask: Ask) -> Subject:
    """Return what a promise must be about to hold for this lookup."""
    return Subject(
        namespace=ask.scope.namespace, embedder=ask.embedder, decider=ask.comparing.decider
    )


def consulted(ask: Ask, one: Ranked, finding: Objection) -> Flow[Objection | None]:
    """Ask the judge at once about a pair that the verifier is in doubt of, where a user wants that."""
    threshold = ask.comparing.threshold
    proof = ask.rules.proof
    if proof is None or not proof.consult or not ask.record or threshold is None:
        return finding
    if not decide.in_doubt(one.score or 0.0, threshold):
        return finding
    (said,) = yield from SamePairs([(ask.request.question, one.candidate.entry.question)])
    return None if said.same else Objection(Reason.JUDGED, str(said))


def noticed(
    ask: Ask, one: Ranked, known: Bar, *, served: bool, holds: bool, sampled: bool
) -> Flow[None]:
    """Remember the pair of this lookup, if it was drawn (``sampled``), or served, or in doubt.

    Of a drawn lookup that is the best candidate of those that no guard vetoes and whose evidence
    ``holds``, whether or not it is served: what every threshold would serve that it reaches. Where there
    is none, no threshold serves any, and its pair has no score.
    """
    if ask.rules.proof is None or not ask.record:
        return
    threshold = ask.comparing.threshold
    doubtful = threshold is not None and decide.in_doubt(one.score or 0.0, threshold)
    if not (sampled or served or doubtful):
        return
    entry = one.candidate.entry
    servable = one.finding is None and (holds or not sampled)
    pair = Pair(
        asked=ask.request.question,
        stored=entry.question,
        score=one.rank if servable else None,
        similarity=one.candidate.similarity,
        subject=subject(ask),
        entry_id=entry.id,
        tenant=ask.identity.tenant,
        scope=ask.identity.scope,
        at=ask.now,
        sampled=sampled,
        served=served,
        weight=known.weight,
        least=known.least,
    )
    yield from Notice(pair, doubtful, ask.generation)
