"""How the command line speaks: tables without surprises, errors as one sentence."""

import functools
import json
import os
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from stampcache.errors import StampCacheError

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
_PIPED_WIDTH = 160
_BAR_CELLS = 24
_SHOWN_CHARS = 160


def screen(*, stderr: bool = False) -> Console:
    """Return a console that takes every text literally and does not break lines early in a pipe."""
    stream = sys.stderr if stderr else sys.stdout
    fits = stream.isatty() or "COLUMNS" in os.environ
    return Console(
        stderr=stderr,
        markup=False,
        highlight=False,
        emoji=False,
        width=None if fits else _PIPED_WIDTH,
    )


def one_line(text: str, *, limit: int | None = _SHOWN_CHARS) -> str:
    """Return a text as one line that cannot steer a terminal, cut off at ``limit`` characters."""
    readable = text.encode("utf-8", "replace").decode()
    line = "".join(c if c.isprintable() else " " for c in readable)
    line = " ".join(line.split())
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"


def bar(share: float, console: Console) -> str:
    """Return a bar for a share in [0, 1]."""
    cell = "█" if console.encoding.lower().startswith("utf") else "#"
    return cell * (max(1, round(share * _BAR_CELLS)) if share > 0 else 0)


def size(count: float) -> str:
    """Return a number of bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"


def write_json(value: object) -> None:
    """Write a value to standard output as JSON, in ASCII."""
    typer.echo(json.dumps(value, indent=2))


def complain(error: StampCacheError) -> None:
    """Write an error to standard error as one red sentence."""
    sentence = Text(one_line(str(error), limit=None), style="red")
    screen(stderr=True).print(sentence, soft_wrap=True)


def in_sentences(command: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Return the command, with each of our errors told as one sentence and exit code 2."""

    @functools.wraps(command)
    def told(*args: Parameters.args, **options: Parameters.kwargs) -> Returned:
        try:
            return command(*args, **options)
        except StampCacheError as error:
            complain(error)
            raise typer.Exit(2) from error

    return told
