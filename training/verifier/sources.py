"""The pairs that the verifier is fitted on, from data that may be fitted, and from our own pages."""

import csv
import gzip
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from training.verifier import corrupting, rewording
from training.verifier.corrupting import Substituting

WRITTEN = Path(__file__).parent / "written"
DOMAINS = ("clapnq", "cloud", "fiqa", "govt")
CHECKLIST_PER_TEST = 40
_WRONG_LABELS = frozenset({"Order does matter for asymmetric relations"})
_LAST_TURN_WORDS = 4


class Pair(Struct, frozen=True):
    """Two questions with the label "same question?".

    ``source`` is the data they come from, ``how`` what was done to them, ``weight`` how much the
    pair counts in the fit, ``origin`` the question that it was made of, so that nothing made of one
    question is both fitted and held out.
    """

    one: str
    other: str
    same: bool
    source: str
    how: str = ""
    weight: float = 1.0
    origin: str = ""


class Group(Struct, frozen=True):
    """Questions that are the same, and questions near to them that are other ones."""

    same: Sequence[str]
    others: Sequence[str]


def groups(folder: Path = WRITTEN) -> list[Group]:
    """Return the groups that stand in our own pages."""
    found: list[Group] = []
    for page in sorted(folder.glob("*.txt")):
        for block in page.read_text(encoding="utf-8").split("\n\n"):
            lines = [line for line in block.splitlines() if line.strip()]
            if lines:
                same = [line[2:].strip() for line in lines if line.startswith("=")]
                found.append(
                    Group(same, [line[2:].strip() for line in lines if line.startswith("!")])
                )
    return found


def paired(
    written: Sequence[Group], seed: int, reword: Callable[[str, random.Random, int], str]
) -> Iterator[Pair]:
    """Yield the pairs of groups, as they stand and lightly reworded."""
    for group in written:
        origin = group.same[0]
        chance = random.Random(f"{seed}:{origin}")
        for at, one in enumerate(group.same):
            for other in group.same[at + 1 :]:
                yield Pair(one, other, True, "written", "reworded", 2.0, origin)
                light = reword(one, chance, 1), reword(other, chance, 1)
                yield Pair(*light, True, "written", "reworded, lightly too", 0.5, origin)
            for other in group.others:
                yield Pair(one, other, False, "written", "near miss", 1.5, origin)
                light = reword(one, chance, 1), reword(other, chance, 1)
                yield Pair(*light, False, "written", "near miss, lightly too", 0.5, origin)
        for at, one in enumerate(group.others):
            for other in group.others[at + 1 :]:
                yield Pair(one, other, False, "written", "near miss", 0.5, origin)


def kmemo(data: Path) -> Iterator[Pair]:
    """Yield Kmemo's near misses and paraphrases, the corpus that guards are written against."""
    for one in json.loads((data / "kmemo" / "near-miss-corpus.json").read_text())["pairs"]:
        yield Pair(one["a"], one["b"], one["shouldMatch"], "kmemo", one["category"], 3.0)


def checklist(data: Path, seed: int) -> Iterator[Pair]:
    """Yield some labelled minimal pairs of each test of CheckList."""
    tests: defaultdict[str, list[Pair]] = defaultdict(list)
    with gzip.open(data / "checklist_qqp" / "qqp_suite.jsonl.gz", "rt") as lines:
        for one in map(json.loads, lines):
            if one["label"] in (0, 1) and one["test"] not in _WRONG_LABELS:
                rows = one["data"] if isinstance(one["data"][0], list) else [one["data"]]
                same = one["label"] == 1
                tests[one["test"]] += [
                    Pair(a, b, same, "checklist", one["test"], 0.4) for a, b in rows if a != b
                ]
    for name, found in sorted(tests.items()):
        chance = random.Random(f"{seed}:{name}")
        yield from chance.sample(found, min(CHECKLIST_PER_TEST, len(found)))


def _turns(path: Path) -> dict[str, str]:
    rows = map(json.loads, path.read_text().splitlines())
    return {one["_id"]: one["text"].removeprefix("|user|:").strip() for one in rows}


def mtrag(data: Path) -> Iterator[Pair]:
    """Yield last turns with their rewrites; those that only their history completes are left out."""
    for domain in DOMAINS:
        last = _turns(data / "mtrag" / f"{domain}_lastturn.jsonl")
        whole = _turns(data / "mtrag" / f"{domain}_rewrite.jsonl")
        for key in sorted(last.keys() & whole.keys()):
            one, other = last[key], whole[key]
            if one.lower() != other.lower() and stands_alone(one, other):
                yield Pair(one, other, True, "mtrag", "rewrite", 1.0)


_POINTING = re.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|he|she|his|her|there|more|else|other|one"
    r"|ones|same)\b",
    re.I,
)


def stands_alone(turn: str, rewrite: str) -> bool:
    """Tell whether a last turn says by itself what its rewrite says: nothing is pointed at or added."""
    if len(turn.split()) < _LAST_TURN_WORDS or _POINTING.search(turn):
        return False
    words = set(re.findall(r"\w{4,}", turn.lower()))
    added = [word for word in re.findall(r"\w{4,}", rewrite.lower()) if word not in words]
    return len(added) <= 2


def standing(data: Path) -> dict[str, list[str]]:
    """Return questions that stand alone, by the source they come from."""
    found = {"mtrag": sorted(_mtrag_questions(data)), "banking77": sorted(banking(data))}
    found["written"] = [one for group in groups() for one in (*group.same[:1], *group.others)]
    return found


def _mtrag_questions(data: Path) -> set[str]:
    return {
        text
        for domain in DOMAINS
        for text in _turns(data / "mtrag" / f"{domain}_rewrite.jsonl").values()
        if 4 <= len(text.split()) <= 30
    }


def banking(data: Path) -> dict[str, str]:
    with (data / "banking77" / "banking_data_test.csv").open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        return {
            row["text"].strip(): row["category"]
            for row in rows
            if 4 <= len(row["text"].split()) <= 30
        }


def made(
    questions: Sequence[str], source: str, substituting: Substituting, seed: int
) -> Iterator[Pair]:
    """Yield corruptions and light rewordings of these questions."""
    changes = (*corrupting.EVERY, *(substituting.word,) * 3, *(substituting.name,) * 2)
    for text in questions:
        chance = random.Random(f"{seed}:{text}")
        for times in (1, 2, 3):
            one = rewording.reword(text, chance, times - 1)
            other = rewording.reword(text, chance, times)
            if one.lower() != other.lower():
                yield Pair(one, other, True, source, "rewording", 0.5, text)
        for change in chance.sample(changes, 5):
            changed = change(text, chance)
            if changed and changed.lower() != text.lower():
                base, changed = _dressed(text, changed, chance)
                yield Pair(
                    base, changed, False, source, f"corruption: {change.__name__}", 0.5, text
                )
        special = corrupting.pairwise(text, chance)
        if special:
            yield Pair(
                *_dressed(*special, chance), False, source, "corruption: special cases", 0.5, text
            )
            if chance.random() < 0.5:
                one = special[0]
                yield Pair(*_dressed(one, one, chance, 2), True, source, "rewording", 0.5, text)


def _dressed(one: str, other: str, chance: random.Random, least: int = 0) -> tuple[str, str]:
    """Return both, half of the time reworded, so that rewording betrays no label."""
    times = max(least, chance.choice((0, 0, 1, 2)))
    other = rewording.reword(other, chance, times)
    return (one, other) if chance.random() < 0.5 else (other, one)


def nearest(
    questions: Sequence[str],
    vectors: NDArray[np.float32],
    source: str,
    category: Mapping[str, str],
) -> Iterator[Pair]:
    """Yield each question with the most similar one of another category (its own, if it has none)."""
    near = vectors @ vectors.T
    np.fill_diagonal(near, -1)
    for at, one in enumerate(questions):
        for to in np.argsort(-near[at], kind="stable")[:20]:
            other = questions[int(to)]
            if category.get(one, one) != category.get(other, other):
                yield Pair(one, other, False, source, "nearest other", 0.7)
                break
