"""A watch over an index: what is written through it ends what it changes, and nothing else."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stampcache import Cache, ConfigError, Entry, Hit, Miss, Reason, Refused, Stale, StoreError
from stampcache.adapters import Reading
from stampcache.corpora import Intent, Owner
from stampcache.testing import FailingStore, FakeClock
from tests.watched_index import CORPUS, HANDBOOK, Asking, Shelf

LEAVE = "how many days of leave"


class App:
    def __init__(self, cache: Cache, clock: FakeClock, **options: object) -> None:
        self.cache = cache
        self.clock = clock
        self.shelf = Shelf(cache, **options)  # type: ignore[arg-type]  # given by the test as they are
        self.shelf.watch.run(self.shelf.watch.open())
        self.asking = Asking(cache, self.shelf)
        self.ask = self.asking.ask

    def hit(self, question: str = LEAVE) -> bool:
        """Ask; a hit must be what the application says now."""
        outcome = self.ask(question)
        if isinstance(outcome, Hit):
            assert outcome.answer.text == self.asking.fresh(question)
            return True
        return False


MakeApp = Callable[..., App]


@pytest.fixture
def app(url: str) -> Iterator[MakeApp]:
    opened: list[Cache] = []

    def make(**options: object) -> App:
        clock = FakeClock()
        opened.append(Cache(url, clock=clock))
        made = App(opened[-1], clock, **options)
        made.shelf.write(**HANDBOOK)
        return made

    yield make
    for cache in opened:
        cache.close()


def test_a_write_elsewhere_keeps_an_answer_and_one_in_reach_ends_it(app: MakeApp) -> None:
    here = app()
    assert not here.hit()
    assert here.hit()
    here.shelf.write(canteen="the canteen is closed in august")
    assert here.hit()
    here.shelf.write(parents="parents have days of leave many more")
    stale = here.ask(LEAVE)
    assert isinstance(stale, Stale)
    assert stale.reason is Reason.INVALIDATED
    assert "'parents.md' of corpus 'handbook' changed" in stale.detail
    assert here.hit()


def test_what_is_undone_restores_and_white_space_changes_nothing(app: MakeApp) -> None:
    here = app()
    here.hit()
    here.shelf.write(leave=None)
    assert isinstance(here.cache.lookup(here.asking.request(LEAVE)), Stale)
    here.shelf.write(leave=HANDBOOK["leave"])
    assert isinstance(here.cache.lookup(here.asking.request(LEAVE)), Hit)
    here.shelf.write(leave="every  employee\nhas thirty days of leave ")
    assert isinstance(here.cache.lookup(here.asking.request(LEAVE)), Hit)
    here.shelf.write(again=HANDBOOK["leave"])  # under a second id it would be found twice
    assert isinstance(here.cache.lookup(here.asking.request(LEAVE)), Stale)
    here.shelf.write(leave=None)
    assert isinstance(here.cache.lookup(here.asking.request(LEAVE)), Hit)
    assert here.hit()


def test_nothing_is_served_while_documents_are_written(app: MakeApp) -> None:
    here = app()
    here.hit()
    seen: list[object] = []
    write = here.shelf.write_around

    def writing(**texts: str | None) -> None:
        seen.append(here.cache.lookup(here.asking.request(LEAVE)))
        write(**texts)

    here.shelf.write_around = writing  # type: ignore[method-assign]  # to look while it writes
    here.shelf.write(canteen="the canteen is closed in august")
    (during,) = seen
    assert isinstance(during, Stale)
    assert during.reason is Reason.BEING_WRITTEN
    assert here.hit()


@pytest.mark.parametrize("sees", ["listing", "count", "nothing"])
def test_a_write_that_fails_half_way_leaves_nothing_untrue(app: MakeApp, sees: str) -> None:
    here = app(sees=sees)
    here.hit()
    here.shelf.fails_after = 1
    with pytest.raises(OSError, match="full"):
        here.shelf.write(leave="nobody has days of leave", travel="by car")
    here.shelf.fails_after = None
    assert here.shelf.texts["leave"] == "nobody has days of leave"
    assert not here.hit()
    assert here.hit()
    standing = here.cache.standing(CORPUS)
    assert standing is not None
    assert standing.intents == ()


def test_a_write_that_fails_at_once_costs_nothing_where_it_can_be_seen(app: MakeApp) -> None:
    here = app()
    here.hit()
    here.shelf.fails_after = 0
    with pytest.raises(OSError, match="full"):
        here.shelf.write(leave="nobody has days of leave")
    here.shelf.fails_after = None
    assert here.hit()


def test_nobody_watches(url: str) -> None:
    with Cache(url) as cache:
        shelf = Shelf(cache, texts=dict(HANDBOOK))
        asking = Asking(cache, shelf)
        assert isinstance(asking.ask(LEAVE), Miss)
        assert isinstance(asking.ask(LEAVE), Miss), "nothing was stored"
        shelf.watch.run(shelf.watch.open())
        assert isinstance(asking.ask(LEAVE), Miss)
        assert isinstance(asking.ask(LEAVE), Hit)


def test_silence_stops_hits_and_a_word_lets_them_go_on(app: MakeApp) -> None:
    here = app(silence_s=600.0)
    here.hit()
    here.clock.advance(599)
    assert here.hit()
    here.clock.advance(2)
    silent = here.ask(LEAVE)
    assert isinstance(silent, Stale)
    assert silent.reason is Reason.WATCH_BROKEN
    assert "silent for 601 s" in silent.detail
    here.cache.heard(CORPUS)
    assert here.hit()


@pytest.mark.parametrize("sees", ["listing", "count"])
def test_what_went_around_is_noticed_at_open(app: MakeApp, sees: str) -> None:
    here = app(sees=sees)
    here.hit()
    here.hit("may dogs come")
    here.shelf.write_around(parents="parents have days of leave many more")
    assert any(
        "around the watch" in one for one in here.shelf.watch.run(here.shelf.watch.examine())
    )
    standing = here.shelf.watch.run(here.shelf.watch.open())
    if sees == "listing":
        assert not standing.problem
        assert here.cache.core.counters.of(None)["watch.missed"] == 1
        assert not here.hit(), "a chunk without a vector may be anywhere"
    else:
        assert "the index holds 5 chunks, the watch knows of 4" in standing.problem
        blocked = here.ask(LEAVE)
        assert isinstance(blocked, Stale)
        assert blocked.reason is Reason.WATCH_BROKEN
        here.shelf.watch.run(here.shelf.watch.resync())
        assert not here.hit("may dogs come")
        assert not here.hit()
    assert here.hit()


def test_what_went_around_is_noticed_by_the_search_that_finds_it(app: MakeApp) -> None:
    here = app()
    here.shelf.write_around(leave="nobody has any days of leave")
    here.hit()
    told = here.cache.explain(here.asking.request(LEAVE))
    assert "differs from what the watch knows" in str(told)
    here.shelf.write(canteen="the canteen is closed in august")
    assert isinstance(here.ask(LEAVE), Stale), "so any write ends it"


def test_explain_says_what_would_end_an_answer(app: MakeApp) -> None:
    here = app()
    here.hit()
    said = str(here.cache.explain(here.asking.request(LEAVE)))
    assert "a write to corpus 'handbook' ends it at cosine 0." in said


def test_a_store_that_is_down_lets_nobody_write(tmp_path: Path) -> None:
    store = FailingStore()
    with Cache(store, secret="of sixteen bytes or more") as cache:
        here = App(cache, FakeClock())
        here.shelf.write(**HANDBOOK)
        store.down = True
        with pytest.raises(StoreError):
            here.shelf.write(leave="nobody has days of leave")
        assert here.shelf.texts["leave"] == HANDBOOK["leave"]
        store.down = False


def test_a_store_that_goes_down_meanwhile_serves_nothing_untrue() -> None:
    store = FailingStore()
    with Cache(store, secret="of sixteen bytes or more") as cache:
        here = App(cache, FakeClock())
        here.shelf.write(**HANDBOOK)
        here.hit()
        write = here.shelf.write_around

        def writing(**texts: str | None) -> None:
            write(**texts)
            store.down = True

        here.shelf.write_around = writing  # type: ignore[method-assign]  # it goes down at the end
        with pytest.raises(StoreError):
            here.shelf.write(leave="nobody has days of leave")
        here.shelf.write_around = write  # type: ignore[method-assign]  # as it was
        store.down = False
        blocked = cache.lookup(here.asking.request(LEAVE))
        assert isinstance(blocked, Stale)
        assert blocked.reason is Reason.BEING_WRITTEN
        here.shelf.write(canteen="the canteen is closed in august")
        assert not here.hit()
        assert here.hit()


CRASH = """
import os, signal, sys
sys.path.insert(0, {root!r})
from stampcache import Cache
from tests.watched_index import HANDBOOK, Shelf
shelf = Shelf(Cache({url!r}), texts=dict(HANDBOOK))
write = shelf.write_around
def writing(**texts):
    if {landed}:
        write(**texts)
    os.kill(os.getpid(), signal.SIGKILL)
shelf.write_around = writing
shelf.write(leave="nobody has days of leave")
"""


@pytest.mark.parametrize("landed", [True, False])
def test_a_killed_writer_blocks_hits_until_the_next_write(tmp_path: Path, landed: bool) -> None:
    url = f"sqlite:///{tmp_path / 'cache.db'}"
    with Cache(url) as cache:
        here = App(cache, FakeClock())
        here.shelf.write(**HANDBOOK)
        here.hit()
        here.hit("may dogs come")
        code = CRASH.format(root=str(Path(__file__).parents[1]), url=url, landed=landed)
        done = subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ))
        assert done.returncode == -signal.SIGKILL
        if landed:
            here.shelf.write_around(leave="nobody has days of leave")
        blocked = here.ask("may dogs come")
        assert isinstance(blocked, Stale)
        assert blocked.reason is Reason.BEING_WRITTEN
        here.shelf.write(canteen="the canteen is closed in august")
        assert here.hit() is not landed
        assert here.hit()


def test_an_intent_of_another_machine_is_left_alone_until_it_is_old(app: MakeApp) -> None:
    here = app()
    here.hit()
    elsewhere = Intent(id="x", at=here.clock.now(), owner=Owner(host="elsewhere"), all_known=True)
    here.cache.core.store.corpora.begin(CORPUS, elsewhere)
    here.shelf.write(canteen="the canteen is closed in august")
    assert isinstance(here.ask(LEAVE), Stale)
    here.clock.advance(1_000)
    here.shelf.write(canteen="the canteen is closed in july")
    assert here.hit()


@pytest.mark.parametrize(("corpus", "silence_s"), [("", None), ("c", 0.0), ("c", float("nan"))])
def test_a_watch_that_makes_no_sense_is_refused(corpus: str, silence_s: float | None) -> None:
    from stampcache.adapters import IndexView, Watch

    with Cache("memory://") as cache, pytest.raises(ConfigError):
        Watch(cache.core, corpus, IndexView(), silence_s=silence_s)


def test_an_answer_from_a_second_corpus_is_not_stored(app: MakeApp) -> None:
    here = app()
    request = here.asking.request(LEAVE)
    outcome = here.cache.lookup(request)
    done = here.cache.update(
        request, "of both", outcome=outcome, readings=[Reading(corpus="elsewhere")]
    )
    assert isinstance(done, Refused)
    assert done.reason is Reason.UNWATCHED
    assert done.detail == "corpus 'elsewhere' was searched, too"


def test_explain_goes_without_what_the_store_cannot_tell(
    app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = app()
    here.hit()

    def down(entry: Entry) -> None:
        raise StoreError("The store is down.")

    monkeypatch.setattr(here.cache.core.store.corpora, "reach", down)
    told = here.cache.explain(here.asking.request(LEAVE))
    assert isinstance(told.outcome, Hit)
    assert [check.step for check in told.checks] == ["exact key"]
    assert here.cache.core.counters.of(None)["error.store_error"] == 1
