"""The typer application: one place that lists the commands."""

from typing import Annotated

import typer

import stampcache
from stampcache.cli.bench import bench
from stampcache.cli.demo import demo
from stampcache.cli.doctor import doctor
from stampcache.cli.duplicates import duplicates
from stampcache.cli.explain import explain
from stampcache.cli.forget import forget
from stampcache.cli.heard import heard
from stampcache.cli.invalidate import invalidate
from stampcache.cli.screen import in_sentences
from stampcache.cli.stats import stats
from stampcache.cli.tune import tune
from stampcache.cli.work import work


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stampcache {stampcache.__version__}")
        raise typer.Exit


def build_app() -> typer.Typer:
    """Return the command line as a typer application."""
    app = typer.Typer(
        name="stampcache",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    app.command()(in_sentences(demo))
    app.command()(in_sentences(doctor))
    app.command()(in_sentences(stats))
    app.command()(in_sentences(explain))
    app.command()(in_sentences(invalidate))
    app.command()(in_sentences(forget))
    app.command()(in_sentences(heard))
    app.command()(in_sentences(tune))
    app.command()(in_sentences(work))
    app.command()(in_sentences(duplicates))
    app.command()(in_sentences(bench))
    return app


def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Look into a stampcache: what it holds, what it served and why, and what is wrong with it."""
