"""The effects that flows ask for, and the two drivers that carry them out.

A flow (`stampcache.flows`) is a generator: it yields effects and returns an outcome. Inside a flow,
``entry = yield from Fetch(...)`` has the type that the effect answers with. A driver performs each
effect on ports and sends the answer back; what fails comes back into the flow as one of our errors,
so that the decision what a failure means is taken in one place, for sync and async alike.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from stampcache.errors import (
    ConfigError,
    EmbedderError,
    RetrieverError,
    StoreError,
    VerifierError,
)
from stampcache.model import Candidate, Entry, Evidence, Selector, Vector
from stampcache.ports import AsyncStore, Embedded, Receipt, Store, Verifier

Result = TypeVar("Result")
Done = TypeVar("Done")


class Effect(Struct, Generic[Result], frozen=True):
    """A request for IO; ``yield from`` it to get its typed answer."""

    def __iter__(self) -> "Generator[Effect[Any], Any, Result]":
        answer: Result = yield self
        return answer


class Fetch(Effect[Entry | None], frozen=True):
    """The entry at an address."""

    partition: str
    key: str


class Touch(Effect[None], frozen=True):
    """Note that an entry was served to the question with ExactKey ``asked``."""

    entry: Entry
    asked: str


class Fence(Effect[int], frozen=True):
    """The fence: the sequence of the last change."""


class Embed(Effect[Embedded], frozen=True):
    """The vector of a question."""

    question: str


class Nearest(Effect[Sequence[Candidate]], frozen=True):
    """Live neighbours by falling similarity."""

    partition: str
    vector: Vector
    k: int
    asked: str
    now: float


class Verify(Effect[float], frozen=True):
    """The probability that two questions are the same."""

    asked: str
    stored: str


class Retrieve(Effect[Sequence[Evidence]], frozen=True):
    """What a question retrieves now."""

    question: str


class Put(Effect[Receipt], frozen=True):
    """Store an entry unless its fence refuses it."""

    entry: Entry
    vector: Vector | None
    fence: int


class Invalidate(Effect[int], frozen=True):
    """Delete what a change made untrue."""

    selector: Selector


class Clear(Effect[int], frozen=True):
    """Delete all entries of a scope."""

    scope: str


class ReportBad(Effect[bool], frozen=True):
    """Delete an entry and never serve it again to the questions it was wrongly served to."""

    entry_id: str


class Note(Effect[None], frozen=True):
    """Count and log a failure that the application must not see."""

    what: str
    error: Exception


Flow: TypeAlias = Generator[Effect[Any], Any, Done]
NoteError: TypeAlias = Callable[[str, Exception], None]


class Ports(Struct, frozen=True, kw_only=True):
    """What a sync driver performs effects on."""

    store: Store
    note: NoteError
    embed: Callable[[str], Embedded] | None = None
    verifier: Verifier | None = None
    retrieve: Callable[[str], Sequence[Evidence]] | None = None


class AsyncPorts(Struct, frozen=True, kw_only=True):
    """What an async driver performs effects on."""

    store: AsyncStore
    note: NoteError
    embed: Callable[[str], Awaitable[Embedded]] | None = None
    verifier: Verifier | None = None
    retrieve: Callable[[str], Awaitable[Sequence[Evidence]]] | None = None


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
        case Fence():
            return store.sequence()
        case Embed():
            return _given(ports.embed, "embedder")(effect.question)
        case Nearest():
            return store.nearest(
                effect.partition, effect.vector, effect.k, asked=effect.asked, now=effect.now
            )
        case Verify():
            return float(_given(ports.verifier, "verifier").score(effect.asked, effect.stored))
        case Retrieve():
            return tuple(_given(ports.retrieve, "retriever")(effect.question))
        case Put():
            return store.put(effect.entry, effect.vector, effect.fence)
        case Invalidate():
            return store.invalidate(effect.selector)
        case Clear():
            return store.clear(effect.scope)
        case ReportBad():
            return store.report_bad(effect.entry_id)
        case Note():
            ports.note(effect.what, effect.error)
            return None
        case _:
            raise _NoDriver(f"no driver for {type(effect).__name__}")


async def _aperform(effect: Effect[Any], ports: AsyncPorts) -> object:
    store = ports.store
    match effect:
        case Fetch():
            return await store.fetch(effect.partition, effect.key)
        case Touch():
            await store.touch(effect.entry, effect.asked)
            return None
        case Fence():
            return await store.sequence()
        case Embed():
            return await _given(ports.embed, "embedder")(effect.question)
        case Nearest():
            return await store.nearest(
                effect.partition, effect.vector, effect.k, asked=effect.asked, now=effect.now
            )
        case Verify():
            score = _given(ports.verifier, "verifier").score
            return float(await asyncio.to_thread(score, effect.asked, effect.stored))
        case Retrieve():
            return tuple(await _given(ports.retrieve, "retriever")(effect.question))
        case Put():
            return await store.put(effect.entry, effect.vector, effect.fence)
        case Invalidate():
            return await store.invalidate(effect.selector)
        case Clear():
            return await store.clear(effect.scope)
        case ReportBad():
            return await store.report_bad(effect.entry_id)
        case Note():
            ports.note(effect.what, effect.error)
            return None
        case _:
            raise _NoDriver(f"no driver for {type(effect).__name__}")


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
        case Embed():
            known: tuple[type[Exception], ...] = (EmbedderError, StoreError, ConfigError)
        case Verify():
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
