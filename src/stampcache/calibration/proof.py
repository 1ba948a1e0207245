"""Proves a wrong-hit rate from labelled pairs, or says why it cannot (pure; ADR 0024)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product

from msgspec import Struct

from stampcache.calibration.bounds import check_share, interval
from stampcache.calibration.labels import (
    Labelled,
    Subject,
    digest_of,
    groups,
    one_each,
    settled,
)
from stampcache.calibration.promise import DELTA, Lack, Promise, Refusal, goal, percent
from stampcache.calibration.sequence import Claim, Failure, claimed
from stampcache.calibration.weighing import check_weights, reweighed
from stampcache.errors import ConfigError


def prove(
    labels: Iterable[Labelled],
    subject: Subject,
    *,
    max_wrong: float,
    entries: int,
    data: str,
    made_at: float,
    delta: float = DELTA,
    weights: Sequence[float] = (0.0,),
) -> Promise | Refusal:
    """Return a promise that at most ``max_wrong`` of the hits are wrong, or why these labels bear none.

    The chance that labels are drawn which bear a false promise is at most ``delta``. It is proved twice,
    and the threshold holds for both: with every pair for itself, which is right where requests come
    independently of each other, and with one pair of each group that shares questions, which is right
    where they do not, and a popular question counts once.

    With several ``weights`` it is tried at each, the first at half of ``delta`` and the others at equal
    parts of the rest. So all that is proved holds together, and what serves most is promised.

    Args:
        labels: of real nearest candidates, drawn at random from what is asked, whatever they score.
        subject: labels of another one are left out.
        max_wrong: wrong hits over hits that is promised.
        entries: how many entries the store had that the candidates are from.
        data: where the pairs are from, in words.
        made_at: now, in epoch seconds.
        delta: the chance that the promise is false.
        weights: how much the cosine may count beside the score (`WEIGHTS`); fixed beforehand.

    Raises:
        ConfigError: a share is not between 0 and 1, ``entries`` below 1, or weights no choice.
    """
    check_share("max_wrong", max_wrong)
    check_share("delta", delta)
    if entries < 1:
        raise ConfigError(f"entries= is {entries}; say how many entries the store had.")
    check_weights(weights)
    pairs = settled(labels, subject)
    grouped = groups(pairs)
    found = _best(pairs, one_each(grouped), weights, max_wrong, delta)
    if isinstance(found, Refusal):
        return found
    served = found.served
    return Promise(
        threshold=found.threshold,
        similarity_weight=found.weight,
        max_wrong=max_wrong,
        delta=delta,
        subject=subject,
        data=data,
        entries=entries,
        pairs=len(pairs),
        groups=len(grouped),
        served=len(served),
        wrong=sum(not one.same for one in served),
        share=interval(len(served), len(pairs), delta),
        labellers=dict(sorted(Counter(one.labeller for one in pairs).items())),
        made_at=made_at,
        digest=digest_of(pairs),
    )


class _Proved(Struct, frozen=True):
    weight: float
    threshold: float
    served: Sequence[Labelled]


def _best(
    pairs: Sequence[Labelled],
    single: Sequence[Labelled],
    weights: Sequence[float],
    max_wrong: float,
    delta: float,
) -> _Proved | Refusal:
    """Return what serves most of what is proved at any weight, or why nothing is at the first."""
    best: _Proved | None = None
    refusals: list[Refusal] = []
    for weight, part in zip(weights, _parts(len(weights), delta), strict=True):
        every = reweighed(pairs, weight)
        found = _both(every, reweighed(single, weight), max_wrong, part, delta)
        if isinstance(found, Refusal):
            refusals.append(found)
            continue
        served = [one for one in every if one.score is not None and one.score >= found]
        if best is None or len(served) > len(best.served):
            best = _Proved(weight, found, served)
    return best or refusals[0]


def _parts(count: int, delta: float) -> Sequence[float]:
    return [delta] if count == 1 else [delta / 2] + [delta / 2 / (count - 1)] * (count - 1)


def _both(
    pairs: Sequence[Labelled],
    single: Sequence[Labelled],
    max_wrong: float,
    part: float,
    delta: float,
) -> float | Refusal:
    """Return the lowest threshold that both ways of counting prove at a part of delta, or why none."""
    proved: list[Sequence[Claim]] = []
    for counted, unit in ((pairs, "pairs"), (single, "groups of pairs that share no question")):
        scored = [(one.score, one.same) for one in counted if one.score is not None]
        found = claimed(scored, max_wrong=max_wrong, delta=part)
        if isinstance(found, Failure):
            return _refused(found, len(scored), unit, max_wrong, delta)
        proved.append(found)
    lowest = [
        max(one.low, other.low)
        for one, other in product(*proved)
        if max(one.low, other.low) <= min(one.high, other.high)
    ]
    return (
        min(lowest)
        if lowest
        else Refusal(
            Lack.GROUPED,
            "Pairs that share a question are wrong together so often that no threshold is proved both "
            "with and without them; label pairs of more different questions.",
        )
    )


def _refused(failure: Failure, count: int, unit: str, max_wrong: float, delta: float) -> Refusal:
    wanted = goal(max_wrong, delta)
    if failure.tied:
        return Refusal(
            Lack.TIED,
            f"The {failure.tested:,} best {unit} end among equal scores, so no threshold parts what is "
            f"proved from what is not; decide by finer scores.",
        )
    if not failure.tested:
        return Refusal(
            Lack.TOO_FEW,
            f"There are {count:,} labelled {unit} that no guard vetoes; to prove {wanted} takes "
            f"{failure.wanted:,} without an error.",
            failure.wanted,
        )
    return Refusal(
        Lack.TOO_WRONG,
        f"The {failure.tested:,} best {unit} hold {failure.wrong:,} wrong ones, which bears "
        f"{percent(failure.bound)} and not {wanted}; label more pairs, decide by a stricter verifier, or "
        f"ask for a higher max_wrong=.",
    )
