"""What several watches over one corpus do at once, in every order of their effects: none serves old."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from stampcache import Cache, Hit
from stampcache.corpora import Change, Intent, Owner
from stampcache.effects import Flow
from tests.test_race import orders, stepped
from tests.watched_index import CORPUS, HANDBOOK, Asking, Shelf

LEAVE = "how many days of leave"
DOGS = "may dogs come"
NOBODY = "nobody has any days of leave"


class World:
    """Two caches on one store, each with a watch over the same documents."""

    def __init__(self, one: Cache, other: Cache, sees: str) -> None:
        self.caches = (one, other)
        self.texts: dict[str, str] = {}
        self.here = Shelf(one, texts=self.texts, sees=sees)
        self.there = Shelf(other, texts=self.texts, sees=sees)
        self.asking = Asking(one, self.here)

    def watched(self) -> None:
        self.here.watch.run(self.here.watch.open())
        self.here.write(**HANDBOOK)
        self.asking.ask(LEAVE)
        self.asking.ask(DOGS)

    def ask(self) -> None:
        """Ask all questions, and see that no hit is old."""
        for question in (LEAVE, DOGS):
            outcome = self.asking.cache.lookup(self.asking.request(question))
            if isinstance(outcome, Hit):
                assert outcome.answer.text == self.asking.fresh(question)

    def standing(self) -> tuple[int, str]:
        standing = self.asking.cache.standing(CORPUS)
        assert standing is not None
        return len(standing.intents), standing.problem

    def ends_well(self) -> None:
        """Everything was resolved, and what is stored from now on is right through later writes."""
        assert self.standing() == (0, "")
        for texts in ({}, {"leave": HANDBOOK["leave"]}, {"pets": None}, {"pets": HANDBOOK["pets"]}):
            if texts:
                self.there.write(**texts)
            self.ask()
            self.asking.ask(LEAVE)
            self.asking.ask(DOGS)
            self.ask()


Make = Callable[..., World]


@pytest.fixture(params=["memory", "two on a file"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    opened: list[Cache] = []

    def make(sees: str = "listing") -> World:
        if request.param == "memory":
            opened.append(Cache("memory://"))
            return World(opened[-1], opened[-1], sees)
        pair = [Cache(f"sqlite:///{tmp_path}/{len(opened)}.db") for _ in range(2)]
        opened.extend(pair)
        return World(*pair, sees)

    yield make
    for cache in opened:
        cache.close()


def played(
    world: World, order: tuple[bool, ...], one: Flow[Any], other: Flow[Any], look: bool = True
) -> None:
    """Drive two flows, effect by effect, in an order; then both to their ends."""
    first = stepped(world.caches[0], one)
    second = stepped(world.caches[1], other)
    next(first), next(second)
    for is_second in order:
        next(second if is_second else first, None)
        if look:
            world.ask()
    for rest in (first, second):
        for _ in rest:
            world.ask()


def some(count: int, more: int, step: int) -> Iterator[tuple[bool, ...]]:
    return islice(orders(count, more), 0, None, step)


def left_behind(world: World, *, landed: bool, ids: tuple[str, ...] | None) -> None:
    """Leave an intent of a process that is gone."""
    owner = Owner(host="elsewhere", process=1)
    intent = Intent(id="left", at=0.0, owner=owner, chunks=ids or (), all_known=ids is not None)
    world.asking.cache.core.store.corpora.begin(CORPUS, intent)
    if landed:
        world.here.write_around(leave=NOBODY)


@pytest.mark.parametrize("sees", ["listing", "count"])
def test_two_open_an_empty_index_at_once(make: Make, sees: str) -> None:
    for order in some(5, 5, 31):
        world = make(sees)
        played(world, order, world.here.watch.open(), world.there.watch.open(), look=False)
        world.here.write(**HANDBOOK)
        world.ends_well()


@pytest.mark.parametrize("sees", ["listing", "count", "look"])
def test_one_opens_an_empty_index_while_another_fills_it(make: Make, sees: str) -> None:
    for order in some(6, 8, 211):
        world = make(sees)
        world.there.watch.run(world.there.watch.open())
        filling = world.there.writing(**HANDBOOK)
        played(world, order, world.here.watch.open(), filling, look=False)
        world.ends_well()


@pytest.mark.parametrize("sees", ["listing", "count", "look"])
def test_one_opens_for_the_first_time_while_another_does_and_fills_it(
    make: Make, sees: str
) -> None:
    for order in some(6, 12, 2_311):
        world = make(sees)
        played(world, order, world.here.watch.open(), world.there.writing(**HANDBOOK), look=False)
        world.ends_well()


@pytest.mark.parametrize("sees", ["listing", "look", "nothing"])
@pytest.mark.parametrize("ids", [("leave",), None])
def test_one_resolves_what_was_left_while_another_does_and_writes(
    make: Make, sees: str, ids: tuple[str, ...] | None
) -> None:
    for order in some(9, 9, 5_003):
        world = make(sees)
        world.watched()
        left_behind(world, landed=True, ids=ids)
        writing = world.there.writing(leave=HANDBOOK["leave"] + " and more")
        played(world, order, world.here.watch.open(), writing)
        world.ends_well()


def test_one_resyncs_while_another_writes(make: Make) -> None:
    for order in some(7, 7, 311):
        world = make()
        world.watched()
        world.here.write_around(pets="no pets at all may come")
        writing = world.there.writing(leave=NOBODY, travel=None)
        played(world, order, world.here.watch.resync(), writing, look=False)
        world.ends_well()


@pytest.mark.parametrize("sees", ["listing", "count"])
def test_one_opens_while_another_writes_and_nothing_is_taken_for_lost(
    make: Make, sees: str
) -> None:
    for order in some(6, 4, 13):
        world = make(sees)
        world.watched()
        writing = world.there.writing(canteen="the canteen is closed in august", travel=None)
        played(world, order, world.here.watch.open(), writing)
        assert "watch.missed" not in world.asking.cache.core.counters.of(None)
        assert isinstance(world.asking.ask(LEAVE), Hit), order
        world.ends_well()


def test_two_write_the_same_chunk_at_once(make: Make) -> None:
    for order in some(4, 4, 3):
        world = make()
        world.watched()
        one, other = (
            shelf.writing(leave=f"{n} days of leave")
            for n, shelf in ((1, world.here), (2, world.there))
        )
        played(world, order, one, other)
        world.ends_well()


@pytest.mark.parametrize("sees", ["listing", "look"])
def test_who_looked_before_another_wrote_brings_nothing_back(make: Make, sees: str) -> None:
    world = make(sees)
    world.watched()
    left_behind(world, landed=False, ids=("leave",))
    opening = stepped(world.caches[0], world.here.watch.open())
    for effect in opening:
        if effect == "Commit":  # with what it has seen
            break
    world.there.write(leave=NOBODY)
    world.ask()
    for _ in opening:
        world.ask()
    world.ends_well()


def test_whose_intent_was_resolved_by_another_is_not_sure_of_what_it_wrote(make: Make) -> None:
    world = make()
    world.watched()
    writing = stepped(world.caches[0], world.here.writing(leave="one day of leave"))
    for effect in writing:
        if effect == "Commit":
            break
    (mine,) = world.caches[1].core.store.corpora.standing(CORPUS).intents  # type: ignore[union-attr]  # it is watched
    world.caches[1].core.store.corpora.commit(CORPUS, mine.id, Change(unknown=True), now=0.0)
    world.there.write(leave=NOBODY)
    world.asking.ask(LEAVE)
    for _ in writing:
        world.ask()
    world.ends_well()


@pytest.mark.parametrize("sees", ["count", "nothing"])
def test_what_went_around_and_comes_back_ends_what_was_made_without_it(
    make: Make, sees: str
) -> None:
    world = make(sees)
    world.watched()
    world.here.write_around(leave=None)
    world.here.watch.run(world.here.watch.resync())
    world.asking.ask(LEAVE)
    assert isinstance(world.asking.ask(LEAVE), Hit)
    world.here.write(leave=HANDBOOK["leave"])
    assert not isinstance(world.asking.ask(LEAVE), Hit)
    world.ends_well()
