"""LangChain's own seam, `BaseCache`: `StampCache` there, and any other cache of the framework."""

from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate

from benchmarks.cases.rig import App
from benchmarks.cases.rigs.apps import ScriptedApp
from benchmarks.cases.rigs.chat import CHAT_LACKS, ChatApp, ChatRig, chat_of
from benchmarks.cases.rigs.messages import reply_of
from benchmarks.cases.scripted import ScriptedChat, ScriptedText
from benchmarks.cases.stamped import StampedRig, around
from benchmarks.cases.words import Ability, Call, Lack, Model, Reply, unseen
from langchain_stampcache import StampCache
from langchain_stampcache.llm_cache.finding import InPrompt
from stampcache import Cache, Stamps
from stampcache.adapters import Grounding

SEAM_LACKS: Mapping[Ability, Lack] = {
    **CHAT_LACKS,
    Ability.STREAMS: unseen("LangChain streams a model past its cache"),
    Ability.FLIGHTS: unseen("LangChain looks up and updates apart, and makes equal calls both"),
}
TEMPLATE = ChatPromptTemplate.from_messages(
    [("system", "Answer from these rules only."), ("human", "{context}\n\nQuestion: {question}")]
)
_ASKED = "Question: "


class TextApp(ScriptedApp):
    """An application that is one model of plain text."""

    def __init__(self, inner: ScriptedText) -> None:
        self.inner = inner
        self.script = inner.script

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        with around(call):
            text = self.inner.invoke(call.question, **call.options)
        return Reply(text=text, raw=text)

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        with around(call):
            text = await self.inner.ainvoke(call.question, **call.options)
        return Reply(text=text, raw=text)

    def spoil(self, reply: Reply) -> None:
        """See `App.spoil`: a text cannot be changed."""


class PromptedApp(ChatApp):
    """An application that renders what was retrieved and the question into one prompt."""

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        with around(call):
            return reply_of(self.model.invoke(_rendered(call)))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        with around(call):
            return reply_of(await self.model.ainvoke(_rendered(call)))


def _rendered(call: Call) -> list[Any]:
    text = "\n\n".join([*call.parts, _ASKED + call.question])
    return [SystemMessage("Answer from these rules only."), HumanMessage(text)]


class StampCacheRig(StampedRig, ChatRig):
    """`StampCache` at LangChain's own seam."""

    name = "StampCache"
    lacks: ClassVar[Mapping[Ability, Lack]] = SEAM_LACKS

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._cached = StampCache(self._cache, question=_whole)

    @property
    def base_cache(self) -> BaseCache:
        """See `Rig.base_cache`."""
        return self._cached

    def cached(self, inner: ScriptedChat) -> BaseChatModel:
        """See `ChatRig.cached`."""
        inner.cache = self._cached
        return inner

    def plain_text(self) -> App:
        """See `Rig.plain_text`."""
        return TextApp(ScriptedText(cache=self._cached))

    def prompted(self, how: str, *, grounding: str) -> App:
        """See `Rig.prompted`."""
        model = chat_of(Model())
        model.cache = _prompted(self._cache, how, "none" if grounding == "none" else "recheck")
        return PromptedApp(model, model)


def _whole(text: str) -> str:
    """Find the question where nothing else is in a prompt."""
    return text


def _behind_the_context(text: str) -> Any:
    """Find the question, and what it is answered from, in a rendered prompt."""
    context, _, question = text.rpartition(f"\n\n{_ASKED}")
    return InPrompt(question=question, context=context)


def _prompted(cache: Cache, how: str, grounding: Grounding) -> StampCache:
    stamps = Stamps(index="built-1")
    if how == "template":
        return StampCache(cache, template=TEMPLATE, grounding=grounding, stamps=stamps)
    return StampCache(cache, question=_behind_the_context, grounding=grounding, stamps=stamps)
