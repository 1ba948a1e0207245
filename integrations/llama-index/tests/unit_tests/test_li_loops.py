"""Sync code on a running loop, and loops in threads: nothing hangs under LlamaIndex (O8)."""

import asyncio
from typing import Any

import pytest
from llama_fakes import INDEX, Corpus, DigestLLM
from llama_index.core.base.response.schema import AsyncStreamingResponse
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import CustomQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import QueryEngineTool

from llama_index_stampcache import (
    CachedChatEngine,
    CachedLLM,
    CachedQueryEngine,
    cache_sub_questions,
)
from stampcache import Cache

QUESTION = "how long is annual leave"
pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("seam", ["engine", "model"])
async def test_o8_an_async_stream_may_be_printed_on_its_loop(
    seam: str, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    """``str(response)`` reads it in a thread, for which the loop waits."""
    engine: Any
    if seam == "engine":
        engine = CachedQueryEngine(corpus.engine(llm, streaming=True), cache=cache)
    else:
        engine = corpus.engine(CachedLLM(llm, cache=cache), streaming=True)  # type: ignore[arg-type]
    plain: Any = corpus.engine(llm, streaming=True)
    told = [str(await each.aquery(QUESTION)) for each in (plain, engine, engine, engine)]
    assert len(set(told)) == 1 and cache.stats().entries == 1 and cache.stats().exact_hits >= 1


async def test_a_stream_that_was_begun_is_not_read_on_from_another_loop(
    cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    engine = CachedQueryEngine(corpus.engine(llm, streaming=True), cache=cache)
    response: Any = await engine.aquery(QUESTION)
    await anext(response.response_gen)
    with pytest.raises(RuntimeError, match="another event loop"):
        await asyncio.to_thread(lambda: asyncio.run(response.get_response()))


class Same(BaseQuestionGenerator):
    """Asks both tools the same, and the first one twice."""

    def generate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return [SubQuestion(tool_name=name, sub_question=QUESTION) for name in ("a", "b", "a")]

    async def agenerate(self, tools: Any, query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None: ...


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("streaming", [False, True])
async def test_o8_sub_questions_in_loops_of_their_own(
    streaming: bool, whole: bool, cache: Cache, corpus: Corpus, llm: DigestLLM
) -> None:
    tools = [
        QueryEngineTool.from_defaults(
            corpus.engine(llm, streaming=streaming), name=name, description=name
        )
        for name in "ab"
    ]
    engine: Any = cache_sub_questions(
        SubQuestionQueryEngine.from_defaults(
            tools, llm=llm, question_gen=Same(), verbose=False, use_async=True
        ),
        cache=cache,
    )
    if whole:
        engine = CachedQueryEngine(engine, cache=cache, grounding="none", stamps=INDEX)
    told = await asyncio.gather(
        *(asyncio.to_thread(engine.query, "compare") for _ in range(4)),
        *(engine.aquery("compare") for _ in range(4)),
    )
    assert len({str(one) for one in [*told, engine.query("compare")]}) == 1


class Odd(CustomQueryEngine):
    """Gives an async stream to a thread."""

    def custom_query(self, query_str: str) -> Any:
        async def texts() -> Any:
            yield "thirty "
            yield "days"

        return AsyncStreamingResponse(texts(), [])


async def test_an_async_stream_in_a_sync_chat_is_read(cache: Cache, llm: DigestLLM) -> None:
    chat = CondenseQuestionChatEngine.from_defaults(
        query_engine=Odd(), llm=llm, memory=ChatMemoryBuffer.from_defaults(token_limit=1_000)
    )
    engine = CachedChatEngine(chat, cache=cache, grounding="none", stamps=INDEX)
    assert str(engine.chat(QUESTION)) == "thirty days"
