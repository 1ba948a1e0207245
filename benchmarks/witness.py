"""What the evidence adds as a witness to a hit by meaning (ADR 0005): whom it refuses.

The rule: the first chunk that is retrieved for the asked question must be among those that the stored
answer cites. Counted is how many pairs it refuses of those that would be served without it: wrong ones
(the nearest other questions of the same set, which is what a full cache offers) and right ones (a
question and its rewordings by rule, which are mild). The deciders are the cosine that is in use with all
guards, the trained verifier at its own threshold, and for comparison the cosine alone at 0.5 and 0.75.

Documents and questions are those of `benchmarks.validity`: abstracts that are asked one question each,
and pages that are asked for one relation at several dates. Nothing is fitted here, and neither the
verifier nor the cosine was fitted on these sets, so all rows are for reporting. MTRAG, on which they
were, is published without its passages here: nothing could be retrieved. Retrieval is flat and
dense, by MiniLM, the best `CITED` chunks of one index for each set.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from benchmarks import report
from benchmarks.report import Row
from benchmarks.thresholds import Share, unit_rows
from benchmarks.validity.rewording import rewordings
from benchmarks.validity.texts import Document, Question, pubmedqa, readable, timeqa
from stampcache import decide
from stampcache.calibration import MINILM, calibration_for
from stampcache.embed import as_embedder
from stampcache.errors import VerifierError
from stampcache.guards import Asked, profile_entry
from stampcache.model import Evidence, Vector
from stampcache.ports import Embedder
from stampcache.testing.samples import make_entry
from stampcache.verify import SHIPPED
from stampcache.verifying import TrainedVerifier, load

CITED = 4
NEAREST = 3
CHUNKS = 24
LOOSE = 0.75
ASKED_FROM = 0.5
SEED = 8


class Pair(Struct, frozen=True):
    """An asked and a stored question by their places among all of a set, and their cosine."""

    asked: int
    stored: int
    same: bool
    cosine: float


class World(Struct, frozen=True):
    """One set: its questions, and for each what is retrieved for it, best first."""

    name: str
    questions: Sequence[Question]
    evidence: Sequence[tuple[Evidence, ...]]
    pairs: Sequence[Pair]


Decider: TypeAlias = Callable[[World, Pair], bool]


def _world(name: str, documents: Sequence[Document], embedder: Embedder) -> World:
    chunks = [chunk for one in documents for chunk in one.chunks]
    stored = [question for one in documents for question in one.questions]
    asked = [question for one in stored for question in rewordings(one)]
    questions = [*stored, *asked]
    vectors = unit_rows(embedder, [readable(one.text) for one in questions])
    evidence = _retrieved(vectors, unit_rows(embedder, list(map(readable, chunks))), chunks)
    return World(name, questions, evidence, _pairs(questions, len(stored), vectors))


def _retrieved(asked: Vector, index: Vector, chunks: Sequence[str]) -> list[tuple[Evidence, ...]]:
    best = np.argsort(-(asked @ index.T), axis=1, kind="stable")[:, :CITED]
    known = [Evidence(text=chunk).sealed() for chunk in chunks]
    return [tuple(known[at] for at in row) for row in best]


def _pairs(questions: Sequence[Question], stored: int, vectors: Vector) -> list[Pair]:
    """Return each question with its other wording, and with the nearest stored ones that mean another."""
    at_of = {one.meaning: at for at, one in enumerate(questions[:stored])}
    cosines = vectors @ vectors[:stored].T
    found = []
    for asked, one in enumerate(questions):
        own = at_of[one.meaning]
        if asked >= stored:
            found.append(Pair(asked, own, True, float(cosines[asked, own])))
        others = [
            at for at in np.argsort(-cosines[asked], kind="stable")[: NEAREST + 1] if at != own
        ]
        found += [Pair(asked, int(at), False, float(cosines[asked, at])) for at in others[:NEAREST]]
    return found


def _near(threshold: float) -> Decider:
    def served(world: World, pair: Pair) -> bool:
        del world
        return pair.cosine >= threshold

    return served


def _guarded(threshold: float) -> Decider:
    def served(world: World, pair: Pair) -> bool:
        asked = Asked(world.questions[pair.asked].text, profile_entry)
        return pair.cosine >= threshold and not asked.findings(
            world.questions[pair.stored].text, ""
        )

    return served


def _verified(verifier: TrainedVerifier) -> Decider:
    def served(world: World, pair: Pair) -> bool:
        asked, stored = world.questions[pair.asked].text, world.questions[pair.stored].text
        if pair.cosine < SHIPPED[MINILM].floor or Asked(asked, profile_entry).vetoes(stored, ""):
            return False
        try:
            score = verifier.asking(asked).score(stored, b"", pair.cosine)
        except VerifierError:
            return False
        return decide.agreed(score, verifier.threshold) is None

    return served


def _deciders() -> Mapping[str, Decider]:
    known = calibration_for(MINILM)
    assert known is not None
    verifier = load()
    return {
        f"cosine {ASKED_FROM}": _near(ASKED_FROM),
        f"cosine {LOOSE}": _near(LOOSE),
        f"cosine {known.threshold} + guards": _guarded(known.threshold),
        f"verifier {verifier.name} at {verifier.threshold:.4g}": _verified(verifier),
    }


def refuses(world: World, pair: Pair) -> bool:
    """Tell whether the witness refuses to serve the stored answer to the asked question."""
    entry = make_entry("k", evidence=world.evidence[pair.stored])
    return decide.witness(entry, world.evidence[pair.asked]) is not None


def _rows(world: World, name: str, decider: Decider) -> list[Row]:
    rows: list[Row] = []
    for same in (False, True):
        looked_at = [one for one in world.pairs if one.same is same and one.cosine >= ASKED_FROM]
        served = [one for one in looked_at if decider(world, one)]
        refused = sum(refuses(world, one) for one in served)
        rows.append(
            {
                "data": world.name,
                "use": "report",
                "decider": name,
                "pairs": "right" if same else "wrong",
                "of them near": len(looked_at),
                "served": str(Share(len(served), len(looked_at))),
                "number": len(served),
                "refused by the witness": str(Share(refused, len(served))) if served else "-",
                "left": len(served) - refused,
            }
        )
    return rows


def _drawn(documents: Sequence[Document], count: int) -> list[Document]:
    chosen = np.random.default_rng(SEED).permutation(len(documents))[:count]
    return [documents[at].short(CHUNKS) for at in sorted(chosen)]


def worlds(data: Path, *, quick: bool) -> list[World]:
    """Return the sets with what is retrieved for each of their questions."""
    embedder = as_embedder("minilm")
    papers, pages = (60, 12) if quick else (200, 40)
    return [
        _world("pubmedqa", _drawn(pubmedqa(data), papers), embedder),
        _world("timeqa", _drawn(timeqa(data), pages), embedder),
    ]


def main() -> int:
    """Measure, print a table and write it."""
    given = report.arguments("What the evidence adds as a witness to hits by meaning.")
    if given.data is None or not (given.data / "pubmedqa").is_dir():
        print("There is no measuring data: give its folder, such as --data ../shared/data.")
        return 2
    known = worlds(given.data, quick=given.quick)
    deciders = _deciders()
    rows = [
        row for world in known for name, one in deciders.items() for row in _rows(world, name, one)
    ]
    report.show("pairs that would be served, and what the witness refuses", rows)
    report.write(given.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
