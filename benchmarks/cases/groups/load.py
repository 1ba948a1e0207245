"""J: many at once."""

import asyncio
import gc
import inspect
import multiprocessing
import tempfile
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.cases.groups.equal import PARAPHRASE
from benchmarks.cases.meaning import WatchedEmbedder
from benchmarks.cases.rig import App, Rig, Suite, other
from benchmarks.cases.words import QUESTION, Ability, Call
from stampcache import Request, Scope, open_cache
from stampcache.corpora import Reach
from stampcache.model import Entry, Vector
from stampcache.ports import Receipt
from stampcache.stores.sqlite import SqliteStore

SUITE = Suite()
TOO_LONG_S = 10.0


class Free:
    """Waits until an event loop has done something else; ``stuck`` where it could not."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.waits = 0
        self.stuck = False

    def wait(self) -> None:
        """Return once the loop has gone on."""
        if self.loop is None:
            return
        went_on = threading.Event()
        self.loop.call_soon_threadsafe(went_on.set)
        self.waits += 1
        self.stuck = self.stuck or not went_on.wait(TOO_LONG_S)


class PatientEmbedder(WatchedEmbedder):
    """Embeds once the loop has gone on."""

    def __init__(self, free: Free) -> None:
        super().__init__()
        self._free = free

    def embed(self, texts: Sequence[str]) -> Vector:
        """Embed, while the loop must be free."""
        self._free.wait()
        return super().embed(texts)


class PatientStore(SqliteStore):
    """Reads and writes once the loop has gone on."""

    def __init__(self, path: Path, free: Free) -> None:
        super().__init__(path)
        self._free = free

    def fetch(self, partition: str, key: str) -> Entry | None:
        """Read, while the loop must be free."""
        self._free.wait()
        return super().fetch(partition, key)

    def put(
        self, entry: Entry, vector: Vector | None, fence: int, reach: Reach | None = None
    ) -> Receipt:
        """Write, while the loop must be free."""
        self._free.wait()
        return super().put(entry, vector, fence, reach)


async def _ask_while(free: Free, app: App, *calls: Call) -> None:
    free.loop = asyncio.get_running_loop()
    for call in calls:
        await app.aask(call)
    free.loop = None


@SUITE.case("J1/J6/J7", "nothing blocks the event loop", Ability.MEANING)
def the_loop_goes_on(rig: Rig) -> None:
    """While a question is embedded, other tasks run; whether it is a miss, an update or a hit."""
    free = Free()
    with other(rig, embedder=PatientEmbedder(free)) as patient:
        calls = (Call(), Call(question=PARAPHRASE), Call(question="Something else?"))
        asyncio.run(_ask_while(free, patient.app(), *calls))
    assert free.waits > 1 and not free.stuck


@SUITE.case("J1/J6/J7 (store)", "no store blocks the event loop", Ability.STAMPED)
def the_loop_goes_on_beside_a_store(rig: Rig) -> None:
    """While a file is read and written, other tasks run."""
    free = Free()
    with tempfile.TemporaryDirectory() as folder:
        store = PatientStore(Path(folder) / "cache.db", free)
        with other(rig, store=store) as patient:
            asyncio.run(_ask_while(free, patient.app(), Call(), Call(), Call(question="Else?")))
    assert free.waits > 1 and not free.stuck


@SUITE.case("J3/J4", "many may write one key")
def many_writers(rig: Rig) -> None:
    """Sixteen threads with the same few questions: no error, and one answer each in the end."""
    app = rig.app()
    questions = [f"Question {number}?" for number in range(4)]

    def ask(number: int) -> str:
        return app.ask(Call(question=questions[number % 4])).text

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(ask, range(160)))
    settled = [app.ask(Call(question=question)).text for question in questions]
    assert settled == [app.ask(Call(question=question)).text for question in questions]
    assert len(set(settled)) == 4
    if rig.has(Ability.BOUNDED):
        assert rig.size == 4
    if rig.has(Ability.CORE):
        _writers_of_processes()


def _writers_of_processes() -> None:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'cache.db'}"
        open_cache(url).close()
        writers = [context.Process(target=write_often, args=(url,)) for _ in range(3)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert [writer.exitcode for writer in writers] == [0, 0, 0]
        with open_cache(url) as cache:
            assert cache.core.store.stats().entries == 1 and not cache.core.store.problems()


def write_often(url: str) -> None:
    """Write one key again and again, in a process of its own."""
    with open_cache(url, strict=True) as cache:
        for number in range(30):
            cache.update(Request(question=QUESTION), f"Answer {number}")


@SUITE.case("J8/J10", "a hundred equal requests are one", Ability.FLIGHTS)
def equal_questions_of_tasks(rig: Rig) -> None:
    """One answer is made, and one question embedded, among the tasks of a loop."""
    app = rig.app()
    batches = rig.embedder.batches if rig.has(Ability.MEANING) else 0

    async def all_at_once() -> list[str]:
        return list(await asyncio.gather(*(app.ashare(Call()) for _ in range(100))))

    assert len(set(asyncio.run(all_at_once()))) == 1 and app.calls == 1
    if rig.has(Ability.MEANING):
        assert rig.embedder.batches - batches == 1


@SUITE.case("J11", "a request embeds once", Ability.MEANING)
def one_embedding(rig: Rig) -> None:
    """For lookup and update together; and an exact hit not at all."""
    app = rig.app()
    rig.embedder.forget()
    app.ask(Call())
    assert rig.embedder.texts == [QUESTION]
    app.ask(Call())
    assert rig.embedder.texts == [QUESTION]
    app.ask(Call(question=PARAPHRASE))
    assert rig.embedder.texts == [QUESTION, PARAPHRASE]


@SUITE.case("J13", "nothing grows with threads or loops")
def threads_and_loops(rig: Rig) -> None:
    """A loop or a thread that is over is forgotten."""
    app = rig.app()
    app.ask(Call())
    asyncio.run(app.aask(Call()))
    threads, loops = threading.active_count(), weakref.WeakSet[asyncio.AbstractEventLoop]()

    async def ask(number: int) -> None:
        loops.add(asyncio.get_running_loop())
        await app.aask(Call(question=f"Question {number}?"))

    for number in range(12):
        asyncio.run(ask(number))
        thread = threading.Thread(target=app.ask, args=(Call(question=f"Thread {number}?"),))
        thread.start()
        thread.join()
    assert threading.active_count() <= threads + 1
    gc.collect()
    assert len(loops) <= 1


@SUITE.case("J15", "callers do not see each other's answers")
def no_state_of_a_request_is_shared(rig: Rig) -> None:
    """Under load, everybody is given the answer to what was asked, by whom it was asked."""
    app = rig.app()

    def ask(number: int) -> bool:
        question = f"Question {number % 10} of {number % 4}?"
        tenant = f"tenant-{number % 4}" if rig.has(Ability.TENANTS) else None
        return app.ask(Call(question=question, tenant=tenant)).text.endswith(question)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(160)))
    if rig.has(Ability.CORE):
        _no_mutable_defaults()


def _no_mutable_defaults() -> None:
    import stampcache

    for name in stampcache.__all__:
        public = getattr(stampcache, name)
        if not callable(public) or (isinstance(public, type) and issubclass(public, Exception)):
            continue
        for option, parameter in inspect.signature(public).parameters.items():
            is_mutable = isinstance(parameter.default, list | set | bytearray)
            assert not is_mutable, f"{name}({option}=)"
    assert Request().params is not Request(params={"a": 1}).params
    assert Scope() == Scope()
