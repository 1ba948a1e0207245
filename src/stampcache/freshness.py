"""How likely an answer has become untrue by itself, and what follows from that (pure; ADR 0022).

Announced changes mark answers at once. What nobody announces is a matter of time: the older an answer
is against how often its sources change, the likelier one has. Changes are taken as a Poisson process, so
the chance of at least one in ``age`` seconds is ``1 - exp(-rate * age)``.
"""

from collections.abc import Iterable
from math import exp, isfinite, log, log1p

from msgspec import Struct

from stampcache.errors import ConfigError
from stampcache.ttl import HOUR_S

STEP = 0.25
"""A lifetime changes by at most this share at a time."""
ONE_CHANGE_S = 60.0
"""What is announced of a source within this time is one change: of each chunk of it, for example."""


class Freshness(Struct, frozen=True, kw_only=True):
    """When an answer is doubted, and what happens then.

    An answer is doubted once the chance that it has changed is above ``limit``. Off the path (the
    default) it is served once more within ``grace_s`` seconds, and is then stale until `Cache.work`
    has asked the judge; ``on_path`` asks at once, for at most ``deadline_s`` seconds. At most
    ``calls_per_minute`` calls are made. ``beta`` says how early an answer is looked at before it is
    doubted (XFetch; 0: never). ``template`` is the path of a prompt of your own; with ``json_mode`` the
    reply is one JSON object, and a LangChain model is told so. ``floor_s`` and ``cap_s`` are where
    lifetimes that adapt move to at most; ``guess_kinds`` finds the kind of data by rule where a
    request says none.

    Raises:
        ConfigError: a number is out of range.
    """

    limit: float = 0.2
    grace_s: float = 60.0
    on_path: bool = False
    deadline_s: float = 3.0
    calls_per_minute: int = 60
    beta: float = 1.0
    template: str = ""
    json_mode: bool = False
    floor_s: float = 60.0
    cap_s: float = 30 * 86_400.0
    guess_kinds: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.limit < 1:
            raise ConfigError(f"limit= is {self.limit}; give a probability between 0 and 1.")
        seconds = (
            ("deadline_s", self.deadline_s),
            ("floor_s", self.floor_s),
            ("cap_s", self.cap_s),
        )
        for name, given in seconds:
            if not (given > 0 and isfinite(given)):
                raise ConfigError(f"{name}= is {given}; give a finite number of seconds above 0.")
        for name, least in (("grace_s", self.grace_s), ("beta", self.beta)):
            if not (least >= 0 and isfinite(least)):
                raise ConfigError(f"{name}= is {least}; give a finite number, 0 or more.")
        if self.calls_per_minute < 0:
            raise ConfigError(f"calls_per_minute= is {self.calls_per_minute}; give 0 or more.")
        if self.cap_s < self.floor_s:
            raise ConfigError(f"cap_s= ({self.cap_s}) is below floor_s= ({self.floor_s}).")


class Observed(Struct, frozen=True):
    """How often something was seen to change, and for how long (seconds) it was looked at."""

    changes: int = 0
    seconds: float = 0.0

    @property
    def per_hour(self) -> float | None:
        """Changes per hour as measured; ``None`` where it was not looked at."""
        return self.changes / (self.seconds / HOUR_S) if self.seconds > 0 else None

    def __str__(self) -> str:
        rate = self.per_hour
        if rate is None:
            return "unknown: nothing was observed yet"
        times = "once" if self.changes == 1 else f"{self.changes} times"
        return f"{rate:.3g} per hour: changed {times} in {self.seconds / HOUR_S:.3g} hours"


def together(observed: Iterable[Observed]) -> Observed:
    """Return how often any of several things changes, each of which was looked at."""
    changes, rate, longest = 0, 0.0, 0.0
    for one in observed:
        if one.seconds > 0:
            changes += one.changes
            rate += one.changes / one.seconds
            longest = max(longest, one.seconds)
    if rate == 0.0:
        return Observed(0, longest)
    return Observed(changes, changes / rate)


def rate(observed: Observed, lifetime_s: float | None) -> float:
    """Return changes per second: what was observed, and before that the life of its kind of data.

    One change in a lifetime is what the kind counts for (a gamma prior with that mean). Where more
    was seen than the kind makes likely, that counts alone, but for one change, which may be chance.
    Without a lifetime only what was observed counts.
    """
    changes, looked_s = observed.changes, observed.seconds
    if lifetime_s is None:
        return changes / looked_s if looked_s > 0 else 0.0
    expected = (changes + 1) / (looked_s + lifetime_s)
    return max(expected, (changes - 1) / looked_s) if looked_s > 0 else expected


def chance(per_second: float, age_s: float) -> float:
    """Return the probability of at least one change within an age."""
    return 1.0 - exp(-per_second * max(age_s, 0.0))


def doubted_after(per_second: float, limit: float) -> float | None:
    """Return after how many seconds the chance of a change is above the limit; ``None``: never."""
    return -log1p(-limit) / per_second if per_second > 0 else None


def expected_life(per_second: float) -> float | None:
    """Return the mean time between two changes in seconds; ``None``: nothing changes.

    It is what a lifetime adapts to. The doubt begins earlier, so a judge has its say before the end.
    """
    return 1.0 / per_second if per_second > 0 else None


def adapted(previous_s: float, target_s: float | None, freshness: Freshness) -> float:
    """Return the next lifetime: a step from the previous one to what was observed, or to a bound.

    Never more than a step, also where the previous one is beyond a bound.
    """
    wanted = freshness.cap_s if target_s is None else target_s
    within = min(max(wanted, freshness.floor_s), freshness.cap_s)
    return min(max(within, previous_s * (1 - STEP)), previous_s * (1 + STEP))


def early(ends_at: float, now: float, cost_s: float, beta: float, drawn: float) -> bool:
    """Tell whether this request is the one that looks after an answer before it ends (XFetch).

    Vattani, Chierichetti & Lowenstein, "Optimal probabilistic cache stampede prevention", VLDB 2015.
    ``cost_s`` is what making it takes, ``drawn`` a random number in (0, 1].
    """
    return beta > 0 and now - cost_s * beta * log(max(drawn, 1e-12)) >= ends_at
