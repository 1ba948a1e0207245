"""Graphs: `StampNodeCache`, at nodes of LangGraph."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import CachePolicy

from benchmarks.cases.rigs.apps import EVERYWHERE, ScriptedApp
from benchmarks.cases.rigs.chat import chat_of
from benchmarks.cases.rigs.core import CORPUS
from benchmarks.cases.rigs.messages import messages_of, reply_of, spoil_message
from benchmarks.cases.scripted import ScriptedChat
from benchmarks.cases.stamped import StampedRig, around
from benchmarks.cases.words import Ability, Call, Lack, Model, Reply, elsewhere, unseen
from langchain_stampcache import StampNodeCache, node_key
from stampcache import Stamps


class NodeApp(ScriptedApp):
    """A graph with one node, which asks a model."""

    def __init__(self, cache: StampNodeCache, inner: ScriptedChat) -> None:
        self.script = inner.script
        built = StateGraph(MessagesState)
        built.add_node(
            "answer",
            lambda state: {"messages": [inner.invoke(state["messages"])]},
            cache_policy=CachePolicy(key_func=node_key),
        )
        built.add_edge(START, "answer")
        self._graph: Any = built.compile(cache=cache)

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        with around(call):
            return _told(self._graph.invoke({"messages": messages_of(call)}))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        with around(call):
            return _told(await self._graph.ainvoke({"messages": messages_of(call)}))

    def follow_up(self, call: Call, reply: Reply, question: str) -> Reply:
        """See `App.follow_up`."""
        messages: list[Any] = [*messages_of(call), reply.raw, HumanMessage(question)]
        with around(call):
            return _told(self._graph.invoke({"messages": messages}))

    def metered(self, calls: Sequence[Call]) -> int:
        """See `App.metered`."""
        usage = UsageMetadataCallbackHandler()
        for call in calls:
            self._graph.invoke({"messages": messages_of(call)}, {"callbacks": [usage]})
        return sum(each["total_tokens"] for each in usage.usage_metadata.values())

    def spoil(self, reply: Reply) -> None:
        """See `App.spoil`."""
        spoil_message(reply.raw)


def _told(state: Any) -> Reply:
    return reply_of(state["messages"][-1])


_NOT_THE_MODEL = unseen(
    "sees what goes into a node, not the model in it: `version=` stands for that"
)


class NodeRig(StampedRig):
    """`StampNodeCache` at a node of a graph."""

    name = "StampNodeCache"
    by_meaning = False
    lacks: ClassVar[Mapping[Ability, Lack]] = {
        **EVERYWHERE,
        Ability.PARAMETERS: _NOT_THE_MODEL,
        Ability.CHANGES: _NOT_THE_MODEL,
        Ability.ENDPOINT: _NOT_THE_MODEL,
        Ability.OPTIONS: _NOT_THE_MODEL,
        Ability.TOOLS: _NOT_THE_MODEL,
        Ability.TOOL_TURNS: _NOT_THE_MODEL,
        Ability.SCHEMAS: _NOT_THE_MODEL,
        Ability.CALLABLES: _NOT_THE_MODEL,
        Ability.PLAIN_TEXT: elsewhere("stands before nodes"),
        Ability.CONDENSES: elsewhere("a node condenses, or does not"),
        Ability.SEVERAL: elsewhere("a node writes once"),
        Ability.GENERATIONS: elsewhere("is handed no generations"),
        Ability.PROMPTS: elsewhere("is given the state, not a rendered prompt"),
        Ability.MEANING: elsewhere("a node's input is matched as it is"),
        Ability.CITES: unseen("what a node read is not told; any change of its corpus counts"),
        Ability.RECHECKS: unseen("a node is not run for a hit; changes are announced"),
        Ability.STREAMS: unseen("LangGraph streams what a node wrote, and looks up before"),
        Ability.FLIGHTS: unseen("LangGraph looks up and stores apart"),
        Ability.MISSES: unseen("LangGraph has given out what a node wrote before it is stored"),
        Ability.VARIETY: elsewhere("what a node wrote is no reply; equal inputs get equal values"),
        Ability.ADMITS: elsewhere("keeps what a node wrote, whatever it says"),
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._nodes = StampNodeCache(
            self._cache, version="1", corpus=CORPUS, stamps=Stamps(index="built-1")
        )

    def app(self, model: Model = Model()) -> NodeApp:  # noqa: B008 - frozen
        """See `Rig.app`."""
        return NodeApp(self._nodes, chat_of(model))

    def write(self, name: str, text: str) -> None:  # noqa: ARG002 - nodes are not looked into
        """See `Rig.write`."""
        self._cache.invalidate(corpus=CORPUS, source=name)

    def delete(self, name: str) -> None:
        """See `Rig.delete`."""
        self._cache.invalidate(corpus=CORPUS, source=name)
