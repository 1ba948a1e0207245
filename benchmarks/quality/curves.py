"""Hit rates at wrong rates: the curve, its points, and what a threshold of the other half serves.

The hit rate is the share of pairs with the same answer that are served, the wrong rate the share of
the others.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Z95 = 1.96
Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]
SPLITS = 50
SEED = 11


class Share(Struct, frozen=True):
    """``hits`` of ``of`` with Wilson's 95 % interval (Wilson 1927)."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """The share itself; 0 of nothing."""
        return self.hits / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and the upper end."""
        if not self.of:
            return 0.0, 1.0
        centre = (self.hits + Z95**2 / 2) / (self.of + Z95**2)
        spread = self.hits * (self.of - self.hits) / self.of + Z95**2 / 4
        half = Z95 * spread**0.5 / (self.of + Z95**2)
        return max(0.0, centre - half), min(1.0, centre + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.1%} ({low:.1%} to {high:.1%})"


def served(scores: Scores, same: Flags, threshold: float) -> tuple[Share, Share]:
    """Return what a threshold serves of the pairs that are the same, and of the others."""
    hit = scores >= threshold
    return Share(int((hit & same).sum()), int(same.sum())), Share(
        int((hit & ~same).sum()), int((~same).sum())
    )


def threshold_at(scores: Scores, same: Flags, wrong: float) -> float:
    """Return the lowest threshold that serves at most this share of what is not the same."""
    others = np.sort(scores[~same])[::-1]
    allowed = int(wrong * len(others) + 1e-9)
    if allowed >= len(others):
        return float(np.min(scores))
    return float(np.nextafter(others[allowed], np.inf))


def hits_at(scores: Scores, same: Flags, wrong: float) -> Share:
    """Return the hits at a wrong rate, with the threshold of these very pairs."""
    return served(scores, same, threshold_at(scores, same, wrong))[0]


class Crossed(Struct, frozen=True):
    """Hits and wrong hits with thresholds of the respective other half, over many splits."""

    hits: float
    wrong: float


def cross_fitted(scores: Scores, same: Flags, wrong: float) -> Crossed:
    """Split in halves 50 times, set the threshold on one half and count on the other."""
    return cross_tuned([scores], same, wrong)


def cross_tuned(ways: Sequence[Scores], same: Flags, wrong: float) -> Crossed:
    """As `cross_fitted`; the first half also chooses among several ways to score: most hits."""
    chance = np.random.default_rng(SEED)
    rates: list[tuple[float, float]] = []
    for _ in range(SPLITS):
        half = np.zeros(len(same), dtype=np.bool_)
        for label in (True, False):
            at = chance.permutation(np.flatnonzero(same == label))
            half[at[: len(at) // 2]] = True
        for one in (half, ~half):
            at_best = _at_best(ways, one, same, wrong)
            limit = threshold_at(at_best[one], same[one], wrong)
            good, bad = served(at_best[~one], same[~one], limit)
            rates.append((good.value, bad.value))
    means = np.array(rates).mean(axis=0)
    return Crossed(float(means[0]), float(means[1]))


def _at_best(ways: Sequence[Scores], half: Flags, same: Flags, wrong: float) -> Scores:
    hits = [hits_at(scores[half], same[half], wrong).hits for scores in ways]
    return ways[hits.index(max(hits))]


def curve(scores: Scores, same: Flags, points: int = 60) -> list[tuple[float, float]]:
    """Return (wrong rate, hit rate) from the strictest threshold to the loosest that is of use."""
    limits = np.unique(scores[scores > -np.inf])[::-1]
    if len(limits) > points:
        limits = limits[np.linspace(0, len(limits) - 1, points).astype(int)]
    shares = [served(scores, same, float(limit)) for limit in limits]
    return [(round(bad.value, 4), round(good.value, 4)) for good, bad in shares]


def of_kind(kinds: Sequence[str], kind: str) -> Flags:
    """Return which pairs are of this kind."""
    return np.array([one == kind for one in kinds])
