"""How often a guard is right: the source of `stampcache.guards.VETOES` (ADR 0023).

For each guard, and for whether both questions say something of its kind or only one does: of the
pairs in which it saw a difference, the share that are labelled different (its precision), and the
same where its finding is the one difference of the pair. The tables of the guards were written
against Kmemo's near misses, MTRAG and one half of CheckList, which are not among the data here. The
pool is what was labelled with care, both as same and as different: fow-cache, Kmemo's other corpus,
and questions of CheckList that no pair of that half shares. Their templates are those of that half,
so they are counted without CheckList, too. Questions of TimeQA on one text that ask for another
time are all different: they show what is caught, and could speak against nothing. The labels of QQP
are those of forum users: pairs that differ in a number or a country alone are often called
duplicates there. PAWS-X holds statements, half of them labelled different whatever is seen.

The rules of `qualified` were written when such figures had been seen. So the precision of those
that qualify is no blind test, and too good rather than too bad.
"""

import csv
import itertools
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks import pairs, report
from benchmarks.pairs import Pair
from benchmarks.report import Row
from benchmarks.thresholds import Share
from stampcache.guards import VETOES, Profile, Shape, differences, judge, profile, vetoes, weigh
from stampcache.guards.vetoes import shape_of, sole

REQUIRED = 0.98
FEWEST = 30
TOLERATED = 0.8
FEWEST_NOISY = 15
OUTSIDE = 3
OWN_WORDS = ("fow-cache", "kmemo unseen")
CARE = (*OWN_WORDS, "checklist unseen")
# In this test "is A warmer than B" and "is B warmer than A" are called the same question.
_COMPARING = "than"


class Count(Struct):
    """How many pairs with a finding are labelled different, and the same."""

    different: int = 0
    same: int = 0

    def add(self, same: bool) -> None:
        """Count one pair."""
        self.same += same
        self.different += not same

    @property
    def share(self) -> Share:
        """The precision: the share of the pairs that are different."""
        return Share(self.different, self.different + self.same)


class Tally(Struct):
    """The counts of one set: of all findings, and of those that were the one difference."""

    found: dict[Shape, Count]
    alone: dict[Shape, Count]
    same: int = 0
    vetoed: int = 0
    different: int = 0
    caught: int = 0


def tally(given: Sequence[Pair]) -> Tally:
    """Count what the guards see in a set of labelled pairs."""
    counts = Tally(defaultdict(Count), defaultdict(Count))
    for pair in given:
        asked, stored = profile(pair.asked), profile(pair.stored)
        seen = differences(asked, stored)
        found = judge(asked, stored, seen)
        for finding in found:
            counts.found[shape_of(finding)].add(pair.same)
        only = sole(asked, stored, seen, found)
        if only is not None:
            counts.alone[shape_of(only)].add(pair.same)
        refused = only is not None and shape_of(only) in VETOES
        counts.same += pair.same
        counts.different += not pair.same
        counts.vetoed += refused and pair.same
        counts.caught += refused and not pair.same
    return counts


def _checklist(data: Path, per_test: int) -> list[Pair]:
    return [
        pair
        for pair in pairs.checklist_unseen(data, per_test)
        if not (pair.same and _is_asked_both_ways(pair))
    ]


def _is_asked_both_ways(pair: Pair) -> bool:
    return _COMPARING in pair.asked.split() and _COMPARING in pair.stored.split()


def _timeqa(data: Path) -> Iterator[Pair]:
    """Questions on one text that ask the same of other times, and whose answers differ."""
    for one in json.loads((data / "timeqa" / "human_annotated_test.json").read_text()):
        asked = [
            (text, sorted(str(each["answer"]) for each in told)) for text, told in one["questions"]
        ]
        for (first, answer), (second, other) in itertools.pairwise(asked):
            if first != second and answer and other and answer != other:
                yield Pair(first, second, False, "timeqa")


def _paws(data: Path) -> Iterator[Pair]:
    with (data / "pawsx_zh" / "dev_2k.tsv").open(newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield Pair(row["sentence1"], row["sentence2"], row["label"] == "1", "pawsx")


def _sets(data: Path, quick: bool) -> dict[str, list[Pair]]:
    return {
        "fow-cache": pairs.fow(data),
        "kmemo unseen": pairs.kmemo_unseen(data),
        "checklist unseen": _checklist(data, 40 if quick else 400),
        "timeqa": [*_timeqa(data)],
        "qqp": pairs.qqp(data, 1000 if quick else 19000),
        "pawsx zh": [*_paws(data)],
    }


def _pooled(
    tallies: Sequence[Tally], which: Callable[[Tally], dict[Shape, Count]]
) -> dict[Shape, Count]:
    pool: dict[Shape, Count] = defaultdict(Count)
    for one in tallies:
        for shape, count in which(one).items():
            pool[shape].same += count.same
            pool[shape].different += count.different
    return pool


def _rows(tallies: dict[str, Tally]) -> list[Row]:
    careful = [tallies[name] for name in CARE]
    found, alone = _pooled(careful, lambda one: one.found), _pooled(careful, lambda one: one.alone)
    worded = _pooled([tallies[name] for name in OWN_WORDS], lambda one: one.alone)
    shapes = {shape for one in tallies.values() for shape in one.found}
    return [
        {
            "guard": shape.guard.value,
            "says": _says(shape),
            "veto": "yes" if shape in VETOES else "no",
            "pool, alone": _shown(alone[shape]),
            "without checklist, alone": _shown(worded[shape]),
            "qqp, alone": _shown(tallies["qqp"].alone[shape]),
            "timeqa, alone": _shown(tallies["timeqa"].alone[shape]),
            "pool, any": _shown(found[shape]),
            "qqp, any": _shown(tallies["qqp"].found[shape]),
            "pawsx zh, any": _shown(tallies["pawsx zh"].found[shape]),
        }
        for shape in sorted(shapes, key=lambda one: (one.guard.value, not one.both))
    ]


def _named(shape: Shape) -> str:
    return f"{shape.guard.value} ({_says(shape)})"


def _says(shape: Shape) -> str:
    return "both" if shape.both else "one"


def _shown(count: Count) -> str:
    share = count.share
    return f"{share}, n={share.of}" if share.of else "none"


def qualified(tallies: dict[str, Tally]) -> set[Shape]:
    """Return the shapes that may veto, by what was measured where they are the one difference.

    On enough pairs of the pool the precision is what is required; QQP, where it has enough pairs,
    does not speak against it in spite of its labels; and some pairs are of another set than
    CheckList, whose templates hold one wording each. QQP does not speak for a shape: what differs
    as code there are addresses of web sites. TimeQA does not count: it has one label.
    """
    pool = _pooled([tallies[name] for name in CARE], lambda one: one.alone)
    forum, templates = tallies["qqp"].alone, tallies["checklist unseen"].alone
    return {
        shape
        for shape in {*pool}
        if _reaches(pool[shape])
        and pool[shape].share.of - templates[shape].share.of >= OUTSIDE
        and not (forum[shape].share.of >= FEWEST_NOISY and forum[shape].share.value < TOLERATED)
    }


def _reaches(count: Count) -> bool:
    return count.share.of >= FEWEST and count.share.value >= REQUIRED


def _costs(tallies: dict[str, Tally]) -> list[Row]:
    return [
        {
            "data": name,
            "different": one.different,
            "vetoed of them": str(Share(one.caught, one.different)),
            "same": one.same,
            "wrongly vetoed": str(Share(one.vetoed, one.same)),
        }
        for name, one in tallies.items()
    ]


def _speeds(given: Sequence[Pair]) -> list[Row]:
    profiles = [(profile(pair.asked), profile(pair.stored)) for pair in given]
    timed: dict[str, list[float]] = {
        "profile": [_seconds(profile, pair.asked) for pair in given],
        "weigh": [_seconds(weigh, *both) for both in profiles],
        "vetoes": [_seconds(vetoes, *both) for both in profiles],
    }
    return [
        {
            "step": name,
            "us (median)": statistics.median(seconds) * 1e6,
            "us (p95)": statistics.quantiles(seconds, n=20)[-1] * 1e6,
        }
        for name, seconds in timed.items()
    ]


def _seconds(act: Callable[..., object], *given: str | Profile) -> float:
    start = time.perf_counter()
    act(*given)
    return time.perf_counter() - start


def main() -> int:
    """Measure, print three tables and write them."""
    given = report.arguments("The precision of each guard, and what a veto by it costs.")
    if given.data is None or not (given.data / "fow_cache").is_dir():
        print("There is no measuring data: give its folder, such as --data ../shared/data.")
        return 2
    sets = _sets(given.data, given.quick)
    tallies = {name: tally(one) for name, one in sets.items()}
    rows, costs, speeds = _rows(tallies), _costs(tallies), _speeds(sets["fow-cache"])
    report.show("Share of pairs with a finding that are different", rows)
    report.show("What the vetoes do", costs)
    report.show("Speed, on the questions of fow-cache", speeds)
    wanted = qualified(tallies)
    print("These reach what a veto needs:", ", ".join(sorted(map(_named, wanted))))
    if wanted != VETOES:
        print("They are not those in use:", ", ".join(sorted(map(_named, VETOES))))
    report.write(given.json, [*rows, *costs, *speeds])
    return 0


if __name__ == "__main__":
    sys.exit(main())
