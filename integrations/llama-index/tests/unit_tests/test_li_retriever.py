"""`CachedRetriever`: the nodes that a retriever found, served while their corpus stays as it is."""

import asyncio
import copy
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_fakes import Corpus, DigestLLM, bundle
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.indices.vector_store import VectorIndexRetriever
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever, RecursiveRetriever
from llama_index.core.schema import (
    ImageNode,
    IndexNode,
    MediaResource,
    Node,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from msgspec.structs import replace

import stampcache
from llama_index_stampcache import (
    CachedQueryEngine,
    CachedRetriever,
    CacheHitEvent,
    CacheMissEvent,
)
from stampcache import Answer, Cache, ConfigError, Manifest, Stamps
from stampcache.testing import FailingStore, FakeClock

QUESTION = "annual leave"
BUILT = Stamps(index="built-1")


def cached_on(cache: Any, inner: BaseRetriever, **options: Any) -> CachedRetriever:
    given = {"corpus": "handbook", "stamps": BUILT, **options}
    return CachedRetriever(inner, cache=cache, **given)


@pytest.fixture
def inner(corpus: Corpus) -> VectorIndexRetriever:
    return VectorIndexRetriever(corpus.index, similarity_top_k=2)


@pytest.fixture
def cached(inner: BaseRetriever, cache: Cache) -> CachedRetriever:
    return cached_on(cache, inner)


@contextmanager
def heard(*kinds: type) -> Iterator[list[Any]]:
    """Collect the events of these kinds."""
    events: list[Any] = []

    class Listener(BaseEventHandler):
        def handle(self, event: Any, **_: Any) -> None:
            if isinstance(event, kinds):
                events.append(event)

    root = get_dispatcher()
    listener = Listener()
    root.add_event_handler(listener)
    try:
        yield events
    finally:
        root.event_handlers.remove(listener)


def report(retriever: BaseRetriever, question: Any = QUESTION) -> CacheHitEvent | CacheMissEvent:
    with heard(CacheHitEvent, CacheMissEvent) as events:
        retriever.retrieve(question)
    (event,) = events
    assert event.seam == "retrieve"
    found: CacheHitEvent | CacheMissEvent = event
    return found


def reasons(retriever: BaseRetriever, *questions: Any) -> list[str]:
    told = [report(retriever, each) for each in questions]
    return ["hit" if isinstance(each, CacheHitEvent) else each.reason for each in told]


SHELVES: list[list[NodeWithScore]] = []


class Given(BaseRetriever):
    """Finds what it was given; counts how often it is asked."""

    def __init__(self, *found: NodeWithScore, user: str = "", **options: Any) -> None:
        self.shelf = len(SHELVES)
        SHELVES.append(list(found))
        self.user = user
        self.calls = 0
        super().__init__(**options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.calls += 1
        return list(SHELVES[self.shelf])


# -- hits ------------------------------------------------------------------------------------------


def test_a_hit_retrieves_nothing_and_gives_equal_nodes(
    cached: CachedRetriever, inner: BaseRetriever, corpus: Corpus
) -> None:
    expected = inner.retrieve(QUESTION)
    for _ in range(3):
        found = cached.retrieve(QUESTION)
        assert found == expected
        assert [one.score for one in found] == [one.score for one in expected]
        assert [type(one.node) for one in found] == [type(one.node) for one in expected]
    assert corpus.embedding.retrievals == 2


async def test_tasks_find_what_threads_found(cached: CachedRetriever, corpus: Corpus) -> None:
    assert cached.retrieve(QUESTION) == await cached.aretrieve(QUESTION)
    assert await cached.aretrieve("lunch") == cached.retrieve("lunch")
    assert corpus.embedding.retrievals == 2


NODES = [
    NodeWithScore(node=TextNode(text="plain", id_="1"), score=0.25),
    NodeWithScore(node=TextNode(text="no score", id_="2"), score=None),
    NodeWithScore(node=TextNode(text="embedded", id_="3", embedding=[0.1, 0.2]), score=0.1),
    NodeWithScore(
        node=TextNode(
            text="related",
            id_="4",
            metadata={"page": 1, "nested": {"a": [1, None]}},
            excluded_llm_metadata_keys=["page"],
            relationships={
                NodeRelationship.SOURCE: RelatedNodeInfo(node_id="leave"),
                NodeRelationship.CHILD: [RelatedNodeInfo(node_id="5")],
            },
        ),
        score=1,
    ),
    NodeWithScore(node=IndexNode(text="index", id_="6", index_id="other"), score=0.3),
    NodeWithScore(node=Node(text_resource=MediaResource(text="node"), id_="7"), score=0.3),
]


@pytest.mark.parametrize("one", NODES, ids=lambda one: one.node.node_id)
def test_h2_nodes_come_back_as_they_were(cache: Cache, one: NodeWithScore) -> None:
    inner = Given(one)
    cached = cached_on(cache, inner)
    cached.retrieve(QUESTION)
    (found,) = cached.retrieve(QUESTION)
    assert inner.calls == 1
    assert (type(found.node), found.node, found.score) == (type(one.node), one.node, one.score)
    assert found.node.embedding == one.node.embedding
    assert found.node.relationships == one.node.relationships
    assert found is not one


class Marked(TextNode):
    """A node of a class that is not the framework's own."""


@pytest.mark.parametrize(
    "one",
    [
        NodeWithScore(node=TextNode(text="a", metadata={"pages": (1, 2)})),
        NodeWithScore(node=TextNode(text="a"), score=float("nan")),
        NodeWithScore(node=Marked(text="a")),
        NodeWithScore(node=ImageNode(text="a", image_path="a.png")),
    ],
)
def test_nodes_that_would_not_come_back_equal_are_not_stored(
    cache: Cache, one: NodeWithScore
) -> None:
    inner = Given(one)
    cached = cached_on(cache, inner)
    for _ in range(2):
        assert cached.retrieve(QUESTION)[0] is one
    stats = cache.stats(everything=True)
    assert (inner.calls, stats.entries, stats.counters["adapter.not_storable"]) == (2, 0, 2)


def test_h11_changing_nodes_changes_no_later_ones(cache: Cache) -> None:
    cached = cached_on(cache, Given(*copy.deepcopy(NODES)))
    for _ in range(3):
        found = cached.retrieve(QUESTION)
        assert found == NODES
        for one in found:
            one.score = 99.0
            one.node.metadata["mine"] = True
        found.clear()


def test_nothing_about_the_cache_stands_in_nodes(cached: CachedRetriever) -> None:
    first, second = cached.retrieve(QUESTION), cached.retrieve(QUESTION)
    assert [one.node.metadata for one in first] == [one.node.metadata for one in second]
    assert all("cache" not in one.node.metadata for one in second)


# -- what is keyed ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        bundle("annual  leave"),
        bundle("Annual leave"),
        bundle(QUESTION, custom_embedding_strs=["lunch at noon"]),
        bundle(QUESTION, embedding=[0.5] * 64),
    ],
)
def test_all_of_a_query_is_keyed(
    cached: CachedRetriever, inner: BaseRetriever, query: QueryBundle
) -> None:
    cached.retrieve(QUESTION)
    assert reasons(cached, copy.deepcopy(query), copy.deepcopy(query)) == ["not found", "hit"]
    assert cached.retrieve(copy.deepcopy(query)) == inner.retrieve(copy.deepcopy(query))


def test_a_query_with_an_image_bypasses(cached: CachedRetriever) -> None:
    query = bundle(QUESTION, image_path="a.png")
    assert reasons(cached, query, query) == ["uncacheable"] * 2


def test_a_bundle_is_known_again_after_its_retrieval_wrote_into_it(
    cached: CachedRetriever, corpus: Corpus
) -> None:
    cached.retrieve(bundle(QUESTION))
    assert reasons(cached, bundle(QUESTION), QUESTION) == ["hit", "hit"]
    assert corpus.embedding.retrievals == 1


def test_k_is_keyed_as_it_is_now(cached: CachedRetriever, inner: VectorIndexRetriever) -> None:
    for k in (2, 1, 3, 1, 2):
        inner.similarity_top_k = k
        assert cached.retrieve(QUESTION) == inner.retrieve(QUESTION)
        assert len(cached.retrieve(QUESTION)) == k


def test_filters_are_keyed(cache: Cache, corpus: Corpus) -> None:
    for user in ("bob", "eve"):
        corpus.insert(user, f"annual leave of {user}", {"user": user})

    def seen_by(user: str) -> list[str]:
        filters = MetadataFilters(filters=[MetadataFilter(key="user", value=user)])
        inner = VectorIndexRetriever(corpus.index, similarity_top_k=5, filters=filters)
        return [one.text for one in cached_on(cache, inner).retrieve(QUESTION)]

    for user in ("bob", "eve", "bob"):
        assert seen_by(user) == [f"annual leave of {user}"]


def test_an_attribute_of_an_own_retriever_is_keyed(cache: Cache) -> None:
    inner = Given(NODES[0], user="bob")
    cached = CachedRetriever(inner, cache=cache, stamps=BUILT, corpus="handbook", version="1")
    cached.retrieve(QUESTION)
    inner.user = "eve"
    assert reasons(cached, QUESTION) == ["not found"]


def test_a_part_without_identity_is_refused(cache: Cache) -> None:
    inner = Given(NODES[0])
    inner.client = object()  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"client.*version="):
        cached_on(cache, inner)
    assert cached_on(cache, inner, version="1").retrieve(QUESTION) == [NODES[0]]


def test_two_indexes_of_no_name_never_share(cache: Cache) -> None:
    found = []
    for text in ("annual leave is ten days", "annual leave is twenty days"):
        inner = VectorIndexRetriever(Corpus({"leave": text}).index)
        found.append(cached_on(cache, inner, corpus="").retrieve(QUESTION)[0].text)
    assert found == ["annual leave is ten days", "annual leave is twenty days"]


# -- documents change ------------------------------------------------------------------------------


def test_f1_any_write_to_the_corpus_makes_nodes_stale(
    cached: CachedRetriever, inner: BaseRetriever, corpus: Corpus, cache: Cache
) -> None:
    assert reasons(cached, QUESTION, QUESTION) == ["not found", "hit"]
    corpus.insert("new", "annual leave of trainees")
    assert cache.invalidate(corpus="handbook", source="new") == 1
    assert reasons(cached, QUESTION, QUESTION) == ["what it was made from changed", "hit"]
    assert cached.retrieve(QUESTION) == inner.retrieve(QUESTION)


def test_f2_by_sources_only_what_was_found_matters(cache: Cache, corpus: Corpus) -> None:
    inner = VectorIndexRetriever(corpus.index, similarity_top_k=1)
    cached = cached_on(cache, inner, version_of="sources")
    cached.retrieve(QUESTION)
    (lunch,) = cached.retrieve("lunch noon")
    assert cache.invalidate(corpus="handbook", source="travel") == 0
    assert cache.invalidate(corpus="handbook", source="leave") == 1
    assert reasons(cached, QUESTION, "lunch noon") == ["what it was made from changed", "hit"]
    assert cache.invalidate(chunk=lunch.node.node_id) == 1


def test_what_changes_while_it_is_retrieved_is_fenced(
    cached: CachedRetriever, corpus: Corpus, cache: Cache
) -> None:
    corpus.embedding.meanwhile(lambda: cache.invalidate(corpus="handbook"))
    cached.retrieve(QUESTION)
    corpus.embedding.meanwhile(None)
    assert reasons(cached, QUESTION, QUESTION) == ["not found", "hit"]


@pytest.mark.parametrize("version_of", ["corpus", "sources"])
def test_f3_nothing_found_lives_short_and_goes_with_any_write(
    timed: Cache, clock: FakeClock, version_of: str
) -> None:
    inner = Given()
    cached = cached_on(timed, inner, version_of=version_of)
    assert cached.retrieve("pension") == cached.retrieve("pension") == []
    assert inner.calls == 1
    clock.advance(301)
    assert reasons(cached, "pension") == ["expired"]
    assert timed.invalidate(corpus="handbook", source="pension") == 1


def test_rechecking_is_refused_with_the_reason(cache: Cache, inner: BaseRetriever) -> None:
    with pytest.raises(ConfigError, match="retrieve for every query"):
        cached_on(cache, inner, grounding="recheck")


@pytest.mark.parametrize("grounding", ["version", "none"])
def test_the_version_of_the_index_must_be_known(
    cache: Cache, inner: BaseRetriever, grounding: Any, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="version must be known"):
        CachedRetriever(inner, cache=cache, grounding=grounding)
    Manifest(corpus="handbook", version="7").write(tmp_path / "made.json")
    made = tmp_path / "made.json"
    cached = CachedRetriever(inner, cache=cache, grounding=grounding, manifest=made)
    cached.retrieve(QUESTION)
    assert cache.invalidate(corpus="handbook") == 1


def test_a_kind_of_data_and_stale_nodes(timed: Cache, clock: FakeClock) -> None:
    cached = cached_on(timed, Given(NODES[0]), kind="price", allow_stale=True)
    cached.retrieve(QUESTION)
    clock.advance(3_601)
    told = report(cached)
    assert isinstance(told, CacheMissEvent)
    assert told.reason == "expired"
    assert cached.retrieve(QUESTION) == [NODES[0]]


def test_it_opens_a_cache_by_its_url(corpus: Corpus, inner: BaseRetriever, tmp_path: Path) -> None:
    for _ in range(2):
        cached = cached_on(f"sqlite:///{tmp_path}/cache.db", inner)
        cached.retrieve(QUESTION)
        assert isinstance(cached.cache, Cache)
        cached.cache.close()
    assert corpus.embedding.retrievals == 1


# -- objects behind index nodes --------------------------------------------------------------------


def test_what_is_behind_index_nodes_is_retrieved_once(cache: Cache) -> None:
    behind = Given(NODES[0], NODES[3])
    inner = Given(
        NodeWithScore(node=IndexNode(text="see there", index_id="other"), score=0.5),
        object_map={"other": behind},
    )
    plain = inner.retrieve(QUESTION)
    cached = cached_on(cache, inner)
    for _ in range(3):
        assert cached.retrieve(QUESTION) == plain == [NODES[0], NODES[3]]
    assert (inner.calls, behind.calls) == (2, 2)


def test_an_object_inside_of_an_index_node_is_followed(cache: Cache) -> None:
    behind = TextNode(text="whole document", id_="whole")
    inner = Given(NodeWithScore(node=IndexNode(text="s", index_id="w", obj=behind), score=0.5))
    plain = inner.retrieve(QUESTION)
    cached = cached_on(cache, inner)
    assert cached.retrieve(QUESTION) == cached.retrieve(QUESTION) == plain
    assert inner.calls == 2


async def test_recursive_and_fusing_retrievers(cache: Cache, inner: BaseRetriever) -> None:
    recursive = RecursiveRetriever("vector", retriever_dict={"vector": inner})
    fusing = QueryFusionRetriever([inner, inner], llm=DigestLLM(), num_queries=1, use_async=False)
    for one in (recursive, fusing):
        plain = one.retrieve(QUESTION)
        cached = cached_on(cache, one)
        assert cached.retrieve(QUESTION) == plain
        assert await cached.aretrieve(QUESTION) == plain
        assert reasons(cached, QUESTION) == ["hit"]


# -- tenants, controls, failures -------------------------------------------------------------------


def test_e1_tenants_share_nothing(cached: CachedRetriever, corpus: Corpus) -> None:
    for tenant in ("acme", "globex", "acme"):
        with stampcache.scope(tenant=tenant):
            cached.retrieve(QUESTION)
    assert corpus.embedding.retrievals == 2


def test_e13_without_a_required_tenant_nothing_is_looked_up_or_stored(
    inner: BaseRetriever,
) -> None:
    with stampcache.open_cache("memory://", tenants="required") as cache:
        cached = cached_on(cache, inner)
        assert reasons(cached, QUESTION, QUESTION) == ["no tenant in scope"] * 2
        stats = cache.stats(everything=True)
    assert (stats.entries, stats.counters["miss.unscoped"]) == (0, 2)
    assert stats.counters["adapter.unscoped"] == 2


def test_p3_controls(cached: CachedRetriever, corpus: Corpus) -> None:
    with stampcache.scope(no_store=True):
        cached.retrieve(QUESTION)
    cached.retrieve(QUESTION)
    with stampcache.scope(no_cache=True):
        assert reasons(cached, QUESTION) == ["told not to look up"]
    assert reasons(cached, QUESTION) == ["hit"]
    assert corpus.embedding.retrievals == 3


async def test_an_error_of_the_retriever_passes_and_stores_nothing(cache: Cache) -> None:
    class Failing(Given):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            raise RuntimeError("the index is down")

    cached = cached_on(cache, Failing())
    with pytest.raises(RuntimeError, match="the index is down"):
        cached.retrieve(QUESTION)
    with pytest.raises(RuntimeError, match="the index is down"):
        await cached.aretrieve(QUESTION)
    assert cache.stats().entries == 0


def test_while_the_store_is_down_the_retriever_answers(inner: BaseRetriever) -> None:
    store = FailingStore()
    with stampcache.open_cache(store) as cache:
        cached = cached_on(cache, inner)
        store.down = True
        for _ in range(2):
            assert cached.retrieve(QUESTION) == inner.retrieve(QUESTION)
        store.down = False


@pytest.mark.parametrize(
    "broken",
    [
        Answer(text="", payload=b"[{", format="llama-index.nodes/1"),
        Answer(
            text="",
            payload=b'[{"kind": "Gone", "node": {}, "score": 1}]',
            format="llama-index.nodes/1",
        ),
        Answer(text="", payload=b"[]", format="llama-index.nodes/0"),
    ],
)
def test_h15_an_entry_that_cannot_be_read_is_made_anew(
    cached: CachedRetriever, corpus: Corpus, cache: Cache, broken: Answer
) -> None:
    expected = cached.retrieve(QUESTION)
    (place,) = cache.core.store._entries  # type: ignore[attr-defined]
    entry = cache.core.store.fetch(*place)
    assert entry is not None
    cache.core.store.put(replace(entry, answer=broken), None, cache.core.store.sequence())
    assert cached.retrieve(QUESTION) == cached.retrieve(QUESTION) == expected
    assert corpus.embedding.retrievals == 2


def test_explain(cached: CachedRetriever, corpus: Corpus, cache: Cache) -> None:
    assert "not found" in str(cached.explain(QUESTION))
    cached.retrieve(QUESTION)
    counted = cache.stats().requests
    assert "Hit" in str(cached.explain(QUESTION))
    assert (cache.stats().requests, corpus.embedding.retrievals) == (counted, 1)


async def test_explain_in_tasks(cached: CachedRetriever) -> None:
    await cached.aretrieve(QUESTION)
    assert "Hit" in str(await cached.aexplain(QUESTION))


# -- events ----------------------------------------------------------------------------------------


async def test_retrieval_events_fire_once_on_hits_too(cached: CachedRetriever) -> None:
    with heard(RetrievalStartEvent, RetrievalEndEvent, CacheHitEvent, CacheMissEvent) as events:
        cached.retrieve(QUESTION)
        cached.retrieve(QUESTION)
        await cached.aretrieve(QUESTION)
    hit = [RetrievalStartEvent, CacheHitEvent, RetrievalEndEvent]
    miss = [RetrievalStartEvent, CacheMissEvent, RetrievalEndEvent]
    assert [type(each) for each in events] == miss + hit + hit
    assert events[2].nodes == events[5].nodes == events[8].nodes
    assert events[4].saved["latency_s"] > 0


def test_the_callback_manager_is_that_of_the_inner_retriever(cache: Cache) -> None:
    handler = LlamaDebugHandler(print_trace_on_end=False)
    inner = Given(NODES[0], callback_manager=CallbackManager([handler]))
    cached = cached_on(cache, inner)
    for _ in range(2):
        cached.retrieve(QUESTION)
    assert len(handler.get_event_pairs(CBEventType.RETRIEVE)) == 2
    other = CallbackManager([])
    cached.callback_manager = other
    assert inner.callback_manager is other


# -- many at once ----------------------------------------------------------------------------------


def test_j8_equal_queries_at_once_retrieve_once(cache: Cache) -> None:
    begun, let = threading.Event(), threading.Event()

    class Waiting(Given):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            begun.set()
            assert let.wait(20)
            return super()._retrieve(query_bundle)

    inner = Waiting(*NODES)
    cached = cached_on(cache, inner)
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(cached.retrieve, QUESTION) for _ in range(16)]
        assert begun.wait(20)
        let.set()
        found = [each.result() for each in asked]
    assert (inner.calls, found) == (1, [NODES] * 16)
    assert len({id(one.node) for nodes in found for one in nodes}) == 16 * len(NODES)


async def test_j8_equal_queries_of_tasks_retrieve_once(cache: Cache) -> None:
    class Slow(Given):
        async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            await asyncio.sleep(0)
            return self._retrieve(query_bundle)

    inner = Slow(NODES[0])
    cached = cached_on(cache, inner)
    found = await asyncio.gather(*(cached.aretrieve(QUESTION) for _ in range(50)))
    assert (inner.calls, found) == (1, [[NODES[0]]] * 50)


def test_j3_sixteen_threads(url: str, inner: BaseRetriever) -> None:
    with stampcache.open_cache(url) as cache:
        cached = cached_on(cache, inner)
        queries = ["annual leave", "lunch", "travel"]
        expected = {query: inner.retrieve(query) for query in queries}
        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(lambda at: cached.retrieve(queries[at % 3]), range(96)))
        assert cache.stats().entries == 3
    assert all(each == expected[queries[at % 3]] for at, each in enumerate(found))


async def test_j1_sqlite_is_not_written_on_the_event_loop(
    inner: BaseRetriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    with stampcache.open_cache(f"sqlite:///{tmp_path}/cache.db") as cache:
        put = cache.core.store.put

        def noted(*args: Any) -> Any:
            threads.append(threading.get_ident())
            return put(*args)

        monkeypatch.setattr(cache.core.store, "put", noted)
        await cached_on(cache, inner).aretrieve(QUESTION)
    assert threads
    assert threading.get_ident() not in threads


# -- where retrievers are used ---------------------------------------------------------------------


def test_in_a_query_engine(cached: CachedRetriever, corpus: Corpus, llm: DigestLLM) -> None:
    engine = RetrieverQueryEngine.from_args(cached, llm=llm)
    plain = corpus.engine(DigestLLM()).query(QUESTION)
    for _ in range(2):
        answered = engine.query(QUESTION)
        assert (str(answered), answered.source_nodes) == (str(plain), plain.source_nodes)
    assert (llm.calls, corpus.embedding.retrievals) == (2, 2)


def test_in_a_cached_query_engine(
    cached: CachedRetriever, corpus: Corpus, llm: DigestLLM, cache: Cache
) -> None:
    engine = CachedQueryEngine(RetrieverQueryEngine.from_args(cached, llm=llm), cache=cache)
    first, second = engine.query(QUESTION), engine.query(QUESTION)
    assert second.metadata is not None
    assert (second.metadata["cache"]["hit"], first.source_nodes) == (True, second.source_nodes)
    corpus.edit("leave", "annual leave is forty days")
    cache.invalidate(corpus="handbook")
    third = engine.query(QUESTION)
    assert third.metadata is not None
    assert third.metadata["cache"]["hit"] is False
    assert "forty" in third.source_nodes[0].text


# -- random histories ------------------------------------------------------------------------------

WORDS = ["leave", "travel", "lunch", "days"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
names = st.sampled_from(["a", "b", "c"])
steps = st.one_of(
    st.tuples(st.just("ask"), texts),
    st.tuples(st.just("ask"), texts),
    st.tuples(st.just("put"), names, texts),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("k"), st.sampled_from([1, 2, 3])),
    st.tuples(st.just("tenant"), st.sampled_from(["a", "b"])),
    st.tuples(
        st.just("clear"),
    ),
)


@settings(max_examples=40, deadline=None)
@given(history=st.lists(steps, min_size=3, max_size=25))
def test_whatever_happens_nodes_are_those_of_the_uncached_retriever(
    history: list[tuple[Any, ...]],
) -> None:
    corpus, tenant = Corpus({"a": "annual leave"}), "a"
    inner = VectorIndexRetriever(corpus.index, similarity_top_k=2)
    documents = {"a"}
    with stampcache.open_cache("memory://") as cache:
        cached = cached_on(cache, inner)
        for step in history:
            with stampcache.scope(tenant=tenant):
                match step:
                    case ("ask", question):
                        assert cached.retrieve(question) == inner.retrieve(question)
                        assert isinstance(report(cached, question), CacheHitEvent)
                    case ("put", name, text):
                        if name in documents:
                            corpus.delete(name)
                        corpus.insert(name, text)
                        documents.add(name)
                        cache.invalidate(corpus="handbook", source=name)
                    case ("delete", name):
                        if name in documents:
                            corpus.delete(name)
                            documents.discard(name)
                            cache.invalidate(corpus="handbook", source=name)
                    case ("k", k):
                        inner.similarity_top_k = k
                    case ("tenant", name):
                        tenant = name
                    case ("clear",):
                        cache.clear()
