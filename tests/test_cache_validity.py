"""Both faces over both stores: documents, time, capacity, what is stored (cases F, H, M, N)."""

import pytest

import stampcache
from stampcache import (
    Answer,
    Evidence,
    Hit,
    Miss,
    Reason,
    Refused,
    Request,
    Scope,
    Settings,
    Stale,
    Stamps,
    Stored,
)
from stampcache.model import Selector
from stampcache.request import Seam
from stampcache.testing import AngleEmbedder, FakeClock
from tests.faces import Face, Open

LEAVE = Evidence(corpus="handbook", source="leave.md", chunk="leave-1", text="30 days")
PAY = Evidence(corpus="handbook", source="pay.md", chunk="pay-1", text="on the 25th")
HOW_LONG = Request(question="How long is leave?", stamps=Stamps(index="v1"))
WHEN = Request(question="When is pay day?", scope=Scope("acme"))


def cited(face: Face) -> Face:
    face.update(HOW_LONG, "30 days", evidence=[LEAVE])
    face.update(WHEN, "On the 25th", evidence=[PAY])
    return face


def left(face: Face) -> list[str | None]:
    default = Request(question=HOW_LONG.question, stamps=HOW_LONG.stamps, scope=Scope())
    return [face.served(default), face.served(WHEN)]


BOTH = ["30 days", "On the 25th"]

# -- F: documents ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ({"source": "leave.md"}, [None, BOTH[1]]),
        ({"chunk": "pay-1"}, [BOTH[0], None]),
        ({"corpus": "handbook"}, [None, None]),
        ({"corpus": "handbook", "source": "pay.md"}, [BOTH[0], None]),
        ({"corpus": "other", "source": "pay.md"}, BOTH),
        ({"source": "leave"}, BOTH),
        ({"stamps": Stamps(index="v1")}, [None, BOTH[1]]),
        ({"scope": Scope("acme")}, [BOTH[0], None]),
        ({"scope": Scope("acme"), "source": "leave.md"}, BOTH),
    ],
)
def test_f2_f5_what_changed_goes_and_the_rest_stays(
    face: Face, what: dict[str, object], expected: list[str | None]
) -> None:
    cited(face)
    gone = face.invalidate(**what)  # type: ignore[arg-type]  # given as the test has it
    assert gone == expected.count(None)
    assert left(face) == expected


def test_f5_one_entry_is_invalidated_by_its_id(face: Face) -> None:
    entry_id = face.fill(HOW_LONG)
    assert face.invalidate(entry="nothing") == 0
    assert face.invalidate(entry=entry_id) == 1
    assert face.served(HOW_LONG) is None


def test_f1_f15_an_exact_hit_needs_the_same_chunks(face: Face) -> None:
    def ask(*chunks: Evidence) -> Request:
        return Request(question="How long is leave?", evidence=chunks)

    face.fill(ask(LEAVE, PAY))
    moved = Evidence(corpus="new", source="moved.md", chunk="77", text="30 days")
    edited = Evidence(corpus="handbook", source="leave.md", chunk="leave-1", text="28 days")
    assert face.served(ask(moved, PAY)) == "answer"
    for chunks in ((edited, PAY), (LEAVE,), (PAY, LEAVE), (LEAVE, PAY, edited), ()):
        stale = face.lookup(ask(*chunks))
        assert isinstance(stale, Stale)
        assert stale.reason is Reason.EVIDENCE_CHANGED
    assert face.served(HOW_LONG) is None  # the stamp is another partition
    assert face.served(Request(question="How long is leave?")) == "answer"


def test_an_entry_without_evidence_is_not_trusted_where_evidence_is_known(face: Face) -> None:
    face.fill(Request(question="q"))
    stale = face.lookup(Request(question="q", evidence=(LEAVE,)))
    assert isinstance(stale, Stale) and stale.reason is Reason.EVIDENCE_UNKNOWN
    done = face.update(Request(question="q", evidence=(LEAVE,)), "new", outcome=stale)
    assert isinstance(done, Stored)
    assert face.served(Request(question="q", evidence=(LEAVE,))) == "new"


@pytest.mark.parametrize(
    ("change", "stored"),
    [
        ({"source": "leave.md"}, False),
        ({"corpus": "handbook"}, False),
        ({"stamps": Stamps(index="v1")}, False),
        ({"source": "pay.md"}, True),
        ({"scope": Scope("acme")}, True),
    ],
)
def test_a_late_answer_from_an_old_document_is_refused(
    face: Face, change: dict[str, object], stored: bool
) -> None:
    outcome = face.lookup(HOW_LONG)
    face.invalidate(**change)  # type: ignore[arg-type]  # given as the test has it
    done = face.update(HOW_LONG, "old", evidence=[LEAVE], outcome=outcome)
    assert isinstance(done, Stored) is stored
    assert (face.served(HOW_LONG) == "old") is stored
    if not stored:
        assert isinstance(done, Refused) and done.reason is Reason.FENCED
        assert face.stats().counters["refused.fenced"] == 1


def test_a_change_inside_get_or_create_is_seen(face: Face) -> None:
    request = Request(question="q", evidence=(LEAVE,))

    def make() -> str:
        face.core.store.invalidate(Selector(source="leave.md"))
        return "from the old document"

    assert face.get_or_create(request, make).text == "from the old document"
    assert face.served(request) is None


# -- F: time ---------------------------------------------------------------------------------------


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_f3_an_answer_from_nothing_is_soon_forgotten(open_face: Open, clock: FakeClock) -> None:
    face = open_face(clock=clock)
    asked = Request(question="q", evidence=())
    face.update(asked, "I don't know.")
    assert face.served(asked) == "I don't know."
    assert face.lookup(Request(question="q", evidence=(LEAVE,))).reason is Reason.EVIDENCE_CHANGED
    clock.advance(300)
    assert face.why(asked) is Reason.EXPIRED


def test_f6_hits_never_extend_a_life(open_face: Open, clock: FakeClock) -> None:
    face = open_face(clock=clock, ttl_s=1000.0)
    face.fill(HOW_LONG)
    for _ in range(9):
        clock.advance(100)
        assert face.served(HOW_LONG) == "answer"
    clock.advance(100)
    stale = face.lookup(HOW_LONG)
    assert isinstance(stale, Stale) and stale.reason is Reason.EXPIRED
    face.update(HOW_LONG, "fresh", outcome=stale)
    assert face.served(HOW_LONG) == "fresh"


def test_f13_every_way_to_store_sets_an_expiry(open_face: Open, clock: FakeClock) -> None:
    face = open_face(clock=clock, ttl_s=50.0)
    requests = [Request(question=f"q{at}") for at in range(3)]
    face.fill(requests[0])
    face.update(requests[1], "x")
    face.get_or_create(requests[2], lambda: "x")
    clock.advance(50)
    assert [face.why(request) for request in requests] == [Reason.EXPIRED] * 3


def test_without_a_ttl_nothing_expires(open_face: Open, clock: FakeClock) -> None:
    face = open_face(clock=clock, ttl_s=None)
    face.fill(HOW_LONG)
    clock.advance(1e9)
    assert face.served(HOW_LONG) == "answer"


# -- H11 -------------------------------------------------------------------------------------------


def test_h11_what_the_caller_changes_changes_no_later_hit(face: Face) -> None:
    settings = Settings(model="m", seam=Seam.MODEL)
    request = Request(question="q", settings=settings)
    original = ({"name": "search", "args": {"q": ["map"]}},)

    def calls() -> tuple[dict[str, object]]:
        return ({"name": "search", "args": {"q": ["map"]}},)

    def spoil(answer: Answer) -> None:
        answer.tool_calls[0]["args"]["q"].append("spoilt")  # type: ignore[index]  # wrong on purpose

    given = Answer(text="", tool_calls=calls())
    face.update(request, given)
    spoil(given)
    for _ in range(2):
        hit = face.lookup(request)
        assert isinstance(hit, Hit)
        assert hit.answer.tool_calls == original
        spoil(hit.answer)
    other = Request(question="r", settings=settings)
    for _ in range(3):
        taken = face.get_or_create(other, lambda: Answer(text="", tool_calls=calls()))
        assert taken.tool_calls == original
        spoil(taken)


# -- M: capacity -----------------------------------------------------------------------------------


def test_m1_m2_m4_m8_the_bound_is_hard_and_old_entries_give_way(
    open_face: Open, clock: FakeClock
) -> None:
    questions = [f"question {chr(97 + at) * 5}" for at in range(6)]
    angles = {question: float(at) for at, question in enumerate(questions)}
    face = open_face(
        capacity=3, ttl_s=None, clock=clock, embedder=AngleEmbedder(angles), calibration=0.9
    )
    for question in questions:
        outcome = face.lookup(Request(question=question))
        face.update(Request(question=question), question, outcome=outcome)
        assert face.stats().entries <= 3
        face.served(Request(question=questions[0]))
    kept = [face.lookup(Request(question=one)) for one in questions]
    exact = [one for one in kept if isinstance(one, Hit) and one.answer.text == one.entry.question]
    assert len(exact) >= 3
    store = face.core.store.stats()
    assert (store.entries, store.vectors) == (3, 3)
    assert face.stats(everything=True).counters["evicted"] == 3
    assert isinstance(kept[0], Hit)  # used after every write, so never the oldest


def test_m7_writing_twice_replaces(face: Face) -> None:
    face.update(HOW_LONG, "one")
    face.update(HOW_LONG, "two")
    assert face.served(HOW_LONG) == "two"
    assert face.stats().entries == 1


# -- N: never stored -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(text=""), Reason.EMPTY),
        (Answer(text="  \n"), Reason.EMPTY),
        (Answer(text="I'm sorry, but I can't help with that."), Reason.REFUSED),
        (Answer(text="x", finish_reason="content_filter"), Reason.REFUSED),
        (Answer(text="Sorry, something went wrong. Please try again."), Reason.REFUSED),
        (Answer(text="half an ans", finish_reason="length"), Reason.TRUNCATED),
        (Answer(text="x", finish_reason="error"), Reason.FAILED),
        (Answer(text="x", finish_reason="cancelled"), Reason.ABORTED),
        (Answer(text="", tool_calls=({"name": "t"},)), Reason.PENDING_TOOLS),
        (Answer(text="\ud800"), Reason.UNCACHEABLE),
    ],
)
def test_n1_n3_n4_n6_what_must_not_be_stored_is_answered_and_not_stored(
    face: Face, answer: Answer, reason: Reason
) -> None:
    done = face.update(HOW_LONG, answer, outcome=face.lookup(HOW_LONG))
    assert isinstance(done, Refused) and done.reason is reason
    assert face.get_or_create(HOW_LONG, lambda: answer).text == answer.text
    outcome = face.lookup(HOW_LONG)
    assert isinstance(outcome, Miss) and outcome.reason is Reason.NOT_FOUND
    assert face.stats().counters[f"refused.{reason.name.lower()}"] == 2


def test_a_large_answer_is_not_stored(open_face: Open) -> None:
    face = open_face(max_answer_bytes=100)
    done = face.update(HOW_LONG, "x" * 101)
    assert isinstance(done, Refused) and done.reason is Reason.TOO_LARGE
    assert isinstance(face.update(HOW_LONG, "x" * 100), Stored)


def test_a_fill_older_than_the_changes_that_are_remembered_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stampcache.stores.memory_log._CHANGES_KEPT", 2)
    cache = stampcache.open_cache("memory://")
    before = cache.lookup(HOW_LONG)
    for at in range(3):
        cache.invalidate(source=f"other{at}.md")
    done = cache.update(HOW_LONG, "late", outcome=before)
    assert isinstance(done, Refused) and done.reason is Reason.FENCED
    assert isinstance(cache.update(HOW_LONG, "now", outcome=cache.lookup(HOW_LONG)), Stored)
