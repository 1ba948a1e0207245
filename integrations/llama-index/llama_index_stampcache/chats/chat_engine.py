"""`CachedChatEngine`: a chat engine of the framework, behind the cache."""

import asyncio
from pathlib import Path

from llama_index.core.base.llms.types import ChatMessage, ChatResponseAsyncGen, ChatResponseGen
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks import CallbackManager, trace_method
from llama_index.core.chat_engine import (
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)
from llama_index.core.memory import BaseMemory
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import ToolOutput
from llama_index.core.types import Thread
from msgspec import Struct

from llama_index_stampcache.chats.behind import known_engine, queried
from llama_index_stampcache.chats.conversing import (
    Behind,
    Conversing,
    OverContext,
    OverModel,
    OverQueries,
    whole_engine,
)
from llama_index_stampcache.chats.memories import Said, written
from llama_index_stampcache.chats.responses import (
    achunks_of,
    chunks_of,
    message_of,
    report_of,
    text_of,
    whole,
)
from llama_index_stampcache.chats.turns import Turn
from llama_index_stampcache.describing import Describer
from llama_index_stampcache.engines.fingerprint import Fingerprint
from llama_index_stampcache.engines.making import Telling
from llama_index_stampcache.engines.query_engine import check_identity
from llama_index_stampcache.usage import listen
from llama_index_stampcache.watching.sources import of_source, source_of
from stampcache import AsyncCache, Cache, Manifest, Stamps, open_cache
from stampcache.adapters import (
    Explanation,
    Flow,
    Front,
    Grounding,
    Sweep,
    Validity,
    VersionOf,
    checked,
)


class _Answered(Struct, frozen=True):
    """A turn, and its response; whole, unless it was asked for as a stream."""

    turn: Turn
    response: RESPONSE_TYPE


class CachedChatEngine(BaseChatEngine):
    """A chat engine that answers from the cache while what the answer was made from still holds.

    It stands where the inner engine stood, and uses its memory: each turn is written there, a hit as any
    other. An answer is given again only after the same history; a first message has none, so it may
    hit in any conversation of the scope, by meaning too. An engine that condenses a message to a
    question that stands alone looks that question up instead, whatever was said before.
    ``response.metadata["cache"]`` tells what happened.
    """

    def __init__(
        self,
        inner: BaseChatEngine,
        *,
        cache: Cache | AsyncCache | str,
        grounding: Grounding = "recheck",
        version_of: VersionOf = "sources",
        corpus: str = "",
        stamps: Stamps | None = None,
        manifest: Manifest | str | Path | None = None,
        kind: str = "",
        allow_stale: bool = False,
        version: str | None = None,
        name: str = "",
        across_conversations: bool = True,
    ) -> None:
        """Put a cache in front of a chat engine.

        Args:
            inner: a `CondenseQuestionChatEngine`, `ContextChatEngine`, `CondensePlusContextChatEngine` or
                `SimpleChatEngine`. The last one has no documents: give ``grounding="none"``.
            across_conversations: a `CondensePlusContextChatEngine` shows its model the whole history
                beside the question. By default the question that stands alone is answered without
                it, so that the answer holds in any conversation. Give ``False`` to keep the
                engine's own prompt; then an answer is given again only after the same history.
            cache: an open cache, or the URL of one; for the others see `CachedQueryEngine`.
            grounding: see `CachedQueryEngine`.
            version_of: see `CachedQueryEngine`.
            corpus: see `CachedQueryEngine`.
            stamps: see `CachedQueryEngine`.
            manifest: see `CachedQueryEngine`.
            kind: see `CachedQueryEngine`.
            allow_stale: see `CachedQueryEngine`.
            version: see `CachedQueryEngine`.
            name: see `CachedQueryEngine`.

        Raises:
            ConfigError: the engine is none of these, or cannot be cached that way.
        """
        self._inner = known_engine(inner)
        self.callback_manager: CallbackManager = self._inner.callback_manager
        given = Validity(
            grounding=grounding,
            version_of=version_of,
            corpus=corpus,
            kind=kind,
            allow_stale=allow_stale,
            stamps=stamps or Stamps(),
            version=version,
        )
        self._given = given
        opened = open_cache(cache) if isinstance(cache, str) else cache
        try:
            self._front = Front(opened.core, kind="llama-index.chat-engine")
            self._parts = self._behind(opened, given, manifest, name, alone=across_conversations)
        except BaseException:
            if isinstance(cache, str) and isinstance(opened, Cache):
                opened.close()
            raise
        self._cache = opened
        listen()

    def _behind(
        self,
        cache: Cache | AsyncCache,
        given: Validity,
        manifest: Manifest | str | Path | None,
        name: str,
        *,
        alone: bool,
    ) -> Conversing:
        inner = self._inner
        if isinstance(inner, CondenseQuestionChatEngine):
            engines = (
                queried(inner, cache, given, manifest, name, streams=streams)
                for streams in (False, True)
            )
            return OverQueries(inner, *engines)
        has_index = not isinstance(inner, SimpleChatEngine)
        watched = source_of(inner, cache.core) if given.watched and has_index else None
        if watched is not None:
            given = of_source(given, watched)
        validity = checked(cache.core, given, manifest=manifest, has_index=has_index)
        turns = whole_engine(inner, alone=alone)
        fingerprint = Fingerprint(turns, validity, known=cache.core.intake.stamps, name=name)
        check_identity(fingerprint, validity)
        behind = Behind(
            front=self._front,
            fingerprint=fingerprint,
            validity=validity,
            describer=Describer(rechecked=False, index_named=False),
            telling=Telling(type(inner).__name__),
            source=None if watched is None else lambda: source_of(inner, cache.core),
            volatile=None if watched is None else watched.volatile,
        )
        if isinstance(inner, SimpleChatEngine):
            return OverModel(inner, behind)
        return OverContext(inner, behind, alone=alone)

    @property
    def inner(self) -> BaseChatEngine:
        """The engine whose parts answer on a miss."""
        return self._inner

    @property
    def cache(self) -> Cache | AsyncCache:
        """The cache, for its other verbs; close it if it was given by its URL."""
        return self._cache

    @property
    def grounding(self) -> Grounding:
        """How its answers are kept true."""
        return self._given.grounding

    @property
    def allow_stale(self) -> bool:
        """Whether it gives answers that no longer hold."""
        return self._given.allow_stale

    @property
    def _memory(self) -> BaseMemory:
        return self._inner._memory

    @property
    def chat_history(self) -> list[ChatMessage]:
        """What was said, from the inner engine's memory."""
        return self._inner.chat_history

    def reset(self) -> None:
        """Begin a new conversation; the cache keeps what it has."""
        self._inner.reset()

    @trace_method("chat")
    def chat(
        self,
        message: str,
        chat_history: list[ChatMessage] | None = None,
        prev_chunks: list[NodeWithScore] | None = None,
    ) -> AgentChatResponse:
        """Answer a message, and write both to the memory."""
        said = self._said(message, chat_history, prev_chunks)
        answered = self._front.run(self._chat(said, aio=False))
        return self._whole(answered)

    @trace_method("chat")
    async def achat(
        self,
        message: str,
        chat_history: list[ChatMessage] | None = None,
        prev_chunks: list[NodeWithScore] | None = None,
    ) -> AgentChatResponse:
        """See `chat`."""
        said = self._said(message, chat_history, prev_chunks)
        answered = await self._front.arun(self._chat(said, aio=True))
        return self._whole(answered)

    @trace_method("chat")
    def stream_chat(
        self,
        message: str,
        chat_history: list[ChatMessage] | None = None,
        prev_chunks: list[NodeWithScore] | None = None,
    ) -> StreamingAgentChatResponse:
        """Answer a message as a stream, which is written to the memory when it has ended."""
        said = self._said(message, chat_history, prev_chunks, streams=True)
        answered = self._front.run(self._chat(said, aio=False))
        made = self._streaming(answered, chat_stream=chunks_of(answered.response))
        thread = Thread(target=made.write_response_to_history, args=(self._memory,))
        made.write_response_to_history_thread = thread
        thread.start()
        return made

    @trace_method("chat")
    async def astream_chat(
        self,
        message: str,
        chat_history: list[ChatMessage] | None = None,
        prev_chunks: list[NodeWithScore] | None = None,
    ) -> StreamingAgentChatResponse:
        """See `stream_chat`."""
        said = self._said(message, chat_history, prev_chunks, streams=True)
        answered = await self._front.arun(self._chat(said, aio=True))
        made = self._streaming(answered, achat_stream=achunks_of(answered.response))
        made.awrite_response_to_history_task = asyncio.create_task(
            made.awrite_response_to_history(self._memory)
        )
        return made

    def explain(self, message: str, chat_history: list[ChatMessage] | None = None) -> Explanation:
        """Tell which check of the cache would decide about a message now; nothing is answered."""
        said = Said(message=message, history=chat_history, looks=True)
        return self._front.run(self._explain(said))

    async def aexplain(
        self, message: str, chat_history: list[ChatMessage] | None = None
    ) -> Explanation:
        """See `explain`."""
        said = Said(message=message, history=chat_history, looks=True)
        return await self._front.arun(self._explain(said))

    def sweep(self, *, sample: int = 50, tolerate: float = 0.0) -> Sweep:
        """See `CachedQueryEngine.sweep`; of a conversation only what stands alone is swept."""
        return self._front.run(self._parts.sweep(sample=sample, tolerate=tolerate))

    async def asweep(self, *, sample: int = 50, tolerate: float = 0.0) -> Sweep:
        """See `sweep`."""
        return await self._front.arun(self._parts.sweep(sample=sample, tolerate=tolerate))

    def _said(
        self,
        message: str,
        history: list[ChatMessage] | None,
        previous: list[NodeWithScore] | None,
        *,
        streams: bool = False,
    ) -> Said:
        if previous is not None and not isinstance(self._inner, ContextChatEngine):
            raise TypeError(f"A {type(self._inner).__name__} takes no prev_chunks.")
        return Said(message=message, history=history, previous=previous, streams=streams)

    def _explain(self, said: Said) -> Flow[Explanation]:
        turn = yield from self._parts.begin(said)
        return (yield from self._parts.explain(turn))

    def _chat(self, said: Said, *, aio: bool) -> Flow[_Answered]:
        turn = yield from self._parts.begin(said)
        response = yield from self._parts.answer(turn, aio=aio)
        if said.streams:
            yield from written(self._memory, self._parts.asked(said))
            return _Answered(turn, response)
        made = yield from whole(response)
        yield from written(self._memory, [*self._parts.asked(said), message_of(made)])
        return _Answered(turn, made)

    def _whole(self, answered: _Answered) -> AgentChatResponse:
        return AgentChatResponse(
            response=text_of(answered.response),
            sources=self._sources(answered),
            source_nodes=self._parts.nodes(answered.response),
            metadata=report_of(answered.response),
        )

    def _streaming(
        self,
        answered: _Answered,
        *,
        chat_stream: ChatResponseGen | None = None,
        achat_stream: ChatResponseAsyncGen | None = None,
    ) -> StreamingAgentChatResponse:
        made = StreamingAgentChatResponse(
            chat_stream=chat_stream,
            achat_stream=achat_stream,
            sources=self._sources(answered),
            source_nodes=self._parts.nodes(answered.response),
        )
        # the class has no such field, but its sibling has: the report is found in the same place
        made.metadata = report_of(answered.response)  # type: ignore[attr-defined]  # every response of a chat has them
        return made

    def _sources(self, answered: _Answered) -> list[ToolOutput]:
        source = self._parts.source(answered.turn, answered.response)
        return [] if source is None else [source]
