"""What two Chinese questions have in common: what words show, and what their characters show (pure).

Words are compared as in English (`stampcache.verifying.pair`). Words of Chinese are made of characters
that mean something themselves, and where a text is cut is a guess, so characters are compared, too.
All features are symmetric.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stampcache.verifying import pair
from stampcache.verifying.reading import HEAVIEST, Side
from stampcache.verifying.table import Table


def _both(name: str) -> tuple[str, str]:
    return f"{name}, less", f"{name}, more"


NAMES: tuple[str, ...] = (
    *pair.NAMES,
    "characters shared",
    "characters of content shared",
    "pairs of characters shared",
    *_both("in order"),
    *_both("content in order"),
    *_both("unmatched characters"),
    *_both("weight of unmatched characters"),
    *_both("most unmatched character"),
    *_both("characters"),
    *_both("span that differs"),
    "spans alike",
    *_both("unmatched characters near"),
    *_both("words in pieces"),
)


class Signs(Struct, frozen=True):
    """What a comparison needs of the characters of a side.

    ``text`` are all its words, ``body`` those with content, one word for all of a concept; ``counts``
    and ``pairs`` are of the body, ``weights`` how rare its characters are, ``vectors`` their rows of
    the table.
    """

    text: str
    body: str
    content: frozenset[str]
    counts: Counter[str]
    pairs: frozenset[str]
    weights: list[int]
    vectors: NDArray[np.float32]


def against(side: Side, table: Table) -> Callable[[Side, float], list[float]]:
    """Return what gives the features of a side beside a stored one and their cosine, as ``NAMES``."""
    words, own = pair.asking(side, table), signs(side, table)

    def compared(stored: Side, similarity: float) -> list[float]:
        values = pair.compared(words, pair.ready(stored, table), similarity)
        return values + beside(own, signs(stored, table))

    return compared


def signs(side: Side, table: Table) -> Signs:
    """Return the characters of a side."""
    body = "".join(side.content)
    rows = [table.rows.get(one, -1) for one in body]
    return Signs(
        "".join(side.words),
        body,
        frozenset(side.content),
        Counter(body),
        frozenset([body[at : at + 2] for at in range(len(body) - 1)]),
        [table.weights[row] if row >= 0 else HEAVIEST for row in rows],
        table.vectors.take(rows, axis=0) if rows else table.vectors[:0],
    )


def beside(one: Signs, other: Signs) -> list[float]:
    """Return what the characters of both sides show, whichever comes first."""
    if one.text > other.text:
        # sums of floats come in the order of the sides, so the order must not be theirs
        one, other = other, one
    here, there = _unmatched(one, other), _unmatched(other, one)
    return [
        _dice(one.text, other.text),
        1 - (len(here) + len(there)) / ((len(one.body) + len(other.body)) or 1),
        2 * len(one.pairs & other.pairs) / ((len(one.pairs) + len(other.pairs)) or 1),
        *_in_order(one.text, other.text),
        *_in_order(one.body, other.body),
        *_ordered(len(here), len(there)),
        *_weighed(one, here, other, there),
        *_ordered(len(one.text), len(other.text)),
        *_spans(one.text, other.text),
        *_near(one, here, other, there),
        *_ordered(_in_pieces(one, other), _in_pieces(other, one)),
    ]


def _ordered(one: float, other: float) -> tuple[float, float]:
    return (one, other) if one <= other else (other, one)


def _unmatched(one: Signs, other: Signs) -> list[int]:
    """Return the places of characters of the body that the other has not, or not so often."""
    left = dict(other.counts)
    places: list[int] = []
    for at, sign in enumerate(one.body):
        count = left.get(sign, 0)
        if count:
            left[sign] = count - 1
        else:
            places.append(at)
    return places


def _dice(one: str, other: str) -> float:
    shared = sum([min(one.count(sign), other.count(sign)) for sign in {*one}])
    return 2 * shared / ((len(one) + len(other)) or 1)


def _in_order(one: str, other: str) -> tuple[float, float]:
    """Return the longest common subsequence as a share of the longer, and of the shorter, text."""
    least, most = sorted((len(one), len(other)))
    length = subsequence(one, other)
    return length / (most or 1), length / (least or 1)


def subsequence(one: str, other: str) -> int:
    """Return the length of the longest common subsequence (Hyyrö 2004: a bit for each sign of one)."""
    places: dict[str, int] = {}
    for at, sign in enumerate(one):
        places[sign] = places.get(sign, 0) | 1 << at
    every = (1 << len(one)) - 1
    row = every
    for sign in other:
        match = row & places.get(sign, 0)
        row = ((row + match) | (row - match)) & every
    return len(one) - row.bit_count()


def _weighed(one: Signs, here: list[int], other: Signs, there: list[int]) -> list[float]:
    left = [one.weights[at] / HEAVIEST for at in here]
    right = [other.weights[at] / HEAVIEST for at in there]
    return [
        *_ordered(sum(left), sum(right)),
        *_ordered(max(left, default=0.0), max(right, default=0.0)),
    ]


def _spans(text: str, other: str) -> list[float]:
    """Compare what is left between the common beginning and the common end."""
    before = _common(text, other)
    after = min(_common(text[::-1], other[::-1]), min(len(text), len(other)) - before)
    span, opposite = text[before : len(text) - after], other[before : len(other) - after]
    return [*_ordered(len(span), len(opposite)), _dice(span, opposite)]


def _common(one: str, other: str) -> int:
    least = min(len(one), len(other))
    return next((at for at in range(least) if one[at] != other[at]), least)


def _near(one: Signs, here: list[int], other: Signs, there: list[int]) -> tuple[float, float]:
    """Return how near unmatched characters are to the nearest unmatched one of the other side."""
    if not (here and there):
        return (float(not here and not there),) * 2
    near = one.vectors.take(here, axis=0).dot(other.vectors.take(there, axis=0).T).tolist()
    left = sum(map(max, near)) / len(here)
    right = sum(map(max, zip(*near, strict=True))) / len(there)
    return _ordered(round(left, 4), round(right, 4))


def _in_pieces(one: Signs, other: Signs) -> int:
    """Count words of one side whose characters all stand in the other, which has no such word."""
    have = other.counts.keys()
    return sum([have >= set(word) for word in one.content - other.content])
