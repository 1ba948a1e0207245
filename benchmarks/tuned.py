"""A whole cache, tuned: what it serves with a promise, and how much of that is wrong.

    python -m benchmarks.tuned [--quick] [--json FILE]

One question of each of 1,897 groups of our own is stored (two have theirs in common with another). They
were written after the verifier was fitted, by other hands, and nothing is fitted on them. Asked are two
rewordings of each, and a tenth of its near misses, in any order. One half is looked up, its pairs are
drawn and labelled by their groups, and a bound is proved as ``stampcache tune`` does; then the other half
is looked up under that bound. So these are real nearest candidates of a store, through the whole cache.
Plain cosine, which no cache of ours serves by, is proved by the same rules on its own nearest candidates.
"""

import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import pi
from pathlib import Path
from typing import Literal

import numpy as np
from msgspec import Struct
from rich.progress import track

import stampcache
from benchmarks import report
from benchmarks.quality.sets import GROUPS
from benchmarks.report import Row
from benchmarks.thresholds import unit_rows
from stampcache import Hit, Request, pairs, tuning
from stampcache.cache import Cache
from stampcache.calibration import DELTA, Labelled, Promise, Refusal, Subject, interval, prove
from stampcache.embed import as_embedder
from training.verifier import sources

RATES = (0.01, 0.02, 0.05, 0.1)
NEAR_MISSES = 0.1
SEED = 3
LOOKED_AT = 300  # so many lookups at a time leave their pairs in the store
DECIDERS: Sequence[tuple[str, Literal["trained"] | None]] = (
    ("ours, verifier", "trained"),
    ("ours, cosine and guards", None),
)
COSINE = "plain cosine"
FIRST_ATTEMPT = DELTA * 6 / pi**2  # as `stampcache tune` has it


class Asked(Struct, frozen=True):
    """A question with the number of its group, -1 if it is of none that is stored."""

    text: str
    group: int


class Traffic(Struct, frozen=True):
    """What is stored (question: its group), and what is asked first and afterwards."""

    stored: Mapping[str, int]
    first: Sequence[Asked]
    then: Sequence[Asked]


def traffic(count: int | None) -> Traffic:
    """Return the questions of so many groups, or of all."""
    chance = random.Random(SEED)
    groups = sources.groups(GROUPS)
    chance.shuffle(groups)
    chosen = groups[:count]
    stored: dict[str, int] = {}
    asked = []
    for at, group in enumerate(chosen):
        number = stored.setdefault(group.same[0], at)  # two groups have their question in common
        asked += [Asked(text, number) for text in group.same[1:3]]
        asked += [Asked(text, -1) for text in group.others if chance.random() < NEAR_MISSES]
    asked = [one for one in asked if one.text not in stored]
    chance.shuffle(asked)
    return Traffic(stored, asked[: len(asked) // 2], asked[len(asked) // 2 :])


def labelled(cache: Cache, asked: Sequence[Asked], stored: Mapping[str, int]) -> None:
    """Look questions up and label the pairs that are drawn."""
    shelf = cache.core.store.shelf
    group = {one.text: one.group for one in asked}
    for at, one in enumerate(track(asked, "looking up to label", transient=True), 1):
        cache.lookup(Request(question=one.text, model="m"))
        if at % LOOKED_AT == 0 or at == len(asked):
            cache.core.learning.look_at(cache.core.ports)
    drawn = pairs.pairs_of(shelf.kept(pairs.WAITING, pairs.WAITING_KEPT))
    made = [
        pairs.label_record(
            one,
            one.labelled(
                same=group[one.asked] == stored[one.stored],
                labeller="its group",
                at=time.time(),
                sampled=True,
            ),
        )
        for one in drawn
    ]
    shelf.keep(pairs.LABELS, made, most=pairs.LABELS_KEPT)


def served(cache: Cache, asked: Sequence[Asked]) -> tuple[int, int]:
    """Return how many of these are hits by meaning, and how many of the hits are wrong."""
    hits = wrong = 0
    for one in track(asked, "looking up", transient=True):
        outcome = cache.lookup(Request(question=one.text, model="m"))
        if isinstance(outcome, Hit):
            hits += 1
            wrong += outcome.entry.answer.text != str(one.group)
    return hits, wrong


def through_a_cache(
    name: str, verifier: Literal["trained"] | None, given: Traffic, folder: Path
) -> Iterator[Row]:
    """Yield a row for each rate."""
    url = f"sqlite:///{folder / f'{verifier}.db'}"
    opened = partial(stampcache.open_cache, url, embedder="minilm", verifier=verifier)
    with opened(max_wrong=RATES[0], sample=1.0) as cache:
        for text, number in given.stored.items():
            cache.update(Request(question=text, model="m"), str(number))
        labelled(cache, given.first, given.stored)
        store = cache.core.store
        (known,) = tuning.known(store)
        results = [
            tuning.tune(store, known.subject, max_wrong=rate, now=time.time()).result
            for rate in RATES
        ]
    for rate, result in zip(RATES, results, strict=True):
        hits = wrong = 0
        if isinstance(result, Promise):
            with opened(max_wrong=rate) as cache:
                hits, wrong = served(cache, given.then)
        yield row(name, rate, result, hits, wrong, len(given.then))


def by_cosine(given: Traffic) -> Iterator[Row]:
    """Yield the same for the nearest question by cosine, whatever it says."""
    embedder, subject = as_embedder("minilm"), Subject(embedder="minilm", decider=COSINE)
    stored = [*given.stored]
    rows = unit_rows(embedder, stored)
    found: list[list[Labelled]] = []
    for asked in (given.first, given.then):
        near = unit_rows(embedder, [one.text for one in asked]) @ rows.T
        best = near.argmax(axis=1)
        found.append(
            [
                Labelled(
                    asked=one.text,
                    stored=stored[at],
                    same=one.group == given.stored[stored[at]],
                    score=float(score),
                    similarity=float(score),
                    labeller="its group",
                    at=0.0,
                    subject=subject,
                )
                for one, at, score in zip(asked, best, np.max(near, axis=1), strict=True)
            ]
        )
    for rate in RATES:
        result = prove(
            found[0], subject, max_wrong=rate, entries=len(stored), data="groups", made_at=0.0,
            delta=FIRST_ATTEMPT,
        )  # fmt: skip
        least = result.threshold if isinstance(result, Promise) else np.inf
        hits = [one for one in found[1] if one.similarity >= least]
        wrong = sum(not one.same for one in hits)
        yield row(COSINE, rate, result, len(hits), wrong, len(found[1]))


def row(name: str, rate: float, result: Promise | Refusal, hits: int, wrong: int, of: int) -> Row:
    """Return one row of the table."""
    proved = isinstance(result, Promise)
    return {
        "decides": name,
        "promised": f"{rate:.0%}" if proved else f"not {rate:.0%}",
        "from": f"{result.threshold:.4g}" if isinstance(result, Promise) else "-",
        "cosine counts": f"{result.similarity_weight:g}" if isinstance(result, Promise) else "-",
        "hits, of lookups": str(interval(hits, of)),
        "wrong, of hits": str(interval(wrong, hits)) if hits else "-",
    }


def main() -> int:
    """Measure, print and write."""
    given = report.arguments("A whole cache, tuned on half of its traffic.")
    asked = traffic(300 if given.quick else None)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, verifier in DECIDERS:
            rows += through_a_cache(name, verifier, asked, Path(folder))
    rows += by_cosine(asked)
    title = (
        f"{len(asked.stored):,} stored, {len(asked.first):,} labelled, {len(asked.then):,} asked"
    )
    report.show(title, rows)
    report.write(given.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
