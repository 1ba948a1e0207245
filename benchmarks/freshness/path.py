"""What freshness adds to a request that is a hit: the same hits with and without it, by turns.

All caches are over memory and hold the same answers. Where nothing else is said, these are far from their
doubt, as nearly all hits find them; "on the list" are some that wait to be looked after. They are asked
the same questions in short turns, so that whatever else the machine does falls on all of them; how far
the second cache without is from the first one is what is due to chance.
"""

import gc
import statistics
import time
from collections.abc import Mapping, Sequence

from benchmarks.report import Row
from stampcache import Answer, Cache, Evidence, Freshness, Hit, Request, Settings, open_cache

ENTRIES = 1_000
TURN = 250
DAY_S = 86_400.0


class Shifted:
    """The clock of the machine, put forward."""

    def __init__(self) -> None:
        self.by_s = 0.0

    def now(self) -> float:
        """See `Clock.now`."""
        return time.time() + self.by_s


_SETTINGS = Settings(model="simulated", params={"temperature": 0}, corpus="documents")


def added(turns: int) -> list[Row]:
    """Return the median of single hits in each cache, and of the ratios of turns to those without."""
    now, later = Shifted(), Shifted()
    judge, sure = (lambda _: "never asked"), Freshness(beta=9e9)
    caches = {
        "exact hit, without": open_cache("memory://", clock=now),
        "exact hit, without (again)": open_cache("memory://", clock=now),
        "exact hit, freshness=": open_cache("memory://", freshness=Freshness(), clock=now),
        "exact hit, judge=": open_cache("memory://", judge=judge, clock=now),
        "exact hit, judge=, on the list": open_cache(
            "memory://", judge=judge, freshness=sure, clock=later
        ),
    }
    requests = [
        Request(question=f"What is said in paragraph {number} of the handbook?", settings=_SETTINGS)
        for number in range(ENTRIES)
    ]
    for cache in caches.values():
        for number, request in enumerate(requests):
            cited = Evidence(corpus="documents", source=f"{number}.md", text=f"text {number}")
            cache.update(request, Answer(text=f"answer {number}"), evidence=[cited])
            assert isinstance(cache.lookup(request), Hit)
    later.by_s = DAY_S
    for request in requests:
        assert all(isinstance(cache.lookup(request), Hit) for cache in caches.values())
    medians = _medians(caches, requests, turns)
    base = medians["exact hit, without"]
    rows: list[Row] = []
    for name, found in medians.items():
        ratios = [one / other for one, other in zip(found, base, strict=True)]
        rows.append(
            {
                "group": "serving path",
                "what": name,
                "calls": turns * TURN,
                "p50 us": round(statistics.median(found), 2),
                "of without": round(statistics.median(ratios), 3),
            }
        )
    for cache in caches.values():
        cache.close()
    return rows


def _medians(
    caches: Mapping[str, Cache], requests: Sequence[Request], turns: int
) -> dict[str, list[float]]:
    """Return the median of each turn in microseconds; who begins changes from turn to turn."""
    found: dict[str, list[float]] = {name: [] for name in caches}
    names = list(caches)
    for turn in range(turns):
        gc.collect()
        asked = [requests[(turn * TURN + at) % len(requests)] for at in range(TURN)]
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            found[name].append(_median(caches[name], asked))
    return found


def _median(cache: Cache, asked: Sequence[Request]) -> float:
    gc.disable()
    spent = []
    for request in asked:
        start = time.perf_counter_ns()
        cache.lookup(request)
        spent.append(time.perf_counter_ns() - start)
    gc.enable()
    return statistics.median(spent) / 1_000
