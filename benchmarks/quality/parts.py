"""Ours without each part, or with one more, fitted anew; and whether what is reported was seen in it."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.quality import curves, late, systems
from benchmarks.quality.sets import REPORTED, Measured
from benchmarks.quality.systems import System
from benchmarks.report import Row
from stampcache.verifying import TrainedVerifier
from stampcache.verifying.pair import NAMES
from training.verifier import __main__ as training
from training.verifier import fitting, sources
from training.verifier.assembling import Embedding, Fit, all_pairs, assembled, word_table
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


class Read(Struct, frozen=True):
    """What the verifier can read of a set: the rows of features, the places of their pairs, and how
    many pairs there are."""

    count: int
    places: Sequence[int]
    rows: NDArray[np.float32]


class Variant(Struct, frozen=True):
    """The verifier fitted anew, with some features only or on some pairs only."""

    name: str
    model: HistGradientBoostingClassifier
    columns: Sequence[int]

    def on(self, read: Read) -> System:
        """Return its scores; what the verifier abstains from is never served."""
        scores = np.full(read.count, -1e9)
        if len(read.places):
            scores[read.places] = self.model.decision_function(read.rows[:, list(self.columns)])
        return System(self.name, scores)


class Variants:
    """The verifier fitted anew as a whole and without each of its parts, and with late interaction."""

    def __init__(self, data: Path, embedding: Embedding, late_too: bool) -> None:
        words = word_table(embedding)
        self._embedding, self._table, self._late_too = embedding, words.table(), late_too
        fit = assembled(all_pairs(data, embedding, words.related), embedding, self._table)
        self._fit, self._rows = fit, self._widened(fit)
        every = range(len(NAMES))
        lacking = {
            "fitted anew": every,
            "no guards": [at for at in every if not NAMES[at].startswith("guards: ")],
            "no alignment": [at for at in every if not NAMES[at].startswith(ALIGNMENT)],
            "no similarity": [at for at in every if NAMES[at] != "similarity"],
            "only similarity and guards": [
                at for at in every if NAMES[at] == "similarity" or NAMES[at].startswith("guards: ")
            ],
        }
        made = np.array([one.how.startswith(("corruption", "rewording")) for one in fit.pairs])
        written = np.array([one.source == "written" for one in fit.pairs])
        everything = np.ones(len(fit.pairs), dtype=np.bool_)
        self._found = [self._fitted(name, at, everything) for name, at in lacking.items()]
        self._found.append(self._fitted("no corruptions or rewordings", every, ~made))
        self._found.append(self._fitted("no questions of our own", every, ~written))
        if late_too:
            wider = range(self._rows.shape[1])
            self._found.append(self._fitted("with late interaction", wider, everything))

    def on(self, measured: Measured) -> list[System]:
        """Return the scores of all variants on a set."""
        numbered = enumerate(measured.pairs)
        given = [Pair(one.asked, one.stored, one.same, "", str(at)) for at, one in numbered]
        fit = assembled(given, self._embedding, self._table)
        places = [int(one.how) for one in fit.pairs]
        read = Read(len(given), places, self._widened(fit))
        return [one.on(read) for one in self._found]

    def _widened(self, fit: Fit) -> NDArray[np.float32]:
        if not (self._late_too and fit.pairs):
            return fit.rows
        return np.hstack([fit.rows, late.features(fit.pairs, self._embedding)])

    def _fitted(self, name: str, columns: Sequence[int], kept: curves.Flags) -> Variant:
        fit = self._fit
        rising = [*training.monotone(NAMES), *(0 for _ in late.NAMES)]
        model = fitting.model([rising[at] for at in columns])
        rows = self._rows[kept][:, list(columns)]
        model.fit(rows, fit.same[kept], sample_weight=fit.weights[kept])
        return Variant(f"ours, {name}", model, list(columns))


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
