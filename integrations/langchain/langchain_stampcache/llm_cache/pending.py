"""What a lookup found, kept until the update of the same caller asks for it.

LangChain calls ``lookup`` and ``update`` apart, with nothing between them but the prompt. Whoever
looks up and updates is one task, or else one thread; so the caller, its scope and the two strings
find the outcome again, and with it the fence, the question's vector and the time. Calls never mix:
each caller has its own, last in first out.
"""

import asyncio
import hashlib
import threading
import time
from collections import OrderedDict
from typing import TypeAlias

from msgspec import Struct

from stampcache import Evidence, Miss, Request, Scope, Stale
from stampcache.adapters import current_scope

OUTCOMES_KEPT = 1_024
Place: TypeAlias = tuple[str, int, Scope | None, bytes]


class PendingCall(Struct, frozen=True):
    """One lookup that found nothing to serve; ``at_s`` is a reading of the monotonic clock, if known.

    There is no ``request`` where none could be made; nothing is stored then. ``evidence`` is what
    the answer is made from, and ``wanted`` how many of them are asked for, if that is said.
    """

    request: Request | None
    outcome: Miss | Stale
    at_s: float | None
    evidence: tuple[Evidence, ...] | None = None
    wanted: int | None = None

    @property
    def elapsed_s(self) -> float | None:
        """Seconds since the lookup, if that is known."""
        return None if self.at_s is None else time.perf_counter() - self.at_s


class Pending:
    """Bounded: of callers that never come back, the oldest are forgotten.

    One of them may come back all the same. So the earliest of their fences is kept: no change that came
    while an answer was made is missed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: OrderedDict[Place, list[PendingCall]] = OrderedDict()
        self._count = 0
        self._forgotten_fence: int | None = None

    @property
    def forgotten_fence(self) -> int | None:
        """The earliest fence among the lookups that were forgotten; ``None`` if none ever was."""
        return self._forgotten_fence

    def put(
        self,
        prompt: str,
        llm_string: str,
        request: Request | None,
        outcome: Miss | Stale,
        *,
        evidence: tuple[Evidence, ...] | None = None,
        wanted: int | None = None,
    ) -> None:
        """Keep the outcome of a lookup that the running caller made."""
        place = _place(prompt, llm_string)
        asked = PendingCall(request, outcome, time.perf_counter(), evidence, wanted)
        with self._lock:
            self._asked.setdefault(place, []).append(asked)
            self._asked.move_to_end(place)
            self._count += 1
            while self._count > OUTCOMES_KEPT:
                self._forget_oldest()

    def take(self, prompt: str, llm_string: str) -> PendingCall | None:
        """Return the latest outcome that the running caller put under these strings."""
        place = _place(prompt, llm_string)
        with self._lock:
            asked = self._asked.get(place)
            if asked is None:
                return None
            found = asked.pop()
            self._count -= 1
            if not asked:
                del self._asked[place]
            return found

    def _forget_oldest(self) -> None:
        place, asked = next(iter(self._asked.items()))
        forgotten = asked.pop(0)
        fence, earliest = forgotten.outcome.fence, self._forgotten_fence
        if forgotten.request is not None and (earliest is None or fence < earliest):
            self._forgotten_fence = fence
        self._count -= 1
        if not asked:
            del self._asked[place]


def _place(prompt: str, llm_string: str) -> Place:
    raw = hashlib.blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=16)
    raw.update(b"%d:" % len(prompt))
    raw.update(llm_string.encode("utf-8", "surrogatepass"))
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is not None:
        return ("task", id(task), current_scope(), raw.digest())
    return ("thread", threading.get_ident(), current_scope(), raw.digest())
