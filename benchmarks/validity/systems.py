"""What is compared: no cache, two caches as most applications have them, and stampcache's modes.

Each system asks its cache in the way its users do. The time of a request is what passes until the cache
has answered, with all that it needs for that: the question's embedding and, where a mode asks for
it, the retrieval. Making an answer is not in it.
"""

import enum
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct

from benchmarks.validity.app import CORPUS, App, Change
from benchmarks.validity.texts import Question
from benchmarks.validity.watched import WatchedShelf
from stampcache import Answer, Cache, Evidence, Hit, Request, Settings, Stored, open_cache
from stampcache.model import Vector
from stampcache.ports import Embedder

MODEL = "deepseek-chat"
PLAIN_THRESHOLD = 0.90


class Served(Struct, frozen=True):
    """What a system did with one request.

    ``entry`` is the question that the served answer had been made for; ``None`` where the cache had
    none and the application answered.
    """

    text: str
    entry: str | None
    seconds: float


class System(Protocol):
    """An application with its cache."""

    name: str

    def ask(self, question: Question) -> Served:
        """Answer a question, from the cache or by the application."""
        ...

    def written(self, change: Change) -> None:
        """Learn that the application has written a document."""
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...


class NoCache:
    """Retrieves for each request, as the application does by itself."""

    name = "no cache"

    def __init__(self, app: App) -> None:
        self._app = app

    def ask(self, question: Question) -> Served:
        start = time.perf_counter()
        self._app.retrieve(question.text)
        spent = time.perf_counter() - start
        return Served(self._app.answer(question), None, spent)

    def written(self, change: Change) -> None:
        pass

    def close(self) -> None:
        pass


class Exact:
    """A dictionary by the question's text, the least recently used one evicted; told of nothing."""

    name = "exact"

    def __init__(self, app: App, capacity: int) -> None:
        self._app = app
        self._capacity = capacity
        self._answers: OrderedDict[str, str] = OrderedDict()

    def ask(self, question: Question) -> Served:
        start = time.perf_counter()
        found = self._answers.get(question.text)
        spent = time.perf_counter() - start
        if found is not None:
            self._answers.move_to_end(question.text)
            return Served(found, question.text, spent)
        made = self._app.answer(question)
        self._answers[question.text] = made
        if len(self._answers) > self._capacity:
            self._answers.popitem(last=False)
        return Served(made, None, spent)

    def written(self, change: Change) -> None:
        pass

    def close(self) -> None:
        pass


class PlainSemantic:
    """Serves the nearest stored question at or above one cosine, and knows of nothing else."""

    name = "plain semantic"

    def __init__(self, app: App, capacity: int) -> None:
        self._app = app
        self._capacity = capacity
        self._rows: list[Vector] = []
        self._entries: list[tuple[str, str]] = []
        self._used: OrderedDict[int, None] = OrderedDict()
        self._matrix: Vector | None = None

    def ask(self, question: Question) -> Served:
        start = time.perf_counter()
        vector = self._app.vectors.embedded(question.text)
        nearest = self._nearest(vector)
        spent = time.perf_counter() - start
        if nearest is not None:
            self._used.move_to_end(nearest)
            text, made = self._entries[nearest]
            return Served(made, text, spent)
        made = self._app.answer(question)
        self._store(question.text, made, vector)
        return Served(made, None, spent)

    def _nearest(self, vector: Vector) -> int | None:
        if self._matrix is None:
            return None
        cosines = self._matrix @ vector
        best = int(cosines.argmax())
        return best if cosines[best] >= PLAIN_THRESHOLD else None

    def _store(self, text: str, made: str, vector: Vector) -> None:
        if len(self._rows) < self._capacity:
            at = len(self._rows)
            self._rows.append(vector)
            self._entries.append((text, made))
        else:
            at, _ = self._used.popitem(last=False)
            self._rows[at], self._entries[at] = vector, (text, made)
        self._used[at] = None
        self._matrix = np.stack(self._rows)

    def written(self, change: Change) -> None:
        pass

    def close(self) -> None:
        pass


class Grounding(enum.Enum):
    """How stampcache keeps the evidence true; see docs/adr/0005, 0014 and 0020."""

    RECHECK = "recheck"
    WATCH = "watch"
    SOURCES = "version/sources"
    CORPUS = "version/corpus"
    NONE = "none"

    @property
    def announced(self) -> bool:
        """Whether the application must say which documents it writes."""
        return self in (Grounding.SOURCES, Grounding.CORPUS)


class Stamped:
    """stampcache through its public names; without an embedder there are exact hits only."""

    def __init__(
        self, app: App, grounding: Grounding, *, embedder: Embedder | None, capacity: int
    ) -> None:
        kind = "exact" if embedder is None else "with MiniLM"
        self.name = f"stampcache {grounding.value}, {kind}"
        self._app = app
        self._grounding = grounding
        watched = grounding is Grounding.WATCH
        self._settings = Settings(
            model=MODEL,
            corpus=CORPUS if grounding.announced or watched else "",
            whole_corpus=grounding is Grounding.CORPUS,
            watched=watched,
        )
        self._cache: Cache = open_cache(
            "memory://", embedder=embedder, capacity=capacity, strict=True
        )
        self._shelf = WatchedShelf(self._cache, app) if watched else None

    def ask(self, question: Question) -> Served:
        rechecks = self._grounding is Grounding.RECHECK
        retrieve = self._app.retrieve if rechecks else None
        start = time.perf_counter()
        evidence = self._app.retrieve(question.text) if rechecks else None
        request = Request(question=question.text, settings=self._settings, evidence=evidence)
        outcome = self._cache.lookup(request, retrieve=retrieve)
        spent = time.perf_counter() - start
        if isinstance(outcome, Hit):
            return Served(outcome.answer.text, outcome.entry.question, spent)
        made = self._app.answer(question)
        kept = self._cache.update(
            request,
            Answer(text=made),
            outcome=outcome,
            evidence=self._evidence(question),
            readings=() if self._shelf is None else [self._shelf.reading(question.text)],
        )
        if not isinstance(kept, Stored):
            raise RuntimeError(f"{self.name} did not store an answer: {kept}")
        return Served(made, None, spent)

    def _evidence(self, question: Question) -> Sequence[Evidence] | None:
        """Return what the answer was made from; an application without documents has nothing."""
        none = self._grounding is Grounding.NONE
        return None if none else self._app.retrieved(question.text)

    def written(self, change: Change) -> None:
        if self._shelf is not None:
            self._shelf.written(change)
        elif self._grounding.announced:
            self._cache.invalidate(corpus=CORPUS, source=change.source)

    def close(self) -> None:
        self._cache.close()


def opened(app: App, capacity: int) -> list[System]:
    """Return all systems around one application, their caches empty."""
    embedders: Sequence[Embedder | None] = (None, app.vectors.embedder)
    stamped: list[System] = [
        Stamped(app, grounding, embedder=embedder, capacity=capacity)
        for grounding in Grounding
        for embedder in embedders
    ]
    return [NoCache(app), Exact(app, capacity), PlainSemantic(app, capacity), *stamped]
