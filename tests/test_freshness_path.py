"""Looking after answers early or on the path, and which ones nobody doubts."""

import asyncio
import math
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from stampcache import (
    Answer,
    AsyncCache,
    Freshness,
    Reason,
    Request,
    Settings,
    Stale,
)
from stampcache.model import EARLY
from stampcache.testing import AngleEmbedder, FakeClock
from stampcache.ttl import HOUR_S
from stampcache.working import Work
from tests.aging import ASKED, CITED, DOUBT_S, FRESH, GONE, HOURS, Aging
from tests.faces import Open

# -- early -----------------------------------------------------------------------------------------


def test_a_popular_answer_is_looked_after_before_anybody_has_to_wait(
    aging: Callable[..., Aging], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = aging(FRESH, beta=1.0, deadline_s=3.0)
    monkeypatch.setattr("stampcache.due.random.random", lambda: 0.0)  # draws 1: never early
    one.fill()
    one.clock.advance(DOUBT_S - 5.0)
    assert one.served()
    assert one.face.work() == Work()
    monkeypatch.setattr("stampcache.due.random.random", lambda: 0.9)  # 3 s * 2.3 is early enough
    assert one.served()
    assert one.face.work() == Work(fresh=1)
    one.clock.advance(10.0)
    assert [one.served() for _ in range(3)] == [True] * 3


def test_far_from_its_doubt_no_luck_is_early(
    aging: Callable[..., Aging], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = aging(FRESH, beta=1e6)
    monkeypatch.setattr("stampcache.due.random.random", lambda: 1.0 - 1e-12)
    one.fill()
    one.clock.advance((1.0 - EARLY) * DOUBT_S - 1.0)
    assert one.served()
    assert one.face.work() == Work()
    one.clock.advance(2.0)
    assert one.served()
    assert one.face.work() == Work(fresh=1)


@pytest.mark.parametrize("every_s", [10.0, 500.0])
def test_the_rarer_the_work_the_earlier_an_answer_is_looked_after(
    aging: Callable[..., Aging], monkeypatch: pytest.MonkeyPatch, every_s: float
) -> None:
    monkeypatch.setattr("stampcache.due.random.random", lambda: 1.0 - 1.0 / math.e)
    one = aging(beta=1.0)
    one.fill(Answer(text="a", latency_s=2.0))
    one.clock.advance(DOUBT_S - 400.0 - 2 * every_s)
    for _ in range(3):  # a process of its own may do this
        one.face.work()
        one.clock.advance(every_s)
    one.clock.advance(-every_s)
    left_s = one.entry().doubtful_at - one.clock.now()  # type: ignore[operator]  # it is doubted
    assert left_s == pytest.approx(400.0)
    assert one.served()
    assert one.face.work() == Work(left=int(every_s > 400.0))


# -- on the path -----------------------------------------------------------------------------------


def test_on_the_path_the_judge_decides_at_once(aging: Callable[..., Aging]) -> None:
    one = aging(FRESH, GONE, on_path=True)
    one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    assert [one.served(), one.served()] == [True, True]
    assert len(one.judge.prompts) == 1
    one.clock.advance(DOUBT_S + 1.0)
    outcome = one.face.lookup(ASKED)
    assert isinstance(outcome, Stale) and outcome.reason is Reason.JUDGED
    assert outcome.detail == "not fresh: prices change"
    assert one.face.why(ASKED) is Reason.JUDGED
    assert len(one.judge.prompts) == 2


def test_on_the_path_a_failure_serves_nothing_and_is_asked_again(
    aging: Callable[..., Aging],
) -> None:
    one = aging("gibberish", FRESH, on_path=True)
    one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    assert not one.served()
    assert one.served()


def test_on_the_path_a_request_that_allows_stale_gets_what_the_judge_refuses(
    aging: Callable[..., Aging],
) -> None:
    one = aging(GONE, on_path=True)
    one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    found = one.face._wait(one.face.cache.lookup(ASKED, allow_stale=True))
    assert isinstance(found, Stale) and found.answer.text == "answer"


def test_off_the_path_stale_answers_are_there_for_who_allows_them(
    aging: Callable[..., Aging],
) -> None:
    one = aging(FRESH)
    one.fill()
    one.clock.advance(DOUBT_S + 100.0)
    found = one.face._wait(one.face.cache.lookup(ASKED, allow_stale=True))
    assert isinstance(found, Stale)
    assert (found.reason, found.answer.text) == (Reason.DOUBTFUL, "answer")
    assert one.face.work() == Work(fresh=1)


def test_a_judge_that_hangs_on_the_path_costs_its_deadline_once(open_face: Open) -> None:
    asked: list[str] = []

    async def never(prompt: str) -> str:
        asked.append(prompt)
        await asyncio.Event().wait()
        return FRESH

    def hanging(prompt: str) -> str:
        asked.append(prompt)
        raise TimeoutError

    clock = FakeClock()
    fresh = Freshness(on_path=True, deadline_s=0.01)
    face = open_face(judge=hanging, freshness=fresh, clock=clock, ttl_s=HOUR_S)
    if isinstance(face.cache, AsyncCache):
        face = open_face(judge=never, freshness=fresh, clock=clock, ttl_s=HOUR_S)
    face.fill(ASKED)
    clock.advance(0.5 * HOUR_S)
    assert face.get_or_create(ASKED, lambda: "anew").text == "anew"
    assert len(asked) == 1
    assert face.get_or_create(ASKED, lambda: "again").text == "anew"


# -- what is never doubted -------------------------------------------------------------------------


def test_what_was_proved_at_the_hit_is_never_doubted_nor_judged(
    aging: Callable[..., Aging],
) -> None:
    for on_path in (False, True):
        one = aging(FRESH, on_path=on_path)
        one.face.clear()
        grounded = Request(question="What is a map?", corpus="c", evidence=CITED)
        entry = one.fill(request=grounded)
        assert entry.doubtful_at is None
        one.clock.advance(0.9 * HOURS * HOUR_S)
        assert [one.face.served(grounded) for _ in range(2)] == ["answer"] * 2
        assert one.face.work() == Work()
        assert one.judge.prompts == []


def test_nor_what_was_stored_without_a_proof_and_is_proved_now(
    aging: Callable[..., Aging],
) -> None:
    one = aging(FRESH, on_path=True)
    assert one.fill().doubtful_at is not None
    one.clock.advance(DOUBT_S + 9_999.0)
    grounded = Request(question="What is a map?", corpus="c", evidence=CITED)
    assert [one.face.served(grounded) for _ in range(2)] == ["answer"] * 2
    assert one.judge.prompts == []
    assert one.face.work() == Work()


def test_nor_what_was_listed_and_is_proved_before_anybody_looks(
    aging: Callable[..., Aging],
) -> None:
    grounded = Request(question="What is a map?", corpus="c", evidence=CITED)
    for early in (True, False):
        one = aging(FRESH, beta=9e9 * early)
        one.face.clear()
        one.fill()
        one.clock.advance(DOUBT_S - 99.0 if early else DOUBT_S + 1.0)
        assert one.served()
        assert one.face.core.store.journal.waiting(now=one.clock.now()) == 1
        assert [one.face.served(grounded) for _ in range(2)] == ["answer"] * 2
        assert one.face.work() == Work()
        assert one.judge.prompts == []


def test_nor_what_a_watch_keeps_true(aging: Callable[..., Aging]) -> None:
    angles = {"What is a map?": 0.0, "Tell me what a map is": 5.0}
    options = {"embedder": AngleEmbedder(angles), "calibration": 0.9, "sample": 0.0}
    one = aging(GONE, on_path=True, options=options)
    watched = Settings(corpus="c", watched=True)
    one.face.core.store.corpora.declare("c", now=one.clock.now(), silence_s=None)
    request = Request(question="What is a map?", settings=watched)
    assert one.fill(request=request).doubtful_at is None
    older = replace(one.entry(request), doubtful_at=one.clock.now())  # as others may have stored it
    store = one.face.core.store
    store.remove(older)
    vector = one.face.core.parts.embedding.embed(request.question).vector
    store.put(older, vector, store.sequence())
    one.clock.advance(0.9 * HOURS * HOUR_S)
    again = Request(question="Tell me what a map is", settings=watched)
    for asked in (request, again, request, again):
        assert one.face.served(asked) == "answer"
    assert one.judge.prompts == []
    assert one.face.work() == Work()


def test_an_answer_in_other_words_is_doubted_too(aging: Callable[..., Aging]) -> None:
    angles = {"What is a map?": 0.0, "Tell me what a map is": 5.0}
    options = {"embedder": AngleEmbedder(angles), "calibration": 0.9, "sample": 0.0}
    one = aging(GONE, options=options)
    one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    again = Request(question="Tell me what a map is", corpus="c")
    assert [bool(one.face.served(again)) for _ in range(2)] == [True, False]
    assert one.face.why(again) is Reason.DOUBTFUL
    assert one.face.work() == Work(not_fresh=1)
    assert one.face.why(again) is Reason.BELOW_THRESHOLD or not one.face.served(again)
