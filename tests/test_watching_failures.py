"""Writes that fail, stop half-way, or say nothing of what they did: nothing untrue is served then."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from stampcache import Cache, Hit, Reason, Stale, StoreError
from stampcache.adapters import Change, Chunk, Flow, IndexView, Step, Watch
from stampcache.corpora import Intent, Owner
from stampcache.testing import FailingStore, FakeClock
from tests.watched_index import CORPUS, HANDBOOK, Asking, Shelf

LEAVE = "how many days of leave"
NOBODY = "nobody has any days of leave"
AUGUST = "the canteen is closed in august"
SIGHTS = ["listing", "look", "count", "nothing"]


class App:
    def __init__(self, cache: Cache, sees: str = "listing") -> None:
        self.cache = cache
        self.shelf = Shelf(cache, sees=sees)
        self.watch = self.shelf.watch
        self.run: Callable[[Flow[object]], object] = self.watch.run
        self.run(self.watch.open())
        self.shelf.write(**HANDBOOK)
        self.asking = Asking(cache, self.shelf)
        self.asking.ask(LEAVE)

    def state(self) -> str:
        """Look; a hit must be what the application says now."""
        outcome = self.cache.lookup(self.asking.request(LEAVE))
        if isinstance(outcome, Hit):
            assert outcome.answer.text == self.asking.fresh(LEAVE)
            return "hit"
        assert isinstance(outcome, Stale)
        blocked = outcome.reason in (Reason.BEING_WRITTEN, Reason.WATCH_BROKEN)
        return "blocked" if blocked else "stale"

    def intents(self) -> int:
        standing = self.cache.standing(CORPUS)
        assert standing is not None
        return len(standing.intents)

    def counted(self, name: str) -> int:
        return self.cache.core.counters.of(None).get(name, 0)


Make = Callable[..., App]


@pytest.fixture
def app(url: str) -> Iterator[Make]:
    opened: list[Cache] = []

    def make(sees: str = "listing") -> App:
        opened.append(Cache(url, clock=FakeClock()))
        return App(opened[-1], sees)

    yield make
    for cache in opened:
        cache.close()


def unsaid(here: App, text: str, ids: Sequence[str] | None) -> None:
    here.run(here.watch.writing(here.shelf.step_of(leave=text), told=lambda _: None, ids=ids))


@pytest.mark.parametrize("ids", [("leave",), None])
@pytest.mark.parametrize("sees", SIGHTS)
def test_what_is_not_told_is_looked_at(app: Make, sees: str, ids: Sequence[str] | None) -> None:
    here = app(sees)
    unsaid(here, HANDBOOK["leave"], ids)
    seen = sees == "listing" or (sees == "look" and ids is not None)
    assert here.state() == ("hit" if seen else "stale")
    unsaid(here, NOBODY, ids)
    assert here.state() == "stale"
    assert here.intents() == 0
    here.asking.ask(LEAVE)
    assert here.state() == "hit"


def test_who_cannot_say_what_was_written_blocks_hits_until_the_next_write(app: Make) -> None:
    here = app()

    def told(_: object) -> Change:
        raise LookupError("no ids came back")

    with pytest.raises(LookupError):
        here.run(here.watch.writing(here.shelf.step_of(leave=NOBODY), told=told, ids=("leave",)))
    assert here.state() == "blocked"
    here.shelf.write(canteen=AUGUST)
    assert here.state() == "stale"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("sees", SIGHTS)
def test_a_write_that_is_stopped_blocks_hits_until_the_next_write(
    app: Make, sees: str, landed: bool, stop: type[BaseException]
) -> None:
    here = app(sees)
    write = here.shelf.write_around

    def stopping(**texts: str | None) -> None:
        if landed:
            write(**texts)
        raise stop

    here.shelf.write_around = stopping  # type: ignore[method-assign]  # once
    with pytest.raises(stop):
        here.shelf.write(leave=NOBODY)
    here.shelf.write_around = write  # type: ignore[method-assign]  # as it was
    assert here.state() == "blocked"
    here.shelf.write(canteen=AUGUST)
    assert here.intents() == 0
    assert here.state() == ("hit" if not landed and sees in ("listing", "look") else "stale")


def test_an_index_that_cannot_be_looked_into_stops_hits_but_no_writes(app: Make) -> None:
    here = app()
    listing = here.shelf.listing

    def failing(ids: Sequence[str] | None = None) -> list[Chunk]:
        raise OSError("the index is away")

    here.shelf.listing = failing  # type: ignore[method-assign]  # for a while
    here.shelf.fails_after = 0
    with pytest.raises(OSError, match="full"):
        here.shelf.write(leave=NOBODY)
    here.shelf.fails_after = None
    assert here.counted("error.watch.unresolved") == 1
    here.shelf.write(canteen=AUGUST)
    here.run(here.watch.open())
    assert here.counted("error.watch.unresolved") == 3
    assert here.intents() == 1
    assert here.state() == "blocked"
    with pytest.raises(OSError, match="away"):
        here.run(here.watch.resync())
    assert here.intents() == 1
    here.shelf.listing = listing  # type: ignore[method-assign]  # as it was
    here.run(here.watch.resync())
    assert here.intents() == 0
    assert here.state() == "hit"


def test_a_problem_is_there_again_if_the_index_cannot_be_listed(app: Make) -> None:
    here = app()
    here.cache.core.store.corpora.block(CORPUS, "a sweep found drift")
    listing = here.shelf.listing

    def failing(ids: Sequence[str] | None = None) -> list[Chunk]:
        assert here.state() == "blocked"
        raise OSError("the index is away")

    here.shelf.listing = failing  # type: ignore[method-assign]  # once
    with pytest.raises(OSError, match="away"):
        here.run(here.watch.resync())
    assert here.state() == "blocked"
    assert here.intents() == 0

    def drifting(ids: Sequence[str] | None = None) -> list[Chunk]:
        here.cache.core.store.corpora.block(CORPUS, "another sweep found drift")
        return listing(ids)

    here.shelf.listing = drifting  # type: ignore[method-assign]  # a sweep ends meanwhile
    here.run(here.watch.resync())
    assert here.state() == "blocked", "what it found may have come after the listing"
    here.shelf.listing = listing  # type: ignore[method-assign]  # as it was
    here.run(here.watch.resync())
    assert here.state() == "hit"


@pytest.mark.parametrize("sees", SIGHTS)
def test_a_problem_ends_with_a_resync(app: Make, sees: str) -> None:
    here = app(sees)
    here.cache.core.store.corpora.block(CORPUS, "a sweep found drift")
    assert here.state() == "blocked"
    here.run(here.watch.resync())
    assert here.state() == ("hit" if sees == "listing" else "stale")


def test_a_write_inside_of_another_one_ends_what_both_change(app: Make) -> None:
    here = app()

    def both() -> None:
        here.shelf.write(canteen=AUGUST)
        assert here.state() == "blocked"
        here.shelf.write_around(leave=NOBODY)

    async def aio() -> None:
        both()

    chunk = here.shelf.chunk("leave", NOBODY)
    writing = here.watch.writing(
        Step(sync=both, aio=aio), told=lambda _: Change(added=(chunk,)), ids=("leave",)
    )
    here.run(writing)
    assert here.intents() == 0
    assert here.state() == "stale"
    here.asking.ask(LEAVE)
    assert here.state() == "hit"


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("sees", SIGHTS)
def test_a_write_that_others_make(app: Make, sees: str, told: bool) -> None:
    here = app(sees)
    intent = here.watch.run(here.watch.announce(("leave",)))
    assert here.state() == "blocked"
    here.shelf.write_around(leave=NOBODY)
    change = Change(added=(here.shelf.chunk("leave", NOBODY),)) if told else None
    here.run(here.watch.tell(intent, change))
    assert here.intents() == 0
    assert here.state() == "stale"


def test_one_that_is_announced_stays_so_while_its_process_runs(app: Make) -> None:
    here = app()
    here.watch.run(here.watch.announce(None))
    here.shelf.write(canteen=AUGUST)
    here.run(here.watch.open())
    assert here.state() == "blocked"
    assert not here.watch.run(here.watch.examine())


@pytest.mark.parametrize("ends", ["told", "unsaid", "fails", "left behind"])
def test_what_stands_beside_the_index_ends_all_and_leaves_what_is_known(
    app: Make, ends: str
) -> None:
    here = app()
    before = here.watch.run(here.watch.known(None))

    def write() -> None:
        if ends == "fails":
            raise OSError("the disk is full")
        if ends == "left behind":
            raise KeyboardInterrupt

    async def aio() -> None:
        write()

    change = Change(unknown=True) if ends == "told" else None
    writing = here.watch.writing(
        Step(sync=write, aio=aio), told=lambda _: change, ids=None, beyond=True
    )
    try:
        here.run(writing)
    except (OSError, KeyboardInterrupt):
        here.run(here.watch.open())
    assert here.state() == "stale"
    assert here.watch.run(here.watch.known(None)) == before
    standing = here.cache.standing(CORPUS)
    assert standing is not None and standing.complete
    here.asking.ask(LEAVE)
    here.shelf.write(**HANDBOOK)
    assert here.state() == "hit", "of the chunks nothing changed"


def test_what_was_left_beside_the_index_is_not_seen_in_a_listing(app: Make) -> None:
    here = app()
    owner = Owner(host="elsewhere")
    intent = Intent(id="1", at=-1e6, owner=owner, beyond=True)
    here.cache.core.store.corpora.begin(CORPUS, intent)
    here.run(here.watch.resync())
    assert here.intents() == 0
    assert here.state() == "stale"


def test_listeners_hear_each_write_once(app: Make) -> None:
    here = app()
    heard: list[tuple[str, Change]] = []
    here.cache.core.listeners.add(lambda corpus, change: heard.append((corpus, change)))
    here.shelf.write(canteen=AUGUST)
    ((corpus, change),) = heard
    assert (corpus, [one.id for one in change.added]) == (CORPUS, ["canteen"])


def test_a_store_that_is_down_when_an_intent_is_resolved_is_the_callers(url: str) -> None:
    store = FailingStore()
    with Cache(store, secret="of sixteen bytes or more") as cache:
        here = App(cache)
        intent = Intent(id="1", at=-1e6, owner=Owner(host="elsewhere"), all_known=True)
        store.corpora.begin(CORPUS, intent)
        listing = here.shelf.listing

        def going_down(ids: Sequence[str] | None = None) -> list[Chunk]:
            store.down = True
            return listing(ids)

        here.shelf.listing = going_down  # type: ignore[method-assign]  # it goes down meanwhile
        with pytest.raises(StoreError):
            here.shelf.write(leave=NOBODY)
        store.down = False
        here.shelf.listing = listing  # type: ignore[method-assign]  # as it was
        assert here.shelf.texts["leave"] == HANDBOOK["leave"]
        assert here.intents() == 2
        here.shelf.write(canteen=AUGUST)
        assert here.intents() == 0
        assert here.state() == "hit"


def test_an_index_of_which_nothing_is_seen_is_watched_all_the_same(url: str) -> None:
    with Cache(url) as cache:
        watch = Watch(cache.core, CORPUS, IndexView())
        assert watch.run(watch.examine()) == [f"Nobody has watched corpus {CORPUS!r} so far."]
        watch.run(watch.announce(None))
        standing = cache.standing(CORPUS)
        assert standing is not None and len(standing.intents) == 1
        assert not watch.run(watch.examine())


def test_what_is_examined_while_others_write_is_not_compared(app: Make) -> None:
    here = app()
    here.shelf.write_around(pets="no pets at all")
    (problem,) = here.watch.run(here.watch.examine())
    assert "1 chunks changed" in problem
    intent = here.watch.run(here.watch.announce(("pets",)))
    assert here.watch.run(here.watch.examine()) == []
    here.cache.core.writing.discard(intent.id)
    (problem,) = here.watch.run(here.watch.examine())
    assert "did not end: 1" in problem


@pytest.mark.parametrize("sees", ["count", "look"])
def test_a_count_that_is_wrong_twice_stops_hits_until_a_resync(app: Make, sees: str) -> None:
    here = app(sees)
    here.shelf.write_around(pets=None)
    here.run(here.watch.open())
    assert here.state() == "blocked"
    here.run(here.watch.open())
    assert here.state() == "blocked"
    here.run(here.watch.resync())
    assert here.state() == "stale"
    here.run(here.watch.open())
    here.asking.ask(LEAVE)
    assert here.state() == "hit"
