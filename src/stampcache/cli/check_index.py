"""Does a watched index hold what the store knows of it? The index is an object of the application."""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from stampcache.cli.check_result import CheckResult, fail, ok
from stampcache.cli.loading import load
from stampcache.errors import ConfigError


@runtime_checkable
class Examined(Protocol):
    """What ``watch(...)`` of an adapter returns."""

    def problems(self) -> Sequence[str]:
        """Return each problem as a sentence that says how to mend it."""
        ...


def index_findings(place: str | None) -> Iterator[CheckResult]:
    """Compare a watched index with what its store knows; nothing where none is named.

    Raises:
        ConfigError: there is no such object, or it is no watched index.
    """
    if place is None:
        return
    problems = _loaded(place).problems()
    for problem in problems:
        found, _, mend = problem.rstrip(".").rpartition("; ")
        yield fail("index", found or mend, mend if found else "put watch(...) around the index")
    if not problems:
        yield ok("index", f"{place} holds what the store knows of it")


def _loaded(place: str) -> Examined:
    found = load(place, option="--index")
    made = found() if callable(found) and not isinstance(found, Examined) else found
    if not isinstance(made, Examined):
        raise ConfigError(f"{place} is a {type(made).__name__}; name what watch(...) returned.")
    return made
