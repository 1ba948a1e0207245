"""What may stand behind a `CachedChatEngine`: the chat engines that are known, and their query engine."""

from pathlib import Path

from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.query_engine import RetrieverQueryEngine

from llama_index_stampcache.chats.conversing import KnownEngine
from llama_index_stampcache.chats.turns import Switched
from llama_index_stampcache.engines.query_engine import CachedQueryEngine
from stampcache import AsyncCache, Cache, ConfigError, Manifest
from stampcache.adapters import Validity

KNOWN = (
    CondenseQuestionChatEngine,
    ContextChatEngine,
    CondensePlusContextChatEngine,
    SimpleChatEngine,
)


_WAYS = ("chat", "achat", "stream_chat", "astream_chat", "_run_c3", "_arun_c3")


def known_engine(inner: BaseChatEngine) -> KnownEngine:
    """Return an engine whose turns are known; what one of another class does would be left out.

    Raises:
        ConfigError: it is none of them, or takes its turns in a way of its own.
    """
    if not isinstance(inner, KNOWN):
        names = ", ".join(kind.__name__ for kind in KNOWN)
        raise ConfigError(f"A {type(inner).__name__} is no chat engine that is known: {names}.")
    base = next(kind for kind in KNOWN if isinstance(inner, kind))
    below = type(inner).__mro__[: type(inner).__mro__.index(base)]
    own = [way for way in _WAYS if any(way in vars(kind) for kind in below)]
    if own:
        raise ConfigError(
            f"{type(inner).__name__} has {', '.join(own)} of its own, in place of those of "
            f"{base.__name__}; put the cache into it instead, around its query engine or model."
        )
    return inner


def queried(
    chat: CondenseQuestionChatEngine,
    cache: Cache | AsyncCache,
    given: Validity,
    manifest: Manifest | str | Path | None,
    name: str,
    *,
    streams: bool,
) -> CachedQueryEngine:
    """Return the query engine of a chat engine behind the cache: once is enough."""
    engine = chat._query_engine
    if isinstance(engine, CachedQueryEngine):
        engine = engine.inner
    if isinstance(engine, RetrieverQueryEngine):
        engine = Switched(engine, streams=streams)
    return CachedQueryEngine(
        engine,
        cache=cache,
        grounding=given.grounding,
        version_of=given.version_of,
        corpus=given.corpus,
        stamps=given.stamps,
        manifest=manifest,
        kind=given.kind,
        allow_stale=given.allow_stale,
        version=given.version,
        name=name,
    )
