"""What a server holds of a cache, for people and their tools; never for serving."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from stampcache.errors import CodecError
from stampcache.model import Entry, Stamps
from stampcache.stores.keys import EncryptionKey
from stampcache.stores.redis.asking import Command, Run, Verb
from stampcache.stores.redis.store import RedisStore
from stampcache.stores.sqlite_survey import StampCount

_AT_ONCE = 500
_DIMENSION = "dimension:"


class _Row(Struct, frozen=True):
    partition: str
    key: str
    stamps: Stamps


class RedisSurvey:
    """A view of one cache in a server; make one with `survey`."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    @property
    def dimensions(self) -> Mapping[str, int]:
        """How many components the vectors of each embedder have, by the embedder's name."""
        raw = self._store.run(_asked(Command("HGETALL", b"facts")))
        facts = zip(raw[::2], raw[1::2], strict=True)
        named = {name.decode(): value.decode() for name, value in facts}
        return {
            name.removeprefix(_DIMENSION): int(value)
            for name, value in named.items()
            if name.startswith(_DIMENSION) and value.isdecimal()
        }

    def stamps(self, scope: str | None = None) -> tuple[StampCount, ...]:
        """Return the distinct stamps of entries that hold, of all or one scope, by falling count."""
        counts = Counter(row.stamps for row in self._rows(scope))
        ordered = sorted(counts.items(), key=lambda one: (-one[1], str(one[0])))
        return tuple(StampCount(stamps, count) for stamps, count in ordered)

    def entries_in(self, partition: str) -> int:
        """Return how many entries of a partition hold."""
        return sum(row.partition == partition for row in self._rows(None))

    def latest(self, scope: str, limit: int) -> Iterator[Entry]:
        """Yield the entries of a scope digest that hold, latest stored first, without damaged ones."""
        for _, row in zip(range(limit), self._rows(scope), strict=False):
            try:
                entry = self._store.run(self._store.verbs.peeked((row.partition, row.key)))
            except CodecError:
                continue  # dropped and counted when its own question fetches it
            if entry is not None and not entry.invalidated:
                yield entry

    def _rows(self, scope: str | None) -> Iterator[_Row]:
        key = b"used" if scope is None else b"scope:" + scope.encode()
        numbers = self._store.run(_asked(Command("ZREVRANGE", key, (0, -1))))
        for start in range(0, len(numbers), _AT_ONCE):
            some: Sequence[bytes] = numbers[start : start + _AT_ONCE]
            rows = self._store.run(_asked(Run("rows", tuple(some), slow=True)))
            for partition, name, _, mark, *stamps in rows:
                if not mark:
                    texts = (one.decode() for one in stamps)
                    named = dict(zip(Stamps.__struct_fields__, texts, strict=True))
                    yield _Row(partition.decode(), name.decode(), Stamps(**named))


@contextmanager
def survey(url: str, *, encryption_key: EncryptionKey | None) -> Iterator[RedisSurvey]:
    """Yield a view of the cache that a URL names.

    Raises:
        ConfigError: the URL or the key is wrong.
        StoreError: the server cannot be asked.
    """
    store = RedisStore(url, encryption_key=encryption_key)
    try:
        yield RedisSurvey(store)
    finally:
        store.close()


def _asked(ask: Run | Command) -> Verb[Any]:
    return (yield ask)
