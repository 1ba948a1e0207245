"""Requests told otherwise: through both faces, both stores, and an adapter's front (ADR 0016)."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import stampcache
from stampcache import (
    Answer,
    Cache,
    ConfigError,
    Controls,
    Evidence,
    Hit,
    Level,
    Lifetime,
    Miss,
    Reason,
    Refused,
    Request,
    Scope,
    Seam,
    Settings,
    Stale,
    Stored,
    Usage,
)
from stampcache.adapters import CacheFields, Flow, Front, Made, Step
from stampcache.testing import AngleEmbedder, FakeClock
from tests.faces import Face, Open
from tests.flights import GUARD_S

ASKED = Request(question="What is a map?")
NEAR = Request(question="What's a map?")
ANGLES = {ASKED.question: 0.0, NEAR.question: 5.0}
HANDBOOK = Evidence(corpus="handbook", source="leave.md", text="30 days")


def told(request: Request = ASKED, **controls: Any) -> Request:
    return replace(request, controls=Controls(**controls))


def embedder() -> AngleEmbedder:
    return AngleEmbedder(ANGLES)


class Answers:
    """A making that numbers its answers."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> str:
        self.made += 1
        return f"answer {self.made}"


# -- no_cache --------------------------------------------------------------------------------------


def test_who_is_told_not_to_look_up_gets_a_new_answer_that_others_are_served(face: Face) -> None:
    face.fill(ASKED, "old")
    outcome = face.lookup(told(no_cache=True))
    assert isinstance(outcome, Miss) and outcome.reason is Reason.NO_CACHE
    face.update(told(no_cache=True), "new", outcome=outcome)
    assert face.served(ASKED) == "new"
    assert face.stats().counters["miss.no_cache"] == 1


def test_a_new_answer_is_found_by_meaning_too(open_face: Open) -> None:
    face = open_face(embedder=embedder(), calibration=0.9)
    face.get_or_create(told(no_cache=True), Answers())
    hit = face.lookup(NEAR)
    assert isinstance(hit, Hit) and hit.level is Level.SEMANTIC


def test_requests_that_are_told_not_to_look_up_share_with_nobody(url: str) -> None:
    cache, answers = stampcache.open_cache(url), Answers()
    both = threading.Barrier(2)

    def make() -> str:
        both.wait(GUARD_S)  # each is making its own
        return answers()

    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(cache.get_or_create, told(no_cache=True), make) for _ in range(2)]
        assert {one.result(GUARD_S).text for one in asked} == {"answer 1", "answer 2"}
    assert len(cache.core.flights) == 0
    cache.close()


def test_a_stale_answer_is_not_looked_up_either(url: str) -> None:
    with stampcache.open_cache(url) as cache:
        stored = cache.update(ASKED, "old")
        assert isinstance(stored, Stored)
        cache.invalidate(entry=stored.entry.id)
        assert isinstance(cache.lookup(ASKED, allow_stale=True), Stale)
        outcome = cache.lookup(told(no_cache=True), allow_stale=True)
        assert isinstance(outcome, Miss) and outcome.reason is Reason.NO_CACHE
        made = cache.get_or_create(told(no_cache=True), Answers(), allow_stale=True)
        assert made.text == "answer 1"


def test_an_answer_that_was_not_looked_up_is_fenced_all_the_same(face: Face) -> None:
    outcome = face.lookup(told(no_cache=True))
    face.invalidate(corpus="handbook", source="leave.md")
    done = face.update(told(no_cache=True), "late", outcome=outcome, evidence=[HANDBOOK])
    assert isinstance(done, Refused) and done.reason is Reason.FENCED


# -- no_store --------------------------------------------------------------------------------------


def test_who_is_told_not_to_store_may_be_answered_but_leaves_nothing(face: Face) -> None:
    answers = Answers()
    assert face.get_or_create(told(no_store=True), answers).text == "answer 1"
    assert face.get_or_create(told(no_store=True), answers).text == "answer 2"
    assert face.stats().entries == 0
    assert face.stats().counters["refused.no_store"] == 2
    face.fill(ASKED, "known")
    assert face.served(told(no_store=True)) == "known"


def test_who_is_told_not_to_store_leaves_no_trace_of_the_question(open_face: Open) -> None:
    face = open_face(embedder=embedder(), calibration=0.9)
    face.fill(ASKED, "known")
    hit = face.lookup(told(NEAR, no_store=True))
    assert isinstance(hit, Hit)
    assert face.core.store.stats().hits == 0
    face.report_bad(hit.entry_id)
    face.fill(ASKED, "known")
    assert face.served(NEAR) == "known"  # the pair was not remembered, so it is not known as bad
    assert face.core.store.stats().hits == 1


def test_whoever_says_it_last_is_heard_too(face: Face) -> None:
    outcome = face.lookup(ASKED)
    done = face.update(told(no_store=True), "secret", outcome=outcome)
    assert isinstance(done, Refused) and done.reason is Reason.NO_STORE
    with stampcache.scope(no_store=True):
        done = face.update(ASKED, "secret", outcome=outcome)
    assert isinstance(done, Refused) and done.reason is Reason.NO_STORE
    assert face.stats().entries == 0


def test_what_was_said_at_the_lookup_holds_for_the_update_wherever_it_runs(face: Face) -> None:
    with stampcache.scope(tenant="acme", no_store=True):
        outcome = face.lookup(ASKED)
    done = face.update(ASKED, "secret", outcome=outcome)
    assert isinstance(done, Refused) and done.reason is Reason.NO_STORE


def test_one_who_does_not_store_is_not_waited_for_by_one_who_does(url: str) -> None:
    cache, answers = stampcache.open_cache(url), Answers()
    both = threading.Barrier(2)

    def make() -> str:
        both.wait(GUARD_S)
        return answers()

    with ThreadPoolExecutor(2) as pool:
        asked = [
            pool.submit(cache.get_or_create, request, make)
            for request in (ASKED, told(no_store=True))
        ]
        assert {one.result(GUARD_S).text for one in asked} == {"answer 1", "answer 2"}
    assert cache.stats().entries == 1
    cache.close()


# -- ttl_s -----------------------------------------------------------------------------------------


def test_an_answer_lives_as_long_as_its_request_says(open_face: Open) -> None:
    clock = FakeClock()
    face = open_face(clock=clock, ttl_s=1000.0)
    face.fill(told(ttl_s=60), "brief")
    clock.advance(50)
    assert face.served(ASKED) == "brief"
    clock.advance(11)
    assert face.why(ASKED) is Reason.EXPIRED


def test_a_stated_life_does_not_slide(open_face: Open) -> None:
    clock = FakeClock()
    lifetimes = {"faq": Lifetime(ttl_s=100.0, cap_s=10_000.0)}
    face = open_face(clock=clock, lifetimes=lifetimes)
    faq = replace(ASKED, kind="faq")
    face.fill(told(faq, ttl_s=100.0))
    clock.advance(60)
    assert face.served(faq) is not None
    clock.advance(41)
    assert face.why(faq) is Reason.EXPIRED


def test_the_life_may_be_said_when_the_answer_is_there(open_face: Open) -> None:
    clock = FakeClock()
    face = open_face(clock=clock)
    outcome = face.lookup(ASKED)
    face.update(told(ttl_s=60), "brief", outcome=outcome)
    clock.advance(61)
    assert face.why(ASKED) is Reason.EXPIRED


# -- variety ---------------------------------------------------------------------------------------


def texts(face: Face, request: Request, answers: Answers, times: int) -> list[str]:
    return [face.get_or_create(request, answers).text for _ in range(times)]


@pytest.mark.parametrize("variety", [1, 2, 3, 5])
def test_a_variety_is_made_and_then_given_in_turn(face: Face, variety: int) -> None:
    answers = Answers()
    given = texts(face, told(variety=variety), answers, 3 * variety)
    assert given == [f"answer {number + 1}" for number in range(variety)] * 3
    assert answers.made == face.stats().entries == variety


def test_the_first_of_a_variety_is_the_answer_of_everybody(face: Face) -> None:
    face.fill(ASKED, "known")
    answers = Answers()
    assert texts(face, told(variety=2), answers, 4) == ["known", "answer 1"] * 2
    assert face.served(ASKED) == "known"


def test_a_hit_by_meaning_of_another_one_keeps_none_of_a_variety_from_being_made(
    open_face: Open,
) -> None:
    face = open_face(embedder=embedder(), calibration=0.9)
    answers = Answers()
    assert texts(face, told(variety=3), answers, 3) == ["answer 1", "answer 2", "answer 3"]
    # the same question in other words is given the same three, and none is made
    assert texts(face, told(NEAR, variety=3), answers, 3) == ["answer 1", "answer 2", "answer 3"]
    assert answers.made == 3


def test_as_many_concurrent_requests_make_as_many_answers(url: str) -> None:
    cache, answers = stampcache.open_cache(url), Answers()
    count = 4
    everybody = threading.Barrier(count)
    lock = threading.Lock()

    def make() -> str:
        everybody.wait(GUARD_S)
        with lock:
            return answers()

    with ThreadPoolExecutor(count) as pool:
        asked = [pool.submit(cache.get_or_create, told(variety=count), make) for _ in range(count)]
        assert len({one.result(GUARD_S).text for one in asked}) == count
    assert cache.stats().entries == count
    cache.close()


@pytest.mark.parametrize("hand_over", [True, False])
def test_what_is_looked_up_is_what_is_stored_with_and_without_the_outcome(
    face: Face, hand_over: bool
) -> None:
    varied, answers = told(variety=2), Answers()
    for _ in range(2):
        outcome = face.lookup(varied)
        assert not isinstance(outcome, Hit)
        face.update(varied, answers(), outcome=outcome if hand_over else None)
    assert [face.served(varied) for _ in range(4)] == ["answer 1", "answer 2"] * 2


def test_updating_after_a_hit_replaces_what_was_served(face: Face) -> None:
    varied = told(variety=3)
    texts(face, varied, Answers(), 3)
    hits = [face.lookup(varied) for _ in range(3)]
    face.update(varied, "better", outcome=hits[1])
    assert [face.served(varied) for _ in range(3)] == ["answer 1", "better", "answer 3"]


def test_updating_after_a_hit_of_a_variety_that_is_smaller_by_now_is_no_error(face: Face) -> None:
    texts(face, told(variety=3), Answers(), 3)
    last = [face.lookup(told(variety=3)) for _ in range(3)][-1]
    assert isinstance(face.update(told(variety=2), "better", outcome=last), Stored)


def test_explaining_takes_nobodys_turn(face: Face) -> None:
    varied = told(variety=2)
    texts(face, varied, Answers(), 2)
    for _ in range(3):
        outcome = face.explain(varied).outcome
        assert isinstance(outcome, Hit) and outcome.answer.text == "answer 1"
    assert face.served(varied) == "answer 1"
    assert "told not to look up" in str(face.explain(told(no_cache=True)))


@pytest.mark.parametrize("seam", [Seam.DOCUMENTS, Seam.VECTOR])
def test_what_is_no_reply_has_no_variety(face: Face, seam: Seam) -> None:
    with stampcache.scope(variety=3):
        asked = Request(prompt="p", settings=Settings(seam=seam))
        face.update(asked, Answer(text="", payload=b"1"), outcome=face.lookup(asked))
        assert all(isinstance(face.lookup(asked), Hit) for _ in range(3))


def test_a_variety_goes_with_the_tenant_that_asked_for_it(face: Face) -> None:
    varied, answers = told(variety=2), Answers()
    for tenant in ("acme", "other"):
        with stampcache.scope(tenant=tenant):
            texts(face, varied, answers, 4)
            assert face.stats().entries == 2
    with stampcache.scope(tenant="acme"):
        assert face.clear() == 2


# -- scopes ----------------------------------------------------------------------------------------


def test_a_scope_tells_all_requests_inside_and_nobody_outside(face: Face) -> None:
    with stampcache.scope(tenant="acme"):
        face.fill(ASKED, "known")
        with stampcache.scope(no_cache=True):
            assert face.why(ASKED) is Reason.NO_CACHE
        assert face.served(ASKED) == "known"


def test_scopes_around_each_other_tell_together() -> None:
    with (
        stampcache.scope(tenant="acme", ttl_s=60, variety=3, question="q", evidence=[HANDBOOK]),
        stampcache.scope(no_store=True, ttl_s=5, audience="a"),
    ):
        said = stampcache.adapters.surroundings()
        assert said is not None
        assert said.controls == Controls(no_store=True, ttl_s=5, variety=3)
        assert (said.question, said.evidence) == ("q", (HANDBOOK,))
        assert said.scope == Scope("acme", "default", "a")
    assert stampcache.adapters.surroundings() is None


@pytest.mark.parametrize(
    "options",
    [{"ttl_s": 0}, {"variety": 0}, {"no_cache": "yes"}, {"question": 5}, {"evidence": ["text"]}],
)
def test_a_scope_with_a_control_that_nobody_can_follow_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        stampcache.scope(**options)


# -- adapters --------------------------------------------------------------------------------------


@pytest.fixture
def cache(url: str) -> Iterator[Cache]:
    with stampcache.open_cache(url) as opened:
        yield opened


def serve(front: Front, request: Request, answers: Answers, *, allow_stale: bool = False) -> str:
    ask = front.ask(request, allow_stale=allow_stale)
    assert not isinstance(ask, Miss)

    def make(outcome: Miss | Stale) -> Flow[Made[str]]:
        made = yield from Step(sync=answers, aio=lambda: pytest.fail("sync only"))
        return Made(output=made, answer=Answer(text=made))

    def read(answer: Answer, report: CacheFields) -> str:
        return answer.text

    return front.run(front.serve(ask, recheck=None, read=read, make=make))


def test_an_adapters_requests_follow_their_controls(cache: Cache) -> None:
    front, answers = Front(cache.core, kind="test"), Answers()
    assert serve(front, told(no_store=True), answers) == "answer 1"
    assert serve(front, ASKED, answers) == "answer 2"
    assert serve(front, told(no_store=True), answers) == "answer 2"
    assert serve(front, told(no_cache=True), answers, allow_stale=True) == "answer 3"
    assert serve(front, ASKED, answers) == "answer 3"
    with stampcache.scope(variety=2):
        assert [serve(front, ASKED, answers) for _ in range(4)] == ["answer 3", "answer 4"] * 2


def test_an_adapter_is_asked_apart_for_requests_with_other_controls(cache: Cache) -> None:
    front = Front(cache.core, kind="test")

    def place(request: Request) -> tuple[str, ...]:
        ask = front.ask(request)
        assert not isinstance(ask, Miss)
        return front.place(ask)

    alike = [ASKED, told(), told(variety=1), told(variety=7)]  # of the last the first answer
    assert len({place(request) for request in alike}) == 1
    apart = [ASKED, told(no_store=True), told(ttl_s=5), told(ttl_s=6), told(no_cache=True)]
    assert len({place(request) for request in apart}) == len(apart)
    assert place(told(no_cache=True)) != place(told(no_cache=True))
    assert place(told(ttl_s=5)) == place(told(ttl_s=5))


# -- what answers took, beside what was saved ------------------------------------------------------


def test_what_was_made_is_counted_whether_it_is_stored_or_not(face: Face) -> None:
    usage = Usage(input_tokens=100, output_tokens=10, cached_tokens=64)
    answer = Answer(text="An image.", usage=usage)
    assert face.stats().provider_cached_tokens is None
    face.get_or_create(told(no_store=True), lambda: answer)
    face.get_or_create(ASKED, lambda: answer)
    face.get_or_create(ASKED, lambda: answer)  # a hit: nothing is made
    stats = face.stats()
    assert (stats.made_tokens, stats.provider_cached_tokens) == (220, 128)
    assert stats.saved_tokens == 110


def test_what_bypasses_the_cache_is_counted_in_total(face: Face) -> None:
    usage = Usage(input_tokens=100)
    unkeyed = Request(question="")
    face.get_or_create(unkeyed, lambda: Answer(text="made", usage=usage))
    assert face.stats(everything=True).made_tokens == 100
    assert face.stats().made_tokens == 0


# -- all together ----------------------------------------------------------------------------------

QUESTIONS = st.sampled_from(["What is a map?", "What is a list?"])
TOLD = st.builds(
    Controls, no_cache=st.booleans(), no_store=st.booleans(), variety=st.sampled_from([1, 1, 2, 3])
)


@given(st.lists(st.tuples(QUESTIONS, TOLD, st.booleans()), max_size=30))
def test_whatever_requests_are_told_each_gets_what_it_is_told(
    moves: list[tuple[str, Controls, bool]],
) -> None:
    """Against a model: which answer of which question is known, and whose turn it is."""
    known: dict[tuple[str, int], str] = {}
    turns: Counter[str] = Counter()
    answers = Answers()
    with stampcache.open_cache("memory://") as cache:
        for question, controls, by_scope in moves:
            slot = turns[question] % controls.variety if controls.variety > 1 else 0
            turns[question] = slot + 1 if controls.variety > 1 else turns[question]
            old = None if controls.no_cache else known.get((question, slot))
            expected = old or f"answer {answers.made + 1}"
            if old is None and not controls.no_store:
                known[question, slot] = expected
            if by_scope:
                told_by = stampcache.scope(
                    no_cache=controls.no_cache,
                    no_store=controls.no_store,
                    variety=controls.variety,
                )
                with told_by:
                    answer = cache.get_or_create(Request(question=question), answers)
            else:
                asked = Request(question=question, controls=controls)
                answer = cache.get_or_create(asked, answers)
            assert answer.text == expected
        assert cache.stats().entries == len(known)


# -- only deterministic settings -------------------------------------------------------------------


def test_n5_only_answers_of_deterministic_settings_are_kept_where_that_is_wanted(
    open_face: Open,
) -> None:
    face, answers = open_face(deterministic_only=True), Answers()
    for params in ({"temperature": 0.7}, {}, {"temperature": None}):
        asked = Request(question="What?", params=params)
        assert face.get_or_create(asked, answers).text != face.get_or_create(asked, answers).text
    exact = Request(question="What?", params={"temperature": 0})
    assert face.get_or_create(exact, answers).text == face.get_or_create(exact, answers).text
    outcome = face.lookup(Request(question="What?"))
    assert isinstance(outcome, Miss) and outcome.reason is Reason.NOT_DETERMINISTIC
