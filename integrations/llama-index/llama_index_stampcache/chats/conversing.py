"""How each chat engine of the framework takes a turn: what it asks, and how it is answered.

The order of what is read from and written to the memory is that of the engines themselves, since what a
memory gives depends on it.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools import ToolOutput
from msgspec import Struct

from llama_index_stampcache.chats.memories import (
    Said,
    history_for,
    overwritten,
    remembered,
    written,
)
from llama_index_stampcache.chats.turns import ASKED, NO_TURN, ContextTurn, SimpleTurn, Turn
from llama_index_stampcache.describing import Describer
from llama_index_stampcache.engines.fingerprint import Fingerprint
from llama_index_stampcache.engines.inner import Inner
from llama_index_stampcache.engines.making import Telling
from llama_index_stampcache.engines.query_engine import CachedQueryEngine
from llama_index_stampcache.engines.requests import Inputs, Requests
from llama_index_stampcache.engines.serving import Serving
from llama_index_stampcache.evidence import evidence_of
from llama_index_stampcache.llms.messages import keyed_messages
from llama_index_stampcache.watching.heard import Watching
from llama_index_stampcache.watching.sources import Source
from stampcache import ConfigError
from stampcache.adapters import Explanation, Flow, Front, Step, Sweep, Validity

KnownEngine: TypeAlias = (
    ContextChatEngine
    | CondensePlusContextChatEngine
    | CondenseQuestionChatEngine
    | SimpleChatEngine
)


class Conversing(Protocol):
    """A chat engine, as the steps of a turn."""

    def begin(self, said: Said) -> Flow[Turn]:
        """Read what the turn starts from; the memory is written as the engine does before it answers."""
        ...

    def answer(self, turn: Turn, *, aio: bool) -> Flow[RESPONSE_TYPE]:
        """Answer from the cache, else with the engine's parts."""
        ...

    def explain(self, turn: Turn) -> Flow[Explanation]:
        """Tell which check would decide about a turn."""
        ...

    def sweep(self, *, sample: int, tolerate: float) -> Flow[Sweep]:
        """Retrieve again for a sample of the watched answers."""
        ...

    def asked(self, said: Said) -> list[ChatMessage]:
        """Return what is written to the memory once there is an answer, before that."""
        ...

    def source(self, turn: Turn, response: RESPONSE_TYPE) -> ToolOutput | None:
        """Return what the engine reports as its tool."""
        ...

    def nodes(self, response: RESPONSE_TYPE) -> list[NodeWithScore]:
        """Return the nodes that the engine reports beside its tool."""
        ...


class Behind(Struct, frozen=True, kw_only=True):
    """The cache that all turns of one chat engine go through."""

    front: Front
    fingerprint: Fingerprint
    validity: Validity
    describer: Describer
    telling: Telling
    source: Callable[[], Source] | None = None
    volatile: frozenset[str] | None = None

    def serving(self, inner: Inner) -> Serving:
        """Return the path of one turn."""
        requests = Requests(inner, self.fingerprint, self.validity, self.volatile)
        watching = None
        if self.source is not None:
            watching = Watching(self.source, lambda: inner.postprocessors)
        return Serving(inner, self.front, requests, self.validity, self.telling, watching)


class OverQueries:
    """A `CondenseQuestionChatEngine`: it answers nothing but questions that stand alone."""

    def __init__(
        self,
        chat: CondenseQuestionChatEngine,
        whole: CachedQueryEngine,
        streaming: CachedQueryEngine,
    ) -> None:
        self._chat = chat
        self._whole = whole
        self._streaming = streaming

    def begin(self, said: Said) -> Flow[Turn]:
        """See `Conversing`."""
        chat = self._chat
        history: list[ChatMessage] = said.history or (
            yield from remembered(chat._memory, said.message)
        )
        question = yield from condensed(chat, history, said.message)
        return Turn(question=question, message=said.message, streams=said.streams)

    def answer(self, turn: Turn, *, aio: bool) -> Flow[RESPONSE_TYPE]:  # noqa: ARG002 - as others
        """See `Conversing`."""
        engine = self._streaming if turn.streams else self._whole
        return (
            yield from Step(
                sync=lambda: engine.query(turn.question), aio=lambda: engine.aquery(turn.question)
            )
        )

    def explain(self, turn: Turn) -> Flow[Explanation]:
        """See `Conversing`."""
        engine = self._streaming if turn.streams else self._whole
        return (
            yield from Step(
                sync=lambda: engine.explain(turn.question),
                aio=lambda: engine.aexplain(turn.question),
            )
        )

    def sweep(self, *, sample: int, tolerate: float) -> Flow[Sweep]:
        """See `Conversing`."""
        engine = self._whole
        return (
            yield from Step(
                sync=lambda: engine.sweep(sample=sample, tolerate=tolerate),
                aio=lambda: engine.asweep(sample=sample, tolerate=tolerate),
            )
        )

    def asked(self, said: Said) -> list[ChatMessage]:
        """See `Conversing`."""
        return [ChatMessage(role=MessageRole.USER, content=said.message)]

    def source(self, turn: Turn, response: RESPONSE_TYPE) -> ToolOutput:
        """See `Conversing`."""
        return ToolOutput(
            content="" if turn.streams else str(response),
            tool_name="query_engine",
            raw_input={"query": turn.question},
            raw_output=response,
        )

    def nodes(self, response: RESPONSE_TYPE) -> list[NodeWithScore]:  # noqa: ARG002 - the framework's signature
        """See `Conversing`; the framework takes them from the tool's response."""
        return []


class _OverParts:
    """A chat engine that is answered with its parts, turn by turn."""

    def __init__(self, behind: Behind) -> None:
        self._behind = behind

    def answer(self, turn: Turn, *, aio: bool) -> Flow[RESPONSE_TYPE]:
        """See `Conversing`."""
        serving = self._behind.serving(self._inner(turn))
        bundle = QueryBundle(turn.question)
        return (yield from serving.serve(bundle, aio=aio, inputs=lambda: self._inputs(turn)))

    def explain(self, turn: Turn) -> Flow[Explanation]:
        """See `Conversing`."""
        serving = self._behind.serving(self._inner(turn))
        bundle = QueryBundle(turn.question)
        return (yield from serving.explain(bundle, inputs=lambda: self._inputs(turn)))

    def sweep(self, *, sample: int, tolerate: float) -> Flow[Sweep]:
        """See `Conversing`; only first messages are swept, which are retrieved for as they are."""
        serving = self._behind.serving(self._inner(NO_TURN))
        return (yield from serving.sweep(sample=sample, tolerate=tolerate))

    def nodes(self, response: RESPONSE_TYPE) -> list[NodeWithScore]:
        """See `Conversing`."""
        return list(response.source_nodes)

    def _inner(self, turn: Turn) -> Inner:
        raise NotImplementedError

    def _inputs(self, turn: Turn) -> Inputs:
        raise NotImplementedError


class OverContext(_OverParts):
    """An engine that retrieves for each message, and shows the model the history, too.

    ``alone``: questions are condensed and then answered without the history, so that they may hit in
    any conversation.
    """

    def __init__(
        self,
        chat: ContextChatEngine | CondensePlusContextChatEngine,
        behind: Behind,
        *,
        alone: bool,
    ) -> None:
        super().__init__(behind)
        self._chat = chat
        self._alone = alone

    def begin(self, said: Said) -> Flow[Turn]:
        """See `Conversing`."""
        chat, memory = self._chat, self._chat._memory
        history = yield from history_for(memory, said)
        condenses = False
        if isinstance(chat, CondensePlusContextChatEngine) and not chat._skip_condense:
            if self._alone:
                question = yield from condensed(chat, history, said.message)
                return Turn(question=question, message=question, streams=said.streams)
            condenses = True
        return Turn(
            question=said.message,
            message=said.message,
            history=history,
            streams=said.streams,
            condenses=condenses,
            previous=said.previous,
        )

    def sweep(self, *, sample: int, tolerate: float) -> Flow[Sweep]:
        """See `Conversing`.

        Raises:
            ConfigError: messages are condensed to what is retrieved for, which is not kept.
        """
        if isinstance(self._chat, CondensePlusContextChatEngine) and not self._alone:
            raise ConfigError(
                "What was retrieved for is not known of an engine with across_conversations=False; sweep"
                " an engine over the same corpus that is asked questions."
            )
        return (yield from super().sweep(sample=sample, tolerate=tolerate))

    def asked(self, said: Said) -> list[ChatMessage]:
        """See `Conversing`."""
        return [ChatMessage(content=str(said.message), role=MessageRole.USER)]

    def source(self, turn: Turn, response: RESPONSE_TYPE) -> ToolOutput:
        """See `Conversing`."""
        nodes = list(response.source_nodes)
        asked = (response.metadata or {}).get(ASKED, turn.question)
        return ToolOutput(
            tool_name="retriever",
            content=str(nodes),
            raw_input={"message": asked},
            raw_output=nodes,
        )

    def _inner(self, turn: Turn) -> Inner:
        return Inner(ContextTurn(self._chat, turn, alone=self._alone))

    def _inputs(self, turn: Turn) -> Inputs:
        prompt = None
        if turn.previous is not None:
            prompt = {"previous": [one.digest for one in evidence_of(turn.previous, corpus="")]}
        history = keyed_messages(turn.history, self._behind.describer)
        return Inputs(turn.question, prompt, history=history)


class OverModel(_OverParts):
    """A `SimpleChatEngine`: no documents; the model is shown all that is said."""

    def __init__(self, chat: SimpleChatEngine, behind: Behind) -> None:
        super().__init__(behind)
        self._chat = chat

    def begin(self, said: Said) -> Flow[Turn]:
        """See `Conversing`."""
        memory, message = self._chat._memory, ChatMessage(content=said.message, role="user")
        if said.looks:
            shown = [*(yield from history_for(memory, said)), message]
        else:
            yield from overwritten(memory, said.history)
            yield from written(memory, [message])
            tokens = self._prefix_tokens()
            shown = yield from Step(
                sync=lambda: memory.get(initial_token_count=tokens),
                aio=lambda: memory.aget(initial_token_count=tokens),
            )
        history = [*self._chat._prefix_messages, *shown]
        return Turn(
            question=said.message, message=said.message, history=history, streams=said.streams
        )

    def _prefix_tokens(self) -> int:
        count = getattr(self._chat._memory, "tokenizer_fn", None)
        if count is None:
            return 0
        texts = (one.content or "" for one in self._chat._prefix_messages)
        return len(count(" ".join(texts)))

    def asked(self, said: Said) -> list[ChatMessage]:  # noqa: ARG002 - written before the answer
        """See `Conversing`."""
        return []

    def source(self, turn: Turn, response: RESPONSE_TYPE) -> None:
        """See `Conversing`."""

    def _inner(self, turn: Turn) -> Inner:
        return Inner(SimpleTurn(self._chat, turn))

    def _inputs(self, turn: Turn) -> Inputs:
        """Return what identifies a turn; a first one is its message alone, as the rest is settings."""
        first = [*self._chat._prefix_messages, ChatMessage(content=turn.message, role="user")]
        said = [] if list(turn.history) == first else turn.history
        return Inputs(turn.question, history=keyed_messages(said, self._behind.describer))


def whole_engine(
    chat: ContextChatEngine | CondensePlusContextChatEngine | SimpleChatEngine, *, alone: bool
) -> Inner:
    """Return what identifies all turns of a chat engine."""
    if isinstance(chat, SimpleChatEngine):
        return Inner(SimpleTurn(chat, NO_TURN))
    return Inner(ContextTurn(chat, NO_TURN, alone=alone))


def condensed(
    chat: CondenseQuestionChatEngine | CondensePlusContextChatEngine,
    history: list[ChatMessage],
    message: str,
) -> Step[str]:
    """Make a message a question that stands alone."""
    return Step(
        sync=lambda: chat._condense_question(history, message),
        aio=lambda: chat._acondense_question(history, message),
    )
