"""Which findings are a veto: those whose precision on other pairs was measured (pure).

A finding of a guard is evidence that two questions differ, and evidence can be outweighed. It is a
veto, which no score outweighs, only in the shapes of `VETOES`: the guard saw the one difference of
a pair of which everything else is the same. See ADR 0023 for their precision.
"""

from collections.abc import Iterable

from msgspec import Struct

from stampcache.guards.differing import Differences, differences
from stampcache.guards.pair import Finding, Guard, judge
from stampcache.guards.profile import Profile
from stampcache.guards.tokens import parts


class Shape(Struct, frozen=True):
    """A kind of finding: its guard, and whether both questions say something or only one does."""

    guard: Guard
    both: bool


VETOES = frozenset(
    {
        Shape(Guard.ANTONYM, both=True),
        Shape(Guard.DIRECTION, both=True),
        Shape(Guard.NAME, both=True),
        Shape(Guard.NUMBER, both=True),
    }
)
"""The shapes whose precision as a veto was measured at 98 % or more on 30 pairs (ADR 0023)."""


def shape_of(finding: Finding) -> Shape:
    """Return of what shape a finding is."""
    return Shape(finding.guard, bool(finding.asked and finding.stored))


def vetoes(asked: Profile, stored: Profile) -> tuple[Finding, ...]:
    """Return the finding that is a veto on serving one question's answer for the other, if any."""
    seen = differences(asked, stored)
    only = sole(asked, stored, seen, judge(asked, stored, seen))
    return (only,) if only and shape_of(only) in VETOES else ()


def sole(
    asked: Profile, stored: Profile, seen: Differences, found: Iterable[Finding]
) -> Finding | None:
    """Return the finding that is the one difference of a pair, or ``None``; always so in Chinese.

    No guard reached there what a veto needs (docs/reference/guards.md).
    """
    one, *others = tuple(found) or (None,)
    if one is None or others or asked.han or stored.han:
        return None
    guard = one.guard.value
    if seen.cues.keys() - {guard, "comparative"} or seen.amounts.keys() - {guard}:
        return None
    said = {*parts(one.asked), *parts(one.stored)}
    return one if said.issuperset((*seen.rest.asked, *seen.rest.stored)) else None
