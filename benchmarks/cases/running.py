"""Runs one case on one cache: in time, and whatever happens with a result."""

import threading
import traceback
import warnings
from collections.abc import Callable

from msgspec import Struct

from benchmarks.cases.rig import Case, Rig
from benchmarks.cases.words import Verdict


class Result(Struct, frozen=True):
    """What came out, and why where it is not simply that it holds."""

    verdict: Verdict
    why: str = ""

    @property
    def cell(self) -> str:
        """The result as a cell of a table."""
        match self.verdict:
            case Verdict.HOLDS:
                return "pass"
            case Verdict.FAILS:
                return "FAIL"
            case _:
                return "n/a"


def run(case: Case, seam: Callable[[], Rig], lacking: type[Rig], *, timeout_s: float) -> Result:
    """Run a case in a fresh cache; a failure, a crash and a hang are failures.

    Args:
        case: the case.
        seam: makes the rig.
        lacking: the class that tells what the seam lacks.
        timeout_s: seconds after which it hangs.
    """
    lack = case.lack(lacking)
    if lack is not None:
        return Result(lack.verdict, lack.why)
    found: list[Result] = []
    thread = threading.Thread(target=lambda: found.append(_checked(case, seam)), daemon=True)
    thread.start()
    thread.join(timeout_s)
    return found[0] if found else Result(Verdict.FAILS, f"no end after {timeout_s:.0f} s")


def _checked(case: Case, seam: Callable[[], Rig]) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            rig = seam()
            try:
                case.check(rig)
            finally:
                rig.close()
        except AssertionError as error:
            return Result(Verdict.FAILS, _first_line(error) or _line_of(error))
        except BaseException as error:  # noqa: BLE001 - a crash of any kind is a result, too
            return Result(Verdict.FAILS, f"{type(error).__name__}: {_first_line(error)}")
    return Result(Verdict.HOLDS)


def _line_of(error: BaseException) -> str:
    """Return the line of the check that failed."""
    return str(traceback.extract_tb(error.__traceback__)[-1].line)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:120]
