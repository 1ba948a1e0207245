"""Parent documents beside a watched index."""

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.stores import InMemoryStore
from lc_watching import CORPUS, Asking, watched

from langchain_stampcache import watch
from stampcache import Cache, Hit, Stale, open_cache
from stampcache.adapters import readings

retrievers = pytest.importorskip("langchain_classic.retrievers")
splitters = pytest.importorskip("langchain_text_splitters")

TEXT = "travel by train is paid.\n\nlunch costs four euros."


def retriever(cache: Cache, docstore: Any) -> Any:
    return retrievers.ParentDocumentRetriever(
        vectorstore=watched(cache),
        docstore=docstore,
        child_splitter=splitters.CharacterTextSplitter(chunk_size=30, chunk_overlap=0),
    )


class Parents(Asking):
    """Answers from what a retriever of parents finds."""

    def __init__(self, cache: Cache, found: Any) -> None:
        super().__init__(cache, found.vectorstore)
        self.retriever = found

    def find(self, question: str) -> list[Document]:
        return self.retriever.invoke(question)  # type: ignore[no-any-return]  # typed loosely there


def test_a_changed_parent_ends_what_was_made_from_it(opened: Cache) -> None:
    docstore: Any = watch(InMemoryStore(), cache=opened, corpus=CORPUS)
    found = retriever(opened, docstore)
    found.add_documents([Document(TEXT, metadata={"source": "t.md"})], ids=["t"])
    asking = Parents(opened, found)
    asking.ask("is travel by train paid")
    assert isinstance(asking.ask("is travel by train paid"), Hit)
    docstore.mset([("t", Document(TEXT.replace("paid", "not paid")))])
    assert isinstance(asking.ask("is travel by train paid"), Stale)
    hit = asking.ask("is travel by train paid")
    assert isinstance(hit, Hit)
    assert "not paid" in hit.answer.text
    docstore.mdelete(["t"])
    assert isinstance(asking.ask("is travel by train paid"), Stale)


async def test_async_too(opened: Cache) -> None:
    docstore: Any = watch(InMemoryStore(), cache=opened, corpus=CORPUS)
    found = retriever(opened, docstore)
    await found.aadd_documents([Document(TEXT, metadata={"source": "t.md"})], ids=["t"])
    asking = Parents(opened, found)
    asking.ask("is travel by train paid")
    await docstore.amset([("t", Document("nothing is paid"))])
    assert isinstance(asking.ask("is travel by train paid"), Stale)
    await docstore.amdelete(["t"])
    assert isinstance(asking.ask("is travel by train paid"), Stale)
    with readings() as heard:
        assert await docstore.amget(["t"]) == [None]
    assert "parent" in heard[0].problem


def test_a_parent_that_has_the_id_of_its_summary_is_no_plain_find(opened: Cache) -> None:
    store = watched(opened)
    store.add_documents([Document("train travel", id="t", metadata={"doc_id": "t"})])
    docstore: Any = watch(InMemoryStore(), cache=opened, corpus=CORPUS)
    docstore.mset([("t", Document("travel by train is paid", id="t"))])
    asking = Parents(opened, retrievers.MultiVectorRetriever(vectorstore=store, docstore=docstore))
    asking.ask("train travel")
    assert isinstance(asking.ask("train travel"), Hit)
    docstore.mset([("t", Document("travel by train is not paid", id="t"))])
    assert isinstance(asking.ask("train travel"), Stale)


def test_a_write_that_failed_may_have_done_anything(opened: Cache) -> None:
    class Broken(InMemoryStore):
        def mset(self, key_value_pairs: Any) -> None:
            super().mset(key_value_pairs)
            raise OSError("the disk is full")

    docstore: Any = watch(Broken(), cache=opened, corpus=CORPUS)
    found = retriever(opened, docstore)
    found.vectorstore.add_documents([Document("travel", id="c", metadata={"doc_id": "t"})])
    asking = Parents(opened, found)
    asking.ask("travel")
    with pytest.raises(OSError, match="disk"):
        docstore.mset([("t", Document("new"))])
    assert isinstance(asking.ask("travel"), Stale)


def test_a_write_that_a_crash_cut_off_is_not_looked_up_in_the_index(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/cache.db"
    inner: Any = InMemoryStore()
    with open_cache(url) as cache:
        docstore: Any = watch(inner, cache=cache, corpus=CORPUS)
        found = retriever(cache, docstore)
        found.vectorstore.add_documents([Document("travel", id="c", metadata={"doc_id": "t"})])
        docstore.mset([("t", Document("travel by train is paid"))])
        asking = Parents(cache, found)
        asking.ask("travel")
        assert isinstance(asking.ask("travel"), Hit)
        docstore.watched.run(docstore.watched.announce(None, beyond=True))
        inner.mset([("t", Document("nothing"))])
        cache.core.writing.clear()  # as a crash does
        watched(cache, found.vectorstore.inner)
        assert isinstance(asking.ask("travel"), Stale)


def test_it_does_what_its_inner_store_does(opened: Cache) -> None:
    inner: Any = InMemoryStore()
    docstore = watch(inner, cache=opened, corpus=CORPUS)
    docstore.mset([("a", 1), ("b", 2)])
    assert docstore.mget(["a", "c"]) == [1, None]
    assert sorted(docstore.yield_keys()) == ["a", "b"]
    assert docstore.store is inner.store
    assert docstore.inner is inner
    docstore.mdelete(["a"])
    assert list(inner.yield_keys(prefix="b")) == ["b"]
    with pytest.raises(TypeError):
        __import__("pickle").dumps(docstore)
