"""What all benchmarks share: their arguments, the machine they ran on, their table and their file.

The file of a benchmark holds ``{"machine": {...}, "rows": [{column: value}, ...]}``.
"""

import argparse
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

Row: TypeAlias = Mapping[str, object]

_PACKAGES = (
    "stampcache", "numpy", "msgspec", "torch", "sentence-transformers", "redis", "langchain-core",
    "langchain-community", "langgraph", "llama-index-core", "gptcache",
)  # fmt: skip


class Arguments(argparse.Namespace):
    """The arguments that every benchmark understands."""

    data: Path | None
    quick: bool
    json: Path | None


def arguments(description: str) -> Arguments:
    """Read ``--data``, ``--quick`` and ``--json`` from the command line."""
    return parser(description).parse_args(namespace=Arguments())


def parser(description: str) -> argparse.ArgumentParser:
    """Return what reads them, for a benchmark that understands more."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, help="folder of the measuring data")
    parser.add_argument("--quick", action="store_true", help="a smaller run, wider intervals")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    return parser


def machine() -> dict[str, object]:
    """Describe where the figures come from: processor, cores, Python and package versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": _versions(),
    }


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    if known.exists():
        for line in known.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    versions: dict[str, str] = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def write(path: Path | None, rows: Sequence[Row]) -> None:
    """Write the rows and the machine as JSON; without a path nothing is written."""
    if path is not None:
        content = {"machine": machine(), "rows": [dict(row) for row in rows]}
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def show(title: str, rows: Sequence[Row]) -> None:
    """Print the rows as one table; columns are the union of their names, in order of appearance."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(title=title, title_justify="left")
    for name in columns:
        values = [row[name] for row in rows if name in row]
        numeric = bool(values) and all(isinstance(value, int | float) for value in values)
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_cell(row.get(name, "")) for name in columns))
    Console().print(table)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)
