"""The cache as an adapter stands behind it: written once for sync and async, and failing open.

An adapter's path through the cache is a flow (`stampcache.effects`), whose IO of the framework are
`Step` effects. The verbs here are parts of such a flow: whatever fails in them is counted and logged,
and the application goes on as if there were no cache (unless the cache is strict). What fails in the
application itself never passes here.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from stampcache import drivers, flows
from stampcache.adapters.reporting import CacheFields, fields, shared_fields, stale_fields
from stampcache.core import Core
from stampcache.corpora import Reading
from stampcache.effects import Flow, answered
from stampcache.errors import CodecError, ScopeError
from stampcache.explain import Explanation
from stampcache.flows import Ask
from stampcache.intake import flight_key
from stampcache.model import Answer, Evidence, Reason
from stampcache.outcome import Hit, Miss, Outcome, Stale, Update, is_late
from stampcache.request import Request
from stampcache.sharing import Driven, Landed

Done = TypeVar("Done")
Result = TypeVar("Result")
Output = TypeVar("Output")
Recheck: TypeAlias = Callable[[str], Flow[Sequence[Evidence]]]
Read: TypeAlias = Callable[[Answer, CacheFields], Output]


class Found(Struct, Generic[Output], frozen=True):
    """A hit, or a stale answer where those are allowed, and what was read from it."""

    outcome: Hit | Stale
    output: Output


class Made(Struct, Generic[Output], frozen=True, kw_only=True):
    """What an application made: for the caller, and in the form that is stored.

    ``answer`` is ``None`` where it has no stored form, or is a stream: nobody else can be given it.
    ``readings`` are the searches of watched indexes that it was made from.
    """

    output: Output
    answer: Answer | None
    evidence: Sequence[Evidence] | None = None
    readings: Sequence[Reading] = ()


class TooFew(Exception):
    """What an adapter raises on reading an answer that is sound, but has less than is asked for.

    It stays where it is, and one that has enough is made (case B13).
    """


class Kept(Struct, frozen=True):
    """What is stored of something that was made: the answer, and what it was made from."""

    answer: Answer
    evidence: Sequence[Evidence] | None = None
    readings: Sequence[Reading] = ()


class _Shared(Struct, frozen=True):
    """What one lookup or making gives to all that asked for the same at once."""

    outcome: Outcome
    answer: Answer | None
    made: bool


class Front:
    """One adapter in front of one cache. ``kind`` keeps its flights apart from other adapters'."""

    def __init__(self, core: Core, *, kind: str) -> None:
        self.core = core
        self._kind = kind
        self._driven = Driven(core.ports, core.async_ports)

    def run(self, flow: Flow[Done]) -> Done:
        """Drive a flow to its end on the calling thread."""
        return drivers.run(flow, self.core.ports)

    async def arun(self, flow: Flow[Done]) -> Done:
        """Drive a flow to its end in the running task."""
        return await drivers.arun(flow, self.core.async_ports)

    def ask(
        self, request: Request, *, can_retrieve: bool = False, allow_stale: bool = False
    ) -> Ask | Miss:
        """Return what a request asks of the cache, or the Miss of one that bypasses it.

        With ``allow_stale``, `serve` gives a stale answer to this very question, too.
        """
        try:
            return self.core.intake.ask(request, can_retrieve=can_retrieve, allow_stale=allow_stale)
        except ScopeError as error:
            return self._unscoped(error)
        except Exception as error:  # noqa: BLE001 - counted; the application runs without the cache
            self.failed("request", error)
            return Miss(reason=Reason.UNCACHEABLE, detail=str(error))

    def serve(
        self,
        ask: Ask,
        *,
        recheck: Recheck | None,
        read: Read[Output],
        make: Callable[[Miss | Stale], Flow[Made[Output]]],
    ) -> Flow[Output]:
        """Answer from the cache, else make and store; equal requests that run at once share it.

        Args:
            ask: what `ask` returned for the request.
            recheck: gives the evidence of a question now.
            read: returns the caller's own copy of a stored answer, with these fields beside it;
                raises `CodecError` where that cannot be read.
            make: makes the answer after a lookup that found none. Its failure is the caller's.
        """
        if recheck is None:  # an exact hit needs nobody else's making, and makes nobody wait
            at_once = yield from self._exact(ask, read)
            if at_once is not None:
                return at_once.output
        given: list[Output] = []  # to this very caller
        key = self.place(ask)

        def look_or_make(since: int | None) -> Flow[Landed[_Shared]]:
            found = yield from self.look(ask, recheck=recheck, read=read)
            if isinstance(found, Found):
                given.append(found.output)
                shared = _Shared(found.outcome, found.outcome.answer, made=False)
                return Landed(shared, self.core.as_of(found.outcome, since))
            turn = yield from self.core.turn(ask, key, lambda: self.again(ask, recheck, read))
            if turn.found is not None:
                given.append(turn.found.output)
                outcome = turn.found.outcome
                return Landed(_Shared(outcome, outcome.answer, made=False), since)
            return (yield from self.core.turns.held(turn.ticket, made(found, since)))

        def made(found: Miss | Stale, since: int | None) -> Flow[Landed[_Shared]]:
            fresh = yield from make(found)
            given.append(fresh.output)
            sequence = yield from self.core.sequence()
            late = yield from self._kept(ask.request, fresh, found)
            return Landed(_Shared(found, fresh.answer, made=True), since if late else sequence)

        shared = yield from self.core.together(key, look_or_make, self._driven)
        if not given:
            given += self._copied(shared.value, read)
        if not given:
            yield from look_or_make(None)
        return given[-1]

    def _exact(self, ask: Ask, read: Read[Output]) -> Flow[Found[Output] | None]:
        """Look up this very question and read; what is no hit is found, and counted, later.

        So is an entry that cannot be read, or has too little.
        """
        hit = yield from self._guarded(lambda: flows.exact(ask), "lookup")
        if not isinstance(hit, Hit):
            return None
        try:
            found = Found(hit, read(hit.entry.answer, fields(hit)))
        except (CodecError, TooFew):
            return None
        self.core.counted(ask, hit)
        return found

    def again(
        self, ask: Ask, recheck: Recheck | None, read: Read[Output]
    ) -> Flow[Found[Output] | None]:
        """Look whether another process has made the answer to this very question meanwhile."""
        if recheck is None:
            return (yield from self._exact(ask, read))
        once = replace(ask, sampled=False)  # its pair was drawn when it was looked up first
        found = yield from self.look(once, recheck=recheck, read=read)
        return found if isinstance(found, Found) else None

    def place(self, ask: Ask) -> tuple[str, ...]:
        """Return what makes two concurrent requests of this adapter the same."""
        return (self._kind, *flight_key(ask))

    def _kept(self, request: Request, made: Made[Output], outcome: Outcome) -> Flow[bool]:
        """Store what was made, if it has a stored form; tell whether it came too late."""
        if made.answer is None:
            return False
        kept = Kept(made.answer, made.evidence, made.readings)
        done = yield from self.update(request, kept, outcome=outcome)
        return is_late(done)

    def look(
        self, ask: Ask, *, read: Read[Output], recheck: Recheck | None = None
    ) -> Flow[Found[Output] | Miss | Stale]:
        """Look up and read; an entry that cannot be read is dropped, and no hit.

        After that it is looked up once more, for the fence of the answer that is made now. Where
        that finds another unreadable one there is no fence, so the answer will not be stored.
        """
        for _ in range(2):
            outcome = yield from self._lookup(ask, recheck)
            if isinstance(outcome, Miss) or (isinstance(outcome, Stale) and not ask.allow_stale):
                return outcome
            try:
                report = fields(outcome) if isinstance(outcome, Hit) else stale_fields(outcome)
                return Found(outcome, read(outcome.entry.answer, report))
            except TooFew as error:
                return (yield from self.passed_over(ask, str(error)))
            except CodecError as error:
                unreadable = error
            yield from self._drop(outcome, unreadable)
        return Miss(reason=Reason.CORRUPT, detail="the stored answer is unreadable")

    def passed_over(self, ask: Ask, detail: str) -> Flow[Miss]:
        """Return the Miss of a request whose entry is sound, but is not what is asked for.

        An answer that is made after it may be stored; what was read by then is fenced.
        """
        fence = yield from self.core.sequence()
        return Miss(
            reason=Reason.NOT_FOUND,
            detail=detail,
            identity=None if fence is None else ask.identity,  # who knows no fence stores nothing
            scope=ask.scope,
            settings=ask.request.runs.digest,
            fence=fence or 0,
            controls=ask.controls,
            slot=ask.slot,
        )

    def _copied(self, shared: _Shared, read: Read[Output]) -> list[Output]:
        """Return the own copy of one who waited; nothing where it has to make its own."""
        if shared.answer is None:
            return []
        try:
            copy = read(shared.answer, self._report_of(shared))
        except TooFew:
            return []
        except CodecError as error:
            self.core.counters.note("adapter.undecodable", error)
            return []
        self.followed(shared.outcome)
        return [copy]

    def _report_of(self, shared: "_Shared") -> CacheFields:
        if isinstance(shared.outcome, Stale) and not shared.made:
            return stale_fields(shared.outcome)
        assert shared.answer is not None
        return shared_fields(shared.outcome, shared.answer)

    def _lookup(self, ask: Ask, recheck: Recheck | None) -> Flow[Outcome]:
        looking = self._guarded(lambda: answered(self.core.lookup_now(ask), recheck), "lookup")
        return (yield from looking)

    def update(
        self,
        request: Request,
        kept: Kept,
        *,
        outcome: Outcome | None,
    ) -> Flow[Update | Miss]:
        """Store an answer, if it may be stored; a Miss where that failed."""
        updating = self._guarded(
            lambda: self.core.update(request, kept.answer, outcome, kept.evidence, kept.readings),
            "update",
        )
        return (yield from updating)

    def _drop(self, outcome: Hit | Stale, error: Exception) -> Flow[None]:
        """Purge an entry whose payload cannot be read, and count it."""
        self.core.counters.note("adapter.undecodable", error)
        yield from self._guarded(lambda: flows.remove(outcome.entry), "drop")

    def kept(self, keep: Callable[[], Kept | None]) -> Kept | None:
        """Return the stored form that an adapter gives, or nothing: then that is counted."""
        try:
            kept = keep()
        except Exception as error:  # noqa: BLE001 - counted; the answer is given, but not stored
            self.failed("not_storable", error)
            return None
        if kept is None:
            self.event("adapter.not_storable")
        return kept

    def explain(self, ask: Ask, recheck: Recheck | None = None) -> Flow[Explanation]:
        """Tell which check would decide about a request now; here a failure is an error."""
        unrecorded = replace(ask, record=False, sampled=False, explains=True)
        return (yield from answered(self.core.explain(ask.request, unrecorded), recheck))

    def followed(self, outcome: Outcome) -> None:
        """Count a request that got what an equal one was just given."""
        if isinstance(outcome, Hit):
            self.core.counters.outcome(outcome, outcome.entry.identity.scope)
        else:
            scope = outcome.identity.scope if outcome.identity is not None else ""
            self.core.counters.followed(scope)

    def bypassed(self, miss: Miss) -> None:
        """Count a request in which the cache takes no part."""
        self.core.counters.outcome(miss, "")

    def event(self, name: str) -> None:
        """Count something else that happened to an adapter."""
        self.core.counters.event(name)

    def failed(self, what: str, error: Exception) -> None:
        """Count and log a failure of the cache that the application does not see."""
        if self.core.strict:
            raise error
        self.core.counters.note(f"adapter.{what}", error)

    def _unscoped(self, error: ScopeError) -> Miss:
        self.core.counters.event("adapter.unscoped")
        return Miss(reason=Reason.UNSCOPED, detail=str(error))

    def _guarded(self, begin: Callable[[], Flow[Result]], what: str) -> Flow[Result | Miss]:
        """Run a part of the cache; where it fails, count it and return a Miss."""
        try:
            return (yield from begin())
        except ScopeError as error:
            return self._unscoped(error)
        except Exception as error:  # noqa: BLE001 - counted; the application runs without the cache
            self.failed(what, error)
            return Miss(reason=Reason.STORE_ERROR, detail=f"the {what} failed")
