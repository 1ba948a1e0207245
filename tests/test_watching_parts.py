"""A large write is told of in parts: hits are stopped until the last of them, also by a crash between."""

from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from stampcache import Cache, Hit, Reason, Stale, StoreError
from stampcache.adapters import Change, Chunk, readings
from stampcache.adapters.ledger import PART
from stampcache.corpora import Corpora, Intent
from stampcache.testing import FakeClock
from tests.watched_index import CORPUS, HANDBOOK, Asking, Shelf

DOGS = "may dogs come"
LEAVE = "how many days of leave"
"""Is made from a document about lunch, too."""
NOTES = {f"note{number}": f"remark {number} by somebody" for number in range(3 * PART)}


class Told:
    """The changes that a store is told of; it fails at the one of a number, if that is given."""

    def __init__(self, corpora: Corpora, monkeypatch: pytest.MonkeyPatch) -> None:
        self.changes: list[Change] = []
        self.fails_at: int | None = None
        self.between: Callable[[], None] = lambda: None
        self._commit = corpora.commit
        monkeypatch.setattr(corpora, "commit", self.commit)

    def commit(self, corpus: str, intent: str, change: Change, *, now: float) -> object:
        if len(self.changes) == self.fails_at:
            self.fails_at = None
            raise StoreError("the disk is full")
        self.changes.append(change)
        done = self._commit(corpus, intent, change, now=now)
        self.between()
        return done


class App:
    def __init__(self, cache: Cache, monkeypatch: pytest.MonkeyPatch, sees: str) -> None:
        self.cache = cache
        self.shelf = Shelf(cache, sees=sees)
        self.shelf.watch.run(self.shelf.watch.open())
        self.shelf.write(**HANDBOOK)
        self.asking = Asking(cache, self.shelf)
        self.asking.ask(LEAVE)
        self.asking.ask(DOGS)
        self.told = Told(cache.core.store.corpora, monkeypatch)

    def state(self, question: str = LEAVE) -> str:
        outcome = self.cache.lookup(self.asking.request(question))
        if isinstance(outcome, Hit):
            assert outcome.answer.text == self.asking.fresh(question)
            return "hit"
        blocked = isinstance(outcome, Stale) and outcome.reason is Reason.BEING_WRITTEN
        return "blocked" if blocked else "stale"

    def known(self) -> dict[str, str]:
        chunks = self.shelf.watch.run(self.shelf.watch.known(None))
        return {one: chunk.digest for one, chunk in chunks.items()}

    def there(self) -> dict[str, str]:
        return {chunk.id: chunk.digest for chunk in self.shelf.listing()}


Make = Callable[..., App]


@pytest.fixture
def app(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    opened: list[Cache] = []

    def make(sees: str = "listing") -> App:
        opened.append(Cache(url, clock=FakeClock()))
        return App(opened[-1], monkeypatch, sees)

    yield make
    for cache in opened:
        cache.close()


def test_a_small_write_is_told_of_at_once(app: Make) -> None:
    here = app()
    here.shelf.write(**dict(list(NOTES.items())[:PART]))
    assert len(here.told.changes) == 1


@pytest.mark.parametrize("sees", ["listing", "nothing"])
def test_hits_are_stopped_until_the_last_part(app: Make, sees: str) -> None:
    here = app(sees)
    states: list[str] = []
    here.told.between = lambda: states.append(here.state(DOGS))
    before = here.cache.core.counters.of(None)["watch.writes"]
    here.shelf.write(**NOTES, lunch=None)
    assert states == ["blocked"] * 3 + ["hit"]
    assert here.state() == "stale"
    parts = here.told.changes
    assert [len(part.added) + len(part.removed) for part in parts] == [PART, PART, PART, 1]
    assert [part.unfinished for part in parts] == [True, True, True, False]
    assert here.known() == here.there()
    assert here.cache.core.counters.of(None)["watch.writes"] == before + 1
    here.shelf.write(lunch=HANDBOOK["lunch"])
    assert here.state() == "hit"


def test_what_others_write_between_the_parts_is_not_taken_for_ours(app: Make) -> None:
    here = app()
    other = Shelf(here.cache, texts=here.shelf.texts)
    order = sorted(NOTES, key=lambda one: here.shelf.chunk(one, NOTES[one]).digest)
    early, late = order[0], order[-1]

    def between() -> None:
        here.told.between = lambda: None
        other.write(**{early: "something else", late: "something else"})

    here.told.between = between
    here.shelf.write(**NOTES)
    known = here.known()
    assert known[early] == here.there()[early], "it was told of before the other one began"
    assert known[late] == "", "whose write came last is not known"
    assert here.state() == "stale", "it may say anything"
    here.asking.ask("something else")
    standing = here.cache.standing(CORPUS)
    assert standing is not None and standing.intents == ()


@pytest.mark.parametrize("failing", [0, 1, 2, 3])
@pytest.mark.parametrize("sees", ["listing", "look", "count", "nothing"])
def test_what_fails_between_the_parts_stops_hits_until_the_next_write(
    app: Make, sees: str, failing: int
) -> None:
    here = app(sees)
    here.told.fails_at = failing
    with pytest.raises(StoreError):
        here.shelf.write(**NOTES, lunch="lunch is free")
    assert here.state(DOGS) == "blocked"
    here.shelf.write(canteen="the canteen is closed in august")
    assert here.state() == "stale"
    here.asking.ask(LEAVE)
    assert here.state() == "hit"
    if sees in ("listing", "look"):
        assert here.known() == here.there()


def test_what_goes_and_comes_back_under_other_ids_ends_nothing(app: Make) -> None:
    here = app()
    here.shelf.write(**NOTES)
    here.asking.settings = type(here.asking.settings)(model="any", corpus=CORPUS, watched=True)
    request = here.asking.request(LEAVE)
    outcome = here.cache.lookup(request)
    with readings() as heard:
        evidence = here.shelf.evidence(LEAVE)
    heard[0] = replace(heard[0], problem="it was ranked otherwise")
    here.cache.update(
        request, here.asking.fresh(LEAVE), outcome=outcome, evidence=evidence, readings=heard
    )
    assert here.state() == "hit"
    moved: dict[str, str | None] = {f"other {one}": text for one, text in NOTES.items()}
    here.shelf.write(**dict.fromkeys(NOTES), **moved)
    assert len(here.told.changes) == 3 + 6
    assert here.state() == "hit"


@pytest.mark.parametrize("failing", [None, 0, 1, 2])
def test_a_takeover_comes_in_parts_and_what_is_left_is_taken_over_again(
    app: Make, failing: int | None
) -> None:
    here = app()
    here.shelf.write(**NOTES)
    kept = {one: text for one, text in NOTES.items() if one < "note5"}
    here.shelf.texts.clear()
    here.shelf.texts |= {**HANDBOOK, **kept, "lunch": "lunch is free"}
    here.told.changes.clear()
    here.told.fails_at = failing
    if failing is not None:
        with pytest.raises(StoreError):
            here.shelf.watch.run(here.shelf.watch.resync())
        left = here.cache.standing(CORPUS)
        assert left is not None and left.intents
        assert here.state() in ("blocked", "stale")
    here.shelf.watch.run(here.shelf.watch.resync())
    assert here.state() == "stale"
    assert here.known() == here.there()
    standing = here.cache.standing(CORPUS)
    assert standing is not None and standing.complete and standing.intents == ()


def test_a_large_write_of_which_little_is_known_ends_all(app: Make) -> None:
    here = app("nothing")
    chunks = tuple(here.shelf.chunk(one, text) for one, text in NOTES.items())
    here.asking.ask("may dogs come")
    here.shelf.watch.run(
        here.shelf.watch.writing(
            here.shelf.step_of(**NOTES),
            told=lambda _: Change(added=chunks, unknown=True),
            ids=None,
        )
    )
    assert here.state() == "stale"
    assert here.known() == here.there()
    assert here.told.changes[0].unknown
    assert not any(part.unknown for part in here.told.changes[1:])


def test_an_id_that_is_named_twice_is_told_of_once(app: Make) -> None:
    here = app()
    old = tuple(Chunk(id=one, digest="old") for one in NOTES)
    new = tuple(here.shelf.chunk(one, text) for one, text in NOTES.items())
    here.shelf.watch.run(
        here.shelf.watch.writing(
            here.shelf.step_of(**NOTES),
            told=lambda _: Change(added=(*old, *new), removed=tuple(NOTES)),
            ids=None,
        )
    )
    assert here.known() == here.there()


def test_a_crash_between_the_parts_is_resolved_by_another_process(app: Make) -> None:
    here = app()
    here.told.fails_at = 2
    with pytest.raises(StoreError):
        here.shelf.write(**NOTES, lunch="lunch is free")
    corpora = here.cache.core.store.corpora
    standing = corpora.standing(CORPUS)
    assert standing is not None
    (left,) = standing.intents
    corpora.begin(CORPUS, Intent(id=left.id, at=0.0, chunks=left.chunks, all_known=True))
    with Cache(here.cache.core.store) as other:
        Shelf(other, texts=here.shelf.texts).write(canteen="the canteen is closed in august")
        assert here.state() == "stale"
        assert here.known() == here.there()
