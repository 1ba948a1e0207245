"""The searches that are heard while an answer is made: of threads and tasks that inherit."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

from stampcache.adapters import Reading, Step, hear, is_heard, listening, readings


def reading(name: str) -> Reading:
    return Reading(corpus=name)


def corpora(heard: list[Reading]) -> list[str]:
    return [one.corpus for one in heard]


def test_nobody_hears_outside() -> None:
    assert not is_heard()
    hear(reading("lost"))
    with readings() as heard:
        assert is_heard()
    hear(reading("late"))
    assert not is_heard()
    assert heard == []


def test_inner_searches_are_not_heard_outside() -> None:
    with readings() as outer:
        hear(reading("before"))
        with readings() as inner:
            hear(reading("inside"))
        hear(reading("after"))
    assert corpora(outer) == ["before", "after"]
    assert corpora(inner) == ["inside"]


def test_a_list_may_be_given() -> None:
    heard = [reading("first")]
    with readings(heard) as same:
        hear(reading("second"))
    assert same is heard
    assert corpora(heard) == ["first", "second"]


def test_an_error_ends_the_hearing() -> None:
    try:
        with readings():
            raise LookupError
    except LookupError:
        assert not is_heard()


def test_a_thread_is_heard_if_it_has_a_copy_of_the_context() -> None:
    with readings() as heard:
        bare = threading.Thread(target=lambda: hear(reading("bare")))
        bare.start()
        bare.join()
        with ThreadPoolExecutor(2) as pool:
            for name in ("one", "two"):
                pool.submit(contextvars.copy_context().run, hear, reading(name)).result()
    assert corpora(heard) == ["one", "two"]


async def test_tasks_and_their_threads_are_heard_each_by_its_own() -> None:
    async def make(name: str) -> list[str]:
        with readings() as heard:
            await asyncio.gather(
                asyncio.create_task(search(f"{name} task")),
                asyncio.to_thread(hear, reading(f"{name} thread")),
            )
        return sorted(corpora(heard))

    async def search(name: str) -> None:
        await asyncio.sleep(0)
        hear(reading(name))

    with readings() as outer:
        found = await asyncio.gather(make("a"), make("b"))
    assert found == [["a task", "a thread"], ["b task", "b thread"]]
    assert outer == []


async def test_a_task_that_outlives_its_answer_is_not_heard_by_the_next_one() -> None:
    go_on = asyncio.Event()

    async def late() -> None:
        await go_on.wait()
        hear(reading("late"))

    with readings() as first:
        task = asyncio.create_task(late())
    with readings() as second:
        go_on.set()
        await task
    assert (corpora(first), second) == (["late"], [])


async def test_a_step_is_listened_to_on_both_faces() -> None:
    async def aio() -> str:
        hear(reading("async"))
        return "done"

    def sync() -> str:
        hear(reading("sync"))
        return "done"

    heard: list[Reading] = []
    step = listening(Step(sync=sync, aio=aio), heard)
    assert step.sync() == "done"
    assert await step.aio() == "done"
    assert corpora(heard) == ["sync", "async"]
    assert not is_heard()
