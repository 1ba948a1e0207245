"""What a retriever found, through a `Front`: documents are kept while their corpus stays as it is.

A query is matched exactly only, by all that decides what is found for it. Nothing is retrieved on a hit,
so there is nothing to recheck: documents are kept true by what a watched index tells, by the marks of
`Cache.invalidate`, and by time.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from stampcache.adapters.asking import Build, asked
from stampcache.adapters.front import Front, Kept, Made
from stampcache.adapters.hearing import FROM_CACHE, hear, listening
from stampcache.adapters.reporting import CacheFields, fields
from stampcache.adapters.sweeping import Sweep, sweep
from stampcache.adapters.versions import Validity, checked
from stampcache.core import Core
from stampcache.corpora import Reading
from stampcache.effects import Flow, Step
from stampcache.errors import CanonicalError, ConfigError
from stampcache.explain import Explanation
from stampcache.manifest import Manifest
from stampcache.model import Answer, Evidence
from stampcache.outcome import Miss, Stale
from stampcache.request import Request

Item = TypeVar("Item")


class DocumentForm(Struct, Generic[Item], frozen=True, kw_only=True):
    """How an adapter's documents are stored, read and cited.

    ``keep`` gives them as an answer and ``evidence`` as what they depend on, or they raise
    `CanonicalError`; ``read`` gives the caller's own copies, or raises `CodecError`.
    """

    keep: Callable[[Sequence[Item]], Answer]
    read: Callable[[Answer], list[Item]]
    evidence: Callable[[Sequence[Item]], tuple[Evidence, ...]]


class Retrieved(Struct, Generic[Item], frozen=True):
    """The documents for one query, and what the cache says of them."""

    documents: list[Item]
    report: CacheFields


def checked_retrieval(
    core: Core, given: Validity, *, manifest: Manifest | str | Path | None
) -> Validity:
    """Return what a cached retriever runs with; see `checked`.

    Raises:
        ConfigError: it is to be rechecked, or the version of its index is unknown.
    """
    if given.rechecked:
        raise ConfigError(
            'grounding="recheck" would retrieve for every query, which is what a cached retriever saves;'
            ' give "watch" for a watched index, "version" (the default) and call cache.invalidate(...)'
            ' after writes, or "none".'
        )
    return checked(core, given, manifest=manifest, has_index=True)


class Documents(Generic[Item]):
    """The documents of one retriever behind one cache; safe for threads and tasks."""

    def __init__(self, front: Front, form: DocumentForm[Item], validity: Validity) -> None:
        self._front = front
        self._form = form
        self._validity = validity

    def serve(self, build: Build, retrieve: Step[list[Item]]) -> Flow[Retrieved[Item]]:
        """Return the documents for a query; equal queries that run at once retrieve once.

        Args:
            build: builds the request of the query.
            retrieve: retrieves; its failure is the caller's, and nothing is stored.
        """
        hear(Reading(corpus=self._validity.corpus, problem=FROM_CACHE))
        ask = asked(self._front, build, allow_stale=self._validity.allow_stale)
        if isinstance(ask, Miss):
            self._front.bypassed(ask)
            return Retrieved((yield from retrieve), fields(ask))
        return (
            yield from self._front.serve(
                ask,
                recheck=None,
                read=lambda answer, report: Retrieved(self._form.read(answer), report),
                make=lambda outcome: self._made(retrieve, outcome),
            )
        )

    def explain(self, build: Build) -> Flow[Explanation]:
        """Tell which check would decide about a query now; nothing is retrieved or counted."""
        ask = asked(self._front, build, allow_stale=self._validity.allow_stale)
        if isinstance(ask, Miss):
            return Explanation(Request(), ask)
        return (yield from self._front.explain(ask))

    def sweep(
        self,
        settings: str,
        retrieve: Callable[[str], Step[list[Item]]],
        *,
        sample: int,
        tolerate: float,
    ) -> Flow[Sweep]:
        """Retrieve again for a sample of what is watched; see `stampcache.adapters.sweep`.

        Args:
            settings: the digest of those under which a query alone is asked.
            retrieve: retrieves for a query; its failure is the caller's.
            sample: so many queries at most.
            tolerate: the share that may have drifted.

        Raises:
            ConfigError: the index is not watched, or a number is out of range.
        """

        def evidence(query: str) -> Flow[Sequence[Evidence]]:
            return self._form.evidence((yield from retrieve(query)))

        return (
            yield from sweep(
                self._front,
                corpus=self._validity.swept,
                settings=settings,
                retrieve=evidence,
                sample=sample,
                tolerate=tolerate,
            )
        )

    def _made(
        self, retrieve: Step[list[Item]], outcome: Miss | Stale
    ) -> Flow[Made[Retrieved[Item]]]:
        heard: list[Reading] = []
        started = time.perf_counter()
        found = yield from listening(retrieve, heard) if self._validity.watched else retrieve
        latency_s = time.perf_counter() - started
        kept = self._front.kept(lambda: self._kept(found, latency_s))
        return Made(
            output=Retrieved(found, fields(outcome)),
            answer=None if kept is None else kept.answer,
            evidence=None if kept is None else kept.evidence,
            readings=heard,
        )

    def _kept(self, found: Sequence[Item], latency_s: float) -> Kept | None:
        try:
            answer = replace(self._form.keep(found), latency_s=latency_s)
            return Kept(answer, self._form.evidence(found))
        except CanonicalError:
            return None
