"""Runs the cases on all seams of stampcache and on other caches of LangChain; says who passes what."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import report
from benchmarks.cases import matrix, printing
from benchmarks.cases.known import KNOWN
from benchmarks.cases.rig import Rig
from benchmarks.cases.rigs.langchain_caches import StampCacheRig
from benchmarks.cases.rigs.peers import PEERS
from benchmarks.cases.running import Result, run
from benchmarks.cases.seams import SEAMS
from benchmarks.cases.suite import CASES
from benchmarks.cases.words import Verdict

TIMEOUT_S = 60.0
QUICK_TIMEOUT_S = 20.0
Results = dict[str, dict[str, Result]]


class Arguments(report.Arguments):
    """What is asked for, besides what all benchmarks know."""

    against: str | None
    markdown: Path | None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cases", description=__doc__)
    parser.add_argument("--against", metavar="NAME,...", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--data", type=Path, help="not needed here")
    parser.add_argument("--quick", action="store_true", help="only LangChain's own seam")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="only write the matrix there")
    return parser


def compared(named: str | None) -> Sequence[type[Rig]]:
    """Return the rigs of the caches to compare with: those named, else all that can be used here.

    Raises:
        ValueError: one is unknown, or cannot be used here; the sentence says why.
    """
    if named is None:
        return [peer.rig for peer in PEERS.values() if not peer.missing]
    names = [name.strip() for name in named.split(",") if name.strip()]
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        known = ", ".join(PEERS)
        raise ValueError(f"There is no cache named {', '.join(unknown)} here; known are {known}.")
    missing = [
        f"{name} cannot be used: {PEERS[name].missing}." for name in names if PEERS[name].missing
    ]
    if missing:
        raise ValueError(" ".join(missing))
    return [PEERS[name].rig for name in names]


def measure(rigs: Sequence[type[Rig]], *, timeout_s: float, screen: Console) -> Results:
    """Run all cases on all of them; results by case and cache."""
    found: Results = {number: {} for number in CASES}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=screen, transient=True) as progress:
        bar = progress.add_task("cases", total=len(CASES) * len(rigs))
        for rig in rigs:
            for number, case in CASES.items():
                progress.update(bar, description=f"{rig.name}: {number}")
                found[number][rig.name] = run(case, rig, rig, timeout_s=timeout_s)
                progress.advance(bar)
    return found


def rows(results: Results) -> list[report.Row]:
    """Return a row for each case, with the reason of each cell that is no pass."""
    return [
        {
            "case": number,
            "title": CASES[number].title,
            **{name: _told(result) for name, result in by_cache.items()},
        }
        for number, by_cache in results.items()
    ]


def _told(result: Result) -> str:
    return f"{result.cell}: {result.why}" if result.why else result.cell


def main() -> int:
    """Run the cases, print and write; or only write the matrix."""
    given = _parser().parse_args(namespace=Arguments())
    if given.markdown is not None:
        given.markdown.write_text(matrix.page(SEAMS, KNOWN), encoding="utf-8")
        return 0
    try:
        peers = compared(given.against)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    logging.disable(logging.CRITICAL)  # failures are provoked; those of a case are in the table
    seams: Sequence[type[Rig]] = [StampCacheRig] if given.quick else SEAMS
    screen = printing.console()
    timeout_s = QUICK_TIMEOUT_S if given.quick else TIMEOUT_S
    results = measure([*seams, *peers], timeout_s=timeout_s, screen=screen)
    own = [StampCacheRig.name, *(rig.name for rig in peers)]
    others = [rig.name for rig in seams if rig.name not in own]
    printing.show(results, own, title="At LangChain's own seam", screen=screen)
    if others:
        printing.show(results, others, title="At the other seams", screen=screen)
    printing.explain(results, screen=screen)
    report.write(given.json, rows(results))
    return int(differs(results, [rig.name for rig in seams]))


def differs(results: Results, seams: Sequence[str]) -> bool:
    """Tell whether a seam of ours does otherwise than the matrix says."""
    return any(
        (results[number][name].verdict is Verdict.FAILS) != ((number, name) in KNOWN)
        for number in results
        for name in seams
    )


if __name__ == "__main__":
    sys.exit(main())
