"""`CachedEmbedding`: the vectors of the inner model, made once, with its events."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_fakes import WordsEmbedding, words_vector
from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.embedding import EmbeddingEndEvent
from llama_index.core.schema import TextNode
from llama_index.core.storage.kvstore import SimpleKVStore
from pydantic import Field, PrivateAttr

import stampcache
from llama_index_stampcache import CachedEmbedding
from stampcache import Answer, Cache, ConfigError, Request, Stamps
from stampcache.testing import FailingStore


class Embedding(BaseEmbedding):
    """A model whose vectors depend on all of its settings; notes what it is asked for."""

    model_name: str = "one"
    text_instruction: str = ""
    query_instruction: str = ""
    normalize: bool = False
    dimensions: int | None = None
    api_key: str = "sk"
    additional_kwargs: dict[str, Any] = Field(default_factory=dict)
    _queries: list[str] = PrivateAttr(default_factory=list)
    _batches: list[list[str]] = PrivateAttr(default_factory=list)
    _fail: Exception | None = PrivateAttr(default=None)

    @property
    def queries(self) -> list[str]:
        return self._queries

    @property
    def batches(self) -> list[list[str]]:
        return self._batches

    @property
    def asked(self) -> list[str]:
        return self._queries + [text for batch in self._batches for text in batch]

    def fails(self, error: Exception | None) -> None:
        self._fail = error

    def of(self, text: str, role: str) -> list[float]:
        prefix = self.query_instruction if role == "query" else self.text_instruction
        seasoned = f"{role} {prefix} {text} {self.model_name} {self.normalize} {self.dimensions}"
        return words_vector(seasoned)

    def _get_query_embedding(self, query: str) -> list[float]:
        self._queries.append(query)
        if self._fail is not None:
            raise self._fail
        return self.of(query, "query")

    async def _aget_query_embedding(self, query: str) -> list[float]:
        await asyncio.sleep(0)
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self._batches.append(list(texts))
        if self._fail is not None:
            raise self._fail
        return [self.of(text, "text") for text in texts]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        return self._get_text_embeddings(texts)


@pytest.fixture
def inner() -> Embedding:
    return Embedding()


@pytest.fixture
def cached(inner: Embedding, cache: Cache) -> CachedEmbedding:
    return CachedEmbedding(inner=inner, cache=cache)


@contextmanager
def heard() -> Iterator[list[EmbeddingEndEvent]]:
    """Collect the events that tell of vectors."""
    events: list[EmbeddingEndEvent] = []

    class Listener(BaseEventHandler):
        def handle(self, event: Any, **_: Any) -> None:
            if isinstance(event, EmbeddingEndEvent):
                events.append(event)

    root = get_dispatcher()
    listener = Listener()
    root.add_event_handler(listener)
    try:
        yield events
    finally:
        root.event_handlers.remove(listener)


# -- what is embedded, and what is not -------------------------------------------------------------


def test_a_query_is_embedded_once(cached: CachedEmbedding, inner: Embedding) -> None:
    assert cached.get_query_embedding("leave") == inner.of("leave", "query")
    assert cached.get_query_embedding("leave") == inner.of("leave", "query")
    assert inner.queries == ["leave"]


def test_it_takes_the_inner_model_by_position(inner: Embedding, cache: Cache) -> None:
    CachedEmbedding(inner, cache=cache).get_query_embedding("leave")
    CachedEmbedding(inner, cache=cache).get_query_embedding("leave")
    assert inner.queries == ["leave"]


def test_it_opens_a_cache_by_its_url(inner: Embedding, tmp_path: Path) -> None:
    for _ in range(2):
        cached = CachedEmbedding(inner, cache=f"sqlite:///{tmp_path}/cache.db")
        cached.get_query_embedding("leave")
        assert isinstance(cached.cache, Cache)
        cached.cache.close()
    assert inner.queries == ["leave"]


def test_a_text_is_known_whether_it_came_alone_or_in_a_batch(
    cached: CachedEmbedding, inner: Embedding
) -> None:
    one = cached.get_text_embedding("a")
    assert cached.get_text_embedding_batch(["b", "a", "b", "c"]) == [
        inner.of(text, "text") for text in "babc"
    ]
    assert cached.get_text_embedding("c") == inner.of("c", "text")
    assert (one, inner.batches) == (inner.of("a", "text"), [["a"], ["b", "c"]])


async def test_tasks_find_what_threads_found(cached: CachedEmbedding, inner: Embedding) -> None:
    assert await cached.aget_query_embedding("q") == cached.get_query_embedding("q")
    assert await cached.aget_text_embedding("a") == cached.get_text_embedding("a")
    batch = await cached.aget_text_embedding_batch(["a", "b", "a"])
    assert batch == cached.get_text_embedding_batch(["a", "b", "a"])
    assert inner.asked == ["q", "a", "b"]


async def test_batches_are_those_of_the_inner_model(cache: Cache) -> None:
    inner = Embedding(embed_batch_size=2)
    cached = CachedEmbedding(inner, cache=cache)
    cached.get_text_embedding_batch(["a", "b", "c", "a", "d", "a"])
    assert inner.batches == [["a", "b"], ["c", "d"]]
    found = await cached.aget_text_embedding_batch(["e", "f", "e", "g", "a", "e"])
    assert found == [inner.of(text, "text") for text in "efegae"]
    assert inner.batches[2:] == [["e", "f"], ["g"]]


def test_queries_are_aggregated(cached: CachedEmbedding, inner: Embedding) -> None:
    found = cached.get_agg_embedding_from_queries(["a", "b"])
    assert found == Embedding().get_agg_embedding_from_queries(["a", "b"])
    cached.get_agg_embedding_from_queries(["b", "c"])
    assert inner.queries == ["a", "b", "c"]


def test_a19_the_vector_of_a_query_is_never_given_for_a_text(cached: CachedEmbedding) -> None:
    assert cached.get_query_embedding("a") != cached.get_text_embedding("a")
    assert cached.get_query_embedding("a") != cached.get_text_embedding("a")


def test_h11_changing_a_vector_changes_no_later_one(
    cached: CachedEmbedding, inner: Embedding
) -> None:
    for _ in range(3):
        found = cached.get_text_embedding_batch(["a", "a", "b"])
        assert found == [inner.of(text, "text") for text in "aab"]
        for each in found:
            each.clear()


# -- what is keyed ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_name", "two"),
        ("text_instruction", "text: "),
        ("query_instruction", "query: "),
        ("normalize", True),
        ("dimensions", 4),
        ("embed_batch_size", 3),
        ("additional_kwargs", {"user": "bob"}),
    ],
)
def test_a20_every_parameter_is_keyed_as_it_is_now(
    cached: CachedEmbedding, inner: Embedding, name: str, value: object
) -> None:
    cached.get_query_embedding("a")
    cached.get_text_embedding("a")
    setattr(inner, name, value)
    for _ in range(2):
        assert cached.get_query_embedding("a") == inner.of("a", "query")
        assert cached.get_text_embedding("a") == inner.of("a", "text")
    assert inner.asked == ["a"] * 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("api_key", "rotated"),
        ("num_workers", 2),
        ("additional_kwargs", {"api_key": "x"}),
        ("callback_manager", CallbackManager([])),
    ],
)
def test_secrets_and_how_calls_are_paced_are_not_keyed(
    cached: CachedEmbedding, inner: Embedding, name: str, value: object
) -> None:
    cached.get_query_embedding("a")
    setattr(inner, name, value)
    cached.get_query_embedding("a")
    assert inner.queries == ["a"]


def test_two_classes_never_share(cache: Cache) -> None:
    class Doubled(Embedding):
        def of(self, text: str, role: str) -> list[float]:
            return [2 * number for number in super().of(text, role)]

    one = CachedEmbedding(Embedding(), cache=cache).get_query_embedding("a")
    two = CachedEmbedding(Doubled(), cache=cache).get_query_embedding("a")
    assert two == [2 * number for number in one]


def test_a25_a_part_without_identity_is_refused_at_construction(cache: Cache) -> None:
    class Opaque(Embedding):
        engine: Any = None

    inner = Opaque(engine=object())
    with pytest.raises(ConfigError, match=r"engine.*version="):
        CachedEmbedding(inner, cache=cache)
    for version in ("1", "2", "1"):
        CachedEmbedding(inner, cache=cache, version=version).get_query_embedding("a")
    assert inner.queries == ["a", "a"]


def test_a25_what_is_hidden_counts_where_no_model_is_named(cache: Cache) -> None:
    class Nameless(Embedding):
        model_name: str = "unknown"
        _client: Any = PrivateAttr(default=None)

    inner = Nameless()
    inner._client = object()
    with pytest.raises(ConfigError, match=r"_client.*version="):
        CachedEmbedding(inner, cache=cache)
    inner.model_name = "named"
    CachedEmbedding(inner, cache=cache)


class Spying(SimpleKVStore):
    """A key-value store that counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.gets = 0

    def get(self, *args: Any, **options: Any) -> Any:
        self.gets += 1
        return super().get(*args, **options)


def test_a_cache_of_the_framework_is_not_asked_besides(cache: Cache) -> None:
    store = Spying()
    inner = Embedding(embeddings_cache=store)
    inner.get_text_embedding("a")  # that cache would now give the vector of a text for a query
    asked = store.gets
    cached = CachedEmbedding(inner, cache=cache)
    assert cached.get_query_embedding("a") == inner.of("a", "query")
    assert cached.get_text_embedding_batch(["a"]) == [inner.of("a", "text")]
    assert (cached.embeddings_cache, store.gets) == (None, asked)


# -- tenants, controls, failures -------------------------------------------------------------------


def test_e1_tenants_share_nothing(cached: CachedEmbedding, inner: Embedding) -> None:
    for tenant in ("acme", "globex", "acme"):
        with stampcache.scope(tenant=tenant):
            cached.get_query_embedding("a")
            cached.get_text_embedding_batch(["a"])
    assert len(inner.asked) == 4


def test_e13_without_a_required_tenant_nothing_is_looked_up_or_stored(inner: Embedding) -> None:
    with stampcache.open_cache("memory://", tenants="required") as cache:
        cached = CachedEmbedding(inner, cache=cache)
        for _ in range(2):
            cached.get_query_embedding("a")
            cached.get_text_embedding_batch(["a", "b"])
        stats = cache.stats(everything=True)
    assert len(inner.asked) == 6
    assert (stats.entries, stats.counters["miss.unscoped"]) == (0, 4)


def test_p3_controls(cached: CachedEmbedding, inner: Embedding) -> None:
    with stampcache.scope(no_store=True):
        cached.get_query_embedding("a")
    cached.get_query_embedding("a")
    with stampcache.scope(no_cache=True):
        cached.get_query_embedding("a")
    cached.get_query_embedding("a")
    assert len(inner.queries) == 3


async def test_an_error_of_the_model_passes_and_stores_nothing(
    cached: CachedEmbedding, inner: Embedding, cache: Cache
) -> None:
    failure = RuntimeError("the endpoint is down")
    inner.fails(failure)
    for call in (cached.get_query_embedding, cached.get_text_embedding):
        with pytest.raises(RuntimeError) as raised:
            call("a")
        assert raised.value is failure
    with pytest.raises(RuntimeError):
        await cached.aget_text_embedding_batch(["a"])
    assert cache.stats().entries == 0
    inner.fails(None)
    assert cached.get_query_embedding("a") == inner.of("a", "query")


def test_while_the_store_is_down_texts_are_embedded_as_without_a_cache(inner: Embedding) -> None:
    store = FailingStore()
    with stampcache.open_cache(store) as cache:
        cached = CachedEmbedding(inner, cache=cache)
        store.down = True
        for _ in range(2):
            assert cached.get_query_embedding("a") == inner.of("a", "query")
            assert len(cached.get_text_embedding_batch(["a", "b"])) == 2
        store.down = False
    assert len(inner.asked) == 6


# -- events ----------------------------------------------------------------------------------------


async def test_events_fire_as_without_a_cache(cache: Cache) -> None:
    async def all_calls(model: BaseEmbedding) -> list[tuple[list[str], list[list[float]]]]:
        with heard() as events:
            for _ in range(2):
                model.get_query_embedding("q")
                model.get_text_embedding("a")
                model.get_text_embedding_batch(["a", "b", "c"])
                await model.aget_query_embedding("q")
                await model.aget_text_embedding("a")
                await model.aget_text_embedding_batch(["d", "b", "c"])
        return [(each.chunks, each.embeddings) for each in events]

    def managed() -> tuple[Embedding, LlamaDebugHandler]:
        handler = LlamaDebugHandler(print_trace_on_end=False)
        manager = CallbackManager([handler])
        return Embedding(embed_batch_size=2, callback_manager=manager), handler

    plain, plain_handler = managed()
    inner, handler = managed()
    cached = CachedEmbedding(inner, cache=cache)

    assert await all_calls(cached) == await all_calls(plain)
    pairs = handler.get_event_pairs(CBEventType.EMBEDDING)
    expected = plain_handler.get_event_pairs(CBEventType.EMBEDDING)
    assert [[event.payload for event in pair] for pair in pairs] == [
        [event.payload for event in pair] for pair in expected
    ]
    assert len(inner.asked) == 5


@pytest.mark.skipif(not hasattr(BaseEmbedding, "to_payload"), reason="an older LlamaIndex")
def test_events_say_of_the_model_what_it_says_itself(
    cached: CachedEmbedding, inner: Embedding
) -> None:
    assert cached.to_payload() == inner.to_payload()
    assert cached.model_name == "one"


class Limiter:
    """Counts the calls that it lets through."""

    def __init__(self) -> None:
        self.acquired = 0

    def acquire(self) -> None:
        self.acquired += 1

    async def async_acquire(self) -> None:
        self.acquired += 1


@pytest.mark.skipif("rate_limiter" not in BaseEmbedding.model_fields, reason="an older LlamaIndex")
async def test_the_rate_limiter_sees_only_what_is_made(cache: Cache) -> None:
    limiter = Limiter()
    cached = CachedEmbedding(Embedding(rate_limiter=limiter), cache=cache)
    for _ in range(2):
        cached.get_query_embedding("q")
        await cached.aget_text_embedding_batch(["a", "b"])
    assert limiter.acquired == 2


# -- many at once ----------------------------------------------------------------------------------


async def test_j8_equal_queries_at_once_embed_once(
    cached: CachedEmbedding, inner: Embedding
) -> None:
    found = await asyncio.gather(*(cached.aget_query_embedding("a") for _ in range(50)))
    assert found == [inner.of("a", "query")] * 50
    assert inner.queries == ["a"]


def test_j8_equal_queries_of_threads_embed_once(cache: Cache) -> None:
    begun, let = threading.Event(), threading.Event()

    class Waiting(Embedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            begun.set()
            assert let.wait(20)
            return super()._get_query_embedding(query)

    inner = Waiting()
    cached = CachedEmbedding(inner, cache=cache)
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(cached.get_query_embedding, "a") for _ in range(16)]
        assert begun.wait(20)
        let.set()
        assert [each.result() for each in asked] == [inner.of("a", "query")] * 16
    assert inner.queries == ["a"]


def test_j3_sixteen_threads(inner: Embedding, url: str) -> None:
    with stampcache.open_cache(url) as cache:
        cached = CachedEmbedding(inner, cache=cache)
        texts = [f"text {number % 7}" for number in range(20)]
        expected = [inner.of(text, "text") for text in texts]
        with ThreadPoolExecutor(16) as pool:
            for found in pool.map(lambda _: cached.get_text_embedding_batch(texts), range(32)):
                assert found == expected
        assert cache.stats().entries == 7


# -- where a model is used -------------------------------------------------------------------------


def test_in_an_index(cached: CachedEmbedding, inner: Embedding) -> None:
    documents = [Document(text="annual leave", id_="1"), Document(text="lunch at noon", id_="2")]
    plain = VectorStoreIndex.from_documents(documents, embed_model=Embedding())
    for _ in range(2):
        index = VectorStoreIndex.from_documents(documents, embed_model=cached)
        found = index.as_retriever().retrieve("leave")
        expected = plain.as_retriever().retrieve("leave")
        assert [(one.text, one.score) for one in found] == [
            (one.text, one.score) for one in expected
        ]
    assert (len(inner.batches), inner.queries) == (1, ["leave"])


def test_as_the_model_of_the_settings(
    cached: CachedEmbedding, inner: Embedding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "_embed_model", None)
    Settings.embed_model = cached
    VectorStoreIndex.from_documents([Document(text="leave")])
    VectorStoreIndex.from_documents([Document(text="leave")])
    assert inner.batches == [["leave"]]


async def test_as_a_transformation_of_nodes(cached: CachedEmbedding, inner: Embedding) -> None:
    nodes = [TextNode(text=text, metadata={"page": 1}) for text in ("a", "b", "a")]
    cached(nodes)
    assert nodes[0].embedding == nodes[2].embedding == inner.of("page: 1\n\na", "text")
    await cached.acall(nodes)
    assert len(inner.batches) == 1


def test_in_an_ingestion_pipeline(cached: CachedEmbedding, inner: Embedding) -> None:
    pipeline = IngestionPipeline(transformations=[cached])
    for _ in range(2):
        (node,) = pipeline.run(nodes=[TextNode(text="a", id_="1")])
        assert node.embedding == inner.of("a", "text")
    inner.normalize = True  # the pipeline's own cache must notice
    (node,) = pipeline.run(nodes=[TextNode(text="a", id_="1")])
    assert node.embedding == inner.of("a", "text")


def test_as_the_embedder_of_a_cache(cached: CachedEmbedding, inner: Embedding) -> None:
    with stampcache.open_cache("memory://", embedder=cached, calibration=0.99) as semantic:
        canaries = len(inner.queries)
        semantic.update(Request(question="how long is leave", model="m"), Answer(text="30"))
        for _ in range(2):
            semantic.lookup(Request(question="how long is lunch", model="m"))
        assert len(inner.queries) == canaries + 2
        with stampcache.open_cache("memory://", embedder=Embedding()) as plain:
            assert plain.core.intake.stamps.embedder == semantic.core.intake.stamps.embedder


def test_a_changed_embedder_is_invalidated_by_its_stamp(
    cached: CachedEmbedding, cache: Cache
) -> None:
    cached.get_query_embedding("a")
    cached.get_text_embedding("a")
    assert cache.invalidate(stamps=Stamps(embedder="one")) == 2


def test_a_model_from_the_fakes(cache: Cache) -> None:
    inner = WordsEmbedding()
    cached = CachedEmbedding(inner, cache=cache)
    for _ in range(2):
        assert cached.get_query_embedding("annual leave") == words_vector("annual leave")
    assert inner.retrievals == 1


# -- random histories ------------------------------------------------------------------------------

texts = st.text(alphabet="ab c", max_size=3)
steps = st.one_of(
    st.tuples(st.just("query"), texts),
    st.tuples(st.just("text"), texts),
    st.tuples(st.just("batch"), st.lists(texts, max_size=6)),
    st.tuples(st.just("model_name"), st.sampled_from(["one", "two"])),
    st.tuples(st.just("text_instruction"), st.sampled_from(["", "passage"])),
    st.tuples(st.just("tenant"), st.sampled_from(["a", "b"])),
    st.tuples(st.just("clear"), st.none()),
)


@settings(max_examples=50, deadline=None)
@given(history=st.lists(steps, max_size=20))
def test_whatever_happens_vectors_are_those_of_the_uncached_model(
    history: list[tuple[str, Any]],
) -> None:
    inner, plain, tenant = Embedding(embed_batch_size=2), Embedding(embed_batch_size=2), "a"
    with stampcache.open_cache("memory://") as cache:
        cached = CachedEmbedding(inner, cache=cache)
        for verb, argument in history:
            with stampcache.scope(tenant=tenant):
                match verb:
                    case "query":
                        found = cached.get_query_embedding(argument)
                        assert found == plain.get_query_embedding(argument)
                    case "text":
                        assert cached.get_text_embedding(argument) == plain.get_text_embedding(
                            argument
                        )
                    case "batch":
                        batch = cached.get_text_embedding_batch(argument)
                        assert batch == plain.get_text_embedding_batch(argument)
                    case "tenant":
                        tenant = argument
                    case "clear":
                        cache.clear()
                    case setting:
                        setattr(inner, setting, argument)
                        setattr(plain, setting, argument)
