"""What making an answer took: tokens and finish reasons as the models report them, and seconds.

LlamaIndex tells it in instrumentation events. One handler, without state, hands each event to the
meters of the running context; a context variable keeps concurrent queries apart. Where an LLM call
runs in a thread that was started by hand, nothing is seen and the tokens stay unknown.
"""

import re
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]  # re-exported by LlamaIndex
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatInProgressEvent,
    LLMCompletionEndEvent,
    LLMCompletionInProgressEvent,
)
from llama_index.core.instrumentation.events.span import (  # type: ignore[attr-defined]  # re-exported by LlamaIndex
    SpanDropEvent,
)

from stampcache import Usage
from stampcache.adapters import Step

Result = TypeVar("Result")
# How providers say that an answer is complete; so are calls of tools inside a made answer.
_COMPLETE = frozenset({"stop", "end_turn", "eos", "tool_calls", "function_call", "tool_use"})
_PLACES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "input_tokens": (("prompt_tokens",), ("input_tokens",), ("prompt_eval_count",)),
    "output_tokens": (("completion_tokens",), ("output_tokens",), ("eval_count",)),
    "cached_tokens": (
        ("prompt_tokens_details", "cached_tokens"),
        ("prompt_cache_hit_tokens",),
        ("cache_read_input_tokens",),
    ),
    "reasoning_tokens": (("completion_tokens_details", "reasoning_tokens"),),
}
_REVISION = ("system_fingerprint",)
_FAILED = re.compile(r"\.a?query-")
"""Marks the span of an engine's query; a composed engine goes on without one that failed."""
_FINISHES = (
    ("choices", "0", "finish_reason"),
    ("finish_reason",),
    ("stop_reason",),
    ("done_reason",),
)


class Meter:
    """Adds up what the LLM calls of one answer took; safe for the threads of one query."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: list[object] = []  # kept alive, so that an id is not met twice
        self._tokens: dict[str, int] = {}
        self._finishes: list[str] = []
        self._revision = ""
        self._streamed = False
        self._failed = False
        self._elapsed_s = 0.0

    @property
    def usage(self) -> Usage:
        """The tokens of all calls together; what no call reported is unknown."""
        return Usage(**self._tokens)

    @property
    def finish_reason(self) -> str:
        """The first reason that is not a plain end, since one call cut off spoils the answer.

        A stream of chat completion chunks that ended without any reason was cut: ``"aborted"``. An
        answer that was made without one of its parts, since the query for it failed, is an ``"error"``.
        """
        if self._failed:
            return "error"
        for reason in self._finishes:
            if reason not in _COMPLETE:
                return reason
        if self._finishes:
            return "stop"
        return "aborted" if self._streamed else ""

    @property
    def revision(self) -> str:
        """By what the provider says the last call was served, of those that tell."""
        return self._revision

    @property
    def elapsed_s(self) -> float:
        """Seconds spent making, without the time in which a consumer of a stream paused."""
        return self._elapsed_s

    def call(self, make: Callable[[], Result]) -> Result:
        """Return what ``make`` returns, metering it."""
        with self._running():
            return make()

    async def acall(self, make: Callable[[], Awaitable[Result]]) -> Result:
        """Await what ``make`` gives, metering it."""
        with self._running():
            return await make()

    @contextmanager
    def _running(self) -> Generator[None, None, None]:
        outer = _RUNNING.get()
        token = _RUNNING.set((*outer, self))
        started = time.perf_counter()
        try:
            yield
        finally:
            self._elapsed_s += time.perf_counter() - started
            _RUNNING.reset(token)

    def streamed(self, raw: object) -> None:
        """Note the finish reason of a raw stream chunk; chat completions give it in some chunk."""
        self._streamed = self._streamed or _at(raw, ("choices",)) is not None
        self.finished(raw)

    def dropped(self, span_id: str) -> None:
        """Note that something failed inside; what fails as a whole brings no answer at all.

        A query that nobody awaits any more did not fail. It may be anybody's: the garbage collector
        ends it in whatever context is running then.
        """
        if not isinstance(sys.exception(), GeneratorExit):
            self._failed = self._failed or _FAILED.search(span_id) is not None

    def finished(self, raw: object) -> None:
        """Note the finish reason of a provider's raw response, if it has one."""
        revision, reason = _at(raw, _REVISION), _first(raw, _FINISHES)
        if isinstance(revision, str) and revision:
            self._revision = revision
        if isinstance(reason, str) and reason:
            with self._lock:
                self._finishes.append(reason.lower())

    def ended(self, raw: object) -> None:
        """Note a raw response; one that is reported by two nested calls is counted once."""
        if raw is None:
            return
        with self._lock:
            if any(raw is one for one in self._counted):
                return
            self._counted.append(raw)
        self.finished(raw)
        spent = _at(raw, ("usage",)) or raw
        for name, places in _PLACES.items():
            tokens = _first(spent, places)
            if isinstance(tokens, int) and not isinstance(tokens, bool):
                with self._lock:
                    self._tokens[name] = self._tokens.get(name, 0) + tokens


_RUNNING: ContextVar[tuple[Meter, ...]] = ContextVar("stampcache_meters", default=())


class UsageHandler(BaseEventHandler):
    """Hands the LLM events of the framework to the meters of the running context."""

    @classmethod
    def class_name(cls) -> str:
        """Name it to the framework."""
        return "StampcacheUsageHandler"

    def handle(self, event: BaseEvent, **_: object) -> None:
        """Note the end of an LLM call, and the finish reason wherever a stream gives it."""
        meters = _RUNNING.get()
        if not meters:
            return
        if isinstance(event, LLMChatEndEvent | LLMCompletionEndEvent):
            for meter in meters:
                meter.ended(event.response.raw if event.response is not None else None)
        elif isinstance(event, LLMChatInProgressEvent | LLMCompletionInProgressEvent):
            for meter in meters:
                meter.streamed(event.response.raw)
        elif isinstance(event, SpanDropEvent):
            for meter in meters:
                meter.dropped(event.span_id or "")


def metered(step: Step[Result], meter: Meter) -> Step[Result]:
    """Return a step that the meter measures."""
    return Step(sync=lambda: meter.call(step.sync), aio=lambda: meter.acall(step.aio))


def listen() -> None:
    """Add the handler to the framework's root dispatcher, once per process."""
    root = get_dispatcher()
    if not any(isinstance(handler, UsageHandler) for handler in root.event_handlers):
        root.add_event_handler(UsageHandler())


def _first(raw: object, places: tuple[tuple[str, ...], ...]) -> object:
    for place in places:
        found = _at(raw, place)
        if found is not None:
            return found
    return None


def _at(raw: object, place: tuple[str, ...]) -> object:
    for name in place:
        if isinstance(raw, Mapping):
            raw = raw.get(name)
        elif isinstance(raw, list | tuple):
            raw = raw[int(name)] if name.isdigit() and int(name) < len(raw) else None
        else:
            raw = getattr(raw, name, None)
        if raw is None:
            return None
    return raw
