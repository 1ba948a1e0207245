"""What two questions have in common, as numbers for the trees (pure).

All features are symmetric: the two questions may change places. Where a side matters, the smaller
and the larger of the two values are given. Weights say how rare a word is, from 0 to 1.
"""

from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from stampcache import guards
from stampcache.verifying.reading import HEAVIEST, Side, grams, text_of
from stampcache.verifying.table import Table
from stampcache.verifying.vocabulary import CLOSED

_CLASSES = ("negating", "scope", "time", "place", "modal", "person")
assert len(_CLASSES) == len(CLOSED)


_NONE = (0, 0)


def _both(name: str) -> tuple[str, str]:
    return f"{name}, less", f"{name}, more"


_SINGLE = tuple(name for name in guards.SIGNALS if not name.endswith((".extra", ".missing")))
_SIDED = tuple(name.removesuffix(".extra") for name in guards.SIGNALS if name.endswith(".extra"))
_AT = {name: at for at, name in enumerate(guards.SIGNALS)}
_single = itemgetter(*[_AT[name] for name in _SINGLE])
_extra = itemgetter(*[_AT[f"{name}.extra"] for name in _SIDED])
_missing = itemgetter(*[_AT[f"{name}.missing"] for name in _SIDED])

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
    """A side with what each comparison of it needs: its text, neighbours, vectors.

    ``vectors`` are the rows of its content words in the word table.
    """

    side: Side
    text: str
    neighbours: frozenset[tuple[str, str]]
    total: int
    vector: NDArray[np.float32]
    vectors: NDArray[np.float32]


class Asked(Struct, frozen=True):
    """The side that is compared with several others, and the runs of three signs in its words."""

    ready: Ready
    grams: frozenset[tuple[str, str, str]]


def ready(side: Side, table: Table) -> Ready:
    """Return a side that is to be compared."""
    return Ready(
        side,
        text_of(side.words),
        frozenset(pairwise(side.content)),
        sum(side.weights),
        np.frombuffer(side.vector, np.float32),
        table.vectors.take(side.rows, axis=0) if side.rows else table.vectors[:0],
    )


def asking(side: Side, table: Table) -> Asked:
    """Return a side that is to be compared more than once."""
    one = ready(side, table)
    return Asked(one, frozenset(grams(one.text)))


class Compared(Struct):
    """The unmatched words of both sides (their places), and what matched."""

    here: list[int]
    there: list[int]
    matched: list[tuple[int, int]]
    by_concept: float
    typos: int


def features(one: Side, other: Side, similarity: float, table: Table) -> list[float]:
    """Return the features of a pair in the order of ``NAMES``."""
    return compared(asking(one, table), ready(other, table), similarity)


def compared(asked: Asked, stored: Ready, similarity: float) -> list[float]:
    """Return the features of a pair whose sides were made ready."""
    shared = len(asked.grams.intersection(grams(stored.text)))
    here, there = asked.ready, stored
    if (here.side.words, here.side.names) > (there.side.words, there.side.names):
        # matching takes words in order, so the order must not be theirs
        here, there = there, here
    one, other = here.side, there.side
    matching = _compare(one, other)
    values = [
        round(similarity, 4),
        round(float(here.vector @ there.vector), 4),
        2 * shared / ((one.grams + other.grams) or 1),
    ]
    values += _covering(here, there, matching)
    values += _shape(here, there, matching)
    values += (one.kind == other.kind, *_ordered(one.kind, other.kind))
    for bits, others in zip(one.closed, other.closed, strict=True):
        if bits == others:
            values += _NONE
        else:
            values += _ordered((bits & ~others).bit_count(), (others & ~bits).bit_count())
    values.append(one.words == other.words)
    values += _signals(guards.weigh(one.profile, other.profile))
    return values


def _signals(seen: Sequence[float]) -> list[float]:
    """Return what the guards saw, with the smaller and the larger of the two sides of each."""
    values: list[float] = [*_single(seen)]
    for extra, missing in zip(_extra(seen), _missing(seen), strict=True):
        values += (extra, missing) if extra <= missing else (missing, extra)
    return values


def _ordered(one: float, other: float) -> tuple[float, float]:
    return (one, other) if one <= other else (other, one)


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
    there = sorted([at for left in places.values() for at in left])
    typos = 0
    for at in [*here] if there else ():
        stem = one.stems[at]
        for to in there:
            opposite = other.stems[to]
            if stem[0] == opposite[0] and mistyped(stem, opposite):
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
    """Weigh what of each side the other does not hold, and what may stand for it there."""
    one, other = asked.side, stored.side
    here, there = compared.here, compared.there
    heavy, more_heavy = [one.weights[at] for at in here], [other.weights[at] for at in there]
    left, right = sum(heavy), sum(more_heavy)
    total, more = asked.total or 1, stored.total or 1
    near = _near(asked, stored, here, there)
    loss = [weight * (1 - by) for weight, by in zip(heavy, near.here, strict=False)]
    more_loss = [weight * (1 - by) for weight, by in zip(more_heavy, near.there, strict=False)]
    lost, more_lost = sum(loss) if loss else left, sum(more_loss) if more_loss else right
    named, others = _named(one, here), _named(other, there)
    return [
        *_ordered(1 - left / total, 1 - right / more),
        *_ordered(1 - lost / total, 1 - more_lost / more),
        (asked.total - left) / ((asked.total + right) or 1),
        *_ordered(lost / HEAVIEST, more_lost / HEAVIEST),
        *_ordered(max(loss, default=left) / HEAVIEST, max(more_loss, default=right) / HEAVIEST),
        *_ordered(len(here), len(there)),
        *_ordered(len(named), len(others)),
        *_ordered(_numbers(one, named), _numbers(other, others)),
        *_ordered(left / HEAVIEST, right / HEAVIEST),
        round(near.nearest, 4),
        round(near.furthest, 4),
        compared.typos,
        compared.by_concept,
    ]


class Near(Struct):
    """How near the unmatched words of each side are to the nearest word of the other, from 0.

    Empty where the other side has no words of content. ``nearest`` and ``furthest`` are about
    unmatched words alone, 1 where one side has none.
    """

    here: Sequence[float] = ()
    there: Sequence[float] = ()
    nearest: float = 1.0
    furthest: float = 1.0


def _near(asked: Ready, stored: Ready, here: Sequence[int], there: Sequence[int]) -> Near:
    """Return how near words are by their vectors; a word without a vector is near to none.

    The matrices are so small that plain lists find their maxima sooner.
    """
    near = Near()
    if here and stored.side.rows:
        rows = _rows(asked, here)
        pairs: list[list[float]] = rows.dot(stored.vectors.T).tolist()
        near.here = nearest(pairs)
    if there and asked.side.rows:
        others = _rows(stored, there)
        near.there = nearest(others.dot(asked.vectors.T).tolist())
    if here and there:
        if len(there) < len(stored.side.rows):  # else it is the product that was made already
            pairs = rows.dot(others.T).tolist()
        best = [*map(max, pairs)]
        near.nearest = max(best)
        near.furthest = min(*best, *map(max, zip(*pairs, strict=True)))
    return near


def _rows(one: Ready, places: Sequence[int]) -> NDArray[np.float32]:
    """Return the vectors at these places, which mostly are all there are."""
    every = one.vectors
    return every if len(places) == len(every) else every.take(places, axis=0)


def nearest(near: Sequence[Sequence[float]]) -> list[float]:
    """Return the largest of each row, from 0, with four decimals.

    Rounding to a whole number is sooner done than to decimals, and no product is rounded, as these
    were float32.
    """
    return [max(0.0, round(max(row) * 1e4) / 1e4) for row in near]


def _named(side: Side, places: Sequence[int]) -> list[int]:
    return [at for at in side.names if at in places]


def _numbers(side: Side, named: Sequence[int]) -> int:
    """Count the numbers; whatever has a digit is among the names."""
    return sum([side.stems[at][0].isdigit() for at in named])


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
        turned,
        2 * len(bigrams & more) / ((len(bigrams) + len(more)) or 1),
    ]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for word, opposite in zip(one, other, strict=False):
        if word != opposite:
            break
        count += 1
    return count
