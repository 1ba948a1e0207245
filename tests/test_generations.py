"""An embedder that changed under its name begins anew: its old vectors are never compared again."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from stampcache import ConfigError, EmbedderError, Hit, Level, Miss, Reason, Request, open_cache
from stampcache.embedding import CANARIES, QuestionEmbedder
from stampcache.model import Vector
from stampcache.stores.memory import MemoryStore
from stampcache.testing import FakeClock

ASKED, STORED = Request(question="How big is a cat?"), Request(question="How large is a cat?")


class Rotated:
    """Maps each text to a direction of its own, near for our pair; ``turn`` are other weights."""

    def __init__(self, *, turn: int = 0, norm: float = 2.0, noise: float = 0.0) -> None:
        self.name = "rotated"
        self.down = False
        self.texts: list[str] = []
        self._turn, self._norm, self._noise = turn, norm, noise

    def embed(self, texts: Sequence[str]) -> Vector:
        if self.down:
            raise ConnectionError("asleep")
        self.texts += texts
        return np.stack([self._one(text) for text in texts])

    def _one(self, text: str) -> Vector:
        about = text.replace("big", "large")
        rng = np.random.default_rng(list(about.encode()))
        vector = np.roll(rng.normal(size=32), self._turn)
        vector = vector / np.linalg.norm(vector) * self._norm
        return np.asarray(vector + self._noise * rng.normal(size=32), np.float32)


def filled(url: str, embedder: Rotated) -> None:
    with open_cache(url, embedder=embedder, calibration=0.9) as cache:
        cache.update(STORED, "As a cat.")


def level(url: str, embedder: Rotated) -> Level | Reason:
    with open_cache(url, embedder=embedder, calibration=0.9) as cache:
        outcome = cache.lookup(ASKED)
        return outcome.level if isinstance(outcome, Hit) else outcome.reason


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/cache.db"


def test_the_same_embedder_goes_on_where_it_was(url: str) -> None:
    filled(url, Rotated())
    assert level(url, Rotated()) is Level.SEMANTIC
    assert level(url, Rotated(noise=1e-4)) is Level.SEMANTIC  # other hardware


@pytest.mark.parametrize("changed", [Rotated(turn=1), Rotated(norm=1.5)])
def test_b15_a_changed_embedder_sees_no_vector_of_the_old_one(url: str, changed: Rotated) -> None:
    filled(url, Rotated())
    assert level(url, changed) is Reason.NOT_FOUND
    filled(url, changed)
    assert level(url, changed) is Level.SEMANTIC


def test_an_embedder_that_comes_back_finds_its_own_vectors(url: str) -> None:
    filled(url, Rotated())
    filled(url, Rotated(turn=1))
    with open_cache(url, embedder=Rotated(), calibration=0.9) as cache:
        assert isinstance(cache.lookup(ASKED), Hit)
        assert cache.stats(everything=True).entries == 2


def test_the_canaries_are_embedded_once_when_the_cache_is_opened(url: str) -> None:
    embedder = Rotated()
    with open_cache(url, embedder=embedder, calibration=0.9) as cache:
        assert embedder.texts == list(CANARIES)
        cache.lookup(ASKED)
        assert embedder.texts == [*CANARIES, ASKED.question]


@pytest.mark.parametrize("turn", [0, 1])
def test_an_embedder_that_is_down_at_the_start_is_looked_at_before_its_first_hit(
    url: str, turn: int
) -> None:
    filled(url, Rotated())
    embedder = Rotated(turn=turn)
    embedder.down = True
    with open_cache(url, embedder=embedder, calibration=0.9) as cache:
        embedder.down = False
        outcome = cache.lookup(ASKED)
        if turn == 0:
            assert isinstance(outcome, Hit)
            return
        assert outcome.reason is Reason.EMBEDDER_ERROR
        assert cache.lookup(STORED).reason is Reason.NOT_FOUND  # another generation by now
        cache.update(STORED, "anew")
        assert isinstance(cache.lookup(ASKED), Hit)


def test_an_embedder_that_knows_no_canary_is_known_by_its_name(url: str) -> None:
    class Dictionary(Rotated):
        def embed(self, texts: Sequence[str]) -> Vector:
            if set(texts) & set(CANARIES):
                raise KeyError("not in the dictionary")
            return super().embed(texts)

    filled(url, Dictionary())
    with open_cache(url, embedder=Dictionary(), calibration=0.9) as cache:
        assert isinstance(cache.lookup(ASKED), Hit)
        assert cache.core.counters.of(None)["error.canaries"] == 1


def test_b15_an_embedder_that_changes_while_it_runs_is_betrayed_by_a_norm() -> None:
    embedder, clock = Rotated(), FakeClock()
    with open_cache(
        "memory://", embedder=embedder, calibration=0.9, ttl_s=100, clock=clock
    ) as cache:
        cache.update(STORED, "As a cat.")
        embedder._norm, embedder._turn = 1.5, 1  # the provider's silent update
        clock.advance(200)
        assert cache.lookup(STORED).reason is Reason.EXPIRED
        assert cache.core.counters.of(None)["embedder.suspected"] == 1
        cache.update(STORED, "anew", outcome=cache.lookup(STORED))
        assert isinstance(cache.lookup(ASKED), Hit)


def test_an_answer_made_while_the_embedder_changes_is_stored_in_the_new_generation() -> None:
    embedder, clock = Rotated(), FakeClock()
    with open_cache(
        "memory://", embedder=embedder, calibration=0.9, ttl_s=100, clock=clock
    ) as cache:
        cache.update(STORED, "As a cat.")
        embedder._norm, embedder._turn = 1.5, 1
        clock.advance(200)
        assert cache.get_or_create(STORED, lambda: "anew").text == "anew"
        hit = cache.lookup(STORED)
        assert isinstance(hit, Hit)
        assert hit.answer.text == "anew"
        assert hit.entry.stamps.embedder == "rotated#2"
        with pytest.raises(ConfigError, match="outcome= belongs to another request"):
            other = cache.lookup(Request(question="another"))
            cache.update(ASKED, "x", outcome=other if isinstance(other, Miss) else None)


def test_an_embedder_that_is_never_the_same_is_refused() -> None:
    class Random(Rotated):
        def _one(self, text: str) -> Vector:
            return np.random.default_rng(len(self.texts)).normal(size=32).astype(np.float32)

    embedding = QuestionEmbedder(Random(), MemoryStore())
    with pytest.raises(EmbedderError, match="another vector for the same text each time"):
        for _ in range(100):
            embedding.verify()


def test_another_size_under_the_same_name_is_refused_at_the_start(url: str) -> None:
    class Wide(Rotated):
        def _one(self, text: str) -> Vector:
            return np.resize(super()._one(text), 40)

    filled(url, Rotated())
    with pytest.raises(ConfigError, match="gives vectors of 40 numbers, but this store holds"):
        open_cache(url, embedder=Wide(), calibration=0.9)


def test_the_async_face_looks_at_a_late_embedder_too(url: str) -> None:
    filled(url, Rotated())
    embedder = Rotated(turn=1)
    embedder.down = True

    async def asked() -> Reason:
        cache = open_cache(url, embedder=embedder, calibration=0.9).aio
        embedder.down = False
        try:
            return (await cache.lookup(ASKED)).reason
        finally:
            await cache.close()

    assert asyncio.run(asked()) is Reason.EMBEDDER_ERROR
