"""What a caller may get wrong without a wrong answer coming of it."""

import pytest

import stampcache
from stampcache import (
    Answer,
    Cache,
    ConfigError,
    Hit,
    Miss,
    Reason,
    Request,
    ScopeError,
    open_cache,
)
from stampcache.testing import FailingStore, FakeClock


@pytest.fixture
def cache() -> Cache:
    return open_cache("memory://")


def test_an_outcome_of_another_request_is_refused(cache: Cache) -> None:
    outcome = cache.lookup(Request(question="one"))
    with pytest.raises(ConfigError, match="another request"):
        cache.update(Request(question="two"), "answer to two", outcome=outcome)
    with pytest.raises(ConfigError, match="another request"):
        cache.update(Request(question="one", model="other"), "of another model", outcome=outcome)
    assert isinstance(cache.lookup(Request(question="one")), Miss)
    assert isinstance(cache.lookup(Request(question="two")), Miss)


def test_an_outcome_keeps_its_tenant_wherever_the_update_runs(cache: Cache) -> None:
    request = Request(question="q")
    with stampcache.scope(tenant="acme"):
        outcome = cache.lookup(request)
    cache.update(request, "for acme", outcome=outcome)
    with stampcache.scope(tenant="acme"):
        assert isinstance(cache.lookup(request), Hit)
    with stampcache.scope(tenant="globex"):
        assert isinstance(cache.lookup(request), Miss)


def test_a_namespace_alone_names_no_tenant(cache: Cache) -> None:
    request = Request(question="q")
    with stampcache.scope(namespace="faq"):
        cache.update(request, "a")
        assert isinstance(cache.lookup(request), Hit)
    with stampcache.scope(tenant="acme"):
        cache.lookup(request)
    with stampcache.scope(namespace="faq"):
        assert cache.lookup(request).reason is Reason.UNSCOPED
    with stampcache.scope(tenant="default", namespace="faq"):
        assert isinstance(cache.lookup(request), Hit)


def test_a_namespace_alone_is_not_enough_where_a_tenant_is_required() -> None:
    cache = open_cache("memory://", tenants="required")
    with stampcache.scope(namespace="faq"), pytest.raises(ScopeError):
        cache.lookup(Request(question="q"))


@pytest.mark.parametrize("made", [None, 5, b"bytes", Answer(text=None)])  # type: ignore[arg-type]
def test_what_is_no_answer_is_said_to_be_none(cache: Cache, made: object) -> None:
    with pytest.raises(ConfigError, match="a string or an Answer"):
        cache.update(Request(question="q"), made)  # type: ignore[arg-type]


def test_a_latency_that_is_no_number_is_unknown(cache: Cache) -> None:
    request = Request(question="q")
    cache.update(request, Answer(text="a", latency_s=float("nan")))
    hit = cache.lookup(request)
    assert isinstance(hit, Hit) and hit.saved.latency_s == 0.0


def test_counts_that_could_not_be_saved_are_saved_later() -> None:
    store, clock = FailingStore(), FakeClock()
    cache = open_cache(store, clock=clock)
    cache.lookup(Request(question="q"))
    store.down = True
    cache.core.save_counters()
    store.down = False
    cache.core.save_counters()
    saved = store.tallies()
    assert saved["miss.not_found"] == 1
    assert saved["error.save_counters"] == 1
    cache.core.save_counters()
    assert store.tallies()["miss.not_found"] == 1
