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
            if self._open_until is None or now < self._open_until:
                return self._open_until is None  # it closed just now, or is open
            self._open_until = now + self._pause_s  # others wait for what this one finds out
            return True

    def succeeded(self) -> None:
        """Close it."""
        if self._failed or self._open_until is not None:
            with self._lock:
                self._failed, self._open_until = 0, None
                self._pause_s = self._first_pause_s

    def failed(self) -> None:
        """Count a failure."""
        with self._lock:
            self._failed += 1
            if self._failed < self._allowed:
                return
            if self._failed > self._allowed:
                self._pause_s = min(self._longest_s, self._pause_s * 2)
            self.opened += 1
            self._open_until = self._now() + self._pause_s
