"""The command line ``stampcache``. Its packages come with the extra ``stampcache[cli]``."""

import io
import sys

_PACKAGES = frozenset({"typer", "rich"})


def main() -> None:
    """Run the command line; exits with 0, 1 (something is wrong with the store) or 2 (an error)."""
    try:
        from stampcache.cli.app import build_app
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        sys.stderr.write(f"The command line needs {package}: run pip install 'stampcache[cli]'.\n")
        raise SystemExit(2) from None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter is no failure
    build_app()(prog_name="stampcache")
