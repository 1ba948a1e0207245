"""A hash of 64 bits of which few differ between vectors that are near (pure; SimHash).

Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002: each bit says on which
side of a random plane a vector lies, so a bit differs with the probability angle / pi. It finds near
duplicates among many questions. It never decides a hit, and no lookup uses it: of two questions it knows
less than their cosine does, and cosine cannot tell a paraphrase from its negation.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

BITS = 64
Hashes: TypeAlias = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.uint8]
Indices: TypeAlias = NDArray[np.intp]

_BLOCK = 64
_BYTES_EACH = 8
_MIDDLE = _BYTES_EACH * 255 / 2
_SCALE = 20
_SPREADS = 3.0
_ONE_BIT, _TWO_BITS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_FOUR_BITS, _EACH_BYTE = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


class SemanticHash:
    """Hashes vectors of one dimension. The same seed gives the same hashes on every machine.

    The planes come from BLAKE2b, and whole numbers are added up below 2**53, where no order of adding
    rounds: neither the generator nor the linear algebra of a version of numpy makes a difference.
    """

    def __init__(self, dimension: int, seed: int = 0) -> None:
        """Draw the planes, which takes some milliseconds.

        Raises:
            ValueError: ``dimension`` is below 1.
        """
        if dimension < 1:
            raise ValueError(f"The dimension {dimension} is none; give that of the vectors.")
        self._planes = _planes(dimension, seed)

    def of(self, vectors: ArrayLike) -> Hashes:
        """Return one hash per row, shape (n,), of vectors (n, dimension) of any length but zero.

        Raises:
            ValueError: the shape is another, or a row has no direction.
        """
        rows = np.asarray(vectors, dtype=np.float64)
        dimension = len(self._planes)
        if rows.ndim != 2 or rows.shape[1] != dimension:
            raise ValueError(f"The shape {rows.shape} is not (n, {dimension}).")
        sides = _whole(rows) @ self._planes > 0
        shifts = np.arange(BITS, dtype=np.uint64)
        hashes: Hashes = (sides.astype(np.uint64) << shifts).sum(axis=1, dtype=np.uint64)
        return hashes


class Group(Struct, frozen=True):
    """Questions, by their index, that are near the first one; ``lowest`` is the lowest cosine to it."""

    members: Sequence[int]
    lowest: float


def distance(one: int | np.uint64, other: int | np.uint64) -> int:
    """Return how many bits of two hashes differ."""
    return (int(one) ^ int(other)).bit_count()


def distances(hashes: Hashes, one: int | np.uint64) -> Counts:
    """Return how many bits of each hash differ from those of one, shape (n,)."""
    return _count(hashes ^ np.uint64(one))


def near(hashes: Hashes, one: int | np.uint64, most_bits: int) -> Indices:
    """Return the indices of the hashes of which at most so many bits differ from one."""
    return np.flatnonzero(distances(hashes, one) <= most_bits)


def most_bits(cosine: float) -> int:
    """Return how many bits differ at most (mean and three standard deviations) at that cosine."""
    share = math.acos(max(-1.0, min(1.0, cosine))) / math.pi
    return min(BITS, math.ceil(BITS * share + _SPREADS * math.sqrt(BITS * share * (1 - share))))


def duplicates(
    questions: Sequence[str], vectors: ArrayLike, *, cosine: float = 0.95, seed: int = 0
) -> Sequence[Group]:
    """Return groups of at least two questions, each of which is near the first of its group.

    Equal texts are near; others are when the cosine of their vectors is at least ``cosine``. The hash
    only says which are compared: about one of 1,000 that are just that near is missed, and none is
    found wrongly. Near is not same: such a group is for people to look at.

    Raises:
        ValueError: there is not one vector (n, d) for each question, or one has no direction.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(questions):
        raise ValueError(f"The shape {rows.shape} is not ({len(questions)}, dimension).")
    if not len(rows):
        return []
    hashes = SemanticHash(rows.shape[1], seed).of(rows)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return _groups(questions, hashes, unit, cosine)


def _groups(
    questions: Sequence[str], hashes: Hashes, unit: NDArray[np.float64], cosine: float
) -> Sequence[Group]:
    bits = most_bits(cosine)
    first = np.empty(len(questions), dtype=np.intp)
    found: list[list[int]] = []
    lowest: list[float] = []
    for at, question in enumerate(questions):
        leaders = first[: len(found)]
        close = near(hashes[leaders], hashes[at], bits)
        cosines = unit[leaders[close]] @ unit[at]
        best = int(cosines.argmax()) if len(close) else -1
        if best >= 0 and (cosines[best] >= cosine or questions[leaders[close[best]]] == question):
            group = int(close[best])
            found[group].append(at)
            lowest[group] = min(lowest[group], float(cosines[best]))
        else:
            first[len(found)] = at
            found.append([at])
            lowest.append(1.0)
    return [Group(one, low) for one, low in zip(found, lowest, strict=True) if len(one) > 1]


def _planes(dimension: int, seed: int) -> NDArray[np.float64]:
    """Return random directions (dimension, 64) of whole numbers, nearly normal: sums of 8 bytes."""
    size = dimension * BITS * _BYTES_EACH
    blocks = (
        hashlib.blake2b(at.to_bytes(8), key=str(seed).encode(), person=b"planes").digest()
        for at in range(-(-size // _BLOCK))
    )
    drawn = np.frombuffer(b"".join(blocks)[:size], dtype=np.uint8)
    sums = drawn.reshape(dimension, BITS, _BYTES_EACH).sum(axis=2, dtype=np.float64)
    planes: NDArray[np.float64] = sums - _MIDDLE
    return planes


def _whole(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows as whole numbers of up to 20 bits.

    Raises:
        ValueError: a row has no direction.
    """
    largest = np.abs(rows).max(axis=1, initial=0.0)
    if not (np.isfinite(largest).all() and (largest > 0).all()):
        raise ValueError("A vector is zero or not finite, so it has no direction.")
    exponents = np.frexp(largest)[1]
    whole: NDArray[np.float64] = np.rint(np.ldexp(rows, (_SCALE - exponents)[:, None]))
    return whole


def counted(bits: Hashes) -> Counts:
    """Return how many bits are set in each, by adding neighbours up in place."""
    pairs = bits - ((bits >> np.uint64(1)) & _ONE_BIT)
    fours = (pairs & _TWO_BITS) + ((pairs >> np.uint64(2)) & _TWO_BITS)
    bytes_ = (fours + (fours >> np.uint64(4))) & _FOUR_BITS
    with np.errstate(over="ignore"):
        counts: Counts = ((bytes_ * _EACH_BYTE) >> np.uint64(56)).astype(np.uint8)
    return counts


_count: Callable[[Hashes], Counts] = getattr(np, "bitwise_count", counted)
"""numpy counts by itself from version 2 on."""
