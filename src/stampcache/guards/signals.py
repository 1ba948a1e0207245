"""How much two questions differ, guard by guard, as numbers for a verifier (pure)."""

from stampcache.guards import order
from stampcache.guards.differing import Differences, Sides, differences
from stampcache.guards.pair import COMPARED, DEGREES, Guard, conflicts
from stampcache.guards.profile import Profile

_KINDS = ("extra", "missing", "conflict")
SIGNALS: tuple[str, ...] = (
    *[f"{guard.value}.{kind}" for guard in Guard for kind in _KINDS],
    "count.extra", "count.missing", "count.conflict",
    "polarity", "content.shared", "content.reworded",
)  # fmt: skip
"""The names of what `weigh` returns, in order.

``extra``: how many things the asked question says of a kind and the stored one does not;
``missing``: the other way round; ``conflict``: how many of both stand against each other, and
these are in neither of the two. ``polarity``: 1 where negations and opposites together turn the
meaning. ``content.shared``: the share of words of content that both hold, of all of them;
``content.reworded``: that of words for which the other question has one like it.
"""
_AT = {guard.value: 3 * at for at, guard in enumerate(Guard)}
_AT["small"] = 3 * len(Guard)
_POLARITY = len(SIGNALS) - 3


def weigh(asked: Profile, stored: Profile, seen: Differences | None = None) -> tuple[float, ...]:
    """Return the signals of a pair in the order of `SIGNALS`; all but the shares are counts.

    ``seen`` is what `differences` returned for the two, if that is known already.
    """
    seen = differences(asked, stored) if seen is None else seen
    values = [0.0] * len(SIGNALS)
    for guard, sides in seen.cues.items():
        _put(values, _AT[guard], sides, conflicts(sides))
    for guard, sides in seen.amounts.items():
        _put(values, _AT[guard], sides, min(len(sides.asked), len(sides.stored)))
    for guard, sides in (("name", seen.names), ("code", seen.codes), ("substitution", seen.rest)):
        if sides.asked or sides.stored:
            _put(values, _AT[guard], sides, min(len(sides.asked), len(sides.stored)))
    _polarity(values, asked, stored, seen)
    if order.turned(asked, stored):
        values[_AT["direction"] + 2] = 1.0
    _content(values, asked, stored, seen)
    return tuple(values)


def _put(values: list[float], at: int, sides: Sides, conflict: int) -> None:
    values[at] += max(len(sides.asked) - conflict, 0)
    values[at + 1] += max(len(sides.stored) - conflict, 0)
    values[at + 2] += conflict


def _polarity(values: list[float], asked: Profile, stored: Profile, seen: Differences) -> None:
    one, other = len(asked.negations), len(stored.negations)
    at = _AT["negation"]
    values[at], values[at + 1] = max(one - other, 0), max(other - one, 0)
    values[at + 2] = float(seen.negated)
    degrees = 0
    for mine, theirs in seen.flips:
        compared = mine in COMPARED and theirs in COMPARED
        values[_AT["comparative" if compared else "antonym"] + 2] += 1
        degrees += mine in DEGREES and theirs in DEGREES
    values[_POLARITY] = (seen.negated + len(seen.flips)) % 2


def _content(values: list[float], asked: Profile, stored: Profile, seen: Differences) -> None:
    one, other = set(asked.content), set(stored.content)
    every = len(one) + len(other)
    if not every:
        return
    shared = 2 * len(one & other)
    strange = len(seen.rest.asked) + len(seen.rest.stored)
    values[_POLARITY + 1] = shared / every
    values[_POLARITY + 2] = max(every - shared - strange, 0) / every
