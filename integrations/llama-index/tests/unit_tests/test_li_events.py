"""What the cache tells on LlamaIndex's instrumentation, on hits as on misses."""

from collections.abc import Iterator
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM, bundle, semantic_cache
from llama_index.core.callbacks import CallbackManager, CBEventType
from llama_index.core.callbacks.llama_debug import LlamaDebugHandler
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.query import QueryEndEvent, QueryStartEvent
from llama_index.core.instrumentation.span import SimpleSpan
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.memory import ChatMemoryBuffer
from pydantic import Field

import llama_index_stampcache
from llama_index_stampcache import (
    CachedChatEngine,
    CachedQueryEngine,
    CacheHitEvent,
    CacheMissEvent,
)
from stampcache import Cache, open_cache

QUESTION = "how long is annual leave"


class Watching(BaseEventHandler):
    """Keeps what it sees."""

    seen: list[Any] = Field(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        return "Watching"

    def handle(self, event: BaseEvent, **_: Any) -> None:
        self.seen.append(event)

    def ours(self) -> list[Any]:
        return [each for each in self.seen if isinstance(each, CacheHitEvent | CacheMissEvent)]

    def of(self, kind: type) -> list[Any]:
        return [each for each in self.seen if isinstance(each, kind)]


@pytest.fixture
def watching() -> Iterator[Watching]:
    root, handler = get_dispatcher(), Watching()
    root.add_event_handler(handler)
    yield handler
    root.event_handlers.remove(handler)


def test_a_miss_and_a_hit_are_told_with_their_figures(
    watching: Watching, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    reports = [engine.query(QUESTION).metadata["cache"] for _ in range(2)]  # type: ignore[index]
    miss, hit = watching.ours()
    assert isinstance(miss, CacheMissEvent) and isinstance(hit, CacheHitEvent)
    for event, report in zip((miss, hit), reports, strict=True):
        told = {name: getattr(event, name) for name in report if name != "hit"}
        assert told == {name: report[name] for name in told} and len(told) == 5
        assert event.seam == "query"
    assert miss.class_name() == "CacheMissEvent" and hit.class_name() == "CacheHitEvent"


def test_no_event_of_the_cache_holds_a_text(
    watching: Watching, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    for _ in range(2):
        text = str(engine.query(QUESTION))
    written = "".join(event.model_dump_json() for event in watching.ours())
    assert QUESTION not in written and text not in written and "leave" not in written


@pytest.mark.parametrize("streams", [False, True])
async def test_events_of_queries_fire_on_hits_as_on_misses(
    streams: bool, watching: Watching, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    inner = corpus.engine(llm, streaming=streams)
    inner.callback_manager = CallbackManager([debug])
    engine = CachedQueryEngine(inner, cache=cache)
    for asked in range(1, 4):
        response: Any = engine.query(QUESTION)
        if streams:
            _ = list(response.response_gen)
        assert len(watching.of(QueryStartEvent)) == len(watching.of(QueryEndEvent)) == asked
        assert len(debug.get_event_pairs(CBEventType.QUERY)) == asked
        assert len(watching.ours()) == asked
    await engine.aquery(QUESTION)
    assert len(watching.of(QueryEndEvent)) == len(watching.ours()) == 4
    assert [type(each) for each in watching.ours()] == [CacheMissEvent, *[CacheHitEvent] * 3]


async def test_a_hit_by_meaning_tells_how_close_it_was(
    watching: Watching, corpus: Corpus, llm: DigestLLM
) -> None:
    with semantic_cache() as cache:
        engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
        await engine.aquery(QUESTION)
        await engine.aquery("tell me about annual leave")
        event = watching.ours()[-1]
        assert (event.level, event.reason) == ("semantic", "same question")
        assert 0.9 < event.similarity <= 1.0 and event.entry_id


def test_a_bypass_is_told_with_its_reason(
    watching: Watching, corpus: Corpus, llm: DigestLLM
) -> None:
    with open_cache("memory://", tenants="required") as cache:
        engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
        engine.query(QUESTION)
        engine.query(bundle(QUESTION, image_path="/photo.png"))
        assert [each.reason for each in watching.ours()] == ["no tenant in scope", "uncacheable"]


def test_chats_and_answers_from_nodes_say_what_they_are(
    watching: Watching, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
    engine.synthesize(bundle(QUESTION), engine.retrieve(bundle(QUESTION)))
    chat = ContextChatEngine.from_defaults(
        retriever=VectorIndexRetriever(corpus.index),
        llm=llm,
        memory=ChatMemoryBuffer.from_defaults(token_limit=1_000),
    )
    CachedChatEngine(chat, cache=cache).chat(QUESTION)
    assert [each.seam for each in watching.ours()] == ["synthesize", "chat"]
    assert watching.of(QueryStartEvent) == []  # as the inner chat engine alone


def test_each_event_stands_in_a_span_of_the_engine(
    watching: Watching, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    root, spans = get_dispatcher(), SimpleSpanHandler()
    root.add_span_handler(spans)
    try:
        engine = CachedQueryEngine(corpus.engine(llm), cache=cache)
        engine.query(QUESTION)
        engine.query(QUESTION)
    finally:
        root.span_handlers.remove(spans)
    done = {each.id_: each for each in spans.completed_spans}
    for event in watching.ours():
        assert isinstance(done[event.span_id], SimpleSpan)
        assert event.span_id.startswith("CachedQueryEngine._query-")


def test_two_engines_of_one_process_are_one_listener(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    before = len(get_dispatcher().event_handlers)
    for _ in range(3):
        CachedQueryEngine(corpus.engine(llm), cache=cache, grounding="none", stamps=INDEX)
    assert len(get_dispatcher().event_handlers) <= before + 1


def test_public_names_are_sorted_and_there() -> None:
    names = llama_index_stampcache.__all__
    assert names == sorted(names) and all(hasattr(llama_index_stampcache, name) for name in names)
