"""The matrix case x seam, as a page of the docs."""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.cases.rig import Case, Rig
from benchmarks.cases.suite import CASES
from benchmarks.cases.words import Verdict

_BEGINNING = """\
# Faults of caches, and where they are impossible

Each row is a fault that some released cache of language models had, turned into a check. A check builds
a small application with a cache in it, asks it, and looks at what comes back and how often the model
really answered. The same checks run at each place where stampcache can stand.

* **holds**: the check runs there, in the tests, and passes.
* **does not apply**: there is no such thing at that place; the number is that of the reason below.
* **cannot be seen there**: the framework does not show it to a cache at that place; again with a reason.
* **in the core**: it is decided below all of them, and checked in the column `Cache`.

Run them on your machine, also against other caches of LangChain:

```bash
python -m benchmarks.cases --against InMemoryCache,SQLiteCache
```

This page is made by `python -m benchmarks.cases --markdown docs/reference/cases.md`. The tests fail
where it is not what they ran. A run against other caches is in
[benchmarks/runs/cases.json](../../benchmarks/runs/cases.json).
"""


class Reasons:
    """Numbers reasons in the order in which they are met."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, why: str) -> int:
        """Return the number of a reason."""
        return self.numbers.setdefault(why, len(self.numbers) + 1)


def page(seams: Sequence[type[Rig]], known: Mapping[tuple[str, str], str]) -> str:
    """Return the page. ``known`` are faults that are there, by case and seam, with a sentence."""
    reasons = Reasons()
    return "\n".join([_BEGINNING, *_table(seams, known, reasons), "", *_notes(reasons), ""])


def _table(
    seams: Sequence[type[Rig]], known: Mapping[tuple[str, str], str], reasons: Reasons
) -> Iterator[str]:
    names = [f"`{seam.name}`" if " " not in seam.name else _split(seam.name) for seam in seams]
    yield "| case | fault that is impossible | " + " | ".join(names) + " |"
    yield "|---|---|" + "---|" * len(seams)
    for case in CASES.values():
        cells = [_cell(case, seam, known, reasons) for seam in seams]
        yield f"| {case.number} | {case.title} | " + " | ".join(cells) + " |"


def _split(name: str) -> str:
    """Write a name with something in brackets behind it."""
    code, _, more = name.partition(" ")
    return f"`{code}` {more}"


def _cell(
    case: Case, seam: type[Rig], known: Mapping[tuple[str, str], str], reasons: Reasons
) -> str:
    lack = case.lack(seam)
    if lack is None:
        fault = known.get((case.number, seam.name))
        if fault is None:
            return str(Verdict.HOLDS.value)
        return f"**{Verdict.FAILS.value}** [{reasons.number(fault)}](#reasons)"
    if lack.verdict is Verdict.CORE:
        return str(lack.verdict.value)
    return f"{lack.verdict.value} [{reasons.number(lack.why)}](#reasons)"


def _notes(reasons: Reasons) -> Iterator[str]:
    yield "## Reasons"
    yield ""
    for why, number in reasons.numbers.items():
        yield f"{number}. {why[0].upper()}{why[1:]}."
