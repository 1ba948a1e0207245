"""A small world in which everything changes, and an application whose true answer is always known.

Documents, chunking, model, prompt, embedder and clock are plain values (`State`), so that a second
process is sent the very state that the first one sees. Retrieval scores chunks by shared words, and
the model answers with the question and a digest of all that it was given, tenant included: two answers
are equal only if everything they were made from is.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stampcache.model import Vector

K = 2
CORPUS = "world"
NOW = 1_764_430_000.0
TTL_S = 10_000.0
WORDS = ("leave", "travel", "lunch", "salary", "parking")
SOURCES = ("a.md", "b.md", "c.md", "d.md")
TENANTS = ("acme", "globex")
MARK = " ::: "


class Chunk(Struct, frozen=True):
    """A piece of a document; its id says where it stands, not what it says."""

    source: str
    number: int
    text: str

    @property
    def id(self) -> str:
        return f"{self.source}#{self.number}"


SEARCHES = ("flat", "all", "filtered", "two", "ranked", "other")
"""Ways of retrieving from a watched index."""


class State(Struct, frozen=True):
    """What there is now."""

    documents: dict[str, str] = {}
    sentences_per_chunk: int = 1
    model: str = "m1"
    prompt: str = "p1"
    embedder: int = 0
    now: float = NOW
    search: str = "flat"

    def chunks(self) -> list[Chunk]:
        return [one for source in sorted(self.documents) for one in self.chunks_of(source)]

    def chunks_of(self, source: str) -> list[Chunk]:
        """Return what a document is cut into; nothing where there is none."""
        if source not in self.documents:
            return []
        sentences = self.documents[source].split(". ")
        at = range(0, len(sentences), self.sentences_per_chunk)
        pieces = [". ".join(sentences[i : i + self.sentences_per_chunk]) for i in at]
        return [Chunk(source, number, piece) for number, piece in enumerate(pieces)]

    def retrieve(self, question: str) -> list[Chunk]:
        """Return the K chunks that share most words with a question; none that shares none."""
        asked = set(core_of(question).lower().strip("?").split())
        scored = [(len(asked & set(one.text.split())), one) for one in self.chunks()]
        best = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], pair[1].id))
        return [one for _, one in best[:K]]

    def write(self, source: str, text: str | None) -> "State":
        documents = {name: old for name, old in self.documents.items() if name != source}
        if text is not None:
            documents[source] = text
        return replace(self, documents=documents)


def answer_text(question: str, read: str, *, model: str, tenant: str) -> str:
    """Return what the model says: the question, and a digest of all that it was given."""
    parts = "\0".join((question, read, model, tenant))
    return f"{question}{MARK}{hashlib.blake2b(parts.encode(), digest_size=8).hexdigest()}"


def question_of(answer: str) -> str:
    """Return the question that an answer was made for."""
    return answer.partition(MARK)[0]


POLITE = "Please tell me: "


def core_of(question: str) -> str:
    return question.removeprefix(POLITE)


class CoreEmbedder:
    """An embedder for which a polite question is its plain one; ``turn`` are other weights."""

    name = "core"

    def __init__(self, turn: int = 0) -> None:
        self._turn = turn

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.stack([self._one(text) for text in texts])

    def _one(self, text: str) -> Vector:
        rng = np.random.default_rng(list(core_of(text).encode()))
        vector = rng.normal(size=24) + (0.1 if text.startswith(POLITE) else 0.0)
        return np.asarray(np.roll(vector, self._turn) * 2.0, np.float32)
