"""A LangGraph graph with an expensive node that is cached, a checkpointer, and several tenants.

    python examples/langgraph_graph.py "How many days of leave do I have?"

It asks in two conversations of one tenant and in one of another. The nodes that read the documents and
answer run once for each tenant; the node that greets is not cached and runs each time. DeepSeek answers,
if DEEPSEEK_API_KEY is set, or any OpenAI-compatible server, as DEEPSEEK_BASE_URL and DEEPSEEK_MODEL say;
with neither, a stand-in repeats what was retrieved.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import CachePolicy
from pydantic import SecretStr

import stampcache
from langchain_stampcache import StampNodeCache, node_key

DOCUMENTS = {
    "acme": {"leave.md": "Staff of Acme have 30 days of leave."},
    "globex": {"leave.md": "Staff of Globex have 25 days of leave."},
}
CORPUS = "handbooks"
Graph = CompiledStateGraph[Any, Any, Any, Any]


class State(MessagesState, total=False):
    """A conversation, whose company it is about, and what was found for its last question."""

    company: str
    found: list[Document]


class Repeating(BaseChatModel):
    """Stands in for a model where none is set: it repeats what it is given to read."""

    @property
    def _llm_type(self) -> str:
        return "repeating"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        usage = {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30}
        reply = AIMessage(messages[0].text, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=reply)])


def language_model(environment: Mapping[str, str]) -> BaseChatModel:
    """Return DeepSeek, the server that the environment names, or what stands in for both."""
    if not environment.get("DEEPSEEK_API_KEY") and not environment.get("DEEPSEEK_BASE_URL"):
        return Repeating()
    from langchain_deepseek import ChatDeepSeek

    return ChatDeepSeek(
        model=environment.get("DEEPSEEK_MODEL", "deepseek-chat"),
        base_url=environment.get("DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
        api_key=SecretStr(environment.get("DEEPSEEK_API_KEY", "none")),
        temperature=0,
    )


def greet(state: State) -> dict[str, Any]:
    """Say which turn of the conversation it is: different each time, and not cached."""
    turns = sum(isinstance(each, HumanMessage) for each in state["messages"])
    return {"messages": [AIMessage(f"Turn {turns}. Let me look that up.")]}


def read(state: State) -> dict[str, Any]:
    """Find the documents that share a word with the question: here stands your index."""
    question = next(each for each in reversed(state["messages"]) if isinstance(each, HumanMessage))
    words = set(question.text.lower().rstrip("?").split())
    return {
        "found": [
            Document(text, id=name, metadata={"source": name})
            for name, text in DOCUMENTS[state["company"]].items()
            if words & set(text.lower().rstrip(".").split())
        ]
    }


def build(cache: stampcache.Cache, model: BaseChatModel) -> Graph:
    """Return the graph; its two slow nodes are cached for an hour."""

    def answer(state: State) -> dict[str, Any]:
        """Answer from what was found."""
        texts = "\n".join(document.page_content for document in state["found"])
        return {"messages": [model.invoke([SystemMessage(texts), *state["messages"]])]}

    cached = CachePolicy(key_func=node_key, ttl=3600)  # LangGraph's own key would never hit here
    graph = StateGraph(State)
    graph.add_node("greet", greet)
    graph.add_node("read", read, cache_policy=cached)
    graph.add_node("answer", answer, cache_policy=cached)
    graph.add_edge(START, "greet")
    graph.add_edge("greet", "read")
    graph.add_edge("read", "answer")
    # version= stands for the code of the nodes and for the model: change it with either
    nodes = StampNodeCache(cache, corpus=CORPUS, version="1")
    return graph.compile(cache=nodes, checkpointer=InMemorySaver())


def ask(graph: Graph, question: str, *, tenant: str, thread: str) -> tuple[str, list[str]]:
    """Answer a question of a tenant; also tell which nodes were not run."""
    given = {"messages": [HumanMessage(question)], "company": tenant}
    skipped, text = [], ""
    with stampcache.scope(tenant=tenant):
        for update in graph.stream(given, {"configurable": {"thread_id": f"{tenant}/{thread}"}}):
            from_cache = "__metadata__" in update
            for name, written in update.items():
                if name != "__metadata__" and from_cache:
                    skipped.append(name)
                if name == "answer":
                    text = written["messages"][-1].text
    return text, skipped


def edit(cache: stampcache.Cache, tenant: str, source: str, text: str) -> None:
    """Change a document; what nodes made from it is then made anew."""
    DOCUMENTS[tenant][source] = text
    cache.invalidate(corpus=CORPUS, source=source)


def main() -> None:
    """Ask in three conversations."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with stampcache.open_cache("memory://", tenants="required") as cache:
        graph = build(cache, language_model(os.environ))
        for tenant, thread in (("acme", "one"), ("acme", "two"), ("globex", "one")):
            print(tenant, *ask(graph, sys.argv[1], tenant=tenant, thread=thread))


if __name__ == "__main__":
    main()
