"""Which versions and settings a `CachedChain` runs with, and that a change of any is another world."""

import functools
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from langchain_apps import BUILT, PROMPT, QUESTION, App, versioned
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_fakes import CountingChat, Shelf

import stampcache
from langchain_stampcache import CachedChain
from stampcache import Cache, ConfigError, Manifest, Stamps
from stampcache.testing import FakeClock


class OtherShelf(Shelf):
    """A retriever of another class."""


class OtherStore(InMemoryVectorStore):
    """A vector store of another class, which knows how to scale its scores."""

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return abs


class Translated(BaseRetriever):
    """A retriever that is made of another, with a setting under a name of its own."""

    inner: BaseRetriever
    language: str = "en"
    asked: int = 0

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.asked += 1
        return self.inner.invoke(query)


class Compressor(BaseDocumentCompressor):
    top_n: int = 1

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return documents[: self.top_n]


class Compressed(BaseRetriever):
    base: BaseRetriever
    compressor: BaseDocumentCompressor

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return list(self.compressor.compress_documents(self.base.invoke(query), query))


def stored(kind: type[VectorStore] = InMemoryVectorStore, **options: Any) -> BaseRetriever:
    store = kind.from_texts(["annual leave"], DeterministicFakeEmbedding(size=4))
    return store.as_retriever(**options)


def shelf_of(kind: type[Shelf] = Shelf, **options: Any) -> Shelf:
    shelf = kind(**options)
    shelf.put("leave", "annual leave is thirty days")
    return shelf


def searching(k: int) -> Callable[[str], list[Document]]:
    shelf = shelf_of()

    def search(question: str) -> list[Document]:
        return shelf.invoke(question)[:k]

    return search


def search_by(question: str, k: int) -> list[Document]:
    return [Document("annual leave")][:k]


def threshold(value: float) -> BaseRetriever:
    found = {"score_threshold": value}
    return stored(OtherStore, search_type="similarity_score_threshold", search_kwargs=found)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (shelf_of(k=3), shelf_of(k=4)),
        (shelf_of(), shelf_of(OtherShelf)),
        (stored(search_kwargs={"k": 1}), stored(search_kwargs={"k": 2})),
        (
            stored(search_kwargs={"filter": lambda document: document.id == "1"}),
            stored(search_kwargs={"filter": lambda document: document.id == "2"}),
        ),
        (stored(), stored(search_type="mmr")),
        (stored(), stored(OtherStore)),
        (threshold(0.0), threshold(0.0001)),
        (searching(1), searching(2)),
        (functools.partial(search_by, k=1), functools.partial(search_by, k=2)),
        (shelf_of(k=1).invoke, shelf_of(k=2).invoke),
        (Translated(inner=shelf_of(k=1)), Translated(inner=shelf_of(k=2))),
        (
            Translated(inner=shelf_of(), language="en"),
            Translated(inner=shelf_of(), language="de"),
        ),
        (
            Compressed(base=shelf_of(), compressor=Compressor(top_n=1)),
            Compressed(base=shelf_of(), compressor=Compressor(top_n=2)),
        ),
        (
            RunnableLambda(itemgetter("input")) | searching(1),
            RunnableLambda(itemgetter("input")) | searching(2),
        ),
        (
            RunnableLambda(itemgetter("input")) | shelf_of(k=1),
            RunnableLambda(itemgetter("input")) | shelf_of(k=2),
        ),
    ],
)
def test_a14_another_setting_of_the_retriever_is_another_world(
    opened: Cache, one: Any, other: Any
) -> None:
    for retriever in (one, other):
        app = versioned(opened, Shelf(), retriever=retriever)
        assert app.ask()["cache"]["reason"] == "not found"
        assert app.ask()["cache"]["hit"]


def test_a2_a_live_retriever_is_read_at_each_question(opened: Cache, shelf: Shelf) -> None:
    app = versioned(opened, shelf)
    app.ask()
    shelf.k = 1
    assert not app.ask()["cache"]["hit"]


def test_a2_a_retriever_configured_for_one_call_is_another(opened: Cache) -> None:
    fields = {"search_kwargs": ConfigurableField(id="search")}
    retriever = stored(search_kwargs={"k": 1}).configurable_fields(**fields)
    searched = RunnableLambda(itemgetter("input")) | retriever
    app = versioned(opened, Shelf(), retriever=searched)
    for k in (1, 2):
        config = {"configurable": {"search": {"k": k}}}
        results = [app.chain.invoke({"input": QUESTION}, config=config) for _ in range(2)]
        assert [each["cache"]["hit"] for each in results] == [False, True]


@pytest.mark.parametrize("grounding", ["recheck", "version"])
def test_f2_what_a_retriever_holds_is_no_setting_of_it(opened: Cache, grounding: str) -> None:
    documents = {"leave": "annual leave is thirty days", "lunch": "lunch is at noon"}

    def search(question: str) -> list[Document]:
        words = set(question.split())
        return [
            Document(text, metadata={"source": name})
            for name, text in documents.items()
            if words & set(text.split())
        ]

    app = versioned(opened, Shelf(), retriever=search, grounding=grounding)
    app.ask("annual leave")
    documents["lunch"] = "lunch is at one"
    assert app.ask("annual leave")["cache"]["hit"]


def test_a2_a_prompt_model_or_given_stamp_that_changes_is_another_world(opened: Cache) -> None:
    prompt = ChatPromptTemplate.from_template("Now use {context}. {input}")
    shelf = shelf_of()
    ways: list[dict[str, Any]] = [
        {},
        {"answer": prompt | CountingChat() | StrOutputParser()},
        {"answer": PROMPT | CountingChat(model="fake-2") | StrOutputParser()},
        {"answer": PROMPT | CountingChat(base_url="http://other") | StrOutputParser()},
        *(
            {"stamps": Stamps(**{"index": "built-1", name: "2"})}
            for name in ("tokenizer", "prompt", "model", "index")
        ),
        {"version": "2"},
    ]
    for way in ways:
        app = versioned(opened, shelf, **way)
        assert app.ask()["cache"]["reason"] == "not found"
        assert app.ask()["cache"]["hit"]


# -- stamps that are seen and stamps that are given ------------------------------------------------


def stamps_of(app: App) -> Stamps:
    core, requests = app.chain._serving.front.core, app.chain._serving.parts.requests
    return core.intake.stamps_of(requests.settings(None, {}))


def test_what_no_user_names_is_seen(opened: Cache, shelf: Shelf) -> None:
    seen = stamps_of(App(opened, shelf))
    assert seen.prompt.startswith("seen:")
    assert seen.index.startswith("seen:")
    assert seen.model == "fake-1"
    assert stamps_of(App(opened, shelf)) == seen
    assert stamps_of(App(opened, shelf, corpus="other")).index != seen.index
    prompt = ChatPromptTemplate.from_template("{context} {input}")
    assert stamps_of(App(opened, shelf, answer=prompt | CountingChat())).prompt != seen.prompt
    plain = CachedChain(retriever=None, answer=str, cache=opened, grounding="none")
    requests = plain._serving.parts.requests
    assert requests.settings(None, {}).stamps == Stamps()


def test_f5_what_a_user_names_wins_and_can_be_invalidated(shelf: Shelf) -> None:
    given = Stamps(prompt="faq-1", model="fake-1b")
    cache = stampcache.open_cache("memory://", stamps=Stamps(index="from the cache"))
    app = versioned(cache, shelf, stamps=given)
    known = stamps_of(app)
    assert (known.prompt, known.model, known.index) == ("faq-1", "fake-1b", "from the cache")
    for stamps in (given, Stamps(index="from the cache"), Stamps(prompt="faq-1")):
        app.ask()
        assert cache.invalidate(stamps=stamps) == 1


def test_the_stamps_of_the_cache_win_over_what_is_seen(shelf: Shelf) -> None:
    cache = stampcache.open_cache("memory://", stamps=Stamps(prompt="p", index="i"))
    known = stamps_of(App(cache, shelf))
    assert (known.prompt, known.index) == ("p", "i")


def test_a_manifest_gives_corpus_and_index(opened: Cache, shelf: Shelf, tmp_path: Path) -> None:
    made = Manifest(corpus="handbook", version="7", tokenizer="qwen3")
    made.write(tmp_path / "handbook.json")
    ways = (made, tmp_path / "handbook.json", str(tmp_path / "handbook.json"))
    apps = [App(opened, shelf, grounding="version", manifest=way) for way in ways]
    assert {stamps_of(app).index for app in apps} == {made.index}
    assert not apps[0].ask()["cache"]["hit"]
    assert apps[1].ask()["cache"]["hit"]
    assert opened.invalidate(corpus="handbook", source="leave") == 1
    newer = Manifest(corpus="handbook", version="8", tokenizer="qwen3")
    assert not App(opened, shelf, grounding="version", manifest=newer).ask()["cache"]["hit"]


def test_g8_a_manifest_of_the_cache_is_the_index_of_its_chains(shelf: Shelf) -> None:
    made = Manifest(corpus="handbook", version="7")
    cache = stampcache.open_cache("memory://", manifest=made)
    assert stamps_of(App(cache, shelf, grounding="version")).index == made.index


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"grounding": "version"}, "version must be known"),
        ({"grounding": "none", "corpus": "handbook"}, "version must be known"),
        ({"grounding": "version", "version_of": "chunks", "stamps": BUILT}, "version_of="),
        ({"kind": "gossip"}, "gossip"),
        ({"manifest": "nowhere.json"}, "cannot be read"),
        ({"manifest": Manifest(corpus="a", version="1"), "corpus": "b"}, "mixture"),
        ({"manifest": Manifest(corpus="a", version="1"), "stamps": BUILT}, "mixture"),
        (
            {
                "manifest": Manifest(corpus="a", version="1", tokenizer="gpt2"),
                "stamps": Stamps(tokenizer="qwen3"),
            },
            "gpt2.*qwen3",
        ),
    ],
)
def test_g8_unknown_and_mixed_versions_are_refused_when_it_is_built(
    opened: Cache, shelf: Shelf, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        App(opened, shelf, **options)


def test_g8_a_tokenizer_of_the_cache_is_not_mixed_with_that_of_the_index(shelf: Shelf) -> None:
    cache = stampcache.open_cache("memory://", stamps=Stamps(tokenizer="qwen3"))
    with pytest.raises(ConfigError, match=r"gpt2.*qwen3"):
        App(cache, shelf, manifest=Manifest(corpus="a", version="1", tokenizer="gpt2"))


@pytest.mark.parametrize("grounding", ["recheck", "version"])
def test_without_a_retriever_there_is_nothing_to_ground_in(opened: Cache, grounding: Any) -> None:
    with pytest.raises(ConfigError, match="none"):
        CachedChain(retriever=None, answer=PROMPT, cache=opened, grounding=grounding)


def test_f6_f13_the_kind_of_data_says_how_long_an_answer_lives(shelf: Shelf) -> None:
    clock = FakeClock()
    cache = stampcache.open_cache("memory://", clock=clock)
    news = versioned(cache, shelf, kind="news")
    other = versioned(cache, shelf, kind="policy", corpus="rules")
    for app in (news, other):
        app.ask()
    clock.advance(800)
    assert news.ask()["cache"]["hit"]
    clock.advance(101)
    assert news.ask()["cache"]["reason"] == "expired"
    assert other.ask()["cache"]["hit"]
