"""Counters: per scope and in total, bounded, and every swallowed failure is in them."""

import logging
import threading
from collections import Counter

import msgspec
import pytest

from stampcache import telemetry
from stampcache.model import Answer, Level, Reason, Usage
from stampcache.outcome import Hit, Miss, Refused, Stale, Stored
from stampcache.telemetry import Counters, summarize
from stampcache.testing.contract import in_threads, make_entry

ENTRY = msgspec.structs.replace(
    make_entry("k"),
    answer=Answer(text="a", usage=Usage(input_tokens=30, output_tokens=4), latency_s=1.5),
)


def hit(level: Level) -> Hit:
    return Hit(entry=ENTRY, level=level, similarity=1.0, reason=Reason.SAME_TOKENS)


def test_outcomes_are_counted_by_kind_and_reason() -> None:
    counters = Counters()
    for outcome in (
        hit(Level.EXACT),
        hit(Level.EXACT),
        hit(Level.SEMANTIC),
        Stale(reason=Reason.EXPIRED, entry=ENTRY),
        Miss(reason=Reason.NOT_FOUND),
    ):
        counters.outcome(outcome, "s")
    stats = summarize(counters.of("s"), 7)
    assert (stats.requests, stats.hits, stats.hit_rate) == (5, 3, 0.6)
    assert (stats.exact_hits, stats.semantic_hits, stats.stale, stats.misses) == (2, 1, 1, 1)
    assert (stats.entries, stats.saved_tokens, stats.saved_s) == (7, 3 * 34, 4.5)
    assert stats.counters["stale.expired"] == stats.counters["miss.not_found"] == 1
    assert list(stats.counters) == sorted(stats.counters)


def test_nothing_counted_is_a_rate_of_nought() -> None:
    stats = summarize(Counters().of("s"), 0)
    assert (stats.requests, stats.hit_rate) == (0, 0.0)


def test_updates_are_counted() -> None:
    counters = Counters()
    counters.update(Stored(ENTRY), "s")
    counters.update(Stored(ENTRY, evicted=3), "s")
    counters.update(Refused(Reason.EMPTY), "s")
    assert counters.of("s") == {"stored": 2, "refused.empty": 1}
    assert counters.of(None) == {"stored": 2, "refused.empty": 1, "evicted": 3}


def test_e2_a_scope_sees_its_own_numbers_only() -> None:
    counters = Counters()
    counters.outcome(Miss(reason=Reason.NOT_FOUND), "mine")
    counters.outcome(Miss(reason=Reason.GUARD), "theirs")
    counters.event("clear.unscoped")
    assert counters.of("mine") == {"miss.not_found": 1}
    assert counters.of("nobody") == {}


def test_a_swallowed_failure_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    counters = Counters()
    with caplog.at_level(logging.WARNING, logger="stampcache"):
        counters.note("store_error", OSError("disk full"))
    assert counters.of(None) == {"error.store_error": 1}
    assert "disk full" in caplog.text


def test_j13_scopes_over_the_bound_live_on_in_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "_SCOPES_KEPT", 3)
    counters = Counters()
    for at in range(10):
        counters.outcome(Miss(reason=Reason.NOT_FOUND), f"s{at}")
    assert [at for at in range(10) if counters.of(f"s{at}")] == [7, 8, 9]
    assert counters.of(None) == {"miss.not_found": 10}
    assert counters.take_unsaved() == {"miss.not_found": 10}


def test_what_was_taken_is_not_taken_again() -> None:
    counters = Counters()
    counters.event("a")
    assert counters.take_unsaved() == {"a": 1}
    assert counters.take_unsaved() == {}
    counters.event("a")
    assert counters.take_unsaved() == {"a": 1}


def test_a_count_inside_of_another_does_not_wait_for_itself() -> None:
    class Interrupting(Counter[str]):
        def __missing__(self, name: str) -> int:  # as when an abandoned stream is collected here
            if name == "outer":
                counters.event("inner")
            return 0

    counters = Counters()
    counters.event("first")
    counters._scopes[""] = Interrupting(counters._scopes[""])
    worker = threading.Thread(target=counters.event, args=("outer",), daemon=True)
    worker.start()
    worker.join(20.0)
    assert counters.of(None) == {"first": 1, "inner": 1, "outer": 1}


def test_threads_lose_no_count() -> None:
    counters = Counters()

    def count(worker: int) -> None:
        for _ in range(500):
            counters.event("a")

    in_threads(count, count=8)
    assert counters.of(None) == {"a": 4000}


def test_what_making_took_is_counted_as_far_as_it_was_told() -> None:
    counters = Counters()
    assert summarize(counters.of("s"), 0).provider_cached_tokens is None
    counters.made(Usage(), "s")
    counters.made(Usage(input_tokens=100, output_tokens=7), "s")
    stats = summarize(counters.of("s"), 0)
    assert (stats.made_tokens, stats.provider_cached_tokens) == (107, None)
    counters.made(Usage(input_tokens=100, cached_tokens=64), "s")
    counters.made(Usage(input_tokens=1, cached_tokens=0), "other")
    stats = summarize(counters.of("s"), 0)
    assert (stats.made_tokens, stats.provider_cached_tokens) == (207, 64)
    assert stats.counters["made.input_tokens"] == 200
    assert stats.saved_tokens == 0
    assert summarize(counters.of("other"), 0).provider_cached_tokens == 0


def test_a_zero_that_was_told_is_not_lost_on_the_way_to_a_store() -> None:
    counters = Counters()
    counters.made(Usage(cached_tokens=0), "s")
    unsaved = counters.take_unsaved()
    assert unsaved == {"made.cached_tokens": 0}
    assert counters.take_unsaved() == {}
    counters.give_back(unsaved)
    assert counters.take_unsaved() == {"made.cached_tokens": 0}


def test_a_confirmed_answer_is_saved_once_for_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made anew without a judge, it would have been a hit as well from then on."""
    counters = Counters()

    def ask(confirmed_at: float | None, entry_id: str = "e") -> None:
        entry = msgspec.structs.replace(ENTRY, id=entry_id, confirmed_at=confirmed_at)
        served = msgspec.structs.replace(hit(Level.EXACT), entry=entry)
        counters.outcome(served, "s")

    for confirmed_at in (None, 1.0, 1.0, 2.0, 2.0):
        ask(confirmed_at)
    assert counters.of("s")["judge.saved"] == 2
    monkeypatch.setattr(telemetry, "_CONFIRMED_KEPT", 1)
    for entry_id in ("a", "b"):
        ask(1.0, entry_id)
    assert summarize(counters.of("s"), 0).judge.saved == 4
    assert len(counters._confirmed) <= 3
