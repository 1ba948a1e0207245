"""What an application sees when the network to its Redis is slow, one-sided, parted or cut."""

import asyncio
import time

import pytest

from stampcache import Hit
from tests.redis.apps import App, Documents, eventually, opened, recovered
from tests.redis.networks import THERE, Network
from tests.redis.proxy import Proxy
from tests.redis.servers import Server

DEADLINE_S = 2.0


@pytest.mark.parametrize("lost", ["requests", "replies", "both"])
def test_a_parted_network_costs_a_deadline_once(redis_server: Server, lost: str) -> None:
    documents = Documents()
    with Proxy(redis_server.port) as proxy, opened(proxy.url) as cache:
        app = App(cache, documents)
        app.change("a")
        app.ask("a")
        proxy.freeze(requests=lost != "replies", replies=lost != "requests")
        for at in range(20):
            app.ask(f"{at}")
        assert max(app.took_s) < DEADLINE_S
        assert app.counted("error.") > 0
        proxy.heal()
        recovered(app)
        app.ask("a")
        assert app.hits("a")


def test_a_change_whose_reply_is_lost_is_told_or_said_not_to_be(redis_server: Server) -> None:
    documents = Documents()
    with (
        Proxy(redis_server.port) as proxy,
        opened(f"{proxy.url}?slow_timeout_s=0.5") as far,
        opened(redis_server.url, strict=True) as near,
    ):
        app, other = App(far, documents), App(near, documents)
        for source in "abc":
            app.ask(source)
            assert other.hits(source)
            proxy.freeze(requests=False)
            told = app.change(source)
            proxy.heal()
            assert not told or not other.hits(source)
            recovered(app)
            app.ask(source)


def test_a_fill_whose_reply_is_lost_leaves_one_whole_entry_or_none(redis_server: Server) -> None:
    documents = Documents()
    with Proxy(redis_server.port) as proxy, opened(proxy.url) as cache:
        app = App(cache, documents)
        for at in range(5):
            app.ask(f"{at}", meanwhile=lambda: proxy.freeze(requests=False))
            proxy.heal()
            recovered(app)
        app.change("0")
        assert [app.hits(f"{at}") for at in range(1, 5)].count(True) >= 0
        assert not cache.core.store.problems()


@pytest.mark.parametrize("reply_bytes", [1, 7, 40, 300])
def test_connections_that_break_in_mid_reply_mix_up_nobodys_answers(
    redis_server: Server, reply_bytes: int
) -> None:
    documents = Documents()
    with Proxy(redis_server.port) as proxy, opened(proxy.url, near_capacity=1) as cache:
        app = App(cache, documents)
        for at in range(8):
            documents.write(f"{at}")
            app.ask(f"{at}")
        for _ in range(6):
            proxy.cut_after(reply_bytes)
            for at in range(8):
                outcome = cache.lookup(app.request(f"{at}"))
                if isinstance(outcome, Hit):
                    assert outcome.answer.text == f"{at} says version 1"
            proxy.heal()
            recovered(app)


def test_a_slow_network_never_stops_the_loop(redis_server: Server) -> None:
    documents = Documents()

    async def play(proxy: Proxy) -> float:
        cache = opened(proxy.url)
        app = App(cache, documents)
        await cache.aio.lookup(app.request("a"))
        proxy.delay_s = 0.1
        longest, last = 0.0, time.monotonic()
        asking = asyncio.gather(*(cache.aio.lookup(app.request(f"{at}")) for at in range(20)))
        while not asking.done():
            await asyncio.sleep(0.001)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        proxy.heal()
        await cache.aio.close()
        return longest

    with Proxy(redis_server.port) as proxy:
        assert asyncio.run(play(proxy)) < 0.08


def test_a_cut_network_is_noticed_by_replicas(redis_server: Server) -> None:
    """A near-cache that hears of no changes any more is not believed for longer than its bound."""
    documents = Documents()
    with (
        Proxy(redis_server.port) as proxy,
        opened(proxy.url) as far,
        opened(redis_server.url) as near,
    ):
        app, other = App(far, documents), App(near, documents)
        other.change("a")
        other.ask("a")
        assert eventually(lambda: app.hits("a"))
        proxy.freeze()
        assert other.change("a")
        for _ in range(20):
            app.ask("a")
            time.sleep(0.05)
        proxy.heal()
        recovered(app)
        other.ask("a")
        assert eventually(lambda: app.hits("a"))


@pytest.mark.allow_hosts([THERE])
def test_a_real_network_that_is_narrow_and_then_parted() -> None:
    documents = Documents()
    with (
        Network() as network,
        Server(within=network.within, host=THERE) as server,
        opened(server.url) as cache,
    ):
        app = App(cache, documents)
        app.change("a")
        app.ask("a")
        network.narrow(64)
        for at in range(5):
            app.ask(f"{at}")
        network.part()
        for at in range(20):
            app.ask(f"{at}")
        assert max(app.took_s) < DEADLINE_S
        assert app.counted("error.") > 0
        network.heal()
        recovered(app)
        app.ask("a")
        assert app.hits("a")
