"""A server that hangs, asked by very many at once: how many it sees, and that all are answered."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stampcache import Cache, Hit, Outcome, Reason, Request
from stampcache.stores.redis import pool, tasks
from stampcache.stores.redis.client import TRIES
from stampcache.stores.redis.store import RedisStore
from stampcache.testing import FakeClock
from tests.redis.apps import opened
from tests.redis.servers import Server

MANY = 48
TIMEOUT_S = 0.5
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 10.0, 10.0)
ANSWERED_S = 60.0
"""Nobody waits for more than one timeout; what is above that is for a busy machine."""

REQUEST = Request(question="q", model="m")
Ask = Callable[[Cache], list[Outcome]]


def by_threads(cache: Cache) -> list[Outcome]:
    outcomes: list[Outcome] = []
    begin = threading.Barrier(MANY)

    def ask() -> None:
        begin.wait(ANSWERED_S)
        outcomes.append(cache.lookup(REQUEST))

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(MANY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ANSWERED_S)
    return outcomes


def by_tasks(cache: Cache) -> list[Outcome]:
    async def ask() -> list[Outcome]:
        asked = [cache.aio.lookup(REQUEST) for _ in range(MANY)]
        return list(await asyncio.wait_for(asyncio.gather(*asked), ANSWERED_S))

    return asyncio.run(ask())


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as one:
        yield one


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was sent to any server."""
    commands: list[object] = []
    execute, aexecute = pool.Pool.execute, tasks._Pool.execute

    def counted(self: Any, words: Any) -> Any:
        commands.append(words[0])
        return execute(self, words)

    async def acounted(self: Any, words: Any, timeout_s: float) -> Any:
        commands.append(words[0])
        return await aexecute(self, words, timeout_s)

    monkeypatch.setattr(pool.Pool, "execute", counted)
    monkeypatch.setattr(tasks._Pool, "execute", acounted)
    return commands


@pytest.mark.parametrize("ask", [by_threads, by_tasks])
def test_while_it_hangs_one_caller_in_each_pause_reaches_it(
    server: Server, sent: list[object], ask: Ask
) -> None:
    clock = FakeClock()
    url = f"{server.url}?timeout_s={TIMEOUT_S}&connections={MANY}"
    with opened(RedisStore(url, now=clock.now)) as cache:  # type: ignore[arg-type]  # a store will do
        cache.update(REQUEST, "a", outcome=cache.lookup(REQUEST))
        clock.advance(1.0)
        assert all(isinstance(one, Hit) for one in ask(cache))
        breaker = cache.core.store.client.breaker  # type: ignore[attr-defined]
        server.pause()
        clock.advance(1.0)

        def asked() -> int:
            """Ask very often, and see that all are told; return how many the server could see."""
            sent.clear()
            outcomes = ask(cache)
            assert [one.reason for one in outcomes] == [Reason.STORE_ERROR] * MANY
            return len(sent)

        assert asked() <= MANY * TRIES, "those who were under way when it began to hang"
        assert breaker.opened == 1
        for pause_s in PAUSES_S:
            assert asked() == 0
            clock.advance(pause_s * 0.9)
            assert asked() == 0, "the pause is not over"
            clock.advance(pause_s * 0.1)
            assert asked() == 1, "one of very many finds out"
        assert breaker.opened == 1 + len(PAUSES_S)
        server.resume()
        clock.advance(PAUSES_S[-1])
        assert any(isinstance(one, Hit) for one in ask(cache)), "the one that finds out is served"
        assert all(isinstance(one, Hit) for one in ask(cache))
        server.pause()
        clock.advance(1.0)
        assert asked() <= MANY * TRIES
        clock.advance(PAUSES_S[0])
        assert asked() == 1, "the first pause is short again"
        server.resume()
