"""How far down a threshold may go, tested from the strictest on (pure; ADR 0024).

Learn then Test (Angelopoulos et al. 2021, arXiv 2110.01052) by fixed-sequence testing with several
starts: from each start one pair more is served at a time, until the exact binomial test can no longer
exclude that more than ``max_wrong`` of what is served is wrong. Who stops at the first failure errs
only where the first false threshold passes, so all tests from one start are at its part of ``delta``.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import inf, nextafter

from msgspec import Struct

from stampcache.calibration.bounds import needed, upper


class Claim(Struct, frozen=True):
    """Every threshold from ``low`` to ``high`` is proved: serve what scores at or above it."""

    low: float
    high: float


class Failure(Struct, frozen=True):
    """Nothing is proved: of the best ``tested`` pairs ``wrong`` are wrong, which bears ``bound``.

    Of several starts the one that came closest. ``tested`` is 0 where there are fewer pairs than
    ``wanted`` without an error; ``tied`` where equal scores leave no threshold in what was proved.
    """

    wanted: int
    tested: int = 0
    wrong: int = 0
    bound: float = 1.0
    tied: bool = False


def starts(count: int, max_wrong: float, delta: float) -> Sequence[int]:
    """Return after how many of the best pairs the sequences start; each has an equal part of ``delta``.

    The first is the fewest pairs that prove anything, each next one twice as many, up to half of all: a
    wrong pair at the very top spoils an early start, and a decider that soon gets worse spoils a late
    one. They depend on how many pairs there are, and on nothing that was seen of them.
    """
    found: list[int] = []
    while True:
        parts = len(found) + 1
        least = needed(0, max_wrong, delta / parts)
        longer = [least << at for at in range(parts)]
        if longer[-1] >= count or (found and 2 * longer[-1] > count):
            return found
        found = longer


def claimed(
    pairs: Sequence[tuple[float, bool]], *, max_wrong: float, delta: float
) -> Sequence[Claim] | Failure:
    """Return the proved thresholds of pairs of (score, same), each independent of the others.

    Equal scores are taken in the order given, which must not depend on the labels. The chance that any
    claim is false is at most ``delta``, however the risk goes up and down between thresholds (the
    argument is in ADR 0024).
    """
    ranked = sorted(pairs, key=lambda pair: -pair[0])
    wrong = [0, *accumulate(not same for _, same in ranked)]
    begun = starts(len(ranked), max_wrong, delta)
    part = delta / max(len(begun), 1)
    closest = Failure(needed(0, max_wrong, delta) + 1)
    claims: list[Claim] = []
    for start in begun:
        passed = _passed(wrong, start, max_wrong, part)
        claim = _between(ranked, start, passed) if passed else None
        if claim is not None:
            claims.append(claim)
            continue
        bound = upper(wrong[start], start, part)
        if bound <= closest.bound:
            closest = Failure(closest.wanted, start, wrong[start], bound, tied=passed > 0)
    return claims or closest


def _passed(wrong: Sequence[int], start: int, max_wrong: float, delta: float) -> int:
    """Return how many of the best pairs may be served: up to the last test before one fails, or 0."""
    served = start
    while served < len(wrong) - 1 and needed(wrong[served], max_wrong, delta) <= served:
        served += 1
    return served - 1 if served > start else 0


def _between(ranked: Sequence[tuple[float, bool]], start: int, passed: int) -> Claim | None:
    """Return the plain thresholds from just above the pair after ``start`` to that after ``passed``.

    Whatever scores as that last pair does is not served; ``None``: that leaves nothing proved.
    """
    first, last = ranked[start][0], ranked[passed][0]
    apart = ranked[start - 1][0] > first
    if first == last and not apart:
        return None
    return Claim(low=nextafter(last, inf), high=nextafter(first, inf) if apart else first)
