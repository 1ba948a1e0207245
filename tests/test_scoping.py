"""Who asks, and what is told, where a framework's config carries it: all forms, and hostile values."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stampcache
from stampcache import ConfigError, Controls, Miss, Reason, Request, Scope, ScopeError
from stampcache.adapters import Front, controls_in, kind_in, scope_in

ACME = Scope("acme", "default", "u7")


@pytest.mark.parametrize(
    "place",
    [
        {"tenant": "acme", "audience": "u7"},
        {"stampcache": {"tenant": "acme", "audience": "u7"}},
        {"stampcache": {"tenant": "acme"}, "audience": "u7"},
        {"stampcache": {"tenant": "acme", "audience": "u7"}, "tenant": "other", "audience": "u8"},
        SimpleNamespace(tenant="acme", audience="u7"),
        SimpleNamespace(stampcache={"tenant": "acme", "audience": "u7"}),
    ],
)
def test_a_tenant_is_found_in_every_form(place: object) -> None:
    assert scope_in(place) == ACME
    assert scope_in(None, {}, object(), "text", 5, place, {"tenant": "later"}) == ACME


@pytest.mark.parametrize(
    "place",
    [None, {}, [], "tenant", 5, object(), {"audience": "u7"}, {"tenant": None}, {"stampcache": 5}],
)
def test_what_names_no_tenant_says_nothing(place: object) -> None:
    assert scope_in(place) is None
    assert controls_in(place) == Controls()


def test_an_audience_without_a_tenant_counts_where_it_is_meant_for_the_cache() -> None:
    assert scope_in({"stampcache": {"audience": "u7"}}) == Scope("", "default", "u7")


def test_what_several_places_say_is_taken_together_of_one_tenant() -> None:
    assert scope_in({"audience": "u7"}, {"tenant": "acme"}) == ACME
    assert scope_in({"tenant": "acme"}, {"tenant": "other", "audience": "u8"}) == Scope("acme")
    assert scope_in({"tenant": "acme"}, {"tenant": "acme", "audience": "u7"}) == ACME


def test_the_scope_around_comes_first_and_is_only_ever_narrowed() -> None:
    with stampcache.scope(tenant="acme"):
        assert scope_in() is None
        assert scope_in({"tenant": "other", "audience": "u8"}) is None
        assert scope_in({"tenant": "acme", "audience": "u7"}) == ACME
        assert scope_in({"audience": "u7"}) == ACME
        with stampcache.scope(audience="u7", namespace="faq"):
            assert scope_in({"tenant": "acme", "audience": "u9", "namespace": "n"}) is None
    with stampcache.scope(namespace="faq"):
        assert scope_in({"tenant": "acme"}) == Scope("acme", "faq")


@pytest.mark.parametrize("tenant", ["", 5, 0, False, b"acme", ["acme"], {"a": 1}, object()])
@pytest.mark.parametrize("wrap", [dict, lambda place: {"stampcache": place}])
def test_a_tenant_that_is_no_text_is_nobody(tenant: object, wrap: Any) -> None:
    with pytest.raises(ScopeError, match="tenant is"):
        scope_in(wrap({"tenant": tenant}), {"tenant": "acme"})


@pytest.mark.parametrize("name", ["audience", "namespace"])
@pytest.mark.parametrize("value", [7, ["hr"], b"x", {"a": 1}])
def test_an_audience_that_is_no_text_is_nobody(name: str, value: object) -> None:
    with pytest.raises(ScopeError, match=name):
        scope_in({"tenant": "acme", name: value})
    with stampcache.scope(tenant="acme"), pytest.raises(ScopeError, match=name):
        scope_in({name: value})
    assert scope_in({name: value}) is None  # of nobody's tenant it may be anything


VALUES = (
    st.none() | st.text(max_size=3) | st.integers() | st.booleans() | st.lists(st.text(max_size=1))
)
NAMES = st.sampled_from(["tenant", "namespace", "audience", "x"])
FLAT = st.dictionaries(NAMES, VALUES, max_size=4)
PLACES = st.lists(
    FLAT | st.builds(lambda ours, bare: {**bare, "stampcache": ours}, FLAT, FLAT), max_size=3
)


@given(PLACES)
def test_whatever_places_say_there_is_a_scope_of_texts_or_none_or_a_refusal(
    places: list[Mapping[str, object]],
) -> None:
    try:
        found = scope_in(*places)
    except ScopeError:
        return
    if found is not None:
        assert all(type(part) is str for part in (found.tenant, found.namespace, found.audience))
    with stampcache.scope(tenant="acme"):
        try:
            inside = scope_in(*places)
        except ScopeError:
            return
        assert inside is None or inside.tenant == "acme"


def test_controls_are_found_under_our_name_only_and_taken_together() -> None:
    place = {"no_cache": True, "stampcache": {"ttl_s": 5, "variety": 2, "tenant": "acme"}}
    other = SimpleNamespace(stampcache={"no_store": True, "ttl_s": 9})
    assert controls_in(place, None, other) == Controls(no_store=True, ttl_s=5, variety=2)
    assert controls_in({"stampcache": {"tenant": "acme"}}) is controls_in()


@pytest.mark.parametrize(
    "ours",
    [
        {"no-cache": True},
        {"ttl": 5},
        {5: 5},
        {"ttl_s": "5"},
        {"ttl_s": None, "variety": None},
        {"no_cache": "false"},
        {"variety": 10.0},
        {"no_store": None},
    ],
)
def test_a_control_that_nobody_can_follow_is_refused(ours: Mapping[object, object]) -> None:
    with pytest.raises(ConfigError):
        controls_in({"stampcache": ours})


def test_the_kind_of_data_is_that_of_the_first_place_that_names_one() -> None:
    assert kind_in({"kind": "x"}, {"stampcache": {}}) == ""
    assert kind_in({"stampcache": {"kind": "news"}}, {"stampcache": {"kind": "faq"}}) == "news"
    with pytest.raises(ConfigError, match="kind is 5"):
        kind_in({"stampcache": {"kind": 5}})


def test_what_is_found_goes_with_a_request() -> None:
    with stampcache.open_cache("memory://", tenants="required") as cache:
        front = Front(cache.core, kind="test")
        place = {"tenant": "acme", "stampcache": {"no_cache": True}}
        request = Request(question="q", scope=scope_in(place), controls=controls_in(place))
        ask = front.ask(request)
        assert not isinstance(ask, Miss)
        assert (ask.scope.tenant, ask.controls.no_cache) == ("acme", True)
        unscoped = front.ask(Request(question="q", scope=scope_in({"audience": "u7"})))
        assert isinstance(unscoped, Miss) and unscoped.reason is Reason.UNSCOPED
