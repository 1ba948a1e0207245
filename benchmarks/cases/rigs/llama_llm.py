"""`CachedLLM`, in front of a model of LlamaIndex."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.tools import FunctionTool

from benchmarks.cases.rigs.apps import CORE, NO_VECTORS, ScriptedApp
from benchmarks.cases.scripted_llama import ScriptedLLM
from benchmarks.cases.stamped import StampedRig, around
from benchmarks.cases.words import Ability, Call, Lack, Model, Reply, elsewhere
from llama_index_stampcache import CachedLLM

_ROLES = {
    "human": MessageRole.USER,
    "ai": MessageRole.ASSISTANT,
    "call": MessageRole.ASSISTANT,
    "tool": MessageRole.TOOL,
}
_TOLD = ("cache", "prompt_tokens", "completion_tokens", "total_tokens")


def turns_of(call: Call) -> list[ChatMessage]:
    """Return the turns before the question."""
    return [_turn(who, text, call.ids) for who, text in call.history]


def _turn(who: str, text: str, ids: str) -> ChatMessage:
    extra: dict[str, Any] = {}
    if who == "call":
        function = {"name": text, "arguments": json.dumps({"city": "Ulm"})}
        asked = {"id": f"call-{ids}", "type": "function", "function": function}
        return ChatMessage(role=_ROLES[who], additional_kwargs={"tool_calls": [asked]})
    if who == "tool":
        extra["tool_call_id"] = f"call-{ids}"
    return ChatMessage(role=_ROLES[who], content=text, additional_kwargs=extra)


def messages_of(call: Call) -> list[ChatMessage]:
    """Return all messages of a call."""
    system = [ChatMessage(role=MessageRole.SYSTEM, content=call.system)] if call.system else []
    return [*system, *turns_of(call), ChatMessage(role=MessageRole.USER, content=call.question)]


class LLMApp(ScriptedApp):
    """An application that is one model."""

    def __init__(self, inner: ScriptedLLM, model: Any) -> None:
        self.inner = inner
        self.model = model
        self.script = inner.script

    def change(self, **settings: Any) -> None:
        """See `App.change`."""
        for name, value in settings.items():
            setattr(self.inner, name, value)

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        with around(call):
            if call.stream:
                return _told(list(self.model.stream_chat(messages_of(call), **_with(call)))[-1])
            return _told(self._model(call).chat(messages_of(call), **_with(call)))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        with around(call):
            if call.stream:
                stream = await self.model.astream_chat(messages_of(call), **_with(call))
                return _told([chunk async for chunk in stream][-1])
            return _told(await self._model(call).achat(messages_of(call), **_with(call)))

    def pieces(self, call: Call) -> Sequence[str]:
        """See `App.pieces`."""
        return [chunk.delta for chunk in self.model.stream_chat(messages_of(call)) if chunk.delta]

    def tokens_called_back(self, call: Call) -> Sequence[str]:
        """See `App.tokens_called_back`; the framework tells of tokens by the stream itself."""
        return self.pieces(call)

    def abandon(self, call: Call) -> None:
        """See `App.abandon`."""
        stream = self.model.stream_chat(messages_of(call))
        next(stream)
        stream.close()

    def metered(self, calls: Sequence[Call]) -> int:
        """See `App.metered`: what responses tell."""
        return sum(self.ask(call).usage or 0 for call in calls)

    def follow_up(self, call: Call, reply: Reply, question: str) -> Reply:
        """See `App.follow_up`."""
        asked = ChatMessage(role=MessageRole.USER, content=question)
        messages = [*messages_of(call), reply.raw.message, asked]
        before = [message.model_dump() for message in messages]
        given = _told(self.model.chat(messages))
        assert [message.model_dump() for message in messages] == before, "the caller's own changed"
        return given

    def spoil(self, reply: Reply) -> None:
        """See `App.spoil`."""
        reply.raw.message.blocks = []
        reply.raw.message.additional_kwargs["spoiled"] = True
        if isinstance(reply.raw.raw, dict):
            reply.raw.raw["model"] = "spoiled"

    def _model(self, call: Call) -> Any:
        return self.model if call.schema is None else self.model.as_structured_llm(call.schema)


def _with(call: Call) -> dict[str, Any]:
    options = dict(call.options)
    if call.tools:
        options["tools"] = [_spec(tool) for tool in call.tools]
    if call.tool_choice is not None:
        options["tool_choice"] = call.tool_choice
    return options


def _spec(tool: Any) -> Any:
    return (
        tool
        if isinstance(tool, dict)
        else FunctionTool.from_defaults(tool).metadata.to_openai_tool()
    )


def _told(raw: Any) -> Reply:
    message = raw.message
    if not isinstance(raw.raw, dict | type(None)):  # an object of a schema
        return Reply(text=str(raw.raw), raw=raw.raw)
    calls = message.additional_kwargs.get("tool_calls", [])
    usage = (raw.raw or {}).get("usage") or {}
    said = {name: one for name, one in raw.additional_kwargs.items() if name not in _TOLD}
    return Reply(
        text=str(message.content or ""),
        raw=raw,
        fields=raw.additional_kwargs.get("cache"),
        usage=usage.get("total_tokens"),
        tool_calls=[
            (one["function"]["name"], json.loads(one["function"]["arguments"])) for one in calls
        ],
        reasoning=message.additional_kwargs.get("reasoning_content", ""),
        essence=[message.role, message.content, len(calls), said, raw.delta],
    )


class TextApp(ScriptedApp):
    """The same model, asked to complete plain texts."""

    def __init__(self, inner: ScriptedLLM, model: Any) -> None:
        self.model = model
        self.script = inner.script

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        with around(call):
            raw = self.model.complete(call.question, **call.options)
        return Reply(text=raw.text, raw=raw, fields=raw.additional_kwargs.get("cache"))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        with around(call):
            raw = await self.model.acomplete(call.question, **call.options)
        return Reply(text=raw.text, raw=raw, fields=raw.additional_kwargs.get("cache"))

    def spoil(self, reply: Reply) -> None:
        """See `App.spoil`."""
        reply.raw.text = "spoiled"


def llm_of(model: Model) -> ScriptedLLM:
    """Return a scripted model with these settings."""
    return ScriptedLLM(
        model=model.name,
        temperature=model.temperature,
        api_base=model.endpoint,
        additional_kwargs=dict(model.params),
    )


class LLMRig(StampedRig):
    """`CachedLLM`, the proxy of a model."""

    name = "CachedLLM"
    by_meaning = False
    lacks: ClassVar[Mapping[Ability, Lack]] = {
        Ability.CORE: CORE,
        Ability.VECTORS: NO_VECTORS,
        Ability.MEANING: elsewhere("its prompts are matched as they are; see `CachedQueryEngine`"),
        Ability.PROMPTS: elsewhere("its prompts are matched as they are; see `CachedQueryEngine`"),
        Ability.DOCUMENTS: elsewhere("the documents are text in the prompt, which is keyed"),
        Ability.CITES: elsewhere("the documents are text in the prompt, which is keyed"),
        Ability.RECHECKS: elsewhere("nothing is retrieved there"),
        Ability.CONDENSES: elsewhere("the chat engine condenses before it asks the model"),
        Ability.SEVERAL: elsewhere("LlamaIndex asks for one answer"),
        Ability.GENERATIONS: elsewhere("LlamaIndex hands it messages"),
        Ability.ONE_ANSWER: elsewhere("keeps what was streamed apart from what was not"),
        Ability.MADE_ANEW: elsewhere("messages of LlamaIndex have no ids"),
    }

    def app(self, model: Model = Model()) -> LLMApp:  # noqa: B008 - frozen
        """See `Rig.app`."""
        inner = llm_of(model)
        return LLMApp(inner, CachedLLM(inner, cache=self._cache))

    def plain_text(self) -> TextApp:
        """See `Rig.plain_text`."""
        inner = llm_of(Model())
        return TextApp(inner, CachedLLM(inner, cache=self._cache))

    def with_function(self, function: Callable[[str], str]) -> LLMApp:
        """See `Rig.with_function`."""
        return self.app(Model(params={"shape": function}))
