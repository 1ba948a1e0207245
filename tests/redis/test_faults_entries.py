"""What somebody may find in Redis who can write there: damaged, forged, moved and outdated entries.

Whatever stands there, an answer is served only under the address it was stored at, and as it was stored.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from stampcache import Cache, Hit, Request, Scope
from tests.redis.apps import opened
from tests.redis.servers import Server

TENANTS = ("acme", "umbrella")
QUESTIONS = ("q0", "q1", "q2")


@pytest.fixture
def raw(redis_server: Server) -> Iterator[Any]:
    """A plain client of the same server: whoever can write there."""
    client = redis.Redis(unix_socket_path=str(redis_server.socket))
    yield client
    client.close()


def asked() -> list[Request]:
    scopes = [Scope(tenant=tenant) for tenant in TENANTS]
    return [Request(question=one, scope=scope) for scope in scopes for one in QUESTIONS]


def wanted(request: Request) -> str:
    assert request.scope is not None
    return f"{request.scope.tenant} is told {request.question}"


def filled(url: str) -> None:
    with opened(url) as cache:
        for request in asked():
            cache.update(request, wanted(request), outcome=cache.lookup(request))


def looked(url: str) -> list[bool]:
    """Ask everything by a process that has nothing near; return what was a hit. None may be wrong."""
    with opened(url) as cache:
        found = []
        for request in asked():
            outcome = cache.lookup(request)
            found.append(isinstance(outcome, Hit))
            assert not isinstance(outcome, Hit) or outcome.answer.text == wanted(request)
        return found


def strings(raw: Any) -> list[bytes]:
    """The keys of everything that is kept as one value."""
    return sorted(key for key in raw.scan_iter("*") if raw.type(key) == b"string")


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a bit flipped in its seal": lambda value: value[:25] + bytes([value[25] ^ 1]) + value[26:],
    "a bit flipped in its middle": lambda value: (
        value[: len(value) // 2]
        + bytes([value[len(value) // 2] ^ 4])
        + value[len(value) // 2 + 1 :]
    ),
    "its last byte gone": lambda value: value[:-1],
    "cut in half": lambda value: value[: len(value) // 2],
    "empty": lambda value: b"",
    "longer": lambda value: value + b"x",
    "of a format of before": lambda value: b"SCE\x00" + value[4:],
    "text": lambda value: b"hello",
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_damaged_entry_is_a_miss_and_counted(redis_server: Server, raw: Any, damage: str) -> None:
    filled(redis_server.url)
    for key in strings(raw):
        raw.set(key, DAMAGES[damage](raw.get(key)), keepttl=True)
    assert looked(redis_server.url) == [False] * len(asked())
    with opened(redis_server.url) as cache:
        for request in asked():
            cache.update(request, wanted(request), outcome=cache.lookup(request))
    assert looked(redis_server.url) == [True] * len(asked()), "it is stored anew"


def test_damage_at_every_byte_is_seen(redis_server: Server, raw: Any) -> None:
    filled(redis_server.url)
    kept = {key: raw.get(key) for key in strings(raw)}
    key, value = next(iter(kept.items()))
    for at in range(0, len(value), max(1, len(value) // 60)):
        raw.set(key, value[:at] + bytes([value[at] ^ 0x10]) + value[at + 1 :], keepttl=True)
        looked(redis_server.url)
        for one, before in kept.items():
            raw.set(one, before, keepttl=True)


def test_an_entry_in_the_place_of_another_is_not_served(redis_server: Server, raw: Any) -> None:
    filled(redis_server.url)
    keys = strings(raw)
    values = [raw.get(key) for key in keys]
    for shift in range(1, len(keys)):
        for at, key in enumerate(keys):
            raw.set(key, values[(at + shift) % len(keys)], keepttl=True)
        assert looked(redis_server.url) == [False] * len(asked())


def test_an_entry_that_was_made_without_the_secret_is_not_served(
    redis_server: Server, raw: Any
) -> None:
    """Somebody who can write, and knows the format, but not the secret, runs a cache of their own."""
    filled(redis_server.url)
    mine = {key: raw.get(key) for key in strings(raw)}
    with (
        Server() as other,
        opened(other.url, secret="of somebody else, 32 bytes long") as cache,
    ):
        for request in asked():
            cache.update(request, "poison", outcome=cache.lookup(request))
        theirs = redis.Redis(unix_socket_path=str(other.socket))
        forged = [theirs.get(key) for key in strings(theirs)]
        theirs.close()
    for at, key in enumerate(mine):
        raw.set(key, forged[at % len(forged)], keepttl=True)
    assert looked(redis_server.url) == [False] * len(asked())


def test_everything_else_that_is_kept_may_be_gone_or_of_another_type(
    redis_server: Server, raw: Any
) -> None:
    filled(redis_server.url)
    others = [key for key in raw.scan_iter("*") if raw.type(key) != b"string"]
    for key in others:
        filled(redis_server.url)
        raw.delete(key)
        looked(redis_server.url)
        filled(redis_server.url)
        raw.delete(key)
        raw.set(key, b"another type")
        looked(redis_server.url)
        raw.delete(key)
    redis_server.cli("FLUSHALL")
    filled(redis_server.url)
    assert looked(redis_server.url) == [True] * len(asked())


def test_damage_is_told_by_the_counters(redis_server: Server, raw: Any) -> None:
    filled(redis_server.url)
    key = strings(raw)[0]
    raw.set(key, b"hello", keepttl=True)
    with opened(redis_server.url) as cache:
        counters = counted(cache)
        for request in asked():
            cache.lookup(request)
        assert counted(cache) != counters


def counted(cache: Cache) -> dict[str, int]:
    counters = cache.stats(everything=True).counters
    return {
        name: n for name, n in counters.items() if "corrupt" in name or name.startswith("error")
    }
