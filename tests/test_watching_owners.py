"""Whose write did not end: threads, forks, and several caches of one process."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from stampcache import Cache, Hit, Reason, Stale
from tests.watched_index import CORPUS, HANDBOOK, Asking, Shelf

LEAVE = "how many days of leave"
NOBODY = "nobody has any days of leave"
AUGUST = "the canteen is closed in august"


class World:
    """Caches on one file, in this process, each with a watch over the same documents."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path / 'cache.db'}"
        self.texts: dict[str, str] = {}
        self.caches: list[Cache] = []
        self.here, self.there = self.shelf(), self.shelf()
        self.here.watch.run(self.here.watch.open())
        self.here.write(**HANDBOOK)
        self.asking = Asking(self.caches[0], self.here)
        self.asking.ask(LEAVE)

    def shelf(self) -> Shelf:
        self.caches.append(Cache(self.url))
        return Shelf(self.caches[-1], texts=self.texts)

    def state(self) -> str:
        outcome = self.caches[0].lookup(self.asking.request(LEAVE))
        if isinstance(outcome, Hit):
            assert outcome.answer.text == self.asking.fresh(LEAVE)
            return "hit"
        blocked = isinstance(outcome, Stale) and outcome.reason is Reason.BEING_WRITTEN
        return "blocked" if blocked else "stale"

    def close(self) -> None:
        for cache in self.caches:
            cache.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def stopping(shelf: Shelf, stop: Callable[[], None]) -> None:
    """Let the next write of a shelf go half-way and then stop."""
    write = shelf.write_around

    def once(**texts: str | None) -> None:
        shelf.write_around = write  # type: ignore[method-assign]  # as it was
        write(**texts)
        stop()

    shelf.write_around = once  # type: ignore[method-assign]  # it stops once


def die() -> None:
    raise SystemExit


def test_a_thread_that_died_while_it_wrote_leaves_what_the_next_write_resolves(
    world: World,
) -> None:
    stopping(world.here, die)

    def write() -> None:
        with suppress(SystemExit):
            world.here.write(leave=NOBODY)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert world.state() == "blocked"
    world.there.write(canteen=AUGUST)
    assert world.state() == "blocked", "another cache cannot know that nobody writes"
    world.here.write(canteen="closed")
    assert world.state() == "stale"


def test_threads_write_through_two_watches_of_one_cache(world: World) -> None:
    other = Shelf(world.caches[0], texts=world.texts)
    texts = [(shelf, f"n{at}") for at, shelf in enumerate([world.here, other, world.there] * 4)]
    threads = [
        threading.Thread(
            target=lambda shelf=shelf, name=name: shelf.write(**{name: f"remark {name}"})
        )
        for shelf, name in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    standing = world.caches[0].standing(CORPUS)
    assert standing is not None
    assert (standing.intents, standing.chunks) == ((), 4 + 12)
    known = world.here.watch.run(world.here.watch.known(None))
    assert {one.id: one.digest for one in known.values()} == {
        one.id: one.digest for one in world.here.listing()
    }


def test_a_watch_leaves_alone_what_another_one_of_its_process_writes(world: World) -> None:
    other = Shelf(world.caches[0], texts=world.texts)
    seen: list[str] = []

    def look() -> None:
        other.write(canteen=AUGUST)
        world.there.write(note="a remark by somebody")
        world.there.watch.run(world.there.watch.open())
        seen.append(world.state())

    stopping(world.here, look)
    world.here.write(pets="dogs may come on friday")
    assert seen == ["blocked"]
    assert world.state() == "hit"


def in_a_fork(do: Callable[[], None]) -> int:
    """Do something in a child process; return its id, when it has ended but nobody took note of that."""
    child = os.fork()
    if not child:
        try:
            do()
        finally:
            os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    return child


def test_a_fork_that_died_while_it_wrote_is_resolved_before_it_is_reaped(world: World) -> None:
    def write() -> None:
        stopping(world.here, lambda: os._exit(1))
        world.here.write(leave=NOBODY)

    child = in_a_fork(write)
    try:
        world.here.write_around(leave=NOBODY)  # which landed there, not here
        assert world.state() == "blocked"
        world.here.write(canteen=AUGUST)
        assert world.state() == "stale"
    finally:
        os.waitpid(child, 0)


def test_a_fork_leaves_alone_what_its_parent_writes(world: World) -> None:
    def fork() -> None:
        child = in_a_fork(lambda: world.here.write(canteen=AUGUST))
        os.waitpid(child, 0)
        assert world.state() == "blocked"
        standing = world.caches[0].standing(CORPUS)
        assert standing is not None and len(standing.intents) == 1

    stopping(world.here, fork)
    world.here.write(pets="dogs may come on friday")
    assert world.state() == "hit"
