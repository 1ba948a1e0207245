"""`CachedEmbeddings`: the vectors of the inner embeddings, made once."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests
from msgspec.structs import replace
from pydantic import BaseModel, Field, PrivateAttr, SecretStr

import stampcache
from langchain_stampcache import CachedEmbeddings
from stampcache import Answer, Cache, ConfigError, Hit, Level, Manifest, Request, Stamps
from stampcache.testing import FailingStore

WIDTH = 8


def vector(text: str, *seasoning: object) -> list[float]:
    seed = sum(ord(letter) * (at + 1) for at, letter in enumerate(f"{text}{seasoning}"))
    return [((seed * (at + 3)) % 997) / 997.0 + 0.1 for at in range(WIDTH)]


class Counting(Embeddings):
    """Embeddings whose vectors depend on all of their settings; counts what they are asked for."""

    def __init__(self, model: str = "one", *, normalize: bool = False, api_key: str = "sk") -> None:
        self.model = model
        self.normalize = normalize
        self.api_key = api_key
        self.queries: list[str] = []
        self.batches: list[list[str]] = []
        self.calls = 0
        self.fails: Exception | None = None
        self.lock = threading.Lock()

    @property
    def asked(self) -> list[str]:
        return self.queries + [text for batch in self.batches for text in batch]

    def embed_query(self, text: str) -> list[float]:
        with self.lock:
            self.calls += 1
            self.queries.append(text)
        return self._made("query", text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls += 1
        self.batches.append(list(texts))
        return [self._made("document", text) for text in texts]

    def _made(self, role: str, text: str) -> list[float]:
        if self.fails is not None:
            raise self.fails
        return vector(text, role, self.model, self.normalize)


class Declared(BaseModel, Embeddings):
    """Embeddings as providers declare them: pydantic fields, a secret, a client, nested settings."""

    model: str = "declared"
    dimensions: int | None = None
    encode_kwargs: dict[str, Any] = Field(default_factory=dict)
    default_headers: dict[str, str] = Field(default_factory=dict)
    api_key: SecretStr = SecretStr("sk")
    client: Any = Field(default=None, exclude=True)
    strange: str = ""
    _calls: int = PrivateAttr(default=0)

    @property
    def calls(self) -> int:
        return self._calls

    def embed_query(self, text: str) -> list[float]:
        self._calls += 1
        if self.client is None:
            self.client = object()
        return vector(text, self.dimensions, self.strange)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


@pytest.fixture
def inner() -> Counting:
    return Counting()


@pytest.fixture
def cached(inner: Counting, opened: Cache) -> CachedEmbeddings:
    return CachedEmbeddings(inner=inner, cache=opened)


class TestUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return CachedEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {
            "inner": DeterministicFakeEmbedding(size=6),
            "cache": stampcache.open_cache("memory://"),
        }


class TestIntegration(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return CachedEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {
            "inner": DeterministicFakeEmbedding(size=6),
            "cache": stampcache.open_cache("memory://"),
        }


# -- what is embedded, and what is not -------------------------------------------------------------


def test_a_query_is_embedded_once(cached: CachedEmbeddings, inner: Counting) -> None:
    first, second = cached.embed_query("leave"), cached.embed_query("leave")

    assert first == second == vector("leave", "query", "one", False)
    assert inner.queries == ["leave"]


def test_texts_that_are_missing_are_embedded_by_one_call(
    cached: CachedEmbeddings, inner: Counting
) -> None:
    cached.embed_documents(["b", "d"])
    found = cached.embed_documents(["a", "b", "a", "c", "d", "c"])

    assert found == [vector(text, "document", "one", False) for text in "abacdc"]
    assert inner.batches == [["b", "d"], ["a", "c"]]


def test_nothing_is_embedded_for_no_texts(cached: CachedEmbeddings, inner: Counting) -> None:
    assert cached.embed_documents([]) == []
    assert inner.calls == 0


def test_a19_the_vector_of_a_query_is_never_given_for_a_document(
    cached: CachedEmbeddings, inner: Counting
) -> None:
    query = cached.embed_query("leave")
    document = cached.embed_documents(["leave"])[0]

    assert query != document
    assert (inner.queries, inner.batches) == (["leave"], [["leave"]])


def test_white_space_is_part_of_a_text(cached: CachedEmbeddings, inner: Counting) -> None:
    texts = ["a b", "a  b", " a b", "a b\n", "A b", "e\u0301", "\u00e9"]

    assert cached.embed_documents(texts) == [
        vector(text, "document", "one", False) for text in texts
    ]
    assert cached.embed_documents(texts) == [
        vector(text, "document", "one", False) for text in texts
    ]
    assert inner.batches == [texts]


@pytest.mark.parametrize("text", ["", " ", "\ud800", "x" * 100_000])
def test_h7_odd_texts_are_embedded(cached: CachedEmbeddings, text: str) -> None:
    assert cached.embed_query(text) == cached.embed_query(text)
    assert cached.embed_documents([text, text]) == cached.embed_documents([text, text])


def test_o6_the_list_of_texts_is_left_as_it_is(cached: CachedEmbeddings) -> None:
    texts = ["a", "b", "a"]
    cached.embed_documents(texts)
    assert texts == ["a", "b", "a"]


def test_h11_changing_a_vector_changes_no_later_one(cached: CachedEmbeddings) -> None:
    expected = [vector(text, "document", "one", False) for text in "aab"]
    for _ in range(3):
        found = cached.embed_documents(["a", "a", "b"])
        assert found == expected
        for each in found:
            each.clear()
        query = cached.embed_query("a")
        assert query == vector("a", "query", "one", False)
        query[0] = 99.0


async def test_tasks_get_the_same_vectors(cached: CachedEmbeddings, inner: Counting) -> None:
    assert await cached.aembed_query("leave") == cached.embed_query("leave")
    assert await cached.aembed_documents(["a", "b"]) == cached.embed_documents(["a", "b"])
    assert inner.asked == ["leave", "a", "b"]


# -- what is keyed ---------------------------------------------------------------------------------


def test_a2_a_live_change_of_the_model_is_a_miss(cached: CachedEmbeddings, inner: Counting) -> None:
    one = cached.embed_query("leave")
    inner.model = "two"
    two = cached.embed_query("leave")
    inner.model = "one"

    assert (cached.embed_query("leave"), two) == (one, vector("leave", "query", "two", False))
    assert inner.queries == ["leave", "leave"]


def test_a_flag_that_normalizes_is_keyed(cached: CachedEmbeddings, inner: Counting) -> None:
    cached.embed_documents(["leave"])
    inner.normalize = True
    assert cached.embed_documents(["leave"]) == [vector("leave", "document", "one", True)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", "another"),
        ("dimensions", 4),
        ("encode_kwargs", {"normalize_embeddings": True}),
        ("encode_kwargs", {"prompt": {"query": "ask: "}}),
        ("default_headers", {"x-deployment": "blue"}),
        ("strange", "a parameter that nobody knows"),
    ],
)
def test_a6_a20_every_parameter_is_keyed_as_it_is_now(
    opened: Cache, name: str, value: object
) -> None:
    inner = Declared()
    cached = CachedEmbeddings(inner=inner, cache=opened)
    cached.embed_query("leave")
    setattr(inner, name, value)
    cached.embed_query("leave")
    cached.embed_query("leave")
    assert inner.calls == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("api_key", SecretStr("rotated")),
        ("default_headers", {"Authorization": "Bearer x"}),
        ("client", object()),
    ],
)
def test_secrets_and_clients_are_not_keyed(opened: Cache, name: str, value: object) -> None:
    inner = Declared()
    cached = CachedEmbeddings(inner=inner, cache=opened)
    cached.embed_query("leave")
    setattr(inner, name, value)
    cached.embed_query("leave")
    assert inner.calls == 1


def test_a_plain_secret_is_not_keyed(cached: CachedEmbeddings, inner: Counting) -> None:
    cached.embed_query("leave")
    inner.api_key = "rotated"
    cached.embed_query("leave")
    assert inner.queries == ["leave"]


def test_equal_embeddings_of_two_objects_share(opened: Cache) -> None:
    first, second = Counting(), Counting()
    CachedEmbeddings(inner=first, cache=opened).embed_query("leave")
    CachedEmbeddings(inner=second, cache=opened).embed_query("leave")
    assert second.calls == 0


def test_two_classes_never_share(opened: Cache) -> None:
    class Doubled(Counting):
        def _made(self, role: str, text: str) -> list[float]:
            return [2 * number for number in super()._made(role, text)]

    one = CachedEmbeddings(inner=Counting(), cache=opened).embed_query("leave")
    two = CachedEmbeddings(inner=Doubled(), cache=opened).embed_query("leave")
    assert two == [2 * number for number in one]


def test_a_setter_is_no_call_that_embeds(opened: Cache) -> None:
    class Settable(Counting):
        prefix = ""

        def use(self, prefix: str) -> None:
            self.prefix = prefix

        def embed_query(self, text: str) -> list[float]:
            return super().embed_query(self.prefix + text)

    inner = Settable()
    cached = CachedEmbeddings(inner=inner, cache=opened)
    before = cached.embed_query("leave")
    inner.use("query: ")
    assert cached.embed_query("leave") != before


def test_g8_a_width_that_changed_unseen_is_noticed_in_a_batch(opened: Cache) -> None:
    class Hidden(Embeddings):
        def embed_query(self, text: str) -> list[float]:
            return [1.0] * width[0]

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

    width = [4]
    cached = CachedEmbeddings(inner=Hidden(), cache=opened)
    cached.embed_documents(["a", "b"])
    width[0] = 6
    assert [len(each) for each in cached.embed_documents(["a", "c", "b"])] == [6, 6, 6]
    assert [len(each) for each in cached.embed_documents(["a", "b", "c"])] == [6, 6, 6]
    assert opened.stats(everything=True).counters["adapter.embedding_width"] == 1


class Client:
    """An object that nothing is known of."""

    def __init__(self, model: str) -> None:
        self.model = model


def of_client(model: str) -> Callable[[str], list[float]]:
    client = Client(model)
    return lambda text: vector(text, client.model)


class Opaque(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.client: Any = object()


class ByFunction(Counting):
    def __init__(self, function: Callable[[str], list[float]]) -> None:
        super().__init__()
        self.function = function

    def embed_query(self, text: str) -> list[float]:
        self.calls += 1
        return self.function(text)


@pytest.mark.parametrize("inner", [Opaque(), ByFunction(of_client("x"))], ids=["object", "closure"])
def test_a25_what_has_no_identity_is_refused_at_construction(
    opened: Cache, inner: Counting
) -> None:
    with pytest.raises(ConfigError, match=r"version="):
        CachedEmbeddings(inner=inner, cache=opened)

    versioned = CachedEmbeddings(inner=inner, cache=opened, version="1")
    versioned.embed_query("leave")
    versioned.embed_query("leave")
    CachedEmbeddings(inner=inner, cache=opened, version="2").embed_query("leave")
    assert inner.calls == 2


@pytest.mark.parametrize("inner", [Counting, vector, None, "model"])
def test_what_is_no_embedder_is_refused(opened: Cache, inner: Any) -> None:
    with pytest.raises(ConfigError, match="no embedder"):
        CachedEmbeddings(inner=inner, cache=opened, version="1")


class Holding(BaseModel, Embeddings):
    """Embeddings that name no model and keep what makes the vectors to themselves."""

    _weights: Any = PrivateAttr(default=None)

    def holding(self, weights: object) -> "Holding":
        self._weights = weights
        return self

    def embed_query(self, text: str) -> list[float]:
        return vector(text, getattr(self._weights, "model", self._weights))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def test_a25_what_is_hidden_counts_where_no_model_is_named(opened: Cache) -> None:
    with pytest.raises(ConfigError, match=r"_weights.*version="):
        CachedEmbeddings(inner=Holding().holding(Client("one")), cache=opened)
    held = Holding().holding(Client("one"))
    versioned = CachedEmbeddings(inner=held, cache=opened, version="1")
    assert versioned.embed_query("a") == vector("a", "one")
    for weights in ("one", "two"):
        cached = CachedEmbeddings(inner=Holding().holding(weights), cache=opened)
        assert cached.embed_query("a") == vector("a", weights)


def test_embeddings_inside_of_others_are_keyed(opened: Cache) -> None:
    class Around(Declared):
        _base: Any = PrivateAttr(default=None)

        def around(self, base: Embeddings) -> "Around":
            self._base = base
            return self

        def embed_query(self, text: str) -> list[float]:
            found: list[float] = self._base.embed_query(text)
            return found

    base = Counting()
    cached = CachedEmbeddings(inner=Around().around(base), cache=opened)
    one = cached.embed_query("a")
    base.model = "two"
    assert cached.embed_query("a") != one


def test_a_cache_before_a_cache_is_known_by_what_is_behind(
    cached: CachedEmbeddings, inner: Counting, opened: Cache
) -> None:
    cached.embed_query("a")
    CachedEmbeddings(inner=cached, cache=opened).embed_query("a")
    assert inner.queries == ["a"]


def test_a16_two_functions_are_two_embedders(opened: Cache) -> None:
    one = ByFunction(lambda text: vector(text, "left"))
    two = ByFunction(lambda text: vector(text, "right"))
    found = [CachedEmbeddings(inner=each, cache=opened).embed_query("x") for each in (one, two)]
    assert found == [vector("x", "left"), vector("x", "right")]


def test_a_part_that_loses_its_identity_later_is_embedded_without_the_cache(
    cached: CachedEmbeddings, inner: Counting
) -> None:
    cached.embed_query("leave")
    inner.model = object()  # type: ignore[assignment]
    first = cached.embed_query("leave")
    assert first == vector("leave", "query", inner.model, False)
    assert cached.embed_documents(["leave"]) == [vector("leave", "document", inner.model, False)]
    assert inner.calls == 3


# -- tenants and controls --------------------------------------------------------------------------


def test_e1_tenants_share_nothing(cached: CachedEmbeddings, inner: Counting) -> None:
    for tenant in ("acme", "globex", "acme"):
        with stampcache.scope(tenant=tenant):
            cached.embed_query("leave")
            cached.embed_documents(["leave"])
    assert len(inner.asked) == 4


def test_e13_without_a_required_tenant_nothing_is_looked_up_or_stored(inner: Counting) -> None:
    with stampcache.open_cache("memory://", tenants="required") as cache:
        cached = CachedEmbeddings(inner=inner, cache=cache)
        for _ in range(2):
            assert cached.embed_query("a") == vector("a", "query", "one", False)
            assert len(cached.embed_documents(["a", "b", "a"])) == 3
        stats = cache.stats(everything=True)

    assert inner.batches == [["a", "b", "a"]] * 2
    assert (stats.entries, stats.counters["miss.unscoped"]) == (0, 4)
    assert stats.counters["adapter.unscoped"] == 4


def test_the_config_of_the_runnable_around_says_who_asks(inner: Counting) -> None:
    with stampcache.open_cache("memory://", tenants="required") as cache:
        cached = CachedEmbeddings(inner=inner, cache=cache)
        chain = RunnableLambda(cached.embed_query)
        for place in ("metadata", "configurable"):
            for tenant in ("acme", "globex"):
                chain.invoke("leave", {place: {"tenant": tenant}})  # type: ignore[arg-type,misc]
        chain.invoke("leave", {"metadata": {"tenant": 7}})
    assert inner.queries == ["leave"] * 3


def test_p3_controls_of_a_call(cached: CachedEmbeddings, inner: Counting) -> None:
    with stampcache.scope(no_store=True):
        cached.embed_query("a")
        cached.embed_documents(["a"])
    assert inner.asked == ["a", "a"]
    cached.embed_query("a")
    cached.embed_documents(["a"])
    with stampcache.scope(no_cache=True):
        cached.embed_query("a")
        cached.embed_documents(["a"])
    cached.embed_query("a")
    cached.embed_documents(["a"])
    assert len(inner.asked) == 6


def test_a_write_to_a_corpus_leaves_vectors_alone(inner: Counting) -> None:
    made = Manifest(corpus="handbook", version="1")
    with stampcache.open_cache("memory://", manifest=made) as cache:
        cached = CachedEmbeddings(inner=inner, cache=cache)
        cached.embed_query("leave")
        assert cache.invalidate(corpus="handbook") == 0
        cached.embed_query("leave")
        assert inner.queries == ["leave"]
        assert cache.invalidate(stamps=Stamps(embedder="one")) == 1
        cached.embed_query("leave")
    assert inner.queries == ["leave", "leave"]


# -- failures --------------------------------------------------------------------------------------


def test_an_error_of_the_embedder_passes_and_stores_nothing(
    cached: CachedEmbeddings, inner: Counting, opened: Cache
) -> None:
    inner.fails = RuntimeError("the endpoint is down")
    for call in (lambda: cached.embed_query("a"), lambda: cached.embed_documents(["a", "b"])):
        with pytest.raises(RuntimeError) as raised:
            call()
        assert raised.value is inner.fails
    assert opened.stats().entries == 0

    inner.fails = None
    assert cached.embed_query("a") == vector("a", "query", "one", False)


async def test_an_error_passes_in_tasks(cached: CachedEmbeddings, inner: Counting) -> None:
    inner.fails = RuntimeError("the endpoint is down")
    with pytest.raises(RuntimeError):
        await cached.aembed_query("a")
    with pytest.raises(RuntimeError):
        await cached.aembed_documents(["a"])


@pytest.mark.parametrize("odd", [[float("nan")], [float("inf")], [], ["1.0"], [[1.0]], [2**60 + 1]])
def test_a_vector_that_would_not_come_back_equal_is_not_stored(odd: list[Any]) -> None:
    class Odd(Counting):
        def _made(self, role: str, text: str) -> list[float]:
            return list(odd)

    with stampcache.open_cache("memory://") as cache:
        inner = Odd()
        cached = CachedEmbeddings(inner=inner, cache=cache)
        for _ in range(2):
            assert str(cached.embed_query("a")) == str(odd)
            assert str(cached.embed_documents(["a"])) == str([odd])
        assert inner.calls == 4
        assert cache.stats(everything=True).counters["adapter.not_storable"] == 4


def test_too_few_vectors_are_given_as_the_embedder_gave_them(opened: Cache) -> None:
    class Short(Counting):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return super().embed_documents(texts)[:-1]

    assert len(CachedEmbeddings(inner=Short(), cache=opened).embed_documents(["a", "b"])) == 1
    assert opened.stats().entries == 0


def test_while_the_store_is_down_texts_are_embedded_as_without_a_cache(inner: Counting) -> None:
    store = FailingStore()
    with stampcache.open_cache(store) as cache:
        cached = CachedEmbeddings(inner=inner, cache=cache)
        store.down = True
        for _ in range(2):
            assert cached.embed_query("a") == vector("a", "query", "one", False)
            assert len(cached.embed_documents(["a", "b", "a"])) == 3
        assert inner.batches == [["a", "b"]] * 2
        store.down = False
        cached.embed_documents(["a", "b"])
        cached.embed_documents(["a", "b"])
    assert inner.batches == [["a", "b"]] * 3


def test_h15_an_entry_that_cannot_be_read_is_made_anew(inner: Counting, opened: Cache) -> None:
    cached = CachedEmbeddings(inner=inner, cache=opened)
    cached.embed_query("a")
    (place,) = opened.core.store._entries  # type: ignore[attr-defined]
    entry = opened.core.store.fetch(*place)
    assert entry is not None
    broken = Answer(text="", payload=b"123", format="vector.f8.1")
    opened.core.store.put(replace(entry, answer=broken), None, opened.core.store.sequence())
    assert cached.embed_query("a") == vector("a", "query", "one", False)
    assert inner.calls == 2


# -- many at once ----------------------------------------------------------------------------------


def test_j8_equal_queries_at_once_embed_once(inner: Counting, opened: Cache) -> None:
    begun, let = threading.Event(), threading.Event()

    class Waiting(Counting):
        def embed_query(self, text: str) -> list[float]:
            begun.set()
            assert let.wait(20)
            return super().embed_query(text)

    slow = Waiting()
    cached = CachedEmbeddings(inner=slow, cache=opened)
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(cached.embed_query, "leave") for _ in range(16)]
        assert begun.wait(20)
        let.set()
        found = [each.result() for each in asked]
    assert found == [vector("leave", "query", "one", False)] * 16
    assert slow.queries == ["leave"]
    found[0].clear()
    assert all(len(each) == WIDTH for each in found[1:])


async def test_j8_equal_queries_of_tasks_embed_once(inner: Counting, opened: Cache) -> None:
    class Slow(Counting):
        async def aembed_query(self, text: str) -> list[float]:
            await asyncio.sleep(0)
            return self.embed_query(text)

    slow = Slow()
    cached = CachedEmbeddings(inner=slow, cache=opened)
    found = await asyncio.gather(*(cached.aembed_query("leave") for _ in range(50)))
    assert found == [vector("leave", "query", "one", False)] * 50
    assert slow.queries == ["leave"]


def test_j3_sixteen_threads(tmp_path: Path) -> None:
    inner = Counting()
    with stampcache.open_cache(f"sqlite:///{tmp_path}/cache.db") as cache:
        cached = CachedEmbeddings(inner=inner, cache=cache)
        texts = [f"text {number % 7}" for number in range(20)]
        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(lambda _: cached.embed_documents(texts), range(32)))
        assert cache.stats().entries == 7
    assert all(each == [vector(text, "document", "one", False) for text in texts] for each in found)


async def test_j1_other_tasks_run_while_many_texts_are_looked_up(
    cached: CachedEmbeddings,
) -> None:
    texts = [f"text {number}" for number in range(1_000)]
    await cached.aembed_documents(texts)
    turns = 0

    async def ticking() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    ticker = asyncio.create_task(ticking())
    await asyncio.sleep(0)
    before = turns
    await cached.aembed_documents(texts)
    ticker.cancel()
    assert turns - before >= 20


# -- where embeddings are used ---------------------------------------------------------------------


def test_in_a_vector_store(cached: CachedEmbeddings, inner: Counting) -> None:
    documents = [Document("leave"), Document("lunch")]
    for _ in range(2):
        store = InMemoryVectorStore(cached)
        store.add_documents(documents)
        plain = InMemoryVectorStore(Counting())
        plain.add_documents(documents)
        found = store.similarity_search_with_score("leave", k=2)
        expected = plain.similarity_search_with_score("leave", k=2)
        assert [(one.page_content, score) for one, score in found] == [
            (one.page_content, score) for one, score in expected
        ]
    assert (inner.batches, inner.queries) == ([["leave", "lunch"]], ["leave"])


def test_in_chroma(cached: CachedEmbeddings, inner: Counting, tmp_path: Path) -> None:
    chroma = pytest.importorskip("langchain_chroma")
    store = chroma.Chroma("handbook", cached, persist_directory=str(tmp_path / "chroma"))
    store.add_texts(["leave", "lunch"], ids=["1", "2"])
    first = store.similarity_search("leave", k=2)
    second = store.similarity_search("leave", k=2)
    assert [each.page_content for each in first] == [each.page_content for each in second]
    assert (inner.batches, inner.queries) == ([["leave", "lunch"]], ["leave"])


@pytest.fixture
def semantic(inner: Counting, opened: Cache) -> Iterator[Cache]:
    embedder = CachedEmbeddings(inner=inner, cache=opened)
    with stampcache.open_cache("memory://", embedder=embedder, calibration=0.99) as cache:
        yield cache


def test_as_the_embedder_of_a_cache(semantic: Cache, inner: Counting) -> None:
    canaries = inner.calls
    semantic.update(Request(question="how long is leave", model="m"), Answer(text="30"))
    assert semantic.lookup(Request(question="how long is lunch", model="m")).__class__ is not Hit
    semantic.lookup(Request(question="how long is lunch", model="m"))
    assert inner.calls == canaries + 2
    outcome = semantic.lookup(Request(question="how long is leave", model="m"))
    assert isinstance(outcome, Hit)
    assert outcome.level is Level.EXACT


def test_an_embedder_is_called_as_without_a_cache(opened: Cache) -> None:
    plain = stampcache.open_cache("memory://", embedder=Counting())
    for model in ("one", "two"):
        proxy = CachedEmbeddings(inner=Counting(model), cache=opened)
        with stampcache.open_cache("memory://", embedder=proxy) as cache:
            same = cache.core.intake.stamps.embedder == plain.core.intake.stamps.embedder
            assert same == (model == "one")


def test_g8_a_cache_of_vectors_does_not_hide_that_the_embedder_changed(
    opened: Cache, tmp_path: Path
) -> None:
    class Changing(Counting):
        def _made(self, role: str, text: str) -> list[float]:
            return vector(text, role, weights[0])

    weights = ["old"]
    url = f"sqlite:///{tmp_path}/cache.db"
    stamps = []
    for made_by in ("old", "new", "old"):
        weights[0] = made_by
        embedder = CachedEmbeddings(inner=Changing(), cache=opened)
        with stampcache.open_cache(url, embedder=embedder, calibration=0.9) as cache:
            cache.update(Request(question="how long is leave", model=made_by), Answer(text="30"))
            stamps.append(cache.core.intake.stamps.embedder)
    assert stamps[0] == stamps[2] != stamps[1]


# -- random histories ------------------------------------------------------------------------------

texts = st.text(alphabet="ab c\n", max_size=4)
steps = st.one_of(
    st.tuples(st.just("query"), texts),
    st.tuples(st.just("documents"), st.lists(texts, max_size=6)),
    st.tuples(st.just("model"), st.sampled_from(["one", "two"])),
    st.tuples(st.just("normalize"), st.booleans()),
    st.tuples(st.just("tenant"), st.sampled_from(["a", "b"])),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(st.just("invalidate"), st.none()),
)


@settings(max_examples=60, deadline=None)
@given(history=st.lists(steps, max_size=20))
def test_whatever_happens_vectors_are_those_of_the_uncached_embedder(
    history: list[tuple[str, Any]],
) -> None:
    inner, plain, tenant = Counting(), Counting(), "a"
    known: set[tuple[object, ...]] = set()
    with stampcache.open_cache("memory://") as cache:
        cached = CachedEmbeddings(inner=inner, cache=cache)
        for verb, argument in history:
            with stampcache.scope(tenant=tenant):
                match verb:
                    case "query":
                        before = len(inner.queries)
                        assert cached.embed_query(argument) == plain.embed_query(argument)
                        place = (tenant, inner.model, inner.normalize, argument)
                        assert (len(inner.queries) == before) == (place in known)
                        known.add(place)
                    case "documents":
                        assert cached.embed_documents(argument) == plain.embed_documents(argument)
                    case "model":
                        inner.model = plain.model = argument
                    case "normalize":
                        inner.normalize = plain.normalize = argument
                    case "tenant":
                        tenant = argument
                    case "clear":
                        cache.clear()
                        known = {each for each in known if each[0] != tenant}
                    case "invalidate":
                        cache.invalidate(stamps=Stamps(embedder=inner.model))
                        known = {each for each in known if each[1] != inner.model}
