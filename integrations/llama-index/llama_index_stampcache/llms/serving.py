"""The path of one call of a model through the cache.

Equal calls that run at once ask the model once, and share its failure. Whatever fails in the cache is
counted, and the model answers as if there were none.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Any

from llama_index.core.llms import LLM

from llama_index_stampcache import events
from llama_index_stampcache.llms import events as llm_events
from llama_index_stampcache.llms import payload as llm_payload
from llama_index_stampcache.llms.answers import answer_of
from llama_index_stampcache.llms.forms import (
    Call,
    Form,
    Response,
    Tree,
    Untakable,
    comes_back,
    rebuilt,
    reported,
    spared,
    taken,
)
from llama_index_stampcache.llms.identity import LLMRequests
from llama_index_stampcache.llms.streaming import (
    Chunk,
    Making,
    achunks_of,
    amarked,
    chunks_of,
    marked,
    own_chunk,
)
from stampcache import Answer, CodecError, Miss, Stale
from stampcache.adapters import (
    Ask,
    AsyncOpened,
    Begun,
    CacheFields,
    Flow,
    Front,
    Kept,
    Made,
    Opened,
    Replay,
    Step,
    Streaming,
    asked,
    fields,
)

SEAM = "model"


class LLMServing:
    """One model behind one cache; safe for threads and tasks."""

    def __init__(self, inner: LLM, front: Front, requests: LLMRequests) -> None:
        self._inner = inner
        self._front = front
        self._requests = requests
        self._streaming = Streaming(front)

    # -- whole responses --------------------------------------------------------------------------

    def answer(self, call: Call) -> Response:
        """Return the response to a call."""
        return self._front.run(self._answered(call, aio=False))

    async def aanswer(self, call: Call) -> Response:
        """See `answer`."""
        return await self._front.arun(self._answered(call, aio=True))

    def _answered(self, call: Call, *, aio: bool) -> Flow[Response]:
        ask = self._ask(call, aio=aio)
        making = Making()
        if isinstance(ask, Miss):
            self._front.bypassed(ask)
            events.tell(fields(ask), SEAM)
            response = yield from self._asking(call, making)
            return reported(response, fields(ask))
        made: list[Response] = []
        reports: list[CacheFields] = []

        def make(outcome: Miss | Stale) -> Flow[Made[Response]]:
            response = yield from self._asking(call, making)
            made.append(response)
            kept = self._front.kept(lambda: self._kept(call, response, making))
            answer = None if kept is None else kept.answer
            reports.append(fields(outcome))
            return Made(output=reported(response, reports[-1]), answer=answer)

        def read(answer: Answer, report: CacheFields) -> Response:
            response = reported(rebuilt(spared(_trees(answer, call)[-1])), report)
            reports.append(report)
            return response

        response = yield from self._front.serve(ask, recheck=None, read=read, make=make)
        events.tell(reports[-1], SEAM)
        if not made:
            llm_events.told(self._inner, call, response)
        return response

    def _asking(self, call: Call, making: Making) -> Step[Response]:
        inner, options = self._inner, _options(call)
        if call.form is Form.CHAT:
            return Step(
                sync=lambda: making.call(lambda: inner.chat(call.messages, **options)),
                aio=lambda: making.acall(lambda: inner.achat(call.messages, **options)),
            )
        return Step(
            sync=lambda: making.call(lambda: inner.complete(call.prompt, **options)),
            aio=lambda: making.acall(lambda: inner.acomplete(call.prompt, **options)),
        )

    def _kept(self, call: Call, response: Response, making: Making) -> Kept | None:
        tree = self._taken(response)
        if tree is None or not comes_back(response, tree):
            return None
        return Kept(answer_of(call.form, [tree], latency_s=making.elapsed_s))

    # -- streams ----------------------------------------------------------------------------------

    def stream(self, call: Call) -> Generator[Response, None, None]:
        """Return the response to a call as a stream; it is looked up now, and failures are raised now."""
        ask = self._ask(call, aio=False)
        if isinstance(ask, Miss):
            self._front.bypassed(ask)
            events.tell(fields(ask), SEAM)
            return marked(self._opened(call), fields(ask))

        def make(_: Miss | Stale) -> Opened[Making, Chunk]:
            making = Making()
            opened = making.call(lambda: self._opened(call))
            return Opened(making, chunks_of(opened, making, self._taken))

        reader = self._streaming.stream(ask, self._replay(call), make)
        begun = reader.head()
        report = self._streaming.report(begun, led=reader.led)
        events.tell(report, SEAM)
        led = begun.made and reader.led

        def given() -> Generator[Response, None, None]:
            try:
                for chunk in reader:
                    yield own_chunk(chunk, report, led=led)
            finally:
                reader.close()

        return given() if led else llm_events.streamed(self._inner, call, given())

    async def astream(self, call: Call) -> AsyncGenerator[Response, None]:
        """See `stream`."""
        ask = self._ask(call, aio=True)
        if isinstance(ask, Miss):
            self._front.bypassed(ask)
            events.tell(fields(ask), SEAM)
            return amarked(await self._aopened(call), fields(ask))

        async def make(_: Miss | Stale) -> AsyncOpened[Making, Chunk]:
            making = Making()
            opened = await making.acall(lambda: self._aopened(call))
            return AsyncOpened(making, achunks_of(opened, making, self._taken))

        reader = await self._streaming.astream(ask, self._replay(call), make)
        begun: Begun[Making | None] = await reader.head()
        report = self._streaming.report(begun, led=reader.led)
        events.tell(report, SEAM)
        led = begun.made and reader.led

        async def given() -> AsyncGenerator[Response, None]:
            try:
                async for chunk in reader:
                    yield own_chunk(chunk, report, led=led)
            finally:
                await reader.aclose()

        return given() if led else await llm_events.astreamed(self._inner, call, given())

    def _opened(self, call: Call) -> Iterator[Response]:
        inner, options = self._inner, _options(call)
        if call.form is Form.CHAT:
            return iter(inner.stream_chat(call.messages, **options))
        return iter(inner.stream_complete(call.prompt, **options))

    async def _aopened(self, call: Call) -> AsyncIterator[Response]:
        inner, options = self._inner, _options(call)
        if call.form is Form.CHAT:
            return aiter(await inner.astream_chat(call.messages, **options))
        return aiter(await inner.astream_complete(call.prompt, **options))

    def _replay(self, call: Call) -> Replay[Any, Chunk]:
        def read(answer: Answer) -> Opened[Any, Chunk]:
            return Opened(None, (Chunk(tree, None) for tree in _trees(answer, call)))

        def keep(making: Making, chunks: Any) -> Kept | None:
            trees = [chunk.tree for chunk in chunks if chunk.tree is not None]
            if not trees or len(trees) < len(chunks) or not comes_back(chunks[-1].fresh, trees[-1]):
                return None
            return Kept(answer_of(call.form, trees, latency_s=making.elapsed_s))

        return Replay(read=read, keep=keep)

    # -- both -------------------------------------------------------------------------------------

    def _ask(self, call: Call, *, aio: bool) -> Ask | Miss:
        return asked(self._front, lambda: self._requests.of(call, aio=aio))

    def _taken(self, response: Response) -> Tree | None:
        try:
            return taken(response)
        except Untakable:
            return None  # which `Front.kept` counts
        except Exception as error:  # noqa: BLE001 - counted; the response is given, but not stored
            self._front.failed("draft", error)
            return None


def _options(call: Call) -> dict[str, Any]:
    """Return the arguments of a call as its caller gave them."""
    return {**call.kwargs, "formatted": True} if call.formatted else dict(call.kwargs)


def _trees(answer: Answer, call: Call) -> list[Tree]:
    if answer.format != llm_payload.FORMAT:
        raise CodecError(f"The stored answer has the format {answer.format!r}.")
    return llm_payload.decode(answer.payload, call.form)
