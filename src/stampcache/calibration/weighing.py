"""How much the cosine counts beside a verifier's score (pure; ADR 0028).

A verifier that knows near misses gives little for a high cosine, as that is what near misses have.
Where people ask few of them, as in a forum, the cosine tells much. That is a matter of the traffic, so
labels say it: a promise may rest on the score with the cosine counted beside it, at one of a few
weights that were fixed before any label was seen.
"""

from collections.abc import Iterable, Sequence
from math import exp, isfinite

from msgspec.structs import replace

from stampcache.calibration.labels import Labelled
from stampcache.errors import ConfigError

WEIGHTS = (0.0, 5.0, 20.0)
"""Log-odds that are taken from a score for each unit that the cosine is below 1."""


def weighed(score: float, similarity: float, weight: float) -> float:
    """Return a score in [0, 1], less ``weight`` log-odds for each unit that ``similarity`` is below 1.

    It never rises, and equal texts keep their score; so do 0, 1 and what is no probability.
    """
    if not weight or not 0.0 < score < 1.0:
        return score
    odds = score * exp(-weight * max(0.0, 1.0 - similarity))
    return odds / (odds + (1.0 - score))


def check_weights(weights: Sequence[float]) -> None:
    """Refuse what is no choice of weights.

    Raises:
        ConfigError: there are none, or one is negative, no finite number, or given twice.
    """
    if not weights or len({*weights}) < len(weights):
        raise ConfigError(
            f"weights= is {weights}; give different ones, (0.0,) for the score alone."
        )
    for weight in weights:
        if not (isfinite(weight) and weight >= 0.0):
            raise ConfigError(f"The weight of the cosine is {weight}; give a number from 0 on.")


def reweighed(labels: Iterable[Labelled], weight: float) -> Sequence[Labelled]:
    """Return labels with their scores weighed; a veto stays one."""
    if not weight:
        return [*labels]
    return [
        one if one.score is None else replace(one, score=weighed(one.score, one.similarity, weight))
        for one in labels
    ]
