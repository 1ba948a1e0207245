"""Checked by mypy and pyright, never run: what the public names give to a type checker."""

from collections.abc import Sequence
from typing import assert_type

import numpy as np

import stampcache
from stampcache import (
    Answer,
    AsyncCache,
    Cache,
    Controls,
    Evidence,
    Hit,
    Level,
    Miss,
    Outcome,
    Reason,
    Refused,
    Request,
    Scope,
    Stale,
    Stamps,
    Stored,
    Verdict,
    Work,
    open_cache,
)
from stampcache.adapters import Ask, Begun, Opened, Reader, Replay, Streaming
from stampcache.effects import Embed, Fetch, Flow
from stampcache.model import Entry, Vector
from stampcache.ports import Embedded, Embedder, Store
from stampcache.stores.memory import MemoryStore
from stampcache.stores.sqlite import SqliteStore
from stampcache.telemetry import Stats

STORES: list[Store] = [MemoryStore(), SqliteStore("cache.db")]


class OwnEmbedder:
    name = "own"

    def embed(self, texts: Sequence[str]) -> Vector:
        return np.ones((len(texts), 3), np.float32)


EMBEDDER: Embedder = OwnEmbedder()


def sync_face() -> None:
    cache = open_cache("memory://", embedder=EMBEDDER, calibration=0.95, tenants="required")
    assert_type(cache, Cache)
    assert_type(cache.aio, AsyncCache)
    request = Request(question="q", model="deepseek-chat", params={"temperature": 0})
    outcome = cache.lookup(request, retrieve=lambda _question: [Evidence(text="chunk")])
    assert_type(outcome, Outcome)
    if isinstance(outcome, Hit):
        assert_type(outcome.answer, Answer)
        assert_type(outcome.level, Level)
        assert_type(outcome.similarity, float)
    else:
        assert_type(outcome, Stale | Miss)
        assert_type(outcome.reason, Reason)
    update = cache.update(request, Answer(text="a"), outcome=outcome, evidence=[])
    assert_type(update, Stored | Refused)
    assert_type(cache.get_or_create(request, lambda: "made"), Answer)
    assert_type(cache.invalidate(corpus="handbook", source="leave.md"), int)
    assert_type(cache.invalidate(stamps=Stamps(model="m"), scope=Scope("acme")), int)
    assert_type(cache.stats(), Stats)
    assert_type(cache.clear(), int)
    assert_type(cache.work(limit=3, refresh=lambda due: due.entry.question), Work)
    assert_type(cache.explain(request).verdict, Verdict | None)
    assert_type(cache.stats().judge.calls_per_1000, float)


async def async_face() -> None:
    cache = AsyncCache("sqlite:///cache.db")
    outcome = await cache.lookup(Request(question="q"))
    assert_type(outcome, Outcome)

    async def make() -> str:
        return "made"

    assert_type(await cache.get_or_create(Request(question="q"), make), Answer)
    assert_type(await cache.clear(), int)
    assert_type(await cache.work(), Work)
    async with cache as opened:
        assert_type(opened, AsyncCache)


@stampcache.scope(tenant="acme")
def scoped(number: int) -> str:
    return str(number)


@stampcache.scope(tenant="acme", audience="group-7")
async def scoped_coroutine(number: int) -> str:
    return str(number)


async def decorators() -> None:
    assert_type(scoped(1), str)
    assert_type(await scoped_coroutine(1), str)
    with stampcache.scope(namespace="faq") as inner:
        assert_type(inner, Scope)


def told_otherwise() -> None:
    request = Request(question="q", controls=Controls(no_cache=True, ttl_s=60, variety=3))
    assert_type(request.controls, Controls)
    assert_type(request.controls.ttl_s, float | None)
    with stampcache.scope(no_store=True, question="q", evidence=[Evidence(text="chunk")]) as inner:
        assert_type(inner, Scope)
    figures = open_cache("memory://").stats()
    assert_type(figures.made_tokens, int)
    assert_type(figures.provider_cached_tokens, int | None)


def streams_are_typed(streaming: Streaming, ask: Ask, replay: Replay[str, int]) -> None:
    def make(outcome: Miss | Stale) -> Opened[str, int]:
        return Opened(outcome.detail, iter([1]))

    reader = streaming.stream(ask, replay, make)
    assert_type(reader, Reader[Begun[str], int])
    assert_type(reader.head().head, str)
    assert_type(next(reader), int)


def a_flow_is_typed() -> Flow[str]:
    entry = yield from Fetch("partition", "key")
    assert_type(entry, Entry | None)
    embedded = yield from Embed("question")
    assert_type(embedded, Embedded)
    return "done"
