"""Count what the systems served in a regime, and print it as rows with 95 % intervals (Wilson 1927).

*kept* is the share of requests that were served from the cache, of those whose answer it once had and
whose evidence is what it was then. A rate of zero of n comes with Wilson's upper bound,
3.84 / (n + 3.84): a little above the rule of three.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence

from benchmarks.report import Row
from benchmarks.thresholds import Share
from benchmarks.validity.app import App, Change
from benchmarks.validity.generation import Generation
from benchmarks.validity.regimes import Ask, Regime
from benchmarks.validity.systems import NoCache, Served, System, opened
from benchmarks.validity.texts import Question


class Tally:
    """What one system did in one regime."""

    def __init__(self, system: str) -> None:
        self.system = system
        self.requests = 0
        self.stale = 0
        self.wrong = 0
        self.unsafe = 0
        self.seconds: list[float] = []
        self.hit_seconds: list[float] = []
        self.by_how: dict[str, list[bool]] = {}
        self.unchanged = 0
        self.kept = 0

    @property
    def hits(self) -> int:
        """How many requests the cache answered."""
        return len(self.hit_seconds)

    def count_kept(self, served: Served) -> None:
        """Take in a request whose answer was made before, from just what it would be made from now."""
        self.unchanged += 1
        self.kept += served.entry is not None

    def count(self, question: Question, served: Served, *, stale: bool, wrong: bool) -> None:
        """Take in one request."""
        self.requests += 1
        self.seconds.append(served.seconds)
        self.by_how.setdefault(question.how, []).append(served.entry is not None)
        if served.entry is not None:
            self.hit_seconds.append(served.seconds)
            self.stale += stale
            self.wrong += wrong
            self.unsafe += stale or wrong


class Referee:
    """Knows what every question means, and what the application would answer now."""

    def __init__(self, app: App, regime: Regime) -> None:
        self._app = app
        self._asked = {
            step.question.text: step.question for step in regime.steps if isinstance(step, Ask)
        }

    def stale(self, served: Served) -> bool:
        """Say whether the entry's own question has another answer by now."""
        if served.entry is None:
            return False
        return served.text != self._app.answer(self._asked[served.entry])

    def wrong(self, question: Question, served: Served) -> bool:
        """Say whether the entry's question asks for something else."""
        return served.entry is not None and (self._asked[served.entry].meaning != question.meaning)


def played(app: App, regime: Regime, advance: Callable[[], object]) -> list[Tally]:
    """Let all systems go through the regime side by side, step by step."""
    systems = opened(app, regime.capacity)
    tallies = [Tally(system.name) for system in systems]
    referee = Referee(app, regime)
    made: list[dict[str, tuple[str, ...]]] = [{} for _ in systems]
    try:
        for step in regime.steps:
            if isinstance(step, Change):
                app.write(step)
                for system in systems:
                    system.written(step)
            else:
                served = _asked(step, systems, tallies, referee)
                evidence = tuple(one.digest for one in app.retrieved(step.question.text))
                for one, tally, known in zip(served, tallies, made, strict=True):
                    if step.counted and known.get(step.question.text) == evidence:
                        tally.count_kept(one)
                    if one.entry is None:
                        known[step.question.text] = evidence
            advance()
    finally:
        for system in systems:
            system.close()
    return tallies


def _asked(
    ask: Ask, systems: Sequence[System], tallies: Sequence[Tally], referee: Referee
) -> list[Served]:
    every = list[Served]()
    for system, tally in zip(systems, tallies, strict=True):
        served = system.ask(ask.question)
        every.append(served)
        if ask.counted:
            stale, wrong = referee.stale(served), referee.wrong(ask.question, served)
            tally.count(ask.question, served, stale=stale, wrong=wrong)
    return every


def rows(regime: Regime, tallies: Sequence[Tally], generation: Generation) -> list[Row]:
    """Return a row for each system."""
    uncached = next(one for one in tallies if one.system == NoCache.name)
    whole = statistics.median(uncached.seconds) + generation.seconds
    return [_row(regime, tally, generation, whole) for tally in tallies]


def _row(regime: Regime, tally: Tally, generation: Generation, whole: float) -> Row:
    none = tally.system == NoCache.name
    hit = whole if none else statistics.median(tally.hit_seconds or [0.0])
    known = none or tally.hits > 0
    return {
        "regime": regime.name,
        "system": tally.system,
        "requests": tally.requests,
        "hits": tally.hits,
        "stale": tally.stale,
        "wrong": tally.wrong,
        "unsafe": tally.unsafe,
        "hit rate": str(Share(tally.hits, tally.requests)),
        "USR": str(Share(tally.unsafe, tally.requests)),
        "wrong-hit rate": _of_hits(tally.wrong, tally.hits),
        "stale rate": _of_hits(tally.stale, tally.hits),
        "kept": str(Share(tally.kept, tally.unchanged)) if tally.unchanged and not none else "-",
        "p50 ms": round(1000 * hit, 3) if known else "-",
        "of no cache": f"{hit / whole:.3%}" if known else "-",
        "generation": generation.source if none else "",
    }


def _of_hits(count: int, hits: int) -> str:
    return str(Share(count, hits)) if hits else "-"


def ways(tallies: Sequence[Tally]) -> list[Row]:
    """Return the hit rates of a regime by the way in which the questions were reworded."""
    return [
        {"system": tally.system, **_rates(tally.by_how)} for tally in tallies if any(tally.by_how)
    ]


def _rates(by_how: Mapping[str, Sequence[bool]]) -> dict[str, object]:
    return {
        f"{how or 'unchanged'} ({len(hits)})": str(Share(sum(hits), len(hits)))
        for how, hits in sorted(by_how.items())
    }
