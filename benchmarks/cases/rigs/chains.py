"""`CachedChain`: a retriever and an answer chain behind the cache, under two groundings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import CallbackManagerForRetrieverRun, UsageMetadataCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from msgspec.structs import replace
from pydantic import PrivateAttr

from benchmarks.cases.rigs.apps import EVERYWHERE, ScriptedApp
from benchmarks.cases.rigs.chat import chat_of
from benchmarks.cases.rigs.core import CORPUS, words_of
from benchmarks.cases.rigs.messages import Tokens, reply_of, spoil_message, turns_of
from benchmarks.cases.scripted import ScriptedChat
from benchmarks.cases.stamped import StampedRig, around
from benchmarks.cases.words import Ability, Call, Lack, Model, Reply, elsewhere, unseen
from langchain_stampcache import CachedChain
from stampcache import Stamps
from stampcache.adapters import Grounding, VersionOf

PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "{system}"),
        ("system", "Use {context}"),
        MessagesPlaceholder("chat_history", optional=True),
        ("human", "{input}"),
    ]
)


class Shelf(BaseRetriever):
    """Retrieves the documents that share a longer word with the question."""

    _documents: dict[str, Document] = PrivateAttr(default_factory=dict)

    @property
    def documents(self) -> dict[str, Document]:
        """Documents by id, which a rig edits."""
        return self._documents

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - the framework's signature
    ) -> list[Document]:
        words = words_of(query)
        return [
            document.model_copy(update={"id": name}, deep=True)
            for name, document in sorted(self._documents.items())
            if words & words_of(document.page_content)
        ]


class ChainApp(ScriptedApp):
    """A RAG chain."""

    def __init__(self, inner: ScriptedChat, chain: CachedChain[Any, Any]) -> None:
        self.inner = inner
        self.script = inner.script
        self._chain = chain

    def change(self, **settings: Any) -> None:
        """See `App.change`."""
        for name, value in settings.items():
            setattr(self.inner, name, value)

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        with around(call):
            if call.stream:
                return _told(_summed(list(self._chain.stream(_inputs(call)))))
            return _told(self._chain.invoke(_inputs(call)))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        with around(call):
            if call.stream:
                return _told(_summed([chunk async for chunk in self._chain.astream(_inputs(call))]))
            return _told(await self._chain.ainvoke(_inputs(call)))

    def pieces(self, call: Call) -> Sequence[str]:
        """See `App.pieces`."""
        with around(call):
            chunks = [chunk.get("answer") for chunk in self._chain.stream(_inputs(call))]
        return [str(chunk.text) for chunk in chunks if chunk is not None and chunk.text]

    def tokens_called_back(self, call: Call) -> Sequence[str]:
        """See `App.tokens_called_back`."""
        told: list[str] = []
        config = RunnableConfig(callbacks=[Tokens(told.append)])
        list(self._chain.stream(_inputs(call), config))
        return told

    def abandon(self, call: Call) -> None:
        """See `App.abandon`."""
        stream: Any = self._chain.stream(_inputs(call))
        for chunk in stream:
            if "answer" in chunk:
                break
        stream.close()

    def metered(self, calls: Sequence[Call]) -> int:
        """See `App.metered`."""
        usage = UsageMetadataCallbackHandler()
        for call in calls:
            self._chain.invoke(_inputs(call), {"callbacks": [usage]})
        return sum(each["total_tokens"] for each in usage.usage_metadata.values())

    def follow_up(self, call: Call, reply: Reply, question: str) -> Reply:
        """See `App.follow_up`."""
        said = [*turns_of(call), HumanMessage(call.question), reply.raw["answer"]]
        inputs = {**_inputs(replace(call, question=question)), "chat_history": said}
        before = [message.model_dump() for message in said]
        with around(call):
            given = _told(self._chain.invoke(inputs))
        assert [message.model_dump() for message in said] == before, "the caller's own changed"
        return given

    def spoil(self, reply: Reply) -> None:
        """See `App.spoil`."""
        spoil_message(reply.raw["answer"])
        reply.raw["cache"]["reason"] = "spoiled"
        for document in reply.raw["context"]:
            document.page_content = "spoiled"


def _inputs(call: Call) -> dict[str, Any]:
    inputs: dict[str, Any] = {"input": call.question, "system": call.system or "Be brief."}
    if call.history:
        inputs["chat_history"] = turns_of(call)
    return inputs


def _summed(chunks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for chunk in chunks:
        for name, value in chunk.items():
            total[name] = total[name] + value if name in total else value
    return total


def _told(result: dict[str, Any]) -> Reply:
    answered = reply_of(result["answer"])
    others = {name: value for name, value in result.items() if name not in ("answer", "cache")}
    return replace(answered, raw=result, fields=result["cache"], essence=[answered.essence, others])


class ChainRig(StampedRig):
    """`CachedChain` around a retriever and an answer chain."""

    grounding: ClassVar[Grounding]
    _version_of: VersionOf = "sources"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._shelf = Shelf()

    def app(self, model: Model = Model()) -> ChainApp:  # noqa: B008 - frozen
        """See `Rig.app`."""
        inner = chat_of(model)
        return ChainApp(inner, self._chain(PROMPT | inner))

    def with_function(self, function: Callable[[str], str]) -> ChainApp:
        """See `Rig.with_function`."""
        inner = chat_of(Model())
        shaping: Runnable[Any, Any] = RunnableLambda(
            lambda inputs: {**inputs, "input": function(inputs["input"])}
        )
        return ChainApp(inner, self._chain(shaping | PROMPT | inner))

    def condensing(self, condense: Callable[[Sequence[tuple[str, str]], str], str]) -> ChainApp:
        """See `Rig.condensing`."""

        def condensed(inputs: dict[str, Any]) -> str:
            turns = [(turn.type, str(turn.text)) for turn in inputs.get("chat_history", [])]
            return condense(turns, inputs["input"])

        inner = chat_of(Model())
        return ChainApp(inner, self._chain(PROMPT | inner, condense=condensed))

    def _chain(self, answer: Runnable[Any, Any], **options: Any) -> CachedChain[Any, Any]:
        return CachedChain(
            retriever=self._shelf,
            answer=answer,
            cache=self._cache,
            grounding=self.grounding,
            version_of=self._version_of,
            corpus=CORPUS,
            stamps=Stamps(index="built-1"),
            **options,
        )

    def write(self, name: str, text: str) -> None:
        """See `Rig.write`."""
        self._shelf.documents[name] = Document(text, metadata={"source": name})
        self._cache.invalidate(corpus=CORPUS, source=name)

    def delete(self, name: str) -> None:
        """See `Rig.delete`."""
        del self._shelf.documents[name]
        self._cache.invalidate(corpus=CORPUS, source=name)

    def move(self, name: str, other: str) -> None:
        """See `Rig.move`."""
        self._shelf.documents[other] = self._shelf.documents.pop(name)


CHAIN_LACKS = {
    **EVERYWHERE,
    Ability.OPTIONS: elsewhere("takes no options of a call; they are bound to its parts"),
    Ability.CALLBACKS: elsewhere("no model runs for a hit; the chain's own stream has the pieces"),
    Ability.PLAIN_TEXT: elsewhere("keeps whole answers"),
    Ability.TOOLS: elsewhere("tools are bound to the model in it"),
    Ability.TOOL_TURNS: elsewhere("keeps whole answers; a turn that calls tools is none"),
    Ability.SCHEMAS: elsewhere("its schema is bound to the model in it"),
    Ability.SEVERAL: elsewhere("answers once"),
    Ability.GENERATIONS: elsewhere("is handed no generations"),
    Ability.PROMPTS: elsewhere("is given the question apart from the prompt"),
}


class RecheckedChainRig(ChainRig):
    """A chain whose chunks are compared at each hit."""

    name = "CachedChain (recheck)"
    grounding = "recheck"
    lacks: ClassVar[Mapping[Ability, Lack]] = CHAIN_LACKS


class VersionedChainRig(ChainRig):
    """A chain that retrieves on a miss only, and is told of changes."""

    name = "CachedChain (version)"
    grounding = "version"
    lacks: ClassVar[Mapping[Ability, Lack]] = {
        **CHAIN_LACKS,
        Ability.RECHECKS: unseen("nothing is retrieved for a hit; changes are announced"),
    }

    def __init__(self, *, version_of: VersionOf = "corpus", **options: Any) -> None:
        super().__init__(**options)
        self._version_of = version_of

    def citing(self) -> "VersionedChainRig":
        """See `Rig.citing`."""
        return VersionedChainRig(version_of="sources")
