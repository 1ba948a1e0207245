"""Both faces over both stores: who asks is a hard boundary (cases E and L)."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

import stampcache
from stampcache import Hit, Miss, Reason, Refused, Request, Scope, ScopeError
from stampcache.testing import AngleEmbedder
from tests.faces import Face, Open

ASKED = Request(question="How do I leave?")
SAME = Request(question="how can I leave")
HOSTILE = [
    "a[ab]",
    "*",
    "a*",
    "a?",
    "a:b",
    "a",
    "ab",
    "a,b",
    "a/b",
    "a/",
    "a\nb",
    "a\x00b",
    "\u00e9",
    "e\u0301",
    "%",
    "_",
    "'; DROP TABLE stampcache_entries; --",
    " a",
    "A",
    "\ud800",
    "default ",
    "\u202ea",
]


def of(scope: Scope, request: Request = ASKED) -> Request:
    return Request(question=request.question, scope=scope)


# -- separation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["tenant", "namespace", "audience"])
def test_e1_e3_e10_each_part_of_a_scope_separates_both_levels(open_face: Open, field: str) -> None:
    embedder = AngleEmbedder({ASKED.question: 0.0, SAME.question: 1.0})
    face = open_face(embedder=embedder, calibration=0.9)
    with stampcache.scope(**{"tenant": "t", field: "app"}):
        face.fill(ASKED)
        assert face.served(SAME) == "answer"
    with stampcache.scope(**{"tenant": "t", field: "app2"}):
        assert face.why(ASKED) is Reason.NOT_FOUND
        assert face.why(SAME) is Reason.NOT_FOUND
        assert face.clear() == 0
        assert face.stats().entries == 0


def test_e2_nothing_shows_whether_another_tenant_asked(open_face: Open) -> None:
    embedder = AngleEmbedder({ASKED.question: 0.0, SAME.question: 1.0})
    face = open_face(embedder=embedder, calibration=0.9)
    with stampcache.scope(tenant="quiet"):
        before = face.explain(ASKED), face.stats()
    with stampcache.scope(tenant="busy"):
        entry_id = face.fill(ASKED, "secret")
        busy = face.lookup(ASKED)
    with stampcache.scope(tenant="quiet"):
        after = face.explain(ASKED), face.stats()
        assert str(after[0]) == str(before[0])
        assert after[1] == before[1]
        assert "secret" not in repr(after)
        assert entry_id not in repr(after)
        mine = face.lookup(ASKED)
    assert isinstance(mine, Miss) and mine.identity is not None
    assert isinstance(busy, Hit)
    assert not set(astuple(mine.identity)) & set(astuple(busy.entry.identity))


def test_e2_two_tenants_share_no_flight(face: Face) -> None:
    made: list[str] = []

    def make_for(tenant: str) -> str:
        made.append(tenant)
        if tenant == "outer":
            with stampcache.scope(tenant="inner"):
                assert face_core_flights() == 1
        return tenant

    def face_core_flights() -> int:
        return len(face.core.flights)

    with stampcache.scope(tenant="outer"):
        assert face.get_or_create(ASKED, lambda: make_for("outer")).text == "outer"
    with stampcache.scope(tenant="inner"):
        assert face.get_or_create(ASKED, lambda: make_for("inner")).text == "inner"
    assert made == ["outer", "inner"]


def test_e4_a_tenants_name_in_the_text_isolates_nothing_and_is_not_needed(face: Face) -> None:
    with stampcache.scope(tenant="acme"):
        face.fill(Request(question="User ann: hello"))
    with stampcache.scope(tenant="other"):
        assert face.served(Request(question="User ann: hello")) is None


# -- names -----------------------------------------------------------------------------------------


def test_e6_e7_e8_every_name_is_a_tenant_of_its_own(face: Face) -> None:
    for at, name in enumerate(HOSTILE):
        face.fill(of(Scope(name)), str(at))
    assert [face.served(of(Scope(name))) for name in HOSTILE] == [
        str(at) for at in range(len(HOSTILE))
    ]
    for at, name in enumerate(HOSTILE):
        with stampcache.scope(tenant=name):
            assert face.clear() == 1
        assert face.stats(everything=True).entries == len(HOSTILE) - at - 1


@given(
    st.tuples(*[st.text(alphabet=st.characters(codec=None), max_size=4)] * 3),
    st.tuples(*[st.text(alphabet=st.characters(codec=None), max_size=4)] * 3),
)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_e6_scopes_share_only_if_equal(
    face: Face, one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    first, second = Scope("t" + one[0], *one[1:]), Scope("t" + other[0], *other[1:])
    face.update(of(first), "first")
    assert face.served(of(second)) == ("first" if first == second else None)
    assert face.invalidate(scope=second) == (1 if first == second else 0)
    face.invalidate(scope=first)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Scope("a", "bc", ""), Scope("ab", "c", "")),
        (Scope("a", "b", "c"), Scope("a", "bc", "")),
        (Scope("a:b", "c"), Scope("a", "b:c")),
        (Scope("a", "", "b"), Scope("a", "b", "")),
    ],
)
def test_e6_no_part_of_a_scope_can_imitate_another(face: Face, one: Scope, other: Scope) -> None:
    face.fill(of(one))
    assert face.served(of(other)) is None


# -- no tenant -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [None, Scope(), Scope("default", "faq"), Scope("")])
def test_e13_without_a_tenant_where_one_is_required_nothing_is_done(
    open_face: Open, scope: Scope | None
) -> None:
    face = open_face(tenants="required")
    request = Request(question="q", scope=scope)
    with pytest.raises(ScopeError, match="requires a tenant"):
        face.lookup(request)
    with pytest.raises(ScopeError):
        face.update(request, "x")
    with pytest.raises(ScopeError):
        face.get_or_create(request, lambda: pytest.fail("it was made"))
    with pytest.raises(ScopeError):
        face.explain(request)
    with pytest.raises(ScopeError):
        face.clear()
    with pytest.raises(ScopeError):
        face.stats()
    assert face.core.store.stats().entries == 0
    assert face.stats(everything=True).requests == 0


def test_documents_change_without_a_tenant(open_face: Open) -> None:
    face = open_face(tenants="required")
    with stampcache.scope(tenant="acme"):
        entry_id = face.fill(ASKED)
    assert face.invalidate(source="leave.md") == 0
    assert face.report_bad(entry_id)


def test_a_requests_own_scope_wins(open_face: Open) -> None:
    face = open_face(tenants="required")
    face.fill(of(Scope("acme")))
    with stampcache.scope(tenant="other"):
        assert face.served(ASKED) is None
        assert face.served(of(Scope("acme"))) == "answer"


def test_an_unscoped_call_is_bypassed_once_a_tenant_was_seen(face: Face) -> None:
    face.fill(ASKED, "everybody's")
    assert face.served(ASKED) == "everybody's"
    with stampcache.scope(tenant="acme"):
        face.fill(ASKED, "acme's")
    outcome = face.lookup(ASKED)
    assert isinstance(outcome, Miss) and outcome.reason is Reason.UNSCOPED
    for before in (outcome, None):
        done = face.update(ASKED, "x", outcome=before)
        assert isinstance(done, Refused) and done.reason is Reason.UNSCOPED
    assert face.get_or_create(ASKED, lambda: "made").text == "made"
    assert face.clear() == 0
    assert (face.stats().requests, face.stats().entries) == (0, 0)
    counters = face.stats(everything=True).counters
    assert counters["miss.unscoped"] == 2
    assert counters["clear.unscoped"] == 1
    assert face.stats(everything=True).entries == 2


# -- L: clearing -----------------------------------------------------------------------------------


def test_l6_clear_without_arguments_empties_the_scope_in_force(face: Face) -> None:
    for question in ("one", "two"):
        face.fill(Request(question=question))
    with stampcache.scope(namespace="faq"):
        face.fill(ASKED)
    assert face.clear() == 2
    assert face.clear() == 0
    with stampcache.scope(namespace="faq"):
        assert face.served(ASKED) == "answer"


def test_a_cleared_scope_refuses_what_was_being_made(face: Face) -> None:
    outcome = face.lookup(ASKED)
    face.clear()
    done = face.update(ASKED, "late", outcome=outcome)
    assert isinstance(done, Refused) and done.reason is Reason.FENCED


def test_realms_in_memory_are_bounded(face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stampcache.realms.KEPT", 3)
    face.fill(of(Scope("t0")))
    for at in range(10):
        face.lookup(of(Scope(f"t{at}")))
    assert len(face.core.intake._realms) <= 3
    assert face.served(of(Scope("t0"))) == "answer"


def test_two_caches_with_different_secrets_share_nothing(open_face: Open) -> None:
    one = open_face(secret="a" * 32)
    one.fill(ASKED)
    other = open_face(store=one.core.store, secret=b"b" * 32)
    assert other.served(ASKED) is None
    assert other.clear() == 0
    again = open_face(store=one.core.store, secret=b"a" * 32)
    assert again.served(ASKED) == "answer"
