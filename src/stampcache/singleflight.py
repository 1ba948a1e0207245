"""One making per key: equal requests of threads and tasks wait for the first of them.

The leader's result, or its failure, is everybody's. A leader that is cancelled hands over: one of
those who wait becomes the leader. Whoever would wait for itself (a call inside its own making, or
sync code on the loop of an async leader) makes its own result instead, and so does whoever has
waited for too long.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from msgspec import Struct

Result = TypeVar("Result")
_HELD: ContextVar[frozenset[Hashable]] = ContextVar("stampcache_flights_held", default=frozenset())


class _HandedOver(Exception):
    """The leader was cancelled; whoever waits may lead."""


class _Flight(Struct, Generic[Result], frozen=True):
    """One making under way; ``loop`` is set where its leader is a task."""

    landing: Future[Result]
    loop: asyncio.AbstractEventLoop | None


class Flights:
    """The makings under way in one process, by key; equal keys stand for results of one type."""

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._flights: dict[Hashable, _Flight[Any]] = {}
        self._pid = os.getpid()

    def __len__(self) -> int:
        return len(self._flights)

    def run(self, key: Hashable, make: Callable[[], Result]) -> Result:
        """Return what ``make`` returns, called once for all that ask meanwhile."""
        while True:
            other = self._board(key, None)
            if other is None:
                return self._lead(key, make)
            if key in _HELD.get() or _on_loop(other.loop):
                return make()
            try:
                failure = other.landing.exception(self._timeout_s)
            except FutureTimeoutError:  # of this waiting; a leader's own is returned, not raised
                return make()
            if not isinstance(failure, _HandedOver):
                landed: Result = other.landing.result()
                return landed

    async def arun(self, key: Hashable, make: Callable[[], Awaitable[Result]]) -> Result:
        """Await what ``make`` gives, called once for all that ask meanwhile."""
        while True:
            other = self._board(key, asyncio.get_running_loop())
            if other is None:
                return await self._alead(key, make)
            if key in _HELD.get():
                return await make()
            landing: asyncio.Future[Result] = asyncio.wrap_future(other.landing)
            try:
                await asyncio.wait([landing], timeout=self._timeout_s)
            finally:
                landing.cancel()  # ends this waiting only: the leader's own future is running
            if landing.cancelled():
                return await make()
            if not isinstance(landing.exception(), _HandedOver):
                return landing.result()

    def _board(self, key: Hashable, loop: asyncio.AbstractEventLoop | None) -> _Flight[Any] | None:
        """Return the flight under way, or open one and return ``None``: then the caller leads."""
        if os.getpid() != self._pid:  # a forked child has none of the leaders' threads
            self._lock, self._flights, self._pid = threading.Lock(), {}, os.getpid()
        with self._lock:
            other = self._flights.get(key)
            if other is None:
                landing: Future[Any] = Future()
                landing.set_running_or_notify_cancel()  # one who waits must not cancel it for all
                self._flights[key] = _Flight(landing, loop)
            return other

    def _lead(self, key: Hashable, make: Callable[[], Result]) -> Result:
        held = _HELD.set(_HELD.get() | {key})
        try:
            result = make()
        except BaseException as error:
            self._fail(key, error)
            raise
        finally:
            _HELD.reset(held)
        self._leave(key).landing.set_result(result)
        return result

    async def _alead(self, key: Hashable, make: Callable[[], Awaitable[Result]]) -> Result:
        held = _HELD.set(_HELD.get() | {key})
        try:
            result = await make()
        except BaseException as error:
            self._fail(key, error)
            raise
        finally:
            _HELD.reset(held)
        self._leave(key).landing.set_result(result)
        return result

    def _fail(self, key: Hashable, error: BaseException) -> None:
        shared = error if isinstance(error, Exception) else _HandedOver()
        self._leave(key).landing.set_exception(shared)

    def _leave(self, key: Hashable) -> _Flight[Any]:
        with self._lock:
            return self._flights.pop(key)


def _on_loop(loop: asyncio.AbstractEventLoop | None) -> bool:
    """Tell whether the calling thread runs this loop: waiting here would keep it from going on."""
    try:
        return loop is not None and asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
