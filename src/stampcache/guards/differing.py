"""All that differs between two profiled questions, before it is judged what of it matters (pure)."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from stampcache.guards.alike import POLAR, flipped, replaceable
from stampcache.guards.amounts import Amount
from stampcache.guards.cues import FOLDED
from stampcache.guards.measures import CURRENCIES
from stampcache.guards.profile import Profile
from stampcache.guards.tokens import fold, parts


class Sides(Struct, frozen=True, gc=False):
    """What only the asked and only the stored question say of one kind, as it was written."""

    asked: Sequence[str] = ()
    stored: Sequence[str] = ()


class Differences(Struct, frozen=True):
    """Everything that differs in a pair, by what kind of thing it is.

    ``amounts`` by guard, ``cues`` by guard as meanings; ``rest`` are folded words of content that
    the other question has in no form.
    """

    negated: bool
    flips: Sequence[tuple[str, str]]
    amounts: dict[str, Sides]
    names: Sides
    codes: Sides
    cues: dict[str, Sides]
    rest: Sides


_ACRONYM_LETTERS = 3
_ENOUGH = (
    64  # words of each side that are compared with each other, so that long texts take no time
)
_SPOKEN = frozenset({"audience", "language"})


def differences(asked: Profile, stored: Profile) -> Differences:
    """Return all that differs between two profiled questions, in the order of their words."""
    here, there = _surplus(asked, stored), _surplus(stored, asked)
    return Differences(
        negated=len(asked.negations) % 2 != len(stored.negations) % 2,
        flips=flipped(here, there),
        amounts=_amounts(asked, stored),
        names=Sides(_unknown_names(asked, stored, there), _unknown_names(stored, asked, here)),
        codes=Sides(_unknown_codes(asked, stored), _unknown_codes(stored, asked)),
        cues=_cues(asked, stored),
        rest=_rest(asked, stored, here, there),
    )


def _surplus(side: Profile, other: Profile) -> list[str]:
    """Return the words that the other question lacks, or has fewer of if they have an opposite."""
    known = other.known
    lacking = [
        word
        for word in dict.fromkeys(side.words)
        if word not in known or (word in POLAR and side.words.count(word) > other.words.count(word))
    ]
    return lacking[:_ENOUGH]


def _rest(asked: Profile, stored: Profile, here: Sequence[str], there: Sequence[str]) -> Sides:
    """Return the words of content on each side that no word of the other side can stand for."""
    one = [word for word in here if word in asked.content]
    other = [word for word in there if word in stored.content]
    if one and other:
        equal = _worded_otherwise(asked, stored)
        one = [word for word in one if word not in equal]
        other = [word for word in other if word not in equal]
    return Sides(
        [word for word in one if not replaceable(word, there)],
        [word for word in other if not replaceable(word, here)],
    )


def _worded_otherwise(asked: Profile, stored: Profile) -> set[str]:
    """Return the words of amounts and cues that both questions hold, however they say them."""
    shown = [
        each.numbers[form].shown
        for form in asked.numbers.keys() & stored.numbers.keys()
        for each in (asked, stored)
    ]
    for guard in asked.cues.keys() & stored.cues.keys():
        mine, theirs = asked.cues[guard], stored.cues[guard]
        for meaning in mine.keys() & theirs.keys():
            shown += mine[meaning], theirs[meaning]
    return {FOLDED.get(word) or fold(word) for text in shown for word in text.split()}


def _amounts(asked: Profile, stored: Profile) -> dict[str, Sides]:
    if not (asked.numbers or stored.numbers or asked.units):
        return {}
    found: dict[str, Sides] = {}
    here = [one for form, one in asked.numbers.items() if form not in stored.numbers]
    there = [one for form, one in stored.numbers.items() if form not in asked.numbers]
    if here and there:
        found.update(_units(asked, stored, here, there))
        digits = {one.digits for one in here} & {one.digits for one in there} - {""}
        here = [one for one in here if one.digits not in digits]
        there = [one for one in there if one.digits not in digits]
    elif asked.units and stored.units:
        found.update(_units(asked, stored, (), ()))
    if here or there:
        found.update(_counted(here, there))
    return found


def _units(
    asked: Profile, stored: Profile, here: Sequence[Amount], there: Sequence[Amount]
) -> dict[str, Sides]:
    """See equal numbers of other units, and units alone of which the other question has none."""
    pairs = [
        (one, other)
        for one in here
        for other in there
        if one.digits == other.digits and one.unit and other.unit
    ]
    mine = [one.shown for one, _ in pairs]
    theirs = [other.shown for _, other in pairs]
    currency = any(one.guard == other.guard == "currency" for one, other in pairs)
    alone, apart = _strange(asked, stored), _strange(stored, asked)
    if alone and apart:
        mine += [asked.units[unit] for unit in alone]
        theirs += [stored.units[unit] for unit in apart]
        currency = currency or CURRENCIES.issuperset(alone)
    return {"currency" if currency else "unit": Sides(mine, theirs)} if mine else {}


def _strange(side: Profile, other: Profile) -> list[str]:
    return [
        unit
        for unit in side.units
        if unit not in other.units and all(one.unit != unit for one in other.numbers.values())
    ]


def _counted(here: Sequence[Amount], there: Sequence[Amount]) -> dict[str, Sides]:
    """Return amounts by guard; those that were spelled out and one side lacks are ``small``."""
    if not (here and there) and all(one.small for one in (*here, *there)):
        return {"small": Sides([one.shown for one in here], [one.shown for one in there])}
    sides: dict[str, Sides] = {}
    for guard in sorted({one.guard for one in (*here, *there)}):
        mine = [one.shown for one in here if one.guard == guard]
        theirs = [one.shown for one in there if one.guard == guard]
        sides[guard] = Sides(mine, theirs)
    return _named(sides)


def _named(sides: dict[str, Sides]) -> dict[str, Sides]:
    """Put "3.11" beside "version 3.12": a number of one side is of the kind that the other says."""
    plain = sides.get("number")
    if plain is None or len(sides) != 2:
        return sides
    guard = next(guard for guard in sides if guard != "number")
    other = sides[guard]
    if (plain.asked and not plain.stored and other.stored and not other.asked) or (
        plain.stored and not plain.asked and other.asked and not other.stored
    ):
        return {guard: Sides(other.asked or plain.asked, other.stored or plain.stored)}
    return sides


def _unknown_names(side: Profile, other: Profile, strange: Sequence[str]) -> list[str]:
    missing = {name: shown for name, shown in side.names.items() if name not in other.known}
    if not missing:
        return []
    spelled = {*_spelled_out(side, other), *_spelled_out(other, side)}
    return [
        shown
        for name, shown in [*missing.items()][:_ENOUGH]
        if not (name in spelled or replaceable(name, strange) or flipped([name], strange))
    ]


def _spelled_out(side: Profile, other: Profile) -> Iterator[str]:
    """Yield the acronyms of one side that the other spells out, and the words it does that with."""
    acronyms = [name for name, shown in side.names.items() if shown.rstrip("s.").isupper()]
    if not acronyms:
        return
    capitals = [*other.names]
    initials = "".join([word[0] for word in other.words])
    name_initials = "".join([name[0] for name in capitals])
    for name in acronyms:
        for letters, words in ((initials, other.words), (name_initials, capitals)):
            at = letters.find(name)
            if at >= 0 and (len(name) >= _ACRONYM_LETTERS or words is capitals):
                yield name
                yield from words[at : at + len(name)]


def _unknown_codes(side: Profile, other: Profile) -> list[str]:
    return [
        shown
        for code, shown in side.codes.items()
        if code not in other.codes
        and not all(part in other.known for part in parts(code) or (code,))
    ]


def _cues(asked: Profile, stored: Profile) -> dict[str, Sides]:
    found: dict[str, Sides] = {}
    for guard in {**asked.cues, **stored.cues}:
        mine, theirs = asked.cues.get(guard, {}), stored.cues.get(guard, {})
        if mine.keys() != theirs.keys():
            here, there = _said(mine, theirs, stored, guard), _said(theirs, mine, asked, guard)
            if here or there:
                found[guard] = Sides(here, there)
    return found


def _said(
    mine: Mapping[str, str], theirs: Mapping[str, str], other: Profile, guard: str
) -> list[str]:
    """Return meanings that the other question lacks; "for children" is there where "children" is."""
    return [
        meaning
        for meaning, shown in mine.items()
        if meaning not in theirs
        and not (guard in _SPOKEN and fold(shown.split()[-1]) in other.known)
    ]
