"""Play a simulated year for one cache, and count what it served, asked and made."""

import random
from collections.abc import Iterable, Sequence

from msgspec import Struct

import stampcache
from benchmarks.freshness.facts import Page
from benchmarks.freshness.systems import System
from benchmarks.freshness.year import Asked, Changed, Step
from benchmarks.report import Row
from benchmarks.thresholds import Share
from stampcache import Answer, Cache, Evidence, Hit, Request, Settings
from stampcache.due import DueEntry
from stampcache.testing import FakeClock

CORPUS = "timeqa"
SETTINGS = Settings(model="simulated", params={"temperature": 0}, corpus=CORPUS)
GENERATION_S = 1.7


class Tally(Struct):
    """What one system came to in a year."""

    requests: int = 0
    hits: int = 0
    stale: int = 0
    made: int = 0
    asked: int = 0
    failed: int = 0

    def add(self, other: "Tally") -> None:
        """Take in another year."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class World:
    """The truth, the clock, and the application that answers with what is true now."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self.clock = FakeClock()
        self._start = self.clock.now()
        self._pages = {page.question: page for page in pages}

    def move(self, at: float) -> None:
        """Let the time be so many seconds after the beginning of the year."""
        self.clock.advance(self._start + at - self.clock.now())

    def answer(self, question: str) -> str:
        """Return what is true now."""
        return self._pages[question].true_at(self.clock.now() - self._start)

    def is_true(self, question: str, answer: str) -> bool:
        """Tell whether an answer is true now."""
        return self.answer(question) == answer

    def chunk(self, question: str) -> Evidence:
        """Return what is retrieved for a question now."""
        source = self._pages[question].source
        text = f"{question} {self.answer(question)}."
        return Evidence(corpus=CORPUS, source=source, chunk=source, text=text)


class Application:
    """A RAG application with a cache; ``made`` counts its generations."""

    def __init__(self, world: World, cache: Cache) -> None:
        self._world = world
        self._cache = cache
        self.made = 0

    def ask(self, question: str) -> str | None:
        """Return what the cache served; ``None`` where the answer was made, which is a true one."""
        request = Request(question=question, settings=SETTINGS)
        outcome = self._cache.lookup(request)
        if isinstance(outcome, Hit):
            return outcome.answer.text
        self.made += 1
        answer = Answer(text=self._world.answer(question), latency_s=GENERATION_S)
        chunk = self._world.chunk(question)
        self._cache.update(request, answer, outcome=outcome, evidence=[chunk])
        return None

    def refresh(self, due: DueEntry) -> None:
        """Make an answer anew."""
        with stampcache.scope(no_cache=True):
            self.ask(due.entry.question)


def played(system: System, pages: Sequence[Page], steps: Sequence[Step], seed: int) -> Tally:
    """Let one system go through a year."""
    if not system.caches:
        requests = sum(isinstance(step, Asked) for step in steps)
        return Tally(requests=requests, made=requests)
    random.seed(seed)  # by which requests are early (XFetch)
    world = World(pages)
    tally = Tally()
    with system.opened(world.clock, world.is_true, seed) as cache:
        application = Application(world, cache)
        refresh = application.refresh if system.refreshes else None
        for step in steps:
            world.move(step.at)
            if isinstance(step, Asked):
                served = application.ask(step.page.question)
                tally.requests += 1
                tally.hits += served is not None
                tally.stale += served is not None and not world.is_true(step.page.question, served)
            elif isinstance(step, Changed):
                if system.told:
                    cache.invalidate(corpus=CORPUS, source=step.page.source)
            elif system.freshness is not None:
                cache.work(refresh=refresh)
        spent = cache.stats(everything=True).judge
    tally.made = application.made
    tally.asked, tally.failed = spent.calls, spent.failed
    return tally


def row(group: str, system: System, years: Sequence[Tally]) -> Row:
    """Return the years of a system as one row."""
    whole = Tally()
    for one in years:
        whole.add(one)
    shares = [Share(one.stale, one.hits).value for one in years]
    per = 1_000 / whole.requests
    return {
        "group": group,
        "system": system.name,
        "requests": whole.requests,
        "hits": whole.hits,
        "stale": whole.stale,
        "hit rate": str(Share(whole.hits, whole.requests)),
        "stale of hits": str(Share(whole.stale, whole.hits)) if whole.hits else "-",
        "by year": f"{min(shares):.1%} to {max(shares):.1%}" if whole.hits else "-",
        "judge calls / 1,000": round(per * whole.asked, 1),
        "failed": whole.failed,
        "generations / 1,000": round(per * whole.made, 1),
        "model calls / 1,000": round(per * (whole.asked + whole.made), 1),
    }
