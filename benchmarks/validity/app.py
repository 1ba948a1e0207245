"""The application that is cached: real retrieval over chunks, and a model whose answer is known.

Retrieval is flat search with MiniLM, the best `TOP_K` chunks. The model is a function of what is asked
and of the texts that were retrieved, in their order. So the answer that the application would give
now without a cache is known at each moment, and any other one that is served is wrong.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from benchmarks.validity.texts import Question, readable
from stampcache import Evidence
from stampcache.errors import WindowError
from stampcache.model import Vector
from stampcache.ports import Embedder

TOP_K = 3
CORPUS = "documents"
_BATCH = 32


class Change(Struct, frozen=True):
    """A document that was written (all its chunks) or, with ``None``, deleted; and what was done."""

    source: str
    chunks: tuple[str, ...] | None
    how: str


class Vectors:
    """Unit vectors of texts. Those of `known` are remembered; `embedded` works each time."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._known: dict[str, Vector] = {}

    def embedded(self, text: str) -> Vector:
        """Embed one text now, as an application does for each question; shape (d,)."""
        row: Vector = self._rows([text])[0]
        return row

    def known(self, text: str) -> Vector:
        """Return the same vector without embedding a text for the second time."""
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self.embedded(text)
        return found

    def prepare(self, texts: Iterable[str], advance: Callable[[int], object]) -> None:
        """Embed chunks in batches, ahead of their use; ``advance`` is told how many were done."""
        wanted = sorted({one for one in texts if one not in self._known}, key=len)
        for at in range(0, len(wanted), _BATCH):
            batch = wanted[at : at + _BATCH]
            self._known.update(zip(batch, self._rows(batch), strict=True))
            advance(len(batch))

    def _rows(self, texts: Sequence[str]) -> Vector:
        shown = [readable(text) for text in texts]
        try:
            rows = self.embedder.embed(shown)
        except WindowError:
            rows = np.concatenate([self._cut(text) for text in shown])
        unit: Vector = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def _cut(self, text: str) -> Vector:
        """Embed as much of a text as the embedder reads."""
        try:
            return self.embedder.embed([text])
        except WindowError:
            return self._cut(text[: len(text) // 2])


class App:
    """Documents that change, retrieval over them, and the model."""

    def __init__(self, documents: Mapping[str, Sequence[str]], vectors: Vectors) -> None:
        self.vectors = vectors
        self._documents = {source: tuple(chunks) for source, chunks in documents.items()}
        self._answers: dict[str, str] = {}
        self._index()

    @property
    def documents(self) -> Mapping[str, tuple[str, ...]]:
        """All documents as they are now, by source."""
        return self._documents

    def write(self, change: Change) -> None:
        """Do what the change says; questions that are asked from now on see it."""
        if change.chunks is None:
            del self._documents[change.source]
        else:
            self._documents[change.source] = change.chunks
        self._answers.clear()
        self._index()

    def retrieve(self, question: str) -> tuple[Evidence, ...]:
        """Embed the question and return the best chunks: what the application pays per request."""
        return self._nearest(self.vectors.embedded(question))

    def retrieved(self, question: str) -> tuple[Evidence, ...]:
        """Return the same without paying for the embedding again: for the referee."""
        return self._nearest(self.vectors.known(question))

    def answer(self, question: Question) -> str:
        """Return what the application answers now, without a cache."""
        known = self._answers.get(question.text)
        if known is None:
            known = generated(question, self.retrieved(question.text))
            self._answers[question.text] = known
        return known

    def _index(self) -> None:
        self._chunks = [
            Evidence(corpus=CORPUS, source=source, chunk=f"{source}#{at}", text=text)
            for source, chunks in self._documents.items()
            for at, text in enumerate(chunks)
        ]
        self._matrix = np.stack([self.vectors.known(one.text) for one in self._chunks])

    def _nearest(self, vector: Vector) -> tuple[Evidence, ...]:
        best = np.argsort(-(self._matrix @ vector), kind="stable")[:TOP_K]
        return tuple(self._chunks[at] for at in best)


def generated(question: Question, evidence: Sequence[Evidence]) -> str:
    """Return the model's answer: another one for another meaning, and for other texts."""
    content = "\0".join((question.meaning, *(one.text for one in evidence)))
    return f"Answer {hashlib.blake2b(content.encode(), digest_size=16).hexdigest()}"
