"""`CachedRetriever(grounding="watch")`: what was found is kept until a write would change it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from lc_watched import Compass, Desk, page

from langchain_stampcache import CachedChain, CachedRetriever
from stampcache import Cache, ConfigError

NORTH = "@0 what is north?"
Form = Callable[[Any, str], list[Document]]
FORMS: dict[str, Form] = {
    "invoke": lambda retriever, query: retriever.invoke(query),
    "ainvoke": lambda retriever, query: asyncio.run(retriever.ainvoke(query)),
    "batch": lambda retriever, query: retriever.batch([query])[0],
    "abatch": lambda retriever, query: asyncio.run(retriever.abatch([query]))[0],
}


@pytest.fixture
def desk(opened: Cache) -> Desk:
    return Desk(opened, page(10), page(50), page(90))


def kept(desk: Desk, **search: Any) -> CachedRetriever:
    return CachedRetriever(inner=desk.retriever(**search), cache=desk.cache, grounding="watch")


@pytest.mark.parametrize("form", FORMS)
def test_it_finds_what_the_index_would_find(desk: Desk, form: str) -> None:
    retriever, find = kept(desk), FORMS[form]
    assert [find(retriever, NORTH) for _ in range(2)] == [
        desk.store.inner.get_by_ids(["10", "50"])
    ] * 2
    desk.store.add_documents([page(60)])
    find(retriever, NORTH)
    assert desk.compass.questions == 1
    desk.store.add_documents([page(40)])
    assert [one.id for one in find(retriever, NORTH)] == ["10", "40"]
    assert "cosine 0.766" in str(retriever.explain(NORTH))


def test_a_part_that_is_exchanged_stores_nothing(desk: Desk) -> None:
    retriever = kept(desk)
    retriever.inner.vectorstore = InMemoryVectorStore(Compass())
    retriever.inner.vectorstore.add_documents([page(1)])
    retriever.invoke(NORTH)
    retriever.inner.vectorstore.delete(["1"])
    assert retriever.invoke(NORTH) == []


def test_options_of_a_call_are_part_of_what_is_kept(desk: Desk) -> None:
    retriever = kept(desk)
    assert len(retriever.invoke(NORTH)) == 2
    assert len(retriever.invoke(NORTH, k=1)) == 1
    desk.store.add_documents([page(40)])
    assert [one.id for one in retriever.invoke(NORTH, k=1)] == ["10"]
    assert desk.compass.questions == 2


# -- sweeps ----------------------------------------------------------------------------------------


def sweeper(desk: Desk, kind: str) -> Any:
    if kind == "retriever":
        return kept(desk)
    return desk.chain()


def ask(thing: Any, question: str) -> Any:
    return thing.invoke(question if isinstance(thing, CachedRetriever) else {"input": question})


@pytest.mark.parametrize("kind", ["retriever", "chain"])
@pytest.mark.parametrize("form", ["sweep", "asweep"])
def test_a_sweep_finds_what_was_written_around_the_watch(desk: Desk, kind: str, form: str) -> None:
    thing = sweeper(desk, kind)
    for angle in (0, 85):
        ask(thing, f"@{angle} what?")
    swept = thing.sweep() if form == "sweep" else asyncio.run(thing.asweep())
    assert (swept.checked, swept.drifted, swept.problem) == (2, (), "")
    desk.store.inner.add_documents([page(1, "around the watch")])
    swept = thing.sweep() if form == "sweep" else asyncio.run(thing.asweep())
    assert (swept.checked, len(swept.drifted)) == (2, 1)
    assert "resync()" in swept.problem
    asked = desk.compass.questions
    ask(thing, "@85 what?")
    assert desk.compass.questions == asked + 1  # nothing is served
    desk.store.resync()
    ask(thing, "@85 what?")
    ask(thing, "@85 what?")
    assert desk.compass.questions <= asked + 2


def test_a_sweep_with_tolerance_marks_and_goes_on(desk: Desk) -> None:
    chain = desk.chain()
    for angle in (0, 85):
        chain.invoke({"input": f"@{angle} what?"})
    desk.store.inner.add_documents([page(1, "around the watch")])
    swept = chain.sweep(tolerate=0.5)
    assert (len(swept.drifted), swept.problem) == (1, "")
    assert chain.invoke({"input": "@85 what?"})["cache"]["hit"]
    assert not chain.invoke({"input": "@0 what?"})["cache"]["hit"]


def test_a_sweep_passes_over_what_it_cannot_ask_again(desk: Desk) -> None:
    chain = desk.chain()
    chain.invoke({"input": "@0 what?", "chat_history": [("human", "hello")]})
    chain.invoke({"input": "@0 what?", "language": "German"})
    assert chain.sweep().checked == 0


def test_what_changed_without_effect_is_no_drift(desk: Desk) -> None:
    chain = desk.chain()
    chain.invoke({"input": NORTH})
    desk.store.add_documents([Document("@50  ", id="50", metadata={"source": "50.md", "mtime": 7})])
    assert chain.invoke({"input": NORTH})["cache"]["hit"]
    assert chain.sweep().drifted == ()


def test_volatile_metadata_of_the_watch_is_no_drift(opened: Cache) -> None:
    desk = Desk(opened, page(10, visits=1), volatile=["visits"])
    chain = desk.chain()
    chain.invoke({"input": NORTH})
    desk.store.add_documents([page(10, visits=2)])
    assert chain.invoke({"input": NORTH})["cache"]["hit"]
    assert chain.sweep().drifted == ()


def test_a_sweep_of_a_chain_around_needs_its_retriever(desk: Desk) -> None:
    whole = desk.retriever() | RunnableLambda(lambda found: found[0].id)
    options: Any = {"cache": desk.cache, "grounding": "watch"}
    with pytest.raises(ConfigError, match="retriever="):
        CachedChain.around(whole, **options).sweep()
    chain = CachedChain.around(whole, retriever=desk.retriever(), **options)
    chain.invoke("@0 as a text")
    assert chain.sweep().checked == 1


def test_only_what_is_watched_is_swept(desk: Desk) -> None:
    with pytest.raises(ConfigError, match='grounding="recheck"'):
        desk.chain(grounding="recheck").sweep()
