"""`CachedChain(grounding="watch")`: no retrieval on a hit, and each hit is what would be made now."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from lc_watched import FORMS, HANDBOOK, Compass, Desk, is_hit, page

from langchain_stampcache import CachedChain, watch
from stampcache import Cache, Reason, open_cache, scope
from stampcache.adapters import readings

NORTH = {"input": "@0 what is north?"}


@pytest.fixture
def desk(opened: Cache) -> Desk:
    return Desk(opened, page(10), page(50), page(90))


@pytest.mark.parametrize("form", FORMS)
def test_a_hit_retrieves_nothing_and_is_what_was_made(desk: Desk, form: str) -> None:
    chain, ask = desk.chain(), FORMS[form]
    made, again = ask(chain, NORTH), ask(chain, NORTH)
    assert (is_hit(made), is_hit(again)) == (False, True)
    assert again["answer"] == made["answer"]
    assert [one.id for one in again["context"]] == ["10", "50"]
    assert (desk.compass.questions, desk.chat.calls) == (1, 1)


@pytest.mark.parametrize("made_by", FORMS)
@pytest.mark.parametrize("asked_by", ["invoke", "astream"])
def test_a_write_in_reach_ends_an_answer_and_one_out_of_reach_does_not(
    desk: Desk, made_by: str, asked_by: str
) -> None:
    chain = desk.chain()
    FORMS[made_by](chain, NORTH)
    desk.store.add_documents([page(60)])
    assert is_hit(FORMS[asked_by](chain, NORTH))
    desk.store.add_documents([page(40)])
    told = FORMS[asked_by](chain, NORTH)
    assert told["cache"]["reason"] == Reason.INVALIDATED.value
    assert [one.id for one in told["context"]] == ["10", "40"]


def change(store: Any) -> None:
    store.add_documents([page(50, "now says something else")])


def delete(store: Any) -> None:
    store.delete(["10"])


@pytest.mark.parametrize("write", [change, delete])
def test_a_cited_chunk_that_is_changed_or_deleted_ends_an_answer(
    desk: Desk, write: Callable[[Any], None]
) -> None:
    chain = desk.chain()
    chain.invoke(NORTH)
    write(desk.store)
    assert not is_hit(chain.invoke(NORTH))


def test_a_chunk_that_is_not_cited_may_change_and_go(desk: Desk) -> None:
    chain = desk.chain()
    chain.invoke(NORTH)
    desk.store.add_documents([page(90, "now says something else")])
    desk.store.delete(["90"])
    assert is_hit(chain.invoke(NORTH))


@pytest.mark.parametrize(
    "again",
    [
        page(50),
        Document("@50  ", id="50", metadata={"source": "50.md"}),
        page(50, updated_at="yesterday"),
        page(50, id="new", source="50.md"),
    ],
    ids=["unchanged", "white space", "volatile metadata", "another id"],
)
def test_a_document_that_is_ingested_again_keeps_its_answers(desk: Desk, again: Document) -> None:
    chain = desk.chain()
    chain.invoke(NORTH)
    desk.store.delete(["50"])
    desk.store.add_documents([again])
    assert is_hit(chain.invoke(NORTH))


def test_what_is_no_corpus_of_its_own_is_given_by_the_store(desk: Desk) -> None:
    assert is_hit_twice(desk.chain())
    assert is_hit_twice(desk.chain(corpus=HANDBOOK, version="another"))
    assert desk.cache.invalidate(corpus=HANDBOOK) == 2


def is_hit_twice(chain: Any) -> bool:
    return [is_hit(chain.invoke(NORTH)) for _ in range(2)] == [False, True]


def test_nothing_is_served_while_documents_are_written(desk: Desk) -> None:
    chain = desk.chain()
    chain.invoke(NORTH)
    seen = []
    inner = desk.store.inner
    add = inner.add_documents

    def adding(documents: list[Document], **options: Any) -> list[str]:
        seen.append(chain.invoke(NORTH)["cache"]["reason"])
        return add(documents, **options)

    inner.__dict__["add_documents"] = adding
    desk.store.add_documents([page(170)])
    assert seen == [Reason.BEING_WRITTEN.value]
    assert is_hit(chain.invoke(NORTH))


@pytest.mark.parametrize("form", FORMS)
def test_what_is_made_while_documents_are_written_is_not_kept(desk: Desk, form: str) -> None:
    """It may have read half of them."""
    chain, inner = desk.chain(), desk.store.inner
    delete = inner.delete

    def deleting(ids: Any = None, **options: Any) -> None:
        delete(ids, **options)
        thread = threading.Thread(target=FORMS[form], args=(chain, NORTH))
        thread.start()
        thread.join()

    inner.__dict__["delete"] = deleting
    desk.store.delete(["10"])
    desk.store.add_documents([page(10)])
    told = chain.invoke(NORTH)
    assert [one.id for one in told["context"]] == ["10", "50"]


def test_a_write_while_an_answer_is_made_is_not_missed(desk: Desk) -> None:
    class Writing:
        done = False

    def answer(inputs: dict[str, Any]) -> str:
        if not Writing.done:
            Writing.done = True
            desk.store.add_documents([page(5)])
        return f"answer from {[one.id for one in inputs['context']]}"

    chain = desk.chain(answer=RunnableLambda(answer), version="1")
    assert chain.invoke(NORTH)["answer"] == "answer from ['10', '50']"
    assert chain.invoke(NORTH)["answer"] == "answer from ['5', '10']"
    assert is_hit(chain.invoke(NORTH))


@pytest.mark.parametrize("said", ["some answer", ""], ids=["kept", "not kept"])
def test_who_asks_after_a_write_is_not_given_what_was_begun_before(desk: Desk, said: str) -> None:
    begun, go_on = threading.Event(), threading.Event()
    calls: list[int] = []

    def answer(inputs: dict[str, Any]) -> str:
        calls.append(1)
        if len(calls) == 1:
            begun.set()
            go_on.wait(20)
        return said

    chain = desk.chain(answer=RunnableLambda(answer), version="1")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(chain.invoke, NORTH)
        begun.wait(20)
        desk.store.add_documents([page(5)])
        second = pool.submit(chain.invoke, NORTH)
        time.sleep(0.1)  # it joins the first one; where it is slower, nothing is shown
        go_on.set()
        assert [one.id for one in first.result(20)["context"]] == ["10", "50"]
        assert [one.id for one in second.result(20)["context"]] == ["5", "10"]


def test_an_answer_that_searched_for_more_goes_with_any_write(desk: Desk) -> None:
    """Its answer chain asks the index once more, so it has two searches to be true to."""

    def answer(inputs: dict[str, Any]) -> str:
        more = desk.store.similarity_search("@170 and the other way?", k=1)
        return f"answer from {[one.id for one in [*inputs['context'], *more]]}"

    chain = desk.chain(answer=RunnableLambda(answer), version="1")
    chain.invoke(NORTH)
    assert is_hit(chain.invoke(NORTH))
    desk.store.add_documents([page(170)])
    assert chain.invoke(NORTH)["answer"] == "answer from ['10', '50', '170']"


def test_what_reads_from_another_watched_corpus_is_not_kept(desk: Desk) -> None:
    other = Desk(desk.cache, page(1), corpus="another")

    def answer(inputs: dict[str, Any]) -> str:
        return str(len(inputs["context"] + other.store.similarity_search("@0 other")))

    chain = desk.chain(answer=RunnableLambda(answer), version="1")
    assert [is_hit(chain.invoke(NORTH)) for _ in range(2)] == [False, False]
    assert desk.cache.stats(everything=True).counters["adapter.unwatched"] == 2


def test_a_part_that_is_exchanged_for_one_that_nobody_watches_stores_nothing(desk: Desk) -> None:
    retriever = desk.retriever()
    chain = desk.chain(retriever)
    retriever.vectorstore = InMemoryVectorStore(Compass())
    retriever.vectorstore.add_documents([page(1)])
    assert [is_hit(chain.invoke(NORTH)) for _ in range(2)] == [False, False]


def test_another_embedder_or_another_k_is_another_chain(desk: Desk) -> None:
    desk.chain().invoke(NORTH)
    assert not is_hit(desk.chain(desk.retriever(k=1)).invoke(NORTH))
    inner = InMemoryVectorStore(Compass("another"))
    inner.add_documents([page(10), page(50), page(90)])
    other = watch(inner, cache=desk.cache, corpus=HANDBOOK)
    assert not is_hit(desk.chain(other.as_retriever(search_kwargs={"k": 2})).invoke(NORTH))


def test_an_embedder_that_is_exchanged_amid_a_sequence_is_another_chain(desk: Desk) -> None:
    retriever = desk.retriever()
    chain = desk.chain(RunnableLambda(lambda given: given["input"]) | retriever)
    assert is_hit_twice(chain)
    inner = InMemoryVectorStore(Compass("another"))
    inner.add_documents([page(10), page(50), page(90)])
    retriever.vectorstore = watch(inner, cache=desk.cache, corpus=HANDBOOK)
    assert is_hit_twice(chain)


def test_without_a_watch_nothing_is_stored_and_it_says_so(desk: Desk) -> None:
    with open_cache("memory://") as elsewhere:
        chain = CachedChain(
            retriever=desk.retriever(), answer=desk.answer, cache=elsewhere, grounding="watch"
        )
        told = [chain.invoke(NORTH) for _ in range(2)]
    assert [is_hit(one) for one in told] == [False, False]


def test_tenants_share_the_index_and_no_answers(desk: Desk) -> None:
    chain = desk.chain()
    hits = []
    for tenant in ("acme", "globex", "acme"):
        with scope(tenant=tenant):
            hits.append(is_hit(chain.invoke(NORTH)))
    assert hits == [False, False, True]
    desk.store.add_documents([page(0)])
    for tenant in ("acme", "globex"):
        with scope(tenant=tenant):
            assert not is_hit(chain.invoke(NORTH))


def test_a_question_that_stands_alone_is_what_reaches(desk: Desk) -> None:
    chain = desk.chain(condense=RunnableLambda(lambda inputs: "@0 what is north?"))
    talk = {"input": "and that?", "chat_history": [("human", "north")]}
    chain.invoke(talk)
    assert is_hit(chain.invoke(NORTH))
    assert is_hit(chain.invoke(talk))
    desk.store.add_documents([page(0)])
    assert not is_hit(chain.invoke(talk))


def test_a_stream_that_is_read_in_part_leaves_no_ear_behind(desk: Desk) -> None:
    chain = desk.chain()
    with readings() as heard:
        chunks = chain.stream(NORTH)
        next(chunks)
        before = len(heard)
        desk.store.similarity_search("@20 other", k=1)
        assert len(heard) == before + 1
        chunks.close()
    assert not is_hit(chain.invoke(NORTH))


async def test_tasks_do_not_hear_each_other(opened: Cache) -> None:
    desk = Desk(opened, *(page(angle) for angle in range(0, 180, 20)))
    chain = desk.chain()
    asked = [{"input": f"@{angle} what?"} for angle in (5, 45, 85, 125)]
    await asyncio.gather(*(chain.ainvoke(one) for one in asked))
    desk.store.add_documents([page(46)])
    hits = [is_hit(one) for one in await asyncio.gather(*map(chain.ainvoke, asked))]
    assert hits == [True, False, True, True]


def test_a_stream_that_was_begun_before_a_write_is_not_joined_after_it(desk: Desk) -> None:
    chain = desk.chain()
    first = chain.stream(NORTH)
    found = next(one["context"] for one in first if "context" in one)
    desk.store.add_documents([page(5)])
    again = FORMS["stream"](chain, NORTH)
    list(first)
    assert [one.id for one in found] == ["10", "50"]
    assert [one.id for one in again["context"]] == ["5", "10"]
    assert [one.id for one in chain.invoke(NORTH)["context"]] == ["5", "10"]


def test_several_that_read_along_with_one_stream_store_it_once(desk: Desk) -> None:
    chain = desk.chain()
    first, second = chain.stream(NORTH), chain.stream(NORTH)
    next(first), next(second)
    list(second)
    list(first)
    assert desk.chat.calls == 1
    assert is_hit(chain.invoke(NORTH))
    desk.store.add_documents([page(40)])
    assert not is_hit(chain.invoke(NORTH))


# -- by meaning ------------------------------------------------------------------------------------


class Same:
    """An embedder of questions for which all are one."""

    name = "same"

    def embed(self, texts: Any) -> Any:
        return np.ones((len(texts), 4), np.float32)


def test_a_similar_question_is_served_without_retrieval_while_the_answer_stands() -> None:
    with open_cache("memory://", embedder=Same(), calibration=0.9) as cache:
        desk = Desk(cache, page(10), page(50), page(90))
        chain = desk.chain()
        chain.invoke(NORTH)
        other = {"input": "@0 tell me about the north"}
        told = chain.invoke(other)
        assert (told["cache"]["level"], desk.compass.questions) == ("semantic", 1)
        desk.store.add_documents([page(60)])
        assert is_hit(chain.invoke(other))
        desk.store.add_documents([page(40)])
        assert not is_hit(chain.invoke(other))


def test_a_similar_question_is_not_served_while_the_corpus_cannot_be_trusted() -> None:
    with open_cache("memory://", embedder=Same(), calibration=0.9) as cache:
        desk = Desk(cache, page(10), page(50))
        chain = desk.chain()
        chain.invoke(NORTH)
        inner = desk.store.inner
        seen = []
        add = inner.add_documents

        def adding(documents: list[Document], **options: Any) -> list[str]:
            seen.append(chain.invoke({"input": "@0 tell me"})["cache"])
            return add(documents, **options)

        inner.__dict__["add_documents"] = adding
        desk.store.add_documents([page(170)])
        assert [one["hit"] for one in seen] == [False]
        assert seen[0]["reason"] == Reason.BEING_WRITTEN.value


def test_explain_tells_the_reach_of_a_similar_question_too() -> None:
    with open_cache("memory://", embedder=Same(), calibration=0.9) as cache:
        desk = Desk(cache, page(10), page(50), page(90))
        chain = desk.chain()
        chain.invoke(NORTH)
        told = chain.explain({"input": "@0 tell me about the north"})
        assert "ends it at cosine 0.64" in str(told)
