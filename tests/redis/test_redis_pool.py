"""A pool of connections: its bound holds under threads; who waits is served, or told."""

import threading
import time
from collections.abc import Iterator

import pytest
import redis

from stampcache.stores.redis.pool import ExhaustedError, Pool
from tests.redis.servers import Server

SIZE = 3


@pytest.fixture
def factory(redis_server: Server) -> Iterator[redis.ConnectionPool]:
    made = redis.ConnectionPool.from_url(redis_server.url, protocol=2)
    yield made
    made.disconnect()


def clients(server: Server) -> int:
    listed = server.cli("CLIENT", "LIST", "TYPE", "normal").splitlines()
    return sum("cmd=client" not in line for line in listed)


def test_many_threads_share_few_connections(
    redis_server: Server, factory: redis.ConnectionPool
) -> None:
    pool = Pool(factory, size=SIZE, timeout_s=20.0)
    before, most, wrong = clients(redis_server), [], []

    def work(number: int) -> None:
        for at in range(50):
            text = f"{number}.{at}".encode()
            if pool.execute(("ECHO", text)) != text:
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        most.append(clients(redis_server) - before)
    assert wrong == []
    assert max(most, default=0) <= SIZE
    pool.disconnect()


def test_who_waits_too_long_is_told_and_who_waits_long_enough_is_served(
    factory: redis.ConnectionPool,
) -> None:
    pool = Pool(factory, size=1, timeout_s=0.1)
    holding = threading.Thread(target=pool.execute, args=(("BLPOP", "nothing", "0.6"),))
    holding.start()
    while pool._slots:
        time.sleep(0.001)
    with pytest.raises(ExhaustedError, match="raise connections="):
        pool.execute(("PING",))
    pool._timeout_s = 20.0
    assert pool.execute(("PING",)) == b"PONG"
    holding.join()
    assert len(pool._slots) == 1
    pool.disconnect()


def test_failures_cost_no_room(redis_server: Server, factory: redis.ConnectionPool) -> None:
    pool = Pool(factory, size=SIZE, timeout_s=0.1)
    for _ in range(3 * SIZE):
        with pytest.raises(redis.ResponseError):
            pool.execute(("NO SUCH COMMAND",))
        redis_server.cli("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises(redis.ConnectionError):
            pool.execute(("PING",))
        assert pool.execute(("PING",)) == b"PONG"
    assert len(pool._slots) == SIZE
    pool.disconnect()
