"""Draws labelled pairs from a pool, has a rate proved by them, and looks at the rest of the pool."""

import statistics
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from benchmarks.proof.pools import SUBJECT, Pool, grouped_places
from benchmarks.quality.curves import Scores
from benchmarks.report import Row
from stampcache.calibration import Labelled, Promise, prove, reweighed
from stampcache.calibration.bounds import at_most

DELTA = 0.05
ALLOWED = 0.99


class Drawn(Struct, frozen=True):
    """What one draw proved: the share it serves of the rest of the pool, and what of that is wrong."""

    promised: bool
    share: float = 0.0
    risk: float = 0.0


class Urn:
    """A pool that is drawn from."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._groups = grouped_places(pool)
        self._by_weight = {
            weight: np.array([-np.inf if one.score is None else one.score for one in labels])
            for weight in pool.weights
            for labels in [reweighed(pool.labels, weight)]
        }
        self._scores = self._by_weight[pool.weights[0]]
        self._wrong = np.array([not one.same for one in pool.labels])

    def draw(self, count: int, max_wrong: float, chooser: np.random.Generator) -> Drawn:
        """Draw about so many pairs (whole groups), and compare what they prove with all the others."""
        chosen: list[int] = []
        for at in chooser.permutation(len(self._groups))[:count]:
            chosen += self._groups[at]
            if len(chosen) >= count:
                break
        found = self._proved([self.pool.labels[at] for at in chosen], max_wrong)
        if not isinstance(found, Promise):
            return Drawn(False)
        rest = np.ones(len(self._scores), dtype=np.bool_)
        rest[chosen] = False
        served = rest & (self._by_weight[found.similarity_weight] >= found.threshold)
        hits = int(served.sum())
        return Drawn(True, hits / int(rest.sum()), int(self._wrong[served].sum()) / max(hits, 1))

    def _proved(self, labels: Sequence[Labelled], max_wrong: float) -> object:
        return prove(
            labels,
            SUBJECT,
            max_wrong=max_wrong,
            entries=len(self._scores),
            data=self.pool.name,
            made_at=0.0,
            delta=DELTA,
            weights=self.pool.weights,
        )

    def best(self, max_wrong: float) -> float:
        """Return the largest share that could be served at this rate by who knows all labels."""
        return max(self._best(scores, max_wrong) for scores in self._by_weight.values())

    def _best(self, given: Scores, max_wrong: float) -> float:
        order = np.argsort(-given, kind="stable")
        scores = given[order]
        rates = np.cumsum(self._wrong[order]) / np.arange(1, len(order) + 1)
        ends = np.append(scores[1:] < scores[:-1], True) & np.isfinite(scores)
        fitting = np.flatnonzero(ends & (rates <= max_wrong))
        return float((fitting[-1] + 1) / len(order)) if len(fitting) else 0.0


def allowed(draws: int, delta: float = DELTA) -> int:
    """Return how many false promises of so many draws chance explains, all but once in a hundred."""
    count = 0
    while at_most(count, draws, delta) < ALLOWED:
        count += 1
    return count


def row(
    urn: Urn, count: int, max_wrong: float, draws: int, seed: int, advance: Callable[[], object]
) -> Row:
    """Return the row of one pool and rate."""
    chooser = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        found.append(urn.draw(count, max_wrong, chooser))
        advance()
    false = sum(one.promised and one.risk > max_wrong for one in found)
    return {
        "pool": urn.pool.name,
        "pairs": "real" if urn.pool.real else "made up",
        "max_wrong": max_wrong,
        "labels": count,
        "draws": draws,
        "promises": sum(one.promised for one in found) / draws,
        "false": false / draws,
        "allowed": allowed(draws) / draws,
        "holds": "yes" if false <= allowed(draws) else "NO",
        "served": statistics.median(one.share for one in found),
        "served at best": urn.best(max_wrong),
    }


def labels_needed(urn: Urn, max_wrong: float, counts: Sequence[int], draws: int, seed: int) -> Row:
    """Return with how many labels four of five draws prove the rate, and what is served then."""
    base = {
        "pool": urn.pool.name,
        "pairs": "real" if urn.pool.real else "made up",
        "max_wrong": max_wrong,
    }
    for count in counts:
        if 2 * count > len(urn.pool.labels):
            break
        chooser = np.random.default_rng(seed)
        found = [urn.draw(count, max_wrong, chooser) for _ in range(draws)]
        if sum(one.promised for one in found) >= 0.8 * draws:
            share = statistics.median(one.share for one in found)
            return {**base, "labels needed": f"{count:,}", "served": share}
    return {**base, "labels needed": "more, or never", "served": 0.0}
