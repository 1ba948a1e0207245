"""Equal requests of several caches on one server cost one making, whoever fails, dies or hangs."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from stampcache import Answer, Cache, Request, Scope, open_cache
from stampcache.errors import MakingError, StoreError
from stampcache.ports import Making, Ticket
from stampcache.stores.redis.leases import Leases
from stampcache.stores.redis.store import RedisStore
from tests.redis.apps import eventually
from tests.redis.servers import Server

REQUEST = Request(question="q", model="m")


@pytest.fixture
def caches(url: str) -> Iterator[list[Cache]]:
    """Caches as of four processes."""
    opened = [open_cache(f"{url}&lease_s=0.5", flight_timeout_s=10.0) for _ in range(4)]
    yield opened
    for cache in opened:
        cache.close()


def at_once(*works: Callable[[], object]) -> list[object]:
    """Run all in threads of their own; return what each returned or raised."""
    results: list[object] = [None] * len(works)

    def run(at: int) -> None:
        try:
            results[at] = works[at]()
        except Exception as error:
            results[at] = error

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Model:
    """Counts how often it is asked; the first answers wait until all have asked."""

    def __init__(self, *, seconds: float = 0.15, fails: int = 0) -> None:
        self.calls = 0
        self._seconds = seconds
        self._fails = fails
        self._lock = threading.Lock()

    def __call__(self) -> Answer:
        with self._lock:
            self.calls += 1
            number = self.calls
        time.sleep(self._seconds)
        if number <= self._fails:
            raise ValueError(f"failure {number}")
        return Answer(text=f"answer {number}")

    async def aio(self) -> Answer:
        return await asyncio.to_thread(self)


def test_equal_requests_of_all_caches_cost_one_making(caches: list[Cache]) -> None:
    model = Model()
    works = [lambda one=one: one.get_or_create(REQUEST, model) for one in caches * 5]
    answers = at_once(*works)
    assert model.calls == 1
    assert {one.text for one in answers if isinstance(one, Answer)} == {"answer 1"}
    assert len(answers) == 20


def test_tasks_wait_for_the_makings_of_others(caches: list[Cache]) -> None:
    model = Model()

    async def ask() -> list[Answer]:
        wanted = (one.aio.get_or_create(REQUEST, model.aio) for one in caches * 5)
        return await asyncio.gather(*wanted)

    threads = [lambda: caches[0].get_or_create(REQUEST, model)]
    asked, made = at_once(lambda: asyncio.run(ask()), *threads)
    assert model.calls == 1
    assert isinstance(asked, list) and {one.text for one in [*asked, made]} == {"answer 1"}


def test_a_failure_is_that_of_all_who_waited_and_of_nobody_after(caches: list[Cache]) -> None:
    model = Model(fails=1)
    results = at_once(*[lambda one=one: one.get_or_create(REQUEST, model) for one in caches])
    assert model.calls == 1
    assert sorted(type(one).__name__ for one in results) == ["MakingError"] * 3 + ["ValueError"]
    told = next(one for one in results if isinstance(one, MakingError))
    assert "ValueError: failure 1" in str(told)
    assert caches[1].get_or_create(REQUEST, model).text == "answer 2"


def test_a_ticket_whose_lease_ended_is_taken_over(caches: list[Cache]) -> None:
    first, second = caches[:2]
    store = first.core.store
    asked: list[Ticket] = []

    def spy(ticket: Ticket, *, longest_s: float) -> str:
        asked.append(ticket)
        return "a process that died"

    tickets = store.tickets  # type: ignore[attr-defined]  # a Redis store has them
    real = tickets.take
    second.core.turns._tickets.sync.take = spy  # type: ignore[union-attr, method-assign]
    model = Model(seconds=0.0)
    assert second.get_or_create(REQUEST, model).text == "answer 1"
    assert asked and real(asked[0], longest_s=1.0) == asked[0].token, "it was never held"
    third = Request(question="other", model="m")
    assert first.get_or_create(third, model).text == "answer 2"


def test_one_who_is_interrupted_leaves_the_making_to_others(caches: list[Cache]) -> None:
    begun = threading.Event()
    model = Model(seconds=0.0)

    async def hang() -> Answer:
        begun.set()
        await asyncio.sleep(60)
        return Answer(text="never")

    async def cancelled() -> None:
        task = asyncio.create_task(caches[0].aio.get_or_create(REQUEST, hang))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.2)

    def wait() -> Answer:
        begun.wait()
        return caches[1].get_or_create(REQUEST, model)

    started = time.monotonic()
    _, answer = at_once(lambda: asyncio.run(cancelled()), wait)
    assert isinstance(answer, Answer) and answer.text == "answer 1"
    assert time.monotonic() - started < 5


def test_a_call_inside_its_own_making_does_not_wait_for_itself(caches: list[Cache]) -> None:
    inner = Model(seconds=0.0)

    def make() -> Answer:
        return caches[0].get_or_create(REQUEST, inner)

    assert caches[0].get_or_create(REQUEST, make).text == "answer 1"


def test_an_answer_that_is_not_stored_is_made_by_each_without_waiting_long(
    caches: list[Cache],
) -> None:
    calls: list[int] = []

    def make() -> Answer:
        calls.append(1)
        return Answer(text="")  # is never stored

    started = time.monotonic()
    results = at_once(*[lambda one=one: one.get_or_create(REQUEST, make) for one in caches])
    assert [type(one) for one in results] == [Answer] * 4
    assert len(calls) == 4
    assert time.monotonic() - started < 5


def test_tickets_that_fail_keep_nobody_from_making(
    caches: list[Cache], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(ticket: Ticket, *, longest_s: float) -> str:
        raise StoreError("away")

    tickets = caches[0].core.store.tickets  # type: ignore[attr-defined]  # a Redis store has them
    monkeypatch.setattr(tickets, "take", away)
    model = Model(seconds=0.0)
    assert caches[0].get_or_create(REQUEST, model).text == "answer 1"
    assert caches[0].stats(everything=True).counters["error.tickets"] == 1


# -- leases ----------------------------------------------------------------------------------------


def test_a_making_may_take_many_leases(caches: list[Cache]) -> None:
    """Of threads and tasks alike: its process lives, so nobody takes its place."""
    by_thread, by_task = Model(seconds=3.0), Model(seconds=3.0)  # six leases
    other = Request(question="other", model="m")
    works: list[Callable[[], object]] = []
    for cache in caches:
        works += [
            lambda one=cache: one.get_or_create(REQUEST, by_thread),  # type: ignore[misc]
            lambda one=cache: asyncio.run(one.aio.get_or_create(other, by_task.aio)),  # type: ignore[misc]
        ]
    answers = at_once(*works)
    assert {one.text for one in answers if isinstance(one, Answer)} == {"answer 1"}
    assert (len(answers), by_thread.calls, by_task.calls) == (8, 1, 1)


TICKET = Ticket(tenant="t", name="n", token="mine")


class Renewed:
    """A server that renews: what it was asked for, and what it says is lost."""

    def __init__(self) -> None:
        self.asked: list[list[Ticket]] = []
        self.lost: list[Ticket] = []
        self.away = False

    def __call__(self, held: Sequence[Ticket]) -> Sequence[Ticket]:
        self.asked.append(list(held))
        if self.away:
            raise StoreError("away")
        return self.lost


def test_a_lease_is_renewed_until_it_is_given_back_lost_or_takes_too_long() -> None:
    server, time_s = Renewed(), [0.0]
    leases = Leases(server, lease_s=3_600.0, now=lambda: time_s[0])
    others = [Ticket(name=name, token=name) for name in ("lost", "back", "long")]
    for ticket in (TICKET, *others):
        leases.add(ticket, 20.0 if ticket.name == "long" else 100.0)
    leases.beat()
    leases.drop(others[1])
    server.away = True
    leases.beat()
    server.away, server.lost = False, [others[0]]
    leases.beat()
    time_s[0] = 20.0
    leases.beat()
    names = [[ticket.name for ticket in asked] for asked in server.asked]
    assert names == [
        ["n", "lost", "back", "long"],
        ["n", "lost", "long"],
        ["n", "lost", "long"],
        ["n"],
    ]
    leases.close()
    leases.add(TICKET, 100.0)
    leases.beat()
    assert len(leases) == 0
    assert len(server.asked) == 4


def test_there_is_one_thread_while_there_are_tickets_and_none_after() -> None:
    others = set(threading.enumerate())
    beaten = threading.Event()

    def renewed(held: Sequence[Ticket]) -> Sequence[Ticket]:
        beaten.set()
        return []

    def beating() -> int:
        return len(set(threading.enumerate()) - others)

    leases = Leases(renewed, lease_s=0.03, now=time.monotonic)
    for name in "abc":
        leases.add(Ticket(name=name, token=name), 100.0)
    assert beating() == 1
    assert beaten.wait(20)
    for name in "abc":
        leases.drop(Ticket(name=name, token=name))
    assert eventually(lambda: beating() == 0)
    beaten.clear()
    leases.add(TICKET, 100.0)
    assert beaten.wait(20), "it began anew"
    leases.close()
    assert eventually(lambda: beating() == 0)


def test_where_no_thread_is_to_be_had_a_ticket_is_one_without_a_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beaten = threading.Event()

    def renewed(held: Sequence[Ticket]) -> Sequence[Ticket]:
        beaten.set()
        return []

    def none_left(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    leases = Leases(renewed, lease_s=0.03, now=time.monotonic)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_left)
        leases.add(TICKET, 100.0)
    leases.add(Ticket(name="later", token="later"), 100.0)
    assert beaten.wait(20), "the next one has a thread"
    leases.close()


@pytest.mark.parametrize("verb", ["drop", "close"])
def test_a_forked_child_waits_for_no_lock_of_its_parent(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = Leases(Renewed(), lease_s=3_600.0, now=time.monotonic)
    leases.add(TICKET, 100.0)
    parent = leases._changed
    with parent:  # as the thread of the parent, which is not in the child, had it
        monkeypatch.setattr("os.getpid", lambda: -1)
        words = (TICKET,) if verb == "drop" else ()
        child = threading.Thread(target=getattr(leases, verb), args=words, daemon=True)
        child.start()
        child.join(20)
        assert not child.is_alive()
        assert len(leases) == 0
        monkeypatch.undo()


def test_a_lease_that_ended_is_not_renewed(url: str) -> None:
    store, late = (RedisStore(url) for _ in range(2))
    other = Ticket(tenant="t", name="n", token="other")
    assert store.tickets.take(TICKET, longest_s=60.0) == "mine"
    assert late.tickets.take(other, longest_s=60.0) == "mine"
    assert store.run(store.ticket_verbs.renew([TICKET, other])) == [other]
    store.tickets.let_go(TICKET)
    assert late.tickets.take(other, longest_s=60.0) == "other"
    assert store.run(store.ticket_verbs.renew([TICKET])) == [TICKET]
    store.tickets.give(TICKET, "too late")
    assert late.tickets.see(TICKET) == Making(under_way=False, ended=False)
    assert late.tickets.see(other).under_way
    store.close()
    late.close()


# -- a tenant that is forgotten --------------------------------------------------------------------


def keys_of(server: Server) -> list[str]:
    return [name for name in server.cli("--raw", "KEYS", "*").splitlines() if name]


def test_tickets_and_messages_of_a_forgotten_tenant_go_and_others_stay(
    url: str, redis_server: Server
) -> None:
    store = RedisStore(url)
    failed = [Ticket(tenant=tenant, name="failed", token=tenant) for tenant in ("t", "u")]
    held = [Ticket(tenant=tenant, name="held", token=f"h{tenant}") for tenant in ("t", "u")]
    for ticket in failed:
        store.tickets.take(ticket, longest_s=60.0)
        store.tickets.give(ticket, f"ValueError: Zanzibar of {ticket.tenant}")
    for ticket in held:
        store.tickets.take(ticket, longest_s=60.0)
    assert "Zanzibar" in store.tickets.see(failed[0]).failure
    forgotten = store.forget("t")
    assert forgotten.entries == 0
    assert forgotten.size_bytes > len("ValueError: Zanzibar of t"), "the message was counted"
    for ticket in (failed[0], held[0]):
        assert store.tickets.see(ticket) == Making(under_way=False, ended=False)
    assert "Zanzibar of u" in store.tickets.see(failed[1]).failure
    assert store.tickets.see(held[1]).under_way
    store.tickets.give(held[0], "ValueError: Zanzibar, too late")
    assert store.tickets.see(held[0]) == Making(under_way=False, ended=False)
    assert not [name for name in keys_of(redis_server) if ":1:t" in name or name.endswith(":t")]
    store.close()


def test_a_leader_that_fails_after_its_tenant_was_forgotten_tells_nobody(
    caches: list[Cache], redis_server: Server
) -> None:
    request = Request(question="Where is Zanzibar?", model="m", scope=Scope(tenant="acme"))
    begun, go_on = threading.Event(), threading.Event()

    def fail() -> Answer:
        begun.set()
        assert go_on.wait(60)
        raise ValueError("the secret Quagga")

    def forget() -> None:
        assert begun.wait(60)
        caches[1].forget("acme")
        assert not [name for name in keys_of(redis_server) if "ticket" in name or ":end" in name]
        go_on.set()

    model = Model(seconds=0.0)
    failure, _ = at_once(lambda: caches[0].get_or_create(request, fail), forget)
    assert isinstance(failure, ValueError)
    assert not [name for name in keys_of(redis_server) if "ticket" in name or ":end" in name]
    assert caches[2].get_or_create(request, model).text == "answer 1"


def test_a_great_many_tickets_of_a_tenant_go_too(url: str, redis_server: Server) -> None:
    store = RedisStore(url)
    for number in range(450):
        ticket = Ticket(tenant="t", name=f"n{number}", token=f"token {number}")
        store.tickets.take(ticket, longest_s=60.0)
        if number % 2:
            store.tickets.give(ticket, "failed")
    store.forget("t")
    assert not [name for name in keys_of(redis_server) if "ticket" in name or ":end" in name]
    store.close()
