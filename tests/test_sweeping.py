"""A sweep retrieves again for a sample of answers, and stops hits where the watch was wrong."""

from collections.abc import Iterator

import pytest

from stampcache import Cache, ConfigError, Evidence, Hit, Reason, Stale, scope
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

    def sweeping(self, sample: int = 10, tolerate: float = 0.0) -> Flow[Sweep]:
        return sweep(
            self.front,
            corpus=CORPUS,
            settings=self.asking.settings.digest,
            retrieve=self.retrieve,
            sample=sample,
            tolerate=tolerate,
        )

    def sweep(self, sample: int = 10, tolerate: float = 0.0) -> Sweep:
        return self.front.run(self.sweeping(sample, tolerate))


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


async def test_the_async_face_sweeps_the_same(app: App) -> None:
    found = await app.front.arun(app.sweeping())
    assert (found.checked, found.drifted, found.skipped, found.problem) == (4, (), 0, "")
    app.shelf.write_around(pets="no pets at all may come on any day")
    found = await app.front.arun(app.sweeping())
    assert (found.checked, len(found.drifted)) == (4, 2)
    assert found.problem
    counts = app.cache.core.counters.of(None)
    assert (counts["watch.checked"], counts["watch.drifted"]) == (8, 2)


def failing_at(app: App, number: int) -> None:
    search, left = app.shelf.search, [number]

    def searching(question: str, k: int = 2) -> list[str]:
        left[0] -= 1
        if left[0] < 0:
            raise OSError("the index is away")
        return search(question, k)

    app.shelf.search = searching  # type: ignore[method-assign]  # it goes away after some


@pytest.mark.parametrize("number", range(4))
def test_a_retriever_that_fails_is_the_callers_and_nobody_was_heard_of(
    app: App, number: int
) -> None:
    before = app.cache.standing(CORPUS)
    failing_at(app, number)
    with pytest.raises(OSError, match="away"):
        app.sweep()
    assert app.cache.standing(CORPUS) == before


def test_what_drifted_before_the_retriever_failed_stops_hits(app: App) -> None:
    for name in HANDBOOK:
        app.shelf.write_around(**{name: f"nothing of {name} is as it was"})
    failing_at(app, 3)
    with pytest.raises(OSError, match="away"):
        app.sweep()
    standing = app.cache.standing(CORPUS)
    assert standing is not None
    assert "1 of 1 answers do not hold" in standing.problem
    assert standing.swept_at is None


def test_rounds_go_through_all_answers(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = sorted(
        one.entry_id for question in QUESTIONS if isinstance(one := app.asking.ask(question), Hit)
    )
    assert len(entries) == 4
    asked: list[str] = []
    retrieve = app.retrieve

    def noting(question: str) -> Flow[tuple[Evidence, ...]]:
        asked.append(question)
        return retrieve(question)

    app.retrieve = noting  # type: ignore[method-assign]  # to see what is sampled
    for start in ("", *entries):
        monkeypatch.setattr("stampcache.adapters.sweeping.secrets.token_hex", lambda _, s=start: s)
        assert app.sweep(sample=2).checked == 2
    assert set(asked) == set(QUESTIONS)
    assert max(map(asked.count, QUESTIONS)) - min(map(asked.count, QUESTIONS)) <= 2


def test_in_a_scope_only_its_own_answers_are_retrieved_for(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stampcache.adapters.sweeping._SCANNED", 2)
    asked: list[str] = []
    retrieve = app.retrieve

    def noting(question: str) -> Flow[tuple[Evidence, ...]]:
        asked.append(question)
        return retrieve(question)

    app.retrieve = noting  # type: ignore[method-assign]  # to see what is sampled
    with scope(tenant="other"):
        app.asking.ask(QUESTIONS[0])
        assert app.sweep().checked == 1
        assert asked == [QUESTIONS[0]]
    with scope(tenant="nobody"):
        assert app.sweep().checked == 0
    assert app.sweep().checked == len(QUESTIONS) + 1


def test_an_answer_that_is_replaced_meanwhile_is_skipped(app: App) -> None:
    search = app.shelf.search

    def searching(question: str, k: int = 2) -> list[str]:
        app.shelf.search = search  # type: ignore[method-assign]  # once
        for one in QUESTIONS:  # all are made anew while the first is retrieved for
            request = app.asking.request(one)
            app.cache.update(request, "made anew", evidence=app.shelf.evidence(one))
        return search(question, k)

    app.shelf.search = searching  # type: ignore[method-assign]  # as above
    found = app.sweep()
    assert (found.checked, found.skipped, found.drifted) == (0, 4, ())


def test_a_write_under_way_is_no_drift(app: App) -> None:
    app.shelf.watch.run(app.shelf.watch.announce(None))
    app.shelf.write_around(pets="no pets at all may come on any day")
    found = app.sweep()
    assert (found.checked, found.skipped, found.drifted) == (0, 4, ())


def test_a_write_that_was_undone_between_is_no_drift(app: App) -> None:
    search = app.shelf.search

    def searching(question: str, k: int = 2) -> list[str]:
        app.shelf.search = search  # type: ignore[method-assign]  # once
        app.shelf.write(leave=None, travel=None, lunch=None, pets=None)
        found = search(question, k)
        app.shelf.write(**HANDBOOK)
        return found

    app.shelf.search = searching  # type: ignore[method-assign]  # a write comes and goes
    found = app.sweep()
    assert (found.drifted, found.problem) == ((), "")
    assert isinstance(app.asking.ask(QUESTIONS[0]), Hit)


def test_an_answer_of_which_no_evidence_is_kept_cannot_be_checked(app: App) -> None:
    app.asking.settings = type(app.asking.settings)(model="n", corpus=CORPUS, watched=True)
    app.cache.update(app.asking.request("may cats come"), "No.")
    found = app.sweep()
    assert (found.checked, found.skipped, found.drifted) == (0, 1, ())


def test_nobody_watches_what_is_swept(url: str) -> None:
    with Cache(url) as cache:
        front = Front(cache.core, kind="test")
        found = front.run(
            sweep(
                front,
                corpus="other",
                settings="",
                retrieve=lambda _: iter(()),  # type: ignore[arg-type,return-value]  # never asked
                sample=1,
                tolerate=0.0,
            )
        )
        assert (found.checked, found.problem) == (0, "")
        assert cache.standing("other") is None
