"""Facts that change at known dates, read from TimeQA and put on the calendar of one simulated year.

A page of TimeQA asks for one relation (who owns it, who coaches it) at several dates. Here the page
is one question without a date, whose true answer is that of the latest fact that has begun. The years
`FIRST` to `LAST` of the data become the days 0 to `DAYS` of the simulation, for all pages alike: what
changed often in history changes often here, and what changed before or after does not change. Where
the data says the year alone, the day within it is drawn from the names of page and answer.
"""

import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from stampcache import canonical

FIRST, LAST = 1920, 2020
DAYS = 365.0
DAY_S = 86_400.0
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE = rf"(?:(?:{'|'.join(_MONTHS)})[a-z]*\.? )?(?:1[5-9]|20)\d\d"
_SPAN = re.compile(
    rf",? *\b(?:from|between|in|since|during) ({_DATE})(?: *(?:to|and|until|-) *{_DATE})?,? *",
    re.IGNORECASE,
)


class Page(Struct, frozen=True):
    """One question; ``answers[n]`` is true from ``begins[n]`` on, in seconds of the simulated year.

    The first answer is true from the beginning, whenever its fact began.
    """

    source: str
    question: str
    answers: tuple[str, ...]
    begins: tuple[float, ...]

    def true_at(self, seconds: float) -> str:
        """Return what is true then."""
        held = [one for one, at in zip(self.answers, self.begins, strict=True) if at <= seconds]
        return held[-1] if held else self.answers[0]

    @property
    def changes(self) -> tuple[float, ...]:
        """When its answer changes within the year."""
        return tuple(at for at in self.begins[1:] if 0 < at < DAYS * DAY_S)


class Halves(Struct, frozen=True):
    """The pages, one half to choose settings on and another one to report on."""

    choosing: tuple[Page, ...]
    reported: tuple[Page, ...]


def timeqa(data: Path) -> Halves:
    """Return the pages that have at least two facts; every other one of them is reported on."""
    rows: list[dict[str, Any]] = json.loads(
        (data / "timeqa" / "human_annotated_test.json").read_text(encoding="utf-8")
    )
    found: dict[str, Page] = {}
    for row in sorted(rows, key=lambda one: str(one["index"])):
        page = _page(row)
        if page is not None:
            found.setdefault(canonical.text(page.question), page)
    pages = tuple(found.values())
    return Halves(pages[::2], pages[1::2])


def _page(row: dict[str, Any]) -> Page | None:
    begun = []
    question = ""
    for text, found in row["questions"]:
        span = _SPAN.search(text)
        answer = found[0]["answer"].strip() if found else ""
        if span is not None and answer:
            question = question or _undated(text)
            begun.append((_second(span[1], f"{row['index']} {answer}"), answer))
    begun.sort()
    kept = [one for at, one in enumerate(begun) if not at or begun[at - 1][1] != one[1]]
    if len(kept) < 2:
        return None
    begins, answers = zip(*kept, strict=True)
    return Page(str(row["index"]), question, answers, begins)


def _undated(question: str) -> str:
    words = " ".join(_SPAN.sub(" ", question).replace(" ?", "?").split())
    return words[:1].upper() + words[1:]


def _second(stated: str, name: str) -> float:
    """Return the second of the simulated year at which something began."""
    *month, year = stated.lower().split()
    within = zlib.crc32(name.encode()) / 2**32
    if month:
        within = (_MONTHS.index(month[0][:3]) + 0.5) / 12
    return (int(year) + within - FIRST) / (LAST - FIRST) * DAYS * DAY_S


def described(pages: Sequence[Page]) -> str:
    """Say how often these pages change in the year."""
    changes = [len(page.changes) for page in pages]
    never = sum(not one for one in changes)
    return f"{len(pages)} pages, {sum(changes)} changes in the year; {never} pages never change"
