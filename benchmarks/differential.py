"""Is every hit true? A long random history in both frameworks, beside the same application uncached.

    python -m benchmarks.differential [--quick] [--json FILE]

Questions, insertions, edits, deletions, other chunks, tenants, models, prompts, embedders, clock
jumps, a second process on the same file, and its sudden deaths: 200,000 steps over two frameworks
and four ways of grounding (6,000 with ``--quick``). Under ``watch`` an index in a file, which both
processes write to, tells of its writes; they, too, may die at any point. Each answer is compared
with what the uncached application would answer at that moment: to the question if it was no hit or an
exact one, to the entry's own question if it was a semantic hit. Under ``version/sources`` hits are
compared with the documents that they cite, since a new document that nobody cites is not announced to
it. A step that finds a difference ends the run with an error; the tests play some thousands of such
steps, and make what breaks small.
"""

import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.progress import Progress

from benchmarks.report import Row, arguments, show, write
from stampcache import Reason
from tests.differential.machine import CASES, FRAMEWORKS, MODES, Machine, run, url_in
from tests.differential.process import OtherProcess

STEPS, QUICK_STEPS = 200_000, 6_000
STEPS_PER_WORLD = 500
STALE = (Reason.EVIDENCE_CHANGED, Reason.INVALIDATED, Reason.EXPIRED)


def history(
    framework: str, mode: str, *, steps: int, seed: int, folder: Path, progress: Progress
) -> Row:
    """Play one framework in one mode, a new world every 500 steps."""
    seen: Counter[str] = Counter()
    task = progress.add_task(f"{framework} {mode}", total=steps)
    other = OtherProcess(framework, MODES[mode], folder)
    begun = time.perf_counter()
    try:
        for world in range(steps // STEPS_PER_WORLD):
            url = url_in(folder, f"{framework}-{mode.replace('/', '-')}-{world}")
            machine = Machine(framework, mode, url, other)
            try:
                seen += run(machine, steps=STEPS_PER_WORLD, seed=seed + world)
            finally:
                machine.close()
            for file in folder.glob(f"{Path(url).name}*"):
                file.unlink()
            progress.advance(task, STEPS_PER_WORLD)
    finally:
        other.close()
    return {
        "framework": framework,
        "grounding": mode,
        "steps": steps // STEPS_PER_WORLD * STEPS_PER_WORLD,
        "exact": seen["exact"],
        "semantic": seen["semantic"],
        "misses": seen["miss"],
        "stale": sum(seen[f"reason: {reason.value}"] for reason in STALE),
        "killed": seen["died"] + seen["died writing"],
        "untrue": 0,  # the first one would have ended the run
        "seconds": round(time.perf_counter() - begun),
    }


def main() -> None:
    """Play all histories and print what happened in them."""
    given = arguments(__doc__ or "")
    steps = QUICK_STEPS if given.quick else STEPS
    each = steps // len(CASES) + STEPS_PER_WORLD
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, Progress() as progress:
        for framework, mode in CASES:
            row = history(
                framework,
                mode,
                steps=each,
                seed=1_000_000 * FRAMEWORKS.index(framework),
                folder=Path(folder),
                progress=progress,
            )
            rows.append(row)
    show(
        f"Every hit beside the uncached application, {sum(_steps(row) for row in rows):,} steps",
        rows,
    )
    write(given.json, rows)


def _steps(row: Row) -> int:
    return int(str(row["steps"]))


if __name__ == "__main__":
    main()
