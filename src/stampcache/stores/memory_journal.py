"""The journal of the memory store; its verbs take the store's lock."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice

import msgspec
from msgspec import Struct

from stampcache.freshness import ONE_CHANGE_S, Observed, together
from stampcache.journal import Observation, Verdict
from stampcache.model import Entry

VERDICTS_KEPT = 10_000


class _Place(Struct, frozen=True):
    """A source in a corpus, and how it was seen to change: by a comparison or by what was announced."""

    corpus: str
    source: str
    announced: bool


class _Source(Struct, frozen=True):
    """How often it changed; when that was announced last, or for comparisons, when they began."""

    observed: Observed
    at: float


class MemoryJournal:
    """Journal in dictionaries, under the lock of its store."""

    def __init__(
        self,
        confirm: Callable[[Entry, float, float | None], None],
        opened: Callable[[], AbstractContextManager[object]],
        is_there: Callable[[str], bool],
    ) -> None:
        self._confirm = confirm
        self._open = opened
        self._is_there = is_there
        self._sources: dict[_Place, _Source] = {}
        self._verdicts: deque[Verdict] = deque(maxlen=VERDICTS_KEPT)

    def observe(self, observations: Sequence[Observation], *, now: float) -> None:
        """See `Journal.observe`."""
        with self._open():
            for one in observations:
                if one.seconds is None:
                    self._announced(one, now)
                else:
                    place = _Place(one.corpus, one.source, announced=False)
                    known = self._sources.get(place, _Source(Observed(), now))
                    total = _more(known.observed, one.changed, one.seconds)
                    self._sources[place] = _Source(total, known.at)

    def observed(self, corpus: str, sources: Sequence[str]) -> Mapping[str, Observed]:
        """See `Journal.observed`."""
        with self._open():
            found = {source: list(self._of(corpus, source)) for source in sources}
            return {source: together(seen) for source, seen in found.items() if seen}

    def _announced(self, one: Observation, now: float) -> None:
        place = _Place(one.corpus, one.source, announced=True)
        known = self._sources.get(place)
        compared = self._sources.get(_Place(one.corpus, one.source, announced=False))
        since = known or compared
        if known is not None and now - known.at < ONE_CHANGE_S:
            return
        total = Observed() if known is None else known.observed
        if since is not None:
            total = _more(total, True, max(0.0, now - since.at))
        self._sources[place] = _Source(total, now)

    def _of(self, corpus: str, source: str) -> Iterator[Observed]:
        for place in (corpus, "") if corpus else ("",):
            for announced in (False, True):
                known = self._sources.get(_Place(place, source, announced))
                if known is not None:
                    yield known.observed

    def confirm(self, entry: Entry, *, at: float, doubtful_at: float | None) -> None:
        """See `Journal.confirm`."""
        with self._open():
            self._confirm(entry, at, doubtful_at)

    def judged(self, verdict: Verdict) -> None:
        """See `Journal.judged`."""
        with self._open():
            if not verdict.tenant or self._is_there(verdict.entry_id):
                self._verdicts.append(verdict)

    def verdict(self, entry_id: str) -> Verdict | None:
        """See `Journal.verdict`."""
        with self._open():
            newest = reversed(self._verdicts)
            return next((one for one in newest if one.entry_id == entry_id), None)

    def verdicts(self, count: int) -> Sequence[Verdict]:
        """See `Journal.verdicts`."""
        with self._open():
            return list(islice(reversed(self._verdicts), count))

    def forget(self, tenant: str) -> int:
        """Remove the verdicts on a tenant's entries; return how many bytes these took."""
        gone = [one for one in self._verdicts if one.tenant == tenant]
        kept = [one for one in self._verdicts if one.tenant != tenant]
        self._verdicts = deque(kept, maxlen=VERDICTS_KEPT)
        return sum(len(msgspec.msgpack.encode(one)) for one in gone)


def _more(observed: Observed, changed: bool, seconds: float) -> Observed:
    return Observed(observed.changes + changed, observed.seconds + seconds)
