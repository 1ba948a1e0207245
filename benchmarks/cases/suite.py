"""All cases, in the order of their numbers."""

import re
from collections.abc import Iterable, Mapping

from benchmarks.cases.groups import (
    accounts,
    admission,
    clearing,
    embedder,
    equal,
    fidelity,
    fit,
    keys,
    load,
    meaning,
    streams,
    talk,
    tenants,
    time,
)
from benchmarks.cases.rig import Case, Suite

GROUPS = (
    keys, equal, meaning, talk, tenants, time, embedder, fidelity, streams, load, accounts,
    clearing, admission, fit,
)  # fmt: skip
_NUMBER = re.compile(r"([A-Z])(\d*)")


def _place(case: Case) -> tuple[str, int, str]:
    found = _NUMBER.match(case.number)
    if found is None:
        raise ValueError(f"{case.number!r} is no number of a case")
    return found[1], int(found[2] or 0) or 99, case.number


def _all(suites: Iterable[Suite]) -> Mapping[str, Case]:
    cases: dict[str, Case] = {}
    for case in sorted((case for suite in suites for case in suite.cases), key=_place):
        if case.number in cases:
            raise ValueError(f"case {case.number} is written twice")
        cases[case.number] = case
    return cases


CASES: Mapping[str, Case] = _all(group.SUITE for group in GROUPS)
