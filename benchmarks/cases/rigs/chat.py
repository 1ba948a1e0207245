"""A chat model with a cache at it: LangChain's own seam, and the proxy of stampcache."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from benchmarks.cases.rig import Rig
from benchmarks.cases.rigs.apps import EVERYWHERE, ScriptedApp
from benchmarks.cases.rigs.messages import (
    Tokens,
    messages_of,
    reply_of,
    spoil_message,
    summed,
)
from benchmarks.cases.scripted import ScriptedChat
from benchmarks.cases.stamped import StampedRig, around
from benchmarks.cases.words import Ability, Call, Lack, Model, Reply, elsewhere
from langchain_stampcache import CachedChatModel


class ChatApp(ScriptedApp):
    """An application that is one chat model."""

    def __init__(self, inner: ScriptedChat, model: BaseChatModel) -> None:
        self.inner = inner
        self.model = model
        self.script = inner.script

    def change(self, **settings: Any) -> None:
        """See `App.change`."""
        for name, value in settings.items():
            setattr(self.inner, name, value)

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        runnable, messages = self._runnable(call), messages_of(call)
        with around(call):
            if call.stream:
                return reply_of(summed(list(runnable.stream(messages, **call.options))))
            return reply_of(runnable.invoke(messages, **call.options))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        runnable, messages = self._runnable(call), messages_of(call)
        with around(call):
            if call.stream:
                stream = runnable.astream(messages, **call.options)
                return reply_of(summed([chunk async for chunk in stream]))
            return reply_of(await runnable.ainvoke(messages, **call.options))

    def several(self, call: Call, count: int) -> Sequence[str]:
        """See `App.several`."""
        made = self.model.generate([messages_of(call)], n=count)
        return [generation.text for generation in made.generations[0]]

    def pieces(self, call: Call) -> Sequence[str]:
        """See `App.pieces`."""
        with around(call):
            chunks = self._runnable(call).stream(messages_of(call))
            return [str(chunk.text) for chunk in chunks if chunk.text]

    def tokens_called_back(self, call: Call) -> Sequence[str]:
        """See `App.tokens_called_back`."""
        told: list[str] = []
        config = RunnableConfig(callbacks=[Tokens(told.append)])
        list(self._runnable(call).stream(messages_of(call), config))
        return told

    def abandon(self, call: Call) -> None:
        """See `App.abandon`."""
        with around(call):
            stream = self._runnable(call).stream(messages_of(call))
            next(stream)
            stream.close()

    def metered(self, calls: Sequence[Call]) -> int:
        """See `App.metered`."""
        usage = UsageMetadataCallbackHandler()
        for call in calls:
            self._runnable(call).invoke(messages_of(call), {"callbacks": [usage]})
        return sum(each["total_tokens"] for each in usage.usage_metadata.values())

    def spoil(self, reply: Reply) -> None:
        """See `App.spoil`."""
        spoil_message(reply.raw)

    def follow_up(self, call: Call, reply: Reply, question: str) -> Reply:
        """See `App.follow_up`."""
        messages = [*messages_of(call), reply.raw, HumanMessage(question)]
        before = [message.model_dump() for message in messages]
        with around(call):
            given = reply_of(self.model.invoke(messages))
        assert [message.model_dump() for message in messages] == before, "the caller's own changed"
        return given

    def _runnable(self, call: Call) -> Any:
        if call.schema is not None:
            return self.model.with_structured_output(call.schema)
        if not call.tools:
            return self.model
        chosen = {} if call.tool_choice is None else {"tool_choice": call.tool_choice}
        return self.model.bind_tools(call.tools, **chosen)


def chat_of(model: Model) -> ScriptedChat:
    """Return a scripted model with these settings."""
    return ScriptedChat(
        model=model.name,
        temperature=model.temperature,
        base_url=model.endpoint,
        model_kwargs=dict(model.params),
    )


class ChatRig(Rig):
    """A chat model behind a cache."""

    def app(self, model: Model = Model()) -> ChatApp:  # noqa: B008 - frozen
        """See `Rig.app`."""
        inner = chat_of(model)
        return ChatApp(inner, self.cached(inner))

    def with_function(self, function: Callable[[str], str]) -> ChatApp:
        """See `Rig.with_function`."""
        return self.app(Model(params={"shape": function}))

    @abstractmethod
    def cached(self, inner: ScriptedChat) -> BaseChatModel:
        """Return the model behind the cache."""


CHAT_LACKS = {
    **EVERYWHERE,
    Ability.DOCUMENTS: elsewhere("the documents are text in the prompt, which is keyed"),
    Ability.RECHECKS: elsewhere("nothing is retrieved there"),
    Ability.CONDENSES: elsewhere("the application condenses before it asks the model"),
}


class CachedChatRig(StampedRig, ChatRig):
    """`CachedChatModel`, the proxy of a chat model."""

    name = "CachedChatModel"
    by_meaning = False
    lacks: ClassVar[Mapping[Ability, Lack]] = {
        **CHAT_LACKS,
        Ability.MEANING: elsewhere(
            "its prompts are matched as they are; see `StampCache` and the chains"
        ),
        Ability.PROMPTS: elsewhere("its prompts are matched as they are; see `StampCache`"),
        Ability.PLAIN_TEXT: elsewhere("stands before chat models"),
        Ability.GENERATIONS: elsewhere("LangChain hands it messages"),
    }

    def cached(self, inner: ScriptedChat) -> BaseChatModel:
        """See `ChatRig.cached`."""
        return CachedChatModel(inner=inner, cache=self._cache)
