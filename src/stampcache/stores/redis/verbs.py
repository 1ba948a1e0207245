"""The verbs of a Redis store, each written once: generators that say what to ask and what it means."""

from collections.abc import Sequence
from contextlib import suppress

from stampcache.corpora import Reach, Standing
from stampcache.errors import CodecError, StoreError
from stampcache.model import Entry, Selector, Vector
from stampcache.ports import Forgotten, Receipt
from stampcache.stores.pending_uses import Pending, Place, Uses
from stampcache.stores.redis import records
from stampcache.stores.redis.asking import Command, Run, Verb
from stampcache.stores.redis.keeping import Keeper
from stampcache.stores.redis.names import spot
from stampcache.stores.redis.replica import Reading, Replica
from stampcache.stores.redis.replies import head_of, news_of, reach_words, refusal
from stampcache.stores.redis.secrets import Facts
from stampcache.stores.selection import unmarked

_NEWS_AT_ONCE = 5_000
_TRIES = 20
_ROWS_AT_ONCE = 200
_MARKED_AT_ONCE = 500
_HELPED_AT_ONCE = 50
_LEFT_MS = 10_000


class Verbs:
    """What both faces of a store do, over one replica."""

    def __init__(self, replica: Replica, uses: Uses, *, capacity: int, facts: Facts) -> None:
        self._replica = replica
        self._uses = uses
        self._capacity = capacity
        self._facts = facts

    # -- reading -----------------------------------------------------------------------------------

    def fetch(self, place: Place) -> Verb[Entry | None]:
        """Return the entry at an address, from the server unless what is kept here is up to date."""
        replica = self._replica
        if replica.is_fresh and self._facts.known is not None:
            return (yield from self._fast(place, self._facts.known))
        near = replica.get(place)
        if near is not None:
            yield from self.follow()
            near = replica.get(place)
            if near is not None:
                return near
        return (yield from self.read(place))

    def _fast(self, place: Place, keeper: Keeper) -> Verb[Entry | None]:
        """Do what `read` does where nothing else has to be asked, in fewer steps."""
        reading = self._replica.reading()
        raw: bytes | None = yield Command("GET", b"entry:" + spot(place))
        if raw is None:
            return None
        if raw[:1] != records.AS_IS:
            return (yield from self.read(place))
        try:
            found = records.found(raw, place, keeper)
        except CodecError:
            return (yield from self.read(place))
        if found.sequence < self._replica.era:
            return None
        self._replica.keep(found.entry, found.sequence, reading)
        return self._replica.shown(found.entry, found.sequence)

    def read(self, place: Place) -> Verb[Entry | None]:
        """Return the entry at an address as the server has it now, and keep it."""
        keeper = yield from self._facts.keeper()
        where = spot(place)
        for _ in range(_TRIES):
            reading = self._replica.reading()
            raw = yield from self._value(where, reading)
            if raw is None:
                return None
            found = yield from self._found(raw, place, keeper)
            if found is not None and not self._replica.is_outdated(place, found.sequence, reading):
                if found.sequence < self._replica.era:
                    return None  # of before the server lost something
                self._replica.keep(found.entry, found.sequence, reading)
                return self._replica.shown(found.entry, found.sequence)
        raise StoreError(
            "The Redis store failed (an entry changes faster than it is read); ask again."
        )

    def peeked(self, place: Place) -> Verb[Entry | None]:
        """Return the entry at an address for people to look at: a damaged one stays where it is."""
        keeper = yield from self._facts.keeper()
        raw = yield Command("GET", b"entry:" + spot(place))
        if raw is None:
            return None
        found: records.Found | None = records.found(raw, place, keeper)
        if found is not None and found.amended:
            found = records.amended(found.entry, (yield Run("beside", (spot(place),))), keeper)
        return None if found is None else found.entry

    def _value(self, where: bytes, reading: Reading) -> Verb[bytes | None]:
        """Return the value of an entry; learn in the same round trip what is not known now."""
        if self._replica.is_fresh:
            raw: bytes | None = yield Command("GET", b"entry:" + where)
            return raw
        head = head_of((yield Run("fetch", (where,))))
        if self._replica.confirmed(head.sequence, head.era, reading):
            yield from self._help()
        else:
            yield from self._follow()
        return head.rest or None

    def _found(self, raw: bytes, place: Place, keeper: Keeper) -> Verb[records.Found | None]:
        """Return an entry from its value; ``None`` where another one has taken its place meanwhile."""
        try:
            found = records.found(raw, place, keeper)
        except CodecError:
            yield Run("damaged", (spot(place), raw))
            raise
        if not found.amended:
            return found
        return records.amended(found.entry, (yield Run("beside", (spot(place),))), keeper)

    def follow(self) -> Verb[None]:
        """Learn what changed, unless that is known."""
        if not self._replica.is_fresh:
            yield from self._follow()

    def _follow(self) -> Verb[None]:
        reading = self._replica.reading()
        keeper = yield from self._facts.keeper()
        news = news_of((yield Run("follow", (reading.applied, _NEWS_AT_ONCE))), keeper)
        if news.lost:
            yield from self._facts.agree_again()
        self._replica.apply(news, reading)
        yield from self._help()

    def sequence(self) -> Verb[int]:
        """Return the sequence of the last change."""
        known = self._replica.sequence()
        if known is not None:
            return known
        reading = self._replica.reading()
        head = head_of((yield Run("check", ())))
        if not self._replica.confirmed(head.sequence, head.era, reading):
            yield from self.reread()
        return head.sequence

    def standing(self, corpus: str) -> Verb[Standing | None]:
        """Return how a corpus stands."""
        known = self._replica.standing(corpus)
        if known is not None:
            return known
        yield from self.follow()
        reading = self._replica.reading()
        _, raw = yield Run("standing", (corpus,))
        standing = records.standing_of(corpus, raw)
        if standing is not None:
            self._replica.keep_standing(standing, reading)
        return standing

    # -- writing -----------------------------------------------------------------------------------

    def put(
        self, entry: Entry, vector: Vector | None, fence: int, reach: Reach | None
    ) -> Verb[Receipt]:
        """Store an entry, unless a change after its fence touches it."""
        keeper = yield from self._facts.keeper()
        entry = unmarked(entry)
        body = keeper.encode(entry)
        raw = keeper.encode_vector(vector, entry.place)
        pending = self._uses.pending()
        told = records.told_of(entry) | records.uses(pending) | reach_words(reach)
        told |= {"fence": str(fence), "judged": "", "capacity": str(self._capacity)}
        for _ in range(_TRIES):
            reading = self._replica.reading()
            words = (
                records.pack(told),
                body,
                raw,
                b"" if reach is None else keeper.pack(reach, "reach"),
            )
            reply = yield Run("put", words)
            if reply[0] == b"stored":
                self._uses.written(pending)
                receipt = self._stored(entry, reply, reading)
                if int(reply[4]) > reading.applied:
                    yield from self.reread()  # a tenant was forgotten, and nothing of it stays here
                return receipt
            change = refusal(reply, entry, reach, keeper)
            if change:
                if reply[0] == b"forgotten":
                    yield from self.reread()  # as above
                return Receipt(stored=False, change=change)
            told["judged"] = reply[1].decode()
        raise StoreError(
            "The Redis store failed (changes come faster than they are read); ask again."
        )

    def _stored(self, entry: Entry, reply: Sequence[bytes], reading: Reading) -> Receipt:
        sequence, last = int(reply[1]), int(reply[3])
        if last == sequence:
            self._replica.stored(entry, sequence, reading)
        else:
            self._replica.wrote(last)
        return Receipt(stored=True, evicted=int(reply[2]))

    def fenced(self, entry: Entry, fence: int) -> Verb[str]:
        """Say which change after the fence would refuse this entry."""
        keeper = yield from self._facts.keeper()
        return refusal((yield Run("since", (fence,))), entry, None, keeper)

    def touch(self, entry: Entry, asked: str) -> Verb[None]:
        """Note a use; one by another question is told to the server at once."""
        if asked != entry.identity.key:
            serving = (entry.id, *entry.place, asked, entry.identity.tenant)
            try:
                yield Run("uses", (records.pack(records.uses(Pending({}, (serving,)))),))
            except StoreError:
                self._uses.serve(serving)
                raise
        if self._uses.add(entry.place):
            yield from self.write_uses()

    def write_uses(self) -> Verb[None]:
        """Write what was noted of uses."""
        pending = self._uses.pending()
        yield Run("uses", (records.pack(records.uses(pending)),))
        self._uses.written(pending)

    def renew(self, entry: Entry, expires_at: float) -> Verb[None]:
        """Let this very entry live until then."""
        life = records.number(expires_at - entry.created_at)
        words = (entry.id, *entry.place, records.number(expires_at), life)
        self._wrote((yield Run("renew", words)))

    def confirm(self, entry: Entry, at: float, doubtful_at: float | None) -> Verb[bool]:
        """Note that this very entry was found fresh; tell whether it holds, with the doubt it had."""
        times = (at, doubtful_at, entry.doubtful_at)
        words = (entry.id, *entry.place, *(records.number(one) for one in times))
        sequence = yield Run("confirm", words)
        self._wrote(sequence)
        return bool(sequence)

    def remove(self, entry: Entry) -> Verb[bool]:
        """Delete this very entry."""
        gone: int = yield Run("remove", (entry.id, *entry.place))
        yield from self.reread()
        return gone > 0

    def report_bad(self, entry_id: str) -> Verb[bool]:
        """Delete an entry, and mark the pairs that it was served to."""
        pending = self._uses.pending()
        gone: int = yield Run("report", (entry_id, records.pack(records.uses(pending))))
        self._uses.written(pending)
        yield from self.reread()
        return gone > 0

    def invalidate(self, selector: Selector) -> Verb[int]:
        """Make stale what a selector touches: nothing of it is served from the first step on."""
        told = records.selecting(selector)
        if told is None:
            return 0
        keeper = yield from self._facts.keeper()
        body, corpus = keeper.pack(selector, "change"), selector.corpus or ""
        words = (records.pack(told), keeper.mark(str(selector)), body, corpus, _MARKED_AT_ONCE)
        held, sweep = yield Run("invalidate", words, slow=True)
        if sweep:
            yield from self.reread()
            held = yield from self._sweep(sweep)
        yield from self.reread()
        return int(held)

    def _sweep(self, sweep: bytes) -> Verb[int]:
        """Mark what an invalidation touches, to the end; return how many held until then."""
        held = 0
        while sweep:
            held, sweep = yield Run("sweep", (sweep, _MARKED_AT_ONCE, 0), slow=True)
        return held

    def sweep_all(self) -> Verb[None]:
        """Bring all invalidations to their end."""
        yield from self._follow()
        for one in self._replica.closing:
            yield from self._sweep(b"%d" % one.sequence)

    def _help(self) -> Verb[None]:
        """Go on a little with an invalidation that nobody has gone on with for a while."""
        for one in self._replica.closing[:1]:
            with suppress(StoreError):  # it is served in no case
                yield Run("sweep", (b"%d" % one.sequence, _HELPED_AT_ONCE, _LEFT_MS))

    def clear(self, scope: str) -> Verb[int]:
        """Delete all entries of a scope, some at a time."""
        keeper = yield from self._facts.keeper()
        body = keeper.pack(Selector(scope=scope), "change")
        last: bytes = yield Run("log-change", ("", body))
        gone, looked = 0, 1
        while looked:
            words = (scope, last, _ROWS_AT_ONCE)
            some, looked = yield Run("clear", words, slow=True)
            gone += some
        yield from self.reread()
        return gone

    def purge(self, now: float) -> Verb[int]:
        """Delete what is stale or has expired, some at a time."""
        gone, looked = 0, 1
        while looked:
            some, looked = yield Run("purge", (records.number(now), _ROWS_AT_ONCE), slow=True)
            gone += some
        yield from self.reread()
        return gone

    def forget(self, tenant: str) -> Verb[Forgotten]:
        """Delete all that is kept of a tenant, some at a time."""
        if not tenant:
            return Forgotten()
        yield from self.write_uses()
        yield from self.sweep_all()  # one that was left may name a scope of the tenant
        entries, bytes_, done = 0, 0, 0
        while not done:
            some, more, done = yield Run("forget", (tenant, _ROWS_AT_ONCE), slow=True)
            entries, bytes_ = entries + some, bytes_ + more
        yield from self.reread()
        return Forgotten(entries, bytes_)

    def _wrote(self, sequence: bytes | int) -> None:
        if sequence:
            self._replica.wrote(int(sequence))

    def reread(self) -> Verb[None]:
        """Know here what was just written, too; where that fails, know nothing."""
        try:
            yield from self._follow()
        except StoreError:
            self._replica.flush()
