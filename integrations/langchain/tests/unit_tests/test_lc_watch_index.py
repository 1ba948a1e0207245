"""Ingestion by the Indexing API into a watched index: by its store, by its record manager, by both."""

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, RecordManager, aindex, index
from lc_watching import CORPUS, Asking, Words, in_memory, watched

from langchain_stampcache import watch
from stampcache import Cache, Reason, open_cache

PAGES = {
    "leave": "annual leave is thirty days for everyone",
    "travel": "travel by train is paid in full",
    "lunch": "lunch in the canteen costs four euros",
}
QUESTIONS = ("how is travel by train paid", "what does lunch in the canteen cost")
CLEANUPS = ["incremental", "full", "scoped_full"]


def pages(**texts: str) -> list[Document]:
    return [Document(text, metadata={"source": f"{one}.md"}) for one, text in texts.items()]


def books() -> InMemoryRecordManager:
    manager = InMemoryRecordManager(namespace=CORPUS)
    manager.create_schema()
    return manager


def run(documents: Any, manager: RecordManager, store: Any, **options: Any) -> dict[str, int]:
    given = {
        "cleanup": "incremental",
        "source_id_key": "source",
        "key_encoder": "sha256",
        **options,
    }
    return dict(index(documents, manager, store, **given))


async def arun(
    documents: Any, manager: RecordManager, store: Any, **options: Any
) -> dict[str, int]:
    given = {
        "cleanup": "incremental",
        "source_id_key": "source",
        "key_encoder": "sha256",
        **options,
    }
    return dict(await aindex(documents, manager, store, **given))


class Running:
    """An index, its books, and answers from it; ``asynchronous`` says how it is ingested into."""

    def __init__(self, cache: Cache, *, asynchronous: bool = False, store: bool = True) -> None:
        self.cache = cache
        self.asynchronous = asynchronous
        inner = in_memory()
        self.store: Any = watched(cache, inner) if store else inner
        self.manager: RecordManager = books()
        self.asking = Asking(cache, self.store)

    def write(self, documents: Any, **options: Any) -> dict[str, int]:
        if self.asynchronous:
            return asyncio.run(arun(documents, self.manager, self.store, **options))
        return run(documents, self.manager, self.store, **options)

    def ask(self) -> list[str]:
        return [type(self.asking.ask(question)).__name__ for question in QUESTIONS]


@pytest.fixture(params=[False, True], ids=["index", "aindex"])
def running(request: pytest.FixtureRequest, opened: Cache) -> Running:
    made = Running(opened, asynchronous=request.param)
    made.write(pages(**PAGES))
    assert made.ask() == ["Miss", "Miss"]
    assert made.ask() == ["Hit", "Hit"]
    return made


@pytest.mark.parametrize("cleanup", CLEANUPS)
def test_ingesting_again_what_is_there_keeps_its_answers(running: Running, cleanup: str) -> None:
    assert running.write(pages(**PAGES), cleanup=cleanup)["num_skipped"] == 3
    assert running.ask() == ["Hit", "Hit"]


@pytest.mark.parametrize("cleanup", CLEANUPS)
@pytest.mark.parametrize("what", ["white space", "volatile metadata", "forced"])
def test_what_says_the_same_keeps_its_answers(running: Running, cleanup: str, what: str) -> None:
    documents = pages(**PAGES)
    for one in documents:
        if what == "white space":
            one.page_content = one.page_content.replace(" ", "  ") + "\n"
        elif what == "volatile metadata":
            one.metadata["ingested_at"] = "2031-05-04"
    done = running.write(documents, cleanup=cleanup, force_update=what == "forced")
    changed = done["num_updated"] if what == "forced" else done["num_added"]
    assert changed == 3
    assert done["num_deleted"] == (0 if what == "forced" else 3)
    assert running.ask() == ["Hit", "Hit"]


@pytest.mark.parametrize("cleanup", CLEANUPS)
def test_a_changed_document_ends_its_answers_alone(running: Running, cleanup: str) -> None:
    documents = pages(**{**PAGES, "lunch": "lunch in the canteen costs nine euros"})
    done = running.write(documents, cleanup=cleanup)
    assert (done["num_added"], done["num_deleted"]) == (1, 1)
    assert running.ask() == ["Hit", "Stale"]
    assert running.ask() == ["Hit", "Hit"]


def test_a_document_that_is_gone_ends_its_answers_alone(running: Running) -> None:
    kept = {name: text for name, text in PAGES.items() if name != "lunch"}
    assert running.write(pages(**kept), cleanup="full")["num_deleted"] == 1
    assert running.ask()[1] == "Stale"


def test_each_document_is_embedded_once(running: Running) -> None:
    running.write(pages(**{**PAGES, "pets": "dogs may come on friday"}))
    texts = [*PAGES.values(), "dogs may come on friday"]
    assert sorted(running.store.embeddings.embedded) == sorted(texts)


# -- by the record manager -------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["index", "aindex"])
def booked(request: pytest.FixtureRequest, opened: Cache) -> Running:
    """Only the record manager of ingestion is watched; who asks watches the store, as it must."""
    made = Running(opened, asynchronous=request.param, store=False)
    made.manager = watch(made.manager, cache=opened, corpus=CORPUS)
    made.write(pages(**PAGES))
    made.asking = Asking(opened, watched(opened, made.store))
    assert made.ask() == ["Miss", "Miss"]
    assert made.ask() == ["Hit", "Hit"]
    return made


def settled(cache: Cache) -> bool:
    standing = cache.standing(CORPUS)
    return standing is not None and not standing.intents and not cache.core.listeners


@pytest.mark.parametrize("cleanup", CLEANUPS)
def test_the_record_manager_keeps_answers_when_nothing_is_new(
    booked: Running, cleanup: str
) -> None:
    assert booked.write(pages(**PAGES), cleanup=cleanup)["num_skipped"] == 3
    assert booked.ask() == ["Hit", "Hit"]
    assert settled(booked.cache)


@pytest.mark.parametrize("cleanup", CLEANUPS)
def test_the_record_manager_tells_of_new_and_deleted_documents(
    booked: Running, cleanup: str
) -> None:
    booked.write(pages(pets="dogs may come on friday"), cleanup="incremental")
    assert booked.ask() == ["Stale", "Stale"]
    assert booked.ask() == ["Hit", "Hit"]
    booked.write(pages(**{**PAGES, "lunch": "lunch is free"}), cleanup=cleanup)
    assert booked.ask() == ["Stale", "Stale"]
    assert settled(booked.cache)


def test_the_record_manager_tells_of_a_forced_update(booked: Running) -> None:
    booked.write(pages(**PAGES), force_update=True)
    assert booked.ask() == ["Stale", "Stale"]


def test_hits_are_blocked_from_the_question_to_the_note(booked: Running) -> None:
    reasons: list[object] = []

    class Looking(Words):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            outcome = booked.cache.lookup(booked.asking.request(QUESTIONS[0]))
            reasons.append(getattr(outcome, "reason", None))
            return super().embed_documents(texts)

    booked.store.embedding = Looking()
    booked.write(pages(pets="dogs may come on friday"))
    assert reasons == [Reason.BEING_WRITTEN]
    assert settled(booked.cache)


@pytest.mark.parametrize("resolve", ["run", "settle"])
def test_a_run_that_failed_blocks_until_the_next(booked: Running, resolve: str) -> None:
    class Broken(Words):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise ConnectionError("no embedder")

    held, booked.store.embedding = booked.store.embedding, Broken()
    with pytest.raises(ConnectionError):
        booked.write(pages(pets="dogs may come on friday"))
    booked.store.embedding = held
    outcome = booked.cache.lookup(booked.asking.request(QUESTIONS[0]))
    assert outcome.reason is Reason.BEING_WRITTEN  # type: ignore[union-attr]  # it is one here
    if resolve == "run":
        booked.write(pages(**PAGES))
    elif booked.asynchronous:
        asyncio.run(booked.manager.asettle())  # type: ignore[attr-defined]  # the type says less than the object
    else:
        booked.manager.settle()  # type: ignore[attr-defined]  # the type says less than the object
    assert settled(booked.cache)
    assert booked.ask() == ["Stale", "Stale"]
    assert booked.ask() == ["Hit", "Hit"]


def test_runs_of_other_threads_are_told_apart(opened: Cache) -> None:
    manager, store = books(), in_memory()
    telling = watch(manager, cache=opened, corpus=CORPUS)

    def write(at: int) -> None:
        for _ in range(3):
            run(pages(**{f"page{at}": f"word{at} of page {at}"}), telling, store)

    threads = [threading.Thread(target=write, args=(at,)) for at in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert settled(opened)
    assert len(store.store) == 6


async def test_runs_of_other_tasks_are_told_apart(opened: Cache) -> None:
    telling, store = watch(books(), cache=opened, corpus=CORPUS), in_memory()
    await asyncio.gather(
        *(arun(pages(**{f"page{at}": f"word{at}"}), telling, store) for at in range(6))
    )
    assert settled(opened)


def test_books_that_are_only_read_block_nothing(opened: Cache) -> None:
    telling = watch(books(), cache=opened, corpus=CORPUS)
    assert telling.exists(["a"]) == [False]
    assert telling.list_keys() == []
    assert settled(opened)


def test_books_that_are_written_without_a_run_end_all(booked: Running) -> None:
    booked.manager.update(["some key"])
    assert booked.ask() == ["Stale", "Stale"]
    booked.manager.delete_keys(["some key"])
    assert booked.ask() == ["Stale", "Stale"]
    assert settled(booked.cache)


def test_the_record_manager_does_what_its_inner_one_does(opened: Cache) -> None:
    inner = books()
    telling = watch(inner, cache=opened, corpus=CORPUS)
    telling.create_schema()
    telling.update(["a", "b"], group_ids=["x", "y"])
    assert telling.exists(["a", "c"]) == [True, False]
    assert telling.list_keys(group_ids=["y"]) == ["b"]
    telling.delete_keys(["a"])
    assert inner.list_keys() == ["b"]
    assert telling.namespace == inner.namespace
    assert telling.records is inner.records
    assert telling.inner is inner
    assert telling.watched.corpus == CORPUS


# -- by both ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
def test_where_both_are_watched_nothing_is_ended_twice(opened: Cache, asynchronous: bool) -> None:
    both = Running(opened, asynchronous=asynchronous)
    both.manager = watch(both.manager, cache=opened, corpus=CORPUS)
    both.write(pages(**PAGES))
    both.ask()
    both.write(pages(**{**PAGES, "lunch": "lunch in the canteen costs nine euros"}))
    assert both.ask() == ["Hit", "Stale"]
    both.write(pages(travel=PAGES["travel"]), cleanup="full")
    assert both.ask()[1] == "Stale"
    assert settled(opened)


def test_where_the_run_writes_around_the_watched_store_all_is_ended(opened: Cache) -> None:
    both = Running(opened)
    telling = watch(both.manager, cache=opened, corpus=CORPUS)
    both.manager = telling
    both.write(pages(**PAGES))
    both.ask()
    run(pages(pets="dogs may come"), telling, both.store.inner)
    assert both.ask() == ["Stale", "Stale"]


def test_ingestion_needs_no_tenant(tmp_path: Any) -> None:
    with open_cache(f"sqlite:///{tmp_path}/cache.db", tenants="required") as cache:
        running = Running(cache)
        running.write(pages(**PAGES))
        standing = cache.standing(CORPUS)
        assert standing is not None
        assert standing.chunks == 3
