"""The shelves of a Redis store."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from stampcache.errors import CodecError
from stampcache.shelf import Record
from stampcache.stores.redis.asking import Run, Verb, Word
from stampcache.stores.redis.keeping import Keeper
from stampcache.stores.redis.secrets import Facts

_BOTH = msgspec.msgpack.Decoder(tuple[str, bytes])
_KIND = "shelf"


class RedisShelf:
    """Shelves in the keys of a Redis store; a name that tells of a record is hidden with it."""

    def __init__(self, run: Callable[[Verb[Any]], Any], facts: Facts) -> None:
        self._run = run
        self._facts = facts

    def keep(self, shelf: str, records: Sequence[Record], *, most: int) -> None:
        """See `Shelf.keep`."""
        if records:
            self._run(self._keep(shelf, records, most))

    def _keep(self, shelf: str, kept: Sequence[Record], most: int) -> Verb[None]:
        keeper = yield from self._facts.keeper()
        words: list[Word] = [shelf, most]
        for one in kept:
            name = keeper.codec.alias(one.key, _KIND)
            body = keeper.close(msgspec.msgpack.encode((one.key, one.body)), _KIND, shelf, name)
            words += [name, one.tenant, one.entry, body]
        yield Run("shelve", tuple(words))

    def kept(self, shelf: str, count: int) -> Sequence[Record]:
        """See `Shelf.kept`."""
        found: Sequence[Record] = self._run(self._kept(shelf, count)) if count > 0 else []
        return found

    def _kept(self, shelf: str, count: int) -> Verb[Sequence[Record]]:
        keeper = yield from self._facts.keeper()
        found = []
        for name, tenant, raw in (yield Run("shelved", (shelf, count))):
            with suppress(CodecError):  # damaged: of an answer nothing depends on it
                found.append(_shown(keeper, shelf, name.decode(), tenant.decode(), raw))
        return found

    def take(self, shelf: str, keys: Sequence[str]) -> Sequence[str]:
        """See `Shelf.take`."""
        asked = list(dict.fromkeys(keys))
        taken: Sequence[str] = self._run(self._take(shelf, asked)) if asked else []
        return taken

    def _take(self, shelf: str, keys: Sequence[str]) -> Verb[Sequence[str]]:
        keeper = yield from self._facts.keeper()
        names = [keeper.codec.alias(key, _KIND) for key in keys]
        there = yield Run("unshelve", (shelf, *names), once=True)
        return [key for key, was in zip(keys, there, strict=True) if was]


def _shown(keeper: Keeper, shelf: str, name: str, tenant: str, raw: bytes) -> Record:
    key, body = _BOTH.decode(keeper.open(raw, _KIND, shelf, name))
    return Record(key=key, tenant=tenant, body=body)
