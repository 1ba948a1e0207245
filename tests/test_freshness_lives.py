"""Kinds, lifetimes and observed rates through a whole cache; and what is told of a judge."""

import random
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from stampcache import Answer, Cache, Evidence, Freshness, Hit, Reason, Request, Usage, scope
from stampcache.testing import FakeClock
from stampcache.testing.contract import in_threads
from stampcache.ttl import DAY_S, HOUR_S, Lifetime
from tests.aging import ASKED, CITED, DOUBT_S, FRESH, GONE, HOURS, Aging
from tests.faces import Open

# -- kinds -----------------------------------------------------------------------------------------


def test_a_kind_is_guessed_by_rule_and_shortens_the_doubt(aging: Callable[..., Aging]) -> None:
    one = aging(FRESH)
    price = one.fill(request=Request(question="How much is a map?", corpus="c"))
    assert price.kind == "price"
    assert price.doubtful_at is not None
    assert price.doubtful_at - price.created_at == pytest.approx(DOUBT_S / HOURS)
    off = aging(FRESH, guess_kinds=False)
    assert off.fill(request=Request(question="How much are maps?", corpus="c")).kind == ""


def test_the_judge_names_a_kind_once(aging: Callable[..., Aging]) -> None:
    price = '{"fresh": true, "reason": "r", "kind": "price"}'
    one = aging(price, FRESH, "gibberish", FRESH, FRESH, on_path=True)
    one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    assert one.served()
    for served in (True, False, True, True):  # nothing that is said later makes that forgotten
        kept = one.entry()
        assert kept.doubtful_at is not None and kept.confirmed_at is not None
        assert kept.doubtful_at - kept.confirmed_at == pytest.approx(DOUBT_S / HOURS)
        one.clock.advance(DOUBT_S / HOURS + 1.0)
        assert one.served() == served
    assert ['"kind"' in prompt for prompt in one.judge.prompts] == [True, *[False] * 4]
    assert all("Kind of data: price" in prompt for prompt in one.judge.prompts[1:])


def test_a_judge_is_told_when_it_was_made_however_often_it_was_confirmed(
    aging: Callable[..., Aging],
) -> None:
    """What a judge says is a guess: a second guess upon it would be about a short time only."""
    one = aging(FRESH, FRESH, on_path=True)
    made = one.fill()
    for _ in range(2):
        one.clock.advance(DOUBT_S + 1.0)
        assert one.served()
    told = datetime.fromtimestamp(made.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    assert [f"{told}\n" in prompt for prompt in one.judge.prompts] == [True, True]


# -- lifetimes and observations --------------------------------------------------------------------


def test_what_is_seen_at_refills_moves_the_doubt(aging: Callable[..., Aging]) -> None:
    one = aging()
    entry, looked_s, after_s = one.fill(), 0.0, [DOUBT_S]
    for _ in range(5):
        assert entry.doubtful_at is not None
        aged_s = after_s[-1] + 61.0
        one.clock.advance(aged_s)
        entry = one.fill("the same")
        assert entry.doubtful_at is not None
        looked_s += aged_s
        after_s.append(entry.doubtful_at - one.clock.now())
        assert after_s[-1] == pytest.approx(0.22314 * (HOURS * HOUR_S + looked_s), rel=1e-3)
    assert after_s == sorted(after_s)
    seen = one.face.core.store.journal.observed("c", ["a.md"])["a.md"]
    assert (seen.changes, seen.seconds) == (0, pytest.approx(looked_s))


def test_made_anew_by_work_counts_as_well(aging: Callable[..., Aging]) -> None:
    one = aging()
    one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    assert one.served()
    one.face.work(refresh=one.refresh())
    seen = one.face.core.store.journal.observed("c", ["a.md"])["a.md"]
    assert (seen.changes, seen.seconds) == (0, pytest.approx(DOUBT_S + 1.0))
    assert one.entry().lifetime_s == pytest.approx(HOURS * HOUR_S + DOUBT_S + 1.0)


def test_announced_changes_raise_no_doubt_and_are_told_to_the_judge(
    aging: Callable[..., Aging],
) -> None:
    """An announced change has marked what it touched: it is none that nobody tells."""
    one = aging(FRESH)
    one.fill()
    for _ in range(11):
        one.clock.advance(600.0)
        for chunk in ("1", "2"):  # one edit, said of each of its chunks
            one.face.invalidate(corpus="c", source="a.md", chunk=chunk)
    seen = one.face.core.store.journal.observed("c", ["a.md"])["a.md"]
    assert (seen.changes, seen.per_hour) == (0, None)
    assert (seen.announced, seen.announced_per_hour) == (11, pytest.approx(6.0))
    entry = one.fill()
    assert entry.doubtful_at is not None
    assert entry.doubtful_at - one.clock.now() == pytest.approx(DOUBT_S)
    one.clock.advance(DOUBT_S + 1.0)
    assert one.served()
    one.face.work()
    assert "nothing was observed yet; 6 per hour besides were announced" in one.judge.prompts[0]


def test_without_freshness_nothing_is_written_down(open_face: Open) -> None:
    face = open_face()
    outcome = face.lookup(ASKED)
    face.update(ASKED, "a", outcome=outcome, evidence=CITED)
    face.invalidate(corpus="c", source="a.md")
    assert face.core.store.journal.observed("c", ["a.md"]) == {}


def test_popularity_never_outlives_the_doubt(aging: Callable[..., Aging]) -> None:
    sliding = {"static": Lifetime(ttl_s=HOUR_S, cap_s=DAY_S)}
    request = Request(question="What is a map?", corpus="c", kind="static")
    one = aging(options={"lifetimes": sliding}, limit=0.9)  # doubted after 2.3 lives
    made = one.fill(request=request)
    assert made.doubtful_at is not None
    for _ in range(10_000):
        one.clock.advance(300.0)
        if not one.face.served(request):
            break
    assert one.clock.now() < made.doubtful_at + one.freshness.grace_s + 300.0
    assert one.clock.now() - made.created_at > 1.5 * HOUR_S, "it was popular, so it lived longer"
    assert one.face.why(request) in (Reason.DOUBTFUL, Reason.EXPIRED)


def test_confirmed_again_and_again_it_ends_at_the_cap(aging: Callable[..., Aging]) -> None:
    one = aging(*[FRESH] * 999, on_path=True, cap_s=30 * HOUR_S, calls_per_minute=9_999)
    made = one.fill()
    while one.served():
        one.clock.advance(0.1 * DOUBT_S)
        assert one.clock.now() - made.created_at <= 31 * HOUR_S
    assert one.clock.now() - made.created_at >= 20 * HOUR_S
    assert one.face.why(ASKED) is Reason.EXPIRED


def test_a_told_life_is_made_longer_by_no_verdict(aging: Callable[..., Aging]) -> None:
    one = aging(*[FRESH] * 99, on_path=True)
    with scope(ttl_s=DOUBT_S + 60.0):
        one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    one.served()
    one.clock.advance(60.0)
    assert one.face.why(ASKED) is Reason.EXPIRED


# -- figures ---------------------------------------------------------------------------------------


def test_the_figures_tell_whether_a_judge_earns_its_keep(aging: Callable[..., Aging]) -> None:
    class Message:
        usage_metadata = {"input_tokens": 300, "output_tokens": 20}  # noqa: RUF012 - as messages of the framework have it

        def __init__(self, content: str) -> None:
            self.content = content

    replies = [FRESH, GONE, "gibberish"]
    one = aging(FRESH, calls_per_minute=3)
    one.face = one.open(judge=lambda _prompt: Message(replies.pop(0)))
    requests = [Request(question=f"What is {at}?", corpus="c") for at in range(3)]
    for request in requests:
        one.fill(Answer(text="a", usage=Usage(output_tokens=5)), request=request)
    one.clock.advance(DOUBT_S + 1.0)
    for request in requests:
        assert one.face.served(request)
    one.face.work()
    for _ in range(4):
        assert one.face.served(requests[0])
    stats = one.face.stats(everything=True)
    judge = stats.judge
    assert (judge.fresh, judge.not_fresh, judge.failed, judge.calls) == (1, 1, 1, 3)
    assert (judge.refusals, judge.saved, judge.tokens, judge.unasked) == (2, 1, 960, 0)
    assert judge.seconds >= 0.0
    assert judge.calls_per_1000 == pytest.approx(3_000 / stats.requests)
    assert stats.requests == 10
    mine = one.face.stats()
    assert (mine.judge.saved, mine.judge.calls) == (1, 0), "it is asked for all scopes together"


def test_every_verdict_is_kept_with_its_reason_and_cost(aging: Callable[..., Aging]) -> None:
    one = aging(FRESH, GONE, on_path=True)
    entry = one.fill()
    for _ in range(2):
        one.clock.advance(DOUBT_S + 1.0)
        one.served()
    latest, first = one.face.core.store.journal.verdicts(9)
    assert (latest.entry_id, latest.reason, latest.fresh) == (entry.id, "prices change", False)
    assert (first.reason, first.fresh, first.judge) == ("it names no date", True, "ScriptedJudge")
    one.clock.advance(7.0)
    told = one.face.explain(ASKED)
    assert told.verdict == latest
    said = r"judged 7 s ago by ScriptedJudge, not fresh: prices change \(\d+\.\d s, 0 tokens\)"
    assert re.search(said, str(told))


def test_a_verdict_is_told_of_an_entry_that_holds_too(aging: Callable[..., Aging]) -> None:
    one = aging(FRESH, on_path=True)
    one.fill()
    assert one.face.explain(ASKED).verdict is None
    one.clock.advance(DOUBT_S + 1.0)
    one.served()
    told = one.face.explain(ASKED)
    assert isinstance(told.outcome, Hit)
    assert "fresh: it names no date" in str(told)


# -- over a long time ------------------------------------------------------------------------------


@pytest.mark.parametrize("announced", [False, True])
@pytest.mark.parametrize("every_h", [20.0, 200.0])
def test_over_a_year_the_rate_is_found_and_what_is_served_is_as_doubtful_as_allowed(
    announced: bool, every_h: float
) -> None:
    """One source that changes at random times, an answer that is asked for every half an hour."""
    random_, clock = random.Random(17), FakeClock()
    fresh = Freshness(limit=0.2, beta=0.0, grace_s=0.0)
    cache = Cache("memory://", freshness=fresh, clock=clock)
    start, version, served, stale = clock.now(), 0, 0, 0
    next_change = random_.expovariate(1 / (every_h * HOUR_S))
    while clock.now() - start < 365 * DAY_S:
        clock.advance(0.5 * HOUR_S)
        while clock.now() - start > next_change:
            version += 1
            next_change += random_.expovariate(1 / (every_h * HOUR_S))
            if announced:
                cache.invalidate(corpus="c", source="a.md")
        outcome = cache.lookup(ASKED)
        if isinstance(outcome, Hit):
            served += 1
            stale += outcome.answer.text != str(version)
        else:
            cited = [Evidence(corpus="c", source="a.md", chunk="1", text=f"version {version}")]
            cache.update(ASKED, str(version), outcome=outcome, evidence=cited)
    seen = cache.core.store.journal.observed("c", ["a.md"])["a.md"]
    found = seen.announced_per_hour if announced else seen.per_hour
    assert found == pytest.approx(1 / every_h, rel=0.35)
    assert served > 0.5 * 365 * 48
    assert stale / served < (0.001 if announced else 0.2)


def test_of_requests_that_are_made_once_the_judge_is_asked_once(tmp_path: Path) -> None:
    asked: list[str] = []
    begun, clock = threading.Barrier(12), FakeClock()

    def judge(prompt: str) -> str:
        asked.append(prompt)
        return FRESH

    fresh = Freshness(on_path=True, deadline_s=30.0, calls_per_minute=999)
    cache = Cache(f"sqlite:///{tmp_path / 'c.db'}", judge=judge, freshness=fresh, clock=clock)
    cache.update(ASKED, "kept", outcome=cache.lookup(ASKED))
    clock.advance(2 * DAY_S)
    answers: list[str] = []

    def ask(_: int) -> None:
        begun.wait()
        answers.append(cache.get_or_create(ASKED, lambda: "anew").text)

    in_threads(ask, count=12)
    assert (answers, len(asked)) == (["kept"] * 12, 1)
    cache.close()
