"""Boosted trees in packed form: what a pair's features add up to, as a probability (pure).

Trees are complete, so that the children of node ``n`` are ``2n + 1`` and ``2n + 2``, and all of
them are walked at once, level by level: each node's next one is computed first, then followed from the
roots. A value that is no number goes to the left.
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct


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
    """Trees that are ready to be walked."""

    def __init__(self, packed: Packed) -> None:
        inner = 2**packed.depth - 1
        self._depth = packed.depth
        self._features = np.frombuffer(packed.features, np.uint8).astype(np.intp)
        self._limits = np.frombuffer(packed.limits, "<f4").astype(np.float32)
        self._leaves = np.frombuffer(packed.leaves, "<f4").astype(np.float64)
        self._start, self._slope, self._shift = packed.start, packed.slope, packed.shift
        trees = np.arange(packed.count, dtype=np.intp)[:, np.newaxis]
        nodes = np.arange(inner, dtype=np.intp)
        # of the last inner level, whose children are leaves, the children are places among all leaves
        last = 2 ** (packed.depth - 1) - 1
        left = np.where(
            nodes < last, trees * inner + 2 * nodes + 1, trees * (inner + 1) + 2 * (nodes - last)
        )
        self._left = left.ravel().astype(np.int32)  # half the memory to go through for each pair
        self._roots = trees.ravel() * inner

    def margin(self, values: Sequence[float]) -> float:
        """Return the sum of the leaves that these features reach, before calibration."""
        given = np.array(values, dtype=np.float32)
        following = self._left + (given.take(self._features) > self._limits)
        at = self._roots
        for _ in range(self._depth):
            at = following.take(at)
        return self._start + float(self._leaves.take(at).sum())

    def probability(self, values: Sequence[float]) -> float:
        """Return the calibrated probability that the pair with these features is one question."""
        return probability(self.margin(values), self._slope, self._shift)


def probability(margin: float, slope: float, shift: float) -> float:
    """Return the probability of a margin: a logistic curve that rises with it."""
    odds = max(-30.0, min(30.0, slope * margin + shift))
    return 1.0 / (1.0 + math.exp(-odds))
