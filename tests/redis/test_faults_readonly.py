"""A server that was made a replica refuses writes: the cache goes on, and comes back with it."""

import stampcache
from stampcache import Hit, Reason, Refused, Request, Stored
from tests.redis.apps import eventually
from tests.redis.servers import Server

ASKED = Request(question="How many days of leave do I have?", model="m")


def test_a_server_that_was_demoted_stores_nothing_and_is_used_again_when_it_is_promoted() -> None:
    with (
        Server() as server,
        stampcache.open_cache(f"{server.url}?strict=1", secret="of this test alone") as cache,
    ):
        assert isinstance(cache.update(ASKED, "30", outcome=cache.lookup(ASKED)), Stored)
        server.cli("REPLICAOF", "127.0.0.1", "1")
        refused = cache.update(Request(question="another", model="m"), "x")
        assert isinstance(refused, Refused) and refused.reason is Reason.STORE_ERROR
        assert cache.stats(everything=True).counters["error.store_error"] >= 1
        server.cli("REPLICAOF", "NO", "ONE")

        def is_served() -> bool:
            outcome = cache.lookup(ASKED)
            if not isinstance(outcome, Hit):
                cache.update(ASKED, "30", outcome=outcome)
            return isinstance(outcome, Hit)

        assert eventually(is_served)
