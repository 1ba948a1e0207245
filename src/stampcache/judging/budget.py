"""How many calls a minute a judge may cost."""

import threading
from collections import deque
from collections.abc import Callable


class Budget:
    """At most so many calls in any 60 seconds; safe for threads."""

    def __init__(self, calls_per_minute: int, now: Callable[[], float]) -> None:
        self._most = calls_per_minute
        self._now = now
        self._lock = threading.Lock()
        self._spent: deque[float] = deque()

    def has(self) -> bool:
        """Tell whether there is a call left."""
        with self._lock:
            self._forget()
            return len(self._spent) < self._most

    def take(self) -> bool:
        """Spend a call; tell whether there was one."""
        with self._lock:
            self._forget()
            if len(self._spent) >= self._most:
                return False
            self._spent.append(self._now())
            return True

    def _forget(self) -> None:
        now = self._now()
        while self._spent and not 0 <= now - self._spent[0] < 60.0:
            self._spent.popleft()
