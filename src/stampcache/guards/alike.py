"""Which two words may stand for each other, and which say opposite things (pure)."""

from collections.abc import Iterable, Sequence

from stampcache.guards import synonyms
from stampcache.guards import words as tables
from stampcache.guards.tokens import fold

_TYPO_LETTERS = 4
_TYPO_CHANGE_LETTERS = 6
_PREFIXED_LETTERS = 3
_ENDINGS = frozenset({"ful", fold("less")})  # hopeful, hopeless


def _table(groups: Iterable[Sequence[str]]) -> dict[str, frozenset[str]]:
    """Return the words of all groups that each folded word is in, in folded form."""
    found: dict[str, set[str]] = {}
    for group in groups:
        words = [fold(word) for word in group]
        for word in words:
            found.setdefault(word, set()).update(words)
    return {word: frozenset(others) for word, others in found.items()}


_OPPOSITES = {
    word: others - {word}
    for word, others in _table([pair.split("/") for pair in tables.OPPOSITES.split()]).items()
}
POLAR = frozenset(_OPPOSITES)
"""Folded words that have an opposite in the table."""
_SYNONYMS = _table([group.split() for group in synonyms.GROUPS.split("|")])


def opposite(one: str, other: str) -> bool:
    """Tell whether two folded words are opposites: enable and disable, happy and unhappy."""
    if other in _OPPOSITES.get(one, ()):
        return True
    ending = one[-3:]
    if ending in _ENDINGS and other[-3:] != ending and other[-3:] in _ENDINGS:
        return one[:-3] == other[:-3]
    short, long = (one, other) if len(one) < len(other) else (other, one)
    if len(short) < _PREFIXED_LETTERS or not long.endswith(short):
        return False
    return long[: -len(short)] in tables.OPPOSING_PREFIXES


def flipped(here: Sequence[str], there: Sequence[str]) -> list[tuple[str, str]]:
    """Return which words of one side are opposites of which of the other, in their order."""
    found: list[tuple[str, str]] = []
    ends = {other[-_PREFIXED_LETTERS:] for other in there}
    for one in here:
        # with a prefix they end alike, so that most words need no comparison with each other one
        end, listed = one[-_PREFIXED_LETTERS:], _OPPOSITES.get(one)
        if end in ends or end in _ENDINGS or (listed and not listed.isdisjoint(there)):
            found += [(one, other) for other in there if opposite(one, other)]
    return found


def replaceable(one: str, others: Sequence[str]) -> bool:
    """Tell whether one of the other folded words is a synonym of this one, or the same mistyped."""
    listed, length = _SYNONYMS.get(one), len(one)
    if listed and not listed.isdisjoint(others):
        return True
    if length < _TYPO_LETTERS:
        return False
    begin = one[:2]  # a mistyped word begins with one of these
    for other in others:
        if other[0] in begin and -1 <= len(other) - length <= 1 and _mistyped(one, other):
            return True
    return False


def _mistyped(one: str, other: str) -> bool:
    """Tell whether two words of like length differ by a letter left out, changed or moved on."""
    short, long = (one, other) if len(one) < len(other) else (other, one)
    if len(short) < _TYPO_LETTERS:
        return False
    if short[0] != long[0]:
        return short[:2] == long[1::-1] and short[2:] == long[2:]
    before = common(short, long)
    rest, longer = short[before:], long[before:]
    if len(short) == len(long):
        swapped = rest[:2] == longer[1::-1] and rest[2:] == longer[2:]
        changed = rest[1:] == longer[1:] and len(short) >= _TYPO_CHANGE_LETTERS
        return swapped or changed
    return rest == longer[1:]


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return at how many places from the beginning the two hold the same."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
