"""Simulated judges: what they decide from is their prompt, and, where it says so, the simulated truth.

A real judge does not know what is true; it knows what usually changes. So `Knowing` is an assumption
about how often it is right, and `Reckoning` is what can be had from the prompt's own figures.
"""

import json
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct

_TEXTS = re.compile(
    r"^(=== [0-9a-f]+) question\n(.*)\n\1 answer\n(.*)\n\1 end$", re.DOTALL | re.MULTILINE
)
_TIMES = re.compile(r"(?:found true|It is now): \w+, (.*) UTC")
_RATE = re.compile(r"changes: ([\d.e+-]+) per hour")


class Shown(Struct, frozen=True):
    """What a prompt shows: ``per_hour`` is ``None`` where nothing was observed."""

    question: str
    answer: str
    age_s: float
    per_hour: float | None


def shown(prompt: str) -> Shown:
    """Read a prompt of the shipped English template."""
    texts = _TEXTS.search(prompt)
    assert texts is not None, "the template has changed"
    updated, now = (
        datetime.strptime(said, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        for said in _TIMES.findall(prompt)
    )
    rate = _RATE.search(prompt)
    per_hour = float(rate[1]) if rate else None
    return Shown(texts[2], texts[3], (now - updated).total_seconds(), per_hour)


def said(fresh: bool) -> str:
    """Reply as the template asks for it."""
    verdict = {"fresh": fresh, "reason": "simulated"}
    return f"This is a simulated verdict.\n{json.dumps(verdict)}"


class Knowing:
    """Knows the truth, and says the opposite in a stated share of cases; each one is drawn anew."""

    def __init__(self, right: float, is_true: Callable[[str, str], bool], seed: int) -> None:
        """``is_true`` tells whether an answer to a question is true now."""
        self._right = right
        self._is_true = is_true
        self._drawn = random.Random(seed)

    def __call__(self, prompt: str) -> str:
        case = shown(prompt)
        truth = self._is_true(case.question, case.answer)
        return said(truth == (self._drawn.random() < self._right))


def constant(fresh: bool) -> Callable[[str], str]:
    """Return a judge that says the same of everything."""
    return lambda _: said(fresh)


def reckoning(prompt: str) -> str:
    """Judge by the prompt's figures alone: fresh if a change is less likely than not since then."""
    case = shown(prompt)
    half_life = 0.693
    return said(case.per_hour is not None and case.per_hour * case.age_s / 3_600 < half_life)
