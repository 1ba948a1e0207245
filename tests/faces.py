"""One driver for both faces of a cache, so that each scenario is written once."""

import asyncio
import contextvars
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from stampcache import (
    Answer,
    AsyncCache,
    Cache,
    Evidence,
    Forgotten,
    Hit,
    Outcome,
    Reason,
    Request,
    Scope,
    Stamps,
    Stored,
)
from stampcache.due import DueEntry
from stampcache.explain import Explanation
from stampcache.outcome import Update
from stampcache.telemetry import Stats
from stampcache.working import Work

Done = TypeVar("Done")
Retrieve = Callable[[str], Sequence[Evidence]]


class Face:
    """A cache, driven in the calling thread whichever face it has."""

    def __init__(self, cache: Cache | AsyncCache, runner: asyncio.Runner) -> None:
        self.cache = cache
        self.core = cache.core
        self._runner = runner

    def _wait(self, done: Any) -> Any:
        if not asyncio.iscoroutine(done):
            return done
        return self._runner.run(done, context=contextvars.copy_context())

    def _callable(self, function: Callable[..., Done] | None) -> Any:
        if function is None or isinstance(self.cache, Cache):
            return function

        async def awaited(*arguments: object) -> Done:
            await asyncio.sleep(0)
            return function(*arguments)

        return awaited

    def lookup(self, request: Request, *, retrieve: Retrieve | None = None) -> Outcome:
        return self._wait(self.cache.lookup(request, retrieve=self._callable(retrieve)))  # type: ignore[no-any-return]  # typed loosely there

    def update(
        self,
        request: Request,
        answer: Answer | str,
        *,
        outcome: Outcome | None = None,
        evidence: Sequence[Evidence] | None = None,
    ) -> Update:
        done = self.cache.update(request, answer, outcome=outcome, evidence=evidence)
        return self._wait(done)  # type: ignore[no-any-return]  # typed loosely there

    def get_or_create(
        self,
        request: Request,
        make: Callable[[], Answer | str],
        *,
        retrieve: Retrieve | None = None,
    ) -> Answer:
        made, found = self._callable(make), self._callable(retrieve)
        return self._wait(self.cache.get_or_create(request, made, retrieve=found))  # type: ignore[no-any-return]  # typed loosely there

    def invalidate(
        self,
        *,
        corpus: str | None = None,
        source: str | None = None,
        chunk: str | None = None,
        entry: str | None = None,
        stamps: Stamps | None = None,
        scope: Scope | None = None,
    ) -> int:
        done = self.cache.invalidate(
            corpus=corpus, source=source, chunk=chunk, entry=entry, stamps=stamps, scope=scope
        )
        return self._wait(done)  # type: ignore[no-any-return]  # typed loosely there

    def report_bad(self, entry_id: str) -> bool:
        return self._wait(self.cache.report_bad(entry_id))  # type: ignore[no-any-return]  # typed loosely there

    def explain(self, request: Request, *, retrieve: Retrieve | None = None) -> Explanation:
        return self._wait(self.cache.explain(request, retrieve=self._callable(retrieve)))  # type: ignore[no-any-return]  # typed loosely there

    def work(
        self, *, limit: int = 100, refresh: Callable[[DueEntry], object] | None = None
    ) -> Work:
        done = self.cache.work(limit=limit, refresh=self._callable(refresh))
        return self._wait(done)  # type: ignore[no-any-return]  # typed loosely there

    def clear(self) -> int:
        return self._wait(self.cache.clear())  # type: ignore[no-any-return]  # typed loosely there

    def forget(self, tenant: str) -> Forgotten:
        return self._wait(self.cache.forget(tenant))  # type: ignore[no-any-return]  # typed loosely there

    def stats(self, *, everything: bool = False) -> Stats:
        return self._wait(self.cache.stats(everything=everything))  # type: ignore[no-any-return]  # typed loosely there

    def close(self) -> None:
        self._wait(self.cache.close())

    def fill(self, request: Request, text: str = "answer") -> str:
        """Look up, miss and update as an application does; return the entry's id."""
        outcome = self.lookup(request)
        assert not isinstance(outcome, Hit), outcome
        done = self.update(request, text, outcome=outcome)
        assert isinstance(done, Stored), done
        return done.entry.id

    def served(self, request: Request) -> str | None:
        """Return the text of a hit, or ``None``."""
        outcome = self.lookup(request)
        return outcome.answer.text if isinstance(outcome, Hit) else None

    def why(self, request: Request, *, retrieve: Retrieve | None = None) -> Reason:
        """Return the reason of the outcome."""
        return self.lookup(request, retrieve=retrieve).reason


Open = Callable[..., Face]
