"""Which two words may stand for each other, and which say opposite things (pure)."""

from collections.abc import Sequence

from stampcache.guards import synonyms
from stampcache.guards import words as tables
from stampcache.guards.tokens import fold

_TYPO_LETTERS = 4
_TYPO_CHANGE_LETTERS = 6
_PREFIXED_LETTERS = 2
_ENDINGS = frozenset({"ful", fold("less")})  # hopeful, hopeless
_OPPOSITES = frozenset(
    [
        side
        for one, other in [map(fold, pair.split("/")) for pair in tables.OPPOSITES.split()]
        for side in ((one, other), (other, one))
    ]
)
POLAR = frozenset([one for one, _ in _OPPOSITES])
"""Folded words that have an opposite in the table."""
_SYNONYMS = frozenset(
    [
        (fold(one), fold(other))
        for group in synonyms.GROUPS.split("|")
        for one in group.split()
        for other in group.split()
    ]
)
_REWORDED = frozenset([one for one, _ in _SYNONYMS])


def opposite(one: str, other: str) -> bool:
    """Tell whether two folded words are opposites: enable and disable, happy and unhappy."""
    if one in POLAR and (one, other) in _OPPOSITES:
        return True
    ending = one[-3:]
    if ending in _ENDINGS and other[-3:] != ending and other[-3:] in _ENDINGS:
        return one[:-3] == other[:-3]
    short, long = (one, other) if len(one) < len(other) else (other, one)
    if len(short) <= _PREFIXED_LETTERS or not long.endswith(short):
        return False
    return long[: -len(short)] in tables.OPPOSING_PREFIXES


def alike(one: str, other: str) -> bool:
    """Tell whether two folded words are synonyms, or one is the other mistyped."""
    if one in _REWORDED and (one, other) in _SYNONYMS:
        return True
    short, long = (one, other) if len(one) < len(other) else (other, one)
    if len(short) < _TYPO_LETTERS or len(long) - len(short) > 1:
        return False
    if short[0] != long[0]:  # most pairs end here
        return short[:2] == long[1::-1] and short[2:] == long[2:]
    before = common(short, long)
    rest, longer = short[before:], long[before:]
    if len(short) == len(long):
        swapped = rest[:2] == longer[1::-1] and rest[2:] == longer[2:]
        changed = rest[1:] == longer[1:] and len(short) >= _TYPO_CHANGE_LETTERS
        return swapped or changed
    return rest == longer[1:]


def flipped(here: Sequence[str], there: Sequence[str]) -> list[tuple[str, str]]:
    """Return which words of one side are opposites of which of the other, in their order."""
    found: list[tuple[str, str]] = []
    for one in here:
        # all other opposites end alike, so that most pairs need no comparison
        listed, last = one in POLAR or one[-3:] in _ENDINGS, one[-1:]
        found += [
            (one, other)
            for other in there
            if (listed or other[-1:] == last) and opposite(one, other)
        ]
    return found


def replaceable(one: str, others: Sequence[str]) -> bool:
    """Tell whether one of the other words is a synonym of this one, or the same mistyped."""
    listed, length = one in _REWORDED, len(one)
    if not listed and length < _TYPO_LETTERS:
        return False
    near = [other for other in others if listed or -1 <= len(other) - length <= 1]
    return any(alike(one, other) for other in near)


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return at how many places from the beginning the two hold the same."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
