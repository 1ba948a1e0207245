"""Calls of a watched object of which nothing is known but that they may write."""

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

from stampcache.adapters import Flow, Step, Watch

Result = TypeVar("Result")

_END = object()


class Anything:
    """Runs calls as writes that may change anything."""

    def __init__(self, watch: Watch, *, beyond: bool = False) -> None:
        """``beyond`` says that they write what the index of the corpus does not hold."""
        self._watch = watch
        self._beyond = beyond

    def of(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method, sync or async, as one that is announced and told."""
        if inspect.iscoroutinefunction(method):

            @functools.wraps(method)
            async def arun(*args: Any, **options: Any) -> Any:
                return await self._finished(method(*args, **options))

            return arun

        @functools.wraps(method)
        def run(*args: Any, **options: Any) -> Any:
            done = self._run(functools.partial(method, *args, **options))
            if inspect.isawaitable(done):
                return self._finished(done)
            if inspect.isgenerator(done):
                return self._each(done)
            return self._aeach(done) if inspect.isasyncgen(done) else done

        return run

    def _run(self, call: Callable[[], Result]) -> Result:
        write = Step[Result](sync=call, aio=_waiting)
        return self._watch.run(self._writing(write))

    def _each(self, items: Iterator[Any]) -> Iterator[Any]:
        """Give what comes one by one, each of them a write."""
        while (one := self._run(lambda: next(items, _END))) is not _END:
            yield one

    async def _aeach(self, items: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """See `_each`."""
        while (one := await self._finished(anext(items, _END))) is not _END:
            yield one

    async def _finished(self, under_way: Awaitable[Result]) -> Result:
        """Run what was prepared, but waits."""

        async def aio() -> Result:
            return await under_way

        return await self._watch.arun(self._writing(Step(sync=_at_once, aio=aio)))

    def _writing(self, write: Step[Result]) -> Flow[Result]:
        writing = self._watch.writing(write, told=_unknown, ids=None, beyond=self._beyond)
        return (yield from writing)


def _unknown(_: object) -> None:
    """Tell nothing of a write: then the index is looked into."""


def _at_once() -> Any:
    raise AssertionError("what waits is not run where nothing can wait")


async def _waiting() -> Any:
    raise AssertionError("what does not wait is run where it stands")
