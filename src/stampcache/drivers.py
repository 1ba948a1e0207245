"""The two drivers: they carry out the effects of a flow on sync or on async ports (ADR 0002).

Whatever a port raises is given a name under which flows know it; what fails in a `Step` is the
application's own and keeps its name.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from msgspec import Struct

from stampcache.due import Due
from stampcache.effects import (
    AskJudge,
    Because,
    Clear,
    Compare,
    Early,
    Effect,
    Embed,
    Fence,
    Fenced,
    Fetch,
    Flow,
    Forget,
    Invalidate,
    Late,
    Nearest,
    Note,
    Notice,
    OnCorpora,
    OnJournal,
    OnShelf,
    Paced,
    Proved,
    Purge,
    Put,
    Read,
    Remove,
    Renew,
    ReportBad,
    Retrieve,
    SamePairs,
    StandingOf,
    Step,
    Suspect,
    Touch,
    Verify,
)
from stampcache.errors import (
    ConfigError,
    EmbedderError,
    RetrieverError,
    StoreError,
    VerifierError,
)
from stampcache.model import Evidence
from stampcache.noticed import Noticed
from stampcache.ports import (
    AsyncStore,
    Embedded,
    EquivalenceJudge,
    Explaining,
    Judge,
    ReadingVerifier,
    Store,
    Verifier,
)
from stampcache.verify import AnyVerifier

Done = TypeVar("Done")
NoteError: TypeAlias = Callable[[str, Exception], None]


class Ports(Struct, frozen=True, kw_only=True):
    """What a sync driver performs effects on."""

    store: Store
    note: NoteError
    embed: Callable[[str], Embedded] | None = None
    suspect: Callable[[], bool] | None = None
    verifier: AnyVerifier | None = None
    retrieve: Callable[[str], Sequence[Evidence]] | None = None
    judge: Judge | None = None
    due: Due | None = None
    noticed: Noticed | None = None
    equivalence: EquivalenceJudge | None = None


class AsyncPorts(Struct, frozen=True, kw_only=True):
    """What an async driver performs effects on."""

    store: AsyncStore
    note: NoteError
    embed: Callable[[str], Awaitable[Embedded]] | None = None
    suspect: Callable[[], bool] | None = None
    verifier: AnyVerifier | None = None
    retrieve: Callable[[str], Awaitable[Sequence[Evidence]]] | None = None
    judge: Judge | None = None
    due: Due | None = None
    noticed: Noticed | None = None
    equivalence: EquivalenceJudge | None = None


def run(flow: Flow[Done], ports: Ports) -> Done:
    """Drive a flow to its outcome on sync ports."""
    try:
        effect = next(flow)
        while True:
            try:
                answer = _perform(effect, ports)
            except Exception as error:  # noqa: BLE001 - the flow decides what it means
                effect = flow.throw(_translated(effect, error))
            else:
                effect = flow.send(answer)
    except StopIteration as end:
        done: Done = end.value
        return done
    finally:
        flow.close()


async def arun(flow: Flow[Done], ports: AsyncPorts) -> Done:
    """Drive a flow to its outcome on async ports."""
    try:
        effect = next(flow)
        while True:
            try:
                answer = await _aperform(effect, ports)
            except Exception as error:  # noqa: BLE001 - the flow decides what it means
                effect = flow.throw(_translated(effect, error))
            else:
                effect = flow.send(answer)
    except StopIteration as end:
        done: Done = end.value
        return done
    finally:
        flow.close()


def _perform(effect: Effect[Any], ports: Ports) -> object:
    store = ports.store
    match effect:
        case Fetch():
            return store.fetch(effect.partition, effect.key)
        case Touch():
            store.touch(effect.entry, effect.asked)
            return None
        case Early():
            return _given(ports.due, "list").early(effect.entry, effect.now)
        case Step():
            return effect.sync()
        case StandingOf():
            return store.corpora.standing(effect.corpus)
        case Renew():
            store.renew(effect.entry, effect.expires_at)
            return None
        case Remove():
            return store.remove(effect.entry)
        case Purge():
            return store.purge(effect.now)
        case Fence():
            return store.sequence()
        case Nearest():
            return store.nearest(
                effect.partition, effect.vector, effect.k, asked=effect.asked, now=effect.now
            )
        case Put():
            return store.put(effect.entry, effect.vector, effect.fence, effect.reach)
        case OnCorpora():
            return effect.on(store.corpora)
        case OnJournal():
            return effect.on(store.journal)
        case OnShelf():
            return effect.on(store.shelf)
        case Fenced():
            return store.fenced(effect.entry, effect.fence)
        case Invalidate():
            return store.invalidate(effect.selector)
        case Clear():
            return store.clear(effect.scope)
        case Forget():
            return store.forget(effect.tenant)
        case ReportBad():
            return store.report_bad(effect.entry_id)
        case _:
            return _perform_beside(effect, ports)


def _perform_beside(effect: Effect[Any], ports: Ports) -> object:
    """Perform what asks no store."""
    match effect:
        case Suspect():
            return _given(ports.suspect, "embedder")()
        case Embed():
            return _given(ports.embed, "embedder")(effect.question)
        case Verify():
            return float(_own(ports.verifier).score(effect.asked, effect.stored))
        case Read() | Compare() | Because():
            return _perform_reading(effect, ports.verifier)
        case Retrieve():
            return tuple(_given(ports.retrieve, "retriever")(effect.question))
        case AskJudge():
            return _given(ports.judge, "judge").judge(effect.facts)
        case SamePairs():
            return _given(ports.equivalence, "judge").compare(effect.pairs)
        case _:
            return _perform_at_once(effect, ports)


async def _aperform(effect: Effect[Any], ports: AsyncPorts) -> object:
    store = ports.store
    match effect:
        case Fetch():
            return await store.fetch(effect.partition, effect.key)
        case Touch():
            await store.touch(effect.entry, effect.asked)
            return None
        case Early():
            return _given(ports.due, "list").early(effect.entry, effect.now)
        case Step():
            return await effect.aio()
        case StandingOf():
            return await store.standing(effect.corpus)
        case Renew():
            await store.renew(effect.entry, effect.expires_at)
            return None
        case Remove():
            return await store.remove(effect.entry)
        case Purge():
            return await store.purge(effect.now)
        case Fence():
            return await store.sequence()
        case Nearest():
            return await store.nearest(
                effect.partition, effect.vector, effect.k, asked=effect.asked, now=effect.now
            )
        case Put():
            return await store.put(effect.entry, effect.vector, effect.fence, effect.reach)
        case OnCorpora():
            return await store.on_corpora(effect.on)
        case OnJournal():
            return await store.on_journal(effect.on)
        case OnShelf():
            return await store.on_shelf(effect.on)
        case Fenced():
            return await store.fenced(effect.entry, effect.fence)
        case Invalidate():
            return await store.invalidate(effect.selector)
        case Clear():
            return await store.clear(effect.scope)
        case Forget():
            return await store.forget(effect.tenant)
        case ReportBad():
            return await store.report_bad(effect.entry_id)
        case _:
            return await _aperform_beside(effect, ports)


async def _aperform_beside(effect: Effect[Any], ports: AsyncPorts) -> object:
    """Perform what asks no store."""
    match effect:
        case Suspect():
            return await asyncio.to_thread(_given(ports.suspect, "embedder"))
        case Embed():
            return await _given(ports.embed, "embedder")(effect.question)
        case Verify():
            score = _own(ports.verifier).score
            return float(await asyncio.to_thread(score, effect.asked, effect.stored))
        case Read() | Compare() | Because():  # microseconds, and no IO
            return _perform_reading(effect, ports.verifier)
        case Retrieve():
            return tuple(await _given(ports.retrieve, "retriever")(effect.question))
        case AskJudge():
            return await _given(ports.judge, "judge").ajudge(effect.facts)
        case SamePairs():
            return await _given(ports.equivalence, "judge").acompare(effect.pairs)
        case _:
            return _perform_at_once(effect, ports)


def _perform_at_once(effect: Effect[Any], ports: Ports | AsyncPorts) -> object:
    """Perform what blocks nobody, for threads and tasks alike."""
    match effect:
        case Late():
            return _given(ports.due, "list").late(effect.entry)
        case Proved():
            return _given(ports.due, "list").proved(effect.entry)
        case Notice():
            noticed = _given(ports.noticed, "list")
            noticed.add(effect.pair, doubtful=effect.doubtful, generation=effect.generation)
            return None
        case Paced():
            _given(ports.due, "list").paced(effect.period_s)
            return None
        case Note():
            ports.note(effect.what, effect.error)
            return None
        case _:
            raise _NoDriver(f"no driver for {type(effect).__name__}")


def _own(verifier: AnyVerifier | None) -> Verifier:
    """Return a verifier of the user's own, of which it is known that it scores pairs of texts."""
    return cast(Verifier, _given(verifier, "verifier"))


def _perform_reading(effect: Read | Compare | Because, verifier: AnyVerifier | None) -> object:
    if isinstance(effect, Compare):
        return float(effect.asking.score(effect.stored, effect.seen, effect.similarity))
    if isinstance(effect, Because):
        asking = effect.asking
        if not isinstance(asking, Explaining):
            return ()
        return tuple(map(str, asking.explain(effect.stored, effect.seen, effect.similarity)))
    reading = _given(verifier, "verifier")
    assert isinstance(reading, ReadingVerifier)
    return reading.asking(effect.question)


Port = TypeVar("Port")


class _NoDriver(AssertionError):
    """A flow asks for what it was not given: a mistake of ours, never of a port."""


def _given(port: Port | None, name: str) -> Port:
    if port is None:
        raise _NoDriver(f"the flow asked for a {name}, but none is configured")
    return port


def _translated(effect: Effect[Any], error: Exception) -> Exception:
    """Give whatever a port raises a name under which flows know it."""
    match effect:
        case Step():
            return error
        case Embed() | Suspect():
            known: tuple[type[Exception], ...] = (EmbedderError, StoreError, ConfigError)
        case Verify() | Read() | Compare() | Because():
            known = (VerifierError,)
        case Retrieve():
            known = (RetrieverError,)
        case _:
            known = (StoreError,)
    if isinstance(error, (_NoDriver, *known)):
        return error
    translated = known[0](f"{type(error).__name__}: {error}")
    translated.__cause__ = error
    return translated
