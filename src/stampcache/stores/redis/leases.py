"""The leases of the tickets that one process has: they are renewed while something is made (ADR 0026).

A making in a thread holds that thread, so another one renews: a single one for all tickets of a store,
threads' and tasks', which is there only while there are tickets. A process that is killed or stopped
renews nothing, and is replaced when the lease ends.
"""

import os
import threading
from collections.abc import Callable, Collection, Sequence

from stampcache.errors import StoreError
from stampcache.ports import Ticket

_BEATS = 3
"""So often within a lease it is renewed: two of them may fail before it ends."""


class Leases:
    """Tickets that this process has, each until a time at most; safe for threads."""

    def __init__(
        self,
        renew: Callable[[Sequence[Ticket]], Collection[Ticket]],
        *,
        lease_s: float,
        now: Callable[[], float],
    ) -> None:
        """``renew`` gives these tickets a new lease each, and returns those that are lost."""
        self._renew = renew
        self._pause_s = lease_s / _BEATS
        self._now = now
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._held: dict[Ticket, float] = {}
        self._beating = False
        self._closed = False

    def _same_process(self) -> None:
        """Begin anew in a forked child, which has neither the thread, nor the tickets, nor the lock."""
        if os.getpid() != self._pid:
            self._begin_anew()

    def __len__(self) -> int:
        return len(self._held)

    def add(self, ticket: Ticket, longest_s: float) -> None:
        """Renew the lease of a ticket that was just taken, for so long at most."""
        self._same_process()
        with self._changed:
            if self._closed:
                return
            self._held[ticket] = self._now() + longest_s
            if self._beating:
                return
            self._beating = True
        thread = threading.Thread(target=self._run, name="stampcache-leases", daemon=True)
        try:
            thread.start()
        except (
            RuntimeError
        ):  # there is none to be had; a lease that is not renewed still saves work
            self._beating = False

    def drop(self, ticket: Ticket) -> None:
        """Renew it no longer."""
        self._same_process()
        with self._changed:
            self._held.pop(ticket, None)

    def beat(self) -> None:
        """Renew all leases once. Where the server is away, the next beat tries again."""
        now = self._now()
        with self._changed:
            known = self._held.copy()  # a stream that is forgotten by its readers may drop one here
            self._held = {one: until for one, until in known.items() if now < until}
            held = list(self._held)
        if not held:
            return
        try:
            lost = self._renew(held)
        except StoreError:
            return
        for ticket in lost:
            self.drop(ticket)

    def close(self) -> None:
        """Renew nothing any more."""
        self._same_process()
        with self._changed:
            self._closed = True
            self._held.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait(self._pause_s)
                if not self._held:
                    self._beating = False
                    return
            self.beat()
