"""Chroma and FAISS behind a watch: their metrics, thresholds, filters and further searches."""

import warnings
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from lc_watching import SIZE, STORES, Asking, Words, faiss_store, told, watched

from stampcache import Cache, Hit, Miss, Stale
from stampcache.adapters import Metric

faiss = pytest.importorskip("faiss")
community = pytest.importorskip("langchain_community.vectorstores.utils")
hyde = pytest.importorskip("langchain_classic.chains.hyde.base")
pytest.importorskip("langchain_chroma")

DOCUMENTS = [
    Document("annual leave is thirty days", id="leave", metadata={"source": "a.md", "year": 1}),
    Document("travel by train is paid", id="travel", metadata={"source": "b.md", "year": 2}),
    Document("lunch costs four euros", id="lunch", metadata={"source": "c.md", "year": 3}),
]


def filled(cache: Cache, inner: Any = None, **options: Any) -> Any:
    store = watched(cache, inner, **options)
    store.add_documents(list(DOCUMENTS))
    return store


def faiss_of(kind: Any = faiss.IndexFlatL2, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return faiss_store(index=kind(SIZE), **options)


@pytest.mark.parametrize(
    ("kind", "options", "metric"),
    [
        (faiss.IndexFlatL2, {}, Metric.L2),
        (faiss.IndexFlatL2, {"normalize_L2": True}, Metric.COSINE),
        (
            faiss.IndexFlatIP,
            {"distance_strategy": community.DistanceStrategy.MAX_INNER_PRODUCT},
            Metric.DOT,
        ),
        (lambda size: faiss.IndexHNSWFlat(size, 16), {}, Metric.L2),
        (lambda size: faiss.IndexFlat(size, faiss.METRIC_L1), {}, None),
    ],
)
def test_the_metric_of_faiss_is_that_of_its_index(
    opened: Cache, kind: Any, options: Any, metric: Metric | None
) -> None:
    store = filled(opened, faiss_of(kind, **options))
    assert told(store.similarity_search, "travel", k=2).metric is metric


@pytest.mark.parametrize("inner", ["l2", "cosine", "ip", "faiss", "faiss unit"])
def test_answers_hold_under_each_metric(opened: Cache, inner: str) -> None:
    made = {"faiss": faiss_of, "faiss unit": lambda: faiss_of(normalize_L2=True)}
    store = filled(opened, made[inner]() if inner in made else STORES["chroma"](space=inner))
    asking = Asking(opened, store, k=1)
    asking.ask("is travel by train paid")
    store.add_texts(["dogs may come on friday"], [{"source": "d.md"}])
    assert isinstance(asking.ask("is travel by train paid"), Hit)
    store.add_texts(["is travel by train paid"], [{"source": "e.md"}])
    assert isinstance(asking.ask("is travel by train paid"), Stale)


@pytest.mark.filterwarnings("ignore:legacy embedding function config:DeprecationWarning")
@pytest.mark.parametrize("space", ["l2", "cosine", "ip"])
def test_a_threshold_is_told_with_relevances_where_they_are_a_line(
    opened: Cache, space: str
) -> None:
    store = filled(opened, STORES["chroma"](space=space))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reading = told(
            store.similarity_search_with_relevance_scores, "travel", k=3, score_threshold=-9.0
        )
    assert reading.threshold == -9.0
    assert len(reading.relevances) == (0 if space == "ip" else 3)


def test_a_relevance_of_the_users_own_is_no_line(opened: Cache) -> None:
    inner = faiss_of(relevance_score_fn=lambda distance: 1 / (1 + distance))
    store = filled(opened, inner)
    search = store.similarity_search_with_relevance_scores
    reading = told(search, "travel", k=3, score_threshold=0.1)
    assert (reading.threshold, reading.relevances) == (0.1, ())
    assert told(search, "travel", k=3).threshold is None


def test_a_threshold_on_distances_is_told_without_them(opened: Cache) -> None:
    store = filled(opened, faiss_of())
    reading = told(store.similarity_search_with_score, "travel", k=3, score_threshold=5.0)
    assert (reading.threshold, reading.relevances) == (5.0, ())


def test_an_answer_that_found_nothing_above_its_threshold_ends_with_any_document(
    opened: Cache,
) -> None:
    store = filled(opened, faiss_of())
    asking = Asking(opened, store, score_threshold=1e-9)
    asking.ask("is travel by train paid")
    assert isinstance(asking.ask("is travel by train paid"), Hit)
    store.add_texts(["dogs"], ids=["dogs"])
    assert isinstance(asking.ask("is travel by train paid"), Stale)


@pytest.mark.parametrize(
    ("where", "unseen"),
    [
        ({"source": "a.md"}, ""),
        ({"$and": [{"year": {"$gte": 1}}, {"source": "a.md"}]}, ""),
        ({}, ""),
        ({"$or": [{"updated_at": {"$gte": 1}}, {"year": 1}]}, "looks at 'updated_at'"),
    ],
)
def test_a_filter_over_what_lasts_is_plain(opened: Cache, where: Any, unseen: str) -> None:
    store = filled(opened, STORES["chroma"]())
    for search in (store.similarity_search, store.max_marginal_relevance_search):
        reading = told(search, "travel", k=1, filter=where or None)
        assert unseen in reading.unseen
        assert bool(unseen) == bool(reading.unseen)


def test_a_filter_over_the_text_is_plain(opened: Cache) -> None:
    store = filled(opened, STORES["chroma"]())
    search = store.similarity_search
    reading = told(search, "travel", k=1, where_document={"$contains": "train"})
    assert (reading.problem, reading.unseen) == ("", "")


@pytest.mark.parametrize(
    "where", [{"$contains": "by train"}, {"$contains": "caf\u00e9"}, {"$regex": "trains*"}]
)
def test_a_filter_over_the_text_may_look_at_white_space(opened: Cache, where: Any) -> None:
    store = filled(opened, STORES["chroma"]())
    for read in (store.similarity_search, store.get):
        given = () if read == store.get else ("travel",)
        reading = told(read, *given, where_document=where)
        assert reading.unseen == "its search looks at 'white space', which changes unseen"


def test_searches_of_other_names_are_told(opened: Cache) -> None:
    store = filled(opened, STORES["chroma"]())
    by_vector = store.similarity_search_by_vector_with_relevance_scores
    assert told(by_vector, Words.vector("travel"), 2).problem == ""
    reading = told(store.similarity_search_with_vectors, "travel")
    assert reading.problem == "it was read by similarity_search_with_vectors()"
    assert told(store.get).problem == "it was read by get()"
    assert told(store.similarity_search_with_score, "a").problem == ""


def test_what_looks_at_what_changes_unseen_is_not_stored(opened: Cache) -> None:
    store = filled(opened, STORES["chroma"]())
    asking = Asking(opened, store, filter={"$or": [{"updated_at": 1}, {"year": 1}]})
    asking.ask("travel")
    outcome = asking.ask("travel")
    assert isinstance(outcome, Miss)


def test_a_call_of_which_nothing_is_known_may_name_it(opened: Cache) -> None:
    store = filled(opened, STORES["chroma"]())
    reading = told(store.get, where={"updated_at": 1})
    assert "updated_at" in reading.unseen


def test_a_question_by_way_of_a_guessed_answer_is_a_problem(opened: Cache) -> None:
    guessing = hyde.HypotheticalDocumentEmbedder.model_construct(base_embeddings=Words())
    store = watched(opened, InMemoryVectorStore(guessing))
    assert "guessed answer" in store._reads._problem


def test_a_function_that_filters_metadata_may_look_at_what_lasts(opened: Cache) -> None:
    store = filled(opened, faiss_of())
    reading = told(store.similarity_search, "travel", k=1, filter=lambda one: one["year"] == 1)
    assert (reading.problem, reading.unseen) == ("its filter is a function", "")
    reading = told(store.similarity_search, "travel", k=1, filter=lambda one: "mtime" not in one)
    assert "'mtime'" in reading.unseen


@pytest.mark.parametrize(("space", "metric"), [("cosine", "cosine"), ("l2", "l2"), ("ip", "dot")])
def test_the_space_of_a_chroma_collection_is_its_metric(
    opened: Cache, space: str, metric: str
) -> None:
    store = watched(opened, STORES["chroma"](space=space))
    assert store._reads._metric is Metric(metric)
