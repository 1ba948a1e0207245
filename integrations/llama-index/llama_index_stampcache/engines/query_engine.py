"""`CachedQueryEngine`: any LlamaIndex query engine, behind the cache."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_stampcache.engines.fingerprint import Fingerprint
from llama_index_stampcache.engines.inner import Inner
from llama_index_stampcache.engines.making import Telling
from llama_index_stampcache.engines.requests import Requests
from llama_index_stampcache.engines.serving import Serving
from llama_index_stampcache.usage import listen
from llama_index_stampcache.watching.heard import Watching
from llama_index_stampcache.watching.sources import Source, of_source, source_of
from stampcache import AsyncCache, Cache, ConfigError, Manifest, Stamps, open_cache
from stampcache.adapters import (
    CanonicalError,
    Core,
    Explanation,
    Front,
    Grounding,
    Sweep,
    Validity,
    VersionOf,
    checked,
)


class CachedQueryEngine(BaseQueryEngine):
    """A query engine that answers from the cache while what the answer was made from still holds.

    It stands where the inner engine stood: ``query`` and ``aquery``, streaming or not, in tools and
    chat engines. ``response.metadata["cache"]`` tells whether it was a hit, at which level, and
    why. Nothing of the cache can fail a query: then the inner engine answers, and it is counted.
    """

    def __init__(
        self,
        inner: BaseQueryEngine,
        *,
        cache: Cache | AsyncCache | str,
        grounding: Grounding = "recheck",
        version_of: VersionOf = "sources",
        corpus: str = "",
        stamps: Stamps | None = None,
        manifest: Manifest | str | Path | None = None,
        kind: str = "",
        allow_stale: bool = False,
        version: str | None = None,
        name: str = "",
    ) -> None:
        """Put a cache in front of an engine.

        Args:
            inner: the engine that answers on a miss. For ``"recheck"`` it has ``retrieve`` and
                ``synthesize``, which together do what its ``query`` does.
            cache: an open cache, or the URL of one.
            grounding: ``"recheck"`` retrieves for every question, and serves an answer only if the
                same chunks are found. ``"watch"`` retrieves on a miss only, and serves an answer until
                something is written to its watched index (`watch`) that its question would
                retrieve. ``"version"`` retrieves on a miss only, and serves an answer
                until `Cache.invalidate` says that what it was made from has changed. ``"none"``
                retrieves on a miss only, and trusts time.
            version_of: under ``"version"``, what must not have changed: the ``"sources"`` that an
                answer cites (a new document is then not noticed), or anything in the ``"corpus"``.
            corpus: names the documents, for ``cache.invalidate(corpus=...)``; by this name answers
                are also found again where the index is another object, as after a restart. That of a
                watched index is known.
            stamps: versions that cannot be read from the engine; they go before those that can.
                ``"version"`` and ``"none"`` need that of the index, here or in ``manifest``.
            manifest: what ingestion wrote about the index, or the path of its file.
            kind: the kind of data, which says how long answers live (``lifetimes=`` of the cache).
            allow_stale: serve an answer that no longer holds at once, and say so in its report,
                instead of making another one.
            version: stands for the parts of the engine that have no identity of their own, such as
                an unknown client; change it whenever one of them changes.
            name: keeps the answers of this engine apart from those of another that looks the same,
                such as one over another index.

        Raises:
            ConfigError: the engine cannot be cached that way; the sentence says what to change.
        """
        self._wrapped = Inner(inner)
        self._name = name
        self._source: Source | None = None
        given = Validity(
            grounding=grounding,
            version_of=version_of,
            corpus=corpus,
            kind=kind,
            allow_stale=allow_stale,
            stamps=stamps or Stamps(),
            version=version,
        )
        opened = open_cache(cache) if isinstance(cache, str) else cache
        try:
            if given.watched:
                self._source = source_of(inner, opened.core)
                given = of_source(given, self._source)
            # that an engine retrieves nothing cannot be seen from outside
            self._validity = checked(opened.core, given, manifest=manifest, has_index=True)
            self._serving = self._served(opened.core)
        except BaseException:
            if isinstance(cache, str) and isinstance(opened, Cache):
                opened.close()
            raise
        self._cache = opened
        listen()
        super().__init__(inner.callback_manager)

    def _served(self, core: Core) -> Serving:
        if self._validity.rechecked and not self._wrapped.in_two_steps:
            raise ConfigError(
                f"{type(self.inner).__name__} has no retrieve() and synthesize() of its own, so "
                'that its evidence cannot be rechecked; pass grounding="none" or "version".'
            )
        fingerprint = Fingerprint(
            self._wrapped, self._validity, known=core.intake.stamps, name=self._name
        )
        check_identity(fingerprint, self._validity)
        self._front = Front(core, kind="llama-index.query-engine")
        watching = None
        if self._source is not None:
            watching = Watching(
                lambda: source_of(self.inner, core), lambda: self._wrapped.postprocessors
            )
        volatile = None if self._source is None else self._source.volatile
        requests = Requests(self._wrapped, fingerprint, self._validity, volatile)
        telling = Telling(type(self.inner).__name__)
        return Serving(self._wrapped, self._front, requests, self._validity, telling, watching)

    @property
    def inner(self) -> BaseQueryEngine:
        """The engine that answers on a miss."""
        return self._wrapped.engine

    @property
    def cache(self) -> Cache | AsyncCache:
        """The cache, for its other verbs; close it if it was given by its URL."""
        return self._cache

    @property
    def grounding(self) -> Grounding:
        """How its answers are kept true."""
        return self._validity.grounding

    @property
    def allow_stale(self) -> bool:
        """Whether it gives answers that no longer hold."""
        return self._validity.allow_stale

    def sweep(self, *, sample: int = 50, tolerate: float = 0.0) -> Sweep:
        """Retrieve again for a random sample of the watched answers, and mark those that drifted.

        Args:
            sample: so many answers at most.
            tolerate: the share that may have drifted, as in an approximate index; with more, nothing of
                the corpus is served until ``resync()`` of the watched index.

        Raises:
            ConfigError: nothing is watched, or the engine does not show what it retrieves.
        """
        return self._front.run(self._serving.sweep(sample=sample, tolerate=tolerate))

    async def asweep(self, *, sample: int = 50, tolerate: float = 0.0) -> Sweep:
        """See `sweep`."""
        return await self._front.arun(self._serving.sweep(sample=sample, tolerate=tolerate))

    def explain(self, question: str) -> Explanation:
        """Tell which check of the cache would decide about a question now, and why.

        It retrieves as `query` would; nothing is made, served or counted.
        """
        return self._front.run(self._serving.explain(QueryBundle(question)))

    async def aexplain(self, question: str) -> Explanation:
        """See `explain`."""
        return await self._front.arun(self._serving.explain(QueryBundle(question)))

    def identity_parts(self) -> Mapping[str, object]:
        """Return what identifies this engine inside another one: what it would run on a miss."""
        return {
            "inner": self.inner,
            "name": self._name,
            "version": self._validity.version,
            "stamps": msgspec.structs.asdict(self._validity.stamps),
        }

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve with the inner engine."""
        return self.inner.retrieve(query_bundle)

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve with the inner engine."""
        return list(await self._wrapped.retrieve(query_bundle).aio())

    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Answer from given nodes: from the cache, if this question was answered from exactly these."""
        more = additional_source_nodes or ()
        return self._front.run(self._serving.synthesize(query_bundle, nodes, more, aio=False))

    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """See `synthesize`."""
        more = additional_source_nodes or ()
        return await self._front.arun(self._serving.synthesize(query_bundle, nodes, more, aio=True))

    def _get_prompts(self) -> PromptDictType:
        return self.inner._get_prompts()

    def _get_prompt_modules(self) -> PromptMixinType:
        return self.inner._get_prompt_modules()

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self.inner._update_prompts(prompts)

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self._event(query_bundle) as ended:
            ended.append(self._front.run(self._serving.serve(query_bundle, aio=False)))
        return ended[0]

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self._event(query_bundle) as ended:
            ended.append(await self._front.arun(self._serving.serve(query_bundle, aio=True)))
        return ended[0]

    @contextmanager
    def _event(self, query_bundle: QueryBundle) -> Generator[list[RESPONSE_TYPE], None, None]:
        """Fire the query event of the callback manager, as the engines of the framework do."""
        ended: list[RESPONSE_TYPE] = []
        asked: dict[str, object] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=asked) as event:
            yield ended
            event.on_end(payload={EventPayload.RESPONSE: ended[0]})


def check_identity(fingerprint: Fingerprint, validity: Validity) -> None:
    """Refuse an engine with a part without identity, while that is easy to see.

    Raises:
        ConfigError: there is one; the sentence names it.
    """
    try:
        fingerprint.settings()
    except CanonicalError as error:
        advice = (
            "pass plain settings"
            if validity.version is not None
            else 'pass version="..." and change it whenever that part changes'
        )
        raise ConfigError(
            f"This engine has a part without identity: {error} Or {advice}."
        ) from error
