"""What a judge of freshness is worth: a simulated year, a real model as the judge, the serving path.

    python -m benchmarks.freshness --data DIR [--quick] [--json FILE] [--model]

Each page of TimeQA, which is not shipped, is a question whose true answer changes at known dates; the
years 1920 to 2020 are put on one simulated year. Requests come by popularity (Zipf), the application
answers with what is true now, and nobody announces a change, except to the oracle. `Cache.work` runs
every simulated hour. Judges are simulated, with stated errors; a *stale* answer is one that was served
and is not true any more. The pages are halved: limits and lifetimes are chosen on one half, all that is
reported is measured on the other. Requests for one page are not independent of each other, so that the
intervals (Wilson) are too narrow; what years that are drawn anew come to stands beside them. The ids of
entries, and so the jitter of their lives, are drawn anew in each run.

With ``--model`` a real model is the judge: that of DEEPSEEK_BASE_URL or DEEPSEEK_API_KEY, else a small
local one.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import report
from benchmarks.freshness import facts, path, play, systems, year
from benchmarks.freshness.facts import Halves, Page
from benchmarks.freshness.play import Tally
from benchmarks.freshness.systems import System
from benchmarks.freshness.year import FULL, QUICK, Size
from benchmarks.report import Row

SEED = 7
MOST_STALE = 0.05
_IN_FILE_ONLY = ("group", "requests", "hits", "stale")


class Arguments(report.Arguments):
    """Those of every benchmark, and whether a real model is asked."""

    model: bool


def arguments() -> Arguments:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the measuring data")
    parser.add_argument("--quick", action="store_true", help="a smaller run, wider intervals")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--model", action="store_true", help="also ask a real model")
    return parser.parse_args(namespace=Arguments())


def simulated(halves: Halves, size: Size, advance: Callable[[], object]) -> list[Row]:
    """Return the rows of the simulated years: settings as stated, and settings that were chosen."""
    rows = [
        play.row("stated", system, _years(system, halves.reported, size, SEED, advance))
        for system in systems.compared()
    ]
    for family in systems.grids().values():
        best = chosen(
            family, [_years(one, halves.choosing, size, SEED + 100, advance) for one in family]
        )
        years = _years(best, halves.reported, size, SEED, advance)
        rows.append(play.row("chosen", best, years))
    return rows


def chosen(family: Sequence[System], found: Sequence[Sequence[Tally]]) -> System:
    """Return the system with the most hits of those that serve few stale ones, else the least stale."""
    shares = {}
    for system, years in zip(family, found, strict=True):
        hits, stale = sum(one.hits for one in years), sum(one.stale for one in years)
        shares[system.name] = (stale / hits if hits else 0.0, hits)
    allowed = [one for one in family if shares[one.name][0] <= MOST_STALE]
    if allowed:
        return max(allowed, key=lambda one: shares[one.name][1])
    return min(family, key=lambda one: shares[one.name][0])


def _years(
    system: System, pages: Sequence[Page], size: Size, seed: int, advance: Callable[[], object]
) -> list[Tally]:
    found = []
    for number in range(size.years):
        steps = year.year(pages, size.requests, seed + number)
        found.append(play.played(system, pages, steps, seed + number))
        advance()
    return found


def asked(halves: Halves, count: int, console: Console) -> list[Row]:
    """Return the rows of a real model."""
    from benchmarks.freshness import real
    from stampcache.demo.endpoint import chosen as named
    from stampcache.demo.endpoint import model_endpoint

    given = real.cases(halves.reported, count)
    rows = []
    with model_endpoint() as endpoint, _progress(console) as progress:
        for form in real.forms(local=named(os.environ) is None):
            bar = progress.add_task(f"{endpoint.model}, {form.name}", total=len(given))
            judge = real.model(endpoint, form)
            rows.append(
                real.row(endpoint.model, form, judge, given, partial(progress.advance, bar))
            )
    return rows


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True)


def _shown(title: str, rows: Sequence[Row]) -> None:
    shown = [
        {name: cell for name, cell in row.items() if name not in _IN_FILE_ONLY} for row in rows
    ]
    report.show(title, shown)


def year_rows(data: Path, size: Size, console: Console) -> list[Row]:
    """Simulate the years, and print their tables."""
    halves = facts.timeqa(data)
    plays = len(systems.compared()) + sum(len(one) + 1 for one in systems.grids().values())
    with _progress(console) as progress:
        bar = progress.add_task("simulated years", total=plays * size.years)
        rows = simulated(halves, size, partial(progress.advance, bar))
    about = (
        f"{size.years} drawn, {size.requests:,} requests each; reported on"
        f" {facts.described(halves.reported)}"
    )
    for group, title in (
        ("stated", "Simulated years"),
        (
            "chosen",
            f"Chosen on the other half: at most {MOST_STALE:.0%} of hits stale, then most hits",
        ),
    ):
        _shown(f"{title}\n{about}", [row for row in rows if row["group"] == group])
    return rows


def main() -> int:
    """Measure and print; without data, the simulated year is left out, and that is said."""
    given = arguments()
    console = Console()
    rows = path.added(8 if given.quick else 80)
    report.show("Serving path: hits by turns, one run; memory", rows)
    if given.data is None or not (given.data / "timeqa").is_dir():
        print(
            "There is no measuring data, so no year was simulated: give the folder that holds "
            "timeqa, such as --data ../shared/data."
        )
    else:
        rows += year_rows(given.data, QUICK if given.quick else FULL, console)
        if given.model:
            found = asked(facts.timeqa(given.data), 8 if given.quick else 24, console)
            report.show("A real model as the judge; half of the cases have changed", found)
            rows += found
    report.write(given.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
