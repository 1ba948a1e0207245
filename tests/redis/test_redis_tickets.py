"""Equal requests of several caches on one server cost one making, whoever fails, dies or hangs."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from stampcache import Answer, Cache, Request, open_cache
from stampcache.errors import MakingError

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
    asked: list[str] = []

    def spy(name: str, token: str) -> str:
        asked.append(name)
        return "a process that died"

    tickets = store.tickets  # type: ignore[attr-defined]  # a Redis store has them
    real = tickets.take
    second.core.turns._tickets.sync.take = spy  # type: ignore[union-attr, method-assign]
    model = Model(seconds=0.0)
    assert second.get_or_create(REQUEST, model).text == "answer 1"
    assert asked and real(asked[0], "token") == "token", "the ticket was never held"
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
    from stampcache.errors import StoreError

    def away(name: str, token: str) -> str:
        raise StoreError("away")

    tickets = caches[0].core.store.tickets  # type: ignore[attr-defined]  # a Redis store has them
    monkeypatch.setattr(tickets, "take", away)
    model = Model(seconds=0.0)
    assert caches[0].get_or_create(REQUEST, model).text == "answer 1"
    assert caches[0].stats(everything=True).counters["error.tickets"] == 1
