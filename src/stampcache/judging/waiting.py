"""Waiting for a model no longer than its deadline; a call that hangs beyond it is left alone."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from stampcache.errors import JudgeError
from stampcache.scope import scope

Result = TypeVar("Result")
Hung: TypeAlias = "Future[Any] | asyncio.Future[Any]"
HANGING = 8
"""So many calls may hang beyond their deadline; with more, nobody is asked until one of them ends."""


class Waiting:
    """Runs calls that may hang, each within ``deadline_s`` seconds; safe for threads and tasks.

    They run in a context of their own, as nothing around the request (callbacks, scope, streams) is
    theirs, and without any cache of this library, in which a verdict must not end up.
    """

    def __init__(self, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._hung: set[Hung] = set()

    def call(self, call: Callable[[], Result]) -> Result:
        """Return what a call returns, from a thread that nobody waits for after the deadline.

        Raises:
            TimeoutError: it took longer.
            JudgeError: too many others hang.
        """
        future = self._begun(call)
        try:
            return future.result(timeout=self._deadline_s)
        finally:
            self._leave(future)

    async def acall(self, call: Callable[[], Result]) -> Result:
        """See `call`; for tasks."""
        future = self._begun(call)
        try:
            return await self._within(asyncio.wrap_future(future))
        finally:
            self._leave(future)

    async def awaited(self, begin: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Return what a coroutine returns; one that cannot be cancelled is left alone.

        Raises:
            TimeoutError: it took longer.
            JudgeError: too many others hang.
        """
        self._check()
        apart = contextvars.Context()
        task = asyncio.get_running_loop().create_task(_apart(begin), context=apart)
        try:
            return await self._within(task)
        finally:
            self._leave(task)

    def _begun(self, call: Callable[[], Result]) -> "Future[Result]":
        self._check()
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                with scope(no_cache=True, no_store=True):
                    result = call()
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                future.set_exception(_exception(error))
            else:
                future.set_result(result)

        threading.Thread(target=run, name="stampcache judge", daemon=True).start()
        return future

    async def _within(self, running: "asyncio.Future[Result]") -> Result:
        try:
            done, _ = await asyncio.wait({running}, timeout=self._deadline_s)
        except asyncio.CancelledError:
            running.cancel()
            raise
        if not done:
            running.cancel()
            raise TimeoutError
        return running.result()

    def _check(self) -> None:
        if len(self._hung) >= HANGING:
            raise JudgeError(f"{HANGING} calls hang beyond their deadline")

    def _leave(self, running: Hung) -> None:
        """Remember a call that has not ended, until it ends."""
        if not running.done():
            self._hung.add(running)
            running.add_done_callback(self._ended)

    def _ended(self, running: Hung) -> None:
        self._hung.discard(running)
        if not running.cancelled():
            running.exception()  # seen: nobody waits for it any more


async def _apart(begin: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    with scope(no_cache=True, no_store=True):
        return await begin()


def _exception(error: BaseException) -> Exception:
    """Return what a model raised, as nothing that it raises may end more than its own thread."""
    if isinstance(error, Exception):
        return error
    return JudgeError(f"{type(error).__name__}: {error}")
