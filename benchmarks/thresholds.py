"""From which cosine on two questions count as the same: the source of `stampcache.calibration`.

A pair is served when its cosine reaches the threshold and no guard sees a difference. The threshold
is fitted on Kmemo's near misses, which the guards are written against, and on MTRAG, where each
question meets the most similar other question of its domain, as in a full cache. It is the lowest
one that serves at most 5 % of the traps of each set, and at most 3 % of both together at the upper
end of the 95 % interval. CheckList is shown and not fitted on: its minimal pairs differ so little
that no cosine separates them; they are the guards' and the verifier's affair. The other sets are
only reported on; the limits were set after their rates had been seen, so they are no blind test.

A multilingual embedder has a threshold for each language. That of Chinese would be fitted on questions
of our own (`benchmarks.chinese`): their traps, and each question beside the most similar other one;
PAWS-X is reported on.
"""

import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from benchmarks import chinese, pairs, report
from benchmarks.pairs import Pair
from benchmarks.report import Row
from stampcache.calibration import calibration_for
from stampcache.embed import as_embedder, dimension_of
from stampcache.errors import WindowError
from stampcache.guards.pair import findings
from stampcache.model import Vector
from stampcache.ports import Embedder

ALLOWED_EACH = 0.05
ALLOWED_TOGETHER = 0.03
ENGLISH, CHINESE = "English", "Chinese"
GRID = [round(at / 200, 3) for at in range(140, 200)]
SHOWN = (0.75, 0.8, 0.85, 0.9, 0.95)
SHOWN_NARROW = (0.94, 0.95, 0.96, 0.97, 0.98, 0.99)
FITTED = {ENGLISH: ("kmemo", "mtrag"), CHINESE: ("chinese",)}
_FITTED = frozenset(name for names in FITTED.values() for name in names)
MULTILINGUAL = "multilingual"
BOTH = ("minilm", "static")
Z95 = 1.96
BATCH = 64


class Scored(Struct, frozen=True):
    """A set of pairs with the cosine of each, and whether no guard saw a difference."""

    cosines: Vector
    unguarded: np.ndarray[tuple[int], np.dtype[np.bool_]]
    same: np.ndarray[tuple[int], np.dtype[np.bool_]]
    kinds: Sequence[str]


class Size(Struct, frozen=True):
    """How much is measured of an embedder."""

    per_test: int = 40
    qqp: int = 4_000
    chinese: bool = False
    pawsx: int = 1_000


QUICK = Size(per_test=10, qqp=500)


class Share(Struct, frozen=True):
    """``hits`` of ``of`` with Wilson's 95 % interval (Wilson 1927)."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """The share itself."""
        return self.hits / self.of if self.of else 0.0

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self._centre + self._half

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self._centre - self._half

    @property
    def _centre(self) -> float:
        return (self.hits + Z95**2 / 2) / (self.of + Z95**2)

    @property
    def _half(self) -> float:
        spread = self.hits * (self.of - self.hits) / max(self.of, 1) + Z95**2 / 4
        return float(Z95 * spread**0.5 / (self.of + Z95**2))

    def __str__(self) -> str:
        return f"{self.value:.1%} ({max(self.low, 0):.1%} to {min(self.high, 1):.1%})"


def unit_rows(embedder: Embedder, texts: Sequence[str]) -> Vector:
    """Return unit vectors, and zeros (never served) for texts that the embedder refuses."""
    rows = np.concatenate(
        [_rows_of(embedder, texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
    )
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Vector = (rows / np.where(norms > 0, norms, 1)).astype(np.float32)
    return unit


def _rows_of(embedder: Embedder, texts: Sequence[str]) -> Vector:
    try:
        return embedder.embed(texts)
    except WindowError:
        if len(texts) == 1:
            return np.zeros((1, dimension_of(embedder) or 0), dtype=np.float32)
        return np.concatenate([_rows_of(embedder, [text]) for text in texts])


def _scored(embedder: Embedder, given: Sequence[Pair]) -> Scored:
    asked = unit_rows(embedder, [pair.asked for pair in given])
    stored = unit_rows(embedder, [pair.stored for pair in given])
    return Scored(
        cosines=(asked * stored).sum(axis=1),
        unguarded=np.array([not findings(pair.asked, pair.stored) for pair in given]),
        same=np.array([pair.same for pair in given]),
        kinds=[pair.kind for pair in given],
    )


def _mtrag(embedder: Embedder, data: Path) -> list[Pair]:
    """Last turns with their rewrites, and each question with the most similar other question."""
    given: list[Pair] = []
    for domain in pairs.MTRAG_DOMAINS:
        given += pairs.mtrag(data, domain)
        questions = pairs.mtrag_questions(data, domain)
        given += _nearest(questions, unit_rows(embedder, questions), domain)
    return given


def _nearest(questions: Sequence[str], vectors: Vector, kind: str) -> list[Pair]:
    """Each question with the most similar other one, as in a full cache: never the same."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    return [
        Pair(questions[at], questions[other], False, kind)
        for at, other in enumerate(cosines.argmax(axis=1))
    ]


def _chinese(embedder: Embedder) -> list[Pair]:
    questions = chinese.questions()
    return chinese.pairs() + _nearest(questions, unit_rows(embedder, questions), "other")


def _sets(embedder: Embedder, data: Path, size: Size) -> dict[str, Scored]:
    given = {
        "kmemo": pairs.kmemo(data),
        "mtrag": _mtrag(embedder, data),
        "checklist": pairs.checklist(data, size.per_test),
        "kmemo unseen": pairs.kmemo_unseen(data),
        "fow-cache": pairs.fow(data),
        "qqp": pairs.qqp(data, size.qqp),
    }
    if size.chinese:
        given |= {"chinese": _chinese(embedder), "paws-x zh": pairs.pawsx(data, size.pawsx)}
    return {name: _scored(embedder, one) for name, one in given.items()}


def _served(scored: Scored, threshold: float, *, same: bool, guards: bool, kind: str = "") -> Share:
    chosen = scored.same == same
    if kind:
        chosen &= np.array([one == kind for one in scored.kinds])
    hits = chosen & (scored.cosines >= threshold)
    if guards:
        hits &= scored.unguarded
    return Share(int(hits.sum()), int(chosen.sum()))


def fitted(sets: Mapping[str, Scored], language: str) -> float:
    """Return the lowest threshold that keeps the traps of a language's fitted sets (see the module)."""
    for threshold in GRID:
        fitted_on = [sets[name] for name in FITTED[language]]
        shares = [_served(one, threshold, same=False, guards=True) for one in fitted_on]
        pooled = Share(sum(one.hits for one in shares), sum(one.of for one in shares))
        if pooled.high <= ALLOWED_TOGETHER and all(one.value <= ALLOWED_EACH for one in shares):
            return threshold
    return 1.0


def _rows(name: str, sets: Mapping[str, Scored], thresholds: Sequence[float]) -> list[Row]:
    return [
        {
            "embedder": name,
            "data": data,
            "use": "fit" if data in _FITTED else "report",
            "threshold": threshold,
            "same": int(scored.same.sum()),
            "same served": str(_served(scored, threshold, same=True, guards=True)),
            "traps": int((~scored.same).sum()),
            "traps served": str(_served(scored, threshold, same=False, guards=True)),
            "traps without guards": str(_served(scored, threshold, same=False, guards=False)),
        }
        for data, scored in sets.items()
        for threshold in thresholds
    ]


def _by_kind(name: str, scored: Scored, threshold: float) -> list[Row]:
    labels = dict(zip(scored.kinds, scored.same.tolist(), strict=True))
    return [
        {
            "embedder": name,
            "data": f"fow-cache, {kind}",
            "threshold": threshold,
            "label": "same" if same else "trap",
            "served": str(_served(scored, threshold, same=same, guards=True, kind=kind)),
            "without guards": str(_served(scored, threshold, same=same, guards=False, kind=kind)),
        }
        for kind, same in labels.items()
    ]


def _speed(embedder: Embedder, texts: Sequence[str]) -> Row:
    seconds: list[float] = []
    for text in texts:
        start = time.perf_counter()
        embedder.embed([text])
        seconds.append(time.perf_counter() - start)
    ms = statistics.median(seconds) * 1000
    return {"embedder": embedder.name, "questions": len(texts), "ms per question (median)": ms}


class Arguments(report.Arguments):
    """Which embedder is measured; without a name, MiniLM and the static one."""

    embedder: str


def arguments() -> Arguments:
    parser = report.parser("Similarity thresholds of the embedders, with guards.")
    parser.add_argument(
        "--embedder", default="", metavar="NAME", help="minilm, static or multilingual"
    )
    return parser.parse_args(namespace=Arguments())


def measured(wanted: str, data: Path, size: Size) -> list[Row]:
    """Measure one embedder, print three tables and return their rows."""
    embedder = as_embedder(wanted)
    narrow = wanted == MULTILINGUAL
    sets = _sets(embedder, data, msgspec.structs.replace(size, chinese=narrow))
    threshold = fitted(sets, ENGLISH)
    known = calibration_for(embedder.name)
    print(f"{embedder.name}: fitted {threshold}, in use {known.threshold if known else 'none'}")
    if narrow:
        print(f"{embedder.name}: fitted to Chinese {fitted(sets, CHINESE)}")
    shown = SHOWN_NARROW if narrow else SHOWN
    curve = _rows(embedder.name, sets, sorted({*shown, threshold}))
    kinds = _by_kind(embedder.name, sets["fow-cache"], threshold)
    speed = [_speed(embedder, [pair.asked for pair in pairs.kmemo(data)])]
    report.show(f"{embedder.name}: share served, by threshold", curve)
    report.show(f"{embedder.name}: fow-cache at the fitted threshold", kinds)
    report.show(f"{embedder.name}: speed", speed)
    return [*curve, *kinds, *speed]


def main() -> int:
    """Measure the embedders, print and write.

    A quick run fits on the same data, reports on less, and measures MiniLM only.
    """
    given = arguments()
    if given.data is None or not (given.data / "kmemo").is_dir():
        print("There is no measuring data: give its folder, such as --data ../shared/data.")
        return 2
    named = [given.embedder] if given.embedder else ["minilm"] if given.quick else BOTH
    size = QUICK if given.quick else Size()
    rows = [row for wanted in named for row in measured(wanted, given.data, size)]
    report.write(given.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
