"""Sub-questions as entries of their own: each with its evidence, and each stale by itself."""

from collections.abc import Mapping
from copy import copy
from pathlib import Path

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.query_engine import SubQuestionQueryEngine

from llama_index_stampcache.engines.query_engine import CachedQueryEngine
from stampcache import AsyncCache, Cache, ConfigError, Manifest, Stamps, open_cache
from stampcache.adapters import Grounding, VersionOf


def cache_sub_questions(
    engine: SubQuestionQueryEngine,
    *,
    cache: Cache | AsyncCache | str,
    grounding: Grounding = "recheck",
    version_of: VersionOf = "sources",
    corpora: Mapping[str, str] | None = None,
    stamps: Stamps | None = None,
    manifest: Manifest | str | Path | None = None,
    kind: str = "",
    allow_stale: bool = False,
    version: str | None = None,
) -> SubQuestionQueryEngine:
    """Return an engine like this one whose tools answer their sub-questions through the cache.

    What is cached are the questions that the engine asks its tools, and their answers: steps that it
    shows itself. Which questions those are is made anew for each query, and so is the last answer; to
    cache that one too, put the returned engine into a `CachedQueryEngine`. The given engine is left as
    it is. A tool whose engine is a `CachedQueryEngine` already is left as it is, too.

    Args:
        engine: the engine, whose tools may be over different indexes.
        cache: an open cache, or the URL of one.
        grounding: of every tool; see `CachedQueryEngine`, as for the others.
        version_of: see `CachedQueryEngine`.
        corpora: names the documents of a tool, by the tool's name, for ``cache.invalidate(corpus=...)``.
        stamps: see `CachedQueryEngine`.
        manifest: see `CachedQueryEngine`; of one index, so only where all tools are over that one.
        kind: see `CachedQueryEngine`.
        allow_stale: see `CachedQueryEngine`.
        version: see `CachedQueryEngine`.

    Raises:
        ConfigError: a tool cannot be cached that way, or ``corpora`` names one that there is not.
    """
    named = corpora or {}
    unknown = named.keys() - engine._query_engines.keys()
    if unknown:
        names = ", ".join(sorted(repr(name) for name in engine._query_engines))
        raise ConfigError(f"corpora= names {sorted(unknown)}; the tools are {names}.")
    opened = open_cache(cache) if isinstance(cache, str) else cache

    def cached(name: str | None, inner: BaseQueryEngine) -> BaseQueryEngine:
        if isinstance(inner, CachedQueryEngine):
            return inner
        return CachedQueryEngine(
            inner,
            cache=opened,
            grounding=grounding,
            version_of=version_of,
            corpus=named.get(name or "", ""),
            stamps=stamps,
            manifest=manifest,
            kind=kind,
            allow_stale=allow_stale,
            version=version,
            name=name or "",  # two tools are often asked the same, each of its own documents
        )

    made = copy(engine)
    tools = engine._query_engines.items()
    made._query_engines = {name: cached(name, inner) for name, inner in tools}
    return made
