"""An application with a cache whose answers age, for ``stampcache work``; tests set it up."""

import os
from typing import Any

from stampcache import AsyncCache, Cache, Freshness, Request, open_cache, scope
from stampcache.due import DueEntry
from stampcache.testing import FakeClock
from stampcache.ttl import HOUR_S

HOURS = 10.0
ASKED = Request(question="What is a map?")
FRESH = '{"fresh": true, "reason": "it names no date"}'
GONE = '{"fresh": false, "reason": "prices change"}'
URL, LATER_S = "STAMPCACHE_TEST_URL", "STAMPCACHE_TEST_LATER_S"


def judge(prompt: str) -> str:
    """Say what the test wants."""
    said = os.environ["STAMPCACHE_TEST_SAID"]
    if not said:
        raise ValueError("the judge is down")
    return said


def clock() -> FakeClock:
    """Return a clock that is as late as the test wants."""
    made = FakeClock()
    made.advance(float(os.environ.get(LATER_S, "0")))
    return made


def settings() -> dict[str, Any]:
    """Return how all processes of the application open the cache."""
    fresh = Freshness(limit=0.2, beta=0.0, deadline_s=30.0)
    return {"freshness": fresh, "ttl_s": HOURS * HOUR_S, "clock": clock()}


def cache() -> Cache:
    """Open the cache."""
    return open_cache(os.environ[URL], judge=judge, **settings())


def without_judge() -> Cache:
    """Open one that nobody judges for."""
    return open_cache(os.environ[URL], **settings())


def for_tasks() -> AsyncCache:
    """Open the cache for tasks."""
    return cache().aio


def in_memory() -> Cache:
    """Open one that no other process sees."""
    return open_cache("memory://", judge=judge, **settings())


def refresh(due: DueEntry) -> None:
    """Make an answer anew."""
    with scope(tenant=due.scope.tenant, no_cache=True), without_judge() as opened:
        request = Request(question=due.entry.question)
        opened.update(request, "anew", outcome=opened.lookup(request))


async def arefresh(due: DueEntry) -> None:
    """Is no plain function."""


class _Refresher:
    """Is no plain function either."""

    async def __call__(self, due: DueEntry) -> None:
        """Make an answer anew."""


refresher = _Refresher()
number = 3
