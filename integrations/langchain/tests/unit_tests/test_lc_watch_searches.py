"""What is told of the searches of a watched store: the plain ones, and why others are not."""

import functools
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from lc_watching import CORPUS, STORES, Words, in_memory, told, watched

from stampcache import Cache
from stampcache.adapters import Metric, Reading, readings

DOCUMENTS = [
    Document("annual leave is thirty days", id="leave", metadata={"source": "a.md", "year": 1}),
    Document("travel by train is paid", id="travel", metadata={"source": "b.md", "year": 2}),
    Document("lunch costs four euros", id="lunch", metadata={"source": "c.md", "year": 3}),
]


def filled(cache: Cache, inner: Any = None, **options: Any) -> Any:
    store = watched(cache, inner, **options)
    store.add_documents(list(DOCUMENTS))
    return store


def says_days(one: Document) -> bool:
    return "days" in one.page_content


async def atold(call: Any, *args: Any, **options: Any) -> Reading:
    with readings() as heard:
        await call(*args, **options)
    (reading,) = heard
    return reading


def vector_of(text: str) -> bytes:
    return np.asarray(Words.vector(text), np.float32).tobytes()


PLAIN = [
    ("similarity_search", ("travel",), {"k": 2}),
    ("similarity_search", ("travel", 2), {}),
    ("similarity_search", (), {"query": "travel", "k": 2}),
    ("similarity_search_with_score", ("travel", 2), {}),
    ("similarity_search_by_vector", (Words.vector("travel"), 2), {}),
    ("search", ("travel", "similarity"), {"k": 2}),
]


@pytest.mark.parametrize("inner", STORES)
@pytest.mark.parametrize("search", PLAIN, ids=str)
async def test_a_plain_search_is_told_with_all_that_matters(
    opened: Cache, search: Any, inner: str
) -> None:
    store = filled(opened, STORES[inner]())
    name, args, options = search
    for reading in (
        told(getattr(store, name), *args, **options),
        await atold(getattr(store, f"a{name}"), *args, **options),
    ):
        assert reading.problem == ""
        assert reading.corpus == CORPUS
        assert reading.vector == vector_of("travel")
        assert reading.metric is (Metric.COSINE if inner == "in_memory" else Metric.L2)
        assert reading.chunks[0] == "travel"
        assert reading.wanted == len(reading.chunks) == len(reading.digests) == 2
        known = opened.core.store.corpora.chunks(CORPUS, reading.chunks)
        assert [known[one].digest for one in reading.chunks] == list(reading.digests)


def test_the_number_that_a_store_takes_by_itself_is_known(opened: Cache) -> None:
    assert told(filled(opened).similarity_search, "travel").wanted == 4


PROBLEMS = [
    ("max_marginal_relevance_search", ("travel",), {}, "maximal marginal relevance"),
    ("max_marginal_relevance_search_by_vector", (Words.vector("a"),), {}, "maximal marginal"),
    ("similarity_search", ("travel",), {"filter": lambda one: True}, "its filter is a function"),
    ("get_by_ids", (["travel"],), {}, "fetched by their ids"),
    ("similarity_search", ("travel",), {"k": -1}, "it asks for -1 chunks"),
    ("search", ("travel", "mmr"), {}, "maximal marginal relevance"),
]


@pytest.mark.parametrize("search", PROBLEMS, ids=[said for *_, said in PROBLEMS])
async def test_what_is_more_than_the_k_nearest_says_so(opened: Cache, search: Any) -> None:
    store = filled(opened)
    name, args, options, problem = search
    assert problem in told(getattr(store, name), *args, **options).problem
    assert problem in (await atold(getattr(store, f"a{name}"), *args, **options)).problem


def test_what_is_found_is_told_with_a_problem_too(opened: Cache) -> None:
    reading = told(filled(opened).max_marginal_relevance_search, "travel", k=2)
    assert len(reading.chunks) == len(reading.digests) == 2


@pytest.mark.parametrize(
    ("lets", "unseen"),
    [
        (lambda one: "days" in one.page_content, "white space"),
        (lambda one: not says_days(one) or True, "white space"),
        (lambda one: one.metadata["year"] > 0 or one.metadata["mtime"] > 1, "mtime"),
        (lambda one, name="mtime": one.metadata["year"] > 0 or one.metadata[name] > 1, "mtime"),
        (lambda one: one.metadata["year"] == 1, ""),
        (lambda one: one.metadata.get("year", 1) == 1 and "source" in one.metadata, ""),
        (lambda one: one.metadata.get("updated_at", 0) == 0, "updated_at"),
        (lambda one: "timestamp" not in one.metadata, "timestamp"),
        (lambda one: all(one.metadata.values()), "anything"),
        (lambda one: bool(dict(one.metadata)), "anything"),
        (lambda one: bool({**one.metadata}), "anything"),
        (lambda one: "x" not in str(one.metadata), "anything"),
        (lambda one: False, "anything"),
    ],
)
def test_a_function_that_filters_may_look_at_what_lasts(
    opened: Cache, lets: Any, unseen: str
) -> None:
    reading = told(filled(opened).similarity_search, "travel", k=1, filter=lets)
    assert reading.problem == "its filter is a function"
    assert reading.unseen == (
        f"its search looks at '{unseen}', which changes unseen" if unseen else ""
    )


def test_what_filters_and_cannot_be_read_may_look_at_anything(opened: Cache) -> None:
    lets = functools.partial(lambda year, one: one.metadata["year"] == year, 2)
    reading = told(filled(opened).similarity_search, "travel", k=1, filter=lets)
    assert reading.unseen == "its search looks at 'anything', which changes unseen"


def test_an_unknown_option_is_a_problem(opened: Cache) -> None:
    reading = told(filled(opened).similarity_search, "travel", alpha=0.5)
    assert reading.problem == "its option 'alpha' is unknown"
    assert told(filled(opened).similarity_search, "travel", alpha=None).problem == ""


def test_a_search_that_failed_is_told(opened: Cache) -> None:
    store = filled(opened)
    with readings() as heard, pytest.raises(TypeError):
        store.similarity_search()
    assert [one.problem for one in heard] == ["a search of it failed"]


def test_chunks_without_ids_or_of_unknown_form_are_problems(opened: Cache) -> None:
    class Nameless(InMemoryVectorStore):
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            found = super().similarity_search(query, k)
            return [Document(one.page_content, metadata=one.metadata) for one in found]

    store = filled(opened, Nameless(Words()), metric="cosine")
    assert told(store.similarity_search, "travel").problem == "a chunk found has no id"
    other = watched(opened)
    other.add_documents([Document("text", id="odd", metadata={"what": object()})])
    assert "cannot be compared" in told(other.similarity_search, "text").problem


def test_a_question_that_was_embedded_twice_has_no_vector(opened: Cache) -> None:
    class Twice(InMemoryVectorStore):
        def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
            self.embedding.embed_query("something else")
            return super().similarity_search(query, k)

    store = filled(opened, Twice(Words()), metric="cosine")
    assert told(store.similarity_search, "travel").vector == b""


def test_the_retriever_tells_through_the_store(opened: Cache) -> None:
    retriever = filled(opened).as_retriever(search_kwargs={"k": 2})
    reading = told(retriever.invoke, "travel")
    assert (reading.problem, reading.wanted) == ("", 2)
    mmr = filled(opened, in_memory()).as_retriever(search_type="mmr")
    assert "marginal" in told(mmr.invoke, "travel").problem


async def test_the_retriever_tells_through_the_store_async(opened: Cache) -> None:
    retriever = filled(opened).as_retriever(search_kwargs={"k": 2})
    assert (await atold(retriever.ainvoke, "travel")).wanted == 2
