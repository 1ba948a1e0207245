"""What a caller may get wrong without a wrong answer coming of it."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import stampcache
from stampcache import (
    Answer,
    Cache,
    ConfigError,
    Evidence,
    Hit,
    Lifetime,
    Miss,
    Reason,
    Request,
    ScopeError,
    open_cache,
)
from stampcache.intake import flight_key
from stampcache.scope import current_scope
from stampcache.testing import AngleEmbedder, FailingStore, FakeClock
from tests.flights import GUARD_S, Gate, wait_for_followers


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


def test_evidence_known_by_ids_only_is_never_taken_for_other_evidence(cache: Cache) -> None:
    first = Request(question="q", evidence=(Evidence(source="a", chunk="c1"),))
    cache.update(first, "from a")
    other = Request(question="q", evidence=(Evidence(source="b", chunk="c2"),))
    assert cache.lookup(other).reason is Reason.EVIDENCE_UNKNOWN
    assert cache.lookup(first).reason is Reason.EVIDENCE_UNKNOWN
    assert cache.invalidate(source="a") == 1


def test_a_prompt_is_never_matched_by_meaning() -> None:
    embedder = AngleEmbedder({"How is it?": 0, "How is it, please?": 1})
    cache = open_cache("memory://", embedder=embedder, calibration=0.9)
    evidence = (Evidence(text="chunk"),)
    french = Request(question="How is it?", prompt="Answer in French", evidence=evidence)
    cache.update(french, "bien")
    german = Request(question="How is it, please?", prompt="Answer in German", evidence=evidence)
    assert isinstance(cache.lookup(german, retrieve=lambda _: evidence), Miss)


@pytest.mark.parametrize("error", [AssertionError("mine"), ScopeError("who"), ZeroDivisionError()])
def test_whatever_a_port_raises_is_a_miss(error: Exception) -> None:
    class Failing:
        name, threshold = "failing", 0.5

        def score(self, asked: str, stored: str) -> float:
            raise error

    def retrieve(question: str) -> tuple[Evidence, ...]:
        raise error

    embedder = AngleEmbedder({"one": 0, "won": 1})
    cache = open_cache("memory://", embedder=embedder, calibration=0.9, verifier=Failing())
    cache.update(Request(question="one"), "1")
    assert isinstance(cache.lookup(Request(question="won")), Miss)
    cache = open_cache("memory://", embedder=AngleEmbedder({"one": 0, "won": 1}), calibration=0.9)
    evidence = (Evidence(text="chunk"),)
    cache.update(Request(question="one", evidence=evidence), "1")
    asked = Request(question="won", evidence=evidence)
    assert isinstance(cache.lookup(asked, retrieve=retrieve), Miss)


def test_those_who_waited_are_requests_too() -> None:
    cache, gate = open_cache("memory://"), Gate()
    request = Request(question="q")
    ask = cache.core.intake.ask(request, can_retrieve=False)
    assert not isinstance(ask, Miss)
    threads = [
        threading.Thread(target=cache.get_or_create, args=(request, gate.make)) for _ in range(3)
    ]
    threads[0].start()
    assert gate.begun.wait(GUARD_S)
    for thread in threads[1:]:
        thread.start()
    wait_for_followers(cache.core.flights, flight_key(ask), 2)
    gate.let.set()
    for thread in threads:
        thread.join()
    stats = cache.stats()
    assert (stats.requests, stats.misses, stats.shared) == (3, 1, 2)


def test_generators_that_leave_in_another_order_stay_in_their_own_scope() -> None:
    def inside(tenant: str) -> Iterator[str | None]:
        with stampcache.scope(tenant=tenant):
            while True:
                scope = current_scope()
                yield scope.tenant if scope else None

    first, second = inside("a"), inside("b")
    assert (next(first), next(second)) == ("a", "b")
    first.close()
    assert next(second) == "b"
    second.close()
    assert current_scope() is None


def test_a_setting_that_is_wrong_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        open_cache(f"sqlite:///{tmp_path}/cache.db", ttl_s=-1)
    with pytest.raises(ConfigError):
        open_cache("memory://", flight_timeout_s=float("inf"))
    assert list(tmp_path.iterdir()) == []


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


def test_an_unknown_kind_is_refused_before_anything_is_made() -> None:
    cache = open_cache("memory://")
    request = Request(question="q", kind="nws")
    with pytest.raises(ConfigError, match="kind= is 'nws'"):
        cache.lookup(request)
    with pytest.raises(ConfigError, match="kind= is 'nws'"):
        cache.get_or_create(request, lambda: pytest.fail("made"))


def test_the_life_of_no_kind_has_one_name() -> None:
    with pytest.raises(ConfigError, match="as ttl_s="):
        open_cache("memory://", lifetimes={"": Lifetime(ttl_s=5)})
