"""How likely an answer has become untrue by itself, and what follows from that (pure; ADR 0022).

Announced changes mark answers at once. What nobody announces is a matter of time: the older an answer
is against how often its sources change, the likelier one has. Changes are taken as a Poisson process, so
the chance of at least one in ``age`` seconds is ``1 - exp(-rate * age)``.
"""

from collections.abc import Iterable
from math import exp, isfinite, log, log1p

from msgspec import Struct

from stampcache.errors import ConfigError
from stampcache.ttl import DAY_S, HOUR_S

STEP = 0.25
"""A lifetime changes by at most this share at a time."""
ONE_CHANGE_S = 60.0
"""What is announced of a source within this time is one change: of each chunk of it, for example."""
AHEAD = 0.5
"""With a judge, so much of the time until its doubt an answer is looked after ahead of it, on average.

A rarely asked question has its next chance to be looked after with its next request, and a verdict costs
less than an answer, so the judge is asked earlier than making the answer takes.
"""


class Freshness(Struct, frozen=True, kw_only=True):
    """When an answer is doubted, and what happens then.

    An answer is doubted once the chance that it has changed is above ``limit``. Off the path (the
    default) it is then served once more, within a grace of ``grace_share`` of its life and of ``grace_s``
    seconds at most, and is stale until `Cache.work` has asked the judge; ``on_path`` asks at once, for at
    most ``deadline_s`` seconds. Each process makes at most ``calls_per_minute`` calls. ``beta`` says how
    early an answer is looked at before it is doubted (XFetch; 0: never). ``template`` is the path of a
    prompt of your own; with ``json_mode`` the reply is one JSON object, and a LangChain model is told so.
    ``floor_s`` and ``cap_s`` are where lifetimes that adapt move to at most; ``guess_kinds`` finds the
    kind of data by rule where a request says none.

    Raises:
        ConfigError: a number is out of range.
    """

    limit: float = 0.2
    grace_s: float = DAY_S
    grace_share: float = 0.15
    on_path: bool = False
    deadline_s: float = 3.0
    calls_per_minute: int = 60
    beta: float = 1.0
    template: str = ""
    json_mode: bool = False
    floor_s: float = 60.0
    cap_s: float = 30 * DAY_S
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
        if not 0 <= self.grace_share <= 1:
            raise ConfigError(f"grace_share= is {self.grace_share}; give a share between 0 and 1.")
        if self.calls_per_minute < 0:
            raise ConfigError(f"calls_per_minute= is {self.calls_per_minute}; give 0 or more.")
        if self.cap_s < self.floor_s:
            raise ConfigError(f"cap_s= ({self.cap_s}) is below floor_s= ({self.floor_s}).")


class Observed(Struct, frozen=True):
    """How often something was seen to change unannounced, and for how long (seconds) it was looked at.

    ``announced`` changes are counted apart, within ``announced_s`` seconds: each of them has marked what
    it touched, so they say nothing of what nobody tells.
    """

    changes: int = 0
    seconds: float = 0.0
    announced: int = 0
    announced_s: float = 0.0

    @property
    def per_hour(self) -> float | None:
        """Unannounced changes per hour as measured; ``None`` where it was not looked at."""
        return self.changes / (self.seconds / HOUR_S) if self.seconds > 0 else None

    @property
    def announced_per_hour(self) -> float | None:
        """Announced changes per hour; ``None`` where there were none, or in no time."""
        return self.announced / (self.announced_s / HOUR_S) if self.announced_s > 0 else None

    def __str__(self) -> str:
        rate, told = self.per_hour, self.announced_per_hour
        said = "unknown: nothing was observed yet"
        if rate is not None:
            times = "once" if self.changes == 1 else f"{self.changes} times"
            said = f"{rate:.3g} per hour: changed {times} in {self.seconds / HOUR_S:.3g} hours"
        if not told:
            return said
        return (
            f"{said}; {told:.3g} per hour besides were announced, and such a change ends an answer"
        )


def together(observed: Iterable[Observed]) -> Observed:
    """Return how often any of several things changes, each of which was looked at."""
    several = list(observed)
    unannounced = _summed((one.changes, one.seconds) for one in several)
    return Observed(*unannounced, *_summed((one.announced, one.announced_s) for one in several))


def _summed(counted: Iterable[tuple[int, float]]) -> tuple[int, float]:
    """Return the changes of several things, and a time in which they give the sum of their rates."""
    changes, rate, longest = 0, 0.0, 0.0
    for count, seconds in counted:
        if seconds > 0:
            changes += count
            rate += count / seconds
            longest = max(longest, seconds)
    return (0, longest) if rate == 0.0 else (changes, changes / rate)


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


def grace_of(freshness: Freshness, life_s: float | None) -> float:
    """Return for how many seconds after its doubt began an answer may be served once more."""
    share = freshness.grace_s if life_s is None else freshness.grace_share * life_s
    return min(freshness.grace_s, share)


def ahead_of(
    freshness: Freshness, has_judge: bool, *, latency_s: float, until_doubt_s: float
) -> float:
    """Return how long before its doubt it pays to look after an answer, on average, in seconds.

    ``latency_s`` is what making it took, ``until_doubt_s`` how long it is held for true.
    """
    if not has_judge:
        return latency_s
    return max(latency_s, freshness.deadline_s) + AHEAD * until_doubt_s


def period(worked_at: float, before_s: float, now: float) -> float:
    """Return the time between two calls of `Cache.work`: longer at once, shorter by and by.

    ``before_s`` is what it was taken for at ``worked_at``; nothing is longer than a day.
    """
    passed_s = min(max(now - worked_at, 0.0), DAY_S)
    return max(passed_s, (passed_s + before_s) / 2)


def early(ends_at: float, now: float, cost_s: float, beta: float, drawn: float) -> bool:
    """Tell whether this request is the one that looks after an answer before it ends (XFetch).

    Vattani, Chierichetti & Lowenstein, "Optimal probabilistic cache stampede prevention", VLDB 2015.
    ``cost_s`` is how long it takes until it is looked after, ``drawn`` a random number in (0, 1].
    """
    return beta > 0 and now - cost_s * beta * log(max(drawn, 1e-12)) >= ends_at
