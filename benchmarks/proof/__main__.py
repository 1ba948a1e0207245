"""Whether a promised wrong-hit rate holds as often as it is said to, and what it costs in labels.

    python -m benchmarks.proof --data DIR [--quick] [--json FILE] [--verifier MODULE:NAME]

From a large pool of labelled pairs some are drawn at random, and a rate is proved by them alone, or it
is not. What is then served of the rest of the pool is wrong at a known rate; a promise is *false* where
that is above the promised one. It may be in 5 % of the draws (delta), and by chance in a few more:
`allowed` is what a binomial with 5 % reaches all but once in a hundred.

Real pairs are those of QQP, scored by MiniLM's cosine with guards as vetoes, and by the trained verifier,
alone and with the cosine counted at a weight that each draw chooses; they are measured on and nothing is
fitted to them. They are no nearest candidates of a store, so the share served says nothing of
a cache. Pools that are made up are called so; their risk is known since it was chosen, in one of them so
that every promise is false.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import report
from benchmarks.proof import draws, pools
from benchmarks.proof.draws import Urn
from benchmarks.proof.pools import Pool
from benchmarks.report import Row
from stampcache.calibration import WEIGHTS
from stampcache.verifying import load

SEED = 7
_IN_FILE_ONLY = ("group", "draws", "labels", "served at best")
RATES = (0.005, 0.01, 0.02, 0.05)


class Size(Struct, frozen=True):
    """How much is drawn."""

    draws: int
    labels: int
    pool: int
    qqp: int | None
    counts: Sequence[int]
    draws_each: int


FULL = Size(500, 1_500, 40_000, None, (300, 600, 1_200, 2_400, 4_800), 20)
QUICK = Size(40, 1_000, 6_000, 2_000, (600, 2_400), 10)


class Arguments(report.Arguments):
    """Those of every benchmark, and a verifier that scores pairs."""

    verifier: str | None


def arguments() -> Arguments:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of the measuring data")
    parser.add_argument("--quick", action="store_true", help="a smaller run, wider intervals")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--verifier", metavar="MODULE:NAME", help="also score QQP by this verifier")
    return parser.parse_args(namespace=Arguments())


def real_pools(data: Path, size: Size, verifier: str | None) -> list[Pool]:
    """Return the pools of QQP: by cosine and guards, by the trained verifier, by a given one."""
    pairs = pools.qqp(data, size.qqp)
    found = pools.real("QQP, cosine and guards", pools.by_cosine(pairs), SEED)
    trained = pools.by_trained(pairs, load())
    found += pools.real("QQP, the trained verifier", trained, SEED)
    found += pools.real("QQP, the trained verifier, weights to choose", trained, SEED, WEIGHTS)
    if verifier is not None:
        scored = pools.by_verifier(pairs, pools.verifier_of(verifier))
        found += pools.real(f"QQP, {verifier}", scored, SEED)
    return found


def urns(real: Sequence[Urn], max_wrong: float, size: Size) -> Iterator[Urn]:
    """Return all pools for one rate."""
    yield from real
    for pool in pools.made_up(max_wrong, size.pool, SEED):
        yield Urn(pool)


def measured(real: Sequence[Urn], size: Size, advance: Callable[[], object]) -> list[Row]:
    """Return the rows of both tables, each with the table that it is of."""
    rows: list[Row] = []
    for max_wrong in RATES:
        for urn in urns(real, max_wrong, size):
            count = min(size.labels, len(urn.pool.labels) // 3)
            one = draws.row(urn, count, max_wrong, size.draws, SEED, advance)
            rows.append({"group": "held", **one})
            need = draws.labels_needed(urn, max_wrong, size.counts, size.draws_each, SEED)
            rows.append({"group": "needed", **need})
    return rows


def _of(rows: Sequence[Row], group: str) -> list[Row]:
    return [
        {name: value for name, value in row.items() if name not in _IN_FILE_ONLY}
        for row in rows
        if row["group"] == group
    ]


def main() -> int:
    """Measure, print both tables and write them; 1 if more promises are false than chance allows."""
    given = arguments()
    size = QUICK if given.quick else FULL
    real: list[Urn] = []
    if given.data is None or not (given.data / "qqp").is_dir():
        print("There is no measuring data, so all pairs are made up; give --data ../shared/data.")
    else:
        real = [Urn(pool) for pool in real_pools(given.data, size, given.verifier)]
    columns = (TextColumn("draws"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True) as progress:
        kinds = len(real) + len(pools.made_up(0.05, 100, SEED))
        task = progress.add_task("draws", total=len(RATES) * kinds * size.draws)
        rows = measured(real, size, lambda: progress.advance(task))
    report.show("False promises among random calibration draws", _of(rows, "held"))
    report.show("Labels with which four of five draws prove the rate", _of(rows, "needed"))
    report.write(given.json, rows)
    return int(any(row.get("holds") == "NO" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
