"""Makings that wait until they are let, for the tests of single flight."""

import asyncio
import threading
from collections.abc import Hashable
from concurrent.futures import Future
from typing import Any

from stampcache.singleflight import Flights

GUARD_S = 20.0  # a deadlock fails the test instead of hanging it
SHORT_S = 0.01


def flights(timeout_s: float = GUARD_S) -> Flights:
    return Flights(timeout_s=timeout_s)


def landing(flown: Flights, key: Hashable) -> Future[Any]:
    return flown._flights[key].landing


class Gate:
    """A making that says when it has begun and goes on when it is let."""

    def __init__(self, result: str | BaseException = "made") -> None:
        self.begun = threading.Event()
        self.let = threading.Event()
        self.calls = 0
        self.result = result

    def make(self) -> str:
        self.calls += 1
        self.begun.set()
        assert self.let.wait(GUARD_S)
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


def never() -> str:
    raise AssertionError("a second making")


async def anever() -> str:
    return never()


def wait_for_followers(flown: Flights, key: Hashable, count: int) -> None:
    """Return once so many threads wait in the landing's condition."""
    condition: Any = landing(flown, key)._condition
    tick = threading.Event()
    for _ in range(100_000):
        with condition:
            if len(condition._waiters) >= count:
                return
        tick.wait(0.0001)
    raise AssertionError("the followers never came")


async def turn(times: int = 50) -> None:
    """Let every other task run until it waits for something."""
    for _ in range(times):
        await asyncio.sleep(0)
