"""Sees, from the words alone, that two questions are not the same one (pure).

For English; in Chinese amounts, dates, negations, places, names, directions and the common words
of scope, time and question are seen. Embeddings place "python 3.11" next to "python 3.12" and
"enable" next to "disable". A guard looks at just such differences. It says nothing about questions
that share no words: similarity is there for that. The stored side of a comparison can be profiled
once. See ADR 0006 and ADR 0023.
"""

import enum
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from stampcache.guards import order
from stampcache.guards import words as tables
from stampcache.guards.alike import common
from stampcache.guards.differing import Differences, Sides, differences
from stampcache.guards.profile import Profile, profile
from stampcache.guards.signs import apart
from stampcache.guards.tokens import fold


class Guard(enum.Enum):
    """What kind of difference was seen; the value is the word for tables and logs."""

    NEGATION = "negation"
    ANTONYM = "antonym"
    COMPARATIVE = "comparative"
    NUMBER = "number"
    UNIT = "unit"
    CURRENCY = "currency"
    DATE = "date"
    VERSION = "version"
    NAME = "name"
    CODE = "code"
    SCOPE = "scope"
    LANGUAGE = "language"
    AUDIENCE = "audience"
    FORM = "form"
    QUESTION = "question"
    TENSE = "tense"
    MODIFIER = "modifier"
    DIRECTION = "direction"
    SUBSTITUTION = "substitution"


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


DEGREES = frozenset([fold(word) for word in tables.DEGREES])
COMPARED = frozenset([fold(word) for word in tables.COMPARED])
_CUED = (Guard.COMPARATIVE, Guard.DATE, Guard.SCOPE, Guard.LANGUAGE, Guard.AUDIENCE, Guard.FORM)
_AMOUNTS = (Guard.NUMBER, Guard.UNIT, Guard.CURRENCY, Guard.DATE, Guard.VERSION)
_ASKED_APART = frozenset(
    f"asks.{kind}" for kind in (
        "who", "when", "where", "why", "how", "how much", "how long", "how often", "how old", "how far"
    )
)  # fmt: skip
_PRONOUNS = frozenset({"he", "she", "his", "her", "him", "hers"})


def findings(asked: str, stored: str) -> tuple[Finding, ...]:
    """Return the differences seen between two questions, at most one of each kind.

    Empty means that no difference was seen, not that the questions are the same. If the two change
    places, the sides of each finding do and nothing else.
    """
    return () if asked == stored else compare(profile(asked), profile(stored))


def compare(asked: Profile, stored: Profile) -> tuple[Finding, ...]:
    """Return what `findings` returns, for questions that were profiled before."""
    return judge(asked, stored, differences(asked, stored))


def judge(asked: Profile, stored: Profile, seen: Differences) -> tuple[Finding, ...]:
    """Return the differences that matter, of all that were seen between two profiles."""
    found = {finding.guard: finding for finding in _each(asked, stored, seen)}
    same_words = asked.words == stored.words and asked.signs == stored.signs
    if apart(asked.operators, stored.operators, same_words=same_words):
        found.setdefault(Guard.CODE, _finding(Guard.CODE, asked.operators, stored.operators))
    if not found:
        moved = _aligned(asked, stored, seen)
        if moved:
            return (moved,)
    return tuple([found[guard] for guard in Guard if guard in found])


def _each(asked: Profile, stored: Profile, seen: Differences) -> Iterator[Finding]:
    yield from _polarity(asked, stored, seen)
    for guard in _CUED:
        sides = seen.cues.get(guard.value)
        if sides and _matters(sides):
            yield _cued(guard, asked, stored, sides)
    for guard in _AMOUNTS:
        sides = seen.amounts.get(guard.value)
        if sides:
            yield _finding(guard, sides.asked, sides.stored)
    if not (seen.names.asked or seen.names.stored):
        yield from _referred(asked, stored)
    else:
        yield _finding(Guard.NAME, seen.names.asked, seen.names.stored)
    if seen.codes.asked and seen.codes.stored:
        yield _finding(Guard.CODE, seen.codes.asked, seen.codes.stored)


def _referred(asked: Profile, stored: Profile) -> Iterator[Finding]:
    """See "his" where the other question repeats the name of one of two people."""
    if len(asked.names) < 2 or _PRONOUNS.isdisjoint((*asked.words, *stored.words)):
        return
    here, there = _repeated(asked, stored), _repeated(stored, asked)
    one = [word for word in asked.words if word in _PRONOUNS and word not in stored.known]
    other = [word for word in stored.words if word in _PRONOUNS and word not in asked.known]
    if (one and there) or (other and here):
        yield _finding(Guard.NAME, _written(here or one, asked), _written(there or other, stored))


def _repeated(side: Profile, other: Profile) -> list[str]:
    """Return the names that one question says more often than the other, which says them too."""
    return [name for name in side.names if side.words.count(name) > other.words.count(name) > 0]


def _finding(guard: Guard, asked: Collection[str], stored: Collection[str]) -> Finding:
    return Finding(guard, ", ".join(asked), ", ".join(stored))


def _written(folded: Iterable[str], side: Profile) -> list[str]:
    """Return words as the question wrote them."""
    return [side.known.get(word) or word for word in folded]


def _cued(guard: Guard, asked: Profile, stored: Profile, sides: Sides) -> Finding:
    mine, theirs = asked.cues.get(guard.value, {}), stored.cues.get(guard.value, {})
    return _finding(
        guard, [mine[each] for each in sides.asked], [theirs[each] for each in sides.stored]
    )


def _polarity(asked: Profile, stored: Profile, seen: Differences) -> Iterator[Finding]:
    """See negations by parity, and opposites; one of each cancels ("not invisible", "visible")."""
    flips = seen.flips
    degrees = sum(one in DEGREES and other in DEGREES for one, other in flips)
    if seen.negated + degrees == 1 and len(flips) - degrees == 1:
        return
    if seen.negated:
        yield _finding(Guard.NEGATION, asked.negations, stored.negations)
    bounds = {
        *asked.cues.get("comparative", {}).values(),
        *stored.cues.get("comparative", {}).values(),
    }
    flips = [flip for flip in flips if not bounds.issuperset(flip)]
    if flips:
        compared = all(one in COMPARED and other in COMPARED for one, other in flips)
        yield _finding(
            Guard.COMPARATIVE if compared else Guard.ANTONYM,
            _written(dict.fromkeys([one for one, _ in flips]), asked),
            _written(dict.fromkeys([other for _, other in flips]), stored),
        )


def _matters(sides: Sides) -> bool:
    """Tell whether cues conflict in a family, or one of them changes the answer by itself."""
    if any(each[-1] == "!" for each in (*sides.asked, *sides.stored)):
        return True
    return conflicts(sides) > 0


def conflicts(sides: Sides) -> int:
    """Return in how many families two questions mean different things by their cues."""
    if not sides.asked or not sides.stored:
        return 0
    mine, theirs = _families(sides.asked), _families(sides.stored)
    both = [family for family in mine if family in theirs]
    return sum([_conflict(mine[family], theirs[family]) for family in both])


def _families(meanings: Iterable[str]) -> Mapping[str, str]:
    return dict([each.split(".", 1) for each in meanings])


def _conflict(one: str, other: str) -> bool:
    """Tell whether two meanings of a family exclude each other: "now" may well be "this year"."""
    if "now" not in (one, other):
        return True
    short, long = sorted((one, other))
    return not (short == "now" and long.startswith("this "))


def _aligned(asked: Profile, stored: Profile, seen: Differences) -> Finding | None:
    """See what matters only where all else is the same: order, question word, tense, one word."""
    if order.turned(asked, stored):
        return _direction(asked, stored)
    for guard, decide in ((Guard.QUESTION, _reasked), (Guard.TENSE, _other_time)):
        sides = seen.cues.get(guard.value)
        if sides and decide(sides) and not _left(asked, stored, seen, guard):
            return _cued(guard, asked, stored, sides)
    if asked.han or stored.han:
        return None
    if seen.cues.keys().isdisjoint(("question", "tense")) and order.narrowed(asked, stored):
        return _finding(
            Guard.MODIFIER, _written(seen.rest.asked, asked), _written(seen.rest.stored, stored)
        )
    one, other = order.put_in_place(asked, stored)
    flipped = {word for flip in seen.flips for word in flip}
    here = [word for word in one if word in seen.rest.asked and word not in flipped]
    there = [word for word in other if word in seen.rest.stored and word not in flipped]
    if not here or not there:
        return None
    return _finding(Guard.SUBSTITUTION, _written(here, asked), _written(there, stored))


def _left(asked: Profile, stored: Profile, seen: Differences, guard: Guard) -> bool:
    """Tell whether more differs than the words by which a guard saw its difference."""
    cues = [
        *asked.cues.get(guard.value, {}).values(), *stored.cues.get(guard.value, {}).values()
    ]  # fmt: skip
    if asked.han or stored.han:
        one, other = asked.signs, stored.signs
        for cue in cues:
            one, other = one.replace(cue, ""), other.replace(cue, "")
        return one != other
    spoken = {fold(word) for cue in cues for word in cue.split()}
    return not spoken.issuperset((*seen.rest.asked, *seen.rest.stored))


def _reasked(sides: Sides) -> bool:
    return _ASKED_APART.issuperset((*sides.asked, *sides.stored)) and bool(
        sides.asked and sides.stored
    )


def _other_time(sides: Sides) -> bool:
    changes = [each for each in (*sides.asked, *sides.stored) if each[-1] == "!"]
    return bool(changes) or bool(sides.asked and sides.stored)


def _direction(asked: Profile, stored: Profile) -> Finding:
    if asked.han and stored.han:
        return Finding(Guard.DIRECTION, asked.signs, stored.signs)
    one, other = asked.words, stored.words
    before = common(one, other)
    after = common(one[before:][::-1], other[before:][::-1])
    return Finding(
        Guard.DIRECTION,
        " ".join(_written(one[before : len(one) - after], asked)),
        " ".join(_written(other[before : len(other) - after], stored)),
    )
