"""`CachedChain.around(grounding="watch")`: its searches are heard, else any write ends an answer."""

import threading
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from lc_watched import FORMS, HANDBOOK, PROMPT, Desk, is_hit, page, watch_step

from langchain_stampcache import CachedChain, CachedRetriever
from stampcache import Cache

NORTH = "@0 what is north?"


@pytest.fixture
def desk(opened: Cache) -> Desk:
    return Desk(opened, page(10), page(50), page(90))


def around(desk: Desk, chain: Any, **options: Any) -> Any:
    options = {"grounding": "watch", "with_fields": True, **options}
    return CachedChain.around(chain, cache=desk.cache, **options)


def pieces(desk: Desk) -> Any:
    """Return the usual chain: it retrieves, and answers in pieces."""
    both = RunnableParallel(context=desk.retriever(), input=RunnablePassthrough())
    return both | PROMPT | desk.chat | StrOutputParser()


@pytest.mark.parametrize("form", FORMS)
def test_its_searches_are_heard(desk: Desk, form: str) -> None:
    chain, ask = around(desk, pieces(desk)), FORMS[form]
    assert [is_hit(ask(chain, NORTH)) for _ in range(2)] == [False, True]
    assert "cosine 0.6428 or more" in watch_step(chain.explain(NORTH))
    desk.store.add_documents([page(60)])
    assert is_hit(ask(chain, NORTH))
    assert desk.compass.questions == 1
    desk.store.add_documents([page(40)])
    assert not is_hit(ask(chain, NORTH))


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_heard_goes_with_any_write(desk: Desk, form: str) -> None:
    """A thread that inherits no context searches unheard."""

    def answer(question: str) -> str:
        found: list[Any] = []
        search = threading.Thread(
            target=lambda: found.extend(desk.store.similarity_search(question, k=1))
        )
        search.start()
        search.join()
        return f"from {found[0].id}"

    chain, ask = around(desk, RunnableLambda(answer), corpus=HANDBOOK, version="1"), FORMS[form]
    assert [is_hit(ask(chain, NORTH)) for _ in range(2)] == [False, True]
    said = watch_step(chain.explain(NORTH))
    assert said == (
        "any write to corpus 'handbook' ends it (its search went through no watched index)"
    )
    desk.store.add_documents([page(170)])
    assert not is_hit(ask(chain, NORTH))


def test_a_chain_inside_that_is_cached_is_no_search_of_its_own(desk: Desk) -> None:
    """What the inner one read is not seen on its hit; so any write ends the outer answer."""
    inner = desk.chain(answer=RunnableLambda(lambda given: "inner"), version="1")

    def answer(question: str) -> str:
        near = desk.store.similarity_search("@90 east", k=1)
        far = inner.invoke({"input": "@0 inner"})["context"]
        return f"{near[0].id} {far[0].id}"

    inner.invoke({"input": "@0 inner"})
    chain = around(desk, RunnableLambda(answer), corpus=HANDBOOK, version="1")
    assert [chain.invoke(NORTH)["answer"] for _ in range(2)] == ["90 10"] * 2
    assert is_hit(chain.invoke(NORTH))
    assert watch_step(chain.explain(NORTH)).startswith("any write")
    desk.store.add_documents([page(0)])
    assert chain.invoke(NORTH)["answer"] == "90 0"


def test_a_retriever_inside_that_is_cached_is_no_search_of_its_own(desk: Desk) -> None:
    kept = CachedRetriever(inner=desk.retriever(), cache=desk.cache, grounding="watch")
    kept.invoke(NORTH)
    chain = around(desk, kept | RunnableLambda(lambda found: found[0].id))
    assert [chain.invoke(NORTH)["answer"] for _ in range(2)] == ["10", "10"]
    assert watch_step(chain.explain(NORTH)).startswith("any write")
    desk.store.add_documents([page(0)])
    assert chain.invoke(NORTH)["answer"] == "0"


def test_it_is_found_again_by_another_object(desk: Desk) -> None:
    around(desk, pieces(desk)).invoke(NORTH)
    assert is_hit(around(desk, pieces(desk)).invoke(NORTH))


@pytest.mark.parametrize("form", ["invoke", "ainvoke", "stream"])
def test_a_graph_is_heard_in_its_nodes(desk: Desk, form: str) -> None:
    graphs = pytest.importorskip("langgraph.graph")
    graph = graphs.StateGraph(dict)
    graph.add_node(
        "find", lambda state: {**state, "context": desk.retriever().invoke(state["input"])}
    )
    graph.add_node("say", lambda state: {**state, "answer": f"from {len(state['context'])}"})
    graph.add_edge("find", "say")
    graph.set_entry_point("find")
    chain: Any = CachedChain.around(
        graph.compile(), cache=desk.cache, grounding="watch", corpus=HANDBOOK, version="1"
    )
    asked, ask = {"input": NORTH}, FORMS[form]
    assert [is_hit(ask(chain, asked)) for _ in range(2)] == [False, True]
    assert "cosine 0.6428 or more" in watch_step(chain.explain(asked))
    desk.store.add_documents([page(60)])
    assert is_hit(ask(chain, asked))
    desk.store.add_documents([page(40)])
    assert not is_hit(ask(chain, asked))
