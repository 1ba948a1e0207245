"""Vector search in the process: an index per partition, loaded from the server and kept up to date.

A search holds a lock, reads nothing while the index is up to date, and lets in only entries that hold.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from stampcache.errors import CodecError
from stampcache.indexes.flat import FlatIndex
from stampcache.model import Candidate, Entry, Vector
from stampcache.stores.pending_uses import Place
from stampcache.stores.redis.asking import Command, Verb, drive
from stampcache.stores.redis.keeping import Keeper
from stampcache.stores.redis.names import pair
from stampcache.stores.redis.replica import Replica
from stampcache.stores.redis.secrets import Facts
from stampcache.stores.redis.verbs import Verbs
from stampcache.stores.replica import LoadedIndexes
from stampcache.stores.telling import Holding
from stampcache.ttl import expired

_SCANNED_AT_ONCE = 500


class Neighbours:
    """Searches the vectors of a Redis store."""

    def __init__(
        self,
        replica: Replica,
        verbs: Verbs,
        answer: Callable[[Any], Any],
        facts: Facts,
        *,
        capacity: int,
    ) -> None:
        self._replica = replica
        self._verbs = verbs
        self._answer = answer
        self._facts = facts
        self._indexes = LoadedIndexes(capacity)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Know nothing, as in a new process."""
        self._searching = Holding(self._drop)
        self._drop()

    def let_go(self) -> None:
        """Keep no vector of answers: some are forgotten."""
        self._searching.let_go()

    def _drop(self) -> None:
        self._indexes.clear()
        self._flushes = -1

    def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        """See `Store.nearest`."""
        with self._searching:
            self._run(self._verbs.follow())
            if self._flushes != self._replica.flushes:
                self._indexes.clear()
                self._flushes = self._replica.flushes
            index = self._index(partition, len(vector))
            if not len(index):
                return []
            bad = self._bad(partition)
            wanted = k
            while True:
                found = list[Candidate]()
                for one in index.search(vector, wanted):
                    entry = self._living((partition, one.key), now)
                    if entry is not None:
                        reported = pair(asked, one.key) in bad
                        found.append(Candidate(entry, one.similarity, reported))
                if len(found) >= k or wanted >= len(index):
                    return found[:k]
                wanted *= 4

    def _run(self, verb: Verb[Any]) -> Any:
        return drive(verb, self._answer)

    def _living(self, place: Place, now: float) -> Entry | None:
        try:
            entry: Entry | None = self._replica.get(place) or self._run(self._verbs.read(place))
        except CodecError:
            return None  # dropped and counted when its own question fetches it
        if entry is None or entry.invalidated or expired(entry.expires_at, now):
            return None
        return entry

    def _index(self, partition: str, dimension: int) -> FlatIndex:
        index = self._indexes.get(partition)
        if index is None or index.dimension != dimension:
            self._replica.watch(partition)
            index = FlatIndex(dimension)
            vectors = {key: row for key, row in self._vectors(partition) if len(row) == dimension}
            if vectors:
                index.fill(vectors, np.stack(list(vectors.values())))
            self._indexes.load(partition, index)
            self._replica.watch_only(self._indexes.partitions)
            self._run(self._verbs.follow())
        self._refresh(partition, index)
        return index

    def _vectors(self, partition: str) -> Iterator[tuple[str, Vector]]:
        cursor = b"0"
        while True:
            scan = Command(
                "HSCAN", b"near:" + partition.encode(), (cursor, "COUNT", _SCANNED_AT_ONCE)
            )
            cursor, found = self._answer(scan)
            for key, raw in zip(found[::2], found[1::2], strict=True):
                vector = self._decoded(raw, (partition, key.decode()))
                if vector is not None:
                    yield key.decode(), vector
            if int(cursor) == 0:
                return

    def _decoded(self, raw: bytes, place: Place) -> Vector | None:
        """Return a vector, unless it is damaged: its entry is then not found by meaning."""
        keeper: Keeper = self._run(self._facts.keeper())
        try:
            return keeper.codec.decode_vector(raw, place)
        except CodecError:
            return None

    def _refresh(self, partition: str, index: FlatIndex) -> None:
        """Read again which vectors changed."""
        keys = list(self._replica.take_dirty(partition))
        for start in range(0, len(keys), _SCANNED_AT_ONCE):
            some = keys[start : start + _SCANNED_AT_ONCE]
            name = b"near:" + partition.encode()
            try:
                rows = self._answer(Command("HMGET", name, tuple(one.encode() for one in some)))
            except BaseException:
                self._indexes.clear()  # what changed is forgotten, so nothing that is kept is certain
                raise
            for key, raw in zip(some, rows, strict=True):
                vector = None if raw is None else self._decoded(raw, (partition, key))
                if vector is not None and len(vector) == index.dimension:
                    index.set(key, vector)
                else:
                    index.remove(key)

    def _bad(self, partition: str) -> frozenset[bytes]:
        known = self._replica.bad(partition)
        if known is None:
            reading = self._replica.reading()
            known = frozenset(self._answer(Command("SMEMBERS", b"bad:" + partition.encode())))
            self._replica.keep_bad(partition, known, reading)
        return known
