"""How calls are timed, and what is asked and answered; of the standard library only.

The peers import it too, in environments that have nothing of ours.
"""

import gc
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

Row: TypeAlias = Mapping[str, object]

ANSWER_CHARS = 2_500
TASKS = 64
TENANTS = ("acme", "acme2", "acm", "acm?", "a*", "[ab]", "a", "b", "acme:b", "*")
"""Names of tenants of which some are patterns or prefixes of others."""


def question(number: int) -> str:
    """Return one of many questions."""
    return f"How do I configure service number {number} in the staging environment?"


def answer(number: int) -> str:
    """Return the answer to it."""
    return f"answer {number} ".ljust(ANSWER_CHARS, "x")


def drawn(count: int, calls: int, seed: int = 7) -> list[int]:
    """Return the numbers of the questions that are asked."""
    return random.Random(seed).choices(range(count), k=calls)


def timed(what: str, calls: Sequence[Callable[[], object]]) -> Row:
    """Time each call once, in order; collect garbage before, not during."""
    return told(what, spent(calls))


def spent(calls: Sequence[Callable[[], object]], *, collect: bool = True) -> list[float]:
    """Return the microseconds of each call; without ``collect`` garbage is the caller's affair."""
    if collect:
        gc.collect()
    gc.disable()
    took = []
    for call in calls:
        start = time.perf_counter_ns()
        call()
        took.append((time.perf_counter_ns() - start) / 1_000)
    gc.enable()
    return took


def told(what: str, microseconds: Sequence[float]) -> Row:
    """Return median and 99th percentile as a row."""
    return {
        "what": what,
        "calls": len(microseconds),
        "p50 us": round(statistics.median(microseconds), 2),
        "p99 us": round(percentile(microseconds, 99), 2),
    }


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value below which so many percent lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
