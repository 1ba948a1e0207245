"""Hits against wrong hits as a picture, for ``stampcache tune --plot``."""

from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

from stampcache.calibration import Point, Promise
from stampcache.errors import ConfigError
from stampcache.tuning import Tuned

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise ConfigError("--plot needs matplotlib; run pip install 'stampcache[plots]'.") from error


def _counted(weight: float) -> str:
    return f", cosine counted at {weight:g}" if weight else ""


def _beside(tuned: Tuned) -> Iterator[tuple[str, Sequence[Point]]]:
    """Yield what else there is to choose from where a verifier decides."""
    for weight, points in tuned.by_weight.items():
        if weight != tuned.weight:
            yield f"the same{_counted(weight) or ' alone'}", points
    if tuned.by_cosine:
        yield "cosine and guards instead", tuned.by_cosine


def draw(tuned: Sequence[Tuned], path: Path, *, max_wrong: float) -> None:
    """Draw one curve for each subject, with 95 % intervals, and where its promise begins.

    Raises:
        ConfigError: the file cannot be written, or its ending names no kind of picture.
    """
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for one in tuned:
        share = [100 * point.share.share for point in one.points]
        wrong = [100 * point.wrong_rate.share for point in one.points]
        low = [100 * point.wrong_rate.low for point in one.points]
        high = [100 * point.wrong_rate.high for point in one.points]
        name = f"{one.subject.namespace}: {one.subject.decider}{_counted(one.weight)}"
        (line,) = axes.plot(share, wrong, label=name)
        axes.fill_between(share, low, high, alpha=0.2, color=line.get_color())
        for style, (label, points) in zip(cycle(("-.", ":", "--")), _beside(one), strict=False):
            axes.plot(
                [100 * point.share.share for point in points],
                [100 * point.wrong_rate.share for point in points],
                color=line.get_color(), linestyle=style, linewidth=1, label=label,
            )  # fmt: skip
        if isinstance(one.result, Promise):
            proved = 100 * one.result.share.share
            axes.axvline(proved, color=line.get_color(), linestyle=":", label="proved up to here")
    axes.axhline(100 * max_wrong, color="black", linewidth=0.8, label="asked for")
    axes.set_xlabel("hits by meaning, % of the lookups that were drawn")
    axes.set_ylabel("wrong, % of these hits (95 % intervals)")
    axes.set_ylim(bottom=0)
    if axes.get_legend_handles_labels()[0]:
        axes.legend()
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path} cannot be drawn ({error}); name a .png, .svg or .pdf."
        ) from error
