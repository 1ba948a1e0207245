"""An invalidation that is left behind blocks nobody, and leaves nothing unmarked."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from stampcache.corpora import Change, Chunk
from stampcache.model import Entry, Selector
from stampcache.stores.redis import verbs
from stampcache.stores.redis.asking import Ask, Command, Run
from stampcache.stores.redis.store import RedisStore
from stampcache.testing.samples import NOW
from tests.redis.apps import eventually
from tests.redis.servers import Server
from tests.redis.sweeps import OF_S, SCANNED, entry_of, fill, is_swept, look


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server on which three entries are two pieces."""
    monkeypatch.setattr(verbs, "_MARKED_AT_ONCE", 2)
    with Server(settings=SCANNED) as one:
        yield one


def left_behind(store: RedisStore, selector: Selector, after: int) -> None:
    """Begin an invalidation, and die after so many pieces."""
    real, left = store.client.answer, [after]

    def answer(ask: Ask) -> Any:
        reply = real(ask)
        if isinstance(ask, Run) and (ask.verb == "invalidate" or ask.args[-1] == 0):
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
        return reply

    store.client.answer = answer  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        store.invalidate(selector)
    store.client.answer = real  # type: ignore[method-assign]


def test_once_nobody_goes_on_each_who_asks_helps_and_nobody_waits_for_a_helper(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbs, "_LEFT_MS", 1_500)
    monkeypatch.setattr(verbs, "_HELPED_AT_ONCE", 2)
    store = RedisStore(server.socket_url + "?timeout_s=5&strict=1")
    fill(store, range(60))
    left_behind(store, OF_S, 2)

    def marked() -> int:
        look(store, entry_of(0))
        return store.stats().invalidated

    before = marked()
    assert 0 < before < 30
    assert eventually(lambda: marked() > before), "it was left"
    seen = [marked() for _ in range(4)]
    assert seen == sorted(set(seen)), "each question went on with it"
    store.close()


def test_a_restart_between_two_pieces_leaves_nothing_unmarked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another process of a server has another order in which it scans."""
    monkeypatch.setattr(verbs, "_MARKED_AT_ONCE", 2)
    with Server(settings=SCANNED, durable=True) as server:
        store = RedisStore(server.socket_url + "?timeout_s=5&strict=1&durable=1")
        fill(store, range(200))
        left_behind(store, OF_S, 50)
        server.stop()
        server.start()
        assert eventually(lambda: server.is_up() and store.sequence() > 0)
        store.run(store.verbs.sweep_all())
        assert is_swept(server)
        unmarked = [
            number for number in range(200) if not look(store, entry_of(number)).invalidated
        ]
        assert unmarked == []
        store.close()


@pytest.mark.parametrize("lost", ["sweeps", "closing", "meta"])
def test_what_a_server_that_evicts_took_away_blocks_nobody(server: Server, lost: str) -> None:
    one, two = (RedisStore(server.socket_url + "?timeout_s=5&strict=1") for _ in range(2))
    one.corpora.declare("c", now=NOW, silence_s=None)
    fill(one, range(40))
    left_behind(one, OF_S, 2)
    assert look(two, entry_of(1)).invalidated
    base = one.client.base.decode()
    server.cli("DEL", f"{base}{lost}")
    server.cli("HSET", f"{base}meta", "server", "another one")  # how an eviction is taken, too
    for store in (one, two):
        assert store.fetch(*entry_of(1).place) is None, "nothing from before is served"
    anew = entry_of(99)
    assert one.put(anew, None, one.sequence()).stored
    assert two.journal.confirm(anew, at=NOW, doubtful_at=None)
    change = Change(added=(Chunk(id="new", digest="d", vector=np.ones(2, np.float32).tobytes()),))
    two.corpora.commit("c", "", change, now=NOW)
    assert one.invalidate(OF_S) >= 0
    assert is_swept(server)
    one.close()
    two.close()


def test_a_tenant_is_forgotten_with_what_names_its_scopes(server: Server) -> None:
    store = RedisStore(server.socket_url + "?timeout_s=5")
    fill(store, range(40))
    scope, tenant = entry_of(0).identity.scope, entry_of(0).identity.tenant
    left_behind(store, Selector(scope=scope), 2)
    assert not is_swept(server)
    assert store.forget(tenant).entries == 40
    assert is_swept(server)
    assert not server.cli("--raw", "KEYS", "*}:sweeps")
    store.close()


def test_a_server_whose_clock_went_back_does_not_wait_for_it(server: Server) -> None:
    store = RedisStore(server.socket_url + "?timeout_s=5&strict=1")
    fill(store, range(40))
    left_behind(store, OF_S, 2)
    name, raw = store.client.answer(Command("HGETALL", b"sweeps"))
    head, when, rest = raw.partition(b"touched_ms\xcf")
    in_an_hour = int.from_bytes(rest[:8], "big") + 3_600_000
    later = head + when + in_an_hour.to_bytes(8, "big") + rest[8:]
    assert store.client.answer(Command("HSET", b"sweeps", (name, later))) == 0
    before = store.stats().invalidated
    look(store, entry_of(0))
    assert store.stats().invalidated > before
    store.close()


def test_what_was_read_before_the_last_piece_is_read_again_by_who_heard_of_that_alone(
    server: Server,
) -> None:
    one, two = (RedisStore(server.socket_url + "?timeout_s=5&strict=1") for _ in range(2))
    fill(one, range(40))
    left_behind(one, OF_S, 2)
    entries = [entry_of(number) for number in range(40)]
    unmarked = [each for each in entries if not _kept(two, each).invalidated]
    real = two.client.answer

    def answer(ask: Ask) -> Any:
        reply = real(ask)
        if isinstance(ask, Run) and ask.verb == "fetch" and not is_swept(server):
            one.run(one.verbs.sweep_all())
            one.forget("nobody")  # so that nobody is told what changed, one by one
        return reply

    two.client.answer = answer  # type: ignore[method-assign]
    assert look(two, unmarked[0]).invalidated == str(OF_S)
    one.close()
    two.close()


def _kept(store: RedisStore, entry: Entry) -> Entry:
    found = store.run(store.verbs.peeked(entry.place))
    assert found is not None
    return found
