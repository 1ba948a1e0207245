"""Draws hits against wrong hits; needs matplotlib (``pip install 'stampcache[plots]'``)."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.quality.systems import AS_SHIPPED, TUNED
from benchmarks.report import Row

SHOWN = ("fow-cache", "QQP")
CURVE = "curve (wrong, hits)"
CROSSED = "cross-fitted hits"
LINES = ("ours", "cosine", "cosine and guards")


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw a panel for each of two sets: curves of what has a score, points of what only decides."""
    mpl.rcParams["svg.hashsalt"] = "stampcache"  # the same figures give the same file
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(SHOWN)), SHOWN, strict=True):
        mine = [one for one in rows if one.get("data") == name]
        _curves(axes, [one for one in mine if CURVE in one])
        _tuned(axes, [one for one in mine if one.get("system") == TUNED and CROSSED in one])
        _points(axes, [one for one in mine if "hits by default" in one])
        axes.set_title(name)
        axes.set_xlabel("others that are served, %")
        axes.set_ylabel("pairs with the same answer that are served, %")
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 100)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small", loc="lower right")
    ending = {"Date": None} if path.suffix == ".svg" else {}
    figure.savefig(path, metadata=ending)


def _curves(axes: Axes, rows: Sequence[Row]) -> None:
    for row in rows:
        name, points = str(row["system"]), row[CURVE]
        if name in LINES and isinstance(points, list):
            wrong, hits = zip(*points, strict=True)
            width = 2.2 if name == "ours" else 1.3
            axes.plot(
                [100 * one for one in wrong], [100 * one for one in hits], lw=width, label=name
            )


def _tuned(axes: Axes, rows: Sequence[Row]) -> None:
    hits = [_percent(one[CROSSED]) for one in rows]
    wrong = [_percent(one["cross-fitted wrong"]) for one in rows]
    axes.plot(wrong, hits, marker=".", ls=":", color="black", label="ours, tuned at 1 to 10 %")


def _points(axes: Axes, rows: Sequence[Row]) -> None:
    for row in rows:
        name = str(row["system"])
        if row["hits by default"] != "-" and (name == "ours" or name.endswith(AS_SHIPPED)):
            wrong, hits = (_percent(row[f"{what} by default"]) for what in ("wrong", "hits"))
            label = "ours, frozen threshold" if name == "ours" else name
            axes.plot([wrong], [hits], marker="o", ls="", label=label)


def _percent(cell: object) -> float:
    """Return the share of a cell such as "51.0% (45.4% to 56.6%)"."""
    return float(str(cell).partition("%")[0])
