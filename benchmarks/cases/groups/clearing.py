"""L and M: clearing and evicting."""

import asyncio
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.cases.groups.equal import PARAPHRASE
from benchmarks.cases.meaning import WatchedEmbedder
from benchmarks.cases.rig import Rig, Suite
from benchmarks.cases.words import QUESTION, Ability, Call
from stampcache import Cache, Evidence, Hit, Request, Scope, open_cache, scope

SUITE = Suite()


@contextmanager
def _both(**options: object) -> Iterator[tuple[Cache, Cache]]:
    """Give a cache in memory and one in a file."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'cache.db'}"
        with open_cache("memory://", **options) as memory, open_cache(url, **options) as file:  # type: ignore[arg-type]  # options of open_cache
            yield memory, file


@SUITE.case("L1", "what is not the cache's survives a clear", Ability.CORE)
def foreign_data(rig: Rig) -> None:  # noqa: ARG001 - of the core
    """Tables of others in the same file, and entries of other scopes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "app.db"
        with closing(sqlite3.connect(path)) as file:
            file.execute("CREATE TABLE entries (id INTEGER, text TEXT)")
            file.execute("INSERT INTO entries VALUES (1, 'mine')")
            file.commit()
        with open_cache(f"sqlite:///{path}") as cache:
            for tenant in ("ann", "bob"):
                cache.update(Request(question=QUESTION, scope=Scope(tenant=tenant)), "Thirty.")
            with scope(tenant="ann"):
                assert cache.clear() == 1
            assert isinstance(
                cache.lookup(Request(question=QUESTION, scope=Scope(tenant="bob"))), Hit
            )
            cache.purge()
        with closing(sqlite3.connect(path)) as file:
            assert file.execute("SELECT text FROM entries").fetchall() == [("mine",)]


@SUITE.case("L2", "a clear ends", Ability.CORE)
def a_clear_ends(rig: Rig) -> None:  # noqa: ARG001 - of the core
    """Also while others write what it clears. (No store is a cluster's yet.)"""
    with _both() as caches:
        for cache in caches:
            stop = threading.Event()

            def write(cache: Cache = cache, stop: threading.Event = stop) -> None:
                for number in range(2_000):
                    if stop.is_set():
                        return
                    cache.update(Request(question=f"Number {number}?"), "Yes.")

            writer = threading.Thread(target=write)
            writer.start()
            for _ in range(3):
                cache.clear()
            stop.set()
            writer.join()
            cache.clear()
            assert cache.stats().entries == 0


@SUITE.case("L6", "clear needs no arguments", Ability.CLEARS)
def clear_without_arguments(rig: Rig) -> None:
    """Sync and async, of a cache that holds something and of one that does not."""
    app = rig.app()
    rig.clear()
    first = app.ask(Call())
    rig.clear()
    assert app.ask(Call()).text != first.text
    if rig.has(Ability.GENERATIONS):
        rig.base_cache.clear()
        asyncio.run(rig.base_cache.aclear())
    if rig.has(Ability.CORE):
        assert asyncio.run(rig.cache.aio.clear()) == 1
        assert rig.cache.clear() == 0


@SUITE.case("M1", "the bound is hard", Ability.BOUNDED)
def a_hard_bound(rig: Rig) -> None:
    """Whatever the lifetimes, there are never more entries than allowed."""
    small = rig.bounded(5)
    app = small.app()
    for number in range(12):
        controls = {"ttl_s": 1_000.0 + number} if rig.has(Ability.CONTROLS) else {}
        app.ask(Call(question=f"Question {number}?", controls=controls))
        assert small.size <= 5
    small.close()


@SUITE.case("M2/M4", "what is gone hides nothing", Ability.CORE)
def dead_vectors(rig: Rig) -> None:  # noqa: ARG001 - of the core
    """Entries that were deleted, evicted or made stale take no place among the neighbours."""
    alike = [f"How long is annual leave, variant {chr(97 + number)}?" for number in range(20)]
    embedder = WatchedEmbedder([(QUESTION, PARAPHRASE, *alike)])
    with _both(embedder=embedder, calibration=0.9, capacity=200) as caches:
        for cache in caches:
            cache.update(Request(question=QUESTION), "Thirty days.")
            for question in alike:
                evidence = [Evidence(corpus="c", source="old.md", text=question)]
                cache.update(Request(question=question), "Gone.", evidence=evidence)
            cache.invalidate(corpus="c", source="old.md")
            found = cache.lookup(Request(question=PARAPHRASE))
            assert isinstance(found, Hit) and found.answer.text == "Thirty days."
            cache.purge()
            assert cache.core.store.stats().vectors == 1
    with _both(embedder=embedder, calibration=0.9, capacity=3) as caches:
        for cache in caches:
            for question in [*alike, QUESTION]:
                cache.update(Request(question=question), question)
            stats = cache.core.store.stats()
            assert (stats.entries, stats.vectors) == (3, 3)
            assert not cache.core.store.problems()


@SUITE.case("M7", "writing twice leaves one entry", Ability.BOUNDED)
def writing_twice(rig: Rig) -> None:
    """And the second answer is the one that is served."""
    app = rig.app()
    if rig.has(Ability.CONTROLS):
        app.ask(Call())
        second = app.ask(Call(controls={"no_cache": True}))
        assert app.ask(Call()).text == second.text
    else:
        app.ask(Call())
        app.ask(Call())
    assert rig.size == 1


@SUITE.case("M8", "when it is full, old entries give way", Ability.BOUNDED)
def old_entries_give_way(rig: Rig) -> None:
    """The newest answer is kept, and served; nothing fails."""
    small = rig.bounded(3)
    app = small.app()
    for number in range(9):
        call = Call(question=f"Question {number}?")
        made = app.ask(call)
        assert app.ask(call).text == made.text
    calls = app.calls
    app.ask(Call(question="Question 0?"))
    assert app.calls == calls + 1
    small.close()
