"""Writes the reference of the command line from the commands themselves.

python -m stampcache.cli.reference docs/reference/cli.md
"""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, cast

from typer.main import get_command

from stampcache.cli.app import build_app

_OPENING = """\
# Command line

<!-- Written by `python -m stampcache.cli.reference docs/reference/cli.md`; do not edit. -->

The command `stampcache` comes with the extra `stampcache[cli]`. It never creates a store. What is
wrong with its arguments or with a store is told on standard error, with exit code 2.
"""


class _Parameter(Protocol):
    name: str | None
    param_type_name: str
    opts: list[str]
    default: object
    envvar: str | list[str] | None
    help: str | None
    metavar: str | None
    hidden: bool
    is_flag: bool


class _Command(Protocol):
    help: str | None
    params: list[_Parameter]


class _Group(_Command, Protocol):
    commands: dict[str, _Command]


def reference() -> str:
    """Return the page as Markdown; the same on every screen and in every environment."""
    group = cast(_Group, get_command(build_app()))
    parts = [_OPENING, f"{_paragraphs(group)}\n", *_options(group)]
    for name, command in group.commands.items():
        parts += [f"## stampcache {name}\n", f"```text\n{_usage(name, command)}\n```\n"]
        parts += [f"{_paragraphs(command)}\n", *_arguments(command), *_options(command)]
    return "\n".join(parts)


def _paragraphs(command: _Command) -> str:
    return inspect.cleandoc(command.help or "")


def _usage(name: str, command: _Command) -> str:
    words = [f"stampcache {name}"]
    words += [one.metavar or str(one.name).upper() for one in _of(command, "argument")]
    return " ".join([*words, "[OPTIONS]"])


def _of(command: _Command, kind: str) -> Iterator[_Parameter]:
    return (one for one in command.params if one.param_type_name == kind and not one.hidden)


def _arguments(command: _Command) -> Iterator[str]:
    arguments = _of(command, "argument")
    rows = [f"| `{one.metavar or one.name}` | {_cell(one.help)} |" for one in arguments]
    if rows:
        yield "\n".join(["| argument | meaning |", "|---|---|", *rows, ""])


def _options(command: _Command) -> Iterator[str]:
    rows = [
        f"| {_names(one)} | {_cell(one.help)}{_environment(one)} | {_default(one)} |"
        for one in _of(command, "option")
    ]
    if rows:
        yield "\n".join(["| option | meaning | default |", "|---|---|---|", *rows, ""])


def _names(option: _Parameter) -> str:
    value = "" if option.is_flag else f" {_value(option)}"
    return ", ".join(f"`{name}{value}`" for name in option.opts)


def _value(option: _Parameter) -> str:
    return option.metavar or str(option.name).upper()


def _environment(option: _Parameter) -> str:
    return f" Read from `{option.envvar}` when it is not given." if option.envvar else ""


def _default(option: _Parameter) -> str:
    default = getattr(option.default, "value", option.default)
    return "" if default in (None, False, "", ()) or callable(default) else f"`{default}`"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
    else:
        sys.stdout.write(reference())
