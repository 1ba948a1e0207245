"""Results of cases as tables for people."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.cases.running import Result
from benchmarks.cases.suite import CASES
from benchmarks.cases.words import Verdict

Results = Mapping[str, Mapping[str, Result]]
"""By the number of the case and the name of the cache."""
CELLS = ("pass", "FAIL", "n/a")
_STYLES = {"pass": "green", "FAIL": "bold red", "n/a": "dim"}
WIDTH = 150


def console() -> Console:
    """Return a console on which the tables have room, also where the output is a file."""
    found = Console()
    return found if found.is_terminal else Console(width=WIDTH)


def show(results: Results, names: Sequence[str], *, title: str, screen: Console) -> None:
    """Print one row per case: its title, and what each of these caches does."""
    table = Table(title=title, title_justify="left")
    table.add_column("case", no_wrap=True)
    table.add_column("title", min_width=30)
    for name in names:
        table.add_column(name, justify="center", overflow="fold", min_width=4)
    for number, by_cache in results.items():
        cells = [by_cache[name].cell for name in names]
        styled = [f"[{_STYLES[cell]}]{cell}[/]" for cell in cells]
        table.add_row(number, CASES[number].title, *styled)
    table.add_section()
    for cell in CELLS:
        counts = [_count(results, name, cell) for name in names]
        table.add_row("", f"[bold]{cell}[/]", *map(str, counts))
    screen.print(table)


def explain(results: Results, *, screen: Console) -> None:
    """Print why something failed, and for each cache why cases were not asked of it."""
    skipped: dict[str, dict[str, list[str]]] = {}
    for number, by_cache in results.items():
        for name, result in by_cache.items():
            if result.verdict is Verdict.FAILS:
                _print(screen, f"FAIL {number} {name}: {result.why}")
            elif result.why:
                skipped.setdefault(name, {}).setdefault(result.why, []).append(number)
    for name, reasons in skipped.items():
        _print(screen, f"n/a for {name}:")
        for why, numbers in reasons.items():
            _print(screen, f"  {why}: {', '.join(numbers)}")


def _count(results: Results, name: str, cell: str) -> int:
    return sum(by_cache[name].cell == cell for by_cache in results.values())


def _print(screen: Console, text: str) -> None:
    screen.print(text, highlight=False, markup=False)
