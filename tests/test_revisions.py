"""A served revision of a model is soft: shown, and stale only where the user wants that."""

from typing import Any

import pytest

from stampcache import Answer, Cache, ConfigError, Hit, Reason, Request, Stale, open_cache
from stampcache.testing import AngleEmbedder

ONE, TWO = Request(question="one", model="m"), Request(question="two", model="m")


def filled(**options: Any) -> Cache:
    cache = open_cache("memory://", **options)
    cache.update(ONE, Answer(text="1", revision="fp_a"))
    cache.update(TWO, Answer(text="2", revision="fp_b"))
    return cache


def test_a_revision_is_kept_and_shown() -> None:
    cache = filled()
    hit = cache.lookup(ONE)
    assert isinstance(hit, Hit)
    assert hit.answer.revision == "fp_a"
    assert "ago by fp_a" in str(cache.explain(ONE))


def test_b10_another_revision_makes_stale_where_that_is_wanted() -> None:
    cache = filled(revisions="stale")
    stale = cache.lookup(ONE)
    assert isinstance(stale, Stale)
    assert (stale.reason, stale.detail) == (
        Reason.REVISION_CHANGED,
        "made by fp_a, fp_b answered last",
    )
    assert isinstance(cache.lookup(TWO), Hit)
    cache.update(Request(question="three", model="other"), Answer(text="3", revision="fp_c"))
    cache.update(Request(question="four", model="m", endpoint="e"), Answer(text="4", revision="d"))
    cache.update(Request(question="five", model="m"), Answer(text="5"))  # it does not tell
    assert isinstance(cache.lookup(TWO), Hit)


def test_a_similar_question_is_not_answered_by_another_revision() -> None:
    embedder = AngleEmbedder({"one": 0, "won": 1, "two": 90})
    cache = filled(revisions="stale", embedder=embedder, calibration=0.9)
    assert cache.lookup(Request(question="won", model="m")).reason is Reason.REVISION_CHANGED


def test_the_models_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stampcache.revisions.KEPT", 3)
    cache = open_cache("memory://", revisions="stale")
    for number in range(10):
        cache.update(Request(question="q", model=str(number)), Answer(text="a", revision="r"))
    assert len(cache.core.intake.revisions) <= 3


def test_a_word_that_is_none_of_ours_is_refused() -> None:
    with pytest.raises(ConfigError, match='give "shown" or "stale"'):
        open_cache("memory://", revisions="maybe")  # type: ignore[arg-type]
