"""The sets of pairs that quality is measured on, fitted and never fitted apart."""

import csv
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks import pairs
from benchmarks.pairs import Pair
from training.verifier import sources

GROUPS = Path(__file__).parent / "groups"
REPORTED = "never fitted"
FITTED = "fitted"
TEMPLATES = "fitted in part"  # other pairs of the same templates were fitted


class Measured(Struct, frozen=True):
    """Pairs of one source; ``use`` says whether the verifier was fitted on them."""

    name: str
    use: str
    pairs: Sequence[Pair]


def every(data: Path, quick: bool) -> list[Measured]:
    """Return all sets; a quick run has fewer pairs of the large ones."""
    return [
        Measured("fow-cache", REPORTED, pairs.fow(data)),
        Measured("QQP", REPORTED, pairs.qqp(data, 1000 if quick else 4000)),
        Measured("Kmemo unseen", REPORTED, pairs.kmemo_unseen(data)),
        Measured("Own groups", REPORTED, [*own_groups(200 if quick else 1_000)]),
        Measured("PAWS-X zh", REPORTED, paws(data, 500 if quick else 2000)),
        Measured("TimeQA", REPORTED, timeqa(data, 300 if quick else 2000)),
        Measured("CheckList", TEMPLATES, pairs.checklist(data, 10 if quick else 40)),
        Measured("Kmemo", FITTED, pairs.kmemo(data)),
        Measured(
            "MTRAG turns",
            FITTED,
            [p for one in pairs.MTRAG_DOMAINS for p in pairs.mtrag(data, one)],
        ),
    ]


def paws(data: Path, count: int) -> list[Pair]:
    """Chinese sentences with swapped words: for measuring only."""
    with (data / "pawsx_zh" / "dev_2k.tsv").open(encoding="utf-8", newline="") as lines:
        rows = [*csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]
    return [
        Pair(row["sentence1"], row["sentence2"], row["label"] == "1", "zh")
        for row in rows
        if row["sentence1"] and row["sentence2"]
    ][:count]


def own_groups(count: int) -> Iterator[Pair]:
    """Questions of our own that were written after the verifier was fitted, by other hands.

    Two pairs of each group: two wordings of its question, and one of them beside a near miss.
    """
    for group in random.Random(0).sample(sources.groups(GROUPS), count):
        chance = random.Random(group.same[0])
        one, other = chance.sample(group.same, 2)
        yield Pair(one, other, True, "reworded")
        yield Pair(chance.choice(group.same), chance.choice(group.others), False, "near miss")


def exchanged() -> list[Pair]:
    """Chinese questions about two things, by other hands: all wordings, and each beside near misses.

    A near miss is not put beside another one: some have both things exchanged, and are the same.
    """
    return [
        Pair(one, other, same, "reworded" if same else "near miss")
        for group in sources.groups(GROUPS / "chinese")
        for at, one in enumerate(group.same)
        for same, others in ((True, group.same[at + 1 :]), (False, group.others))
        for other in others
    ]


def timeqa(data: Path, count: int) -> list[Pair]:
    """Questions about one relation of one thing at different times: near misses on one evidence."""
    found: list[Pair] = []
    for one in json.loads((data / "timeqa" / "human_annotated_test.json").read_text()):
        asked = [(text, {each["answer"] for each in answers}) for text, answers in one["questions"]]
        for at, (text, answers) in enumerate(asked):
            for other, others in asked[at + 1 :]:
                if text != other and answers.isdisjoint(others):
                    found.append(Pair(text, other, False, "other time"))
    return found[:count]
