"""`CachedRetriever`: what a retriever found, served while its corpus stays as it is."""

import asyncio
import copy
import datetime
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_fakes import CountingChat, Shelf
from langchain_tests.integration_tests import RetrieversIntegrationTests
from msgspec.structs import replace
from pydantic import BaseModel, Field, PrivateAttr

import stampcache
from langchain_stampcache import CachedChain, CachedRetriever
from stampcache import Answer, Cache, ConfigError, Manifest, Stamps
from stampcache.testing import FailingStore, FakeClock

QUESTION = "annual leave"
BUILT = Stamps(index="built-1")


class Listener(BaseCallbackHandler):
    """Notes what a run tells."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.found: list[list[Document]] = []
        self.cache: list[dict[str, Any]] = []

    def on_retriever_start(self, *args: Any, **options: Any) -> None:
        self.told.append("start")

    def on_retriever_end(self, documents: Any, **options: Any) -> None:
        self.told.append("end")
        self.found.append(list(documents))

    def on_retriever_error(self, error: BaseException, **options: Any) -> None:
        self.told.append("error")

    def on_custom_event(self, name: str, data: Any, **options: Any) -> None:
        assert name == "stampcache"
        self.told.append("cache")
        self.cache.append(data)


def cached_on(cache: Any, inner: Any, **options: Any) -> CachedRetriever:
    given = {"corpus": "handbook", "stamps": BUILT, **options}
    return CachedRetriever(inner=inner, cache=cache, **given)


@pytest.fixture
def cached(opened: Cache, shelf: Shelf) -> CachedRetriever:
    return cached_on(opened, shelf)


def report(retriever: Any, question: str = QUESTION, **options: Any) -> dict[str, Any]:
    listener = Listener()
    retriever.invoke(question, {"callbacks": [listener]}, **options)
    (told,) = listener.cache
    return told


def reasons(retriever: Any, *questions: str) -> list[str]:
    told = [report(retriever, each) for each in questions]
    return ["hit" if each["hit"] else each["reason"] for each in told]


class Numbered(BaseRetriever):
    """As many documents as it is asked for."""

    k: int = 2

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, **kwargs: Any
    ) -> list[Document]:
        return [Document(f"{query} {at}") for at in range(kwargs.get("k", self.k))]


class CachedNumbered(CachedRetriever):
    def __init__(self, k: int = 2) -> None:
        cache = stampcache.open_cache("memory://")
        super().__init__(inner=Numbered(k=k), cache=cache, stamps=BUILT)


class TestStandard(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return CachedNumbered

    @property
    def retriever_query_example(self) -> str:
        return "leave"


# -- hits ------------------------------------------------------------------------------------------


def test_a_hit_retrieves_nothing_and_gives_equal_documents(
    cached: CachedRetriever, shelf: Shelf
) -> None:
    expected = shelf.invoke(QUESTION)
    assert cached.invoke(QUESTION) == expected
    again = cached.invoke(QUESTION)
    assert again == expected
    assert [each.id for each in again] == [each.id for each in expected]
    assert shelf.asked == [QUESTION, QUESTION]


async def test_tasks_find_what_threads_found(cached: CachedRetriever, shelf: Shelf) -> None:
    assert cached.invoke(QUESTION) == await cached.ainvoke(QUESTION)
    assert await cached.ainvoke("lunch") == cached.invoke("lunch")
    assert shelf.asked == [QUESTION, "lunch"]


def test_h11_changing_documents_changes_no_later_ones(
    cached: CachedRetriever, shelf: Shelf
) -> None:
    expected = copy.deepcopy(shelf.invoke(QUESTION))
    shelf_before = copy.deepcopy(shelf._documents)
    for _ in range(3):
        found = cached.invoke(QUESTION)
        assert found == expected
        shelf._documents.update(copy.deepcopy(shelf_before))
        for each in found:
            each.metadata["source"] = "changed"
            each.page_content = "changed"
        found.clear()


def test_nothing_about_the_cache_stands_in_documents(cached: CachedRetriever) -> None:
    first, second = cached.invoke(QUESTION), cached.invoke(QUESTION)
    assert [each.metadata for each in first] == [each.metadata for each in second]
    assert all(set(each.metadata) == {"source"} for each in second)


def test_a_run_tells_the_fields_of_the_cache_and_its_callbacks_fire_on_hits(
    cached: CachedRetriever, opened: Cache
) -> None:
    listener = Listener()
    for _ in range(2):
        cached.invoke(QUESTION, {"callbacks": [listener]})

    assert listener.told == ["start", "cache", "end"] * 2
    assert listener.found[0] == listener.found[1]
    miss, hit = listener.cache
    assert (miss["hit"], miss["reason"]) == (False, "not found")
    assert (hit["hit"], hit["level"], hit["similarity"]) == (True, "exact", 1.0)
    assert hit["saved"]["latency_s"] > 0
    assert opened.invalidate(entry=hit["entry_id"]) == 1


async def test_callbacks_of_tasks_fire_once(cached: CachedRetriever) -> None:
    told: list[str] = []

    class Later(AsyncCallbackHandler):
        async def on_retriever_start(self, *args: Any, **options: Any) -> None:
            told.append("start")

        async def on_retriever_end(self, *args: Any, **options: Any) -> None:
            told.append("end")

        async def on_custom_event(self, name: str, data: Any, **options: Any) -> None:
            told.append(f"hit {data['hit']}")

    for _ in range(2):
        await cached.ainvoke(QUESTION, {"callbacks": [Later()]})
    assert told == ["start", "hit False", "end", "start", "hit True", "end"]


def test_tags_and_metadata_of_the_inner_retriever_reach_the_run(
    opened: Cache, shelf: Shelf
) -> None:
    shelf.tags, shelf.metadata = ["handbook"], {"team": "people"}
    seen: list[Any] = []

    class Tagged(BaseCallbackHandler):
        def on_retriever_start(self, *args: Any, **options: Any) -> None:
            seen.append((options["tags"], options["metadata"]["team"]))

    cached_on(opened, shelf).invoke(QUESTION, {"callbacks": [Tagged()]})
    assert seen == [(["handbook"], "people")]


def test_white_space_is_part_of_a_query(cached: CachedRetriever, shelf: Shelf) -> None:
    for query in ("annual leave", "annual  leave", " annual leave", "Annual leave"):
        cached.invoke(query)
    assert len(shelf.asked) == 4


def test_a_query_is_never_matched_by_meaning(shelf: Shelf) -> None:
    class Same:
        name = "same"

        def embed(self, texts: Any) -> Any:
            return [[1.0, 0.0] for _ in texts]

    with stampcache.open_cache("memory://", embedder=Same(), calibration=0.9) as cache:
        cached = cached_on(cache, shelf)
        cached.invoke("annual leave")
        assert cached.invoke("lunch at noon") == shelf.invoke("lunch at noon")


@pytest.mark.parametrize("query", ["", " ", "\ud800 leave", "leave\n\nleave", "x" * 50_000])
def test_h7_odd_queries(cached: CachedRetriever, shelf: Shelf, query: str) -> None:
    assert cached.invoke(query) == shelf.invoke(query)
    assert cached.invoke(query) == shelf.invoke(query)


# -- what is keyed ---------------------------------------------------------------------------------


class Filtered(BaseRetriever):
    """Documents of a user, by a filter that may stand in many places."""

    search_kwargs: dict[str, Any] = Field(default_factory=dict)
    user: str = ""
    allowed: list[str] = Field(default_factory=list)
    calls: int = 0

    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, **kwargs: Any
    ) -> list[Document]:
        self.calls += 1
        seen = {**self.search_kwargs, **kwargs}
        chosen = seen.get("filter")
        text = (
            f"{query} for {chosen if not callable(chosen) else chosen()} {self.user} {self.allowed}"
        )
        return [Document(text)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("search_kwargs", {"filter": {"user": "bob"}}),
        ("search_kwargs", {"filter": {"api_key": "bob"}}),
        ("user", "bob"),
        ("allowed", ["bob"]),
    ],
)
def test_filters_are_keyed_as_they_are_now(opened: Cache, name: str, value: Any) -> None:
    inner = Filtered()
    cached = cached_on(opened, inner)
    before = cached.invoke(QUESTION)
    setattr(inner, name, value)
    bob = cached.invoke(QUESTION)
    assert bob != before
    assert cached.invoke(QUESTION) == bob
    assert inner.calls == 2


def test_call_options_are_keyed(opened: Cache) -> None:
    inner = Filtered()
    cached = cached_on(opened, inner)
    bob = cached.invoke(QUESTION, None, filter={"user": "bob"})
    eve = cached.invoke(QUESTION, None, filter={"user": "eve"})
    assert bob != eve
    assert cached.invoke(QUESTION, None, filter={"user": "bob"}) == bob
    assert cached.invoke(QUESTION) not in (bob, eve)
    assert inner.calls == 3


def naming(names: list[str]) -> Callable[[], str]:
    return lambda: names[0]


def test_a_filter_function_is_keyed_by_all_that_it_sees(opened: Cache) -> None:
    inner = Filtered()
    cached = cached_on(opened, inner)
    found = [cached.invoke(QUESTION, None, filter=naming([name])) for name in ("bob", "eve", "bob")]
    assert found[0] == found[2] != found[1]
    assert inner.calls == 2


class Directory:
    """An object that nothing is known of."""

    def __init__(self, name: str) -> None:
        self.name = name


def named_by(directory: Directory) -> Callable[[], str]:
    return lambda: directory.name


def test_a_filter_that_cannot_be_told_from_another_one_bypasses(opened: Cache) -> None:
    cached = cached_on(opened, Filtered(), version="1")
    for name in ("bob", "eve"):
        (found,) = cached.invoke(QUESTION, None, filter=named_by(Directory(name)))
        assert name in found.page_content
    assert opened.stats().entries == 0
    assert report(cached, filter=object())["reason"] == "uncacheable"
    with pytest.raises(ConfigError, match="search_kwargs"):
        cached_on(opened, Filtered(search_kwargs={"filter": named_by(Directory("bob"))}))


def test_k_of_a_vector_store(opened: Cache) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_texts([f"text {at}" for at in range(5)], [{"user": "ab"[at % 2]} for at in range(5)])
    inner = store.as_retriever(search_kwargs={"k": 2})
    cached = cached_on(opened, inner)
    for _ in range(2):
        for k in (2, 3):
            inner.search_kwargs["k"] = k
            assert cached.invoke("text") == inner.invoke("text")
            assert len(cached.invoke("text", None, k=1)) == 1
    for user in "abab":
        found = cached.invoke(
            "text", None, k=5, filter=lambda each, user=user: each.metadata["user"] == user
        )
        assert {each.metadata["user"] for each in found} == {user}


def test_two_collections_never_share(opened: Cache) -> None:
    class Collected(InMemoryVectorStore):
        def __init__(self, name: str) -> None:
            super().__init__(DeterministicFakeEmbedding(size=8))
            self.collection_name = name

    found = []
    for name in ("one", "two"):
        store = Collected(name)
        store.add_texts([f"text of {name}"])
        found.append(cached_on(opened, store.as_retriever()).invoke("text"))
    assert found[0] != found[1]


def test_a_configurable_retriever_is_keyed_by_its_config(opened: Cache) -> None:
    inner = Numbered().configurable_fields(k=ConfigurableField(id="k"))
    cached = cached_on(opened, inner)
    for _ in range(2):
        for k in (1, 3):
            config: Any = {"configurable": {"k": k}}
            assert cached.invoke("x", config) == inner.invoke("x", config)


def test_a_function_in_place_of_a_retriever(opened: Cache) -> None:
    calls: list[str] = []

    def find(query: str) -> list[Document]:
        calls.append(query)
        return [Document(query)]

    cached = cached_on(opened, find)
    assert cached.invoke("a") == cached.invoke("a") == [Document("a")]
    assert calls == ["a"]


def test_retrievers_inside_of_others_are_keyed(opened: Cache) -> None:
    class Around(BaseRetriever):
        base: BaseRetriever

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return self.base.invoke(query, {"callbacks": run_manager.get_child()})

    inside = Filtered()
    cached = cached_on(opened, Around(base=inside))
    before = cached.invoke(QUESTION)
    inside.user = "bob"
    assert cached.invoke(QUESTION) != before


# -- documents change ------------------------------------------------------------------------------


def test_f1_any_write_to_the_corpus_makes_documents_stale(
    cached: CachedRetriever, shelf: Shelf, opened: Cache
) -> None:
    assert reasons(cached, QUESTION, QUESTION) == ["not found", "hit"]
    shelf.put("new", "annual leave of trainees")
    assert opened.invalidate(corpus="handbook", source="new") == 1
    assert reasons(cached, QUESTION, QUESTION) == ["what it was made from changed", "hit"]
    assert cached.invoke(QUESTION) == shelf.invoke(QUESTION)


def test_f2_by_sources_only_what_was_found_matters(opened: Cache, shelf: Shelf) -> None:
    cached = cached_on(opened, shelf, version_of="sources")
    cached.invoke("annual leave")
    cached.invoke("lunch")
    assert opened.invalidate(corpus="handbook", source="travel") == 0
    assert opened.invalidate(corpus="handbook", source="leave") == 1
    assert reasons(cached, "annual leave", "lunch") == ["what it was made from changed", "hit"]
    assert opened.invalidate(chunk="id-lunch") == 1


def test_another_corpus_is_no_matter(cached: CachedRetriever, opened: Cache) -> None:
    cached.invoke(QUESTION)
    assert opened.invalidate(corpus="wiki") == 0
    assert reasons(cached, QUESTION) == ["hit"]


def test_what_changes_while_it_is_retrieved_is_fenced(opened: Cache, shelf: Shelf) -> None:
    class Changing(Shelf):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            found = super()._get_relevant_documents(query, run_manager=run_manager)
            if len(self.asked) == 1:
                opened.invalidate(corpus="handbook", source="leave")
            return found

    inner = Changing()
    inner.put("leave", "annual leave is thirty days")
    cached = cached_on(opened, inner)
    assert reasons(cached, QUESTION, QUESTION, QUESTION) == ["not found", "not found", "hit"]


@pytest.mark.parametrize("version_of", ["corpus", "sources"])
def test_f3_nothing_found_lives_short_and_goes_with_any_write(
    shelf: Shelf, version_of: str
) -> None:
    clock = FakeClock()
    with stampcache.open_cache("memory://", clock=clock) as cache:
        cached = cached_on(cache, shelf, version_of=version_of)
        assert cached.invoke("pension") == []
        assert reasons(cached, "pension") == ["hit"]
        clock.advance(301)
        assert reasons(cached, "pension") == ["expired"]
        shelf.put("pension", "the pension is paid monthly")
        assert cache.invalidate(corpus="handbook", source="pension") == 1
        assert len(cached.invoke("pension")) == 1


def test_a_kind_of_data_says_how_long_documents_live(shelf: Shelf) -> None:
    clock = FakeClock()
    with stampcache.open_cache("memory://", clock=clock) as cache:
        cached = cached_on(cache, shelf, kind="price")
        cached.invoke(QUESTION)
        clock.advance(3_601)
        assert reasons(cached, QUESTION) == ["expired"]


def test_stale_documents_where_they_are_allowed(opened: Cache, shelf: Shelf) -> None:
    cached = cached_on(opened, shelf, allow_stale=True)
    before = cached.invoke(QUESTION)
    shelf.put("leave", "annual leave is forty days")
    opened.invalidate(corpus="handbook")
    assert cached.invoke(QUESTION) == before
    assert report(cached)["reason"] == "what it was made from changed"


def test_rechecking_is_refused_with_the_reason(opened: Cache, shelf: Shelf) -> None:
    with pytest.raises(ConfigError, match="retrieve for every query"):
        cached_on(opened, shelf, grounding="recheck")


@pytest.mark.parametrize(
    "wrong", [{"grounding": "hope"}, {"version_of": "chunks"}, {"kind": "odd"}]
)
def test_words_that_are_none_of_ours_are_refused(
    opened: Cache, shelf: Shelf, wrong: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        cached_on(opened, shelf, **wrong)


@pytest.mark.parametrize("grounding", ["version", "none"])
def test_the_version_of_the_index_must_be_known(
    opened: Cache, shelf: Shelf, grounding: Any, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="version must be known"):
        CachedRetriever(inner=shelf, cache=opened, grounding=grounding)
    CachedRetriever(inner=shelf, cache=opened, grounding=grounding, version="1")
    made = Manifest(corpus="handbook", version="7")
    made.write(tmp_path / "made.json")
    cached = CachedRetriever(
        inner=shelf, cache=opened, grounding=grounding, manifest=tmp_path / "made.json"
    )
    cached.invoke(QUESTION)
    assert opened.invalidate(corpus="handbook") == 1


def test_another_version_of_the_index_is_another_partition(opened: Cache, shelf: Shelf) -> None:
    for version in ("1", "2", "1"):
        cached_on(opened, shelf, stamps=Stamps(index=version)).invoke(QUESTION)
    assert shelf.asked == [QUESTION] * 2


def test_documents_that_do_not_change_live_by_time(opened: Cache, shelf: Shelf) -> None:
    cached = cached_on(opened, shelf, grounding="none")
    assert reasons(cached, QUESTION, QUESTION) == ["not found", "hit"]


class Marked(Document):
    """A document of a class that is not LangChain's own."""


@pytest.mark.parametrize(
    "document",
    [
        Document("leave", metadata={"at": datetime.datetime(2025, 1, 1)}),
        Document("leave", metadata={"pages": (1, 2)}),
        Document("leave", metadata={"score": float("nan")}),
        Document("leave", metadata={"rows": {1: "one"}}),
        Marked("leave"),
    ],
)
def test_documents_that_would_not_come_back_equal_are_not_stored(
    opened: Cache, shelf: Shelf, document: Document
) -> None:
    shelf._documents["leave"] = document
    cached = cached_on(opened, shelf)
    for _ in range(2):
        assert any(each is document for each in cached.invoke("leave"))
    stats = opened.stats(everything=True)
    assert (stats.entries, stats.counters["adapter.not_storable"]) == (0, 2)


# -- tenants, controls, failures -------------------------------------------------------------------


def test_e1_tenants_share_nothing(cached: CachedRetriever, shelf: Shelf) -> None:
    for tenant in ("acme", "globex", "acme"):
        with stampcache.scope(tenant=tenant):
            cached.invoke(QUESTION)
    assert len(shelf.asked) == 2


def test_the_config_says_who_asks(shelf: Shelf) -> None:
    with stampcache.open_cache("memory://", tenants="required") as cache:
        cached = cached_on(cache, shelf)
        for place in ("metadata", "configurable"):
            for tenant in ("acme", "globex"):
                cached.invoke(QUESTION, {place: {"tenant": tenant}})  # type: ignore[misc]
        assert len(shelf.asked) == 2
        cached.batch([QUESTION] * 2, [{"metadata": {"tenant": name}} for name in ("acme", "new")])
        assert len(shelf.asked) == 3


def test_e13_without_a_required_tenant_nothing_is_looked_up_or_stored(shelf: Shelf) -> None:
    with stampcache.open_cache("memory://", tenants="required") as cache:
        cached = cached_on(cache, shelf)
        assert reasons(cached, QUESTION, QUESTION) == ["no tenant in scope"] * 2
        cached.invoke(QUESTION, {"metadata": {"tenant": 7}})
        stats = cache.stats(everything=True)
    assert (stats.entries, len(shelf.asked)) == (0, 3)
    assert (stats.counters["miss.unscoped"], stats.counters["adapter.unscoped"]) == (3, 3)


def test_p3_controls_in_a_config(cached: CachedRetriever, shelf: Shelf) -> None:
    def told(**controls: Any) -> dict[str, Any]:
        listener = Listener()
        cached.invoke(QUESTION, {"callbacks": [listener], "metadata": {"stampcache": controls}})
        return listener.cache[0]

    assert told(no_store=True)["hit"] is False
    assert told()["hit"] is False
    assert told()["hit"] is True
    assert told(no_cache=True)["reason"] == "told not to look up"
    assert len(shelf.asked) == 3


def test_an_error_of_the_retriever_passes_and_stores_nothing(opened: Cache) -> None:
    class Failing(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            raise failure

    failure = RuntimeError("the index is down")
    cached, listener = cached_on(opened, Failing()), Listener()
    with pytest.raises(RuntimeError) as raised:
        cached.invoke(QUESTION, {"callbacks": [listener]})
    assert raised.value is failure
    assert (listener.told, opened.stats().entries) == (["start", "error"], 0)


def test_while_the_store_is_down_the_retriever_answers(shelf: Shelf) -> None:
    store = FailingStore()
    with stampcache.open_cache(store) as cache:
        cached = cached_on(cache, shelf)
        store.down = True
        for _ in range(2):
            assert cached.invoke(QUESTION) == shelf.invoke(QUESTION)
        store.down = False
    assert len(shelf.asked) == 4


@pytest.mark.parametrize(
    "broken",
    [
        Answer(text="", payload=b"[{", format="lc.documents.1"),
        Answer(text="", payload=b'[{"text": 7}]', format="lc.documents.1"),
        Answer(text="", payload=b"[]", format="lc.documents.0"),
    ],
)
def test_h15_an_entry_that_cannot_be_read_is_made_anew(
    cached: CachedRetriever, shelf: Shelf, opened: Cache, broken: Answer
) -> None:
    expected = cached.invoke(QUESTION)
    (place,) = opened.core.store._entries  # type: ignore[attr-defined]
    entry = opened.core.store.fetch(*place)
    assert entry is not None
    opened.core.store.put(replace(entry, answer=broken), None, opened.core.store.sequence())
    assert cached.invoke(QUESTION) == cached.invoke(QUESTION) == expected
    assert len(shelf.asked) == 2
    assert opened.stats(everything=True).counters["error.adapter.undecodable"] == 1


async def test_events_of_a_streamed_run_tell_the_cache(cached: CachedRetriever) -> None:
    for hit in (False, True):
        told = [
            each["data"]["hit"]
            async for each in cached.astream_events(QUESTION, version="v2")
            if each["event"] == "on_custom_event"
        ]
        assert told == [hit]


def test_a_listener_that_fails_fails_nothing(cached: CachedRetriever) -> None:
    class Broken(BaseCallbackHandler):
        def on_custom_event(self, *args: Any, **options: Any) -> None:
            raise ZeroDivisionError

    for _ in range(2):
        assert len(cached.invoke(QUESTION, {"callbacks": [Broken()]})) == 1


def test_explain(cached: CachedRetriever, shelf: Shelf, opened: Cache) -> None:
    assert "not found" in str(cached.explain(QUESTION))
    cached.invoke(QUESTION)
    counted = opened.stats().requests
    assert "Hit" in str(cached.explain(QUESTION))
    assert "Hit" not in str(cached.explain(QUESTION, None, k=7))
    assert (opened.stats().requests, shelf.asked) == (counted, [QUESTION])


async def test_explain_in_tasks(cached: CachedRetriever) -> None:
    await cached.ainvoke(QUESTION)
    assert "Hit" in str(await cached.aexplain(QUESTION))


# -- many at once ----------------------------------------------------------------------------------


class Waiting(Shelf):
    """Retrieves when it is let."""

    _begun: threading.Event = PrivateAttr(default_factory=threading.Event)
    _let: threading.Event = PrivateAttr(default_factory=threading.Event)

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self._begun.set()
        assert self._let.wait(20)
        return super()._get_relevant_documents(query, run_manager=run_manager)


def test_j8_equal_queries_at_once_retrieve_once(opened: Cache) -> None:
    inner = Waiting()
    inner.put("leave", "annual leave")
    cached = cached_on(opened, inner)
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(cached.invoke, QUESTION) for _ in range(16)]
        assert inner._begun.wait(20)
        inner._let.set()
        found = [each.result() for each in asked]
    assert len(inner.asked) == 1
    assert all(each == found[0] for each in found)
    for each in found:
        each[0].metadata["mine"] = id(each)
    assert len({each[0].metadata["mine"] for each in found}) == 16


async def test_j8_equal_queries_of_tasks_retrieve_once(opened: Cache) -> None:
    class Slow(Shelf):
        async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            await asyncio.sleep(0)
            return self._get_relevant_documents(query, run_manager=run_manager)

    inner = Slow()
    inner.put("leave", "annual leave")
    cached = cached_on(opened, inner)
    found = await asyncio.gather(*(cached.ainvoke(QUESTION) for _ in range(50)))
    assert len(inner.asked) == 1
    assert all(each == found[0] for each in found)


def test_j3_sixteen_threads(shelf: Shelf, tmp_path: Path) -> None:
    with stampcache.open_cache(f"sqlite:///{tmp_path}/cache.db") as cache:
        cached = cached_on(cache, shelf)
        queries = ["annual leave", "lunch", "travel"]
        expected = {query: shelf.invoke(query) for query in queries}
        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(lambda at: cached.invoke(queries[at % 3]), range(96)))
        assert cache.stats().entries == 3
    assert all(each == expected[queries[at % 3]] for at, each in enumerate(found))


async def test_j1_sqlite_is_not_written_on_the_event_loop(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    with stampcache.open_cache(f"sqlite:///{tmp_path}/cache.db") as cache:
        put = cache.core.store.put

        def noted(*args: Any) -> Any:
            threads.append(threading.get_ident())
            return put(*args)

        monkeypatch.setattr(cache.core.store, "put", noted)
        await cached_on(cache, shelf).ainvoke(QUESTION)
    assert threads
    assert threading.get_ident() not in threads


# -- where retrievers are used ---------------------------------------------------------------------


def test_in_a_chain(cached: CachedRetriever, shelf: Shelf) -> None:
    chain = cached | (lambda found: [each.page_content for each in found])
    assert chain.invoke(QUESTION) == chain.invoke(QUESTION)
    assert cached.batch([QUESTION, "lunch"]) == [shelf.invoke(QUESTION), shelf.invoke("lunch")]


def test_in_a_cached_chain(opened: Cache, shelf: Shelf) -> None:
    model = CountingChat()
    chain = CachedChain(
        retriever=cached_on(opened, shelf),
        answer=RunnableLambda(lambda inputs: str(inputs["context"])) | model | StrOutputParser(),
        cache=opened,
        version="1",
    )
    first, second = (chain.invoke({"input": QUESTION}) for _ in range(2))
    assert (first["cache"]["hit"], second["cache"]["hit"]) == (False, True)
    assert first["context"] == second["context"]
    shelf.put("leave", "annual leave is forty days")
    opened.invalidate(corpus="handbook")
    third = chain.invoke({"input": QUESTION})
    assert (third["cache"]["hit"], third["context"]) == (False, shelf.invoke(QUESTION))


# -- random histories ------------------------------------------------------------------------------

WORDS = ("leave", "travel", "lunch", "days")
words = st.sampled_from(WORDS)
texts = st.lists(words, min_size=1, max_size=3).map(" ".join)
steps = st.one_of(
    st.tuples(st.just("ask"), texts),
    st.tuples(st.just("ask"), texts),
    st.tuples(st.just("batch"), texts),
    st.tuples(st.just("put"), st.tuples(words, texts)),
    st.tuples(st.just("remove"), words),
    st.tuples(st.just("k"), st.sampled_from([1, 2, 3])),
    st.tuples(st.just("tenant"), st.sampled_from(["a", "b"])),
    st.tuples(st.just("clear"), st.none()),
)


@settings(max_examples=60, deadline=None)
@given(history=st.lists(steps, min_size=3, max_size=25))
def test_whatever_happens_documents_are_those_of_the_uncached_retriever(
    history: list[tuple[str, Any]],
) -> None:
    shelf, tenant = Shelf(k=2), "a"
    with stampcache.open_cache("memory://") as cache:
        cached = cached_on(cache, shelf)
        for verb, argument in history:
            with stampcache.scope(tenant=tenant):
                match verb:
                    case "ask":
                        assert cached.invoke(argument) == shelf.invoke(argument)
                        assert report(cached, argument)["hit"]
                    case "batch":
                        for found in cached.batch([argument, argument]):
                            assert found == shelf.invoke(argument)
                    case "put":
                        shelf.put(*argument)
                        cache.invalidate(corpus="handbook", source=argument[0])
                    case "remove":
                        shelf.remove(argument)
                        cache.invalidate(corpus="handbook", source=argument)
                    case "k":
                        shelf.k = argument
                    case "tenant":
                        tenant = argument
                    case "clear":
                        cache.clear()


class Instructed(BaseModel, Embeddings):
    """An embedder with a setting of which no list knows."""

    model: str = "m"
    options: dict[str, str] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, float(len(self.options.get("instruct", "")))]


def test_a6_every_setting_of_the_store_s_embedder_is_keyed(opened: Cache) -> None:
    for number, options in enumerate(({"instruct": "a"}, {"instruct": "b"}, {"other": "b"})):
        store = InMemoryVectorStore(Instructed(options=options))
        store.add_documents([Document(f"text {number}")])
        retriever = CachedRetriever(
            inner=store.as_retriever(), cache=opened, corpus="c", stamps=Stamps(index="1")
        )
        assert [each.page_content for each in retriever.invoke("q")] == [f"text {number}"]
