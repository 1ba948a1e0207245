"""What caches serve that the application would not answer now: six regimes, thirteen systems.

    python -m benchmarks.validity --data DIR [--quick] [--json FILE] [--seed N]

The regimes are those of GroundedCache (arXiv 2605.27494) on documents and questions of TimeQA and
PubMedQA, which are not shipped. A served answer is *stale* if the entry's own question has another
answer by now, and a *wrong hit* if that question asks for something else. USR is the share of requests
that got one or the other. Nothing is fitted on this data.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import report
from benchmarks.report import Row
from benchmarks.validity import generation, tally, texts
from benchmarks.validity.app import App, Change, Vectors
from benchmarks.validity.generation import Generation
from benchmarks.validity.regimes import FULL, QUICK, Ask, Regime, Sizes, regimes
from benchmarks.validity.tally import Tally
from stampcache.embed import as_embedder
from stampcache.ports import Embedder

SEED = 7
_IN_FILE_ONLY = ("regime", "hits", "stale", "wrong", "unsafe", "generation")


class Arguments(report.Arguments):
    """Those of every benchmark, and the seed of what is drawn."""

    seed: int


def arguments() -> Arguments:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the measuring data")
    parser.add_argument("--quick", action="store_true", help="a smaller run, wider intervals")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--seed", type=int, default=SEED, help="of what is drawn")
    return parser.parse_args(namespace=Arguments())


def measure(
    data: Path,
    *,
    embedder: Embedder,
    sizes: Sizes,
    seed: int,
    console: Console,
    generations: int,
) -> list[Row]:
    """Run all regimes, print a table for each, and return their rows."""
    vectors = Vectors(embedder)
    found: list[Row] = []
    made: Generation | None = None
    for regime in regimes(texts.pubmedqa(data), texts.timeqa(data), sizes, seed):
        with _progress(console) as progress:
            app = _prepared(regime, vectors, progress)
            if made is None:
                made = generation.measured(_prompts(app, regime, generations))
            bar = progress.add_task(regime.name, total=len(regime.steps))
            tallies = tally.played(app, regime, partial(progress.advance, bar))
        found += _shown(regime, tallies, made)
    return found


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True)


def _prepared(regime: Regime, vectors: Vectors, progress: Progress) -> App:
    """Embed all chunks that the regime will ever hold, and build the application."""
    chunks = {one for document in regime.documents.values() for one in document}
    for step in regime.steps:
        if isinstance(step, Change):
            chunks.update(step.chunks or ())
    bar = progress.add_task(f"{regime.name}: embedding chunks", total=len(chunks))
    vectors.prepare(chunks, lambda count: progress.advance(bar, count))
    progress.remove_task(bar)
    return App(regime.documents, vectors)


def _prompts(app: App, regime: Regime, count: int) -> list[str]:
    asked = dict.fromkeys(step.question.text for step in regime.steps if isinstance(step, Ask))
    prompts = []
    for question in list(asked)[:count]:
        context = "\n\n".join(one.text for one in app.retrieved(question))
        prompts.append(f"Answer from these notes.\n\n{context}\n\nQuestion: {question}")
    return prompts


def _shown(regime: Regime, tallies: Sequence[Tally], made: Generation) -> list[Row]:
    rows = tally.rows(regime, tallies, made)
    shown = [
        {name: cell for name, cell in row.items() if name not in _IN_FILE_ONLY} for row in rows
    ]
    title = f"{regime.name}: {regime.about}\nno cache: retrieval, measured, + {made.source}"
    report.show(title, shown)
    if regime.name == "paraphrase":
        report.show("paraphrase: hit rate by the way of rewording (requests)", tally.ways(tallies))
    return rows


def main() -> int:
    """Measure and print; without data, say so."""
    given = arguments()
    if given.data is None or not all((given.data / one).is_dir() for one in ("timeqa", "pubmedqa")):
        print(
            "There is no measuring data, so nothing was measured: give the folder that holds "
            "timeqa and pubmedqa, such as --data ../shared/data."
        )
        return 0
    console = Console()
    rows = measure(
        given.data,
        embedder=as_embedder("minilm"),
        sizes=QUICK if given.quick else FULL,
        seed=given.seed,
        console=console,
        generations=3 if given.quick else 20,
    )
    report.write(given.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
