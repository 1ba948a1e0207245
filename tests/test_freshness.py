"""When an answer is doubted, and what `work` then does, through both faces over both stores."""

from collections.abc import Callable
from typing import Any

import pytest

from stampcache import (
    Answer,
    Hit,
    Reason,
    Request,
    Scope,
    Settings,
    Stale,
    scope,
)
from stampcache.due import DueEntry
from stampcache.model import Selector
from stampcache.request import Seam
from stampcache.testing import FailingStore, FakeClock, ScriptedJudge
from stampcache.ttl import HOUR_S
from stampcache.working import Work
from tests.aging import ASKED, CITED, DOUBT_S, FRESH, GONE, HOURS, Aging
from tests.faces import Open

# -- doubt -----------------------------------------------------------------------------------------


def test_an_answer_is_doubted_when_the_chance_of_a_change_is_above_the_limit(
    aging: Callable[..., Aging],
) -> None:
    for limit, share in ((0.2, 0.2231), (0.5, 0.6931)):
        one = aging(limit=limit)
        one.face.clear()
        entry = one.fill()
        assert entry.doubtful_at is not None
        assert entry.doubtful_at - entry.created_at == pytest.approx(
            share * HOURS * HOUR_S, rel=1e-3
        )


def test_without_freshness_nothing_is_doubted(open_face: Open) -> None:
    clock = FakeClock()
    face = open_face(ttl_s=HOURS * HOUR_S, clock=clock)
    face.fill(ASKED)
    clock.advance(0.9 * HOURS * HOUR_S)
    assert face.served(ASKED)
    assert face.core.judge is None


def test_a_judge_alone_turns_doubt_on(open_face: Open) -> None:
    clock, judge = FakeClock(), ScriptedJudge([FRESH])
    face = open_face(ttl_s=HOURS * HOUR_S, clock=clock, judge=judge)
    face.fill(ASKED)
    clock.advance(DOUBT_S + 1.0)
    assert face.served(ASKED)
    assert face.work() == Work(fresh=1)


def test_off_the_path_it_is_served_once_in_its_grace_and_then_stale(
    aging: Callable[..., Aging],
) -> None:
    one = aging(FRESH)
    one.fill()
    one.clock.advance(DOUBT_S - 1.0)
    assert [one.served() for _ in range(3)] == [True] * 3
    one.clock.advance(2.0)
    assert [one.served() for _ in range(3)] == [True, False, False]
    assert one.face.why(ASKED) is Reason.DOUBTFUL
    assert one.judge.prompts == [], "nobody was asked on the path"


def test_after_its_grace_it_is_not_served_at_all(aging: Callable[..., Aging]) -> None:
    one = aging(FRESH)
    one.fill()
    one.clock.advance(DOUBT_S + 60.5)
    assert not one.served()
    assert one.face.work() == Work(fresh=1), "it is looked after all the same"
    assert one.served()


def test_explaining_uses_up_no_grace_and_says_the_doubt(aging: Callable[..., Aging]) -> None:
    one = aging(FRESH)
    one.fill()
    assert f"may have changed in {DOUBT_S:.0f} s" in str(one.face.explain(ASKED))
    one.clock.advance(DOUBT_S + 5.0)
    for _ in range(2):
        told = one.face.explain(ASKED)
        assert isinstance(told.outcome, Stale) and told.outcome.reason is Reason.DOUBTFUL
        assert "may have changed for 5 s" in str(told)
    assert one.face.work() == Work()
    assert one.served()


# -- work ------------------------------------------------------------------------------------------


def test_a_confirmed_answer_is_served_again_and_doubted_later(
    aging: Callable[..., Aging],
) -> None:
    one = aging(FRESH, FRESH)
    made = one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    one.served()
    assert not one.served()
    assert one.face.work() == Work(fresh=1)
    assert one.served()
    kept = one.entry()
    assert (kept.id, kept.created_at) == (made.id, made.created_at)
    assert kept.confirmed_at == one.clock.now()
    assert kept.doubtful_at == pytest.approx(one.clock.now() + DOUBT_S)
    one.clock.advance(DOUBT_S + 1.0)
    assert [one.served(), one.served()] == [True, False], "once more, as it was confirmed since"
    assert one.face.work() == Work(fresh=1)


def test_one_that_is_not_fresh_is_marked_and_says_why(aging: Callable[..., Aging]) -> None:
    one = aging(GONE)
    one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    assert one.served()
    assert one.face.work() == Work(not_fresh=1)
    outcome = one.face.lookup(ASKED)
    assert isinstance(outcome, Stale) and outcome.reason is Reason.JUDGED
    assert outcome.detail == "the judge found it no longer fresh: prices change"
    assert one.face.work() == Work(), "and is not looked at again"
    one.face.update(ASKED, "anew", outcome=outcome, evidence=CITED)
    assert one.face.served(ASKED) == "anew"


def test_one_that_is_not_fresh_is_made_anew(aging: Callable[..., Aging]) -> None:
    one = aging(GONE)
    made = one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    assert one.served()
    assert one.face.work(refresh=one.refresh()) == Work(not_fresh=1, refreshed=1)
    assert one.face.served(ASKED) == "anew"
    assert one.entry().id != made.id


def test_without_a_judge_whatever_is_doubted_is_made_anew(aging: Callable[..., Aging]) -> None:
    one = aging()
    one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    assert one.served()
    assert one.face.work(refresh=one.refresh()) == Work(refreshed=1)
    assert one.face.served(ASKED) == "anew"


def test_without_a_judge_or_a_refresh_work_gives_no_second_grace(
    aging: Callable[..., Aging],
) -> None:
    one = aging()
    one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    assert one.served()
    assert one.face.work() == Work(left=1), "it stays for one who has a judge"
    assert not one.served()


def test_a_refresh_that_fails_is_counted_and_stops_nobody(aging: Callable[..., Aging]) -> None:
    other = Request(question="What is a filter?", corpus="c")
    one = aging(GONE, GONE)
    for request in (ASKED, other):
        one.fill(request=request)
    one.clock.advance(DOUBT_S + 1.0)
    for request in (ASKED, other):
        assert one.face.served(request)
    made = one.refresh()

    def refresh(due: DueEntry) -> object:
        if due.entry.question == ASKED.question:
            raise RuntimeError("the model is down")
        return made(due)

    assert one.face.work(refresh=refresh) == Work(not_fresh=2, refreshed=1, failed=1)
    assert one.face.stats(everything=True).counters["error.refresh"] == 1
    assert one.face.why(ASKED) is Reason.JUDGED
    assert one.face.served(other) == "anew"


@pytest.mark.parametrize("reply", ["gibberish", ValueError("no quota"), f"{GONE}\n{FRESH}"])
def test_a_failure_is_not_fresh_and_is_tried_again(
    aging: Callable[..., Aging], reply: str | Exception
) -> None:
    one = aging(reply, FRESH)
    one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    one.served()
    assert one.face.work() == Work(failed=1, left=1)
    assert not one.served(), "no second grace"
    assert one.face.why(ASKED) is Reason.DOUBTFUL
    assert one.face.work() == Work(fresh=1)
    assert one.served()


def test_one_that_always_fails_keeps_nobody_else_waiting(aging: Callable[..., Aging]) -> None:
    def judge(prompt: str) -> str:
        return "gibberish" if "map" in prompt.partition("question\n")[2][:20] else FRESH

    one = aging(FRESH)
    one.face = one.open(judge=judge)
    other = Request(question="What is a filter?", corpus="c")
    for request in (ASKED, other):
        one.fill(request=request)
    one.clock.advance(DOUBT_S + 1.0)
    for request in (ASKED, other):
        assert one.face.served(request)
    assert one.face.work(limit=1) == Work(failed=1, left=2)
    assert one.face.work(limit=1) == Work(fresh=1, left=1)


def test_work_stops_with_the_budget_of_the_minute(aging: Callable[..., Aging]) -> None:
    one = aging(*[FRESH] * 9, calls_per_minute=2, grace_s=9e9)
    requests = [Request(question=f"What is {at}?", corpus="c") for at in range(5)]
    for request in requests:
        one.fill(request=request)
    one.clock.advance(DOUBT_S + 1.0)
    for request in requests:
        assert one.face.served(request)
    assert one.face.work() == Work(fresh=2, left=3)
    assert one.face.work() == Work(left=3)
    one.clock.advance(60.0)
    assert one.face.work(limit=1) == Work(fresh=1, left=2)
    assert one.face.stats(everything=True).judge.failed == 0


def test_work_looks_at_nothing_that_needs_it_no_more(aging: Callable[..., Aging]) -> None:
    one = aging(FRESH)
    names = ("invalidated", "replaced", "gone", "expired", "left")
    requests = {name: Request(question=f"What is {name}?", corpus="c") for name in names}
    entries = {name: one.fill(request=request) for name, request in requests.items()}
    one.clock.advance(DOUBT_S + 1.0)
    for request in requests.values():
        assert one.face.served(request)
    one.face.invalidate(entry=entries["invalidated"].id)
    with scope(no_cache=True):
        outcome = one.face.lookup(requests["replaced"])
    one.face.update(requests["replaced"], "anew", outcome=outcome)
    one.face.report_bad(entries["gone"].id)
    one.face.core.store.renew(entries["expired"], one.clock.now() - 1.0)
    assert one.face.work() == Work(fresh=1)
    assert len(one.judge.prompts) == 1


def test_a_refresh_is_told_whose_question_it_is(aging: Callable[..., Aging]) -> None:
    one = aging()
    seen: list[Scope] = []
    with scope(tenant="acme", audience="7"):
        one.fill()
        one.clock.advance(DOUBT_S + 1.0)
        assert one.served()
    one.face.work(refresh=lambda due: seen.append(due.scope))
    assert seen == [Scope("acme", "default", "7")]


def test_a_damaged_entry_is_counted_and_left(aging: Callable[..., Aging], url: str) -> None:
    one = aging(FRESH, options={"store": FailingStore()})
    one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    assert one.served()
    store: Any = one.face.core.store
    store.down = True
    assert one.face.work() == Work()
    assert one.face.core.counters.of(None)["error.work"] == 1
    store.down = False
    assert one.face.work() == Work(fresh=1)


def test_what_cannot_be_listed_is_not_served_though_doubted(aging: Callable[..., Aging]) -> None:
    """Nobody would look after it, and nobody knows whether it was served before."""

    class NoList(FailingStore):
        @property
        def journal(self) -> Any:
            journal = super().journal
            if self.broken:
                journal.list_due = broken
            return journal

        broken = False

    def broken(*_: Any, **__: Any) -> Any:
        raise OSError("list")

    store = NoList()
    one = aging(FRESH, beta=9e9, options={"store": store})
    one.fill()
    store.broken = True
    one.clock.advance(0.9 * DOUBT_S)
    assert one.served(), "it is not doubted yet"
    one.clock.advance(0.2 * DOUBT_S)
    assert one.face.why(ASKED) is Reason.DOUBTFUL
    assert one.face.core.counters.of(None)["error.due"] == 2


def test_the_grace_is_a_share_of_the_life_and_bounded(aging: Callable[..., Aging]) -> None:
    for grace_s, share, left_s in (
        (1e9, 0.15, 0.15 * HOURS * HOUR_S),
        (60.0, 0.15, 60.0),
        (1e9, 0.0, 0.0),
    ):
        one = aging(FRESH, grace_s=grace_s, grace_share=share)
        one.face.clear()
        one.fill()
        one.clock.advance(DOUBT_S + left_s + 1.0)
        assert not one.served()
        one.face.clear()
        one.fill()
        one.clock.advance(DOUBT_S + max(0.0, left_s - 1.0) + 0.5)
        assert one.served() == (left_s > 0.0)


def test_a_told_life_has_a_grace_of_its_own_share(aging: Callable[..., Aging]) -> None:
    one = aging(FRESH, grace_s=1e9)
    with scope(ttl_s=2 * DOUBT_S):
        one.fill()
    one.clock.advance(1.25 * DOUBT_S)
    assert one.served()
    one.face.clear()
    with scope(ttl_s=2 * DOUBT_S):
        one.fill()
    one.clock.advance(1.35 * DOUBT_S)
    assert not one.served()


def test_a_judge_that_is_down_is_not_asked_about_everything(aging: Callable[..., Aging]) -> None:
    one = aging(*[ValueError("down")] * 9)
    requests = [Request(question=f"What is {at}?", corpus="c") for at in range(5)]
    for request in requests:
        one.fill(request=request)
    one.clock.advance(DOUBT_S + 1.0)
    for request in requests:
        assert one.face.served(request)
    assert one.face.work() == Work(failed=3, left=5)
    assert len(one.judge.prompts) == 3


def test_what_has_no_text_is_not_asked_about(aging: Callable[..., Aging]) -> None:
    """A judge that sees no answer can only guess; nor is that a call, or a verdict to remember."""
    tools = Answer(text="", tool_calls=({"name": "search"},))
    bare = Request(question="", prompt="What is a map?", settings=Settings(seam=Seam.MODEL))
    one = aging(FRESH, FRESH, on_path=True)
    for request, answer in (
        (Request(question="What is it?", settings=Settings(seam=Seam.MODEL)), tools),
        (bare, Answer(text="a")),
    ):
        one.fill(answer, request=request)
        one.clock.advance(DOUBT_S + 1.0)
        outcome = one.face.lookup(request)
        assert isinstance(outcome, Stale) and outcome.reason is Reason.JUDGED
        assert outcome.detail == "not fresh: there is no text to judge"
        assert one.face.explain(request).verdict is None
    assert one.judge.prompts == []


def test_what_changes_while_the_judge_is_asked_is_not_served(aging: Callable[..., Aging]) -> None:
    one = aging(FRESH, on_path=True)

    def judge(prompt: str) -> str:
        one.face.core.store.invalidate(Selector(corpus="c", source="a.md"))
        return FRESH

    one.face = one.open(judge=judge)
    one.fill()
    one.clock.advance(DOUBT_S + 1.0)
    outcome = one.face.lookup(ASKED)
    assert isinstance(outcome, Stale) and outcome.reason is Reason.JUDGED
    assert outcome.detail == "not fresh: it changed while the judge was asked"
    assert one.face.why(ASKED) is Reason.INVALIDATED


def test_a_budget_that_is_spent_pushes_no_verdict_out(aging: Callable[..., Aging]) -> None:
    one = aging(FRESH, on_path=True, calls_per_minute=1)
    other = Request(question="What is a filter?", corpus="c")
    for request in (ASKED, other):
        one.fill(request=request)
    one.clock.advance(DOUBT_S + 1.0)
    assert one.served()
    for _ in range(3):
        assert one.face.why(other) is Reason.JUDGED
    (kept,) = one.face.core.store.journal.verdicts(9)
    assert kept.fresh
    assert one.face.stats(everything=True).judge.unasked == 3


def test_a_broken_journal_hides_no_hit_and_no_explanation(aging: Callable[..., Aging]) -> None:
    class NoJournal(FailingStore):
        broken = False

        @property
        def journal(self) -> Any:
            if self.broken:
                raise OSError("journal")
            return super().journal

    store = NoJournal()
    one = aging(FRESH, options={"store": store})
    one.fill()
    store.broken = True
    assert one.served()
    assert isinstance(one.face.explain(ASKED).outcome, Hit)
    assert one.face.invalidate(corpus="c", source="a.md") == 1
    one.clock.advance(1.0)
    outcome = one.face.lookup(ASKED)
    one.face.update(ASKED, "anew", outcome=outcome)
    errors = one.face.core.counters.of(None)
    assert errors["error.explain"] == errors["error.observe"] == 1
    assert one.face.why(ASKED) in (Reason.SAME_TOKENS, Reason.INVALIDATED)
