"""Streams: replayed chunk by chunk, stored only when they ended, read along by equal calls."""

import asyncio
import contextlib
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from llama_fakes import DigestLLM
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ChatResponseGen
from llama_llm_fakes import ADD, NEW, ScriptedLLM, bare, cached, user

from llama_index_stampcache import CachedLLM
from stampcache import AsyncCache, Cache


@pytest.fixture
def inner() -> ScriptedLLM:
    return ScriptedLLM()


@pytest.fixture
def llm(inner: ScriptedLLM, cache: Cache) -> CachedLLM:
    return CachedLLM(inner, cache=cache)


async def test_i1_every_chunk_comes_again(llm: CachedLLM, inner: ScriptedLLM) -> None:
    tools = llm._prepare_chat_with_tools([ADD], user_msg="add 2 3")  # type: ignore[attr-defined]
    for options in ({"messages": user("hello")}, tools):
        fresh = list(llm.stream_chat(**options))
        again = list(llm.stream_chat(**options))
        third = [one async for one in await llm.astream_chat(**options)]
        assert len(fresh) > (5 if NEW else 0)
        assert [bare(one) for one in again] == [bare(one) for one in fresh]
        assert [bare(one) for one in third] == [bare(one) for one in fresh]
        assert [one.raw["choices"] for one in again] == [one.raw["choices"] for one in fresh]
        thoughts = [one.additional_kwargs.get("thinking_delta", "") for one in again]
        assert "".join(thoughts).startswith("thinking of") or not NEW
    assert inner.calls == 2


def test_the_final_chunk_has_no_usage_and_tells_what_was_saved(llm: CachedLLM) -> None:
    list(llm.stream_chat(user("hello")))
    last = list(llm.stream_chat(user("hello")))[-1]
    assert last.raw["usage"]["completion_tokens"] == 0
    assert last.raw["saved_usage"]["completion_tokens"] == 5
    assert last.raw["choices"][0]["finish_reason"] == "stop"
    assert cached(last)["saved"]["output_tokens"] == 5


@pytest.mark.parametrize("closed", [True, False])
async def test_i4_an_abandoned_stream_stores_nothing(
    closed: bool, llm: CachedLLM, inner: ScriptedLLM, cache: Cache
) -> None:
    stream = llm.stream_chat(user("hello"))
    next(stream)
    if closed:
        stream.close()
    del stream
    astream = await llm.astream_chat(user("hello"))
    await anext(astream)
    if closed:
        await astream.aclose()
    del astream
    await asyncio.sleep(0.05)
    assert cache.stats().entries == 0
    assert len(cache.core.streams) == 0
    assert not cached(list(llm.stream_chat(user("hello")))[-1])["hit"]
    assert inner.calls == 3


def test_a_stream_that_nobody_reads_holds_nothing(llm: CachedLLM, cache: Cache) -> None:
    stream = llm.stream_chat(user("hello"))
    del stream
    assert len(cache.core.streams) == 0
    assert cache.stats().entries == 0


@pytest.mark.parametrize(
    "text", ["break in the middle", "fail at once"] if NEW else ["fail at once"]
)
async def test_a_failed_stream_fails_and_stores_nothing(
    text: str, llm: CachedLLM, inner: ScriptedLLM, cache: Cache
) -> None:
    with pytest.raises(RuntimeError):
        list(llm.stream_chat(user(text)))
    with pytest.raises(RuntimeError):
        [one async for one in await llm.astream_chat(user(text))]
    with pytest.raises(RuntimeError):
        list(llm.stream_complete(text))
    assert inner.calls == 3
    assert cache.stats().entries == 0


def test_a_stream_that_was_cut_off_is_not_stored(llm: CachedLLM, inner: ScriptedLLM) -> None:
    for _ in range(2):
        assert not cached(list(llm.stream_chat(user("cut it")))[-1])["hit"]
    assert inner.calls == 2


def test_h11_chunks_are_their_callers_own(llm: CachedLLM) -> None:
    fresh = [bare(one) for one in ScriptedLLM().stream_chat(user("hello"))]
    for _ in range(3):
        told = []
        for chunk in llm.stream_chat(user("hello")):
            told.append(bare(chunk))
            chunk.message.blocks.clear()
            chunk.raw.clear()
            chunk.additional_kwargs.clear()
        assert told == fresh


def test_f17_equal_streams_of_threads_are_read_together(
    llm: CachedLLM, inner: ScriptedLLM, cache: Cache
) -> None:
    gate, begun = threading.Event(), threading.Event()
    inner.waits_for(gate, begun=begun)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(lambda: list(llm.stream_chat(user("hello")))) for _ in range(8)]
        assert begun.wait(20)
        gate.set()
        told = [one.result() for one in asked]
    assert inner.calls == 1
    assert all([bare(one) for one in each] == [bare(one) for one in told[0]] for each in told)
    assert cache.stats().counters["stored"] == 1


async def test_equal_streams_of_tasks_are_read_together(llm: CachedLLM, inner: ScriptedLLM) -> None:
    async def ask() -> list[ChatResponse]:
        return [one async for one in await llm.astream_chat(user("hello"))]

    told = await asyncio.gather(*(ask() for _ in range(8)))
    assert inner.calls == 1
    assert all([bare(one) for one in each] == [bare(one) for one in told[0]] for each in told)
    reasons = [cached(each[-1])["reason"] for each in told]
    assert reasons.count("shared with an equal request") == 7
    shared = next(each[-1] for each in told if cached(each[-1])["reason"].startswith("shared"))
    assert shared.raw["usage"]["total_tokens"] == 0


async def test_readers_of_one_stream_do_not_share_their_chunks(llm: CachedLLM) -> None:
    async def ask(*, spoil: bool) -> list[Any]:
        told = []
        async for chunk in await llm.astream_chat(user("hello")):
            told.append(bare(chunk))
            if spoil:
                chunk.message.blocks.clear()
                chunk.raw.clear()
        return told

    told = await asyncio.gather(*(ask(spoil=at % 2 == 0) for at in range(4)))
    assert all(each == told[0] for each in told)


def gate_of(cache: Cache, waiting: int) -> threading.Event:
    """Return a gate that opens when so many calls have come to one making."""
    gate, boarded = threading.Event(), []
    flights: Any = cache.core.flights
    board = flights._board

    def counted(*args: Any, **options: Any) -> Any:
        found = board(*args, **options)
        boarded.append(found)
        if len(boarded) == waiting:
            gate.set()
        return found

    flights._board = counted
    return gate


@pytest.mark.parametrize("text", ["hello", "fail now"])
def test_f17_equal_calls_ask_once_and_share_a_failure(
    text: str, llm: CachedLLM, inner: ScriptedLLM, cache: Cache
) -> None:
    inner.waits_for(gate_of(cache, 8), begun=threading.Event())

    def ask(_: int) -> str:
        try:
            return str(llm.chat(user(text)))
        except RuntimeError as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        told = set(pool.map(ask, range(8)))
    assert inner.calls == 1
    assert len(told) == 1


async def test_equal_tasks_ask_once(llm: CachedLLM, inner: ScriptedLLM) -> None:
    told = await asyncio.gather(*(llm.achat(user("hello")) for _ in range(20)))
    assert inner.calls == 1
    assert len({str(each) for each in told}) == 1
    failures = await asyncio.gather(
        *(llm.achat(user("fail now")) for _ in range(5)), return_exceptions=True
    )
    assert len({str(each) for each in failures}) == 1
    assert inner.calls == 2


async def test_j1_a_store_that_blocks_does_not_block_the_loop(
    inner: ScriptedLLM, tmp_path: Path
) -> None:
    """The loop must go on, since it alone ends the transaction that the store waits for."""
    file = tmp_path / "rag.db"
    async with AsyncCache(f"sqlite:///{file}") as cache:
        llm = CachedLLM(inner, cache=cache)
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as blocker:
            blocker.execute("BEGIN IMMEDIATE")

            async def ask() -> None:
                await llm.achat(user("hello"))
                async for _ in await llm.astream_chat(user("hello")):
                    pass

            asking = asyncio.create_task(ask())
            await asyncio.sleep(0.2)
            blocker.execute("ROLLBACK")  # never reached if the calls held the loop
            await asking
        assert cached(await llm.achat(user("hello")))["hit"]


class DeltasOnly(DigestLLM):
    """A model whose chunks do not hold what was said before them."""

    def stream_chat(self, messages: Any, **_: Any) -> ChatResponseGen:
        self._prompts.append(str(messages))

        def stream() -> ChatResponseGen:
            for part in ("to", "day", ""):
                yield ChatResponse(message=ChatMessage(role="assistant", content=""), delta=part)

        return stream()


def test_a_stream_of_mere_deltas_is_kept(cache: Cache) -> None:
    inner = DeltasOnly()
    llm = CachedLLM(inner, cache=cache)
    first, second = list(llm.stream_chat(user("when?"))), list(llm.stream_chat(user("when?")))
    assert [one.delta for one in first] == [one.delta for one in second] == ["to", "day", ""]
    assert inner.calls == 1


class NoStreams(DigestLLM):
    """A model that cannot stream."""

    def stream_complete(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("no streams")


def test_a_model_that_cannot_stream_says_so_at_once(cache: Cache) -> None:
    with pytest.raises(NotImplementedError, match="no streams"):
        CachedLLM(NoStreams(), cache=cache).stream_complete("hello")
