"""Invalidations in pieces, for tests: entries, and what happens between two pieces."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from stampcache import Evidence
from stampcache.model import Entry, Selector, Stamps
from stampcache.ports import Store
from stampcache.stores.redis.asking import Ask, Run
from stampcache.stores.redis.store import RedisStore
from stampcache.testing.samples import make_entry
from tests.redis.servers import Server

OF_S = Selector(corpus="c", source="s")
SCANNED = dict.fromkeys(
    (
        "set-max-intset-entries",
        "zset-max-listpack-entries",
        "hash-max-listpack-entries",
    ),
    "0",
)
"""Even small sets are then read some at a time."""


def entry_of(number: int, source: str = "s") -> Entry:
    evidence = (Evidence(corpus="c", source=source, chunk=f"{source}{number}", text="t"),)
    return make_entry(
        f"key {number}",
        entry_id=f"{source}{number}",
        evidence=evidence,
        stamps=Stamps(index="v1"),
    )


def fill(store: RedisStore, numbers: Sequence[int], source: str = "s") -> None:
    """Store so many, by some threads at once."""

    def some(start: int) -> None:
        for number in numbers[start::8]:
            store.put(entry_of(number, source), None, store.sequence())

    threads = [threading.Thread(target=some, args=(start,)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def between(store: RedisStore, then: Callable[[Run, Any], None]) -> None:
    """Call a function after each piece of an invalidation that this store makes, with its reply."""
    real = store.client.answer

    def answer(ask: Ask) -> Any:
        reply = real(ask)
        if isinstance(ask, Run) and (ask.verb == "invalidate" or ask.args[-1] == 0):
            then(ask, reply)  # not where it only looked whether it is to help
        return reply

    store.client.answer = answer  # type: ignore[method-assign]


def is_swept(server: Server) -> bool:
    return not server.cli("--raw", "KEYS", "*}:closing")


def look(store: Store, entry: Entry) -> Entry:
    found = store.fetch(*entry.place)
    assert found is not None
    return found
