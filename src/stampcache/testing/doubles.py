"""Stand-ins for what a cache needs from outside, each of which does exactly what it is told."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from stampcache.corpora import Reach
from stampcache.errors import JudgeError, StoreError, VerifierError
from stampcache.model import Candidate, Entry, Selector, Vector
from stampcache.ports import AsyncStore, Forgotten, Receipt, StoreStats
from stampcache.stores.aio import InlineStore
from stampcache.stores.memory import MemoryStore
from stampcache.stores.memory_corpora import MemoryCorpora
from stampcache.stores.memory_journal import MemoryJournal
from stampcache.stores.memory_shelf import MemoryShelf


class FakeClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = 1_764_430_000.0) -> None:
        self._now = now

    def now(self) -> float:
        """See `Clock.now`."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forwards, or backwards by a negative number."""
        self._now += seconds


class AngleEmbedder:
    """Puts each known text at a stated angle (degrees) on a circle, so that cosines are chosen.

    A text that is not in ``angles`` gets a direction of its own, orthogonal to all others. Vectors
    have the length ``norm``, and ``calls`` counts how often `embed` ran.
    """

    def __init__(
        self,
        angles: Mapping[str, float],
        *,
        name: str = "angles",
        norm: float = 2.0,
        room: int = 64,
    ) -> None:
        self.name = name
        self.calls = 0
        self._angles = dict(angles)
        self._norm = norm
        self._room = room
        self._others: dict[str, int] = {}

    def embed(self, texts: Sequence[str]) -> Vector:
        """See `Embedder.embed`; shape (n, 2 + room)."""
        self.calls += 1
        rows = np.zeros((len(texts), 2 + self._room), np.float32)
        for row, text in zip(rows, texts, strict=True):
            if text in self._angles:
                angle = math.radians(self._angles[text])
                row[0], row[1] = math.cos(angle) * self._norm, math.sin(angle) * self._norm
            else:
                row[2 + self._others.setdefault(text, len(self._others)) % self._room] = self._norm
        return rows


class ScriptedVerifier:
    """Answers with the score written for a pair (asked, stored); raises for a pair it lacks."""

    def __init__(
        self,
        scores: Mapping[tuple[str, str], float],
        *,
        name: str = "scripted",
        threshold: float = 0.5,
    ) -> None:
        self.name = name
        self.threshold = threshold
        self._scores = dict(scores)

    def score(self, asked: str, stored: str) -> float:
        """See `Verifier.score`."""
        try:
            return self._scores[asked, stored]
        except KeyError as error:
            raise VerifierError(f"no score is written for {asked!r} and {stored!r}") from error


class ScriptedReader:
    """A verifier that reads each question once; its scores are given by pairs (asked, stored).

    ``read`` are the questions that were read, ``compared`` what was compared with which bytes.
    """

    name = "scripted-reader"
    threshold = 0.5

    def __init__(
        self, scores: Mapping[tuple[str, str], float], *, unread: Sequence[str] = ()
    ) -> None:
        self._scores = scores
        self._unread = unread
        self.read: list[str] = []
        self.compared: list[tuple[str, str, bytes]] = []

    def asking(self, question: str) -> "ScriptedReading":
        """Return the question as read."""
        self.read.append(question)
        if question in self._unread:
            raise VerifierError(f"{question!r} cannot be read")
        return ScriptedReading(self, question)

    def score(self, asked: str, stored: str, seen: bytes) -> float:
        """Return the score of a pair; one that is not given fails."""
        self.compared.append((asked, stored, seen))
        if (asked, stored) not in self._scores:
            raise VerifierError(f"no score for {asked!r} and {stored!r}")
        return self._scores[asked, stored]


class ScriptedReading:
    """A question as a `ScriptedReader` sees it: its bytes in reverse."""

    def __init__(self, reader: ScriptedReader, question: str) -> None:
        self._reader = reader
        self._question = question
        self.seen = question.encode()[::-1]

    def score(self, stored: str, seen: bytes, similarity: float) -> float:
        """See `ScriptedReader.score`."""
        del similarity
        return self._reader.score(self._question, stored, seen)


class ScriptedJudge:
    """Gives the written answers in turn; an exception among them is raised."""

    def __init__(self, answers: Sequence[str | Exception]) -> None:
        self._answers = list(answers)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        """Return the next written answer."""
        self.prompts.append(prompt)
        if not self._answers:
            raise JudgeError("no answer is left in the script")
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class FailingStore(MemoryStore):
    """A memory store that is down while ``down`` is set: every verb then raises `StoreError`."""

    def __init__(self, *, capacity: int = 1_000) -> None:
        super().__init__(capacity=capacity)
        self.down = False

    def _check(self) -> None:
        if self.down:
            raise StoreError("The store is down, as the test wants it.")

    def fetch(self, partition: str, key: str) -> Entry | None:
        """See `Store.fetch`."""
        self._check()
        return super().fetch(partition, key)

    def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        """See `Store.nearest`."""
        self._check()
        return super().nearest(partition, vector, k, asked=asked, now=now)

    @property
    def corpora(self) -> MemoryCorpora:
        """See `Store.corpora`."""
        self._check()
        return super().corpora

    @property
    def journal(self) -> MemoryJournal:
        """See `Store.journal`."""
        self._check()
        return super().journal

    @property
    def shelf(self) -> MemoryShelf:
        """See `Store.shelf`."""
        self._check()
        return super().shelf

    def put(
        self, entry: Entry, vector: Vector | None, fence: int, reach: Reach | None = None
    ) -> Receipt:
        """See `Store.put`."""
        self._check()
        return super().put(entry, vector, fence, reach)

    def fenced(self, entry: Entry, fence: int) -> str:
        """See `Store.fenced`."""
        self._check()
        return super().fenced(entry, fence)

    def touch(self, entry: Entry, asked: str) -> None:
        """See `Store.touch`."""
        self._check()
        super().touch(entry, asked)

    def renew(self, entry: Entry, expires_at: float) -> None:
        """See `Store.renew`."""
        self._check()
        super().renew(entry, expires_at)

    def remove(self, entry: Entry) -> bool:
        """See `Store.remove`."""
        self._check()
        return super().remove(entry)

    def report_bad(self, entry_id: str) -> bool:
        """See `Store.report_bad`."""
        self._check()
        return super().report_bad(entry_id)

    def invalidate(self, selector: Selector) -> int:
        """See `Store.invalidate`."""
        self._check()
        return super().invalidate(selector)

    def clear(self, scope: str) -> int:
        """See `Store.clear`."""
        self._check()
        return super().clear(scope)

    def forget(self, tenant: str) -> Forgotten:
        """See `Store.forget`."""
        self._check()
        return super().forget(tenant)

    def purge(self, now: float) -> int:
        """See `Store.purge`."""
        self._check()
        return super().purge(now)

    def sequence(self) -> int:
        """See `Store.sequence`."""
        self._check()
        return super().sequence()

    def stats(self, scope: str | None = None) -> StoreStats:
        """See `Store.stats`."""
        self._check()
        return super().stats(scope)

    def tally(self, counts: Mapping[str, int]) -> None:
        """See `Store.tally`."""
        self._check()
        super().tally(counts)

    def aio(self) -> AsyncStore:
        """See `Store.aio`."""
        return InlineStore(self)
