"""`CachedRetriever`: a retriever whose documents are kept while their corpus stays as it is."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, ensure_config
from pydantic import Field, PrivateAttr

from langchain_stampcache import payload
from langchain_stampcache.config import configured
from langchain_stampcache.reports import copied_report
from langchain_stampcache.retrieval.calling import CONFIG_OPTION, Call
from langchain_stampcache.retrieval.evidence import evidence_of
from langchain_stampcache.retrieval.fields import RetrieverFields
from langchain_stampcache.retrieval.watched import Source, of_source, source_of
from stampcache import (
    Answer,
    AsyncCache,
    Cache,
    ConfigError,
    Evidence,
    Manifest,
    Request,
    Scope,
    Seam,
    Settings,
    Stamps,
)
from stampcache.adapters import (
    Build,
    CanonicalError,
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
    controls_in,
    kind_in,
    scope_in,
)

EVENT = "stampcache"
"""Name of the custom event that tells, inside of each run, what the cache did."""

_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class CachedRetriever(BaseRetriever):
    """Stands where the inner retriever stood; what was found before and still holds comes from the cache.

    A query is matched exactly: by its very text, the call's options, what is ``configurable`` in the
    config, and all settings and filters of the inner retriever as they are now. Documents are the
    caller's own copies, equal to those that were found: nothing about the cache is written into them.
    Handlers are told in a custom event named ``stampcache`` (hit, level, reason, entry_id, saved), once
    per run; `explain` tells more.

    Errors of the inner retriever reach the caller unchanged, and nothing is stored then. Failures of the
    cache are counted and logged, and the inner retriever is asked.
    """

    inner: Runnable[Any, Any]
    cache: Any = Field(exclude=True, repr=False)
    grounding: Grounding = "version"
    version_of: VersionOf = "corpus"
    corpus: str = ""
    stamps: Stamps | None = None
    manifest: Any = None
    kind: str = ""
    allow_stale: bool = False
    version: str | None = None
    _fields: RetrieverFields = PrivateAttr()
    _validity: Validity = PrivateAttr()
    _source: Source | None = PrivateAttr(default=None)
    _front: Front = PrivateAttr()
    _documents: Documents[Document] = PrivateAttr()

    def __init__(
        self,
        *,
        inner: Runnable[Any, Any] | Callable[[str], list[Document]],
        cache: Cache | AsyncCache,
        grounding: Grounding = "version",
        version_of: VersionOf = "corpus",
        corpus: str = "",
        stamps: Stamps | None = None,
        manifest: Manifest | str | Path | None = None,
        kind: str = "",
        allow_stale: bool = False,
        version: str | None = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Put a cache before a retriever.

        Args:
            inner: a retriever, or another Runnable or a function that takes the query.
            cache: an open cache.
            grounding: ``"version"``: documents are served until ``cache.invalidate(...)`` names what
                they depend on. ``"watch"``: until a write to the watched index would change what is
                found, but for white space and metadata that does not last. ``"none"``: until their
                time is over, for documents that do not change.
            version_of: under ``"version"``, what they depend on: the whole ``"corpus"``, since a new
                document may be among the best for a query; or the ``"sources"`` that were found,
                where a new document may be noticed late.
            corpus: the name of the body of documents, for ``cache.invalidate(corpus=...)``; under
                ``"watch"`` it is that of the watched index.
            stamps: versions that cannot be seen from here; that of the index must be known, unless it
                is watched.
            manifest: of the index, or the path of the file that ingestion wrote.
            kind: of data, which says how long documents live (`stampcache.KINDS`).
            allow_stale: serve documents that no longer hold rather than retrieve, and say so.
            version: stands for the index; change it with it.
            name: of its runs in traces.
            tags: of its runs; by default those of the inner retriever.
            metadata: of its runs; by default that of the inner retriever.

        Raises:
            ConfigError: it is to be rechecked; a filter cannot be told from another one; the version of
                the index must be known and is not; versions contradict each other; a part of what is to
                be watched is not.
        """
        given = Validity(
            grounding=grounding,
            version_of=version_of,
            corpus=corpus,
            kind=kind,
            allow_stale=allow_stale,
            stamps=stamps or Stamps(),
            version=version,
        )
        source = source_of(inner, where="inner") if given.watched else None
        validity = checked_retrieval(cache.core, of_source(given, source), manifest=manifest)
        runnable = inner if isinstance(inner, Runnable) else RunnableLambda(inner)
        super().__init__(  # type: ignore[call-arg]  # the fields of a pydantic model
            inner=runnable,
            cache=cache,
            grounding=grounding,
            version_of=version_of,
            corpus=corpus,
            stamps=stamps,
            manifest=manifest,
            kind=kind,
            allow_stale=allow_stale,
            version=version,
            name=name,
            tags=getattr(inner, "tags", None) if tags is None else tags,
            metadata=getattr(inner, "metadata", None) if metadata is None else metadata,
        )
        self._validity = validity
        self._source = source
        self._fields = RetrieverFields(runnable)
        self._front = Front(cache.core, kind="langchain.retriever")
        form = DocumentForm(keep=_kept, read=_read, evidence=self._evidence)
        self._documents = Documents(self._front, form, self._validity)
        self._check()

    def invoke(
        self,
        input: str,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the documents for a query; further options go to the inner retriever, and are keyed."""
        return super().invoke(input, config, **{**kwargs, CONFIG_OPTION: ensure_config(config)})

    async def ainvoke(
        self,
        input: str,  # noqa: A002 - the framework's name
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """See `invoke`; the event loop is never blocked by the cache."""
        return await super().ainvoke(
            input, config, **{**kwargs, CONFIG_OPTION: ensure_config(config)}
        )

    def explain(
        self,
        input: str,  # noqa: A002 - as in invoke
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Explanation:
        """Tell which check of the cache would decide about a query now; nothing is retrieved."""
        build = self._asking(input, ensure_config(config), kwargs)
        return self._front.run(self._documents.explain(build))

    async def aexplain(
        self,
        input: str,  # noqa: A002 - as in invoke
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Explanation:
        """See `explain`."""
        build = self._asking(input, ensure_config(config), kwargs)
        return await self._front.arun(self._documents.explain(build))

    def sweep(self, *, sample: int = 50, tolerate: float = 0.0) -> Sweep:
        """Retrieve again for a random sample of watched queries, and report which ones drifted.

        Those are stale from then on. With more of them than ``tolerate`` nothing of the corpus is served
        until it was resynced. It looks at queries that were asked without options.

        Args:
            sample: so many queries at most.
            tolerate: the share that may have drifted, as in an approximate index.

        Raises:
            ConfigError: the index is not watched, or a number is out of range.
        """
        return self._front.run(self._swept(sample, tolerate))

    async def asweep(self, *, sample: int = 50, tolerate: float = 0.0) -> Sweep:
        """See `sweep`; the event loop is never blocked by the cache."""
        return await self._front.arun(self._swept(sample, tolerate))

    def _swept(self, sample: int, tolerate: float) -> Flow[Sweep]:
        def retrieve(query: str) -> Step[list[Document]]:
            return Step(
                sync=lambda: list(self.inner.invoke(query)),
                aio=lambda: self._aretrieved(query),
            )

        settings = self._settings().digest
        swept = self._documents.sweep(settings, retrieve, sample=sample, tolerate=tolerate)
        return (yield from swept)

    async def _aretrieved(self, query: str) -> list[Document]:
        return list(await self.inner.ainvoke(query))

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        call = Call(self.inner, query, kwargs)
        build = self._asking(query, call.config, call.options)
        step = Step(
            sync=lambda: call.retrieve(run_manager),
            aio=lambda: asyncio.to_thread(call.retrieve, run_manager),
        )
        found = self._front.run(self._documents.serve(build, step))
        told = run_manager.get_child()
        told.on_custom_event(EVENT, _told(found), run_id=run_manager.run_id)
        return found.documents

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        call = Call(self.inner, query, kwargs)
        build = self._asking(query, call.config, call.options)
        step = Step(
            sync=lambda: call.retrieve(run_manager.get_sync()),
            aio=lambda: call.aretrieve(run_manager),
        )
        found = await self._front.arun(self._documents.serve(build, step))
        told = run_manager.get_child()
        await told.on_custom_event(EVENT, _told(found), run_id=run_manager.run_id)
        return found.documents

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        kwargs.pop(CONFIG_OPTION, None)
        if isinstance(self.inner, BaseRetriever):
            return self.inner._get_ls_params(**kwargs)
        return super()._get_ls_params(**kwargs)

    # -- a query as a request ----------------------------------------------------------------------

    def _asking(self, query: str, config: RunnableConfig, options: Mapping[str, Any]) -> Build:
        def request() -> Request:
            places = (config.get("metadata"), config.get("configurable"))
            who = scope_in(*places)
            return Request(
                question=query,
                prompt={"query": query},  # by the very text: no white space is folded
                settings=self._settings(config, options, who),
                kind=kind_in(*places) or self._validity.kind,
                scope=who,
                controls=controls_in(*places),
            )

        return request

    def _settings(
        self,
        config: RunnableConfig | None = None,
        options: Mapping[str, Any] = _NO_OPTIONS,
        who: Scope | None = None,
    ) -> Settings:
        settings = Settings(
            params={
                "framework": "langchain.retriever",
                "grounding": self._validity.grounding,
                "version": self._validity.version,
                "retriever": self._fields.read(config, options),
                "configurable": configured(config, who),
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

    def _check(self) -> None:
        try:
            self._settings()
        except CanonicalError as error:
            raise ConfigError(
                f"This retriever cannot be told from another one: {error}. Use plain values there, or"
                " functions that see nothing else."
            ) from error

    def _evidence(self, found: Sequence[Document]) -> tuple[Evidence, ...]:
        corpus, source = self._validity.corpus, self._source
        if source is None:
            return evidence_of(found, corpus=corpus)
        if source_of(self.inner, where="inner").corpus != corpus:  # it was exchanged since
            raise ConfigError(f"The inner retriever does not read from corpus {corpus!r} any more.")
        return evidence_of(found, corpus=corpus, volatile=source.volatile)


def _told(found: Retrieved[Document]) -> dict[str, object]:
    return copied_report(found.report)


def _kept(found: Sequence[Document]) -> Answer:
    return Answer(text="", payload=payload.dump_documents(found), format=payload.DOCUMENTS)


def _read(answer: Answer) -> list[Document]:
    return payload.load_documents(answer.payload, answer.format)
