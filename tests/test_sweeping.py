"""A sweep retrieves again for a sample of answers, and stops hits where the watch was wrong."""

from collections.abc import Iterator

import pytest

from stampcache import Cache, ConfigError, Evidence, Hit, Reason, Stale
from stampcache.adapters import Flow, Front, Step, Sweep, sweep
from tests.watched_index import CORPUS, HANDBOOK, Asking, Shelf

QUESTIONS = (
    "how many days of leave",
    "is travel by train paid",
    "what costs lunch",
    "may dogs come",
)


class App:
    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.shelf = Shelf(cache)
        self.shelf.watch.run(self.shelf.watch.open())
        self.shelf.write(**HANDBOOK)
        self.asking = Asking(cache, self.shelf)
        self.front = Front(cache.core, kind="test")
        for question in QUESTIONS:
            self.asking.ask(question)

    def retrieve(self, question: str) -> Flow[tuple[Evidence, ...]]:
        async def aio() -> tuple[Evidence, ...]:
            return self.shelf.evidence(question)

        return (yield from Step(sync=lambda: self.shelf.evidence(question), aio=aio))

    def sweep(self, sample: int = 10, tolerate: float = 0.0) -> Sweep:
        return self.front.run(
            sweep(
                self.front,
                corpus=CORPUS,
                settings=self.asking.settings.digest,
                retrieve=self.retrieve,
                sample=sample,
                tolerate=tolerate,
            )
        )


@pytest.fixture
def app(url: str) -> Iterator[App]:
    with Cache(url) as cache:
        yield App(cache)


def test_a_sweep_of_what_holds_finds_nothing(app: App) -> None:
    found = app.sweep()
    assert (found.checked, found.drifted, found.problem) == (4, (), "")
    standing = app.cache.standing(CORPUS)
    assert standing is not None
    assert (standing.checked, standing.drifted) == (4, 0)
    assert app.sweep(sample=3).checked == 3


def test_what_drifted_is_marked_and_hits_stop_until_it_is_resynced(app: App) -> None:
    app.shelf.write_around(pets="no pets at all may come on any day")
    found = app.sweep()
    assert found.checked == 4
    assert len(found.drifted) == 2
    assert "2 of 4 answers do not hold" in found.problem
    for question in QUESTIONS:
        outcome = app.asking.ask(question)
        assert isinstance(outcome, Stale)
        assert outcome.reason in (Reason.WATCH_BROKEN, Reason.INVALIDATED)
    app.shelf.watch.run(app.shelf.watch.resync())
    for question in QUESTIONS:
        app.asking.ask(question)
        hit = app.asking.ask(question)
        assert isinstance(hit, Hit)
        assert hit.answer.text == app.asking.fresh(question)


def test_drift_within_what_is_tolerated_stops_nothing(app: App) -> None:
    app.shelf.write_around(pets="no pets at all may come on any day")
    found = app.sweep(tolerate=0.5)
    assert len(found.drifted) == 2
    assert found.problem == ""
    assert isinstance(app.asking.ask("what costs lunch"), Hit)
    assert isinstance(app.asking.ask("may dogs come"), Stale)


def test_what_a_write_ends_meanwhile_is_no_drift(app: App) -> None:
    search = app.shelf.search

    def searching(question: str, k: int = 2) -> list[str]:
        app.shelf.search = search  # type: ignore[method-assign]  # once
        app.shelf.write(pets="no pets at all may come on any day")
        return search(question, k)

    app.shelf.search = searching  # type: ignore[method-assign]  # a write comes during the sweep
    found = app.sweep()
    assert found.drifted == ()
    assert found.checked + found.skipped == 4


def test_answers_of_other_settings_are_left_to_others(app: App) -> None:
    app.asking.settings = type(app.asking.settings)(model="n", corpus=CORPUS, watched=True)
    assert app.sweep().checked == 0


@pytest.mark.parametrize(("sample", "tolerate"), [(0, 0.0), (1, -0.1), (1, 1.1)])
def test_a_sweep_that_makes_no_sense_is_refused(app: App, sample: int, tolerate: float) -> None:
    with pytest.raises(ConfigError):
        app.sweep(sample, tolerate)
