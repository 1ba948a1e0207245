"""`CachedRetriever`: a retriever whose nodes are kept while their corpus stays as it is."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index_stampcache.describing import Describer
from llama_index_stampcache.engines.requests import inputs_of
from llama_index_stampcache.events import tell
from llama_index_stampcache.evidence import evidence_of
from llama_index_stampcache.nodes import PayloadError, StoredNode, rebuilt, stored_node
from llama_index_stampcache.parts import Position
from llama_index_stampcache.watching.heard import UNWATCHED, WatchedSearch, Watching
from llama_index_stampcache.watching.sources import Source, of_source, source_of
from stampcache import (
    Answer,
    AsyncCache,
    Cache,
    CodecError,
    ConfigError,
    Evidence,
    Manifest,
    Request,
    Seam,
    Settings,
    Stamps,
    open_cache,
)
from stampcache.adapters import (
    Build,
    CanonicalError,
    Core,
    DocumentForm,
    Documents,
    Explanation,
    Flow,
    Front,
    Grounding,
    Retrieved,
    Step,
    Sweep,
    Validity,
    VersionOf,
    checked_retrieval,
)

NODES = "llama-index.nodes/1"


class CachedRetriever(BaseRetriever):
    """Stands where the inner retriever stood; what was found before and still holds comes from the cache.

    A query is matched exactly: by its very text (custom embedding strings and a given embedding, too) and
    by all settings and filters of the inner retriever as they are now. Nodes are the caller's own copies,
    equal to those that were found: nothing about the cache is written into them. Each retrieval sends a
    `CacheHitEvent` or a `CacheMissEvent` of the seam ``"retrieve"``; `explain` tells more.

    Retrieval events and the callback manager are those of the inner retriever, and fire once, on hits
    too. Errors of the inner retriever reach the caller unchanged, and nothing is stored then. Failures of
    the cache are counted and logged, and the inner retriever is asked.
    """

    def __init__(
        self,
        inner: BaseRetriever,
        *,
        cache: Cache | AsyncCache | str,
        grounding: Grounding = "version",
        version_of: VersionOf = "corpus",
        corpus: str = "",
        stamps: Stamps | None = None,
        manifest: Manifest | str | Path | None = None,
        kind: str = "",
        allow_stale: bool = False,
        version: str | None = None,
    ) -> None:
        """Put a cache before a retriever.

        Args:
            inner: the retriever that is asked on a miss.
            cache: an open cache, or the URL of one.
            grounding: ``"watch"``: nodes are served until something is written to the watched index
                (`watch`) that would be found. ``"version"``: until ``cache.invalidate(...)`` names what
                they depend on. ``"none"``: until their time is over, for documents that do not change.
            version_of: under ``"version"``, what they depend on: the whole ``"corpus"``, since a new
                document may be among the best for a query; or the ``"sources"`` that were found,
                where a new document may be noticed late.
            corpus: names the documents, for ``cache.invalidate(corpus=...)``; by this name nodes are also
                found again where the index is another object, as after a restart.
            stamps: versions that cannot be read from the retriever; that of the index must be known.
            manifest: what ingestion wrote about the index, or the path of its file.
            kind: the kind of data, which says how long nodes live (``lifetimes=`` of the cache).
            allow_stale: serve nodes that no longer hold rather than retrieve, and say so.
            version: stands for the index, and for parts of the retriever that have no identity; change it
                with them.

        Raises:
            ConfigError: it is to be rechecked; a part has no identity and there is no ``version``; the
                version of the index must be known and is not; versions contradict each other.
        """
        self._inner = inner
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
            self._serve_from(opened.core, given, manifest)
        except BaseException:
            if isinstance(cache, str) and isinstance(opened, Cache):
                opened.close()
            raise
        self._cache = opened
        inner._check_callback_manager()
        super().__init__(inner.callback_manager, object_map=getattr(inner, "object_map", None))

    def _serve_from(
        self, core: Core, given: Validity, manifest: Manifest | str | Path | None
    ) -> None:
        if given.watched:
            self._source = source_of(self._inner, core)
            given = of_source(given, self._source)
        self._validity = checked_retrieval(core, given, manifest=manifest)
        # an index is named by its corpus; "1" may be the version of many
        named = bool(self._validity.corpus or self._validity.version)
        self._describer = Describer(
            rechecked=False, index_named=named, watched=self._validity.watched
        )
        try:
            self._settings()
        except CanonicalError as error:
            advice = (
                "pass plain settings"
                if self._validity.version is not None
                else 'pass version="..." and change it whenever that part changes'
            )
            raise ConfigError(
                f"This retriever has a part without identity: {error} Or {advice}."
            ) from error
        self._front = Front(core, kind="llama-index.retriever")
        form = DocumentForm(keep=_kept, read=_read, evidence=self._evidence)
        self._documents = Documents(self._front, form, self._validity)
        self._watching = None
        if self._source is not None:
            self._watching = Watching(lambda: source_of(self._inner, core), lambda: ())

    @property
    def inner(self) -> BaseRetriever:
        """The retriever that is asked on a miss."""
        return self._inner

    @property
    def cache(self) -> Cache | AsyncCache:
        """The cache, for its other verbs; close it if it was given by its URL."""
        return self._cache

    @property
    def grounding(self) -> Grounding:
        """How its nodes are kept true."""
        return self._validity.grounding

    @property
    def allow_stale(self) -> bool:
        """Whether it gives nodes that no longer hold."""
        return self._validity.allow_stale

    def sweep(self, *, sample: int = 50, tolerate: float = 0.0) -> Sweep:
        """Retrieve again for a random sample of watched queries; see `CachedQueryEngine.sweep`."""
        return self._front.run(self._sweeping(sample, tolerate))

    async def asweep(self, *, sample: int = 50, tolerate: float = 0.0) -> Sweep:
        """See `sweep`."""
        return await self._front.arun(self._sweeping(sample, tolerate))

    def _sweeping(self, sample: int, tolerate: float) -> Flow[Sweep]:
        settings = Request(settings=self._settings()).runs.digest
        return (
            yield from self._documents.sweep(
                settings,
                lambda query: self._step(QueryBundle(query)),
                sample=sample,
                tolerate=tolerate,
            )
        )

    @property
    def callback_manager(self) -> CallbackManager:
        """That of the inner retriever."""
        return self._inner.callback_manager

    @callback_manager.setter
    def callback_manager(self, given: CallbackManager) -> None:
        self._inner.callback_manager = given

    def explain(self, question: str) -> Explanation:
        """Tell which check of the cache would decide about a question now; nothing is retrieved."""
        return self._front.run(self._documents.explain(self._asking(QueryBundle(question))))

    async def aexplain(self, question: str) -> Explanation:
        """See `explain`."""
        return await self._front.arun(self._documents.explain(self._asking(QueryBundle(question))))

    def identity_parts(self) -> Mapping[str, object]:
        """Return what identifies this retriever inside an engine: what it would run on a miss."""
        return {
            "inner": self._inner,
            "version": self._validity.version,
            "stamps": msgspec.structs.asdict(self._validity.stamps),
        }

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _told(self._front.run(self._serve(query_bundle)))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _told(await self._front.arun(self._serve(query_bundle)))

    def _serve(self, query_bundle: QueryBundle) -> Flow[Retrieved[NodeWithScore]]:
        asking, step = self._asking(query_bundle), self._step(query_bundle)
        watching = self._watching
        if watching is None:
            return (yield from self._documents.serve(asking, step))
        search = WatchedSearch(watching, step)

        def keep(found: Sequence[NodeWithScore]) -> Answer:
            if search.problem:
                self._front.event(UNWATCHED)
                raise CanonicalError(search.problem)
            return _kept(found)

        form = DocumentForm(keep=keep, read=_read, evidence=self._evidence)
        documents = Documents(self._front, form, self._validity)
        return (yield from documents.serve(asking, search.step()))

    # -- the inner retriever, below its own events ---------------------------------------------------

    def _step(self, query_bundle: QueryBundle) -> Step[list[NodeWithScore]]:
        inner = self._inner

        def retrieve() -> list[NodeWithScore]:
            if _overrides(inner, "retrieve"):
                return inner.retrieve(query_bundle)
            found = inner._retrieve(query_bundle)
            return inner._handle_recursive_retrieval(query_bundle, found)

        async def aretrieve() -> list[NodeWithScore]:
            if _overrides(inner, "aretrieve"):
                return await inner.aretrieve(query_bundle)
            found = await inner._aretrieve(query_bundle=query_bundle)
            return await inner._ahandle_recursive_retrieval(query_bundle=query_bundle, nodes=found)

        return Step(sync=retrieve, aio=aretrieve)

    def _handle_recursive_retrieval(
        self,
        query_bundle: QueryBundle,  # noqa: ARG002 - the framework's signature
        nodes: list[NodeWithScore],
    ) -> list[NodeWithScore]:
        return nodes  # the objects behind index nodes have been retrieved from already

    async def _ahandle_recursive_retrieval(
        self,
        query_bundle: QueryBundle,  # noqa: ARG002 - the framework's signature
        nodes: list[NodeWithScore],
    ) -> list[NodeWithScore]:
        return nodes

    def _get_prompts(self) -> PromptDictType:
        return self._inner._get_prompts()

    def _get_prompt_modules(self) -> PromptMixinType:
        return self._inner._get_prompt_modules()

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self._inner._update_prompts(prompts)

    # -- a query as a request --------------------------------------------------------------------------

    def _asking(self, bundle: QueryBundle) -> Build:
        inputs = inputs_of(bundle)  # before retrieving, which notes its embedding in the bundle

        def request() -> Request:
            if inputs.image:
                raise CanonicalError("The query has an image, whose content may change.")
            return Request(
                question=inputs.question,
                prompt=inputs.prompt or {"query": inputs.question},
                settings=self._settings(),
                kind=self._validity.kind,
            )

        return request

    def _settings(self) -> Settings:
        inner, version = self._inner, self._validity.version
        position = Position(
            where=type(inner).__name__,
            opaque_ok=version is not None,
            functions_ok=version is not None,
        )
        objects = dict(getattr(inner, "object_map", None) or {})
        settings = Settings(
            params={
                "framework": "llama-index.retriever",
                "grounding": self._validity.grounding,
                "version": version,
                "retriever": self._describer.describe(inner, position),
                "objects": self._describer.describe(objects, position.inside("object_map")),
            },
            stamps=self._validity.stamps,
            corpus=self._validity.corpus,
            whole_corpus=self._validity.whole_corpus,
            watched=self._validity.watched,
            seam=Seam.DOCUMENTS,
        )
        if settings.problem:
            raise CanonicalError(settings.problem)
        return settings

    def _evidence(self, found: Sequence[NodeWithScore]) -> tuple[Evidence, ...]:
        volatile = None if self._source is None else self._source.volatile
        return evidence_of(found, corpus=self._validity.corpus, volatile=volatile)


def _overrides(retriever: BaseRetriever, name: str) -> bool:
    """Tell whether a retriever has a public way of its own, with whatever events that fires."""
    found = (vars(base)[name] for base in type(retriever).__mro__ if name in vars(base))
    return next(found) is not vars(BaseRetriever)[name]


def _told(found: Retrieved[NodeWithScore]) -> list[NodeWithScore]:
    tell(found.report, "retrieve")
    return found.documents


def _kept(found: Sequence[NodeWithScore]) -> Answer:
    nodes = [kept for one in found if (kept := stored_node(one)) is not None]
    if len(nodes) < len(found) or rebuilt(nodes) != list(found):
        raise CanonicalError("a node would not come back equal")
    return Answer(text="", payload=msgspec.json.encode(nodes), format=NODES)


def _read(answer: Answer) -> list[NodeWithScore]:
    if answer.format != NODES:
        raise CodecError(f"What is stored has the format {answer.format!r}.")
    try:
        return rebuilt(msgspec.json.decode(answer.payload, type=list[StoredNode]))
    except (msgspec.DecodeError, UnicodeDecodeError, PayloadError) as error:
        raise CodecError(f"The stored nodes are unreadable: {error}") from error
