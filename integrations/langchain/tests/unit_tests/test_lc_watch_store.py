"""A watched vector store does what its inner store does, sync and async: results, errors, attributes."""

import copy
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from lc_watching import CORPUS, STORES, Words, in_memory, watched

from langchain_stampcache import watch
from stampcache import Cache, ConfigError, Manifest, open_cache
from stampcache.adapters import Metric

TEXTS = ["leave is thirty days", "travel by train", "lunch at noon", "dogs on friday"]
METADATA = [{"source": f"{at}.md", "page": at} for at in range(4)]
IDS = ["a", "b", "c", "d"]


def filled(store: Any) -> Any:
    store.add_texts(TEXTS, [dict(one) for one in METADATA], ids=list(IDS))
    return store


@pytest.fixture(params=STORES)
def pair(request: pytest.FixtureRequest, opened: Cache) -> Iterator[tuple[Any, Any]]:
    """The same store twice: bare, and watched."""
    make = STORES[request.param]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield make(), watched(opened, make())


def outcome(call: Any, *args: Any, **options: Any) -> Any:
    """Return what a call gives, or how it fails."""
    try:
        return call(*args, **options)
    except Exception as error:
        return type(error), str(error)


async def aoutcome(call: Any, *args: Any, **options: Any) -> Any:
    try:
        return await call(*args, **options)
    except Exception as error:
        return type(error), str(error)


SEARCHES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("similarity_search", ("train travel",), {}),
    ("similarity_search", ("train travel", 2), {}),
    ("similarity_search", (), {"query": "lunch", "k": 1}),
    ("similarity_search", ("lunch",), {"k": 0}),
    ("similarity_search", (), {}),
    ("similarity_search_with_score", ("train travel",), {"k": 3}),
    ("similarity_search_by_vector", (Words.vector("dogs"),), {"k": 2}),
    ("similarity_search_with_relevance_scores", ("lunch",), {"k": 2}),
    ("similarity_search_with_relevance_scores", ("lunch",), {"k": 2, "score_threshold": 0.3}),
    ("max_marginal_relevance_search", ("lunch",), {"k": 2, "fetch_k": 4}),
    ("max_marginal_relevance_search_by_vector", (Words.vector("dogs"),), {"k": 2}),
    ("search", ("lunch", "similarity"), {"k": 2}),
    ("search", ("lunch", "mmr"), {"k": 2}),
    ("search", ("lunch", "no such search"), {}),
    ("get_by_ids", (["b", "x"],), {}),
]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
async def test_each_search_gives_the_same(pair: tuple[Any, Any], search: Any) -> None:
    bare, store = filled(pair[0]), filled(pair[1])
    name, args, options = search
    assert outcome(getattr(store, name), *args, **options) == outcome(
        getattr(bare, name), *args, **options
    )
    name = f"a{name}"
    assert await aoutcome(getattr(store, name), *args, **options) == await aoutcome(
        getattr(bare, name), *args, **options
    )


WRITES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("add_texts", (["new text"],), {"ids": ["e"]}),
    ("add_texts", (["new text"], [{"source": "n.md"}], ["e"]), {}),
    ("add_texts", ([],), {}),
    ("add_texts", (["one", "two"],), {"ids": ["e"]}),
    ("add_texts", (["one"], [{}, {}]), {"ids": ["e"]}),
    ("add_documents", ([Document("one", id="e")],), {}),
    ("add_documents", ([Document("one", id="e")],), {"ids": ["f"]}),
    ("add_documents", ([],), {}),
    ("add_documents", ([Document("one", id="e")], ["f"]), {}),
    ("add_documents", ([Document("one", id="e"), Document("two", id="e")],), {}),
    ("delete", (["a"],), {}),
    ("delete", (), {"ids": ["a", "b"]}),
    ("delete", (["x"],), {}),
    ("delete", (), {"no_such_option": 1}),
]


@pytest.mark.parametrize("write", WRITES, ids=str)
@pytest.mark.parametrize("form", ["sync", "async"])
async def test_each_write_does_the_same(pair: tuple[Any, Any], write: Any, form: str) -> None:
    bare, store = filled(pair[0]), filled(pair[1])
    name, args, options = write
    results = []
    for one in (bare, store):
        given = [list(each) if hasattr(each, "__next__") else copy.copy(each) for each in args]
        if form == "sync":
            results.append(outcome(getattr(one, name), *given, **options))
        else:
            results.append(await aoutcome(getattr(one, f"a{name}"), *given, **options))
    assert results[0] == results[1]
    held = [one.similarity_search("lunch one", k=20) for one in (bare, store)]
    assert held[0] == held[1]


def test_ids_are_made_where_none_are_given(pair: tuple[Any, Any]) -> None:
    for store in pair:
        made = store.add_texts(["one", "two"], [{"page": 1}, {"page": 2}])
        assert len(set(made)) == 2
        assert all(len(one) == 36 for one in made)
        (found,) = store.get_by_ids(made[:1])
        assert found.page_content == "one"


def test_texts_may_come_one_by_one(pair: tuple[Any, Any]) -> None:
    _, store = pair
    assert store.add_texts(iter(["one", "two"]), ids=["e", "f"]) == ["e", "f"]
    assert [one.id for one in store.similarity_search("one", k=1)] == ["e"]


def test_what_is_no_document_is_refused(pair: tuple[Any, Any]) -> None:
    for store in pair:
        with pytest.raises(AttributeError):
            store.add_documents(["no document"])


def test_a_failing_embedder_fails_as_it_did(pair: tuple[Any, Any], opened: Cache) -> None:
    bare, store = pair
    for one, embedder in ((bare, bare.embeddings), (store, store.embeddings)):
        embedder.fails = True
        with pytest.raises(ConnectionError, match="no embedder"):
            one.add_texts(["text"])
        with pytest.raises(ConnectionError, match="no embedder"):
            one.similarity_search("text")
    standing = opened.standing(CORPUS)
    assert standing is not None
    assert standing.intents == ()


def test_what_is_not_known_is_passed_through(opened: Cache) -> None:
    inner = filled(in_memory())
    store = watched(opened, inner)
    assert store.store is inner.store
    assert hasattr(store, "dump")
    assert not hasattr(store, "no_such_thing")
    with pytest.raises(AttributeError, match="no_such_thing"):
        store.no_such_thing  # noqa: B018 - the reading itself is tested
    assert "dump" in dir(store)
    assert isinstance(store.embeddings, Words)
    assert store.inner is inner
    assert repr(store).startswith("watched(<langchain_core")
    assert CORPUS in repr(store)


def test_its_retrievers_look_as_before(opened: Cache) -> None:
    inner = in_memory()
    before = inner.as_retriever(search_kwargs={"k": 1})
    after = filled(watched(opened, inner)).as_retriever(search_kwargs={"k": 1})
    assert after.tags == before.tags
    assert type(after) is type(before)
    assert after.invoke("lunch") == before.invoke("lunch")


class OwnRetriever(InMemoryVectorStore):
    def as_retriever(self, **kwargs: Any) -> Any:
        made = super().as_retriever(**kwargs)
        made.metadata = {"own": True}
        return made


def test_a_retriever_of_the_stores_own_reads_through_the_watch(opened: Cache) -> None:
    store = watched(opened, OwnRetriever(Words()))
    made = store.as_retriever()
    assert made.metadata == {"own": True}
    assert made.vectorstore is store


def test_it_is_neither_pickled_nor_copied_deeply(opened: Cache) -> None:
    store = watched(opened)
    for call in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="Copy its inner store"):
            call(store)
    other = copy.copy(store)
    other.add_texts(["one"], ids=["a"])
    assert store.inner is other.inner
    assert opened.standing(CORPUS).chunks == 1  # type: ignore[union-attr]  # it is watched


async def test_it_is_made_from_a_store_only(opened: Cache) -> None:
    store = watched(opened)
    with pytest.raises(TypeError, match="by its own class"):
        type(store).from_texts(["one"], Words())
    with pytest.raises(TypeError, match="by its own class"):
        type(store).from_documents([Document("one")], Words())
    with pytest.raises(TypeError, match="by its own class"):
        await type(store).afrom_texts(["one"], Words())


def test_what_cannot_be_watched_is_refused(opened: Cache) -> None:
    store = watched(opened)
    with pytest.raises(ConfigError, match="watched already"):
        watch(store, cache=opened, corpus=CORPUS)
    with pytest.raises(ConfigError, match="cannot be watched"):
        watch([], cache=opened, corpus=CORPUS)  # type: ignore[call-overload]  # what is to be refused
    with pytest.raises(ConfigError, match="needs a name"):
        watch(in_memory(), cache=opened)
    with pytest.raises(ConfigError, match="there are 'cosine', 'dot', 'l2'"):
        watched(opened, metric="euclid")
    with pytest.raises(ConfigError, match="seconds above 0"):
        watched(opened, silence_s=0)


def test_a_store_that_is_watched_again_is_listened_to_once(opened: Cache) -> None:
    inner = in_memory()
    first, second = watched(opened, inner), watched(opened, inner)
    listener = inner.embedding
    third = watched(opened, inner)
    assert inner.embedding is listener
    for at, store in enumerate((first, second, third)):
        store.add_texts([f"text {at}"])
        assert isinstance(store.embeddings, Words)
    assert third.embeddings.embedded == ["text 0", "text 1", "text 2"]
    known = opened.core.store.corpora.chunks(CORPUS, None)
    assert all(one.vector for one in known.values())


def test_the_corpus_of_the_cache_stands_for_one_that_is_not_named() -> None:
    built = Manifest(corpus="of the cache", version="1")
    with open_cache("memory://", manifest=built) as cache:
        assert watch(in_memory(), cache=cache).watched.corpus == "of the cache"


def test_the_metric_is_known_or_said(opened: Cache) -> None:
    class Other(InMemoryVectorStore):
        pass

    def metric(store: Any) -> Metric | None:
        found: Metric | None = store._reads._metric
        return found

    assert metric(watched(opened)) is Metric.COSINE
    assert metric(watched(opened, Other(Words()))) is None
    assert metric(watched(opened, Other(Words()), metric="dot")) is Metric.DOT


class Sealed(VectorStore):
    """A store that keeps its embedder where nobody can replace it."""

    __slots__ = ("held", "texts")

    def __init__(self) -> None:
        self.held = Words()
        self.texts: list[str] = []

    @property
    def embeddings(self) -> Embeddings:
        return Words()

    def add_texts(self, texts: Any, metadatas: Any = None, **kwargs: Any) -> list[str]:
        self.texts += list(texts)
        return [str(at) for at, _ in enumerate(self.texts)]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [Document(text, id=str(at)) for at, text in enumerate(self.texts[:k])]

    @classmethod
    def from_texts(cls, texts: Any, embedding: Any, metadatas: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError


def test_a_listing_names_its_documents(opened: Cache) -> None:
    with pytest.raises(ConfigError, match="with the ids"):
        watched(opened, filled(in_memory()), listing=lambda: [Document("no name")])


def test_where_no_embedder_can_be_heard_it_says_so(opened: Cache) -> None:
    assert not watched(opened, Sealed()).sees_vectors
    assert watched(opened).sees_vectors
