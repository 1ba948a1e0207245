"""``stampcache tune``: label pairs that a cache has drawn, and prove a bound on wrong hits."""

import time
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer
from msgspec import to_builtins
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from stampcache import tuning
from stampcache.calibration import Point, Promise, Subject, within
from stampcache.calibration.bounds import check_share
from stampcache.cli.loading import load
from stampcache.cli.options import AsJson, Url
from stampcache.cli.screen import bar, one_line, screen, write_json
from stampcache.cli.target import existing_store
from stampcache.errors import ConfigError
from stampcache.judging import PairJudge, as_model
from stampcache.pairs import Pair
from stampcache.ports import Store
from stampcache.tuning import Known, Tuned

_POINTS_SHOWN = 12
_SAID = MappingProxyType({"y": True, "n": False, "q": None})


def tune(
    url: Url,
    *,
    max_wrong: Annotated[
        float, typer.Option(metavar="SHARE", help="The share of hits by meaning that may be wrong.")
    ] = 0.01,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="Who labels: a chat model, an LLM or a function of the application.",
        ),
    ] = None,
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="You label: same question or not?")
    ] = False,
    limit: Annotated[
        int, typer.Option(metavar="N", min=0, help="Label so many pairs at most.")
    ] = 500,
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="Prove it for this namespace only.")
    ] = None,
    per_minute: Annotated[
        int, typer.Option(metavar="N", min=1, help="Calls of the judge in a minute, at most.")
    ] = 60,
    deadline: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="For each call of the judge.")
    ] = 30.0,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw hits against wrong hits, as .png, .svg or .pdf."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Label pairs of questions that a cache has drawn, prove a bound, and show what there is to choose.

    A bound that is proved holds at once for caches with max_wrong= over this store. Without --judge and
    --by-hand nothing is labelled: what is labelled already may prove it. Exits with 1 if it does not.
    """
    if judge is not None and by_hand:
        raise ConfigError("--judge and --by-hand are given; one of both labels.")
    check_share("max_wrong", max_wrong)  # before anybody labels for nothing
    store = existing_store(url)
    try:
        if judge is not None:
            _judged(store, judge, limit=limit, per_minute=per_minute, deadline_s=deadline)
        if by_hand:
            tuning.ask_person(store, _asked, limit=limit, now=time.time())
        known = _chosen(tuning.known(store), namespace)
        tuned = [
            tuning.tune(store, one.subject, max_wrong=max_wrong, now=time.time()) for one in known
        ]
    finally:
        store.close()
    if plot is not None and tuned:
        from stampcache.cli.tune_plot import draw  # matplotlib is loaded only where it is asked for

        draw(tuned, plot, max_wrong=max_wrong)
    if json:
        write_json([_as_json(one, of) for one, of in zip(tuned, known, strict=True)])
    else:
        _show(screen(), tuned, known, max_wrong)
    if not tuned or not all(isinstance(one.result, Promise) for one in tuned):
        raise typer.Exit(1)


def _chosen(known: Sequence[Known], namespace: str | None) -> Sequence[Known]:
    if namespace is None:
        return known
    return [one for one in known if one.subject.namespace == namespace]


def _judged(store: Store, place: str, *, limit: int, per_minute: int, deadline_s: float) -> None:
    found = load(place, option="--judge")
    counts: dict[str, int] = {}
    judge = PairJudge(
        as_model(found),
        deadline_s=deadline_s,
        calls_per_minute=per_minute,
        now=time.time,
        event=lambda name, count: counts.__setitem__(name, counts.get(name, 0) + count),
    )
    waiting = min(limit, sum(one.waiting for one in tuning.known(store)))
    console = screen(stderr=True)
    columns = (TextColumn("Labelling"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=waiting)
        labelled = tuning.judge_pairs(
            store,
            judge,
            limit=limit,
            now=time.time(),
            done=lambda count: progress.advance(task, count),
        )
    failed = counts.get("pairs.failed", 0)
    if failed:
        console.print(
            f"After {labelled:,} pairs the judge gave no verdict on {failed:,}; they wait for next time."
        )


def _asked(pair: Pair) -> bool | None:
    """Show a pair to a person until it is clear what is said; ``None`` when that is enough."""
    console = screen()
    console.print(f"asked   {one_line(pair.asked, limit=None)}")
    console.print(f"stored  {one_line(pair.stored, limit=None)}")
    while True:
        said = typer.prompt(
            "Would one answer serve both equally well? [y/n, q to end]", default="q"
        )
        word = said.strip().lower()[:1]
        if word in _SAID:
            return _SAID[word]


def _as_json(tuned: Tuned, known: Known) -> dict[str, object]:
    proved = isinstance(tuned.result, Promise)
    return {
        "subject": to_builtins(tuned.subject),
        "proved": proved,
        "statement": str(tuned.result),
        "result": to_builtins(tuned.result),
        "labelled": known.labelled,
        "waiting": known.waiting,
        "unsaid": known.unsaid,
        "points": to_builtins(tuned.points),
        "points_by_cosine": to_builtins(tuned.by_cosine),
        "points_by_weight": {f"{at:g}": to_builtins(of) for at, of in tuned.by_weight.items()},
    }


def _show(
    console: Console, tuned: Sequence[Tuned], known: Sequence[Known], max_wrong: float
) -> None:
    if not tuned:
        console.print(
            "No pairs were drawn yet: open the cache with max_wrong= (or sample=), and let it run."
        )
    for one, of in zip(tuned, known, strict=True):
        unsaid = f", {of.unsaid:,} for a person (--by-hand)" if of.unsaid else ""
        console.print(
            f"{_named(one.subject)}: {of.labelled:,} labelled, {of.waiting:,} wait{unsaid}"
        )
        console.print(one_line(str(one.result), limit=None), soft_wrap=True)
        if one.points:
            console.print(_table(one, console))
        if one.by_weight:
            console.print(_beside(one, max_wrong), soft_wrap=True)


def _beside(tuned: Tuned, max_wrong: float) -> str:
    """Say what would have been served of the same pairs with the cosine counted, and by it and guards."""
    by_weight = ", ".join(
        f"{_most(points, max_wrong)} with the cosine counted at {weight:g}"
        for weight, points in tuned.by_weight.items()
        if weight
    )
    return (
        f"Of these pairs, with at most {max_wrong:.1%} of hits seen to be wrong: "
        f"{_most(tuned.by_weight[0.0], max_wrong)} by this verifier alone, {by_weight}, "
        f"{_most(tuned.by_cosine, max_wrong)} by cosine and guards (verifier=None)."
    )


def _most(points: Sequence[Point], max_wrong: float) -> str:
    best = within(points, max_wrong)
    return f"{best.share.share:.1%}" if best else "none"


def _named(subject: Subject) -> str:
    where = f"namespace {subject.namespace!r}"
    return one_line(f"{where}, embedder {subject.embedder}, {subject.decider}", limit=None)


def _table(tuned: Tuned, console: Console) -> Table:
    counted = tuned.weight
    title = f"to choose from, the cosine counted at {counted:g}" if counted else "to choose from"
    table = Table("from score", "hits", "of lookups", "wrong of hits", "", title=title)
    table.title_justify = "left"
    for point in _some(tuned.points):
        wrong = point.wrong_rate
        table.add_row(
            f"{point.threshold:.4g}",
            f"{point.hits:,} of {point.pairs:,}",
            str(point.share),
            str(wrong),
            bar(min(1.0, wrong.share), console),
        )
    return table


def _some(points: Sequence[Point]) -> Sequence[Point]:
    step = -(-len(points) // _POINTS_SHOWN)
    return points[::step]
