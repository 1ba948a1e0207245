"""Single flight: nobody waits for itself, or for too long, and nothing stays behind."""

import asyncio
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.flights import GUARD_S, SHORT_S, Gate, flights, turn

PATIENT_S = 3600.0  # who waits for itself here, waits until the test is ended
SOON = pytest.mark.timeout(GUARD_S)

# -- nobody waits for itself -----------------------------------------------------------------------


@SOON
def test_a_call_inside_its_own_making_makes_its_own() -> None:
    flown = flights(PATIENT_S)
    assert flown.run("k", lambda: "outer " + flown.run("k", lambda: "inner")) == "outer inner"
    assert len(flown) == 0


@SOON
async def test_a_call_inside_its_own_making_in_tasks_and_threads() -> None:
    flown = flights(PATIENT_S)

    async def inner() -> str:
        return "inner"

    async def outer() -> str:
        awaited = await flown.arun("k", inner)
        as_task = await asyncio.create_task(flown.arun("k", inner))
        threaded = await asyncio.to_thread(flown.run, "k", lambda: "thread")
        return " ".join([awaited, as_task, threaded, flown.run("k", lambda: "sync")])

    assert await flown.arun("k", outer) == "inner inner thread sync"
    assert len(flown) == 0


@SOON
async def test_sync_code_on_the_loop_of_an_async_leader_makes_its_own() -> None:
    flown = flights(PATIENT_S)
    begun, let = asyncio.Event(), asyncio.Event()

    async def make() -> str:
        begun.set()
        await let.wait()
        return "made"

    leader = asyncio.create_task(flown.arun("k", make))
    await begun.wait()
    assert flown.run("k", lambda: "own") == "own"
    let.set()
    assert await leader == "made"


@SOON
def test_a_making_may_ask_for_other_keys() -> None:
    flown = flights(PATIENT_S)
    assert flown.run("a", lambda: flown.run("b", lambda: flown.run("a", lambda: "deep"))) == "deep"
    assert len(flown) == 0


# -- waiting for too long --------------------------------------------------------------------------


def test_a_thread_that_has_waited_for_too_long_makes_its_own() -> None:
    flown, gate = flights(SHORT_S), Gate()
    with ThreadPoolExecutor(1) as pool:
        leader = pool.submit(flown.run, "k", gate.make)
        assert gate.begun.wait(GUARD_S)
        assert flown.run("k", lambda: "own") == "own"
        gate.let.set()
        assert leader.result(GUARD_S) == "made"
    assert len(flown) == 0


@pytest.mark.parametrize("result", ["made", ValueError("bad")])
async def test_a_task_that_has_waited_for_too_long_makes_its_own(
    result: str | ValueError, caplog: pytest.LogCaptureFixture
) -> None:
    flown, gate = flights(SHORT_S), Gate(result)

    async def own() -> str:
        return "own"

    leader = asyncio.create_task(asyncio.to_thread(flown.run, "k", gate.make))
    assert await asyncio.to_thread(gate.begun.wait, GUARD_S)
    assert await flown.arun("k", own) == "own"
    gate.let.set()
    assert list(await asyncio.gather(leader, return_exceptions=True)) == [result]
    await turn()
    gc.collect()
    assert caplog.text == ""  # no "exception was never retrieved" of a wait that was given up
    assert len(flown) == 0


async def test_a_loop_that_closed_while_it_waited_disturbs_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flown, gate = flights(SHORT_S), Gate()

    async def own() -> str:
        return "own"

    leader = asyncio.create_task(asyncio.to_thread(flown.run, "k", gate.make))
    assert await asyncio.to_thread(gate.begun.wait, GUARD_S)
    assert await asyncio.to_thread(asyncio.run, flown.arun("k", own)) == "own"
    gate.let.set()
    assert await leader == "made"
    assert caplog.text == ""


# -- nothing grows ---------------------------------------------------------------------------------


def test_j13_nothing_grows_with_threads_and_loops() -> None:
    flown = flights()
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def body(at: int) -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))

        async def make() -> str:
            await asyncio.sleep(0)
            return "made"

        await asyncio.gather(*(flown.arun(at % 2, make) for at in range(6)))

    before = threading.active_count()
    for at in range(5):
        asyncio.run(body(at))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda one: flown.run(one, lambda: "made"), range(8)))
    gc.collect()
    assert len(flown) == 0
    assert not any(loop() for loop in loops)
    assert threading.active_count() == before
