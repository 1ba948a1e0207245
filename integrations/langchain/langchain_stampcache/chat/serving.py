"""A call of a chat model through the cache: looked up, read along, replayed, or made and kept."""

import time
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import aclosing

from langchain_core.outputs import ChatGenerationChunk, ChatResult
from msgspec import Struct
from msgspec.structs import replace

from langchain_stampcache.chat.answers import (
    answer_from,
    generations_from,
    output_of,
    reported,
    result_from,
)
from langchain_stampcache.chat.call import ChatCall
from langchain_stampcache.chat.chunks import chunks_of, closing_chunk, own_chunk, whole
from langchain_stampcache.chat.requests import ChatRequests
from langchain_stampcache.usage import finish_reason
from stampcache import Answer, ConfigError, Evidence, Miss, Outcome, Reason, ScopeError
from stampcache.adapters import (
    Ask,
    AsyncOpened,
    CanonicalError,
    Core,
    Explanation,
    Flow,
    Front,
    Kept,
    Made,
    Opened,
    Replay,
    Step,
    Streaming,
    fields,
    said_before,
    surroundings,
)


class _Asked(Struct, frozen=True):
    """What a call asks, and what its answer is made from, where its scope says so."""

    ask: Ask
    evidence: tuple[Evidence, ...] | None


class ChatServing:
    """One cached chat model in front of one cache; safe for threads and tasks."""

    def __init__(self, core: Core, requests: ChatRequests) -> None:
        self.front = Front(core, kind="langchain.chat")
        self._streaming = Streaming(self.front)
        self._requests = requests

    def serve(self, call: ChatCall) -> Flow[ChatResult]:
        """Answer one call; equal ones that run at once are made once."""
        asked = self._asked(call)
        if isinstance(asked, Miss):
            result = yield from Step(sync=call.generate, aio=call.agenerate)
            return reported(result, fields(asked))
        return (
            yield from self.front.serve(
                asked.ask,
                recheck=None,
                read=lambda answer, report: result_from(answer, report, call),
                make=lambda outcome: self._made(call, asked, outcome),
            )
        )

    def stream(self, call: ChatCall) -> Generator[ChatGenerationChunk, None, None]:
        """Stream one call; equal streams that run at once are made once."""
        asked = self._streamed(call)
        if isinstance(asked, Miss):
            yield from _closed(call.stream(), asked)
            return
        reader = self._streaming.stream(
            asked.ask, _replay(call, asked), lambda _: Opened(time.perf_counter(), call.stream())
        )
        try:
            begun, last = reader.head(), None
            for chunk in reader:
                last = own_chunk(chunk, made_here=reader.led and begun.made)
                yield last
            if last is not None:
                yield closing_chunk(self._streaming.report(begun, led=reader.led), last)
        finally:
            reader.close()

    async def astream(self, call: ChatCall) -> AsyncGenerator[ChatGenerationChunk, None]:
        """See `stream`."""
        asked = self._streamed(call)
        if isinstance(asked, Miss):
            async with aclosing(_aclosed(call.astream(), asked)) as uncached:
                async for chunk in uncached:
                    yield chunk
            return

        async def make(outcome: Outcome) -> AsyncOpened[float, ChatGenerationChunk]:  # noqa: ARG001 - as it is called
            return AsyncOpened(time.perf_counter(), call.astream())

        reader = await self._streaming.astream(asked.ask, _replay(call, asked), make)
        try:
            begun, last = await reader.head(), None
            async for chunk in reader:
                last = own_chunk(chunk, made_here=reader.led and begun.made)
                yield last
            if last is not None:
                yield closing_chunk(self._streaming.report(begun, led=reader.led), last)
        finally:
            await reader.aclose()

    def explain(self, call: ChatCall) -> Flow[Explanation]:
        """Tell which check would decide about a call now; nothing is served, made or counted.

        Raises:
            CanonicalError: the call cannot be cached.
        """
        request = self._requests.of(call).request
        problem = call.called.caller.problem
        ask = self.front.ask(request) if problem is None else _problem(problem)
        if isinstance(ask, Miss):
            return Explanation(request, ask)
        return (yield from self.front.explain(ask))

    def _asked(self, call: ChatCall) -> _Asked | Miss:
        """Return what a call asks of the cache, or the Miss of one that bypasses it."""
        asked = self._requested(call)
        if isinstance(asked, Miss):
            self.front.bypassed(asked)
        return asked

    def _requested(self, call: ChatCall) -> _Asked | Miss:
        problem = call.called.caller.problem
        if isinstance(problem, ScopeError):
            self.front.event("adapter.unscoped")
            return _problem(problem)
        if problem is not None:
            self.front.failed("controls", problem)
            return _problem(problem)
        if surroundings() is call.called.said:
            return self._scoped(call)
        # A stream may be read in another scope than the one that it was asked for in.
        with said_before(call.called.said):
            return self._scoped(call)

    def _scoped(self, call: ChatCall) -> _Asked | Miss:
        try:
            made = self._requests.of(call)
        except CanonicalError as error:
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        except Exception as error:  # noqa: BLE001 - counted; the model is called without the cache
            self.front.failed("request", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))
        ask = self.front.ask(made.request)
        return ask if isinstance(ask, Miss) else _Asked(ask, made.evidence)

    def _streamed(self, call: ChatCall) -> _Asked | Miss:
        if call.choices == 1:
            return self._asked(call)
        several = Miss(reason=Reason.UNCACHEABLE, detail="several answers stream as one")
        self.front.bypassed(several)
        return several

    def _made(self, call: ChatCall, asked: _Asked, outcome: Outcome) -> Flow[Made[ChatResult]]:
        started = time.perf_counter()
        result = yield from Step(sync=call.generate, aio=call.agenerate)
        latency_s = time.perf_counter() - started
        kept = self.front.kept(lambda: _kept(result, call, asked, latency_s))
        return Made(
            output=reported(result, fields(outcome)),
            answer=None if kept is None else kept.answer,
            evidence=asked.evidence,
        )


def _problem(problem: ScopeError | ConfigError) -> Miss:
    unscoped = isinstance(problem, ScopeError)
    reason = Reason.UNSCOPED if unscoped else Reason.UNCACHEABLE
    return Miss(reason=reason, detail=str(problem))


def _kept(result: ChatResult, call: ChatCall, asked: _Asked, latency_s: float) -> Kept | None:
    try:
        return Kept(answer_from(result, call, latency_s), asked.evidence)
    except CanonicalError:
        return None


def _replay(call: ChatCall, asked: _Asked) -> Replay[float, ChatGenerationChunk]:
    def read(answer: Answer) -> Opened[float, ChatGenerationChunk]:
        generation = generations_from(answer, call)[0]
        output_of(generation)
        return Opened(0.0, iter(chunks_of(generation)))

    def keep(started: float, chunks: Sequence[ChatGenerationChunk]) -> Kept | None:
        result = whole(chunks)
        kept = _kept(result, call, asked, time.perf_counter() - started)
        if kept is None or not _was_cut(result, call):
            return kept
        return replace(kept, answer=replace(kept.answer, finish_reason="aborted"))

    return Replay(read=read, keep=keep)


def _was_cut(result: ChatResult, call: ChatCall) -> bool:
    """Tell whether a stream ended without saying why: clients take a closed connection for an end."""
    generation = result.generations[0]
    said = {**(generation.generation_info or {}), **generation.message.response_metadata}
    ended = finish_reason(generation) or said.get("status")
    return call.says_its_end and not ended


def _closed(
    chunks: Iterator[ChatGenerationChunk], miss: Miss
) -> Generator[ChatGenerationChunk, None, None]:
    last = None
    for chunk in chunks:
        last = own_chunk(chunk, made_here=True)
        yield last
    if last is not None:
        yield closing_chunk(fields(miss), last)


async def _aclosed(
    chunks: AsyncGenerator[ChatGenerationChunk, None], miss: Miss
) -> AsyncGenerator[ChatGenerationChunk, None]:
    last = None
    async with aclosing(chunks):
        async for chunk in chunks:
            last = own_chunk(chunk, made_here=True)
            yield last
    if last is not None:
        yield closing_chunk(fields(miss), last)
