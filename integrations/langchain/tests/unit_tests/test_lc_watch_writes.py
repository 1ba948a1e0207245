"""Writes through a watched store: which answers they end, which they keep, and what is embedded."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from lc_watching import CORPUS, STORES, Asking, Words, chroma, in_memory, watched

from stampcache import Cache, Hit, Miss, Reason, Stale, StoreError, open_cache
from stampcache.testing import FailingStore

PAGES = {
    "leave": "annual leave is thirty days for everyone",
    "travel": "travel by train is paid in full",
    "lunch": "lunch in the canteen costs four euros",
    "pets": "dogs may come on friday",
}


def pages(**texts: str) -> list[Document]:
    return [
        Document(text, id=name, metadata={"source": f"{name}.md"}) for name, text in texts.items()
    ]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, opened: Cache) -> Iterator[Any]:
    found = watched(opened, STORES[request.param]())
    found.add_documents(pages(**PAGES))
    yield found
    if request.param == "chroma":
        found.inner.delete_collection()


@pytest.fixture
def asking(store: Any, opened: Cache) -> Asking:
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    asking.ask("what does lunch in the canteen cost")
    return asking


def replace_page(store: Any, page: Document) -> None:
    """Write a page in the place of another one, as each store can."""
    if "FAISS" in type(store.inner).__name__:
        store.delete([page.id])
    store.add_documents([page])


def kinds(asking: Asking) -> list[str]:
    questions = ("how is travel by train paid", "what does lunch in the canteen cost")
    return [type(asking.cache.lookup(asking.request(one))).__name__ for one in questions]


def test_a_hit_retrieves_nothing(asking: Asking) -> None:
    asked = list(asking.store.embeddings.asked)
    assert kinds(asking) == ["Hit", "Hit"]
    assert asking.store.embeddings.asked == asked


def test_a_new_document_ends_only_the_answers_that_it_comes_before(asking: Asking) -> None:
    asking.store.add_documents(pages(trains="travel by train second class is paid"))
    assert kinds(asking) == ["Stale", "Hit"]
    stale = asking.cache.lookup(asking.request("how is travel by train paid"))
    assert isinstance(stale, Stale)
    assert stale.reason is Reason.INVALIDATED
    assert "trains.md" in stale.detail


def test_a_changed_document_ends_the_answers_that_cite_it(asking: Asking) -> None:
    changed = pages(lunch="lunch in the canteen costs nine euros")[0]
    replace_page(asking.store, changed)
    assert kinds(asking)[1] == "Stale"
    assert asking.ask("what does lunch in the canteen cost").reason is Reason.INVALIDATED  # type: ignore[union-attr]  # it is one here
    hit = asking.ask("what does lunch in the canteen cost")
    assert isinstance(hit, Hit)
    assert "nine euros" in hit.answer.text


def test_a_deleted_document_ends_the_answers_that_cite_it(asking: Asking) -> None:
    asking.store.delete(["lunch"])
    assert kinds(asking)[1] == "Stale"


@pytest.mark.parametrize(
    "page",
    [
        pages(lunch=PAGES["lunch"])[0],
        pages(lunch=PAGES["lunch"].replace(" ", "  ") + "\n")[0],
        Document(
            PAGES["lunch"], id="lunch", metadata={"source": "lunch.md", "ingested_at": "today"}
        ),
    ],
    ids=["unchanged", "white space", "volatile metadata"],
)
def test_the_same_document_again_keeps_its_answers(asking: Asking, page: Document) -> None:
    replace_page(asking.store, page)
    assert kinds(asking) == ["Hit", "Hit"]


def test_other_metadata_is_another_document(asking: Asking) -> None:
    page = Document(PAGES["lunch"], id="lunch", metadata={"source": "lunch.md", "page": 9})
    replace_page(asking.store, page)
    assert kinds(asking)[1] == "Stale"


def test_own_volatile_metadata_keeps_its_answers(opened: Cache) -> None:
    store = watched(opened, in_memory(), volatile=["run"])
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    page = Document(PAGES["travel"], id="travel", metadata={"source": "travel.md", "run": 2})
    store.add_documents([page])
    assert isinstance(asking.ask("how is travel by train paid"), Hit)


def test_deleting_and_adding_again_brings_answers_back(asking: Asking) -> None:
    asking.store.delete(["lunch"])
    assert kinds(asking)[1] == "Stale"
    asking.store.add_documents(pages(lunch=PAGES["lunch"]))
    assert kinds(asking) == ["Hit", "Hit"]


def test_chroma_keeps_old_metadata_and_so_does_the_watch(opened: Cache) -> None:
    store = watched(opened, chroma())
    store.add_documents([Document("lunch", id="lunch", metadata={"a": 1})])
    asking = Asking(opened, store, k=1)
    asking.ask("lunch")
    assert isinstance(asking.ask("lunch"), Hit)
    store.add_documents([Document("lunch", id="lunch", metadata={"b": 2})])
    store.add_documents([Document("lunch", id="lunch", metadata={"a": 1})])
    assert store.get_by_ids(["lunch"])[0].metadata == {"a": 1, "b": 2}
    assert isinstance(asking.ask("lunch"), Stale)
    assert isinstance(asking.ask("lunch"), Hit)


# -- what is embedded --------------------------------------------------------------------------------


def test_nothing_is_embedded_twice(store: Any) -> None:
    assert store.embeddings.embedded == list(PAGES.values())
    store.add_texts(["one", "two", "one"], [{"at": 1}, {"at": 2}, {"at": 3}])
    assert store.embeddings.embedded == [*PAGES.values(), "one", "two", "one"]
    store.similarity_search("three")
    assert store.embeddings.asked == ["three"]


async def test_nothing_is_embedded_twice_async(store: Any) -> None:
    before = list(store.embeddings.embedded)
    await store.aadd_documents(pages(new="one new page"))
    await store.aadd_texts(["two"], [{"at": 1}])
    assert store.embeddings.embedded == [*before, "one new page", "two"]
    await store.asimilarity_search("three")
    assert store.embeddings.asked == ["three"]


def test_hits_are_served_while_documents_are_embedded(opened: Cache) -> None:
    class Slow(Words):
        held = False

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            if self.held:
                begun.set()
                assert go_on.wait(30)
            return super().embed_documents(texts)

    begun, go_on, embedder = threading.Event(), threading.Event(), Slow()
    store = watched(opened, in_memory(embedder))
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    embedder.held = True
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(store.add_documents, pages(far="dogs"))
        assert begun.wait(30)
        assert isinstance(asking.ask("how is travel by train paid"), Hit)
        go_on.set()
        writing.result()
    assert isinstance(asking.ask("how is travel by train paid"), Hit)


class Preparing(InMemoryVectorStore):
    """A store that embeds something else than its texts."""

    def add_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> list[str]:
        self.embedding.embed_documents([f"passage: {one.page_content}" for one in documents])
        return super().add_documents(documents, ids, **kwargs)


class Unasked(InMemoryVectorStore):
    """A store whose vectors come from an embedder that it hides."""

    def __init__(self, embedding: Any) -> None:
        super().__init__(embedding)
        self._embed = embedding.embed_documents

    def add_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> list[str]:
        held, self.embedding = self.embedding, Words()
        self._embed([one.page_content for one in documents])
        try:
            return super().add_documents(documents, ids, **kwargs)
        finally:
            self.embedding = held


@pytest.mark.parametrize("kind", [Preparing, Unasked])
def test_a_store_that_embeds_otherwise_is_left_alone(opened: Cache, kind: Any) -> None:
    embedder = Words()
    store = watched(opened, kind(embedder), metric="cosine")
    store.add_texts(["one"])
    before = len(embedder.embedded)
    store.add_texts(["two"])
    assert "two" in embedder.embedded
    once = sum(text == "two" for text in embedder.embedded[before:])
    assert once == 1


def test_where_vectors_are_not_seen_any_write_ends_an_answer(opened: Cache) -> None:
    store = watched(opened, Unasked(Words()), metric="cosine")
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    assert isinstance(asking.ask("how is travel by train paid"), Hit)
    store.add_documents(pages(far="dogs dogs dogs"))
    assert isinstance(asking.ask("how is travel by train paid"), Stale)


# -- writes of which nothing is known ------------------------------------------------------------------


def test_a_write_by_another_name_is_found_out(opened: Cache) -> None:
    store = watched(opened, chroma())
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    asking.ask("what does lunch in the canteen cost")
    page = pages(lunch="lunch in the canteen costs nine euros")[0]
    store.update_document("lunch", page)
    assert kinds(asking) == ["Hit", "Stale"] or kinds(asking) == ["Stale", "Stale"]
    store.reset_collection()
    assert kinds(asking) == ["Stale", "Stale"]
    assert opened.standing(CORPUS).chunks == 0  # type: ignore[union-attr]  # it is watched


class Named(InMemoryVectorStore):
    def purge_old(self) -> int:
        return len([self.store.pop(one) for one in ("travel",)])

    async def aupsert_page(self, page: Document) -> str:
        await self.aadd_documents([page])
        return "done"

    def later_update(self, page: Document) -> Any:
        return self.aupsert_page(page)

    def each_added(self, *pages: Document) -> Iterator[str]:
        for one in pages:
            yield from self.add_documents([one])

    def add_each(self, *pages: Document) -> Iterator[str]:
        yield from self.each_added(*pages)

    async def aadd_each(self, *pages: Document) -> Any:
        for one in pages:
            yield (await self.aadd_documents([one]))[0]

    @classmethod
    def load_other(cls) -> str:
        return "another store"


async def test_writes_are_known_by_their_names(opened: Cache) -> None:
    store = watched(opened, Named(Words()), metric="cosine")
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    assert store.purge_old() == 1
    assert isinstance(asking.ask("how is travel by train paid"), Stale)
    for call in (store.aupsert_page, store.later_update):
        assert isinstance(asking.ask("how is travel by train paid"), Hit)
        page = pages(travel=f"travel by train paid {call.__name__}")[0]
        assert await call(page) == "done"
        assert isinstance(asking.ask("how is travel by train paid"), Stale)


async def test_what_is_written_one_by_one_is_told_one_by_one(opened: Cache) -> None:
    store = watched(opened, Named(Words()), metric="cosine")
    asking = Asking(opened, store, k=1)
    first, second = pages(a="train", b="travel by train")
    for name in ("add_each", "aadd_each"):
        store.delete(["a", "b"])
        asking.ask("travel by train")
        made = getattr(store, name)(first, second)
        one = next(made) if name == "add_each" else await anext(made)
        assert one == "a"
        assert isinstance(asking.ask("travel by train"), Stale)
        assert isinstance(asking.ask("travel by train"), Hit)
        rest = list(made) if name == "add_each" else [one async for one in made]
        assert rest == ["b"]
        assert isinstance(asking.ask("travel by train"), Stale)


def test_what_is_called_on_the_class_or_by_another_object(opened: Cache) -> None:
    inner = Named(Words())
    other = InMemoryVectorStore(inner.embedding)
    other.store = inner.store
    inner.insert_elsewhere = other.add_documents  # type: ignore[attr-defined]  # the type says less than the object
    store = watched(opened, inner, metric="cosine")
    assert store.load_other() == "another store"
    assert opened.standing(CORPUS).chunks == 0  # type: ignore[union-attr]  # it is watched
    assert store.insert_elsewhere(pages(a="train")) == ["a"]
    assert opened.standing(CORPUS).chunks == 1  # type: ignore[union-attr]  # it is watched


def test_an_attribute_that_is_set_may_be_anything(opened: Cache) -> None:
    store = watched(opened)
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    other = in_memory()
    other.add_documents(pages(travel="travel by train is not paid"))
    store.store = other.store
    assert store.inner.store is other.store
    assert isinstance(asking.ask("how is travel by train paid"), Stale)
    assert isinstance(asking.ask("how is travel by train paid"), Hit)


def test_a_delete_that_names_no_ids_is_found_out(opened: Cache) -> None:
    store = watched(opened, chroma())
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    asking.ask("what does lunch in the canteen cost")
    store.delete(where={"source": "lunch.md"})
    assert kinds(asking)[1] == "Stale"
    assert opened.standing(CORPUS).chunks == 3  # type: ignore[union-attr]  # it is watched


# -- failures --------------------------------------------------------------------------------------------


class Halting(InMemoryVectorStore):
    """A store that fails after so many documents."""

    lands = 99

    def add_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> list[str]:
        given = ids or [one.id for one in documents]
        landed = super().add_documents(documents[: self.lands], given[: self.lands])
        if len(landed) < len(documents):
            raise OSError("the disk is full")
        return landed


@pytest.mark.parametrize("listing", [True, False])
def test_what_landed_of_a_write_that_failed_is_found_out(opened: Cache, listing: bool) -> None:
    store = watched(opened, Halting(Words()), metric="cosine")
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    asking.ask("what does lunch in the canteen cost")
    store.inner.lands = 1
    with pytest.raises(OSError, match="disk is full"):
        store.add_documents(pages(trains="travel by train is paid", meals="lunch costs money"))
    assert kinds(asking) == ["Stale", "Hit"]
    assert opened.standing(CORPUS).chunks == 5  # type: ignore[union-attr]  # it is watched


def test_a_write_is_refused_if_the_cache_cannot_be_told() -> None:
    failing = FailingStore()
    with open_cache(failing) as cache:
        store = watched(cache)
        failing.down = True
        with pytest.raises(StoreError):
            store.add_documents(pages(**PAGES))
        assert store.inner.store == {}
        failing.down = False
        store.add_documents(pages(**PAGES))
        assert len(store.inner.store) == len(PAGES)


async def test_a_cancelled_write_goes_on_and_is_told(opened: Cache) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(InMemoryVectorStore):
        async def aadd_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> Any:
            return await asyncio.to_thread(self._slowly, documents, ids)

        def _slowly(self, documents: Any, ids: Any) -> list[str]:
            begun.set()
            assert go_on.wait(30)
            return self.add_documents(documents, ids)

    store = watched(opened, Slow(Words()), metric="cosine")
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    task = asyncio.create_task(store.aadd_documents(pages(trains="travel by train is paid")))
    assert await asyncio.to_thread(begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    blocked = opened.lookup(asking.request("how is travel by train paid"))
    assert blocked.reason is Reason.BEING_WRITTEN  # type: ignore[union-attr]  # it is one here
    go_on.set()
    while opened.standing(CORPUS).intents:  # type: ignore[union-attr]  # it is watched
        await asyncio.sleep(0.01)
    assert isinstance(opened.lookup(asking.request("how is travel by train paid")), Stale)


# -- many at once ----------------------------------------------------------------------------------------


def test_writers_at_once_lose_nothing(opened: Cache) -> None:
    store = watched(opened)
    asking = Asking(opened, store)

    def write(at: int) -> None:
        store.add_documents(pages(**{f"page{at}": f"word{at} travel by train"}))
        store.similarity_search(f"word{at}")
        if at % 3 == 0:
            store.delete([f"page{at}"])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(48)))
    standing = opened.standing(CORPUS)
    assert standing is not None
    assert (standing.chunks, standing.intents) == (32, ())
    known = opened.core.store.corpora.chunks(CORPUS, None)
    listed = {one.id: one for one in store.watched.run(_listing(store))}
    assert known == listed
    assert sorted(store.embeddings.embedded) == sorted(
        f"word{n} travel by train" for n in range(48)
    )
    assert isinstance(asking.ask("travel by train"), Miss)
    assert isinstance(asking.ask("travel by train"), Hit)


async def test_tasks_at_once_lose_nothing(opened: Cache) -> None:
    store = watched(opened)

    async def write(at: int) -> None:
        await store.aadd_documents(pages(**{f"page{at}": f"word{at} travel by train"}))
        await store.asimilarity_search(f"word{at}")

    await asyncio.gather(*(write(at) for at in range(24)))
    known = opened.core.store.corpora.chunks(CORPUS, None)
    assert known == {one.id: one for one in store.watched.run(_listing(store))}


def _listing(store: Any) -> Any:
    return (yield from store._writes._known.view.listing)


class Unknown(VectorStore):
    """A store of a class that nobody knows."""

    def __init__(self, embedding: Any) -> None:
        self.embedder = embedding
        self.inside = InMemoryVectorStore(embedding)

    @property
    def embeddings(self) -> Any:
        return self.embedder

    def add_documents(self, documents: Any, **kwargs: Any) -> list[str]:
        self.inside.embedding = self.embedder
        return self.inside.add_documents(documents, **kwargs)

    def delete(self, ids: Any = None, **kwargs: Any) -> bool:
        self.inside.delete(ids)
        return True

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        self.inside.embedding = self.embedder
        return self.inside.similarity_search(query, k)

    @classmethod
    def from_texts(cls, texts: Any, embedding: Any, metadatas: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError


class Readable(Unknown):
    def get_by_ids(self, ids: Any, /) -> list[Document]:
        return self.inside.get_by_ids(ids)


class Unlike(Unknown):
    """A store that gives documents back as it likes."""

    def get_by_ids(self, ids: Any, /) -> list[Document]:
        found = self.inside.get_by_ids(ids)
        return [
            Document(one.page_content, id=one.id, metadata={**one.metadata, "seen": True})
            for one in found
        ]


class Later(Unknown):
    """A store that shows what was written only later."""

    def get_by_ids(self, ids: Any, /) -> list[Document]:
        return []


class Unreadable(Unknown):
    def get_by_ids(self, ids: Any, /) -> list[Document]:
        raise OSError("not now")


KINDS = [(Unknown, True), (Readable, True), (Unlike, False), (Later, True), (Unreadable, True)]


@pytest.mark.parametrize(("kind", "kept"), KINDS)
def test_what_an_unknown_store_holds_is_looked_at(opened: Cache, kind: Any, kept: bool) -> None:
    store = watched(opened, kind(Words()), metric="cosine")
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    store.add_documents(pages(far="dogs"))
    assert isinstance(asking.ask("how is travel by train paid"), Hit if kept else Stale)
    store.add_documents(pages(near="travel by train is paid"))
    assert isinstance(asking.ask("how is travel by train paid"), Stale)


def test_equal_texts_that_are_asked_for_once_have_one_vector(opened: Cache) -> None:
    class Unique(InMemoryVectorStore):
        def add_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> list[str]:
            texts = list(dict.fromkeys(one.page_content for one in documents))
            vectors = dict(zip(texts, self.embedding.embed_documents(texts), strict=True))
            for one in documents:
                self.store[one.id] = {
                    "id": one.id,
                    "vector": vectors[one.page_content],
                    "text": one.page_content,
                    "metadata": one.metadata,
                }
            return [one.id for one in documents]

    store = watched(opened, Unique(Words()), metric="cosine")
    store.add_documents(pages(a="one", b="one", c="two"))
    known = opened.core.store.corpora.chunks(CORPUS, None)
    assert all(one.vector for one in known.values())


def test_ids_that_a_store_makes_of_its_own_are_taken(opened: Cache) -> None:
    class Own(InMemoryVectorStore):
        def add_documents(self, documents: Any, ids: Any = None, **kwargs: Any) -> list[str]:
            return super().add_documents(documents, [f"own-{one.id}" for one in documents])

        def delete(self, ids: Any = None, **kwargs: Any) -> None:
            super().delete([f"own-{one.removeprefix('own-')}" for one in ids])

    store = watched(opened, Own(Words()), metric="cosine")
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    assert isinstance(asking.ask("how is travel by train paid"), Hit)
    store.delete(["travel"])  # under another name than it is known by
    assert isinstance(asking.ask("how is travel by train paid"), Stale)
    assert opened.standing(CORPUS).chunks == 3  # type: ignore[union-attr]  # it is watched


@pytest.mark.parametrize("kind", [Unknown, Readable])
def test_a_write_to_an_unknown_store_that_failed_is_found_out(opened: Cache, kind: Any) -> None:
    class Halting(kind):  # type: ignore[misc]  # a class known when it runs
        lands = 99

        def add_documents(self, documents: Any, **kwargs: Any) -> list[str]:
            done: list[str] = super().add_documents(documents[: self.lands])
            if len(done) < len(documents):
                raise OSError("the disk is full")
            return done

    store = watched(opened, Halting(Words()), metric="cosine")
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    asking.ask("what does lunch in the canteen cost")
    store.inner.lands = 1
    with pytest.raises(OSError, match="disk is full"):
        store.add_documents(pages(trains="travel by train is paid", meals="lunch costs money"))
    assert kinds(asking) == ["Stale", "Hit" if kind is Readable else "Stale"]


def test_what_an_unknown_store_failed_to_delete_is_found_out(opened: Cache) -> None:
    class Deaf(Readable):
        def delete(self, ids: Any = None, **kwargs: Any) -> bool:
            return False

    store = watched(opened, Deaf(Words()), metric="cosine")
    store.add_documents(pages(**PAGES))
    asking = Asking(opened, store)
    asking.ask("how is travel by train paid")
    assert store.delete(["travel"]) is False
    assert isinstance(asking.ask("how is travel by train paid"), Hit)


async def test_an_unknown_store_is_looked_at_async(opened: Cache) -> None:
    store = watched(opened, Unlike(Words()), metric="cosine")
    await store.aadd_documents(pages(**PAGES))
    known = opened.core.store.corpora.chunks(CORPUS, None)
    assert {one.digest.partition(":")[0] for one in known.values()} == {"unlike"}
    assert {one.vector for one in known.values()} == {b""}


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/cache.db"])
def test_who_writes_and_asks_at_once_gets_what_was_written(tmp_path: Any, url: str) -> None:
    """Each thread has words of its own, so that what the others write changes nothing for it."""
    with open_cache(url.format(tmp_path)) as cache:
        store = watched(cache)
        asking = Asking(cache, store, k=1)

        def run(at: int) -> int:
            hits = 0
            for version in range(8):
                store.add_documents(pages(**{f"page{at}": f"own{at} text{at} {version}"}))
                for _ in range(3):
                    outcome = asking.ask(f"own{at} text{at}")
                    if isinstance(outcome, Hit):
                        assert outcome.answer.text == f"own{at} text{at} {version}"
                        hits += 1
            return hits

        with ThreadPoolExecutor(6) as pool:
            assert sum(pool.map(run, range(6))) > 0
        assert cache.standing(CORPUS).intents == ()  # type: ignore[union-attr]  # it is watched
