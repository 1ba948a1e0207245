"""``stampcache bench``: the benchmarks of a checkout."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from rich.table import Table

import stampcache
from stampcache.cli.screen import one_line, screen
from stampcache.errors import ConfigError

_PROJECT = 'name = "stampcache"'


class Benchmark(Struct, frozen=True):
    """One module that ``python -m benchmarks.NAME`` runs."""

    name: str
    about: str


def bench(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="The benchmark; without it, a list.")
    ] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller run, wider intervals.")] = False,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the rows to FILE.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of the measuring data.")
    ] = None,
) -> None:
    """Run a benchmark of a checkout, or list those that there are."""
    checkout = _checkout()
    found = list(benchmarks(checkout))
    if name is None:
        _show(found)
        return
    if name not in {one.name for one in found}:
        known = ", ".join(one.name for one in found) or "none"
        raise ConfigError(f"There is no benchmark {name!r} in {checkout}; there are: {known}.")
    options = ["--quick"] if quick else []
    for option, path in (("--json", json), ("--data", data)):
        options += [option, str(path.resolve())] if path is not None else []
    command = [sys.executable, "-m", f"benchmarks.{name}", *options]
    done = subprocess.run(command, cwd=checkout, check=False)  # noqa: S603 - a listed module
    raise typer.Exit(done.returncode)


def benchmarks(checkout: Path) -> Iterator[Benchmark]:
    """Yield the modules of ``benchmarks/`` that can be run, by name."""
    folder = checkout / "benchmarks"
    for path in sorted([*folder.glob("*.py"), *folder.glob("*/__main__.py")]):
        text = path.read_text(encoding="utf-8")
        if path.name == "__main__.py" or '__name__ == "__main__"' in text:
            about = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
            yield Benchmark(path.parent.name if path.name == "__main__.py" else path.stem, about)


def _checkout() -> Path:
    """Return the checkout around the working directory, else the one that this code runs from."""
    here, installed = Path.cwd(), Path(stampcache.__file__).parent
    for folder in (here, *here.parents, *installed.parents):
        project = folder / "pyproject.toml"
        if not ((folder / "benchmarks" / "__init__.py").is_file() and project.is_file()):
            continue
        if _PROJECT in project.read_text(encoding="utf-8"):
            return folder
    raise ConfigError(
        "The benchmarks are part of a checkout, and here is none; run this inside a clone of "
        "stampcache."
    )


def _show(found: list[Benchmark]) -> None:
    table = Table("benchmark", "what it measures")
    for one in found:
        table.add_row(one.name, one_line(one.about))
    screen().print(table)
