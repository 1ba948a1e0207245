"""Streams through a front: replayed, read along, stored when they have ended, and never else.

Also what an adapter says of an entry that has less than is asked for. No test sleeps for a time.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

import stampcache
from stampcache import (
    Answer,
    Cache,
    CodecError,
    Controls,
    Evidence,
    Hit,
    Miss,
    Reason,
    Request,
    Stale,
    StoreError,
    Usage,
)
from stampcache.adapters import (
    Ask,
    AsyncOpened,
    AsyncReader,
    Begun,
    CacheFields,
    Flow,
    Found,
    Front,
    Kept,
    Made,
    Opened,
    Reader,
    Replay,
    Step,
    Streaming,
    TooFew,
)
from stampcache.testing import FailingStore
from tests.flights import turn

ASKED = Request(question="What is a map?", corpus="handbook")
CITED = Evidence(corpus="handbook", source="maps.md", text="A map is an image.")
OTHER = Request(question="What is a list?", corpus="handbook")


class Model:
    """Answers in chunks, and counts how often it was asked and closed."""

    def __init__(
        self, chunks: Sequence[str] = ("An ", "image", "."), error: Exception | None = None
    ):
        self.chunks = chunks
        self.error = error
        self.asked = 0
        self.closed = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def __call__(self, outcome: Miss | Stale) -> Opened[str, str]:
        self.asked += 1
        return Opened("head", self._run())

    def _run(self) -> Iterator[str]:
        try:
            yield from self.chunks
            self.meanwhile()
            if self.error is not None:
                raise self.error
        finally:
            self.closed += 1

    async def later(self, outcome: Miss | Stale) -> AsyncOpened[str, str]:
        self.asked += 1
        await asyncio.sleep(0)
        return AsyncOpened("head", self._arun())

    async def _arun(self) -> AsyncIterator[str]:
        try:
            for chunk in self.chunks:
                await asyncio.sleep(0)
                yield chunk
            self.meanwhile()
            if self.error is not None:
                raise self.error
        finally:
            self.closed += 1


def keep(head: str, chunks: Sequence[str]) -> Kept | None:
    usage = Usage(input_tokens=30, output_tokens=len(chunks))
    payload = json.dumps(list(chunks)).encode()
    answer = Answer(text="".join(chunks), payload=payload, format="chunks.1", usage=usage)
    return Kept(answer, [CITED])


def read(answer: Answer) -> Opened[str, str]:
    if answer.format != "chunks.1":
        raise CodecError("no chunks")
    return Opened("replayed", iter(json.loads(answer.payload)))


REPLAY: Replay[str, str] = Replay(read=read, keep=keep)


class Streamed:
    """One adapter that streams, in front of one cache."""

    def __init__(self, cache: Cache) -> None:
        self.front = Front(cache.core, kind="stream")
        self.streaming = Streaming(self.front)

    def ask(self, request: Request = ASKED, *, allow_stale: bool = False) -> Ask:
        ask = self.front.ask(request, allow_stale=allow_stale)
        assert not isinstance(ask, Miss)
        return ask

    def stream(
        self,
        model: Model,
        request: Request = ASKED,
        replay: Replay[str, str] = REPLAY,
        *,
        allow_stale: bool = False,
    ) -> Reader[Begun[str], str]:
        ask = self.ask(request, allow_stale=allow_stale)
        return self.streaming.stream(ask, replay, model)

    async def astream(
        self, model: Model, request: Request = ASKED, replay: Replay[str, str] = REPLAY
    ) -> AsyncReader[Begun[str], str]:
        return await self.streaming.astream(self.ask(request), replay, model.later)

    def told(self, reader: Reader[Begun[str], str]) -> CacheFields:
        return self.streaming.report(reader.head(), led=reader.led)

    def told_of(self, reader: AsyncReader[Begun[str], str], begun: Begun[str]) -> CacheFields:
        return self.streaming.report(begun, led=reader.led)


@pytest.fixture
def cache(url: str) -> Iterator[Cache]:
    with stampcache.open_cache(url) as opened:
        yield opened
        assert len(opened.core.streams) == 0


@pytest.fixture
def streamed(cache: Cache) -> Streamed:
    return Streamed(cache)


async def all_of(reader: AsyncReader[Any, str]) -> list[str]:
    return [chunk async for chunk in reader]


# -- sync ------------------------------------------------------------------------------------------


def test_a_stream_is_made_once_and_then_replayed(cache: Cache, streamed: Streamed) -> None:
    model = Model()
    first = streamed.stream(model)
    assert (first.head().head, streamed.told(first)["hit"]) == ("head", False)
    assert list(first) == ["An ", "image", "."]
    second = streamed.stream(model)
    told = streamed.told(second)
    assert (second.head().head, told["hit"], told["reason"]) == ("replayed", True, "same tokens")
    assert list(second) == ["An ", "image", "."]
    assert (model.asked, model.closed) == (1, 1)
    assert told["saved"]["input_tokens"] == 30
    assert isinstance(cache.lookup(ASKED), Hit)


def test_nothing_is_looked_up_before_it_is_read(cache: Cache, streamed: Streamed) -> None:
    model = Model()
    reader = streamed.stream(model)
    assert cache.stats().requests == model.asked == 0
    reader.close()
    assert cache.stats().requests == model.asked == 0


def test_who_reads_along_is_told_so_and_saves_the_making(cache: Cache, streamed: Streamed) -> None:
    model = Model()
    leader, follower = streamed.stream(model), streamed.stream(model)
    assert next(leader) == "An "
    assert list(follower) == ["An ", "image", "."]
    assert list(leader) == ["image", "."]
    told = streamed.told(follower)
    assert (told["reason"], told["saved"]["output_tokens"]) == (Reason.SHARED.value, 3)
    assert streamed.told(leader)["reason"] == Reason.NOT_FOUND.value
    stats = cache.stats()
    assert (stats.requests, stats.misses, stats.shared, model.asked) == (2, 1, 1, 1)
    assert stats.made_tokens == 33


def test_who_reads_along_with_a_hit_has_a_hit(cache: Cache, streamed: Streamed) -> None:
    list(streamed.stream(Model()))
    first, second = streamed.stream(Model()), streamed.stream(Model())
    assert (next(first), next(second)) == ("An ", "An ")
    assert [streamed.told(reader)["hit"] for reader in (first, second)] == [True, True]
    assert cache.stats().exact_hits == 2


@pytest.mark.parametrize("read_chunks", [0, 1, 3])
def test_an_abandoned_stream_is_not_stored_and_its_source_is_closed(
    cache: Cache, streamed: Streamed, read_chunks: int
) -> None:
    model = Model()
    reader = streamed.stream(model)
    for _ in range(read_chunks):
        next(reader)
    reader.close()
    assert cache.stats().entries == 0
    assert model.closed == (1 if read_chunks else 0)


def test_a_failed_stream_is_not_stored(cache: Cache, streamed: Streamed) -> None:
    model = Model(error=ValueError("lost the connection"))
    with pytest.raises(ValueError, match="lost"):
        list(streamed.stream(model))
    assert cache.stats().entries == 0
    assert list(streamed.stream(Model())) == ["An ", "image", "."]


def test_a_stream_from_before_a_change_is_not_stored_and_not_joined(
    cache: Cache, streamed: Streamed
) -> None:
    old, new = Model(("old",)), Model(("new",))
    before = streamed.stream(old)
    assert next(before) == "old"
    cache.invalidate(corpus="handbook", source="maps.md")
    after = streamed.stream(new)
    assert (list(after), list(before)) == (["new"], [])
    hit = cache.lookup(ASKED)
    assert isinstance(hit, Hit) and hit.answer.text == "new"


def test_what_others_store_meanwhile_keeps_nobody_from_reading_along(
    cache: Cache, streamed: Streamed
) -> None:
    model = Model()
    leader = streamed.stream(model)
    assert next(leader) == "An "
    cache.update(OTHER, "A sequence.", evidence=[replace(CITED, source="lists.md")])
    follower = streamed.stream(model)
    assert list(follower) == ["An ", "image", "."]
    assert not follower.led
    cache.invalidate(scope=stampcache.Scope("somebody else"))
    also = streamed.stream(model)
    also.close()
    assert list(leader) == ["image", "."]
    assert model.asked == 1


def test_a_change_while_the_last_chunk_comes_keeps_the_stream_from_being_stored(
    cache: Cache, streamed: Streamed
) -> None:
    model = Model()
    model.meanwhile = lambda: cache.invalidate(corpus="handbook", source="maps.md")
    assert list(streamed.stream(model)) == ["An ", "image", "."]
    assert cache.stats().entries == 0
    assert cache.stats().counters["refused.fenced"] == 1


@pytest.mark.parametrize("stored", [False, True])
def test_what_an_adapter_cannot_keep_is_given_all_the_same(
    cache: Cache, streamed: Streamed, stored: bool
) -> None:
    def fails(head: str, chunks: Sequence[str]) -> Kept | None:
        if stored:
            raise TypeError("no form")
        return None

    replay = Replay(read=read, keep=fails)
    assert list(streamed.stream(Model(), replay=replay)) == ["An ", "image", "."]
    assert cache.stats().entries == 0
    counted = cache.stats(everything=True).counters
    assert counted.get("error.adapter.not_storable", 0) == int(stored)
    assert counted.get("adapter.not_storable", 0) == int(not stored)


def test_an_entry_that_cannot_be_read_is_dropped_and_made_anew(
    cache: Cache, streamed: Streamed
) -> None:
    cache.update(ASKED, Answer(text="of another adapter"))
    model = Model()
    for _ in range(2):
        assert list(streamed.stream(model)) == ["An ", "image", "."]
    assert model.asked == 1


def test_a_store_that_is_down_stops_no_stream() -> None:
    store, model = FailingStore(), Model()
    with stampcache.open_cache(store) as cache:
        streamed = Streamed(cache)
        store.down = True
        for _ in range(2):
            assert list(streamed.stream(model)) == ["An ", "image", "."]
        assert (model.asked, len(cache.core.streams)) == (2, 0)
        store.down = False


def test_where_the_store_cannot_say_what_changed_nobody_reads_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with stampcache.open_cache("memory://") as cache:
        streamed, model = Streamed(cache), Model()
        leader = streamed.stream(model)
        assert next(leader) == "An "
        cache.update(OTHER, "A sequence.")

        def fenced(entry: object, fence: int) -> str:
            raise StoreError("down")

        monkeypatch.setattr(cache.core.store, "fenced", fenced)
        assert list(streamed.stream(model)) == ["An ", "image", "."]
        assert model.asked == 2
        assert cache.stats(everything=True).counters["error.sequence"] == 1
        leader.close()


def test_streams_follow_their_controls(cache: Cache, streamed: Streamed) -> None:
    model = Model()
    unstored = replace(ASKED, controls=Controls(no_store=True))
    unlooked = replace(ASKED, controls=Controls(no_cache=True))
    list(streamed.stream(model, unstored))
    assert cache.stats().entries == 0
    plain, apart = streamed.stream(model), streamed.stream(model, unstored)
    assert (next(plain), next(apart), model.asked) == ("An ", "An ", 3)
    assert (list(plain), list(apart)) == (["image", "."], ["image", "."])
    fresh, also_fresh = streamed.stream(model, unlooked), streamed.stream(model, unlooked)
    assert (next(fresh), next(also_fresh), model.asked) == ("An ", "An ", 5)
    fresh.close()
    also_fresh.close()
    with stampcache.scope(variety=2):
        for _ in range(4):
            list(streamed.stream(model))
    assert (model.asked, cache.stats().entries) == (6, 2)


def test_a_scope_ends_before_its_stream_is_read(cache: Cache, streamed: Streamed) -> None:
    with stampcache.scope(tenant="acme", no_store=True):
        unstored = streamed.stream(Model())
    with stampcache.scope(tenant="acme", ttl_s=60):
        stored = streamed.stream(Model())
    list(unstored)
    assert cache.stats(everything=True).entries == 0
    list(stored)
    with stampcache.scope(tenant="acme"):
        hit = cache.lookup(ASKED)
        assert isinstance(hit, Hit) and hit.entry.expires_at is not None
        assert hit.entry.expires_at - hit.entry.created_at <= 60


def test_a_stale_answer_is_replayed_where_it_is_allowed(cache: Cache, streamed: Streamed) -> None:
    model = Model()
    list(streamed.stream(model))
    cache.invalidate(corpus="handbook", source="maps.md")
    stale = streamed.stream(model, allow_stale=True)
    assert list(stale) == ["An ", "image", "."]
    told = streamed.told(stale)
    assert (told["hit"], told["reason"], model.asked) == (False, Reason.INVALIDATED.value, 1)
    list(streamed.stream(model, replace(ASKED, controls=Controls(no_cache=True)), allow_stale=True))
    assert model.asked == 2


# -- async -----------------------------------------------------------------------------------------


async def test_tasks_read_along_and_the_stream_is_stored_once(
    cache: Cache, streamed: Streamed
) -> None:
    model = Model()
    readers = [await streamed.astream(model) for _ in range(5)]
    begun = await readers[0].head()
    given = await asyncio.gather(*map(all_of, readers))
    assert given == [["An ", "image", "."]] * 5
    told = [streamed.told_of(reader, begun)["reason"] for reader in readers]
    assert told == [Reason.NOT_FOUND.value] + [Reason.SHARED.value] * 4
    again = await streamed.astream(model)
    assert (await again.head()).head == "replayed"
    assert await all_of(again) == ["An ", "image", "."]
    stats = cache.stats()
    assert (model.asked, stats.entries, stats.shared, stats.exact_hits) == (1, 1, 4, 1)


async def test_a_task_that_leaves_early_closes_the_source_and_stores_nothing(
    cache: Cache, streamed: Streamed
) -> None:
    model = Model()
    reader = await streamed.astream(model)
    assert await anext(reader) == "An "
    await reader.aclose()
    assert (model.closed, cache.stats().entries) == (1, 0)


async def test_a_cancelled_leader_leaves_its_stream_to_the_others(
    cache: Cache, streamed: Streamed
) -> None:
    model = Model()
    readers = [await streamed.astream(model) for _ in range(3)]
    tasks = [asyncio.create_task(all_of(reader)) for reader in readers]
    del readers
    await asyncio.sleep(0)
    tasks[0].cancel()
    given = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(given[0], asyncio.CancelledError)
    assert given[1:] == [["An ", "image", "."]] * 2
    assert (model.asked, cache.stats().entries) == (1, 1)


async def test_a_failed_stream_of_tasks_is_not_stored(cache: Cache, streamed: Streamed) -> None:
    reader = await streamed.astream(Model(error=ValueError("lost")))
    with pytest.raises(ValueError, match="lost"):
        await all_of(reader)
    assert cache.stats().entries == 0
    await turn()


async def test_a_task_that_asks_after_a_change_does_not_join(
    cache: Cache, streamed: Streamed
) -> None:
    before = await streamed.astream(Model(("old",)))
    assert await anext(before) == "old"
    await cache.aio.update(OTHER, "A sequence.")
    along = await streamed.astream(Model(("unused",)))
    await cache.aio.invalidate(corpus="handbook", source="maps.md")
    after = await streamed.astream(Model(("new",)))
    assert await all_of(after) == ["new"]
    assert (await all_of(along), await all_of(before)) == (["old"], [])
    hit = await cache.aio.lookup(ASKED)
    assert isinstance(hit, Hit) and hit.answer.text == "new"


# -- an entry that has less than is asked for ------------------------------------------------------


def test_an_entry_with_too_few_is_a_miss_and_stays_until_one_with_enough_is_stored(
    cache: Cache,
) -> None:
    front = Front(cache.core, kind="few")
    made: list[int] = []

    def several(count: int) -> str:
        ask = front.ask(ASKED)
        assert not isinstance(ask, Miss)

        def make(outcome: Miss | Stale) -> Flow[Made[str]]:
            assert outcome.reason is Reason.NOT_FOUND
            made.append(count)
            text = yield from Step(sync=lambda: "x" * count, aio=lambda: pytest.fail("sync only"))
            return Made(output=text, answer=Answer(text=text))

        def enough(answer: Answer, report: CacheFields) -> str:
            if len(answer.text) < count:
                raise TooFew(f"{len(answer.text)} of {count}")
            return answer.text[:count]

        return front.run(front.serve(ask, recheck=None, read=enough, make=make))

    assert [several(count) for count in (3, 2, 5, 3, 5)] == ["xxx", "xx", "xxxxx", "xxx", "xxxxx"]
    assert made == [3, 5]


def test_too_few_leaves_the_entry_and_says_so(cache: Cache) -> None:
    front = Front(cache.core, kind="few")
    cache.update(ASKED, "three")
    ask = front.ask(ASKED)
    assert not isinstance(ask, Miss)

    def never_enough(answer: Answer, report: CacheFields) -> str:
        raise TooFew("3 of 5")

    looked = front.run(front.look(ask, read=never_enough))
    assert not isinstance(looked, Found)
    assert (looked.reason, looked.detail, looked.identity) == (
        Reason.NOT_FOUND,
        "3 of 5",
        ask.identity,
    )
    assert isinstance(cache.lookup(ASKED), Hit)
    cache.invalidate(scope=stampcache.Scope())
    late = cache.update(ASKED, "five!", outcome=looked)
    assert isinstance(late, stampcache.Refused) and late.reason is Reason.FENCED
