"""Both drivers: the same flow meets the same answers and the same failures on either."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from stampcache.drivers import AsyncPorts, Ports, arun, run
from stampcache.effects import (
    Clear,
    Compare,
    Effect,
    Embed,
    Fence,
    Fenced,
    Fetch,
    Flow,
    Invalidate,
    Nearest,
    Note,
    OnCorpora,
    OnJournal,
    OnShelf,
    Purge,
    Put,
    Read,
    Remove,
    Renew,
    ReportBad,
    Retrieve,
    Step,
    Suspect,
    Touch,
    Verify,
    answered,
)
from stampcache.errors import (
    ConfigError,
    EmbedderError,
    RetrieverError,
    StampCacheError,
    StoreError,
    VerifierError,
    WindowError,
)
from stampcache.model import Entry, Evidence, Selector
from stampcache.ports import AsyncStore, Embedded, Receipt
from stampcache.stores.aio import InlineStore
from stampcache.stores.memory import MemoryStore
from stampcache.testing import ScriptedReader, ScriptedVerifier, run_script
from stampcache.testing.contract import NOW, make_entry, unit
from stampcache.testing.doubles import ScriptedReading

CHUNK = Evidence(text="t")
Drive = Callable[[Flow[Any]], Any]


class World:
    """Ports that work, and the notes that were made on them."""

    def __init__(self, store: MemoryStore | None = None, *, bare: bool = False) -> None:
        self.store = store or MemoryStore()
        self.notes: list[str] = []
        self.bare = bare
        self.retrieved: object = [CHUNK]
        self.verifier: Any = ScriptedVerifier({("a", "b"): 0.7})

    def note(self, what: str, error: Exception) -> None:
        self.notes.append(f"{what}: {error}")

    def embed(self, question: str) -> Embedded:
        if question == "long":
            raise WindowError("too long")
        if question == "bad":
            raise ZeroDivisionError("no vector")
        return Embedded(unit(1, 0), "1.000")

    async def aembed(self, question: str) -> Embedded:
        await asyncio.sleep(0)
        return self.embed(question)

    def retrieve(self, question: str) -> Any:
        if question == "bad":
            raise ConnectionError("no index")
        return self.retrieved

    async def aretrieve(self, question: str) -> Any:
        await asyncio.sleep(0)
        return self.retrieve(question)

    def drive(self, flow: Flow[Any]) -> Any:
        ports = Ports(
            store=self.store,
            note=self.note,
            embed=None if self.bare else self.embed,
            suspect=None if self.bare else lambda: True,
            verifier=None if self.bare else self.verifier,
            retrieve=None if self.bare else self.retrieve,
        )
        return run(flow, ports)

    def adrive(self, flow: Flow[Any]) -> Any:
        ports = AsyncPorts(
            store=self.store.aio(),
            note=self.note,
            embed=None if self.bare else self.aembed,
            suspect=None if self.bare else lambda: True,
            verifier=None if self.bare else self.verifier,
            retrieve=None if self.bare else self.aretrieve,
        )
        return asyncio.run(arun(flow, ports))

    def driver(self, kind: str) -> Drive:
        return self.drive if kind == "sync" else self.adrive


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def one(effect: Effect[Any]) -> Flow[Any]:
    return (yield from effect)


def caught(effect: Effect[Any], closed: list[str] | None = None) -> Flow[Any]:
    """Return the error that the effect fails with, as the flow sees it."""
    try:
        yield from effect
    except StampCacheError as error:
        return error
    finally:
        if closed is not None:
            closed.append("closed")
    raise AssertionError("it did not fail")


async def _aio() -> str:
    await asyncio.sleep(0)
    return "async"


def every_effect() -> Flow[list[Any]]:
    entry = make_entry("k", evidence=(CHUNK,))
    vector = unit(1, 0)
    answers: list[Any] = []
    answers.append((yield from Fence()))
    answers.append((yield from Put(entry, vector, 0)))
    answers.append((yield from Fetch("p", "k")))
    yield from Touch(entry, "asked")
    answers.append((yield from Embed("q")).norm)
    answers.append([c.entry for c in (yield from Nearest("p", vector, 3, "asked", NOW))])
    answers.append((yield from Verify("a", "b")))
    answers.append((yield from Retrieve("q")))
    yield from Note("what", ValueError("why"))
    answers.append((yield from ReportBad(entry.id)))
    answers.append((yield from Put(entry, vector, 9)))
    yield from Renew(entry, NOW + 1)
    answers.append((yield from Suspect()))
    answers.append((yield from Fenced(entry, 0)))
    answers.append((yield from Invalidate(Selector(entry="absent"))))
    answers.append((yield from Remove(entry)))
    answers.append((yield from Purge(NOW + 2)))
    answers.append((yield from Step(sync=lambda: "sync", aio=_aio)))
    answers.append((yield from Clear("s")))
    return answers


def test_every_effect_is_answered(kind: str) -> None:
    world = World()
    entry = make_entry("k", evidence=(CHUNK,))
    assert world.driver(kind)(every_effect()) == [
        0,
        Receipt(stored=True),
        entry,
        "1.000",
        [entry],
        0.7,
        (CHUNK,),
        True,
        Receipt(stored=True),
        True,
        "",
        0,
        True,
        0,
        kind,
        0,
    ]
    assert world.notes == ["what: why"]


class Broken(MemoryStore):
    """A store whose driver's own exceptions come through."""

    def fetch(self, partition: str, key: str) -> Entry | None:
        raise OSError("disk")

    def sequence(self) -> int:
        raise StopIteration("odd")

    def aio(self) -> AsyncStore:
        return InlineStore(self)


@pytest.mark.parametrize(
    ("effect", "expected", "said"),
    [
        (Fetch("p", "k"), StoreError, "OSError: disk"),
        (Fence(), StoreError, "StopIteration"),
        (Embed("bad"), EmbedderError, "ZeroDivisionError: no vector"),
        (Embed("long"), WindowError, "too long"),
        (Verify("x", "y"), VerifierError, "no score is written"),
        (Retrieve("bad"), RetrieverError, "ConnectionError: no index"),
    ],
)
def test_a_foreign_exception_is_translated(
    kind: str, effect: Effect[Any], expected: type[StampCacheError], said: str
) -> None:
    closed: list[str] = []
    error = World(Broken()).driver(kind)(caught(effect, closed))
    assert type(error) is expected
    assert said in str(error)
    assert closed == ["closed"]


def test_a_translated_exception_keeps_its_cause(kind: str) -> None:
    error = World().driver(kind)(caught(Retrieve("bad")))
    assert isinstance(error.__cause__, ConnectionError)


@pytest.mark.parametrize("retrieved", [None, 5])
def test_a_retriever_that_gives_no_sequence_has_failed(kind: str, retrieved: object) -> None:
    world = World()
    world.retrieved = retrieved
    assert isinstance(world.driver(kind)(caught(Retrieve("q"))), RetrieverError)


@pytest.mark.parametrize("score", [None, "high"])
def test_a_verifier_that_gives_no_number_has_failed(kind: str, score: object) -> None:
    world = World()
    world.verifier = ScriptedVerifier({("a", "b"): score})  # type: ignore[dict-item]  # wrong on purpose
    assert isinstance(world.driver(kind)(caught(Verify("a", "b"))), VerifierError)


def test_a_verifier_that_reads_is_given_what_it_saw_before(kind: str) -> None:
    world = World()
    world.verifier = reader = ScriptedReader({("a", "b"): 0.7})

    def flow() -> Flow[float]:
        asking = yield from Read("a")
        return (yield from Compare(asking, "b", b"seen", 0.9))

    assert world.driver(kind)(flow()) == 0.7
    assert (reader.read, reader.compared) == (["a"], [("a", "b", b"seen")])


def test_whatever_a_verifier_that_reads_raises_is_its_failure(kind: str) -> None:
    class Odd(ScriptedReader):
        def asking(self, question: str) -> ScriptedReading:
            raise KeyError(question)

    world = World()
    world.verifier = Odd({})
    assert isinstance(world.driver(kind)(caught(Read("a"))), VerifierError)


def test_what_the_flow_does_not_catch_is_raised_and_the_flow_is_closed(kind: str) -> None:
    closed: list[str] = []

    def flow() -> Flow[None]:
        try:
            yield from Fetch("p", "k")
        finally:
            closed.append("closed")

    with pytest.raises(StoreError, match="disk"):
        World(Broken()).driver(kind)(flow())
    assert closed == ["closed"]


@pytest.mark.parametrize("error", [ConfigError("wrong"), AssertionError("bug")])
def test_whatever_a_store_raises_is_a_store_error(kind: str, error: Exception) -> None:
    class Raising(MemoryStore):
        def fetch(self, partition: str, key: str) -> Entry | None:
            raise error

        def aio(self) -> AsyncStore:
            return InlineStore(self)

    with pytest.raises(StoreError, match=str(error)):
        World(Raising()).driver(kind)(one(Fetch("p", "k")))


@pytest.mark.parametrize(
    ("effect", "name"),
    [(Embed("q"), "embedder"), (Verify("a", "b"), "verifier"), (Retrieve("q"), "retriever")],
)
def test_a_flow_that_asks_for_what_is_not_there_is_a_bug(
    kind: str, effect: Effect[Any], name: str
) -> None:
    with pytest.raises(AssertionError, match=f"asked for a {name}"):
        World(bare=True).driver(kind)(one(effect))


def test_an_effect_without_a_driver_is_a_bug(kind: str) -> None:
    class Unknown(Effect[None], frozen=True):
        """Nobody performs it."""

    with pytest.raises(AssertionError, match="no driver for Unknown"):
        World().driver(kind)(one(Unknown()))


def test_a_cancelled_task_closes_its_flow() -> None:
    closed: list[str] = []

    def flow() -> Flow[Sequence[Evidence]]:
        try:
            return (yield from Retrieve("q"))
        finally:
            closed.append("closed")

    async def body() -> None:
        started = asyncio.Event()

        async def never(question: str) -> Sequence[Evidence]:
            started.set()
            await asyncio.Event().wait()
            return ()

        ports = AsyncPorts(store=MemoryStore().aio(), note=lambda what, error: None, retrieve=never)
        task = asyncio.create_task(arun(flow(), ports))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(body())
    assert closed == ["closed"]


def test_a_script_says_where_a_flow_leaves_it() -> None:
    with pytest.raises(AssertionError, match="expected Fence, not Fetch"):
        run_script(one(Fetch("p", "k")), [(Fence, 0)])
    with pytest.raises(AssertionError, match="the script has ended"):
        run_script(one(Fetch("p", "k")), [])
    with pytest.raises(AssertionError, match="ended before Fence"):
        run_script(one(Fetch("p", "k")), [(Fetch, None), (Fence, 0)])
    with pytest.raises(StoreError):
        run_script(one(Fetch("p", "k")), [(Fetch, StoreError("down"))])


# -- a flow inside another one ---------------------------------------------------------------------


def asking(question: str) -> Flow[Any]:
    """Return what a question retrieves and the fence, or the error that the flow sees."""
    try:
        found = yield from Retrieve(question)
    except RetrieverError as error:
        return error
    return (found, (yield from Fence()))


def retrieving(question: str) -> Flow[Sequence[Evidence]]:
    if question == "bad":
        raise ConnectionError("no index")
    if question == "known":
        raise RetrieverError("said so")
    return (yield from Step(sync=lambda: [CHUNK], aio=_chunks))


async def _chunks() -> list[Evidence]:
    await asyncio.sleep(0)
    return [CHUNK]


def test_a_retrieval_is_answered_by_a_flow(kind: str) -> None:
    drive = World(bare=True).driver(kind)
    assert drive(answered(asking("q"), retrieving)) == ((CHUNK,), 0)


@pytest.mark.parametrize(("question", "said"), [("bad", "ConnectionError: no"), ("known", "said")])
def test_a_retrieval_that_fails_comes_into_the_flow(kind: str, question: str, said: str) -> None:
    error = World(bare=True).driver(kind)(answered(asking(question), retrieving))
    assert isinstance(error, RetrieverError)
    assert said in str(error)


def test_other_effects_pass_with_their_failures(kind: str) -> None:
    drive = World(Broken()).driver(kind)
    assert isinstance(drive(answered(caught(Fetch("p", "k")), retrieving)), StoreError)


def test_without_a_retrieval_of_its_own_the_ports_answer(kind: str) -> None:
    assert World().driver(kind)(answered(asking("q"), None)) == ((CHUNK,), 0)


def test_what_a_step_raises_keeps_its_name(kind: str) -> None:
    def fails() -> str:
        raise LookupError("the application's own")

    async def afails() -> str:
        return fails()

    with pytest.raises(LookupError, match="own"):
        World().driver(kind)(one(Step(sync=fails, aio=afails)))


@pytest.mark.parametrize("effect", [OnCorpora(), OnJournal(), OnShelf()])
def test_an_effect_that_says_not_what_it_does_is_none(
    effect: OnCorpora[None] | OnJournal[None] | OnShelf[None],
) -> None:
    with pytest.raises(NotImplementedError):
        effect.on(None)  # type: ignore[arg-type]  # nothing is done with it
