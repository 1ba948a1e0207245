"""Exact bounds of a share that was counted (pure; ADR 0024).

So many errors were seen in so many independent trials. The binomial tail is the regularised
incomplete beta function (NIST DLMF 8.17.5), reckoned from its continued fraction (8.17.22); the
bounds are those of Clopper and Pearson (Biometrika 1934): no approximation that a small count upsets.
All is exact to 1e-9 up to 100,000 trials.
"""

from functools import lru_cache
from math import exp, lgamma, log, log1p

from msgspec import Struct

from stampcache.errors import ConfigError

_TINY = 1e-300
_ENOUGH = 2e-15
_MOST_TERMS = 100_000
_HALVINGS = 60
_KEPT = 4096


class Interval(Struct, frozen=True, forbid_unknown_fields=True):
    """A share that was counted, in [0, 1], and the ends that the count leaves open."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        """Print as ``35.1 % (32.7 to 37.6)``."""
        return f"{self.share * 100:.1f} % ({self.low * 100:.1f} to {self.high * 100:.1f})"


def at_most(errors: int, trials: int, risk: float) -> float:
    """Return the chance of at most so many errors in so many trials of this risk in [0, 1]."""
    if errors < 0:
        return 0.0
    if errors >= trials or risk <= 0:
        return 1.0
    if risk >= 1:
        return 0.0
    return 1 - _beta(risk, errors + 1, trials - errors)


def upper(errors: int, trials: int, delta: float) -> float:
    """Return the risk that the true one exceeds with a chance of at most ``delta``."""
    if errors >= trials:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if at_most(errors, trials, middle) > delta:
            low = middle
        else:
            high = middle
    return high


def interval(count: int, trials: int, delta: float = 0.05) -> Interval:
    """Return the share with an interval that misses the true one with a chance of at most ``delta``."""
    if trials == 0:
        return Interval(0.0, 0.0, 1.0)
    low = 1 - upper(trials - count, trials, delta / 2)
    return Interval(count / trials, low, upper(count, trials, delta / 2))


@lru_cache(maxsize=_KEPT)
def needed(errors: int, max_wrong: float, delta: float) -> int:
    """Return how many trials prove with so many errors that the risk is at most ``max_wrong``.

    With none that is ``log(delta) / log(1 - max_wrong)``: 299 trials for 1 % at 95 % confidence.
    """
    low, high = errors, max(2 * errors, 1)
    while at_most(errors, high, max_wrong) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if at_most(errors, middle, max_wrong) > delta:
            low = middle
        else:
            high = middle
    return high


def check_share(name: str, given: float) -> None:
    """Refuse what is no share.

    Raises:
        ConfigError: it is not between 0 and 1.
    """
    if not 0 < given < 1:
        raise ConfigError(f"{name}= is {given!r}; give a share between 0 and 1, such as 0.01.")


def _beta(x: float, a: int, b: int) -> float:
    """Return the regularised incomplete beta function, from the side where its fraction is short."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)
    return exp(front) / (a * _fraction(x, a, b))


def _fraction(x: float, a: int, b: int) -> float:
    """Return ``1 + d1 / (1 + d2 / (1 + ...))`` by the method of Lentz."""
    whole, upper_part, lower_part, change, step = 1.0, 1.0, 0.0, 0.0, 0
    while abs(change - 1) > _ENOUGH and step < _MOST_TERMS:
        step += 1
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        lower_part = 1 / (1 + term * lower_part or _TINY)
        upper_part = 1 + term / upper_part or _TINY
        change = upper_part * lower_part
        whole *= change
    return whole
