"""What a lookup of a node found, kept until its result is handed in.

LangGraph hands results in from threads that see neither the scope nor the config of the run. But it
hands in the very key object that it looked up with, one per task of a run: so that finds the scope and
the fence again, and no run can take those of another.
"""

import threading
import time
from collections import OrderedDict

from langgraph.cache.base import FullKey

from stampcache import Miss, Request, Scope, Stale
from stampcache.adapters import current_scope

CALLS_KEPT = 4_096


class NodeCall:
    """One lookup that found nothing: its request and outcome, and the ids of messages in the input.

    ``request`` is ``None`` where it bypassed the cache; ``outcome`` where nothing was looked up.
    """

    def __init__(
        self,
        key: str,
        request: Request | None,
        outcome: Miss | Stale | None,
        ids: frozenset[str] = frozenset(),
    ) -> None:
        self.key = key  # kept alive, so that its id stays its own
        self.request = request
        self.outcome = outcome
        self.ids = ids
        self.scope = current_scope()
        self._begun = time.perf_counter()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the lookup."""
        return time.perf_counter() - self._begun


class NodeCalls:
    """Bounded: of tasks that never hand in a result, the oldest are forgotten. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: OrderedDict[tuple[int, Scope | None], NodeCall] = OrderedDict()

    def put(self, key: FullKey, call: NodeCall) -> None:
        """Keep a lookup; of several for one task, the first: the node began after that."""
        with self._lock:
            self._calls.setdefault((id(key[1]), call.scope), call)
            if len(self._calls) > CALLS_KEPT:
                self._calls.popitem(last=False)

    def take(self, key: FullKey) -> NodeCall | None:
        """Return the lookup of the task whose result this is; ``None`` where that is not known."""
        scope = current_scope()
        with self._lock:
            call = self._calls.pop((id(key[1]), scope), None)
            if call is not None or scope is not None:
                return call
            places = [place for place in self._calls if place[0] == id(key[1])]
            return self._calls.pop(places[0]) if len(places) == 1 else None
