"""What a watched write costs with many cached answers, and how often a watch is wrong about an index.

    python -m benchmarks.watch --data DIR [--quick] [--json FILE]

Chunks and questions are those of PubMedQA and TimeQA, embedded with MiniLM. The cost of telling the cache
stands beside that of embedding the chunk, in one run. For each index, every question is searched again
after each batch of writes; see `benchmarks.watch.approximate`.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import report
from benchmarks.report import Row
from benchmarks.validity import texts
from benchmarks.validity.app import Vectors
from benchmarks.watch import cost
from benchmarks.watch.approximate import Plan, Rig
from benchmarks.watch.indexes import ChromaHnsw, FaissHnsw, Flat, Index
from stampcache.embed import as_embedder
from stampcache.model import Vector

FULL = Plan(began=4_000, batches=60, batch=20, k=4)
QUICK = Plan(began=400, batches=6, batch=10, k=4)


def main() -> int:
    """Measure and print; without data, say so."""
    given = report.arguments(__doc__ or "")
    if given.data is None or not all((given.data / one).is_dir() for one in ("timeqa", "pubmedqa")):
        print(
            "There is no measuring data, so nothing was measured: give the folder that holds "
            "timeqa and pubmedqa, such as --data ../shared/data."
        )
        return 0
    plan = QUICK if given.quick else FULL
    with _progress() as progress:
        chunks, questions = _read(given.data, plan)
        vectors = Vectors(as_embedder("minilm"))
        bar = progress.add_task("embedding", total=len(chunks) + len(questions))
        vectors.prepare([*chunks, *questions], lambda count: progress.advance(bar, count))
        costs = cost.measured(
            vectors.embedder,
            [texts.readable(one)[:600] for one in chunks],
            2_000 if given.quick else 100_000,
            20 if given.quick else 200,
            progress,
        )
        rows = _approximate(vectors, chunks, questions, plan, progress)
    report.show("What it costs to tell a cache of a written chunk", costs)
    report.show("How often a watch is wrong about an index", rows)
    report.write(given.json, [*costs, *rows])
    return 0


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=Console(), transient=True)


def _read(data: Path, plan: Plan) -> tuple[list[str], list[str]]:
    documents = [*texts.pubmedqa(data), *texts.timeqa(data)]
    chunks = list(dict.fromkeys(one for document in documents for one in document.chunks))
    drawn = np.random.default_rng(7)
    wanted = plan.began + plan.batches * plan.batch
    order = drawn.permutation(len(chunks))[:wanted]
    questions = [document.questions[0].text for document in documents]
    return [chunks[at] for at in order], list(dict.fromkeys(questions))[: plan.began // 4]


def _approximate(
    vectors: Vectors,
    chunks: Sequence[str],
    questions: Sequence[str],
    plan: Plan,
    progress: Progress,
) -> list[Row]:
    rows: Vector = np.stack([vectors.known(one) for one in chunks])
    asked: Vector = np.stack([vectors.known(one) for one in questions])
    found: list[Row] = []
    dimension = rows.shape[1]
    indexes: Sequence[Index] = (Flat(dimension), FaissHnsw(dimension), ChromaHnsw(dimension))
    for index in indexes:
        bar = progress.add_task(index.name, total=plan.batches)
        rig = Rig(index, rows, asked, plan)
        rig.play(np.random.default_rng(7), partial(progress.advance, bar))
        found.append(rig.row())
    return found


if __name__ == "__main__":
    sys.exit(main())
