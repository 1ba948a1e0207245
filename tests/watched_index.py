"""A small exact index behind a watch, for tests: what an adapter does, in a few lines."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from stampcache import Answer, Cache, Evidence, Outcome, Request, Settings
from stampcache.adapters import (
    Change,
    Chunk,
    Flow,
    IndexView,
    Metric,
    Reading,
    Step,
    Watch,
    as_bytes,
    chunk_digest,
    hear,
    readings,
)

Result = TypeVar("Result")
CORPUS = "handbook"


def vector_of(text: str) -> np.ndarray:
    """Return a vector in which words count: texts that share words are close."""
    row = np.zeros(16, np.float32)
    for word in text.lower().split():
        row[sum(word.encode()) % 16] += 1
    return row + 0.01


class Shelf:
    """Documents by id, each one chunk; ``watch`` is told of what is written through it."""

    def __init__(
        self,
        cache: Cache,
        *,
        texts: dict[str, str] | None = None,
        sees: str = "listing",
        silence_s: float | None = None,
    ) -> None:
        self.texts: dict[str, str] = {} if texts is None else texts
        self.fails_after: int | None = None
        lists, looks = sees == "listing", sees in ("listing", "look")
        view = IndexView(
            count=self._step(lambda: len(self.texts)) if sees != "nothing" else None,
            listing=self._step(lambda: self.listing()) if lists else None,
            look=(lambda ids: self._step(lambda: self.listing(ids))) if looks else None,
        )
        self.watch = Watch(cache.core, CORPUS, view, silence_s=silence_s)

    def listing(self, ids: Sequence[str] | None = None) -> list[Chunk]:
        """Return what is there, without vectors, as many indexes do."""
        names = self.texts if ids is None else [one for one in ids if one in self.texts]
        return [self.chunk(one, self.texts[one], seen=False) for one in names]

    def chunk(self, name: str, text: str, *, seen: bool = True) -> Chunk:
        """Return a document as a chunk."""
        vector = as_bytes(vector_of(text)) if seen else b""
        return Chunk(id=name, source=f"{name}.md", digest=chunk_digest(text, {}), vector=vector)

    def write(self, **texts: str | None) -> None:
        """Write documents through the watch; ``None`` deletes one."""
        self.watch.run(self.writing(**texts))

    def writing(self, **texts: str | None) -> Flow[None]:
        """Return the flow that writes documents through the watch."""
        added = tuple(self.chunk(name, text) for name, text in texts.items() if text is not None)
        removed = tuple(name for name, text in texts.items() if text is None)
        yield from self.watch.writing(
            self.step_of(**texts),
            told=lambda _: Change(added=added, removed=removed),
            ids=tuple(texts),
            planned=added,
        )

    def step_of(self, **texts: str | None) -> Step[None]:
        """Return a step that writes documents without telling the watch."""
        return self._step(lambda: self.write_around(**texts))

    def write_around(self, **texts: str | None) -> None:
        """Write documents without telling the watch."""
        for done, (name, text) in enumerate(texts.items()):
            if done == self.fails_after:
                raise OSError("the disk is full")
            if text is None:
                self.texts.pop(name, None)
            else:
                self.texts[name] = text

    def search(self, question: str, k: int = 2) -> list[str]:
        """Return the ids of the k nearest, and tell the watch of it."""
        asked = vector_of(question)
        scored = sorted(self.texts, key=lambda one: -_cosine(asked, vector_of(self.texts[one])))
        found = scored[:k]
        hear(
            Reading(
                corpus=CORPUS,
                vector=as_bytes(asked),
                metric=Metric.COSINE,
                chunks=tuple(found),
                digests=tuple(chunk_digest(self.texts[one], {}) for one in found),
                wanted=k,
            )
        )
        return found

    def evidence(self, question: str) -> tuple[Evidence, ...]:
        """Return what a question retrieves."""
        return tuple(
            Evidence(corpus=CORPUS, source=f"{one}.md", chunk=one, text=self.texts[one])
            for one in self.search(question)
        )

    def _step(self, do: Callable[[], Result]) -> Step[Result]:
        async def aio() -> Result:
            return do()

        return Step(sync=do, aio=aio)


class Asking:
    """An application over a shelf, with the cache before it."""

    def __init__(self, cache: Cache, shelf: Shelf) -> None:
        self.cache = cache
        self.shelf = shelf
        self.settings = Settings(model="m", corpus=CORPUS, watched=True)

    def request(self, question: str) -> Request:
        """Return the request for a question."""
        return Request(question=question, settings=self.settings)

    def fresh(self, question: str) -> str:
        """Return what the application answers without a cache."""
        found = self.shelf.evidence(question)
        return f"{question}: " + " | ".join(self.shelf.texts[one.chunk] for one in found)

    def ask(self, question: str) -> Outcome:
        """Look up; on a miss, answer and store."""
        request = self.request(question)
        outcome = self.cache.lookup(request)
        if not hasattr(outcome, "level"):
            with readings() as heard:
                evidence = self.shelf.evidence(question)
                answer = Answer(text=self.fresh_from(question, evidence))
            self.cache.update(request, answer, outcome=outcome, evidence=evidence, readings=heard)
        return outcome

    def fresh_from(self, question: str, evidence: Sequence[Evidence]) -> str:
        """Return the answer from this evidence."""
        return f"{question}: " + " | ".join(self.shelf.texts[one.chunk] for one in evidence)


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


HANDBOOK: Mapping[str, str] = {
    "leave": "every employee has thirty days of leave",
    "travel": "travel by train is paid in full",
    "lunch": "lunch in the canteen costs four euros",
    "pets": "dogs may come on friday",
}
