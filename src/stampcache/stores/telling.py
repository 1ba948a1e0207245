"""A tenant was forgotten: who is told, and how what was read of answers is let go of (ADR 0027)."""

import threading
from collections.abc import Callable
from types import TracebackType
from weakref import WeakMethod


class Listeners:
    """Bound methods, kept weakly: a store may outlive the caches that stand on it."""

    def __init__(self) -> None:
        self._known: tuple[WeakMethod[Callable[[str], None]], ...] = ()
        self._adding = threading.Lock()

    def add(self, then: Callable[[str], None]) -> None:
        """See `stampcache.ports.Telling`."""
        with self._adding:
            self._known = (*(one for one in self._known if one() is not None), WeakMethod(then))

    def tell(self, tenant: str) -> None:
        """Tell of a tenant by its digest, or of somebody by an empty text."""
        for one in self._known:
            then = one()
            if then is not None:
                then(tenant)


class Holding:
    """A lock over what a process has read and may have to drop: at once, or when its holder is done.

    Whoever learns that a tenant was forgotten may not wait, and may hold this very lock.
    """

    def __init__(self, drop: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._drop = drop
        self._behind = False

    def let_go(self) -> None:
        """Drop what was read, without waiting for anybody."""
        self._behind = True
        while self._behind and self._lock.acquire(blocking=False):
            try:
                self._behind = False
                self._drop()
            finally:
                self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()
        if self._behind:
            self.let_go()
