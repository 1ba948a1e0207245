"""The searches of watched indexes that are made while an answer is made."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from stampcache.corpora import Reading
from stampcache.effects import Step

Done = TypeVar("Done")

FROM_CACHE = "it was made from what another cache keeps"
"""The problem of a reading that stands for an answer, or documents, of a cache inside of this one."""

_HEARD: ContextVar[list[Reading] | None] = ContextVar("stampcache_readings", default=None)


@contextmanager
def readings(into: list[Reading] | None = None) -> Iterator[list[Reading]]:
    """Yield a list that every search of a watched index inside of it is added to.

    Threads and tasks that inherit the context add to it, too; what is heard inside is not heard
    by one around it. Never yield inside of it: who reads on would be heard, too.

    Args:
        into: the list; by default a new one.
    """
    heard: list[Reading] = [] if into is None else into
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)


def listening(step: Step[Done], heard: list[Reading]) -> Step[Done]:
    """Return a step that does the same, and adds its searches of watched indexes to a list."""

    def sync() -> Done:
        with readings(heard):
            return step.sync()

    async def aio() -> Done:
        with readings(heard):
            return await step.aio()

    return Step(sync=sync, aio=aio)


def is_heard() -> bool:
    """Tell whether anybody makes an answer now, to whom a search is of interest."""
    return _HEARD.get() is not None


def hear(reading: Reading) -> None:
    """Tell whoever makes an answer now of a search."""
    heard = _HEARD.get()
    if heard is not None:
        heard.append(reading)
