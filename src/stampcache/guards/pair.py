"""Sees, from the words alone, that two questions are not the same one (pure).

For English; in Chinese numbers, negations and Latin names are seen. Embeddings place "python 3.11"
next to "python 3.12" and "enable" next to "disable". A guard looks at just such differences. It
says nothing about questions that share no words: similarity is there for that. The stored side of
a comparison can be profiled once. See ADR 0006.
"""

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from stampcache.guards import words as tables
from stampcache.guards.profile import Profile, fold, parts, profile


class Guard(enum.Enum):
    """What kind of difference was seen; the value is the word for tables and logs."""

    NEGATION = "negation"
    NUMBER = "number"
    UNIT = "unit"
    NAME = "name"
    CODE = "code"
    ANTONYM = "antonym"
    SUBSTITUTION = "substitution"
    DIRECTION = "direction"


class Finding(Struct, frozen=True):
    """One difference: what the asked and what the stored question say (empty: nothing)."""

    guard: Guard
    asked: str
    stored: str

    def __str__(self) -> str:
        """Print as ``number: asked "3.11", stored "3.12"``."""
        asked = f'"{self.asked}"' if self.asked else "nothing"
        stored = f'"{self.stored}"' if self.stored else "nothing"
        return f"{self.guard.value}: asked {asked}, stored {stored}"


_WIDEST = 2
_WIDEST_TURN = 3
_TYPO_LETTERS = 4
_TYPO_CHANGE_LETTERS = 6
_PREFIXED_LETTERS = 2
_ACRONYM_LETTERS = 3
_ARTICLES = frozenset({"a", "an", "the"})
_DEGREES = frozenset([fold(word) for word in tables.DEGREES])
_ENDINGS = frozenset({"ful", fold("less")})  # hopeful, hopeless
_ASKING = frozenset([fold(word) for word in tables.ASKING])
_SYMMETRIC = frozenset([fold(word) for word in tables.SYMMETRIC])
_OPPOSITES = frozenset(
    [
        side
        for one, other in [map(fold, pair.split("/")) for pair in tables.OPPOSITES.split()]
        for side in ((one, other), (other, one))
    ]
)
_POLAR = frozenset([one for one, _ in _OPPOSITES])
_SYNONYMS = frozenset(
    [
        (fold(one), fold(other))
        for group in (*tables.SYNONYMS.splitlines(), *tables.MEASURES.splitlines())
        for one in group.split()
        for other in group.split()
    ]
)
_MEASURES = {
    fold(word): group.split()[0] for group in tables.MEASURES.splitlines() for word in group.split()
}


def findings(asked: str, stored: str) -> tuple[Finding, ...]:
    """Return the differences seen between two questions, at most one of each kind.

    Empty means that no difference was seen, not that the questions are the same. If the two change
    places, the sides of each finding do and nothing else.
    """
    return () if asked == stored else compare(profile(asked), profile(stored))


def profile_entry(entry_id: str, question: str) -> Profile:
    """Return the profile of a stored question; callers may remember it by the entry's id."""
    del entry_id  # only distinguishes entries, so that nothing is shared between tenants
    return profile(question)


class Asked:
    """A question that is compared with stored ones: profiled once, and only if it has to be.

    ``profile_stored`` gives the profile of an entry's question, as `profile_entry` does.
    """

    def __init__(
        self, question: str, profile_stored: Callable[[str, str], Profile] = profile_entry
    ) -> None:
        self._question = question
        self._profile_stored = profile_stored
        self._profile: Profile | None = None

    def findings(self, stored: str, entry_id: str) -> tuple[Finding, ...]:
        """Return what `findings` returns for this question and the one stored with an entry."""
        if self._question == stored:
            return ()
        if self._profile is None:
            self._profile = profile(self._question)
        return compare(self._profile, self._profile_stored(entry_id, stored))

    def vetoes(self, stored: str, entry_id: str) -> tuple[Finding, ...]:
        """Return those findings that no score of a verifier overrules."""
        return self.findings(stored, entry_id)


def compare(asked: Profile, stored: Profile) -> tuple[Finding, ...]:
    """Return what `findings` returns, for questions that were profiled before."""
    seen = (
        *_polarity(asked, stored),
        _numbers(asked, stored),
        _units(asked, stored),
        _names(asked, stored),
        _codes(asked, stored),
    )
    found = tuple([finding for finding in seen if finding is not None])
    if found or asked.han or stored.han:
        return found
    moved = _substitution(asked, stored) or _direction(asked, stored)
    return (moved,) if moved else ()


def _finding(guard: Guard, asked: Collection[str], stored: Collection[str]) -> Finding:
    return Finding(guard, ", ".join(asked), ", ".join(stored))


def _written(folded: Iterable[str], side: Profile) -> list[str]:
    """Return words as the question wrote them."""
    return [side.known.get(word) or word for word in folded]


def _polarity(asked: Profile, stored: Profile) -> Iterator[Finding | None]:
    """See negations by parity, and opposites; one of each cancels ("not invisible", "visible")."""
    negated = len(asked.negations) % 2 != len(stored.negations) % 2
    here, there = _surplus(asked, stored), _surplus(stored, asked)
    flips = [(one, other) for one in here for other in there if _opposite(one, other)]
    degrees = sum(one in _DEGREES and other in _DEGREES for one, other in flips)
    if negated + degrees == 1 and len(flips) - degrees == 1:
        return
    yield _finding(Guard.NEGATION, asked.negations, stored.negations) if negated else None
    if flips:
        flipped = {word for pair in flips for word in pair}
        yield _finding(
            Guard.ANTONYM,
            _written([word for word in here if word in flipped], asked),
            _written([word for word in there if word in flipped], stored),
        )


def _surplus(side: Profile, other: Profile) -> list[str]:
    """Return the words that the other question lacks, or has fewer of if they have an opposite."""
    return [
        word
        for word in dict.fromkeys(side.words)
        if word not in other.known
        or (word in _POLAR and side.words.count(word) > other.words.count(word))
    ]


def _opposite(one: str, other: str) -> bool:
    if (one, other) in _OPPOSITES:
        return True
    if {one[-3:], other[-3:]} == _ENDINGS:
        return one[:-3] == other[:-3]
    short, long = sorted((one, other), key=len)
    prefix = long.removesuffix(short)
    return len(short) > _PREFIXED_LETTERS and prefix in tables.OPPOSING_PREFIXES


def _numbers(asked: Profile, stored: Profile) -> Finding | None:
    here = [value for value in asked.numbers if value not in stored.numbers]
    there = [value for value in stored.numbers if value not in asked.numbers]
    small = asked.small_numbers.issuperset(here) and stored.small_numbers.issuperset(there)
    if not (here or there) or (small and not (here and there)):
        return None
    return _finding(
        Guard.NUMBER, [asked.numbers[n] for n in here], [stored.numbers[n] for n in there]
    )


def _units(asked: Profile, stored: Profile) -> Finding | None:
    """See that both questions measure, but in units of which the other has none."""
    if not asked.numbers or not stored.numbers:
        return None
    one = {_MEASURES[word]: word for word in asked.words if word in _MEASURES}
    other = {_MEASURES[word]: word for word in stored.words if word in _MEASURES}
    here = [word for unit, word in one.items() if unit not in other]
    there = [word for unit, word in other.items() if unit not in one]
    if not here or not there:
        return None
    return _finding(Guard.UNIT, _written(here, asked), _written(there, stored))


def _names(asked: Profile, stored: Profile) -> Finding | None:
    here, there = _unknown_names(asked, stored), _unknown_names(stored, asked)
    return _finding(Guard.NAME, here, there) if here or there else None


def _unknown_names(side: Profile, other: Profile) -> list[str]:
    missing = {name: shown for name, shown in side.names.items() if name not in other.known}
    if not missing:
        return []
    spelled = {*_spelled_out(side, other), *_spelled_out(other, side)}
    return [
        shown
        for name, shown in missing.items()
        if name not in spelled and not any(_alike(name, word) for word in other.known)
    ]


def _spelled_out(side: Profile, other: Profile) -> Iterator[str]:
    """Yield the acronyms of one side that the other spells out, and the words it does that with."""
    initials = "".join([word[0] for word in other.words])
    capitals = [*other.names]
    name_initials = "".join([name[0] for name in capitals])
    for name, shown in side.names.items():
        if not shown.rstrip("s.").isupper():
            continue
        for letters, words in ((initials, other.words), (name_initials, capitals)):
            at = letters.find(name)
            if at >= 0 and (len(name) >= _ACRONYM_LETTERS or words is capitals):
                yield name
                yield from words[at : at + len(name)]


def _codes(asked: Profile, stored: Profile) -> Finding | None:
    here, there = _unknown_codes(asked, stored), _unknown_codes(stored, asked)
    return _finding(Guard.CODE, here, there) if here and there else None


def _unknown_codes(side: Profile, other: Profile) -> list[str]:
    return [
        shown
        for code, shown in side.codes.items()
        if code not in other.codes
        and not all(part in other.known for part in parts(code) or (code,))
    ]


def _substitution(asked: Profile, stored: Profile) -> Finding | None:
    """See one thing put in the place of another while everything around it is the same."""
    one, other = asked.content, stored.content
    if one == other:
        return _reasked(asked, stored)
    before = _common(one, other)
    one, other = one[before:], other[before:]
    after = _common(one[::-1], other[::-1])
    width = max(len(one), len(other)) - after
    if width > _WIDEST or (before + after < width and not _same_frame(asked, stored, width)):
        return None
    here = _unmatched(one[: len(one) - after], stored)
    there = _unmatched(other[: len(other) - after], asked)
    if not here or not there:
        return None
    return _finding(Guard.SUBSTITUTION, _written(here, asked), _written(there, stored))


def _same_frame(asked: Profile, stored: Profile, width: int) -> bool:
    """Tell whether two short questions differ in so many words and in nothing else."""
    if len(asked.words) != len(stored.words):
        return False
    pairs = zip(asked.words, stored.words, strict=True)
    return sum(one != other for one, other in pairs) == width < len(asked.words)


def _reasked(asked: Profile, stored: Profile) -> Finding | None:
    """See that the same thing is asked about with another question word: when, where."""
    here = [word for word in asked.words if word in _ASKING]
    there = [word for word in stored.words if word in _ASKING]
    if len(here) != 1 or len(there) != 1 or here == there:
        return None
    return _finding(Guard.SUBSTITUTION, _written(here, asked), _written(there, stored))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return at how many places from the beginning the two hold the same word."""
    count = 0
    for word, opposite in zip(one, other, strict=False):
        if word != opposite:
            break
        count += 1
    return count


def _unmatched(words: Sequence[str], other: Profile) -> list[str]:
    return [
        word
        for word in words
        if word not in other.known and not any(_alike(word, known) for known in other.known)
    ]


def _alike(one: str, other: str) -> bool:
    """Tell whether two folded words are synonyms, or one is the other mistyped.

    Opposites count as well: whether they make a difference has been judged before.
    """
    if (one, other) in _SYNONYMS or _opposite(one, other):
        return True
    short, long = sorted((one, other), key=len)
    if len(short) < _TYPO_LETTERS or len(long) - len(short) > 1:
        return False
    before = _common(short, long)
    rest, longer = short[before:], long[before:]
    if len(short) == len(long):
        swapped = rest[:2] == longer[1::-1] and rest[2:] == longer[2:]
        changed = rest[1:] == longer[1:] and len(short) >= _TYPO_CHANGE_LETTERS and before > 0
        return swapped or changed
    return before > 0 and rest == longer[1:]


def _direction(asked: Profile, stored: Profile) -> Finding | None:
    """See two parts of the question change places around a third: "from A to B", "from B to A"."""
    one = [word for word in asked.words if word not in _ARTICLES]
    other = [word for word in stored.words if word not in _ARTICLES]
    if sorted(one) != sorted(other) or not _SYMMETRIC.isdisjoint(one):
        return None
    before = _common(one, other)
    after = _common(one[before:][::-1], other[before:][::-1])
    one, other = one[before : len(one) - after], other[before : len(other) - after]
    for left in range(1, min(_WIDEST_TURN + 1, len(one))):
        for right in range(1, min(_WIDEST_TURN + 1, len(one) - left)):
            x, middle, y = one[:left], one[left:-right], one[-right:]
            if other == [*y, *middle, *x]:
                return Finding(
                    Guard.DIRECTION,
                    " ".join(_written(one, asked)),
                    " ".join(_written(other, stored)),
                )
    return None
