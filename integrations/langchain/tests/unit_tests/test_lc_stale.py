"""`CachedChain` with ``allow_stale=True``: what no longer holds is served at once, and says so."""

from typing import Any

import pytest
from langchain_apps import BUILT, PROMPT, QUESTION, App, reported, versioned
from langchain_fakes import CountingChat, Shelf

import stampcache
from stampcache import Cache
from stampcache.testing import AngleEmbedder, FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cache(clock: FakeClock) -> Cache:
    return stampcache.open_cache("memory://", ttl_s=3_600, clock=clock)


def check(stale: dict[str, Any], first: dict[str, Any], reason: str) -> None:
    assert reported(stale) == (False, "exact", reason)
    assert stale["cache"]["entry_id"]
    assert stale["cache"]["saved"]["output_tokens"] == 7
    assert (stale["answer"], stale["context"]) == (first["answer"], first["context"])


async def test_an_expired_answer_is_served(cache: Cache, shelf: Shelf, clock: FakeClock) -> None:
    app = App(cache, shelf, grounding="none", stamps=BUILT, allow_stale=True)
    first = app.ask()
    clock.advance(3_601)
    for stale in (app.ask(), await app.aask()):
        check(stale, first, "expired")
    assert app.model.calls == 1
    assert len(shelf.asked) == 1
    assert cache.stats(everything=True).stale == 2


@pytest.mark.parametrize("version_of", ["sources", "corpus"])
async def test_an_answer_whose_source_changed_is_served(
    cache: Cache, shelf: Shelf, version_of: str
) -> None:
    app = versioned(cache, shelf, version_of=version_of, allow_stale=True)
    first = app.ask()
    shelf.put("leave", "annual leave is thirty one days")
    cache.invalidate(corpus="handbook", source="leave")
    for stale in (app.ask(), await app.aask()):
        check(stale, first, "what it was made from changed")
    assert len(shelf.asked) == 1


async def test_under_recheck_it_shows_the_documents_that_it_was_made_from(
    cache: Cache, shelf: Shelf
) -> None:
    app = App(cache, shelf, allow_stale=True)
    first = app.ask()
    shelf.put("leave", "annual leave is thirty one days")
    for stale in (app.ask(), await app.aask()):
        check(stale, first, "evidence changed")
    shelf.put("leave", "annual leave is thirty days")
    assert app.ask()["cache"]["hit"]
    assert app.model.calls == 1


def test_a_stale_message_tells_it_too_and_shares_nothing(
    cache: Cache, shelf: Shelf, clock: FakeClock
) -> None:
    app = App(cache, shelf, answer=PROMPT | CountingChat(), allow_stale=True)
    app.ask()
    clock.advance(3_601)
    stale = app.ask()
    assert stale["answer"].usage_metadata["total_tokens"] == 0
    told = stale["answer"].response_metadata["cache"]
    assert told == stale["cache"]
    told["saved"].clear()
    assert stale["cache"]["saved"]
    assert app.ask()["answer"].response_metadata["cache"]["saved"]


def test_it_is_for_this_very_question_in_this_very_setting_only(shelf: Shelf) -> None:
    clock = FakeClock()
    embedder = AngleEmbedder({QUESTION: 0.0, f"{QUESTION} please": 4.0})
    cache = stampcache.open_cache("memory://", embedder=embedder, calibration=0.95, clock=clock)
    app = versioned(cache, shelf, allow_stale=True)
    app.ask()
    cache.invalidate(corpus="handbook")
    assert reported(app.ask(f"{QUESTION} please")) == (False, None, "not found")
    app.model.temperature = 0.9
    assert reported(app.ask())[1] is None
    with stampcache.scope(tenant="acme"):
        assert reported(app.ask())[1] is None


def test_who_does_not_allow_it_makes_anew_and_all_have_it_then(
    cache: Cache, shelf: Shelf, clock: FakeClock
) -> None:
    app, patient = (versioned(cache, shelf, allow_stale=allow) for allow in (True, False))
    app.ask()
    clock.advance(3_601)
    assert reported(patient.ask()) == (False, None, "expired")
    assert app.ask()["cache"]["hit"]


def test_explain_says_that_the_answer_is_stale(cache: Cache, shelf: Shelf) -> None:
    app = versioned(cache, shelf, allow_stale=True)
    app.ask()
    cache.invalidate(corpus="handbook", source="leave")
    told = str(app.chain.explain({"input": QUESTION}))
    assert "what it was made from changed" in told
    assert len(shelf.asked) == 1
