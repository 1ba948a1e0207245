"""Watches judged hits after a promise was made, and withdraws it for good (pure; ADR 0024).

Anybody may look after each sample and the false alarms stay at most what was stated, since the
evidence is a bet against the promise: while it holds, nobody can expect to win, and by Ville's
inequality (1939) the stake grows ``1 / alarm``-fold at any time with a chance of at most ``alarm``
(Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024). Part of
the stake enters later, so that long good times do not hide what comes after (Shin, Ramdas & Rinaldo,
"E-detectors", 2023).
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stampcache.calibration.bounds import check_share
from stampcache.calibration.labels import Labelled
from stampcache.calibration.promise import Promise, percent
from stampcache.errors import ConfigError

ALARM = 0.01
_TIMES = (1.5, 2.0, 3.0, 5.0, 10.0)
_AT_ONCE = 0.5


class Monitor(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was seen of judged hits since the promise: state in, state out, as JSON if need be.

    ``judged`` hits were drawn at random from all that were served, and ``wrong`` of them were wrong.
    ``stakes`` are what bets on some higher wrong-hit rates have come to; ``alarm`` is the chance that
    a promise which holds is ever withdrawn. ``withdrawn_at`` is the number of the sample that ended it.
    """

    digest: str
    max_wrong: float
    alarm: float = ALARM
    judged: int = 0
    wrong: int = 0
    stakes: tuple[float, ...] = tuple(_AT_ONCE for _ in _TIMES)
    withdrawn_at: int | None = None

    def __post_init__(self) -> None:
        check_share("max_wrong", self.max_wrong)
        check_share("alarm", self.alarm)
        if len(self.stakes) != len(_TIMES):
            raise ConfigError("The monitor is of another release; begin a new one for the promise.")

    @property
    def evidence(self) -> float:
        """How many times its stake a bet against the promise has won; 1 at the start."""
        return sum(self.stakes) / len(self.stakes) + _waiting(self.judged)

    @property
    def withdrawn(self) -> bool:
        """Whether the promise no longer counts; a new one needs new labels."""
        return self.withdrawn_at is not None

    def seen(self, *, same: bool) -> "Monitor":
        """Return the state after one more judged hit, which was drawn at random from those served.

        Reports must not be told: nobody reports at random.
        """
        if self.withdrawn:
            return self
        entering = _waiting(self.judged) - _waiting(self.judged + 1)
        stakes = tuple(
            (stake + entering) * factor
            for stake, factor in zip(self.stakes, _factors(self.max_wrong, same), strict=True)
        )
        after = replace(self, judged=self.judged + 1, wrong=self.wrong + (not same), stakes=stakes)
        if after.evidence >= 1 / self.alarm:
            return replace(after, withdrawn_at=after.judged)
        return after

    def __str__(self) -> str:
        """Print what was seen, in one sentence."""
        seen = f"{self.wrong:,} of {self.judged:,} judged hits were wrong"
        if self.withdrawn:
            return f"{seen}, too many for at most {percent(self.max_wrong)}"
        return f"{seen}, which does not speak against at most {percent(self.max_wrong)}"


def monitor_of(promise: Promise, *, alarm: float = ALARM) -> Monitor:
    """Return the monitor of a promise, before anything was judged.

    Raises:
        ConfigError: ``alarm`` is not between 0 and 1.
    """
    return Monitor(digest=promise.digest, max_wrong=promise.max_wrong, alarm=alarm)


def watched(promise: Promise, labels: Iterable[Labelled]) -> Monitor:
    """Return the monitor of a promise after all labels, oldest first, of hits that it speaks of.

    Those are hits of caches that served all that it speaks of, and count the cosine as it does: what two
    ways to decide have in common may be wrong more often than what either serves.

    It is reckoned from the labels each time, so that of two who add some at once neither undoes what the
    other one saw. Each draw counts once, by its latest label; reports are no draws.
    """
    of_draw: dict[tuple[str, str, float], bool] = {}
    for label in labels:
        covered = label.sampled and label.served and label.subject == promise.subject
        reached = label.score is not None and promise.reached(label.score, label.similarity)
        whole = label.weight == promise.similarity_weight and label.least <= promise.threshold
        if covered and reached and whole and label.drawn_at >= promise.made_at:
            of_draw[label.asked, label.stored, label.drawn_at] = label.same
    monitor = monitor_of(promise)
    for same in of_draw.values():
        monitor = monitor.seen(same=same)
    return monitor


def _waiting(judged: int) -> float:
    """Return the part of the stake that has not entered yet."""
    return (1 - _AT_ONCE) / (judged + 1)


def _factors(max_wrong: float, same: bool) -> Sequence[float]:
    """Return the likelihood of a sample under each higher rate, over that under the promised one."""
    if same:
        return [(1 - max_wrong) ** (times - 1) for times in _TIMES]
    return [(1 - (1 - max_wrong) ** times) / max_wrong for times in _TIMES]
