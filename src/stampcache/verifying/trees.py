"""Boosted trees in packed form: what a pair's features add up to, as a probability (pure).

Trees are complete, so that the children of node ``n`` are ``2n + 1`` and ``2n + 2``, and all of
them are walked at once, level by level. A value that is no number goes to the left.
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class Packed(Struct, frozen=True):
    """Trees as they are stored: row by row, little-endian.

    ``features`` are unsigned bytes, ``limits`` and ``leaves`` float32. A value above its limit goes
    to the right. ``slope`` and ``shift`` turn the sum into log-odds (Platt 1999).
    """

    count: int
    depth: int
    features: bytes
    limits: bytes
    leaves: bytes
    start: float
    slope: float
    shift: float


class Trees:
    """Trees that are ready to be walked.

    Many nodes ask the same of the same feature, so a pair's values are compared once for each
    ``test``, a feature with a limit. ``levels`` hold the tests of all nodes of one depth, tree by
    tree: the children of the node at place ``n`` are at ``2n`` and ``2n + 1`` of the next level.
    """

    def __init__(self, packed: Packed) -> None:
        features = np.frombuffer(packed.features, np.uint8)
        limits = np.frombuffer(packed.limits, "<f4").astype(np.float32)
        tests, places = _tests(features, limits)
        nodes = places.reshape(packed.count, -1)
        self._features = features[tests].astype(np.intp)
        self._limits = limits[tests]
        self._levels = [
            nodes[:, 2**level - 1 : 2 ** (level + 1) - 1].ravel() for level in range(packed.depth)
        ]
        self._roots = np.arange(packed.count, dtype=np.intp)
        self._leaves = np.frombuffer(packed.leaves, "<f4").astype(np.float64)
        self._start, self._slope, self._shift = packed.start, packed.slope, packed.shift

    def margin(self, values: Sequence[float]) -> float:
        """Return the sum of the leaves that these features reach, before calibration."""
        given = np.array(values, dtype=np.float32)
        passed = (given.take(self._features) > self._limits).astype(np.intp)
        at = self._roots
        for tests in self._levels:
            at = at + at + passed.take(tests.take(at))
        return self._start + float(self._leaves.take(at).sum())

    def probability(self, values: Sequence[float]) -> float:
        """Return the calibrated probability that the pair with these features is one question."""
        return probability(self.margin(values), self._slope, self._shift)


def _tests(
    features: NDArray[np.uint8], limits: NDArray[np.float32]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return of each distinct test a node that has it, and of each node the place of its test."""
    # the feature before the bits of the limit: one number, which is sorted faster than a pair
    both = features.astype(np.uint64) << np.uint64(32) | limits.view(np.uint32)
    _, first, places = np.unique(both, return_index=True, return_inverse=True)
    return first, places


def probability(margin: float, slope: float, shift: float) -> float:
    """Return the probability of a margin: a logistic curve that rises with it."""
    odds = max(-30.0, min(30.0, slope * margin + shift))
    return 1.0 / (1.0 + math.exp(-odds))
