"""Ours without each part, each refitted; and whether what is reported was seen in the fit."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.quality import curves, systems
from benchmarks.quality.curves import Scores
from benchmarks.quality.sets import REPORTED, Measured
from benchmarks.quality.systems import System
from benchmarks.report import Row
from stampcache.verifying import TrainedVerifier
from stampcache.verifying.pair import NAMES
from stampcache.verifying.table import Table
from training.verifier import __main__ as training
from training.verifier import fitting, sources
from training.verifier.assembling import Embedding, all_pairs, assembled, word_table
from training.verifier.sources import Pair

NEAR = 0.9
ALIGNMENT = (
    "covered", "softly", "shared of all", "unexplained", "most unexplained", "unmatched",
    "weight of", "nearest sub", "furthest sub", "typos", "by concept", "sum of words",
)  # fmt: skip
_WORD = re.compile(r"\w{3,}")


def shared(one: str, other: str) -> float:
    """Return the share of words of three letters and more that two texts have in common."""
    here, there = set(_WORD.findall(one.lower())), set(_WORD.findall(other.lower()))
    return len(here & there) / len(here | there) if here | there else 1.0


class Variant(Struct, frozen=True):
    """The verifier fitted anew, with some features only or on some pairs only."""

    name: str
    model: HistGradientBoostingClassifier
    columns: Sequence[int]
    table: Table
    embedding: Embedding

    def on(self, measured: Measured, near: Scores) -> System:
        """Return its scores; what the verifier abstains from is never served."""
        numbered = enumerate(measured.pairs)
        given = [Pair(one.asked, one.stored, one.same, "", str(at)) for at, one in numbered]
        fit = assembled(given, self.embedding, self.table)
        scores = np.full(len(near), -1e9)
        if len(fit.pairs):
            at = [int(one.how) for one in fit.pairs]
            scores[at] = self.model.decision_function(fit.rows[:, list(self.columns)])
        return System(self.name, scores)


def without(data: Path, embedding: Embedding) -> list[Variant]:
    """Fit the verifier without each of its parts."""
    words = word_table(embedding)
    table = words.table()
    fit = assembled(all_pairs(data, embedding, words.related), embedding, table)
    every = range(len(NAMES))
    made = np.array([one.how.startswith(("corruption", "rewording")) for one in fit.pairs])
    written = np.array([one.source == "written" for one in fit.pairs])

    def variant(name: str, columns: Sequence[int], kept: curves.Flags) -> Variant:
        rising = [training.monotone()[at] for at in columns]
        model = fitting.model(rising)
        model.fit(fit.rows[kept][:, list(columns)], fit.same[kept], sample_weight=fit.weights[kept])
        return Variant(name, model, list(columns), table, embedding)

    all_rows = np.ones(len(fit.pairs), dtype=np.bool_)
    lacking = {
        "no guards": [at for at in every if not NAMES[at].startswith("guards: ")],
        "no alignment": [at for at in every if not NAMES[at].startswith(ALIGNMENT)],
        "no similarity": [at for at in every if NAMES[at] != "similarity"],
        "only similarity and guards": [
            at for at in every if NAMES[at] == "similarity" or NAMES[at].startswith("guards: ")
        ],
    }
    found = [variant(f"ours, {name}", columns, all_rows) for name, columns in lacking.items()]
    found.append(variant("ours, no corruptions or rewordings", every, ~made))
    found.append(variant("ours, no questions of our own", every, ~written))
    return found


def questions_fitted(data: Path) -> list[str]:
    """Return the questions that people wrote of all that is fitted."""
    groups = [one for group in sources.groups() for one in (*group.same, *group.others)]
    kmemo = [text for pair in sources.kmemo(data) for text in (pair.one, pair.other)]
    turns = [text for pair in sources.mtrag(data) for text in (pair.one, pair.other)]
    standing = sources.standing(data)
    return sorted({*groups, *kmemo, *turns, *standing["mtrag"], *standing["banking77"]})


def overlap(
    every: Sequence[Measured], data: Path, embedding: Embedding, verifier: TrainedVerifier
) -> list[Row]:
    """Count reported questions that were seen, or nearly, and the rates among the unseen pairs."""
    known = questions_fitted(data)
    plain = {systems.plain(one) for one in known}
    fitted = embedding(known)
    rows: list[Row] = []
    for measured in every:
        if measured.use != REPORTED or measured.name == "PAWS-X zh":
            continue
        one = embedding([pair.asked for pair in measured.pairs])
        other = embedding([pair.stored for pair in measured.pairs])
        nearest = np.maximum((one @ fitted.T).max(axis=1), (other @ fitted.T).max(axis=1))
        equal = [
            systems.plain(pair.asked) in plain or systems.plain(pair.stored) in plain
            for pair in measured.pairs
        ]
        scores = systems.scored(verifier, measured.pairs, np.einsum("ij,ij->i", one, other))
        same = np.array([pair.same for pair in measured.pairs])
        far = nearest < NEAR
        good, bad = curves.served(scores[far], same[far], verifier.threshold)
        rows.append(
            {
                "data": measured.name, "pairs": len(same), "with an equal question": sum(equal),
                f"with a question of cosine {NEAR} or more": int((~far).sum()),
                "hits of the rest": str(good), "wrong of the rest": str(bad),
            }
        )  # fmt: skip
    return rows
