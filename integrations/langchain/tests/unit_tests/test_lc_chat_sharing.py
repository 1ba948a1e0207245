"""`CachedChatModel` under many threads and tasks: equal calls at once are one call."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_fakes import USAGE, CountingChat
from lc_chat_fakes import StreamingChat, cached, report, was_hit

from stampcache import Cache


class AsyncChat(StreamingChat):
    """Waits for its loop before it answers, so that equal calls do meet."""

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **o: Any
    ) -> Any:
        await asyncio.sleep(0.01)
        return self._generate(messages, stop, None, **o)


def test_sixteen_threads_make_one_call(opened: Cache) -> None:
    inner = StreamingChat()
    inner.gate.clear()
    chat = cached(inner, opened)
    with ThreadPoolExecutor(16) as pool:
        answers = [pool.submit(chat.invoke, "hello") for _ in range(64)]
        assert inner.started.wait(30)
        inner.gate.set()
        given = [answer.result() for answer in answers]
    assert inner.calls == 1
    assert {one.text for one in given} == {"answer 1 to hello"}
    assert len({one.id for one in given}) == 64
    assert sum(one.usage_metadata["total_tokens"] for one in given) == USAGE["total_tokens"]


def test_a_hundred_tasks_make_one_call(opened: Cache) -> None:
    inner = AsyncChat()
    chat = cached(inner, opened)

    async def main() -> list[Any]:
        return await asyncio.gather(*(chat.ainvoke("hello") for _ in range(100)))

    given = asyncio.run(main())
    assert inner.calls == 1
    assert len({id(one) for one in given}) == 100
    reasons = [report(one)["reason"] for one in given]
    assert reasons.count("not found") == 1
    assert sum(one.usage_metadata["total_tokens"] for one in given) == USAGE["total_tokens"]


def test_unequal_calls_do_not_wait_for_each_other(opened: Cache) -> None:
    inner = AsyncChat()
    chat = cached(inner, opened)

    async def main() -> list[Any]:
        return await asyncio.gather(
            *(chat.ainvoke(f"hello {number % 10}") for number in range(100))
        )

    given = asyncio.run(main())
    assert inner.calls == 10
    for number, one in enumerate(given):
        assert one.text.endswith(f"hello {number % 10}")


def test_a_leaders_failure_is_shared(opened: Cache) -> None:
    inner = AsyncChat(fail_after=0)
    chat = cached(inner, opened)

    async def main() -> list[Any]:
        calls = (chat.ainvoke("hello") for _ in range(20))
        return await asyncio.gather(*calls, return_exceptions=True)

    given = asyncio.run(main())
    assert inner.calls == 1
    assert all(isinstance(one, ConnectionError) for one in given)
    inner.fail_after = None
    assert not was_hit(chat.invoke("hello"))


def test_a_cancelled_leader_hands_over(opened: Cache) -> None:
    inner = AsyncChat()
    chat = cached(inner, opened)

    async def main() -> Any:
        leader = asyncio.create_task(chat.ainvoke("hello"))
        await asyncio.sleep(0)
        follower = asyncio.create_task(chat.ainvoke("hello"))
        await asyncio.sleep(0.001)
        leader.cancel()
        return await follower

    assert asyncio.run(main()).text.endswith("to hello")


def test_different_numbers_of_choices_at_once_each_get_theirs(opened: Cache) -> None:
    inner = StreamingChat()
    inner.gate.clear()
    chat = cached(inner, opened)

    def ask(n: int) -> int:
        from langchain_core.messages import HumanMessage

        return len(chat.generate([[HumanMessage("hello")]], n=n).generations[0])

    numbers = [1, 2, 3] * 5
    with ThreadPoolExecutor(15) as pool:
        answers = [pool.submit(ask, number) for number in numbers]
        assert inner.started.wait(30)
        inner.gate.set()
        assert [answer.result() for answer in answers] == numbers


def test_nothing_blocks_the_loop(opened: Cache) -> None:
    class Waiting(CountingChat):
        async def _agenerate(self, *args: Any, **options: Any) -> Any:
            await waited.wait()
            return self._generate(args[0])

    waited = asyncio.Event()
    chat = cached(Waiting(), opened, version="1")

    async def main() -> Any:
        task = asyncio.create_task(chat.ainvoke("hello"))
        for _ in range(5):
            await asyncio.sleep(0)
        waited.set()
        return await task

    assert asyncio.run(main()).text == "answer 1 to hello"


def test_sync_calls_run_no_async_code(opened: Cache) -> None:
    class SyncOnly(StreamingChat):
        async def _agenerate(self, *args: Any, **options: Any) -> Any:
            raise AssertionError("a sync call came here")

        async def _astream(self, *args: Any, **options: Any) -> Any:
            raise AssertionError("a sync call came here")
            yield

    chat = cached(SyncOnly(), opened)
    assert chat.invoke("hello").text
    assert list(chat.stream("another"))


def test_threads_and_tasks_leave_nothing_behind(opened: Cache) -> None:
    chat = cached(AsyncChat(), opened)
    before = threading.active_count()
    for number in range(20):
        asyncio.run(chat.ainvoke(f"hello {number}"))
        list(chat.stream(f"hello {number}"))
    assert len(opened.core.streams) == 0
    assert threading.active_count() <= before + 1


@pytest.mark.parametrize("number", range(3))
def test_a_mixture_of_everything_is_consistent(opened: Cache, number: int) -> None:
    inner = StreamingChat(said=("answer ", "1 ", "to hello"))
    chat = cached(inner, opened)

    def ask(place: int) -> str:
        if place % 3 == 0:
            return str(chat.invoke("hello").text)
        if place % 3 == 1:
            return "".join(str(chunk.text) for chunk in chat.stream("hello"))
        return str(asyncio.run(chat.ainvoke("hello")).text)

    with ThreadPoolExecutor(16) as pool:
        texts = list(pool.map(ask, range(60)))
    assert all(text.endswith("to hello") for text in texts)
    assert inner.calls <= 4
