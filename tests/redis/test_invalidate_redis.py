"""Very many entries are invalidated in pieces: none is served from the first one on, whatever happens."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from stampcache import Cache, Evidence, Hit, Reason, Request, Stale
from stampcache.corpora import Change, Chunk
from stampcache.model import Entry, Selector, Stamps
from stampcache.ports import Store
from stampcache.stores.redis import verbs
from stampcache.stores.redis.asking import Run
from stampcache.stores.redis.store import RedisStore
from stampcache.testing.samples import NOW, unit
from tests.histories import CAPACITY, Histories
from tests.redis.apps import eventually, opened
from tests.redis.servers import Server
from tests.redis.sweeps import OF_S, SCANNED, between, entry_of, fill, is_swept, look
from tests.redis.workers import workers

MANY = 20_000
BOUND = 500


def commands(server: Server) -> dict[str, int]:
    """How often the server has run each command."""
    lines = server.cli("INFO", "commandstats").splitlines()
    pairs = (line.split(":calls=") for line in lines if ":calls=" in line)
    return {name.removeprefix("cmdstat_"): int(told.split(",")[0]) for name, told in pairs}


def test_no_piece_touches_more_than_the_bound_and_nothing_is_served_from_the_first_on(
    url: str, redis_server: Server
) -> None:
    time_s = [0.0]
    one, strict = RedisStore(url), RedisStore(url + "&strict=1")
    two = RedisStore(url, now=lambda: time_s[0])
    fill(one, range(MANY, MANY + BOUND), "exactly the bound")
    fill(one, range(MANY))
    sample = [entry_of(number) for number in range(0, MANY, 97)]
    assert all(two.fetch(*entry.place) == entry for entry in sample[:9]), "in its near-cache"
    spent: list[int] = []
    marked: list[int] = []
    looked: list[bool] = []
    before = commands(redis_server)

    def after_a_piece(ask: Run, reply: Any) -> None:
        now = commands(redis_server)
        spent.append(sum(now.values()) - sum(before.values()))
        marked.append(int(reply[0]))
        assert now.get("smembers", 0) == before.get("smembers", 0), "nothing is read as a whole"
        if len(marked) == 2 and not looked and marked[-1] > BOUND:
            looked.append(True)
            assert marked[-1] < MANY / 2
            time_s[0] += 1.0  # more than the staleness of the other one: it asks
            for store in (one, strict, two):
                assert all(look(store, entry).invalidated == str(OF_S) for entry in sample)
        before.update(commands(redis_server))

    between(one, after_a_piece)
    assert one.invalidate(Selector(corpus="c", source="exactly the bound")) == BOUND
    measure = sum(spent)
    spent.clear()
    marked.clear()
    before.update(commands(redis_server))
    assert one.invalidate(OF_S) == MANY
    assert looked and len(marked) >= MANY / BOUND / 1.2
    assert max(held - last for last, held in zip([0, *marked], marked, strict=False)) < BOUND * 1.2
    assert max(spent) < measure * 1.2
    assert is_swept(redis_server)
    assert all(look(strict, entry).invalidated == str(OF_S) for entry in sample)
    assert strict.stats().invalidated == MANY + BOUND
    for store in (one, strict, two):
        store.close()


# -- what happens between two pieces -----------------------------------------------------------------


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server on which three entries are two pieces."""
    monkeypatch.setattr(verbs, "_MARKED_AT_ONCE", 2)
    with Server(settings=SCANNED) as one:
        yield one


def pieces(store: RedisStore, then: Callable[[], None]) -> None:
    """Call a function once, after the first piece of an invalidation."""
    done: list[bool] = []

    def once(ask: Run, reply: Any) -> None:
        if not done:
            done.append(True)
            assert reply[1], "there is more to mark"
            then()

    between(store, once)


def test_what_is_not_marked_yet_is_no_neighbour_and_is_not_brought_back(server: Server) -> None:
    one, two = (RedisStore(server.socket_url + "?timeout_s=5&strict=1") for _ in range(2))
    entries = [entry_of(number) for number in range(40)]
    for entry in entries:
        one.put(entry, unit(1, entry_number(entry) / 1000), one.sequence())
    assert len(two.nearest("p", unit(1, 0), 40, asked="x", now=NOW)) == 40
    fence = one.sequence()
    anew = entry_of(99)

    def meanwhile() -> None:
        for store in (two, one):
            assert store.nearest("p", unit(1, 0), 40, asked="x", now=NOW) == []
        for entry in entries:
            two.renew(entry, NOW + 9e6)
            assert not two.journal.confirm(entry, at=NOW, doubtful_at=NOW + 9.0)
            assert look(two, entry).invalidated == str(OF_S)
        assert not two.put(anew, None, fence).stored, "it was made from what was before"
        assert two.put(anew, None, two.sequence()).stored
        assert look(two, anew) == look(one, anew) == anew

    pieces(one, meanwhile)
    assert one.invalidate(OF_S) == 40
    assert look(two, anew) == anew
    for entry in entries:
        assert look(two, entry).invalidated == str(OF_S)
    assert is_swept(server)
    one.close()
    two.close()


def entry_number(entry: Entry) -> int:
    return int(entry.id.removeprefix("s"))


def test_a_watched_write_first_brings_an_invalidation_to_its_end(server: Server) -> None:
    one, two = (RedisStore(server.socket_url + "?timeout_s=5") for _ in range(2))
    two.corpora.declare("c", now=NOW, silence_s=None)
    fill(one, range(40))

    def meanwhile() -> None:
        vector = np.ones(2, np.float32).tobytes()
        change = Change(added=(Chunk(id="new", digest="d", vector=vector),))
        two.corpora.commit("c", "", change, now=NOW)
        assert is_swept(server)

    pieces(one, meanwhile)
    assert one.invalidate(OF_S) == 40, "whoever marked them, they are counted"
    one.close()
    two.close()


@pytest.mark.parametrize(
    "selector",
    [
        OF_S,
        Selector(source="s"),
        Selector(chunk="s7"),
        Selector(corpus="c"),
        Selector(entry="s7"),
        Selector(scope="s"),
        Selector(stamps=Stamps(index="v1")),
    ],
)
def test_all_that_a_selector_touches_is_found_in_pieces(server: Server, selector: Selector) -> None:
    store = RedisStore(server.socket_url + "?timeout_s=5")
    fill(store, range(12))
    for number in (100, 101):
        other = entry_of(number, "other")
        store.put(other, None, store.sequence())
    one = selector.chunk or selector.entry
    everything = not (selector.source or one)
    assert store.invalidate(selector) == (1 if one else 14 if everything else 12)
    assert store.invalidate(selector) == 0
    assert is_swept(server)
    store.close()


HOW = settings(
    max_examples=20,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_in_pieces_of_two_it_agrees_with_memory_after_any_history(server: Server) -> None:
    numbers = count()

    class InPieces(Histories):
        """Two stores, each of which marks two entries at a time."""

        def open(self) -> Sequence[Store]:
            named = f"{server.socket_url}?timeout_s=5&strict=1&prefix=history{next(numbers)}"
            return [
                RedisStore(named, capacity=CAPACITY),
                RedisStore(named, capacity=CAPACITY, near_capacity=1, vector_capacity=1),
            ]

    run_state_machine_as_test(InPieces, settings=HOW)


# -- a crash between two pieces ------------------------------------------------------------------------

DYING = """
    import os, signal
    from stampcache.stores.redis import verbs
    from tests.redis.apps import opened

    url, how = arguments
    verbs._MARKED_AT_ONCE = 2
    cache = opened(url)
    client = cache.core.store.client
    real = client.answer

    def answer(ask):
        reply = real(ask)
        if getattr(ask, "verb", "") == "invalidate":
            tell(int(reply[0]))
            os.kill(os.getpid(), signal.SIGKILL)
        return reply

    client.answer = answer
    cache.invalidate(corpus="c", source="s")
"""


def asked(number: int) -> Request:
    return Request(question=f"question {number}", model="m")


def hits(cache: Cache) -> list[int]:
    return [number for number in range(60) if isinstance(cache.lookup(asked(number)), Hit)]


def test_a_process_that_dies_between_two_pieces_leaves_nothing_that_is_served(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.socket_url + "?timeout_s=5"
    cited = [Evidence(corpus="c", source="s", text="Thirty days.")]
    with opened(url) as one, opened(url, strict=True) as two:
        for number in range(60):
            one.update(asked(number), "30", outcome=one.lookup(asked(number)), evidence=cited)
        assert len(hits(one)) == len(hits(two)) == 60
        with workers(1, DYING, url, "") as (worker,):
            assert 0 < worker.hear() < 60
            assert worker.rest() == []
        assert hits(two) == []
        assert eventually(lambda: hits(one) == []), "it heard of it within its staleness"
        assert not is_swept(server), "nobody helps as long as it may be alive"
        outcome = two.lookup(asked(59))
        assert isinstance(outcome, Stale) and outcome.reason is Reason.INVALIDATED
        with opened(url) as later:
            assert hits(later) == []
        monkeypatch.setattr(verbs, "_LEFT_MS", 0)
        for _ in range(60):
            assert hits(two) == []
        assert is_swept(server), "those who ask have brought it to its end"
        assert two.core.store.stats().invalidated == 60
        assert hits(one) == []


def test_tasks_do_the_same(server: Server) -> None:
    url = server.socket_url + "?timeout_s=5"
    cited = [Evidence(corpus="c", source="s", text="Thirty days.")]

    async def main() -> int:
        with opened(url) as cache:
            for number in range(60):
                outcome = await cache.aio.lookup(asked(number))
                await cache.aio.update(asked(number), "30", outcome=outcome, evidence=cited)
            return await cache.aio.invalidate(corpus="c", source="s")

    assert asyncio.run(main()) == 60
    assert is_swept(server)
