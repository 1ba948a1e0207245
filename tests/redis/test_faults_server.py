"""What an application sees when its Redis dies, hangs, fills up, is emptied or tells another time."""

import time

import pytest

from stampcache import Cache, Evidence, Hit, Refused, Request
from stampcache.testing import FakeClock
from tests.redis.apps import SETTINGS, App, Documents, eventually, opened, recovered
from tests.redis.servers import Server

DEADLINE_S = 2.0
"""Of a lookup or an update, whatever happens; machines of tests are slow."""


# -- it dies ---------------------------------------------------------------------------------------


def test_a_killed_server_costs_hits_and_nothing_else() -> None:
    documents = Documents()
    with Server(durable=True) as server, opened(server.url) as one, opened(server.url) as two:
        app, other = App(one, documents), App(two, documents)
        app.change("a")
        app.ask("a")
        assert other.hits("a")
        server.kill()
        for source in ("a", "b", "a", "b"):
            app.ask(source)
            other.ask(source)
        assert not app.change("a"), "what could not be told is said to be so"
        assert app.counted("error.") > 0
        server.start()
        recovered(app, other)
        assert max(app.took_s + other.took_s) < DEADLINE_S


def test_what_was_acknowledged_before_a_kill_is_there_or_a_miss() -> None:
    for durable in (True, False):
        documents = Documents()
        with Server(durable=durable) as server, opened(server.url) as cache:
            app = App(cache, documents)
            for at in range(20):
                app.change(f"{at}")
                app.ask(f"{at}")
            for at in range(0, 20, 2):
                app.change(f"{at}")
            server.kill()
            server.start()
            recovered(app)
            hits = [app.hits(f"{at}") for at in range(20)]
            assert not any(hits[::2])


def test_a_fill_that_began_before_the_server_lost_everything_is_refused() -> None:
    documents = Documents()
    with Server() as server, opened(server.url) as one, opened(server.url) as two:
        app, other = App(one, documents), App(two, documents)
        for at in range(5):
            app.change(f"{at}")

        def lost() -> None:
            server.kill()
            server.start()
            recovered(other)
            assert other.change("a")

        app.ask("a", meanwhile=lost)
        assert not other.hits("a") or documents.told["a"] == 1


# -- it hangs --------------------------------------------------------------------------------------


def test_a_stopped_server_is_not_waited_for_again_and_again() -> None:
    documents = Documents()
    with Server() as server, opened(server.url) as cache:
        app = App(cache, documents)
        app.ask("a")
        server.pause()
        try:
            for at in range(30):
                app.ask(f"{at}")
        finally:
            server.resume()
        assert max(app.took_s) < DEADLINE_S
        late = sorted(app.took_s[-40:])
        assert late[len(late) // 2] < 0.05, "an outage is remembered"
        assert app.counted("error.") > 0
        recovered(app)
        assert app.hits("a")


# -- it is emptied ---------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [False, True])
def test_nothing_of_before_is_served_once_it_was_emptied(
    redis_server: Server, strict: bool
) -> None:
    documents = Documents()
    with (
        opened(redis_server.url, strict=strict) as one,
        opened(redis_server.url, strict=strict) as two,
    ):
        app, other = App(one, documents), App(two, documents)
        app.change("a")
        app.ask("a")
        assert other.hits("a")
        redis_server.cli("FLUSHALL")
        assert app.change("a")
        eventually(lambda: not other_hits_old(other))
        app.ask("a")
        assert eventually(lambda: other.hits("a"))
        assert not one.core.store.problems()


def test_a_fill_that_began_before_it_was_emptied_is_refused(redis_server: Server) -> None:
    documents = Documents()
    with opened(redis_server.url) as cache:
        app = App(cache, documents)
        app.change("a")

        def emptied() -> None:
            redis_server.cli("FLUSHALL")
            assert app.change("a")

        app.ask("a", meanwhile=emptied)
        assert not app.hits("a")


# -- it is full ------------------------------------------------------------------------------------


def test_a_full_server_stores_nothing_more_and_still_hears_of_changes() -> None:
    documents = Documents()
    settings = {"maxmemory": "4mb", "maxmemory-policy": "noeviction"}
    with Server(settings=settings) as server, opened(server.url) as cache:
        app = App(cache, documents)
        for at in range(10):
            app.change(f"{at}")
            app.ask(f"{at}")
        filled(cache)
        server.cli("CONFIG", "SET", "maxmemory", "1mb")  # far below what it holds
        assert all(app.hits(f"{at}") for at in range(10)), "what is there is served"
        refused = cache.update(Request(question="new"), "x")
        assert isinstance(refused, Refused)
        assert app.counted("refused.store_error") > 0
        assert all(app.change(f"{at}") for at in range(5)), "a change can be told all the same"
        assert app.change("that nobody has asked for yet")
        assert [app.hits(f"{at}") for at in range(10)] == [False] * 5 + [True] * 5
        assert cache.purge() == 5
        entries = cache.stats(everything=True).entries
        assert cache.clear() == entries


@pytest.mark.parametrize("policy", ["volatile-random", "allkeys-lru", "allkeys-random"])
def test_a_server_that_evicts_by_itself_makes_nothing_false(policy: str) -> None:
    documents = Documents()
    settings = {"maxmemory-policy": policy, "maxmemory-samples": "1"}
    with Server(settings=settings) as server, opened(server.url) as cache:
        app = App(cache, documents)
        for at in range(100):
            app.ask(f"{at}")
        room = int(int(server.info("used_memory")) * 0.93)
        server.cli("CONFIG", "SET", "maxmemory", str(room))
        server.cli("SET", "foreign", "1")
        assert int(server.info("evicted_keys")) > 0
        server.cli("CONFIG", "SET", "maxmemory", "0")
        for at in range(100):
            assert app.change(f"{at}")
        with opened(server.url) as other:
            fresh = App(other, documents, bound_s=0.0)
            for at in range(100):
                fresh.ask(f"{at}")


# -- it tells another time -------------------------------------------------------------------------


@pytest.mark.parametrize("skew_s", [-86_400.0, -3_600.0, 3_600.0])
def test_a_process_whose_clock_is_wrong_harms_nobody_else(
    redis_server: Server, skew_s: float
) -> None:
    now = time.time()
    right, wrong = FakeClock(now), FakeClock(now + skew_s)
    documents = Documents()
    with (
        opened(redis_server.url, clock=right, ttl_s=600) as one,
        opened(redis_server.url, clock=wrong, ttl_s=600) as two,
    ):
        app, skewed = App(one, documents), App(two, documents)
        skewed.ask("a", meanwhile=lambda: None)
        app.ask("b", meanwhile=lambda: None)
        assert app.change("a")
        assert skewed.change("b")
        eventually(lambda: not isinstance(one.lookup(app.request("b")), Hit))
        app.ask("a")
        skewed.ask("b")
        right.advance(601)
        wrong.advance(601)
        assert not isinstance(one.lookup(app.request("a")), Hit), "its life is over by this clock"


# -- shared ----------------------------------------------------------------------------------------


def filled(cache: Cache) -> None:
    """Write until the server has no room left."""
    for at in range(400):
        request = Request(question=f"filler {at}", settings=SETTINGS)
        evidence = [Evidence(corpus="other", source=f"{at}", text="t")]
        done = cache.update(request, "x" * 50_000, evidence=evidence)
        if isinstance(done, Refused):
            return
    raise AssertionError("it never filled up")


def other_hits_old(app: App) -> bool:
    """Tell whether what was told to be old is still served, as it may be for the staleness bound."""
    outcome = app.cache.lookup(app.request("a"))
    return isinstance(outcome, Hit) and outcome.answer.text.endswith("version 1")
