"""`CachedChatEngine`, in front of chat engines of LlamaIndex."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from llama_index.core import PromptTemplate
from llama_index.core.chat_engine import CondenseQuestionChatEngine, ContextChatEngine
from llama_index.core.memory import ChatMemoryBuffer

from benchmarks.cases.rigs.core import CORPUS
from benchmarks.cases.rigs.llama_engines import ENGINE_LACKS, EngineApp, EngineRig
from benchmarks.cases.rigs.llama_llm import llm_of, turns_of
from benchmarks.cases.scripted_llama import CONDENSE, ScriptedLLM
from benchmarks.cases.stamped import around
from benchmarks.cases.words import (
    Ability,
    Call,
    Lack,
    Model,
    Reply,
    Said,
    elsewhere,
    numbered,
    unseen,
)
from llama_index_stampcache import CachedChatEngine

CONDENSING = PromptTemplate(f"{CONDENSE}{{chat_history}}|{{question}}")


class ChatEngineApp(EngineApp):
    """A chat engine; each call is a conversation of its own."""

    def __init__(self, inner: ScriptedLLM, engine: Callable[[], CachedChatEngine]) -> None:
        super().__init__(inner)
        self._engine = engine

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        engine, before = self._engine(), turns_of(call)
        with around(call):
            if not call.stream:
                return _chatted(engine.chat(call.question, before or None))
            streaming: Any = engine.stream_chat(call.question, before or None)
            return _streamed(streaming, list(streaming.response_gen))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        engine, before = self._engine(), turns_of(call)
        with around(call):
            if not call.stream:
                return _chatted(await engine.achat(call.question, before or None))
            streaming: Any = await engine.astream_chat(call.question, before or None)
            return _streamed(streaming, [each async for each in streaming.async_response_gen()])

    def pieces(self, call: Call) -> Sequence[str]:
        """See `App.pieces`."""
        return [piece for piece in self._engine().stream_chat(call.question).response_gen if piece]

    def abandon(self, call: Call) -> None:
        """See `App.abandon`."""
        stream = self._engine().stream_chat(call.question).response_gen
        next(stream)
        stream.close()

    def follow_up(self, call: Call, reply: Reply, question: str) -> Reply:
        """See `App.follow_up`: in the memory of an engine that has just been asked."""
        engine = self._engine()
        with around(call):
            assert str(engine.chat(call.question)) == reply.text
            return _chatted(engine.chat(question))


def _chatted(raw: Any) -> Reply:
    nodes = [node.node.text for node in raw.source_nodes]
    return Reply(
        text=raw.response,
        raw=raw,
        fields=raw.metadata["cache"],
        essence=[type(raw).__name__, raw.response, nodes, len(raw.sources)],
    )


def _streamed(raw: Any, pieces: Sequence[str]) -> Reply:
    text = "".join(pieces)
    return Reply(text=text, raw=raw, fields=raw.metadata["cache"], essence=text)


class ChatEngineRig(EngineRig):
    """`CachedChatEngine` in front of a chat engine with context."""

    name = "CachedChatEngine"
    lacks: ClassVar[Mapping[Ability, Lack]] = {
        **ENGINE_LACKS,
        Ability.LEAVING: unseen("a thread of LlamaIndex's own reads each stream to its end"),
        Ability.SYSTEM: elsewhere(
            "its system prompt is set on the engine, whose settings are keyed"
        ),
    }

    def app(self, model: Model = Model()) -> ChatEngineApp:  # noqa: B008 - frozen
        """See `Rig.app`."""
        llm = llm_of(model)

        def engine() -> CachedChatEngine:
            memory = ChatMemoryBuffer.from_defaults(token_limit=10_000)
            inner = ContextChatEngine.from_defaults(retriever=self.shelf, llm=llm, memory=memory)
            return CachedChatEngine(inner, cache=self._cache, corpus=CORPUS)

        engine()  # which refuses what has no identity
        return ChatEngineApp(llm, engine)

    def condensing(
        self, condense: Callable[[Sequence[tuple[str, str]], str], str]
    ) -> ChatEngineApp:
        """See `Rig.condensing`."""
        llm = llm_of(Model())
        made = Counted(condense)
        llm.script.saying = made

        def engine() -> CachedChatEngine:
            inner = CondenseQuestionChatEngine.from_defaults(
                query_engine=self.engine(llm),
                condense_question_prompt=CONDENSING,
                llm=llm,
                memory=ChatMemoryBuffer.from_defaults(token_limit=10_000),
            )
            return CachedChatEngine(inner, cache=self._cache, corpus=CORPUS)

        return CondensingApp(llm, engine, made)


class Counted:
    """Condenses where it is asked to, and answers all else."""

    def __init__(self, condense: Callable[[Sequence[tuple[str, str]], str], str]) -> None:
        self.answers = 0
        self._condense = condense

    def __call__(self, question: str, call: int) -> Said:
        """Say what is condensed, or an answer with its number."""
        last = question.rsplit("|", 1)[-1]
        if "|" in question:
            return Said(text=self._condense([("human", question)], last))
        self.answers += 1
        return numbered(question, call)


class CondensingApp(ChatEngineApp):
    """A chat engine that condenses; only answers count."""

    def __init__(
        self, inner: ScriptedLLM, engine: Callable[[], CachedChatEngine], made: Counted
    ) -> None:
        super().__init__(inner, engine)
        self._made = made

    @property
    def calls(self) -> int:
        """See `App.calls`."""
        return self._made.answers
