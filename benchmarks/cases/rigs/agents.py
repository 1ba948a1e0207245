"""Agents: `StampCacheMiddleware`, in front of a whole run."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.callbacks import CallbackManagerForLLMRun, UsageMetadataCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool

from benchmarks.cases.rigs.apps import EVERYWHERE, ScriptedApp
from benchmarks.cases.rigs.core import CORPUS
from benchmarks.cases.rigs.messages import Tokens, messages_of, reply_of, spoil_message, turns_of
from benchmarks.cases.scripted import ScriptedChat
from benchmarks.cases.stamped import StampedRig, around
from benchmarks.cases.words import Ability, Call, Lack, Model, Reply, elsewhere, unseen
from langchain_stampcache import StampCacheMiddleware
from stampcache import Stamps

_SEARCH = "search"
_MODES = ["values", "messages"]  # with the second one, models stream


class SearchingChat(ScriptedChat):
    """A model that searches before it answers, where there is something to search in."""

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if _searches(messages, kwargs):
            asked: Any = {
                "name": _SEARCH,
                "args": {"query": str(messages[-1].text)},
                "id": "call-0",
            }
            return ChatResult(
                generations=[ChatGeneration(message=AIMessage("", tool_calls=[asked]))]
            )
        return super()._generate(_people(messages), stop, run_manager, **kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        return super()._stream(_people(messages), stop, run_manager, **kwargs)

    def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        return super()._astream(_people(messages), stop, run_manager, **kwargs)


def _searches(messages: list[BaseMessage], options: dict[str, Any]) -> bool:
    names = [tool["function"]["name"] for tool in options.get("tools", ())]
    return _SEARCH in names and isinstance(messages[-1], HumanMessage)


def _people(messages: list[BaseMessage]) -> list[BaseMessage]:
    """Return the messages up to what a person said last."""
    asked = [place for place, one in enumerate(messages) if isinstance(one, HumanMessage)]
    return messages[: asked[-1] + 1]


class AgentApp(ScriptedApp):
    """An agent; its tools, prompt and schema are those of a call."""

    def __init__(self, rig: "AgentRig", inner: ScriptedChat) -> None:
        self.inner = inner
        self.script = inner.script
        self._rig = rig

    def change(self, **settings: Any) -> None:
        """See `App.change`."""
        for name, value in settings.items():
            setattr(self.inner, name, value)

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        graph, given = self._rig.agent(self.inner, call), _given(call)
        with around(call):
            if not call.stream:
                return _told(graph.invoke(given))
            return _told(_last(list(graph.stream(given, stream_mode=_MODES))))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        graph, given = self._rig.agent(self.inner, call), _given(call)
        with around(call):
            if not call.stream:
                return _told(await graph.ainvoke(given))
            stream = graph.astream(given, stream_mode=_MODES)
            return _told(_last([each async for each in stream]))

    def pieces(self, call: Call) -> Sequence[str]:
        """See `App.pieces`."""
        graph = self._rig.agent(self.inner, call)
        told = list(graph.stream(_given(call), stream_mode="messages"))
        return [str(chunk.text) for chunk, _ in told if chunk.text]

    def tokens_called_back(self, call: Call) -> Sequence[str]:
        """See `App.tokens_called_back`."""
        told: list[str] = []
        config = RunnableConfig(callbacks=[Tokens(told.append)])
        list(self._rig.agent(self.inner, call).stream(_given(call), config, stream_mode="messages"))
        return told

    def abandon(self, call: Call) -> None:
        """See `App.abandon`."""
        stream = self._rig.agent(self.inner, call).stream(_given(call), stream_mode="messages")
        next(stream)
        stream.close()

    def metered(self, calls: Sequence[Call]) -> int:
        """See `App.metered`."""
        usage = UsageMetadataCallbackHandler()
        for call in calls:
            self._rig.agent(self.inner, call).invoke(_given(call), {"callbacks": [usage]})
        return sum(each["total_tokens"] for each in usage.usage_metadata.values())

    def follow_up(self, call: Call, reply: Reply, question: str) -> Reply:
        """See `App.follow_up`."""
        messages = [*messages_of(call), reply.raw, HumanMessage(question)]
        graph = self._rig.agent(self.inner, call)
        with around(call):
            return _told(graph.invoke({"messages": messages}))

    def spoil(self, reply: Reply) -> None:
        """See `App.spoil`."""
        spoil_message(reply.raw)


def _last(told: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the state in which a run ended."""
    state: dict[str, Any] = [given for mode, given in told if mode == "values"][-1]
    return state


def _given(call: Call) -> Any:
    question = HumanMessage(call.question, id=f"{call.ids}-question" if call.ids else None)
    return {"messages": [*turns_of(call), question]}


def _told(state: dict[str, Any]) -> Reply:
    if state.get("structured_response") is not None:
        return Reply(text=str(state["structured_response"]), raw=state["structured_response"])
    return reply_of(state["messages"][-1])


class AgentRig(StampedRig):
    """`StampCacheMiddleware` in an agent."""

    name = "StampCacheMiddleware"
    lacks: ClassVar[Mapping[Ability, Lack]] = {
        **EVERYWHERE,
        Ability.OPTIONS: elsewhere("a run of an agent has no options of its model"),
        Ability.PLAIN_TEXT: elsewhere("stands before agents"),
        Ability.TOOL_TURNS: elsewhere("keeps final answers; a turn that calls tools is none"),
        Ability.CONDENSES: elsewhere("an agent answers the conversation itself"),
        Ability.SEVERAL: elsewhere("an agent answers once"),
        Ability.GENERATIONS: elsewhere("is handed no generations"),
        Ability.PROMPTS: elsewhere("is given messages, not a rendered prompt"),
        Ability.CITES: unseen("what a tool read is not told; any change of its corpus counts"),
        Ability.RECHECKS: unseen("tools are not run for a hit; changes are announced"),
        Ability.FLIGHTS: unseen("a run is looked up at its first step and stored after its last"),
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._documents: dict[str, str] = {}

    def app(self, model: Model = Model()) -> AgentApp:  # noqa: B008 - frozen
        """See `Rig.app`."""
        inner = SearchingChat(
            model=model.name,
            temperature=model.temperature,
            base_url=model.endpoint,
            model_kwargs=dict(model.params),
        )
        return AgentApp(self, inner)

    def with_function(self, function: Callable[[str], str]) -> AgentApp:
        """See `Rig.with_function`."""
        return self.app(Model(params={"shape": function}))

    def agent(self, model: ScriptedChat, call: Call) -> Any:
        """Return the agent for a call."""
        tools = [*call.tools, *([self._search()] if self._documents else [])]
        corpus: dict[str, Any] = (
            {"corpus": CORPUS, "stamps": Stamps(index="built-1")} if self._documents else {}
        )
        cached: Any = StampCacheMiddleware(
            self._cache, cacheable_tools=[_SEARCH, *map(_name, call.tools)], **corpus
        )
        return create_agent(
            model,
            tools=tools,
            system_prompt=call.system or None,
            response_format=None if call.schema is None else ToolStrategy(call.schema),
            middleware=[cached],
        )

    def _search(self) -> StructuredTool:
        documents = self._documents

        def search(query: str) -> str:  # noqa: ARG001 - it gives all there is
            return json.dumps(documents)

        return StructuredTool.from_function(
            search, name=_SEARCH, description="Search the handbook."
        )

    def write(self, name: str, text: str) -> None:
        """See `Rig.write`."""
        self._documents[name] = text
        self._cache.invalidate(corpus=CORPUS, source=name)

    def delete(self, name: str) -> None:
        """See `Rig.delete`."""
        del self._documents[name]
        self._cache.invalidate(corpus=CORPUS, source=name)


def _name(tool: Any) -> str:
    return str(tool["function"]["name"] if isinstance(tool, dict) else tool.__name__)
