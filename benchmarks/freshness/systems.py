"""The caches that are compared, all through the public names of stampcache.

"it pays: defaults" is `Freshness()` with a judge, and with "limit" that alone is another one. "on the
path" asks within the request, with lives of 30 days, so that the judge decides when an answer ends.
"judge always" is the same with a limit of next to nothing.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from benchmarks.freshness.facts import DAY_S
from benchmarks.freshness.judges import Knowing, constant, reckoning
from stampcache import Cache, Freshness, open_cache
from stampcache.ports import Clock

ANY = 1_000_000
APART_S = 30 * DAY_S
"""How long answers live where the judge decides when they end, and not a lifetime that adapts."""

IsTrue = Callable[[str, str], bool]
Judge = Callable[[str], str]
Making = Callable[[IsTrue, int], Judge]


class System(Struct, frozen=True, kw_only=True):
    """How a cache is opened; ``told``: it is told of every change; ``refreshes``: `work` makes anew."""

    name: str
    ttl_s: float | None = 7 * DAY_S
    freshness: Freshness | None = None
    judge: Making | None = None
    told: bool = False
    refreshes: bool = False
    caches: bool = True

    def opened(self, clock: Clock, is_true: IsTrue, seed: int) -> Cache:
        """Open it, empty."""
        judge = None if self.judge is None else self.judge(is_true, seed)
        return open_cache(
            "memory://",
            ttl_s=self.ttl_s,
            freshness=self.freshness,
            judge=judge,
            clock=clock,
            strict=True,
        )


def right(share: float) -> Making:
    """Return how a judge is made that is right in a share of cases."""
    return lambda is_true, seed: Knowing(share, is_true, seed)


def _always(judge: Judge) -> Making:
    return lambda *_: judge


_JUDGES = {
    "right in 95 %": right(0.95),
    "right in 80 %": right(0.80),
    "by the prompt's figures": _always(reckoning),
    "says always fresh": _always(constant(True)),
    "says never fresh": _always(constant(False)),
}


def compared() -> list[System]:
    """Return the systems at stated settings.

    The lifetimes of 1, 7 and 30 days were stated before anything was measured; how early the defaults
    look ahead, their grace, and the life of 21 days, which has as many hits as they have, after results
    on the half that is for choosing had been seen.
    """
    known = ("right in 95 %", "right in 80 %")
    return [
        System(name="no cache", caches=False),
        *(fixed(days) for days in (1, 7, 21, 30)),
        System(name="adaptive TTL", freshness=Freshness()),
        *_judged("judge always", _on_path(1e-9), *known),
        *_judged("it pays: defaults", Freshness(), *_JUDGES),
        System(
            name="it pays: defaults, refresh, right in 95 %",
            freshness=Freshness(),
            judge=_JUDGES[known[0]],
            refreshes=True,
        ),
        *_judged("it pays, limit 0.1", Freshness(limit=0.1), *known),
        *_judged("it pays, on the path", _on_path(0.2), *_JUDGES),
        *_judged("it pays, on the path, limit 0.02", _on_path(0.02), *known, "says always fresh"),
        System(name="oracle", ttl_s=None, told=True),
    ]


def grids() -> dict[str, list[System]]:
    """Return families of systems; of each, one is chosen on the half that is for choosing."""
    limits = (0.02, 0.05, 0.1, 0.2)
    judge = _JUDGES["right in 95 %"]
    return {
        "fixed TTL": [fixed(days) for days in (1, 2, 4, 7, 14, 30)],
        "adaptive TTL": [
            System(name=f"adaptive TTL, limit {limit}", freshness=Freshness(limit=limit))
            for limit in limits
        ],
        "it pays, off the path": [
            System(
                name=f"it pays, off the path, limit {limit}",
                freshness=Freshness(limit=limit),
                judge=judge,
            )
            for limit in limits
        ],
        "it pays, on the path": [
            System(
                name=f"it pays, on the path, limit {limit}", freshness=_on_path(limit), judge=judge
            )
            for limit in limits
        ],
    }


def fixed(days: float) -> System:
    """Return a cache whose answers live for so many days, and no more is done about them."""
    return System(name=f"fixed TTL, {days:g} d", ttl_s=days * DAY_S)


def _on_path(limit: float) -> Freshness:
    return Freshness(
        limit=limit, on_path=True, calls_per_minute=ANY, floor_s=APART_S, cap_s=APART_S
    )


def _judged(name: str, freshness: Freshness, *judges: str) -> Sequence[System]:
    return [
        System(name=f"{name}, {judge}", freshness=freshness, judge=_JUDGES[judge])
        for judge in judges
    ]
