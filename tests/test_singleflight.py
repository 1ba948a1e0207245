"""One making per key, for threads and tasks mixed: results, failures and cancelled leaders.

No test sleeps for a time. Where threads must be known to wait, the waiters of the landing's own
condition are counted.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.flights import GUARD_S, Gate, anever, flights, never, turn, wait_for_followers

# -- sharing ---------------------------------------------------------------------------------------


def test_one_alone_makes_its_own() -> None:
    flown = flights()
    assert flown.run("k", lambda: "one") == "one"
    assert flown.run("k", lambda: "two") == "two"
    assert len(flown) == 0


@pytest.mark.parametrize("count", [1, 16])
def test_f17_threads_share_one_making(count: int) -> None:
    flown, gate = flights(), Gate()
    with ThreadPoolExecutor(count + 1) as pool:
        leader = pool.submit(flown.run, "k", gate.make)
        assert gate.begun.wait(GUARD_S)
        followers = [pool.submit(flown.run, "k", never) for _ in range(count)]
        wait_for_followers(flown, "k", count)
        gate.let.set()
        assert {one.result(GUARD_S) for one in [leader, *followers]} == {"made"}
    assert (gate.calls, len(flown)) == (1, 0)


async def test_f17_tasks_share_one_making() -> None:
    flown = flights()
    calls: list[str] = []
    let = asyncio.Event()

    async def make() -> str:
        calls.append("call")
        await let.wait()
        return "made"

    tasks = [asyncio.create_task(flown.arun("k", make)) for _ in range(100)]
    await turn()
    let.set()
    assert set(await asyncio.gather(*tasks)) == {"made"}
    assert (len(calls), len(flown)) == (1, 0)


async def test_a_task_waits_for_a_thread_without_blocking_the_loop() -> None:
    flown, gate = flights(), Gate()
    leader = asyncio.create_task(asyncio.to_thread(flown.run, "k", gate.make))
    assert await asyncio.to_thread(gate.begun.wait, GUARD_S)
    followers = [asyncio.create_task(flown.arun("k", anever)) for _ in range(3)]
    await turn()
    assert not any(task.done() for task in followers)
    gate.let.set()
    assert list(await asyncio.gather(leader, *followers)) == ["made"] * 4
    assert (gate.calls, len(flown)) == (1, 0)


async def test_a_thread_waits_for_a_task() -> None:
    flown = flights()
    begun, let = asyncio.Event(), asyncio.Event()

    async def make() -> str:
        begun.set()
        await let.wait()
        return "made"

    leader = asyncio.create_task(flown.arun("k", make))
    await begun.wait()
    follower = asyncio.create_task(asyncio.to_thread(flown.run, "k", never))
    await asyncio.to_thread(wait_for_followers, flown, "k", 1)
    let.set()
    assert set(await asyncio.gather(leader, follower)) == {"made"}
    assert len(flown) == 0


def test_two_loops_share_one_making() -> None:
    flown, gate = flights(), Gate()
    inside = threading.Barrier(2)

    async def lead() -> str:
        async def make() -> str:
            await asyncio.to_thread(inside.wait, GUARD_S)
            return await asyncio.to_thread(gate.make)

        return await flown.arun("k", make)

    async def follow() -> str:
        task = asyncio.create_task(flown.arun("k", anever))
        await turn()
        gate.let.set()
        return await task

    with ThreadPoolExecutor(1) as pool:
        leader = pool.submit(asyncio.run, lead())
        inside.wait(GUARD_S)
        assert gate.begun.wait(GUARD_S)
        assert asyncio.run(follow()) == leader.result(GUARD_S) == "made"
    assert (gate.calls, len(flown)) == (1, 0)


async def test_different_keys_do_not_wait_for_each_other() -> None:
    flown = flights()
    both = asyncio.Barrier(2)

    async def make() -> str:
        await both.wait()
        return "made"

    assert set(await asyncio.gather(flown.arun("a", make), flown.arun("b", make))) == {"made"}


# -- failure ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("bad"), TimeoutError("of the model"), KeyError("k")])
async def test_the_leaders_failure_is_everybodys(error: Exception) -> None:
    flown, gate = flights(), Gate(error)
    threads = [asyncio.create_task(asyncio.to_thread(flown.run, "k", gate.make))]
    assert await asyncio.to_thread(gate.begun.wait, GUARD_S)
    threads.append(asyncio.create_task(asyncio.to_thread(flown.run, "k", never)))
    await asyncio.to_thread(wait_for_followers, flown, "k", 1)
    tasks = [asyncio.create_task(flown.arun("k", anever)) for _ in range(2)]
    await turn()
    gate.let.set()
    results = await asyncio.gather(*threads, *tasks, return_exceptions=True)
    assert [repr(result) for result in results] == [repr(error)] * 4  # asyncio copies some
    assert (gate.calls, len(flown)) == (1, 0)
    assert flown.run("k", lambda: "again") == "again"


async def test_a_failing_task_shares_its_failure() -> None:
    flown = flights()
    let = asyncio.Event()

    async def make() -> str:
        await let.wait()
        raise ValueError("bad")

    tasks = [asyncio.create_task(flown.arun("k", make)) for _ in range(3)]
    await turn()
    let.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(result) for result in results] == ["bad"] * 3
    assert len(flown) == 0


# -- cancelling ------------------------------------------------------------------------------------


async def test_a_cancelled_leader_hands_over_to_tasks_and_threads() -> None:
    flown = flights()
    begun: list[str] = []
    let = asyncio.Event()

    def making(name: str) -> Callable[[], Awaitable[str]]:
        async def make() -> str:
            begun.append(name)
            await let.wait()
            return name

        return make

    leader = asyncio.create_task(flown.arun("k", making("leader")))
    await turn()
    thread = asyncio.create_task(asyncio.to_thread(flown.run, "k", lambda: "thread"))
    await asyncio.to_thread(wait_for_followers, flown, "k", 1)
    tasks = [asyncio.create_task(flown.arun("k", making(name))) for name in ("a", "b")]
    await turn()
    leader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leader
    await turn()
    let.set()
    served = {await thread, await tasks[0], await tasks[1]}
    assert served <= {"thread", "a", "b"}
    assert begun.count("leader") == 1
    assert len(begun) <= 2  # the leader, and one task where the thread did not lead first
    assert len(flown) == 0


def test_an_interrupted_leader_hands_over_to_a_thread() -> None:
    flown, gate = flights(), Gate(KeyboardInterrupt())
    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(flown.run, "k", gate.make)
        assert gate.begun.wait(GUARD_S)
        follower = pool.submit(flown.run, "k", lambda: "second")
        wait_for_followers(flown, "k", 1)
        gate.let.set()
        assert follower.result(GUARD_S) == "second"
        with pytest.raises(KeyboardInterrupt):
            leader.result(GUARD_S)
    assert len(flown) == 0


async def test_a_cancelled_follower_disturbs_nobody() -> None:
    flown = flights()
    let = asyncio.Event()

    async def make() -> str:
        await let.wait()
        return "made"

    leader = asyncio.create_task(flown.arun("k", make))
    await turn()
    follower, other = (asyncio.create_task(flown.arun("k", anever)) for _ in range(2))
    await turn()
    follower.cancel()
    with pytest.raises(asyncio.CancelledError):
        await follower
    let.set()
    assert set(await asyncio.gather(leader, other)) == {"made"}


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_waits_for_no_flight_of_its_parent() -> None:
    flown, gate = flights(), Gate()
    leader = threading.Thread(target=flown.run, args=("key", gate.make))
    leader.start()
    assert gate.begun.wait(GUARD_S)
    child = os.fork()
    if child == 0:
        os._exit(0 if flown.run("key", lambda: "own") == "own" and len(flown) == 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    gate.let.set()
    leader.join()
    assert len(flown) == 0
