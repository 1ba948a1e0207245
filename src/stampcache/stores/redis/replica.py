"""What one process keeps of a Redis store: a replica that follows the logs by sequence, without IO.

``applied`` is the sequence up to which it knows what changed. It knows that since ``verified``; after
``staleness_s`` somebody has to ask again before anything kept here is served. What was read from the
server is kept only if no change was told of it meanwhile.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stampcache.corpora import Standing
from stampcache.model import Entry, Selector
from stampcache.ports import Lag
from stampcache.stores.pending_uses import Place
from stampcache.stores.replica import NearCache
from stampcache.stores.selection import touches

_RECENT = 10_000
_LAGS = 10_000


class Reading(Struct, frozen=True):
    """The state in which something was asked of the server."""

    applied: int
    flushes: int
    at: float


class Told(Struct, frozen=True):
    """A change to the entry at an address: its sequence, and how long ago it was made (seconds)."""

    place: Place
    sequence: int
    lag_s: float


class Closing(Struct, frozen=True):
    """An invalidation whose entries are not all marked yet; without a selector it is of all."""

    sequence: int
    selector: Selector | None

    def touches(self, entry: Entry) -> bool:
        """Tell whether an entry that was stored before is touched."""
        return self.selector is None or touches(self.selector, entry)


class News(Struct, frozen=True):
    """What changed since a reading; ``lost`` where the server cannot say.

    ``forgotten``: since then a tenant may have been, as whatever is older was.
    """

    sequence: int
    era: int
    lost: bool = False
    forgotten: bool = False
    told: Sequence[Told] = ()
    corpora: Sequence[str] = ()
    partitions: Sequence[str] = ()
    closing: Sequence[Closing] | None = None
    """``None``: as before."""


class Replica:
    """Decoded entries, standings, and what of the indexes is out of date; all under one lock."""

    def __init__(
        self,
        *,
        capacity: int,
        staleness_s: float,
        now: Callable[[], float],
        forgotten: Callable[[], None] = lambda: None,
    ) -> None:
        """With a staleness of 0 nothing is ever served without asking.

        ``forgotten`` is called when a tenant was, once nothing of it is kept here.
        """
        self._forgotten = forgotten
        self.staleness_s = staleness_s
        self.now = now
        self.near = NearCache(capacity)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Know nothing, as in a new process."""
        self._lock = threading.Lock()
        self.near.clear()
        self.applied = 0
        self.era = 0
        self.flushes = 0
        self._own = 0
        self._verified = float("-inf")
        self._recent: OrderedDict[Place, int] = OrderedDict()
        self._recent_floor = 0
        self.closing: tuple[Closing, ...] = ()
        self._standings: dict[str, Standing] = {}
        self._dirty: dict[str, set[str]] = {}
        self._bad: dict[str, frozenset[bytes]] = {}
        self._oldest_s = 0.0
        self._served = False
        self._lags: deque[float] = deque(maxlen=_LAGS)

    # -- reading -----------------------------------------------------------------------------------

    @property
    def is_fresh(self) -> bool:
        """Whether what is kept here may be served now."""
        return self.now() - self._verified < self.staleness_s and self.applied >= self._own

    def peek(self, place: Place) -> Entry | None:
        """Return an entry that is kept here, if it may be served without asking."""
        age = self.now() - self._verified
        if age >= self.staleness_s or self.applied < self._own:
            return None
        with self._lock:
            kept = self.near.kept(place)
            if kept is None:
                return None
            self._served = True
            if age > self._oldest_s:
                self._oldest_s = age
            return self.shown(kept.entry, kept.sequence) if self.closing else kept.entry

    def get(self, place: Place) -> Entry | None:
        """Return an entry that is kept here, by one who just asked whether it is up to date."""
        with self._lock:
            kept = self.near.kept(place)
            return None if kept is None else self.shown(kept.entry, kept.sequence)

    def shown(self, entry: Entry, sequence: int) -> Entry:
        """Return an entry as of its last change, with the mark that it is about to have."""
        if entry.invalidated:
            return entry
        for one in self.closing:
            if sequence < one.sequence and one.touches(entry):
                because = "something was invalidated" if one.selector is None else str(one.selector)
                return replace(entry, invalidated=because)
        return entry

    def is_outdated(self, place: Place, sequence: int, reading: Reading) -> bool:
        """Tell whether a later change was told of an entry, or nobody knows what was since a reading."""
        if reading.flushes != self.flushes or self._recent_floor > reading.applied:
            return True
        return self._recent.get(place, 0) > sequence

    def standing(self, corpus: str) -> Standing | None:
        """Return how a corpus stands, if that is kept here and may be served without asking."""
        return self._standings.get(corpus) if self.is_fresh else None

    def sequence(self) -> int | None:
        """Return a sequence that is not after the last change, if that is known without asking."""
        return max(self.applied, self._own) if self.is_fresh else None

    # -- what the server says ----------------------------------------------------------------------

    def reading(self) -> Reading:
        """Return the state before something is asked."""
        return Reading(self.applied, self.flushes, self.now())

    def confirmed(self, sequence: int, era: int, reading: Reading) -> bool:
        """Take note of where the server was; tell whether that is as far as is known here."""
        with self._lock:
            if sequence != self.applied or era != self.era or reading.flushes != self.flushes:
                return False
            self._verified = max(self._verified, reading.at)
            return True

    def apply(self, news: News, reading: Reading) -> None:
        """Take over what changed since a reading."""
        self._apply(news, reading)
        if news.forgotten:
            self._forgotten()

    def _apply(self, news: News, reading: Reading) -> None:
        with self._lock:
            if reading.flushes != self.flushes:
                return
            anew = news.lost or news.era != self.era  # a sequence may then be an earlier one
            if news.closing is not None and (anew or news.sequence >= self.applied):
                self.closing = tuple(news.closing)
            if anew:
                self._flush()
                self.applied, self.era = news.sequence, news.era
                self._verified = reading.at
                return
            for one in news.told:
                self._take(one)
            for corpus in news.corpora:
                self._standings.pop(corpus, None)
            for partition in news.partitions:
                self._bad.pop(partition, None)
            self.applied = max(self.applied, news.sequence)
            self._verified = max(self._verified, reading.at)
            self._served = False

    def _take(self, one: Told) -> None:
        if self._served and one.sequence > self._own and self.near.has(one.place):
            self._lags.append(one.lag_s)
        self._outdate(one.place, one.sequence)

    def _outdate(self, place: Place, sequence: int) -> None:
        self.near.outdate(place, sequence)
        if sequence > self._recent.get(place, 0):
            self._recent[place] = sequence
            self._recent.move_to_end(place)
        if len(self._recent) > _RECENT:
            self._recent_floor = max(self._recent_floor, self._recent.popitem(last=False)[1])
        dirty = self._dirty.get(place[0])
        if dirty is not None:
            dirty.add(place[1])

    def keep(self, entry: Entry, sequence: int, reading: Reading) -> None:
        """Keep an entry as it was read, unless something was told of it since the reading."""
        with self._lock:
            if reading.flushes != self.flushes:
                return
            if self.applied != reading.applied:
                if self._recent_floor > reading.applied:
                    return
                if self._recent.get(entry.place, 0) > sequence:
                    return
            self.near.keep(entry, sequence)

    def keep_standing(self, standing: Standing, reading: Reading) -> None:
        """Keep how a corpus stands, unless anything was told since the reading."""
        with self._lock:
            if reading.flushes == self.flushes and reading.applied == self.applied:
                self._standings[standing.corpus] = standing

    # -- what this process wrote -------------------------------------------------------------------

    def wrote(self, sequence: int) -> None:
        """Serve nothing that is kept here until a change of this process is known here, too."""
        with self._lock:
            self._own = max(self._own, sequence)
            self._verified = float("-inf")

    def stored(self, entry: Entry, sequence: int, reading: Reading) -> None:
        """Keep what was just stored; if nothing else changed meanwhile, that is all there is to know."""
        with self._lock:
            if reading.flushes != self.flushes:
                return
            if self.applied == reading.applied == sequence - 1:
                self._outdate(entry.place, sequence)
                self.applied = self._own = sequence
                self.near.keep(entry, sequence)
                return
            self._own = max(self._own, sequence)
            self._verified = float("-inf")

    # -- indexes -----------------------------------------------------------------------------------

    def watch(self, partition: str) -> None:
        """Note from now on which vectors of a partition change."""
        with self._lock:
            self._dirty[partition] = set()

    def watch_only(self, partitions: Sequence[str]) -> None:
        """Note nothing more of other partitions."""
        with self._lock:
            self._dirty = {one: self._dirty[one] for one in partitions if one in self._dirty}

    def take_dirty(self, partition: str) -> set[str]:
        """Return the keys of a partition whose vectors must be read again, and forget them."""
        with self._lock:
            dirty = self._dirty.get(partition)
            if not dirty:
                return set()
            self._dirty[partition] = set()
            return dirty

    def bad(self, partition: str) -> frozenset[bytes] | None:
        """Return the pairs that were reported, if they are kept here."""
        return self._bad.get(partition)

    def keep_bad(self, partition: str, pairs: frozenset[bytes], reading: Reading) -> None:
        """Keep the pairs that were reported, unless anything was told since the reading."""
        with self._lock:
            if reading.flushes == self.flushes and reading.applied == self.applied:
                self._bad[partition] = pairs

    # -- the end of what is known ------------------------------------------------------------------

    def flush(self) -> None:
        """Forget everything: a connection broke, and nobody knows what was missed."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        self.near.clear()
        self._standings.clear()
        self._recent.clear()
        self._recent_floor = self.applied
        self._dirty.clear()
        self._bad.clear()
        self._verified = float("-inf")
        self.flushes += 1

    def lag(self) -> Lag:
        """Return how old what was served was."""
        with self._lock:
            lags = sorted(self._lags)
            return Lag(
                bound_s=self.staleness_s,
                oldest_s=self._oldest_s,
                changes=len(lags),
                p50_s=lags[len(lags) // 2] if lags else 0.0,
                p99_s=lags[len(lags) * 99 // 100] if lags else 0.0,
                flushes=self.flushes,
            )
