"""An agent with a tool for retrieval and one that acts, whose final answers go through stampcache.

    python examples/langchain_agent.py "How many days of leave do I have?"

It answers three times. The second answer comes from the cache: neither the model nor a tool is asked.
Then a document changes, and the third is made anew. DeepSeek answers, if DEEPSEEK_API_KEY is set, or any
OpenAI-compatible server, as DEEPSEEK_BASE_URL and DEEPSEEK_MODEL say; with neither, a scripted model.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from pydantic import SecretStr

import stampcache
from langchain_stampcache import StampCacheMiddleware

SYSTEM = "Answer from the handbook: search it first. Send mails only when you are told to."
CORPUS = "handbook"
Agent = CompiledStateGraph[Any, Any, Any, Any]


class Scripted(BaseChatModel):
    """Stands in for a model where none is set: it searches, and repeats what was found."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, *_: Any, **__: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Return itself: the script knows its tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        last = messages[-1]
        if not isinstance(last, HumanMessage):
            reply = AIMessage(f"It says: {last.text}", response_metadata={"finish_reason": "stop"})
        elif last.text.startswith("Mail "):
            to = {"to": last.text.removeprefix("Mail "), "text": "Hello"}
            reply = AIMessage("", tool_calls=[{"name": "send_mail", "args": to, "id": "mail"}])
        else:
            query = {"query": last.text}
            reply = AIMessage("", tool_calls=[{"name": "search", "args": query, "id": "search"}])
        return ChatResult(generations=[ChatGeneration(message=reply)])


def language_model(environment: Mapping[str, str]) -> BaseChatModel:
    """Return DeepSeek, the server that the environment names, or what stands in for both."""
    if not environment.get("DEEPSEEK_API_KEY") and not environment.get("DEEPSEEK_BASE_URL"):
        return Scripted()
    from langchain_deepseek import ChatDeepSeek

    return ChatDeepSeek(
        model=environment.get("DEEPSEEK_MODEL", "deepseek-chat"),
        base_url=environment.get("DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
        api_key=SecretStr(environment.get("DEEPSEEK_API_KEY", "none")),
        temperature=0,
    )


class Handbook:
    """The documents, and the one place where they are changed: what changes is announced there."""

    def __init__(self, texts: Mapping[str, str], cache: stampcache.Cache) -> None:
        self._texts = dict(texts)
        self._cache = cache

    def search(self, query: str) -> str:
        """Return the texts that share a word with the query: here stands your index."""
        words = set(query.lower().rstrip("?").split())
        found = [text for text in self._texts.values() if words & set(text.lower().split())]
        return "\n".join(found) or "nothing"

    def edit(self, source: str, text: str) -> None:
        """Change a document; the answers of agents that read the handbook are then made anew."""
        self._texts[source] = text
        self._cache.invalidate(corpus=CORPUS, source=source)


def tools_for(handbook: Handbook, sent: list[str]) -> list[BaseTool]:
    """Return what the agent may do: search the handbook, and send a mail."""

    @tool
    def search(query: str) -> str:
        """Search the handbook."""
        return handbook.search(query)

    @tool
    def send_mail(to: str, text: str) -> str:
        """Send a mail to somebody."""
        sent.append(f"{to}: {text}")
        return f"sent to {to}"

    return [search, send_mail]


def build(cache: stampcache.Cache, model: BaseChatModel, tools: Sequence[BaseTool]) -> Agent:
    """Return the agent. Only `search` may be skipped: a run that sent a mail is never repeated."""
    caching = StampCacheMiddleware(
        cache,
        cacheable_tools=["search"],
        corpus=CORPUS,
        version="1",  # of the handbook's index and code, which cannot be seen from the tool
        ttl_s=3600,
    )
    return create_agent(
        model,
        tools,
        system_prompt=SYSTEM,
        middleware=[caching],  # last, behind whatever else wraps the model
        checkpointer=InMemorySaver(),
    )


def ask(agent: Agent, question: str, thread: str) -> tuple[str, dict[str, Any]]:
    """Answer a question in a conversation; also tell what the cache did."""
    given = {"messages": [{"role": "user", "content": question}]}
    result = agent.invoke(given, {"configurable": {"thread_id": thread}})
    reply = result["messages"][-1]
    return reply.text, reply.response_metadata["cache"]


def main() -> None:
    """Answer a question in three conversations of one tenant, with a change before the third."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with stampcache.open_cache("memory://", tenants="required") as cache:
        handbook = Handbook({"leave.md": "Staff have 30 days of leave."}, cache)
        agent = build(cache, language_model(os.environ), tools_for(handbook, []))
        with stampcache.scope(tenant="acme"):
            for thread in ("one", "two", "three"):
                if thread == "three":
                    handbook.edit("leave.md", "Staff have 32 days of leave.")
                print(*ask(agent, sys.argv[1], thread), sep="\n")


if __name__ == "__main__":
    main()
