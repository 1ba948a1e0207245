"""What there is to choose from: hit share against wrong-hit rate, by threshold (pure; ADR 0024)."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from stampcache.calibration.bounds import Interval, interval
from stampcache.calibration.labels import Labelled, Subject, settled

POINTS = 50


class Point(Struct, frozen=True, forbid_unknown_fields=True):
    """At ``threshold`` and above ``hits`` of ``pairs`` are served, and ``wrong`` of these are wrong.

    Both intervals are for this one threshold: whoever picks the best of all points has looked often,
    and is promised nothing. `prove` is for that.
    """

    threshold: float
    pairs: int
    hits: int
    wrong: int
    share: Interval
    wrong_rate: Interval


def curve(
    labels: Iterable[Labelled], subject: Subject, *, delta: float = 0.05, points: int = POINTS
) -> Sequence[Point]:
    """Return points from the strictest threshold down, at most so many, equally far apart in hits.

    The labels must be of real nearest candidates drawn at random, as for `prove`: of pairs that were
    picked by their score, or made up, the curve is about these and not about a cache.
    """
    pairs = settled(labels, subject)
    ranked = sorted(((one.score, one.same) for one in pairs if one.score is not None), reverse=True)
    found: list[Point] = []
    wrong = 0
    for hits, (score, same) in enumerate(ranked, 1):
        wrong += not same
        due = hits * points >= (len(found) + 1) * len(ranked)
        if due and (hits == len(ranked) or ranked[hits][0] < score):
            found.append(
                Point(
                    threshold=score,
                    pairs=len(pairs),
                    hits=hits,
                    wrong=wrong,
                    share=interval(hits, len(pairs), delta),
                    wrong_rate=interval(wrong, hits, delta),
                )
            )
    return found


def within(points: Iterable[Point], max_wrong: float) -> Point | None:
    """Return the point with most hits of those at which no larger share was seen to be wrong.

    It was picked by what was seen, so it promises nothing; it is for comparing curves of the same pairs.
    """
    allowed = [one for one in points if one.wrong_rate.share <= max_wrong]
    return max(allowed, key=lambda one: one.hits, default=None)
