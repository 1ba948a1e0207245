"""Hits at wrong rates on nine sets of pairs, one embedder for all.

Sets that the verifier was fitted on are marked. A hit rate at a wrong rate has its threshold from
the very pairs that are counted, as peers' papers have it; "cross-fitted" has it from the other
half. "Served by default" is each system's own decision: for ours with a threshold that was chosen
on fit data, before any of the reported pairs was seen.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import report
from benchmarks.quality import curves, parts, peers, sets, speed, systems
from benchmarks.quality.curves import Flags, Scores
from benchmarks.quality.sets import Measured
from benchmarks.quality.systems import System
from benchmarks.report import Row
from stampcache.verifying import load
from training.verifier.assembling import Embedding

RATES = (0.01, 0.02, 0.05)
CROSSED = (0.01, 0.02, 0.03, 0.05, 0.1)
FEW_WORDS = 0.4


def similarities(embedding: Embedding, measured: Measured) -> Scores:
    """Return the cosine of each pair."""
    asked = embedding([one.asked for one in measured.pairs])
    stored = embedding([one.stored for one in measured.pairs])
    near: Scores = np.einsum("ij,ij->i", asked, stored).astype(np.float64)
    return near


def labels(measured: Measured) -> Flags:
    """Return which pairs are the same question."""
    return np.array([one.same for one in measured.pairs])


def rows_of(measured: Measured, found: Sequence[System]) -> list[Row]:
    """Return one row for each system."""
    same = labels(measured)
    rows: list[Row] = []
    for one in found:
        row: dict[str, object] = {"data": measured.name, "use": measured.use, "system": one.name}
        for wrong in RATES:
            both = same.any() and not same.all()
            name = f"hits at {wrong:.0%} wrong"
            row[name] = str(curves.hits_at(one.scores, same, wrong)) if both else "-"
        good, bad = curves.served(one.scores, same, one.threshold)
        own = not np.isnan(one.threshold)
        row["hits by default"], row["wrong by default"] = (
            (str(good), str(bad)) if own else ("-", "-")
        )
        rows.append(row)
    return rows


def crossed_rows(
    measured: Measured, found: Sequence[System], counted: Sequence[Scores]
) -> list[Row]:
    """Return hits and wrong hits with thresholds of the other half.

    ``counted``: ours with the cosine counted at several weights, of which the other half chooses, too.
    """
    same = labels(measured)
    ways = [(systems.TUNED, counted), *((one.name, [one.scores]) for one in found)]
    rows: list[Row] = []
    for name, scores in ways:
        for wrong in CROSSED:
            got = curves.cross_tuned(scores, same, wrong)
            rows.append(
                {
                    "data": measured.name, "system": name, "allowed wrong": f"{wrong:.0%}",
                    "cross-fitted hits": f"{got.hits:.1%}", "cross-fitted wrong": f"{got.wrong:.1%}",
                }
            )  # fmt: skip
    return rows


def at_peers_rates(
    measured: Measured, found: Sequence[System], counted: Sequence[Scores]
) -> list[Row]:
    """Return what ours, tuned, serves at the wrong rate that each peer has as it is shipped."""
    same = labels(measured)
    rows: list[Row] = []
    for one in found:
        if one.name.endswith(systems.AS_SHIPPED) and same.any() and not same.all():
            good, bad = curves.served(one.scores, same, one.threshold)
            got = curves.cross_tuned(counted, same, bad.value)
            rows.append(
                {
                    "data": measured.name, "peer": one.name, "its hits": f"{good.value:.1%}",
                    "its wrong": f"{bad.value:.1%}", "ours, tuned: hits": f"{got.hits:.1%}",
                    "wrong": f"{got.wrong:.1%}",
                }
            )  # fmt: skip
    return rows


def kind_rows(measured: Measured, found: Sequence[System]) -> list[Row]:
    """Return what each system serves by default, by kind of pair."""
    same = labels(measured)
    kinds = [one.kind for one in measured.pairs]
    rows: list[Row] = []
    for one in [each for each in found if not np.isnan(each.threshold)]:
        for kind in sorted(set(kinds)):
            chosen = curves.of_kind(kinds, kind)
            for label in (True, False):
                at = chosen & (same == label)
                if at.any():
                    share = curves.Share(
                        int((one.scores[at] >= one.threshold).sum()), int(at.sum())
                    )
                    rows.append(
                        {
                            "data": measured.name, "system": one.name, "kind": kind,
                            "label": "same" if label else "other", "served by default": str(share),
                        }
                    )  # fmt: skip
    return rows


def few_words(measured: Measured, found: Sequence[System]) -> list[Row]:
    """Return what is served of pairs that are the same and share less than 40 % of their words."""
    same = labels(measured)
    few = (
        np.array([parts.shared(one.asked, one.stored) < FEW_WORDS for one in measured.pairs]) & same
    )
    rows: list[Row] = []
    for one in found:
        row: dict[str, object] = {"data": measured.name, "system": one.name}
        by_default = curves.Share(int((one.scores[few] >= one.threshold).sum()), int(few.sum()))
        row["reworded, served by default"] = "-" if np.isnan(one.threshold) else str(by_default)
        for wrong in (0.03, 0.05):
            limit = curves.threshold_at(one.scores, same, wrong)
            share = curves.Share(int((one.scores[few] >= limit).sum()), int(few.sum()))
            row[f"reworded, served at {wrong:.0%} wrong"] = str(share)
        rows.append(row)
    return rows


def curve_rows(measured: Measured, found: Sequence[System]) -> list[Row]:
    """Return the whole curve of each system, for the file only."""
    same = labels(measured)
    if same.all() or not same.any():
        return []
    return [
        {
            "data": measured.name,
            "system": one.name,
            "curve (wrong, hits)": curves.curve(one.scores, same),
        }
        for one in found
    ]


def measure(data: Path, quick: bool, late_too: bool) -> list[Row]:
    """Measure all sets, print the tables and return their rows with the curves."""
    embedding, verifier = Embedding(), load()
    every = sets.every(data, quick)
    variants = parts.Variants(data, embedding, late_too) if late_too or not quick else None
    tables: dict[str, list[Row]] = {
        "by set": [], "cross-fitted": [], "at peers' rates": [], "by kind, by default": [],
        "reworded": [],
    }  # fmt: skip
    drawn: list[Row] = []
    for measured in every:
        near = similarities(embedding, measured)
        own = systems.ours(verifier, measured.pairs, near)
        main = [
            systems.exact(measured.pairs), systems.cosine(near),
            systems.guarded(measured.pairs, near), own, systems.vetoed(measured.pairs, own),
        ]  # fmt: skip
        main += peers.scored(measured)
        found = [
            *main,
            *(variants.on(measured) if variants else ()),
            systems.oracle(measured.pairs),
        ]
        tables["by set"] += rows_of(measured, found)
        if measured.name in ("fow-cache", "Kmemo unseen", "Own groups", "QQP"):
            counted = systems.counted(own, near)
            tables["cross-fitted"] += crossed_rows(measured, found, counted)
            tables["at peers' rates"] += at_peers_rates(measured, found, counted)
            tables["reworded"] += few_words(measured, main)
        if measured.name in ("fow-cache", "CheckList"):
            tables["by kind, by default"] += kind_rows(measured, [main[1], *main[3:]])
        drawn += curve_rows(measured, found)
    tables["seen before"] = parts.overlap(every, data, embedding, verifier)
    tables["speed"] = speed.rows(verifier, every[0].pairs)
    for title, rows in tables.items():
        report.show(title, rows)
    return [*[row for rows in tables.values() for row in rows], *drawn]


class Arguments(report.Arguments):
    """What all benchmarks understand, and this one's own."""

    late_interaction: bool
    plot: Path | None


def arguments() -> Arguments:
    """Read the command line."""
    parser = report.parser("Right hits against wrong ones, by pairs.")
    parser.add_argument(
        "--late-interaction", action="store_true",
        help="also fit the verifier with similarities of token vectors, which is not shipped",
    )  # fmt: skip
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw the curves to FILE (.svg or .png)"
    )
    return parser.parse_args(namespace=Arguments())


def main() -> int:
    """Measure, print and write."""
    given = arguments()
    if given.data is None or not (given.data / "kmemo").is_dir():
        print("There is no measuring data: give its folder, such as --data ../shared/data.")
        return 2
    rows = measure(given.data, given.quick, given.late_interaction)
    report.write(given.json, rows)
    if given.plot is not None:
        from benchmarks.quality import picture  # matplotlib is loaded only where it is asked for

        picture.draw(rows, given.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
