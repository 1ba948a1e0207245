"""A simulated year: who asks what and when, when facts change, and when the work is done."""

import random
from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

from benchmarks.freshness.facts import DAY_S, DAYS, Page

WORK_EVERY_S = 3_600.0
ZIPF = 1.0


class Asked(Struct, frozen=True):
    """A request for the answer of a page."""

    at: float
    page: Page


class Changed(Struct, frozen=True):
    """The answer of a page is another one from now on."""

    at: float
    page: Page


class Tick(Struct, frozen=True):
    """The application's task runs `Cache.work`."""

    at: float


Step = Asked | Changed | Tick


class Size(Struct, frozen=True):
    """How many years are drawn, and how many requests each has."""

    years: int
    requests: int


FULL = Size(years=3, requests=10_000)
QUICK = Size(years=1, requests=4_000)


def year(pages: Sequence[Page], requests: int, seed: int) -> list[Step]:
    """Return all that happens, in order. How popular a page is, and when it is asked, is drawn."""
    drawn = random.Random(seed)
    ranked = drawn.sample(list(pages), len(pages))
    weights = list(accumulate(1 / rank**ZIPF for rank in range(1, len(ranked) + 1)))
    asked = drawn.choices(ranked, cum_weights=weights, k=requests)
    end = DAYS * DAY_S
    steps: list[Step] = [Asked(drawn.uniform(0, end), page) for page in asked]
    steps += [Changed(at, page) for page in pages for at in page.changes]
    steps += [Tick(hour * WORK_EVERY_S) for hour in range(1, int(end / WORK_EVERY_S) + 1)]
    return sorted(steps, key=lambda step: step.at)
