"""What `doctor` finds: one finding per line, each with its status and how to mend it."""

import enum

from msgspec import Struct

from stampcache.errors import StampCacheError


class Status(enum.Enum):
    """How a check went; only ``FAIL`` makes the command fail."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"


class CheckResult(Struct, frozen=True):
    """One line: what was checked, how it went, what was found, how to mend it."""

    check: str
    status: Status
    found: str
    mend: str = ""


def ok(check: str, found: str) -> CheckResult:
    """Return a finding that all is well."""
    return CheckResult(check, Status.OK, found)


def warn(check: str, found: str, mend: str) -> CheckResult:
    """Return a finding that works, but probably not as meant."""
    return CheckResult(check, Status.WARN, found, mend)


def fail(check: str, found: str, mend: str) -> CheckResult:
    """Return a finding that does not work."""
    return CheckResult(check, Status.FAIL, found, mend)


def failed(check: str, error: StampCacheError) -> CheckResult:
    """Return a finding for an error, whose sentence says how to mend it."""
    return CheckResult(check, Status.FAIL, str(error))


def skip(check: str, found: str, mend: str) -> CheckResult:
    """Return a finding that nothing was checked, and how to have it checked."""
    return CheckResult(check, Status.SKIP, found, mend)
