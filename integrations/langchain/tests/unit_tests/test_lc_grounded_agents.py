"""Agents and nodes of graphs over a watched corpus: any write to it ends what they made."""

from typing import Any

import pytest

pytest.importorskip("langchain", minversion="1.2.18")
pytest.importorskip("langgraph")

from langchain_agents import Agent, reported
from langchain_core.tools import StructuredTool
from langgraph.graph import StateGraph
from langgraph.types import CachePolicy
from lc_watched import HANDBOOK, Desk, page
from test_lc_node_cache import got, put
from typing_extensions import TypedDict

from langchain_stampcache import CachedChain, StampCacheMiddleware, StampNodeCache
from stampcache import Cache, ConfigError, Reason


@pytest.fixture
def desk(opened: Cache) -> Desk:
    return Desk(opened, page(10), page(50))


def agent(desk: Desk) -> Agent:
    def search(query: str) -> str:
        """Search the handbook."""
        return str(desk.store.similarity_search(query, k=1)[0].id)

    return Agent(
        desk.cache,
        tools=[StructuredTool.from_function(search)],
        corpus=HANDBOOK,
        grounding="watch",
        version="1",
    )


def test_an_agent_answers_anew_after_any_write(desk: Desk) -> None:
    asked = agent(desk)
    assert [reported(asked.ask())[0] for _ in range(2)] == [False, True]
    desk.store.add_documents([page(170)])
    assert reported(asked.ask()) == (False, Reason.INVALIDATED.value)
    assert reported(asked.ask())[0]


def test_an_agent_is_not_served_while_documents_are_written(desk: Desk) -> None:
    asked, seen = agent(desk), []
    asked.ask()
    inner = desk.store.inner
    add = inner.add_documents

    def adding(documents: Any, **options: Any) -> Any:
        seen.append(reported(asked.ask()))
        return add(documents, **options)

    inner.__dict__["add_documents"] = adding
    desk.store.add_documents([page(1)])
    assert seen == [(False, Reason.BEING_WRITTEN.value)]


def test_what_an_agent_is_to_watch_has_a_name(opened: Cache) -> None:
    with pytest.raises(ConfigError, match="give corpus="):
        StampCacheMiddleware(opened, grounding="watch")
    with pytest.raises(ConfigError, match="an agent takes"):
        StampCacheMiddleware(opened, corpus=HANDBOOK, grounding="recheck")  # type: ignore[arg-type]  # given as the test has it


def test_a_node_runs_anew_after_any_write(desk: Desk) -> None:
    nodes = StampNodeCache(desk.cache, corpus=HANDBOOK, grounding="watch")
    put(nodes, "made")
    assert got(nodes) == "made"
    desk.store.add_documents([page(170)])
    assert got(nodes) is None


def test_a_node_that_read_while_documents_were_written_is_not_kept(desk: Desk) -> None:
    nodes = StampNodeCache(desk.cache, corpus=HANDBOOK, grounding="watch")
    inner = desk.store.inner
    delete = inner.delete

    def deleting(ids: Any = None, **options: Any) -> None:
        delete(ids, **options)
        put(nodes, "made of less")

    inner.__dict__["delete"] = deleting
    desk.store.delete(["10"])
    desk.store.add_documents([page(10)])
    assert got(nodes) is None


def test_what_nodes_are_to_watch_has_a_name(opened: Cache) -> None:
    with pytest.raises(ConfigError, match="give corpus="):
        StampNodeCache(opened, grounding="watch")
    with pytest.raises(ConfigError, match="nodes take"):
        StampNodeCache(opened, corpus=HANDBOOK, grounding="none")  # type: ignore[arg-type]  # given as the test has it


class State(TypedDict):
    question: str
    answer: str


def test_a_node_inside_of_a_chain_that_is_served_is_no_search_of_the_chain(desk: Desk) -> None:
    """The chain searches for itself, too; what its node read is not seen when that is served."""

    def near(state: State) -> dict[str, str]:
        return {"answer": str(desk.store.similarity_search("@0 near", k=1)[0].id)}

    graph: Any = StateGraph(State)
    graph.add_node("near", near, cache_policy=CachePolicy(key_func=lambda state: "near"))
    graph.set_entry_point("near")
    nodes = StampNodeCache(desk.cache, corpus=HANDBOOK, grounding="watch", version="1")
    app = graph.compile(cache=nodes)

    def answer(question: str) -> str:
        far = desk.store.similarity_search("@90 far", k=1)[0].id
        return f"{far} {app.invoke({'question': question})['answer']}"

    app.invoke({"question": "before"})
    chain: Any = CachedChain.around(
        answer, cache=desk.cache, grounding="watch", corpus=HANDBOOK, version="1"
    )
    assert [chain.invoke("both?") for _ in range(2)] == ["50 10", "50 10"]
    desk.store.add_documents([page(1)])
    assert chain.invoke("both?") == "50 1"
