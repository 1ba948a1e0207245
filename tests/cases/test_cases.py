"""Each case of the suite at each seam of stampcache that it applies to, named by its number."""

import asyncio

import pytest

from benchmarks.cases.known import KNOWN
from benchmarks.cases.rig import Case
from benchmarks.cases.seams import SEAMS
from benchmarks.cases.stamped import StampedRig
from benchmarks.cases.suite import CASES


@pytest.fixture(autouse=True)
def no_loop_at_hand() -> None:
    """Without this, LlamaIndex makes a loop for the main thread at its first use, and never closes it."""
    asyncio.set_event_loop(None)


def marks(number: str, seam: str) -> list[pytest.MarkDecorator]:
    fault = KNOWN.get((number, seam))
    return [] if fault is None else [pytest.mark.xfail(reason=fault, strict=True)]


APPLICABLE = [
    pytest.param(case, seam, id=f"{case.number}-{seam.name}", marks=marks(case.number, seam.name))
    for case in CASES.values()
    for seam in SEAMS
    if case.lack(seam) is None
]


@pytest.mark.parametrize(("case", "seam"), APPLICABLE)
def test_case(case: Case, seam: type[StampedRig]) -> None:
    rig = seam()
    try:
        case.check(rig)
    finally:
        rig.close()
