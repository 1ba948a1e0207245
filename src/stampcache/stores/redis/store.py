"""The Redis store: the truth in a server, a replica in each process (ADR 0026).

Entries, vectors, dependencies and the change logs move together in one Lua function per verb. What a
process keeps follows the logs; what it serves without asking is at most ``staleness_s`` old, and in
strict mode it serves nothing without asking.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

from stampcache.corpora import Reach, Standing
from stampcache.errors import StoreError
from stampcache.model import Candidate, Entry, Selector, Vector
from stampcache.ports import AsyncStore, Forgotten, Lag, Receipt, StoreStats
from stampcache.stores.keys import EncryptionKey
from stampcache.stores.pending_uses import Uses
from stampcache.stores.redis import records
from stampcache.stores.redis.address import Settings, read_address
from stampcache.stores.redis.asking import Command, Run, Verb, drive
from stampcache.stores.redis.client import Client
from stampcache.stores.redis.corpora import RedisCorpora
from stampcache.stores.redis.health import problems_of
from stampcache.stores.redis.journal import RedisJournal
from stampcache.stores.redis.leases import Leases
from stampcache.stores.redis.neighbours import Neighbours
from stampcache.stores.redis.replica import Replica
from stampcache.stores.redis.sealing import seal_key
from stampcache.stores.redis.secrets import Facts
from stampcache.stores.redis.shelf import RedisShelf
from stampcache.stores.redis.tickets import RedisTickets, TicketVerbs
from stampcache.stores.redis.verbs import Verbs
from stampcache.stores.telling import Listeners

CAPACITY = 100_000
NEAR_CAPACITY = 100_000
VECTOR_CAPACITY = 200_000
Done = TypeVar("Done")


class RedisStore:
    """Entries in one Redis server or cluster, and a bounded copy of some in this process."""

    def __init__(
        self,
        url: str,
        *,
        settings: Settings | None = None,
        capacity: int = CAPACITY,
        near_capacity: int = NEAR_CAPACITY,
        vector_capacity: int = VECTOR_CAPACITY,
        seal_key: bytes | None = None,
        encryption_key: EncryptionKey | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connect to nothing yet.

        Args:
            url: see `stampcache.stores.redis.address`; settings in it stand over those given.
            settings: how the server is used.
            capacity: a hard bound on the number of entries, invalidated ones among them.
            near_capacity: so many decoded entries are kept in this process.
            vector_capacity: so many vectors are.
            seal_key: 16 to 64 bytes by which entries are sealed; default: drawn once, kept in the server.
            encryption_key: hides what a tenant may have said (see `stampcache.open_cache`).
            now: tells how much time passes; for tests.

        Raises:
            ConfigError: the URL or a setting is wrong.
        """
        address = read_address(url, settings)
        self.settings = address.settings
        self.url = address.shown
        staleness_s = 0.0 if self.settings.strict else self.settings.staleness_s
        self._listeners = Listeners()
        self._replica = Replica(
            capacity=near_capacity, staleness_s=staleness_s, now=now, forgotten=self._let_go
        )
        self._uses = Uses()
        self.client = Client(address, lost=self._replica.flush, now=now)
        self._tasks: Any = None
        self._facts = Facts(
            self.url,
            seal_key=seal_key,
            encryption_key=encryption_key,
            durable=self.settings.durable,
        )
        self.verbs = Verbs(self._replica, self._uses, capacity=capacity, facts=self._facts)
        self._neighbours = Neighbours(
            self._replica, self.verbs, self.client.answer, self._facts, capacity=vector_capacity
        )
        self.journal = RedisJournal(self.run, self.verbs, self._facts)
        self.shelf = RedisShelf(self.run, self._facts)
        self.ticket_verbs = TicketVerbs(self._facts, lease_s=self.settings.lease_s)
        self.leases = Leases(
            lambda held: self.run(self.ticket_verbs.renew(held)),
            lease_s=self.settings.lease_s,
            now=now,
        )
        self.tickets = RedisTickets(self.run, self.ticket_verbs, self.leases)
        self.corpora = RedisCorpora(self.run, self.verbs, self._replica, self._facts)

    def _let_go(self) -> None:
        self._neighbours.let_go()
        self.corpora.let_go()
        self._listeners.tell("")

    def when_forgotten(self, then: Callable[[str], None]) -> None:
        """See `stampcache.ports.Telling`."""
        self._listeners.add(then)

    def agree(self) -> None:
        """Learn how the store is kept, if the server is there; else that is learned when it is.

        So is who was forgotten until now: what is kept of questions from here on need not go for that.

        Raises:
            ConfigError: it is encrypted under another key, or is not.
        """
        try:
            self.run(self._facts.keeper())
            self.run(self.verbs.follow())
        except StoreError:
            return  # counted by the breaker; an application starts without its cache

    def run(self, verb: Verb[Done]) -> Done:
        """Carry out a verb."""
        self._same_process()
        return drive(verb, self.client.answer)

    def _same_process(self) -> None:
        if self.client.check_process():
            self._replica.begin_anew()
            self._neighbours.begin_anew()
            self.corpora.begin_anew()
            self._uses.take()

    # -- reading -----------------------------------------------------------------------------------

    def fetch(self, partition: str, key: str) -> Entry | None:
        """See `Store.fetch`."""
        near = self.peek(partition, key)
        return self.run(self.verbs.fetch((partition, key))) if near is None else near

    def peek(self, partition: str, key: str) -> Entry | None:
        """Return the entry if it may be served without asking the server."""
        self._same_process()
        self.client.check_open()
        return self._replica.peek((partition, key))

    def peek_sequence(self) -> int | None:
        """Return the sequence if that takes no asking."""
        self._same_process()
        return self._replica.sequence()

    def peek_standing(self, corpus: str) -> Standing | None:
        """Return how a watched corpus stands if that takes no asking."""
        self._same_process()
        return self._replica.standing(corpus)

    def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        """See `Store.nearest`."""
        self._same_process()
        return self._neighbours.nearest(partition, vector, k, asked=asked, now=now)

    def sequence(self) -> int:
        """See `Store.sequence`."""
        return self.run(self.verbs.sequence())

    # -- writing -----------------------------------------------------------------------------------

    def put(
        self, entry: Entry, vector: Vector | None, fence: int, reach: Reach | None = None
    ) -> Receipt:
        """See `Store.put`."""
        return self.run(self.verbs.put(entry, vector, fence, reach))

    def fenced(self, entry: Entry, fence: int) -> str:
        """See `Store.fenced`."""
        return self.run(self.verbs.fenced(entry, fence))

    def touch(self, entry: Entry, asked: str) -> None:
        """See `Store.touch`. Uses are written with the next `put`; a semantic serving at once."""
        self.run(self.verbs.touch(entry, asked))

    def use(self, entry: Entry) -> bool:
        """Note, without any IO, that the entry was served; tell whether it is time to write uses."""
        return self._uses.add(entry.place)

    def write_uses(self) -> None:
        """Write what was noted of uses and servings."""
        self.run(self.verbs.write_uses())

    def renew(self, entry: Entry, expires_at: float) -> None:
        """See `Store.renew`."""
        self.run(self.verbs.renew(entry, expires_at))

    def remove(self, entry: Entry) -> bool:
        """See `Store.remove`."""
        return self.run(self.verbs.remove(entry))

    def report_bad(self, entry_id: str) -> bool:
        """See `Store.report_bad`."""
        return self.run(self.verbs.report_bad(entry_id))

    def invalidate(self, selector: Selector) -> int:
        """See `Store.invalidate`."""
        return self.run(self.verbs.invalidate(selector))

    def clear(self, scope: str) -> int:
        """See `Store.clear`."""
        return self.run(self.verbs.clear(scope))

    def forget(self, tenant: str) -> Forgotten:
        """See `Store.forget`."""
        return self.run(self.verbs.forget(tenant))

    def purge(self, now: float) -> int:
        """See `Store.purge`."""
        return self.run(self.verbs.purge(now))

    # -- facts, counters, health -------------------------------------------------------------------

    def claim(self, name: str, value: str) -> str:
        """See `Store.claim`."""
        return self.run(self._facts.claim(name, value))

    def tally(self, counts: Mapping[str, int]) -> None:
        """See `Store.tally`."""
        words = [str(word) for item in counts.items() for word in item]
        if words:
            self.run(_asked(Run("tally", tuple(words), once=True)))

    def tallies(self) -> Mapping[str, int]:
        """See `Store.tallies`."""
        return records.counted(self.run(_asked(Command("HGETALL", b"tallies"))))

    def stats(self, scope: str | None = None) -> StoreStats:
        """See `Store.stats`."""
        if self._uses:
            with suppress(StoreError):  # they stay noted; a full server can still be asked
                self.write_uses()
        key = b"sizes" if scope is None else b"size:" + scope.encode()
        sizes = records.counted(self.run(_asked(Command("HGETALL", key))))
        return StoreStats(
            entries=sizes.get("entries", 0),
            vectors=sizes.get("vectors", 0),
            answer_bytes=sizes.get("bytes", 0),
            hits=sizes.get("hits", 0),
            invalidated=sizes.get("invalidated", 0),
        )

    def lag(self) -> Lag:
        """Return how old what this process served was, and how soon it learned of changes."""
        return self._replica.lag()

    def problems(self) -> Sequence[str]:
        """See `Store.problems`."""
        self._same_process()
        return problems_of(self.client)

    def aio(self) -> AsyncStore:
        """See `Store.aio`."""
        module = import_module("stampcache.stores.redis.tasks")
        if self._tasks is None:
            self._tasks = module.AsyncClient(self.client)
        face: AsyncStore = module.RedisTasks(self, self._tasks)
        return face

    def close(self) -> None:
        """See `Store.close`."""
        self.leases.close()
        try:
            if self._uses:
                self.write_uses()
        except StoreError:
            self._uses.take()  # use counts may be lost; a store that is away keeps nobody from closing
        finally:
            self.client.close()
            if self._tasks is not None:
                self._tasks.close()


def holds_cache(url: str) -> bool:
    """Tell whether a server holds a cache of this prefix; nothing is written.

    Raises:
        ConfigError: the URL is wrong.
        StoreError: the server cannot be asked.
    """
    store = RedisStore(url)
    try:
        return bool(store.run(_asked(Command("EXISTS", b"facts"))))
    finally:
        store.client.close()


def holds_secret(url: str) -> bool:
    """Tell whether the secret of the tenants is kept in the server, in plain or hidden."""
    store = RedisStore(url)
    try:
        kept = store.run(_asked(Command("HMGET", b"facts", ("secret", "encryption"))))
        return kept[0] is not None or kept[1] not in (None, b"none")
    finally:
        store.client.close()


def open_redis(
    url: str,
    *,
    capacity: int,
    encryption_key: EncryptionKey | None,
    secret: bytes | str | None,
) -> RedisStore:
    """Return the store that a URL names; with a secret of the application's own, sealed by that."""
    key = None if secret is None else seal_key(secret)
    store = RedisStore(url, capacity=capacity, seal_key=key, encryption_key=encryption_key)
    store.agree()
    return store


def _asked(ask: Any) -> Verb[Any]:
    return (yield ask)
