"""What two questions have in common, as numbers for the trees (pure).

All features are symmetric: the two questions may change places. Where a side matters, the smaller
and the larger of the two values are given. Weights say how rare a word is, from 0 to 1.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stampcache import guards
from stampcache.verifying.reading import HEAVIEST, Side
from stampcache.verifying.table import Table
from stampcache.verifying.vocabulary import CLOSED

_CLASSES = ("negating", "scope", "time", "place", "modal", "person")
assert len(_CLASSES) == len(CLOSED)


def _both(name: str) -> tuple[str, str]:
    return f"{name}, less", f"{name}, more"


_SINGLE = tuple(name for name in guards.SIGNALS if not name.endswith((".extra", ".missing")))
_SIDED = tuple(name.removesuffix(".extra") for name in guards.SIGNALS if name.endswith(".extra"))
_AT = {name: at for at, name in enumerate(guards.SIGNALS)}
_SINGLE_AT = tuple(_AT[name] for name in _SINGLE)
_SIDED_AT = tuple((_AT[f"{name}.extra"], _AT[f"{name}.missing"]) for name in _SIDED)

NAMES: tuple[str, ...] = (
    "similarity",
    "sum of words",
    "trigrams",
    *_both("covered"),
    *_both("softly covered"),
    "shared of all",
    *_both("unexplained"),
    *_both("most unexplained"),
    *_both("unmatched words"),
    *_both("unmatched names"),
    *_both("unmatched numbers"),
    *_both("weight of unmatched"),
    "nearest substitute",
    "furthest substitute",
    "typos",
    "by concept only",
    *_both("content words"),
    *_both("all words"),
    "common beginning",
    "common end",
    *_both("middle"),
    "turned round",
    "neighbours kept",
    "same kind",
    *_both("kind"),
    *(name for one in _CLASSES for name in _both(one)),
    "all words equal",
    *(f"guards: {name}" for name in _SINGLE),
    *(name for one in _SIDED for name in _both(f"guards: {one}")),
)


class Ready(Struct, frozen=True):
    """A side with what each comparison of it needs: letters by three, neighbours, vectors.

    ``vectors`` are the rows of its content words in the word table.
    """

    side: Side
    grams: frozenset[str]
    neighbours: frozenset[tuple[str, str]]
    total: int
    vector: NDArray[np.float32]
    vectors: NDArray[np.float32]


def ready(side: Side, table: Table) -> Ready:
    """Return a side that is to be compared, perhaps more than once."""
    return Ready(
        side,
        _grams(side.words),
        frozenset(pairwise(side.content)),
        sum(side.weights),
        np.frombuffer(side.vector, np.float32),
        table.vectors.take(side.rows, axis=0) if side.rows else table.vectors[:0],
    )


class Compared(Struct):
    """The unmatched words of both sides (their places), and what matched."""

    here: list[int]
    there: list[int]
    matched: list[tuple[int, int]]
    by_concept: float
    typos: int


def features(one: Side, other: Side, similarity: float, table: Table) -> list[float]:
    """Return the features of a pair in the order of ``NAMES``."""
    return compared(ready(one, table), ready(other, table), similarity)


def compared(asked: Ready, stored: Ready, similarity: float) -> list[float]:
    """Return the features of a pair whose sides were made ready."""
    if (asked.side.words, asked.side.names) > (stored.side.words, stored.side.names):
        # matching takes words in order, so the order must not be theirs
        asked, stored = stored, asked
    one, other = asked.side, stored.side
    matching = _compare(one, other)
    grams, more_grams = asked.grams, stored.grams
    values = [
        round(similarity, 4),
        round(float(asked.vector @ stored.vector), 4),
        2 * len(grams & more_grams) / ((len(grams) + len(more_grams)) or 1),
    ]
    values += _covering(asked, stored, matching)
    values += _shape(asked, stored, matching)
    same = one.kind == other.kind
    values += (float(same), float(min(one.kind, other.kind)), float(max(one.kind, other.kind)))
    for bits, others in zip(one.closed, other.closed, strict=True):
        values += _ordered((bits & ~others).bit_count(), (others & ~bits).bit_count())
    values.append(float(one.words == other.words))
    return values + _signals(guards.weigh(one.profile, other.profile))


def _signals(seen: Sequence[float]) -> list[float]:
    """Return what the guards saw, with the smaller and the larger of the two sides of each."""
    values = [seen[at] for at in _SINGLE_AT]
    for extra, missing in _SIDED_AT:
        values += _ordered(seen[extra], seen[missing])
    return values


def _ordered(one: float, other: float) -> tuple[float, float]:
    return (float(one), float(other)) if one <= other else (float(other), float(one))


def _grams(words: Sequence[str]) -> frozenset[str]:
    text = f" {' '.join(words)} "
    return frozenset([text[at : at + 3] for at in range(len(text) - 2)])


def _compare(one: Side, other: Side) -> Compared:
    """Match content words that are the same, or the same but for a letter, each once."""
    places: dict[str, list[int]] = {}
    for at, word in enumerate(other.content):
        places.setdefault(word, []).append(at)
    here: list[int] = []
    matched: list[tuple[int, int]] = []
    by_concept = 0.0
    for at, word in enumerate(one.content):
        found = places.get(word)
        if found:
            to = found.pop(0)
            matched.append((at, to))
            if one.stems[at] != other.stems[to]:
                by_concept += one.weights[at]
        else:
            here.append(at)
    there = sorted(at for left in places.values() for at in left)
    typos = 0
    for at in [*here] if there else ():
        for to in there:
            if mistyped(one.stems[at], other.stems[to]):
                matched.append((at, to))
                here.remove(at)
                there.remove(to)
                typos += 1
                break
    return Compared(here, there, matched, by_concept / HEAVIEST, typos)


def mistyped(one: str, other: str) -> bool:
    """Tell whether two words of letters differ by one letter changed, left out or swapped."""
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if len(short) < 5 or len(long) - len(short) > 1 or not (short.isalpha() and long.isalpha()):
        return False
    before = 0
    for letter, opposite in zip(short, long, strict=False):
        if letter != opposite:
            break
        before += 1
    if before == 0:
        return False
    rest, longer = short[before:], long[before:]
    if len(short) < len(long):
        return rest == longer[1:]
    return rest[1:] == longer[1:] or (rest[:2] == longer[1::-1] and rest[2:] == longer[2:])


def _covering(asked: Ready, stored: Ready, compared: Compared) -> list[float]:
    one, other = asked.side, stored.side
    here, there = compared.here, compared.there
    total, more = asked.total, stored.total
    left = sum([one.weights[at] for at in here])
    right = sum([other.weights[at] for at in there])
    nearest, furthest = 1.0, 1.0
    near_here: list[float] = []
    near_there: list[float] = []
    rows = asked.vectors.take(here, axis=0) if here else asked.vectors[:0]
    others = stored.vectors.take(there, axis=0) if there else stored.vectors[:0]
    if here and other.rows:
        near_here = _nearest(rows, stored.vectors)
    if there and one.rows:
        near_there = _nearest(others, asked.vectors)
    if here and there:
        pairs = rows @ others.T
        nearest, furthest = (
            float(pairs.max()),
            float(min(pairs.max(axis=0).min(), pairs.max(axis=1).min())),
        )
    loss_here = [
        one.weights[at] * (1 - near) for at, near in zip(compared.here, near_here, strict=False)
    ]
    loss_there = [
        other.weights[at] * (1 - near) for at, near in zip(compared.there, near_there, strict=False)
    ]
    lost, more_lost = (
        sum(loss_here) if near_here else float(left),
        sum(loss_there) if near_there else float(right),
    )
    union = total + right
    return [
        *_ordered(1 - left / (total or 1), 1 - right / (more or 1)),
        *_ordered(1 - lost / (total or 1), 1 - more_lost / (more or 1)),
        (total - left) / (union or 1),
        *_ordered(lost / HEAVIEST, more_lost / HEAVIEST),
        *_ordered(
            max(loss_here, default=left) / HEAVIEST, max(loss_there, default=right) / HEAVIEST
        ),
        *_ordered(len(compared.here), len(compared.there)),
        *_ordered(_named(one, compared.here), _named(other, compared.there)),
        *_ordered(_numbers(one, compared.here), _numbers(other, compared.there)),
        *_ordered(left / HEAVIEST, right / HEAVIEST),
        round(nearest, 4),
        round(furthest, 4),
        float(compared.typos),
        compared.by_concept,
    ]


def _nearest(rows: NDArray[np.float32], others: NDArray[np.float32]) -> list[float]:
    """Return for each of these words how near the nearest word of the other question is, from 0.

    A word without a vector is near to none.
    """
    near = (rows @ others.T).max(axis=1)
    return [max(0.0, round(one, 4)) for one in near.tolist()]


def _named(side: Side, places: Sequence[int]) -> int:
    return len(set(places).intersection(side.names)) if side.names else 0


def _numbers(side: Side, places: Sequence[int]) -> int:
    return sum([side.stems[at][0].isdigit() for at in places])


def _shape(asked: Ready, stored: Ready, compared: Compared) -> list[float]:
    """Compare lengths, the common beginning and end, and the order of what matched."""
    one, other = asked.side, stored.side
    words, others = one.words, other.words
    least = min(len(words), len(others))
    before = _common(words, others)
    after = min(_common(words[::-1], others[::-1]), least - before)
    matched = sorted(compared.matched)
    turned = sum([later[1] < earlier[1] for earlier, later in pairwise(matched)])
    bigrams, more = asked.neighbours, stored.neighbours
    return [
        *_ordered(len(one.content), len(other.content)),
        *_ordered(len(words), len(others)),
        before / least,
        after / least,
        *_ordered(len(words) - before - after, len(others) - before - after),
        float(turned),
        2 * len(bigrams & more) / ((len(bigrams) + len(more)) or 1),
    ]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for word, opposite in zip(one, other, strict=False):
        if word != opposite:
            break
        count += 1
    return count
