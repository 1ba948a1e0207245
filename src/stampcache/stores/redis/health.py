"""What is wrong with a server, for `stampcache doctor`: one sentence each that says how to mend it."""

import time
from collections.abc import Mapping, Sequence

from stampcache.errors import StoreError
from stampcache.stores.redis.client import Client

_OLDEST = (7, 0)
_SLOW_S = 0.05
_PINGS = 5


def problems_of(client: Client) -> Sequence[str]:
    """Ask the server, and return what is wrong.

    Raises:
        StoreError: it cannot be asked.
    """
    facts: Mapping[str, str] = _facts(client)
    found = [*_version(facts), *_eviction(facts), *_persistence(client, facts)]
    seconds = _latency_s(client)
    if seconds > _SLOW_S:
        took = f"{seconds * 1e3:.0f} ms"
        found.append(f"A round trip to the server takes {took}; run it nearer to the application.")
    return found


def _facts(client: Client) -> Mapping[str, str]:
    facts: dict[str, str] = {}
    for section in ("server", "memory", "persistence"):
        said: bytes = client.plain("INFO", section)
        lines = (line.partition(":") for line in said.decode().splitlines())
        facts |= {name: value for name, _, value in lines if value}
    return facts


def _version(facts: Mapping[str, str]) -> Sequence[str]:
    said = facts.get("redis_version", "0")
    numbers = tuple(int(one) for one in said.split(".")[:2] if one.isdecimal())
    if numbers >= _OLDEST:
        return []
    return [f"The server is Redis {said}; the cache needs 7.0 or newer."]


def _eviction(facts: Mapping[str, str]) -> Sequence[str]:
    policy = facts.get("maxmemory_policy", "noeviction")
    if policy == "noeviction":
        return []
    return [
        f"The server evicts keys by itself (maxmemory-policy {policy}), and loses marks and logs; set"
        " it to noeviction: the cache keeps its own bound."
    ]


def _persistence(client: Client, facts: Mapping[str, str]) -> Sequence[str]:
    settings = client.address.settings
    if facts.get("loading", "0") != "0":
        return ["The server is still loading its data; wait."]
    if facts.get("aof_enabled") == "1" and facts.get("aof_last_write_status") != "ok":
        return ["The server cannot write its append-only file; look at its disk."]
    if settings.durable and facts.get("aof_enabled") != "1":
        return [
            "The store is opened as durable=1, but the server keeps no append-only file; set"
            " appendonly yes and appendfsync always, or leave out durable."
        ]
    return []


def _latency_s(client: Client) -> float:
    best = float("inf")
    for _ in range(_PINGS):
        start = time.perf_counter()
        client.plain("PING")
        best = min(best, time.perf_counter() - start)
    if best == float("inf"):
        raise StoreError("The Redis store failed (no ping was answered); look at the server.")
    return best
