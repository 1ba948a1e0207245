"""Who asks after a change is announced is not given an answer that was begun before it."""

import asyncio
import threading

import pytest

from stampcache import Answer, Cache, Reason, Request, open_cache
from stampcache.drivers import arun
from stampcache.effects import Flow, Step
from stampcache.intake import flight_key
from stampcache.sharing import Driven, Landed, Shared, together
from stampcache.testing import FailingStore, FakeClock
from tests.flights import GUARD_S, Gate, turn, wait_for_followers

REQUEST = Request(question="How many days of leave?", corpus="handbook")


@pytest.fixture
def cache() -> Cache:
    return open_cache("memory://")


@pytest.mark.parametrize(
    "made", ["30 days", ""]
)  # one that would be stored, and one that would not
def test_f7_a_thread_that_asks_after_a_change_does_not_share(cache: Cache, made: str) -> None:
    gate, told = Gate(made), list[str]()
    ask = cache.core.intake.ask(REQUEST, can_retrieve=False)
    assert not isinstance(ask, Reason)

    def lead() -> None:
        told.append(cache.get_or_create(REQUEST, gate.make).text)

    def follow() -> None:
        told.append(cache.get_or_create(REQUEST, lambda: "32 days").text)

    leader, follower = threading.Thread(target=lead), threading.Thread(target=follow)
    leader.start()
    assert gate.begun.wait(GUARD_S)
    cache.invalidate(corpus="handbook", source="leave.md")
    follower.start()
    wait_for_followers(cache.core.flights, flight_key(ask), 1)  # type: ignore[arg-type]
    gate.let.set()
    leader.join()
    follower.join()
    assert told == [made, "32 days"]
    assert cache.get_or_create(REQUEST, Gate("never").make).text == "32 days"


def test_f7_a_task_that_asks_after_a_change_does_not_share(cache: Cache) -> None:
    async def body() -> list[str]:
        begun, let = asyncio.Event(), asyncio.Event()

        async def slow() -> str:
            begun.set()
            await let.wait()
            return "30 days"

        async def fresh() -> str:
            await turn()
            return "32 days"

        leader = asyncio.create_task(cache.aio.get_or_create(REQUEST, slow))
        await begun.wait()
        await cache.aio.invalidate(corpus="handbook")
        followers = [asyncio.create_task(cache.aio.get_or_create(REQUEST, fresh)) for _ in "ab"]
        await turn()
        let.set()
        return [(await task).text for task in (leader, *followers)]

    assert asyncio.run(body()) == ["30 days", "32 days", "32 days"]


def test_a_change_elsewhere_lets_all_share_one_making(cache: Cache) -> None:
    made: list[str] = []

    async def body() -> list[str]:
        begun, let = asyncio.Event(), asyncio.Event()

        async def slow() -> str:
            made.append("made")
            begun.set()
            await let.wait()
            return "30 days"

        leader = asyncio.create_task(cache.aio.get_or_create(REQUEST, slow))
        await begun.wait()
        await cache.aio.invalidate(corpus="canteen")
        follower = asyncio.create_task(cache.aio.get_or_create(REQUEST, slow))
        await turn()
        let.set()
        return [(await task).text for task in (leader, follower)]

    assert asyncio.run(body()) == ["30 days", "30 days"]
    assert made == ["made"]


def test_who_allows_no_stale_answers_does_not_follow_one_who_does(cache: Cache) -> None:
    asks = [
        cache.core.intake.ask(REQUEST, can_retrieve=False, allow_stale=allowed)
        for allowed in (True, False)
    ]
    assert flight_key(asks[0]) != flight_key(asks[1])  # type: ignore[arg-type]


def test_a_stale_answer_is_given_to_who_allows_it_without_making_another() -> None:
    clock = FakeClock()
    cache = open_cache("memory://", clock=clock, ttl_s=100)
    cache.update(REQUEST, Answer(text="30 days"))
    clock.advance(200)
    assert cache.get_or_create(REQUEST, Gate("never").make, allow_stale=True).text == "30 days"
    assert cache.stats().stale == 1

    async def asked() -> str:
        async def never() -> str:
            raise AssertionError

        return (await cache.aio.get_or_create(REQUEST, never, allow_stale=True)).text

    assert asyncio.run(asked()) == "30 days"
    outcome = asyncio.run(cache.aio.lookup(REQUEST, allow_stale=True))
    assert outcome.reason is Reason.EXPIRED


def test_who_waits_in_vain_makes_its_own_beside_the_others() -> None:
    """No answer holds for anybody else here: nobody waits for more than two makings of others."""
    core = open_cache("memory://").core
    running, most = 0, 0

    async def make() -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await turn(5)
        running -= 1
        return "made"

    def lead() -> Flow[Landed[str]]:
        made = yield from Step(sync=lambda: "", aio=make)
        return Landed(made, None)

    async def one() -> Shared[str]:
        driven = Driven(core.ports, core.async_ports)
        return await arun(together(core.flights, "key", lead, driven, 0), core.async_ports)

    async def body() -> list[Shared[str]]:
        return await asyncio.gather(*(one() for _ in range(20)))

    assert asyncio.run(body()) == [Shared("made", led=True)] * 20
    assert most == 18


def test_those_who_began_before_the_change_share_a_late_answer() -> None:
    cache, made = open_cache("memory://"), list[str]()

    async def body() -> list[str]:
        begun, let = asyncio.Event(), asyncio.Event()

        async def slow() -> str:
            made.append("made")
            begun.set()
            await let.wait()
            return "30 days"

        tasks = [asyncio.create_task(cache.aio.get_or_create(REQUEST, slow)) for _ in range(5)]
        await begun.wait()
        await cache.aio.invalidate(corpus="handbook")
        let.set()
        return [(await task).text for task in tasks]

    assert asyncio.run(body()) == ["30 days"] * 5
    assert made == ["made"]


def test_where_the_store_cannot_say_what_changed_nobody_shares() -> None:
    store = FailingStore()
    cache, gate = open_cache(store), Gate("slow")
    store.down = True
    leader = threading.Thread(target=cache.get_or_create, args=(REQUEST, gate.make))
    leader.start()
    assert gate.begun.wait(GUARD_S)
    told = list[str]()
    gate.let.set()
    told.append(cache.get_or_create(REQUEST, lambda: "own").text)
    leader.join()
    assert told == ["own"]
    assert cache.core.counters.of(None)["error.sequence"] >= 2
