"""Questions that mean the same or only look alike, and an embedder that sees no difference."""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.cases.words import QUESTION
from stampcache.model import Vector

SAME = {
    QUESTION: "How long does annual leave last?",
    "How is travel paid for?": "In which way is travel paid for?",
}
"""Questions, each with a paraphrase."""

OPPOSITES = (
    ("Is smoking allowed on the balcony?", "Is smoking not allowed on the balcony?"),
    ("How do I turn on the alarm?", "How do I turn off the alarm?"),
    ("How do I enable the feature?", "How do I disable the feature?"),
    ("How do I get from Ulm to Bonn?", "How do I get from Bonn to Ulm?"),
    ("Which visitors are admitted?", "Which visitors are never admitted?"),
)
"""A question and its negation or reversal."""

NEAR_MISSES = (
    ("How many days after 5 years?", "How many days after 15 years?"),
    ("What does a parcel of 2 kg cost?", "What does a parcel of 2 lb cost?"),
    ("Who was the chair in 2021?", "Who was the chair in 2022?"),
    ("What is new in version 3.1?", "What is new in version 3.2?"),
    ("What is the capital of Norway?", "What is the capital of Sweden?"),
    ("What is due on 1 May?", "What is due on 1 June?"),
)
"""Two questions that differ in one number, unit, date, version or entity."""

WIDTH = 512


class WatchedEmbedder:
    """Puts questions of one topic side by side, and every other text in a direction of its own.

    ``texts`` are those that were embedded, ``batches`` counts the calls.
    """

    name = "watched"

    def __init__(self, alike: Sequence[Sequence[str]] = ()) -> None:
        self.texts: list[str] = []
        self.batches = 0
        groups = [*SAME.items(), *OPPOSITES, *NEAR_MISSES, *alike]
        self._topics = _topics(groups)
        self._others: dict[str, int] = {}

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one row per text."""
        self.batches += 1
        self.texts += texts
        rows = np.zeros((len(texts), WIDTH), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[self._place(text)] = 2.0
            row[WIDTH - 1 - _number(text) % 64] += 0.3  # near, and not equal
        return rows

    def forget(self) -> None:
        """Begin to count anew."""
        self.texts.clear()
        self.batches = 0

    def _place(self, text: str) -> int:
        if text in self._topics:
            return self._topics[text]
        return 64 + self._others.setdefault(text, len(self._others)) % (WIDTH - 128)


def _topics(groups: Sequence[Sequence[str]]) -> Mapping[str, int]:
    return {text: place for place, group in enumerate(groups) for text in group}


def _number(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest)
