"""The verifier for Chinese: hits at wrong rates, beside cosine and guards.

Held out of its own fit data it is measured by trees that saw neither question, as in the training; on
the other sets by the weights that are shipped, which were fitted on none of them. What the embedder
does not read is left out. PAWS-X holds statements with their words exchanged, not questions; the
exchanged questions are about two things, most of them with their places exchanged in the near
misses, in groups of our own that other hands wrote after the first fit.
"""

import sys
from pathlib import Path

import numpy as np

from benchmarks import chinese, report
from benchmarks.pairs import Pair
from benchmarks.quality import curves, sets, systems
from benchmarks.quality.curves import Flags, Scores
from benchmarks.quality.systems import System
from benchmarks.report import Row
from stampcache.verifying import load
from stampcache.verifying.chinese import pair as pairing
from stampcache.verifying.trees import probability
from training.verifier import __main__ as training
from training.verifier import fitting
from training.verifier.assembling import SEED
from training.verifier.chinese import assembling
from training.verifier.chinese.assembling import Embedding

CROSSED = (0.01, 0.02, 0.05, 0.1)


def held_out(embedding: Embedding) -> tuple[list[Pair], Scores, Scores]:
    """Return the pairs that people wrote, their cosines, and the scores of trees that saw neither."""
    words = assembling.word_table(embedding)
    fit = assembling.assembled(assembling.all_pairs(embedding, words), embedding, words.table())
    fold = fitting.folds(
        fitting.components([(one.one, one.other, one.origin) for one in fit.pairs]), SEED
    )
    rising = training.monotone(pairing.NAMES)
    margin = fitting.margins(fit.rows, fit.same, fit.weights, fold, rising)
    slope, shift = fitting.calibration(margin, fit.same, fit.weights)
    scores = np.array([probability(one, slope, shift) for one in margin.tolist()])
    at = np.flatnonzero(training.natural(fit))
    given = [
        Pair(fit.pairs[n].one, fit.pairs[n].other, fit.pairs[n].same, fit.pairs[n].how) for n in at
    ]
    return given, fit.rows[at, 0].astype(np.float64), scores[at]


def cosines(embedding: Embedding, given: list[Pair]) -> Scores:
    """Return the cosine of each pair."""
    asked, stored = (
        embedding([one.asked for one in given]),
        embedding([one.stored for one in given]),
    )
    near: Scores = np.einsum("ij,ij->i", asked, stored).astype(np.float64)
    return near


def rows(data: str, found: list[System], same: Flags) -> list[Row]:
    """Return what each system serves by its own threshold, and with that of the other half."""
    shown: list[Row] = []
    for one in found:
        row: dict[str, object] = {"data": data, "system": one.name}
        good, bad = curves.served(one.scores, same, one.threshold)
        own = not np.isnan(one.threshold)
        row["hits by default"], row["wrong by default"] = (
            (str(good), str(bad)) if own else ("-", "-")
        )
        for wrong in CROSSED:
            got = curves.cross_fitted(one.scores, same, wrong)
            row[f"hits at {wrong:.0%}"] = f"{got.hits:.1%} ({got.wrong:.1%} wrong)"
        shown.append(row)
    return shown


def measure(data: Path, quick: bool) -> list[Row]:
    """Measure all sets, print them and return their rows."""
    embedding, verifier = Embedding(), load("chinese")
    given, near, scores = held_out(embedding)
    found = [("held out of the fit data", given, near, scores)]
    for name, every in (
        ("our Chinese questions", chinese.pairs()),
        ("exchanged (never fitted)", sets.exchanged()),
        ("PAWS-X zh", sets.paws(data, 500 if quick else 2000)),
    ):
        pairs = [one for one in every if embedding.reads(one.asked) and embedding.reads(one.stored)]
        near = cosines(embedding, pairs)
        found.append((name, pairs, near, systems.scored(verifier, pairs, near)))
    shown: list[Row] = []
    for name, pairs, near, scores in found:
        cosine = System("cosine", near, float("nan"))
        guarded = System("cosine and guards", systems.guarded(pairs, near).scores, float("nan"))
        same = np.array([one.same for one in pairs])
        shown += rows(name, [System("ours", scores, verifier.threshold), guarded, cosine], same)
    report.show("Chinese: hits at wrong rates", shown)
    return shown


def main() -> int:
    """Measure, print and write."""
    given = report.parser("The verifier for Chinese.").parse_args(namespace=report.Arguments())
    if given.data is None or not (given.data / "pawsx_zh").is_dir():
        print("There is no measuring data: give its folder, such as --data ../shared/data.")
        return 2
    report.write(given.json, measure(given.data, given.quick))
    return 0


if __name__ == "__main__":
    sys.exit(main())
