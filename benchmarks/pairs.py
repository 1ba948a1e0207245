"""Pairs of questions with the label "same question?", read from the measuring data."""

import gzip
import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

SEED = 7
LONGEST = 240


class Pair(Struct, frozen=True):
    """Two questions; ``kind`` is the group of the source that they belong to."""

    asked: str
    stored: str
    same: bool
    kind: str


def kmemo(data: Path) -> list[Pair]:
    """Near misses and paraphrases that guards are written against."""
    return _kmemo(data / "kmemo" / "near-miss-corpus.json")


def kmemo_unseen(data: Path) -> list[Pair]:
    """Near misses and paraphrases of other topics."""
    return _kmemo(data / "kmemo" / "response-corpus.json")


def _kmemo(path: Path) -> list[Pair]:
    pairs = json.loads(path.read_text())["pairs"]
    return [Pair(one["a"], one["b"], one["shouldMatch"], one["category"]) for one in pairs]


def fow(data: Path) -> list[Pair]:
    """Paraphrases, near repeats and four kinds of traps: for measuring only."""
    pairs = map(json.loads, (data / "fow_cache" / "pairs.jsonl").open())
    return [Pair(one["a"], one["b"], one["same_answer"], one["category"]) for one in pairs]


def qqp(data: Path, count: int) -> list[Pair]:
    """Questions of a forum with the label "duplicate", short enough for all: for measuring only."""
    with gzip.open(data / "qqp" / "pairs_20k.jsonl.gz", "rt") as lines:
        pairs = [one for one in map(json.loads, lines) if len(one["a"] + one["b"]) <= LONGEST]
    drawn = np.random.default_rng(SEED).choice(len(pairs), count, replace=False)
    return [Pair(pairs[at]["a"], pairs[at]["b"], bool(pairs[at]["same"]), "qqp") for at in drawn]


_WRONG_LABELS = frozenset({"Order does matter for asymmetric relations"})


def checklist(data: Path, per_test: int) -> list[Pair]:
    """Minimal pairs by linguistic capability: up to ``per_test`` of each test with a label."""
    return _drawn(_checklist_tests(data), per_test)


def checklist_unseen(data: Path, per_test: int) -> list[Pair]:
    """The same of questions that no pair of the half shares which the guards were written by.

    Pairs are one group where they share a question, also by way of others; a group is unseen where
    none of its pairs is of that half. Every test is in both parts: the sentences are other ones,
    their templates are the same.
    """
    tests = _checklist_tests(data)
    groups = _Groups()
    for pair in itertools.chain.from_iterable(tests.values()):
        groups.join(pair.asked, pair.stored)
    seen = {
        groups.of(pair.asked)
        for pair in itertools.chain.from_iterable(tests.values())
        if _is_written_by(pair)
    }
    kept = {
        test: [pair for pair in given if groups.of(pair.asked) not in seen]
        for test, given in tests.items()
    }
    return _drawn(kept, per_test)


class _Groups:
    """Questions that belong together, by union and find."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def of(self, question: str) -> str:
        """Return the question that stands for the group."""
        above = self._above.setdefault(question, question)
        while above != question:
            self._above[question] = self._above[above]
            question, above = above, self._above[above]
        return question

    def join(self, one: str, other: str) -> None:
        """Make one group of the groups of two questions."""
        self._above[self.of(one)] = self.of(other)


def _is_written_by(pair: Pair) -> bool:
    text = "|".join(sorted((pair.asked, pair.stored)))
    return hashlib.blake2b(text.encode()).digest()[0] % 2 == 0


def _checklist_tests(data: Path) -> dict[str, list[Pair]]:
    tests: defaultdict[str, list[Pair]] = defaultdict(list)
    with gzip.open(data / "checklist_qqp" / "qqp_suite.jsonl.gz", "rt") as lines:
        for one in map(json.loads, lines):
            if one["label"] in (0, 1) and one["test"] not in _WRONG_LABELS:
                tests[one["test"]] += _checklist(one)
    return tests


def _drawn(tests: Mapping[str, Sequence[Pair]], per_test: int) -> list[Pair]:
    chooser = np.random.default_rng(SEED)
    drawn: list[Pair] = []
    for _, given in sorted(tests.items()):
        drawn += [given[at] for at in chooser.permutation(len(given))[:per_test]]
    return drawn


def _checklist(one: dict[str, Any]) -> Iterator[Pair]:
    data = one["data"]
    for asked, stored in data if isinstance(data[0], list) else [data]:
        if asked != stored:
            yield Pair(asked, stored, one["label"] == 1, one["capability"])


MTRAG_DOMAINS = ("clapnq", "cloud", "fiqa", "govt")


def mtrag(data: Path, domain: str) -> list[Pair]:
    """Last turns of real conversations with their stand-alone rewrites, all labelled same.

    The label is generous where only its history completes a last turn. Equal texts are left out.
    """
    last = _mtrag(data / "mtrag" / f"{domain}_lastturn.jsonl")
    rewritten = _mtrag(data / "mtrag" / f"{domain}_rewrite.jsonl")
    both = [(last[one], rewritten[one]) for one in sorted(last.keys() & rewritten.keys())]
    return [
        Pair(asked, stored, True, domain)
        for asked, stored in both
        if asked.lower() != stored.lower()
    ]


def pawsx(data: Path, count: int) -> list[Pair]:
    """Chinese sentences with their words exchanged, and paraphrases: for measuring only."""
    rows = [one.split("\t") for one in (data / "pawsx_zh" / "dev_2k.tsv").read_text().splitlines()]
    at = {name: rows[0].index(name) for name in ("sentence1", "sentence2", "label")}
    return [
        Pair(one[at["sentence1"]], one[at["sentence2"]], one[at["label"]] == "1", "pawsx")
        for one in rows[1 : count + 1]
        if one[at["sentence1"]] and one[at["sentence2"]]
    ]


def mtrag_questions(data: Path, domain: str) -> list[str]:
    """All stand-alone questions of a domain; two of them are different questions."""
    return sorted(set(_mtrag(data / "mtrag" / f"{domain}_rewrite.jsonl").values()))


def _mtrag(path: Path) -> dict[str, str]:
    rows = map(json.loads, path.open())
    return {one["_id"]: one["text"].removeprefix("|user|:").strip() for one in rows}
