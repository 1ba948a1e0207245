"""How often a watch is wrong about an index: searched again after each batch of writes, and compared.

Each question has an answer from the k chunks that the index found for it. After each batch every
question is searched again. *Missed*: the index finds other chunks now, and the watch would still serve.
*Needless*: it finds the same, and the watch ended the answer. An answer that ended is made again.
"""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from benchmarks.report import Row
from benchmarks.thresholds import Share
from benchmarks.watch.indexes import Index
from stampcache.adapters import Change, Chunk, Metric, Reading, as_bytes
from stampcache.model import Answer, Entry, Evidence, Identity, Signature, Stamps, Vector
from stampcache.reaching import reach_of
from stampcache.stores.memory import MemoryStore

CORPUS = "documents"
_NOW = 1_764_430_000.0


class Plan(Struct, frozen=True, kw_only=True):
    """What is written: the chunks of the beginning, then batches that come (and as many that go)."""

    began: int
    batches: int
    batch: int
    k: int


class Rig:
    """An index, the answers from it, and what the watch says of them."""

    def __init__(self, index: Index, chunks: Vector, questions: Vector, plan: Plan) -> None:
        self.index = index
        self._chunks = chunks
        self._questions = questions
        self._plan = plan
        self._store = MemoryStore()
        self._store.corpora.declare(CORPUS, now=_NOW, silence_s=None)
        self._found: list[list[int]] = []
        self.held = self.changed = self.missed = self.needless = self.unplain = 0

    def play(self, drawn: np.random.Generator, advance: Callable[[], object]) -> None:
        """Go through all batches."""
        plan = self._plan
        there = list(range(plan.began))
        self._write(there, [])
        self._found = self.index.search(self._questions, plan.k)
        for number, found in enumerate(self._found):
            self._answer(number, found)
        for at in range(plan.batches):
            first = plan.began + at * plan.batch
            come = list(range(first, first + plan.batch))
            gone: list[int] = []
            if self.index.removes:
                gone = [there.pop(drawn.integers(len(there))) for _ in range(plan.batch)]
            there += come
            self._write(come, gone)
            self._compare()
            advance()

    def row(self) -> Row:
        """Return what was counted."""
        compared = self.held + self.missed + self.needless + (self.changed - self.missed)
        served = self.held + self.missed
        unchanged = self.held + self.needless
        return {
            "part": "approximate indexes",
            "index": self.index.name,
            "comparisons": compared,
            "changed": self.changed,
            "missed, of served": str(Share(self.missed, served)),
            "missed, of changed": str(Share(self.missed, self.changed)) if self.changed else "-",
            "kept, of unchanged": str(Share(self.held, unchanged)),
            "not ranked by cosine": self.unplain,
        }

    def _write(self, come: Sequence[int], gone: Sequence[int]) -> None:
        if gone:
            self.index.remove(gone)
        self.index.add(come, self._chunks[list(come)])
        added = tuple(self._chunk(number) for number in come)
        change = Change(added=added, removed=tuple(str(number) for number in gone))
        self._store.corpora.commit(CORPUS, "", change, now=_NOW)

    def _compare(self) -> None:
        now = self.index.search(self._questions, self._plan.k)
        for number, found in enumerate(now):
            entry = self._store.fetch("p", f"q{number}")
            served = entry is not None and not entry.invalidated
            same = found == self._found[number]
            self.changed += not same
            self.held += same and served
            self.missed += not same and served
            self.needless += same and not served
            if not served or not same:
                self._answer(number, found)
        self._found = now

    def _answer(self, number: int, found: Sequence[int]) -> None:
        ids = tuple(str(one) for one in found)
        reading = Reading(
            corpus=CORPUS,
            vector=as_bytes(self._questions[number]),
            metric=Metric.COSINE,
            chunks=ids,
            digests=tuple(self._chunk(one).digest for one in found),
            wanted=self._plan.k,
        )
        reach = reach_of(CORPUS, [reading], ids, self._store.corpora.chunks(CORPUS, ids))
        self.unplain += not reach.question
        self._store.put(self._entry(number, ids), None, self._store.sequence(), reach)

    def _chunk(self, number: int) -> Chunk:
        vector = as_bytes(self._chunks[number])
        return Chunk(id=str(number), digest=f"v1:{number}", vector=vector)

    def _entry(self, number: int, cited: Sequence[str]) -> Entry:
        return Entry(
            id=f"{number}-{self._store.sequence()}",
            identity=Identity("p", f"q{number}", "s", "t"),
            question=str(number),
            answer=Answer(text="answer"),
            signature=Signature("", "v1:00", int(_NOW)),
            evidence=tuple(Evidence(corpus=CORPUS, chunk=one, digest=one) for one in cited),
            stamps=Stamps(),
            created_at=_NOW,
            expires_at=None,
            corpus=CORPUS,
        )
