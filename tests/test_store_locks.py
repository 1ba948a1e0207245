"""While a long change holds a store's lock, neither an event loop nor a served hit waits for it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from stampcache.corpora import Change
from stampcache.model import Entry
from stampcache.ports import AsyncStore
from stampcache.stores.memory import MemoryStore
from stampcache.stores.sqlite import SqliteStore
from stampcache.testing.contract import NOW, make_entry, unit

ENTRY = make_entry("k")
Verb = Callable[[AsyncStore], Coroutine[Any, Any, object]]
VERBS: dict[str, Verb] = {
    "put": lambda store: store.put(make_entry("new"), None, 0),
    "fenced": lambda store: store.fenced(ENTRY, 0),
    "renew": lambda store: store.renew(ENTRY, NOW + 1),
    "remove": lambda store: store.remove(ENTRY),
    "report_bad": lambda store: store.report_bad(ENTRY.id),
}
AT_ONCE: dict[str, Verb] = {
    "fetch": lambda store: store.fetch(*ENTRY.place),
    "sequence": lambda store: store.sequence(),
    "touch": lambda store: store.touch(ENTRY, ENTRY.identity.key),
    "touch for another question": lambda store: store.touch(ENTRY, "another"),
    "standing": lambda store: store.standing("c"),
}


@contextmanager
def held(lock: AbstractContextManager[bool]) -> Iterator[threading.Event]:
    """Hold the lock in a thread, as a long change does, until the event is set."""
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            holding.set()
            done.wait(10)  # so that a test that waits for the lock fails rather than hangs
            done.set()

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    try:
        yield done
    finally:
        done.set()
        thread.join()


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.put(ENTRY, unit(1, 0), 0)
    return store


def finished(verb: Coroutine[Any, Any, object]) -> bool:
    """Tell whether a verb ends without ever giving control back."""
    try:
        verb.send(None)
    except StopIteration:
        return True
    verb.close()
    return False


@pytest.mark.parametrize("name", VERBS)
def test_the_loop_goes_on_while_a_change_holds_the_lock(store: MemoryStore, name: str) -> None:
    async def main() -> None:
        with held(store.lock) as done:
            waiting = asyncio.create_task(VERBS[name](store.aio()))
            await asyncio.sleep(0)
            assert not done.is_set() and not waiting.done()
            done.set()
            await waiting

    asyncio.run(main())


@pytest.mark.parametrize("name", [*VERBS, *AT_ONCE])
def test_no_thread_is_taken_where_nobody_holds_the_lock(store: MemoryStore, name: str) -> None:
    assert finished({**VERBS, **AT_ONCE}[name](store.aio()))


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_hit_waits_for_no_change(store: MemoryStore, name: str) -> None:
    with held(store.lock) as done:
        assert finished(AT_ONCE[name](store.aio()))
        assert not done.is_set()


def reported(store: MemoryStore | SqliteStore, entry: Entry) -> bool:
    """Report the entry as bad; tell whether it is known for the question it was served to."""
    store.report_bad(entry.id)
    store.put(make_entry("k", entry_id="2"), unit(1, 0), store.sequence())
    (near,) = store.nearest("p", unit(1, 0), 1, asked="another", now=NOW)
    return near.reported_bad


def test_a_serving_noted_while_the_lock_was_held_is_known_afterwards(store: MemoryStore) -> None:
    with held(store.lock):
        store.touch(ENTRY, "another")
    assert reported(store, ENTRY)


def test_sqlite_notes_a_serving_without_waiting_for_a_writer_of_its_own(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "cache.db")
    store.put(ENTRY, unit(1, 0), 0)
    with held(store._file.writing) as done:
        store.touch(ENTRY, "another")
        assert not done.is_set()
    assert reported(store, ENTRY)
    store.close()


def test_the_loop_goes_on_while_a_write_is_taken_over(store: MemoryStore) -> None:
    """A write is compared with every answer of its corpus, so it never runs in the loop."""

    async def main() -> None:
        change = Change(emptied=True)
        with held(store.lock) as done:
            writing = asyncio.create_task(
                store.aio().on_corpora(lambda corpora: corpora.commit("c", "", change, now=NOW))
            )
            await asyncio.sleep(0)
            assert not done.is_set() and not writing.done()
            done.set()
            await writing
        standing = await store.aio().standing("c")
        assert standing is not None and standing.complete

    asyncio.run(main())


def test_how_a_corpus_stands_is_told_at_once_unless_somebody_reads(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "cache.db")
    store.corpora.declare("c", now=NOW, silence_s=None)
    assert finished(store.aio().standing("c"))

    async def main() -> None:
        with held(store._file.reading) as done:
            waiting = asyncio.create_task(store.aio().standing("c"))
            await asyncio.sleep(0)
            assert not done.is_set() and not waiting.done()
            done.set()
            assert await waiting == store.corpora.standing("c")
        assert await store.aio().standing("unknown") is None

    asyncio.run(main())
    store.close()


def test_a_hit_does_not_wait_while_sqlite_takes_a_write_over(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "cache.db")
    store.corpora.declare("c", now=NOW, silence_s=None)
    store.put(ENTRY, unit(1, 0), store.sequence())
    with held(store._file.writing) as done, held(store.corpora._scoring):
        assert store.fetch(*ENTRY.place) == ENTRY
        assert store.corpora.standing("c") is not None
        assert not done.is_set()
    store.close()
