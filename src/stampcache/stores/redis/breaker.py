"""A circuit breaker: what failed a few times in a row is left alone for a while.

While it is open, whoever asks is told at once, so that an outage costs the application no waiting. After
the pause one caller is let through; if that succeeds, it closes.
"""

import threading
from collections.abc import Callable


class Breaker:
    """Opens after ``failures`` in a row; each pause is twice the one before, up to ``longest_s``."""

    def __init__(
        self, *, failures: int, pause_s: float, longest_s: float, now: Callable[[], float]
    ) -> None:
        self._allowed = failures
        self._first_pause_s = pause_s
        self._longest_s = longest_s
        self._now = now
        self._lock = threading.Lock()
        self._failed = 0
        self._probing = False
        self._pause_s = pause_s
        self._open_until: float | None = None
        self.opened = 0
        """How often it opened."""

    @property
    def is_open(self) -> bool:
        """Whether callers are turned away now."""
        until = self._open_until
        return until is not None and self._now() < until

    def lets_through(self) -> bool:
        """Tell whether the caller may try; after a pause, one may."""
        return self._open_until is None or self._may_probe()

    def _may_probe(self) -> bool:
        with self._lock:
            now = self._now()
            if self._open_until is None:
                return True  # it closed just now
            if now < self._open_until:
                return False
            self._open_until = now + self._pause_s  # others wait for what this one finds out
            self._probing = True
            return True

    def succeeded(self) -> None:
        """Close it."""
        if self._failed or self._open_until is not None:
            with self._lock:
                self._failed, self._open_until, self._probing = 0, None, False
                self._pause_s = self._first_pause_s

    def failed(self) -> None:
        """Count a failure; of those that were under way when it opened nothing is learned."""
        with self._lock:
            if self._open_until is None:
                self._failed += 1
                if self._failed < self._allowed:
                    return
            elif not self._probing:
                return
            else:
                self._pause_s = min(self._longest_s, self._pause_s * 2)
            self._probing = False
            self.opened += 1
            self._open_until = self._now() + self._pause_s
