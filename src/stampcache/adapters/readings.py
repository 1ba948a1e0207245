"""The searches of watched indexes that are made while an answer is made."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from stampcache.corpora import Reading

_HEARD: ContextVar[list[Reading] | None] = ContextVar("stampcache_readings", default=None)


@contextmanager
def readings() -> Iterator[list[Reading]]:
    """Yield a list that every search of a watched index inside of it is added to.

    Threads and tasks that inherit the context add to it, too; what is heard inside is not heard
    by one around it.
    """
    heard: list[Reading] = []
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)


def hear(reading: Reading) -> None:
    """Tell whoever makes an answer now of a search."""
    heard = _HEARD.get()
    if heard is not None:
        heard.append(reading)
