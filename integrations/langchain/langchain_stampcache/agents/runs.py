"""One run of an agent after a lookup that found nothing: what it did, and whether its answer is kept."""

import enum
import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents.middleware import ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration
from msgspec import Struct

from langchain_stampcache import payload
from langchain_stampcache import prompt as prompts
from langchain_stampcache.agents import schemas as agent_schemas
from langchain_stampcache.payload import Whole
from langchain_stampcache.reports import copied_report, reset
from langchain_stampcache.usage import (
    WAITING,
    message_finish,
    message_usage,
    revision,
    total,
    worst,
)
from stampcache import Answer, CodecError, Miss, Request, Stale, Usage
from stampcache.adapters import CacheFields, CanonicalError

AGENT = "lc.agent.1"
RUNS_KEPT = 1_024


class Unkept(enum.Enum):
    """Why the answer of a run is not stored; the value is the end of a counter's name."""

    RUN_FORGOTTEN = "run_forgotten"
    UNFINISHED = "unfinished"
    REWRITTEN = "rewritten"
    OTHER_TOOL = "other_tool"
    TOOL_FAILED = "tool_failed"
    STATE_CHANGED = "state_changed"
    AGENT_CHANGED = "agent_changed"
    ASKED_AGAIN = "asked_again"


class Said(Struct, frozen=True):
    """A final answer: its messages (more than one where a tool carried it), and what it holds."""

    messages: list[BaseMessage]
    structured: object = None

    @property
    def reply(self) -> AIMessage:
        """What the model said."""
        return next(each for each in self.messages if isinstance(each, AIMessage))


class Begun(Struct, frozen=True):
    """What an agent was when a run began: what it runs with, and its state besides the messages.

    ``besides`` are the fields of the state that shape no answer, by name.
    """

    agent: object
    state: object
    besides: Mapping[str, object]


class Ended(Struct, frozen=True):
    """The state of an agent at the end of a run: whole, and in the two parts of `Begun`."""

    whole: Mapping[str, Any]
    state: object
    besides: Mapping[str, object]


class _Call(Struct, frozen=True):
    """A call of a tool that the model asked for."""

    id: str
    tool: str


class Run:
    """What is known of one run; only the tasks of that run touch it, one after the other."""

    def __init__(
        self,
        request: Request | None,
        outcome: Miss | Stale,
        begun: Begun | None = None,
        specs: Sequence[Any] = (),
    ) -> None:
        """Begin a run; ``request`` is ``None`` where it bypasses the cache."""
        self.request = request
        self.outcome = outcome
        self._begun = begun
        self._specs = specs
        self._at = time.perf_counter()
        self._changed = False
        self._asked_again = False
        self._usages: list[Usage] = []
        self._finishes: list[str] = []
        self._calls: list[_Call] = []
        self._final: Said | None = None

    def goes_on(self, agent: object, messages: Sequence[BaseMessage]) -> None:
        """Note a further call of the model: what it runs with, and to what it replies.

        Another model may answer in its place; and to what a middleware asks after the first answer, a
        hit would be no reply.
        """
        self._changed = self._changed or self._begun is None or agent != self._begun.agent
        last = messages[-1] if messages else None
        self._asked_again = self._asked_again or isinstance(last, HumanMessage)

    def saw(self, response: ModelResponse[Any]) -> None:
        """Note what the model replied; the last reply may be the answer."""
        replies = [each for each in response.result if isinstance(each, AIMessage)]
        self._final = None
        for reply in replies:
            self._usages.append(message_usage(reply))
            self._finishes.append(message_finish(reply))
        structured = response.structured_response
        if replies and _is_final(replies[-1], structured):
            self._final = Said(list(response.result), structured)
            return
        self._calls += [
            _Call(str(call["id"]), call["name"]) for each in replies for call in each.tool_calls
        ]

    def unkept(self, ended: Ended, cacheable: frozenset[str]) -> Unkept | None:
        """Say why the answer with which the agent ended is not stored, or ``None``.

        Args:
            ended: its state then.
            cacheable: the tools whose use is no obstacle.
        """
        if self._final is None:
            return Unkept.UNFINISHED
        messages = ended.whole["messages"]
        if not _same(messages[-len(self._final.messages) :], self._final.messages):
            return Unkept.REWRITTEN
        if self._asked_again:
            return Unkept.ASKED_AGAIN
        if self._changed:
            return Unkept.AGENT_CHANGED
        begun = self._begun
        if begun is None or ended.state != begun.state:
            return Unkept.STATE_CHANGED
        if ended.besides != begun.besides:  # a hit would not change them
            return Unkept.STATE_CHANGED
        return self._of_tools(messages, cacheable | {spec.name for spec in self._specs})

    def _of_tools(self, messages: Sequence[BaseMessage], allowed: frozenset[str]) -> Unkept | None:
        results = {each.tool_call_id: each for each in messages if isinstance(each, ToolMessage)}
        for call in self._calls:
            result = results.get(call.id)
            if call.tool not in allowed or (result and (result.name or call.tool) not in allowed):
                return Unkept.OTHER_TOOL
            if result is None or result.status == "error":
                return Unkept.TOOL_FAILED
        return None

    def answer(self) -> Answer:
        """Return the answer in the form that is stored.

        Raises:
            CanonicalError: something in it would not come back equal.
        """
        if self._final is None:
            raise CanonicalError("the run ended without a final answer")
        reply, structured = self._final.reply, self._final.structured
        held = None if structured is None else agent_schemas.dump_response(structured, self._specs)
        finish = worst(self._finishes)
        messages = [_bare(each) for each in self._final.messages]
        return Answer(
            text=str(reply.text) or ("" if held is None else json.dumps(held)),
            payload=payload.dump_whole(Whole({"messages": messages, "structured": held})),
            format=AGENT,
            finish_reason="stop" if finish in WAITING else finish,  # those calls were answered
            revision=revision(ChatGeneration(message=reply)),
            usage=total(self._usages),
            latency_s=time.perf_counter() - self._at,
        )


class Runs:
    """The runs under way, by a token that travels in their state; bounded, safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, Run] = OrderedDict()

    def begin(self, run: Run) -> str:
        """Keep a run until its end; return its token."""
        token = secrets.token_hex(8)
        with self._lock:
            self._runs[token] = run
            if len(self._runs) > RUNS_KEPT:  # one that failed or was interrupted never ends
                self._runs.popitem(last=False)
        return token

    def of(self, token: str) -> Run | None:
        """Return a run under way."""
        with self._lock:
            return self._runs.get(token)

    def end(self, token: str) -> Run | None:
        """Return a run that ends, and forget it."""
        with self._lock:
            return self._runs.pop(token, None)


def read(answer: Answer, report: CacheFields, specs: Sequence[Any]) -> Said:
    """Return one's own copy of a stored answer, with new ids.

    Raises:
        CodecError: it cannot be read.
    """
    if answer.format != AGENT:
        raise CodecError(f"the stored answer has the form {answer.format!r}, not {AGENT!r}")
    stored = payload.load_whole(answer.payload, payload.WHOLE).value
    match stored:
        case {"messages": list(messages), "structured": held} if messages:
            pass
        case _:
            raise CodecError("the stored answer of an agent has no messages")
    if not any(isinstance(each, AIMessage) for each in messages):
        raise CodecError("the stored answer of an agent has no reply of a model")
    _renew(messages)
    said = Said(messages, None if held is None else agent_schemas.load_response(held, specs))
    said.reply.response_metadata["cache"] = copied_report(report)
    return said


def marked(response: ModelResponse[Any], report: CacheFields) -> ModelResponse[Any]:
    """Return a fresh response whose final reply tells what the cache did; others stay as they are.

    The reply is copied, since a model's own cache may hold the one that it gave.
    """
    replies = [each for each in response.result if isinstance(each, AIMessage)]
    if not replies or not _is_final(replies[-1], response.structured_response):
        return response
    said = {**replies[-1].response_metadata, "cache": copied_report(report)}
    told = replies[-1].model_copy(update={"response_metadata": said})
    result = [told if each is replies[-1] else each for each in response.result]
    return ModelResponse(result=result, structured_response=response.structured_response)


def _is_final(reply: AIMessage, structured: object) -> bool:
    return structured is not None or not (reply.tool_calls or reply.invalid_tool_calls)


def _same(one: Sequence[BaseMessage], other: Sequence[BaseMessage]) -> bool:
    return prompts.of_messages(one) == prompts.of_messages(other)


def _bare(message: BaseMessage) -> BaseMessage:
    """Return a message without what only its own run was told."""
    said = {name: item for name, item in message.response_metadata.items() if name != "cache"}
    return message.model_copy(update={"response_metadata": said})


def _renew(messages: Sequence[BaseMessage]) -> None:
    """Give messages that are said again no id, and calls of tools in them new ones."""
    renewed: dict[object, str] = {}
    for message in messages:
        reset(message)
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                call["id"] = renewed.setdefault(call["id"], f"call_{secrets.token_hex(12)}")
        elif isinstance(message, ToolMessage):
            message.tool_call_id = renewed.get(message.tool_call_id, message.tool_call_id)
