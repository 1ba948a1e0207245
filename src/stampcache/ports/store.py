"""The store, as Protocols for threads and for tasks.

A store is one thing: entries, their vectors, the evidence index and the change log move together,
and keeping them together is the store's secret. Each store passes `stampcache.testing.StoreContract`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from stampcache.corpora import Corpora, Reach, Standing
from stampcache.journal import Journal
from stampcache.model import Candidate, Entry, Selector, Vector
from stampcache.shelf import Shelf

Result = TypeVar("Result")


class Receipt(Struct, frozen=True):
    """What a store did with a ``put``: refused by the fence, or stored with entries evicted.

    ``change`` says which change refused it.
    """

    stored: bool
    evicted: int = 0
    change: str = ""


class StoreStats(Struct, frozen=True, kw_only=True):
    """The size of a store, or of one scope in it.

    ``entries``, ``vectors``, ``answer_bytes`` and ``hits`` are of entries that hold; ``invalidated``
    counts those that a change made stale and that nobody has purged or replaced yet.
    """

    entries: int
    vectors: int
    answer_bytes: int
    hits: int
    invalidated: int = 0


class Forgotten(Struct, frozen=True):
    """How much a ``forget`` removed: entries, and bytes as the store kept them.

    ``size_bytes`` are those of entries, vectors, reaches, verdicts and messages of failures, without the
    digests beside them.
    """

    entries: int = 0
    size_bytes: int = 0


class Lag(Struct, frozen=True, kw_only=True):
    """How old what a process served was, in seconds.

    ``bound_s`` is the most that is allowed, ``oldest_s`` the most that was; ``p50_s`` and ``p99_s``
    are of the ``changes`` counted, from when one was made until it was known here.
    """

    bound_s: float
    oldest_s: float
    changes: int
    p50_s: float
    p99_s: float
    flushes: int


@runtime_checkable
class Following(Protocol):
    """A store whose processes follow one truth, each a little behind."""

    def lag(self) -> Lag:
        """Return how old what this process served was."""
        ...


@runtime_checkable
class Telling(Protocol):
    """A store that tells what is kept beside it that a tenant was forgotten, by whichever process."""

    def when_forgotten(self, then: Callable[[str], None]) -> None:
        """Call a bound method, kept weakly, when this process learns that a tenant was forgotten.

        It is given the digest of the tenant, or an empty text where only somebody's was. It is called by
        whichever thread learns of it, under locks of the store: it must wait for nothing.
        """
        ...


class Store(Protocol):
    """Entries of all partitions. Every verb that reads entries to serve them takes the partition.

    All verbs raise `StoreError` when the store cannot do them, and only that. A store may be used by
    any number of threads at once.
    """

    @property
    def url(self) -> str:
        """How the store is named to people, without secrets."""
        ...

    def fetch(self, partition: str, key: str) -> Entry | None:
        """Return the entry at this address, whatever its age, and whether it was invalidated or not.

        Raises:
            CodecError: the entry was damaged; it has been dropped.
        """
        ...

    def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]:
        """Return up to ``k`` entries of the partition by falling cosine to a unit vector.

        Entries that have expired at ``now`` (epoch seconds) or were invalidated take no place among
        the ``k``: the vector of an invalidated entry leaves the index at once. ``asked``
        is the ExactKey of the question; candidates reported bad for it are marked.
        """
        ...

    def put(
        self, entry: Entry, vector: Vector | None, fence: int, reach: Reach | None = None
    ) -> Receipt:
        """Store or replace the entry at its address, then evict over capacity.

        Invalidated entries are evicted first, then those least recently used. Refused when a change
        with a sequence above ``fence`` touches the entry (see `sequence`). Of the writes to a watched
        corpus only those do that are within ``reach``, where one is given. When it returns, the entry
        is as durable as the store promises.
        """
        ...

    @property
    def corpora(self) -> Corpora:
        """The watched corpora of this store."""
        ...

    @property
    def journal(self) -> Journal:
        """What this store remembers of changes and verdicts."""
        ...

    @property
    def shelf(self) -> Shelf:
        """Small records of others that this store keeps."""
        ...

    def fenced(self, entry: Entry, fence: int) -> str:
        """Say which change after the fence would refuse a `put` of this entry; empty: none."""
        ...

    def touch(self, entry: Entry, asked: str) -> None:
        """Note that the entry was served now to the question with ExactKey ``asked``."""
        ...

    def renew(self, entry: Entry, expires_at: float) -> None:
        """Let this very entry live until then (epoch seconds), if it is still there and holds."""
        ...

    def remove(self, entry: Entry) -> bool:
        """Purge this very entry (not a newer one at its address); tell whether it was there."""
        ...

    def report_bad(self, entry_id: str) -> bool:
        """Delete the entry and mark every other question it was served to as not the same as its own."""
        ...

    def invalidate(self, selector: Selector) -> int:
        """Mark all matching entries as stale, log the change for fences; return how many it made stale.

        An entry keeps the mark of the first change that touched it, as `Selector` prints it.
        """
        ...

    def clear(self, scope: str) -> int:
        """Purge all entries of this scope digest, log it for fences, and return how many went."""
        ...

    def forget(self, tenant: str) -> Forgotten:
        """Remove everything that is kept of a tenant, by its digest (`Identity.tenant`); say how much.

        Entries of all its partitions with all that stands beside them: vectors, dependencies, reaches,
        verdicts, servings, uses, pairs that were reported bad, and what the change log says of them.
        When it returns, none of its bytes is left in what the store persists; replicas let go of them
        before they next serve. A `put` whose fence is older than this is refused, the tenant's always
        and others' where the store cannot tell them apart. Documents and their chunks are nobody's,
        and stay (ADR 0027).
        """
        ...

    def purge(self, now: float) -> int:
        """Delete all entries that are invalidated or have expired at ``now``; return how many went."""
        ...

    def sequence(self) -> int:
        """Return the sequence of the last change: the fence for answers whose making starts now."""
        ...

    def claim(self, name: str, value: str) -> str:
        """Record a fact about this store once; return the value in force, whoever came first."""
        ...

    def tally(self, counts: Mapping[str, int]) -> None:
        """Add to the store's lasting counters."""
        ...

    def tallies(self) -> Mapping[str, int]:
        """Return the store's lasting counters."""
        ...

    def stats(self, scope: str | None = None) -> StoreStats:
        """Return sizes of one scope digest, or of everything."""
        ...

    def problems(self) -> Sequence[str]:
        """Check the store's own consistency; one sentence per problem that says how to mend it."""
        ...

    def aio(self) -> "AsyncStore":
        """Return the async face of this same store."""
        ...

    def close(self) -> None:
        """Write what is pending and let go of files and connections. A closed store may not be used."""
        ...


class AsyncStore(Protocol):
    """`Store` for tasks: the verbs of a lookup and an update, none of which blocks the event loop."""

    async def fetch(self, partition: str, key: str) -> Entry | None: ...

    async def nearest(
        self, partition: str, vector: Vector, k: int, *, asked: str, now: float
    ) -> Sequence[Candidate]: ...

    async def put(
        self, entry: Entry, vector: Vector | None, fence: int, reach: Reach | None = None
    ) -> Receipt: ...

    async def on_corpora(self, do: Callable[[Corpora], Result]) -> Result:
        """Do one thing with the watched corpora of the store, wherever that blocks nobody."""
        ...

    async def on_journal(self, do: Callable[[Journal], Result]) -> Result:
        """Do one thing with the journal of the store, wherever that blocks nobody."""
        ...

    async def on_shelf(self, do: Callable[[Shelf], Result]) -> Result:
        """Do one thing with the shelves of the store, wherever that blocks nobody."""
        ...

    async def standing(self, corpus: str) -> Standing | None: ...

    async def fenced(self, entry: Entry, fence: int) -> str: ...

    async def touch(self, entry: Entry, asked: str) -> None: ...

    async def renew(self, entry: Entry, expires_at: float) -> None: ...

    async def remove(self, entry: Entry) -> bool: ...

    async def report_bad(self, entry_id: str) -> bool: ...

    async def invalidate(self, selector: Selector) -> int: ...

    async def clear(self, scope: str) -> int: ...

    async def forget(self, tenant: str) -> Forgotten: ...

    async def purge(self, now: float) -> int: ...

    async def sequence(self) -> int: ...
