"""One turn of a chat engine as a query: what it asks, and how the engine's own parts answer it.

A turn engine lives for one turn. It retrieves and answers with the chat engine's own parts, and never
touches the memory. What identifies it is what the chat engine would run; the history is part of a
request, not of the engine.
"""

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from copy import copy
from types import MethodType

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ChatMessage, ChatResponseAsyncGen, ChatResponseGen
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from msgspec import Struct

ContextEngine = ContextChatEngine | CondensePlusContextChatEngine
SAID = "message"
"""The key of a model's message in the metadata of its response, where it is more than a text."""
ASKED = "asked"
"""The key of what was retrieved for in the metadata of a response, where that is not the message."""
# Of a chat engine these do not shape an answer, or only the question that is looked up.
_NO_PARTS = frozenset({
    "callback_manager", "_condense_prompt_template", "_memory", "_skip_condense", "_token_counter",
    "_verbose",
})  # fmt: skip


class Turn(Struct, frozen=True, kw_only=True):
    """What is asked in one turn.

    ``question`` is looked up, and retrieved for; the model is given ``message`` after ``history``. With
    ``condenses`` the question is first made to stand alone when it is retrieved for. ``previous``
    are nodes of the turn before, for want of others.
    """

    question: str
    message: str
    history: Sequence[ChatMessage] = ()
    streams: bool = False
    condenses: bool = False
    previous: Sequence[NodeWithScore] | None = None


NO_TURN = Turn(question="", message="")


class ContextTurn(BaseQueryEngine):
    """A turn of an engine that retrieves for each message."""

    def __init__(self, chat: ContextEngine, turn: Turn, *, alone: bool) -> None:
        self._chat = chat
        self._turn = turn
        self._alone = alone
        self._asked = turn.question
        super().__init__(chat.callback_manager)

    @property
    def _retriever(self) -> BaseRetriever:
        return self._chat._retriever

    @property
    def _node_postprocessors(self) -> Sequence[BaseNodePostprocessor]:
        return self._chat._node_postprocessors

    @property
    def _llm(self) -> LLM:
        return self._chat._llm

    def identity_parts(self) -> Mapping[str, object]:
        """Return what identifies it: all parts but the memory, and whether questions stand alone."""
        chat = self._chat
        held = {name: part for name, part in vars(chat).items() if name not in _NO_PARTS}
        if isinstance(chat, CondensePlusContextChatEngine) and not self._alone:
            held["condense"] = [chat._condense_prompt_template, chat._skip_condense]
        return {**held, "chat": type(chat), "alone": self._alone}

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve with the chat engine's parts."""
        chat, question = self._chat, query_bundle.query_str
        if self._turn.condenses and isinstance(chat, CondensePlusContextChatEngine):
            question = chat._condense_question(list(self._turn.history), question)
            self._note(query_bundle, question)
        return self._or_previous(chat._get_nodes(question))

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """See `retrieve`."""
        chat, question = self._chat, query_bundle.query_str
        if self._turn.condenses and isinstance(chat, CondensePlusContextChatEngine):
            question = await chat._acondense_question(list(self._turn.history), question)
            self._note(query_bundle, question)
        return self._or_previous(await chat._aget_nodes(question))

    def _note(self, query_bundle: QueryBundle, question: str) -> None:
        if query_bundle.query_str == self._turn.question:  # and not that of a candidate
            self._asked = question

    def _told(self, response: RESPONSE_TYPE) -> RESPONSE_TYPE:
        """Return a response with what was retrieved for, which a hit is to tell, too."""
        if self._asked != self._turn.question:
            response.metadata = {**(response.metadata or {}), ASKED: self._asked}
        return response

    def _or_previous(self, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        return list(self._turn.previous) if not nodes and self._turn.previous else nodes

    def synthesize(
        self,
        query_bundle: QueryBundle,  # noqa: ARG002 - the turn knows its message
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Answer the message with the chat engine's parts."""
        turn = self._turn
        making = self._chat._get_response_synthesizer(list(turn.history), streaming=turn.streams)
        return self._told(making.synthesize(turn.message, nodes, additional_source_nodes))

    async def asynthesize(
        self,
        query_bundle: QueryBundle,  # noqa: ARG002 - the turn knows its message
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """See `synthesize`."""
        turn = self._turn
        making = self._chat._get_response_synthesizer(list(turn.history), streaming=turn.streams)
        return self._told(await making.asynthesize(turn.message, nodes, additional_source_nodes))

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return self.synthesize(query_bundle, self.retrieve(query_bundle))

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await self.asynthesize(query_bundle, await self.aretrieve(query_bundle))


class SimpleTurn(BaseQueryEngine):
    """A turn of an engine that has no documents: its history are all messages for the model."""

    def __init__(self, chat: SimpleChatEngine, turn: Turn) -> None:
        self._chat = chat
        self._turn = turn
        super().__init__(chat.callback_manager)

    @property
    def _llm(self) -> LLM:
        return self._chat._llm

    def identity_parts(self) -> Mapping[str, object]:
        """Return what identifies it: all parts but the memory."""
        return {
            "chat": type(self._chat),
            "llm": self._chat._llm,
            "prefix_messages": self._chat._prefix_messages,
        }

    def query(self, str_or_query_bundle: object) -> RESPONSE_TYPE:  # noqa: ARG002 - of the turn
        """Ask the model; no query of an engine, so that no event tells of one."""
        return self._query(QueryBundle(self._turn.message))

    async def aquery(self, str_or_query_bundle: object) -> RESPONSE_TYPE:  # noqa: ARG002 - the framework's signature
        """See `query`."""
        return await self._aquery(QueryBundle(self._turn.message))

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:  # noqa: ARG002 - the framework's signature
        messages = list(self._turn.history)
        if self._turn.streams:
            return StreamingResponse(_deltas(self._llm.stream_chat(messages)))
        return _whole(self._llm.chat(messages).message)

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:  # noqa: ARG002 - the framework's signature
        messages = list(self._turn.history)
        if self._turn.streams:
            return AsyncStreamingResponse(_adeltas(await self._llm.astream_chat(messages)))
        return _whole((await self._llm.achat(messages)).message)


class Switched(BaseQueryEngine):
    """A query engine that streams or does not, as a chat engine wants it for one turn.

    The framework's chat engine switches the query engine itself, for all threads at once. Here each call
    runs on a shallow copy. Whether it streams is no part of its identity: the texts are the same.
    """

    def __init__(self, engine: RetrieverQueryEngine, *, streams: bool) -> None:
        self._switched = engine
        self._streams = streams
        super().__init__(engine.callback_manager)

    def identity_parts(self) -> Mapping[str, object]:
        """Return what identifies it."""
        return {"inner": _switched(self._switched, streams=False)}

    def _now(self) -> RetrieverQueryEngine:
        return _switched(self._switched, streams=self._streams)

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve with the engine."""
        return self._switched.retrieve(query_bundle)

    async def aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve with the engine."""
        return await self._switched.aretrieve(query_bundle)

    def synthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Answer with the engine."""
        return self._now().synthesize(query_bundle, nodes, additional_source_nodes)

    async def asynthesize(
        self,
        query_bundle: QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Answer with the engine."""
        return await self._now().asynthesize(query_bundle, nodes, additional_source_nodes)

    def _get_prompt_modules(self) -> PromptMixinType:
        return self._switched._get_prompt_modules()

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return self._now().query(query_bundle)

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await self._now().aquery(query_bundle)


def _switched(engine: RetrieverQueryEngine, *, streams: bool) -> RetrieverQueryEngine:
    synthesizer = copy(engine._response_synthesizer)
    for name, part in vars(synthesizer).items():
        if isinstance(part, MethodType) and part.__self__ is engine._response_synthesizer:
            setattr(synthesizer, name, MethodType(part.__func__, synthesizer))
    synthesizer._streaming = streams
    switched = copy(engine)
    switched._response_synthesizer = synthesizer
    return switched


def _whole(message: ChatMessage) -> Response:
    """Return a model's message as a response; what is no text of it stands in the metadata."""
    text = message.content
    if text and message == ChatMessage(role=message.role, content=text):
        return Response(text)
    written = message.model_dump(mode="json")
    same = ChatMessage.model_validate(written) == message
    return Response(text, metadata={SAID: written if same else message})


def _deltas(chunks: ChatResponseGen) -> Generator[str, None, None]:
    for chunk in chunks:
        if chunk.delta:
            yield chunk.delta


async def _adeltas(chunks: ChatResponseAsyncGen) -> AsyncGenerator[str, None]:
    async for chunk in chunks:
        if chunk.delta:
            yield chunk.delta
