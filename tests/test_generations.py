"""An embedder that changed under its name begins anew: its old vectors are never compared again."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from stampcache import (
    Cache,
    ConfigError,
    EmbedderError,
    Hit,
    Level,
    Miss,
    Reason,
    Request,
    Stale,
    Stored,
    open_cache,
)
from stampcache.drivers import run
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
        self._longer: dict[str, float] = {}

    def embed(self, texts: Sequence[str]) -> Vector:
        if self.down:
            raise ConnectionError("asleep")
        self.texts += texts
        return np.stack([self._one(text) for text in texts])

    def _one(self, text: str) -> Vector:
        about = text.replace("big", "large")
        rng = np.random.default_rng(list(about.encode()))
        vector = np.roll(rng.normal(size=32), self._turn)
        vector = vector / np.linalg.norm(vector) * self._longer.get(text, self._norm)
        return np.asarray(vector + self._noise * rng.normal(size=32), np.float32)


def suspected(cache: Cache) -> bool:
    assert cache.core.parts.embedding is not None
    return cache.core.parts.embedding.suspect()


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


class Limited(Rotated):
    """A provider that refuses the canaries while ``limited`` is set: too many requests."""

    limited = False

    def embed(self, texts: Sequence[str]) -> Vector:
        if self.limited and set(texts) & set(CANARIES):
            raise ConnectionError("429")
        return super().embed(texts)


def test_an_embedder_that_could_not_be_looked_at_gives_no_hit_until_it_was(url: str) -> None:
    filled(url, Limited())
    for turn in (0, 1):
        embedder = Limited(turn=turn)
        embedder.limited = True
        with open_cache(url, embedder=embedder, calibration=0.9) as cache:
            for _ in range(2):
                assert cache.lookup(ASKED).reason is Reason.EMBEDDER_ERROR
            embedder.limited = False
            assert isinstance(cache.lookup(ASKED), Hit) == (turn == 0)


def test_one_text_at_a_time_is_enough(url: str) -> None:
    class Single(Rotated):
        def embed(self, texts: Sequence[str]) -> Vector:
            return super().embed(texts[:1])

    filled(url, Single())
    assert level(url, Single()) is Level.SEMANTIC
    assert level(url, Single(turn=1)) is Reason.NOT_FOUND


def test_a_name_is_never_another_ones_generation(url: str) -> None:
    named = Rotated(turn=1)
    named.name = "rotated#2"
    filled(url, Rotated())
    filled(url, Rotated(turn=1))  # the second generation of "rotated"
    with open_cache(url, embedder=named, calibration=0.9) as cache:
        assert cache.lookup(STORED).reason is Reason.NOT_FOUND


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


@pytest.mark.parametrize("flips", [1, 2, 3])
def test_a_vector_of_the_embedder_before_is_not_stored_beside_new_ones(flips: int) -> None:
    embedder = Rotated()
    with open_cache("memory://", embedder=embedder, calibration=0.9) as cache:
        outcome = cache.lookup(STORED)  # it carries a vector of the first generation
        assert isinstance(outcome, Miss)
        for turn in range(1, flips + 1):
            embedder._turn = turn
            assert suspected(cache)
        stored = cache.update(STORED, "anew", outcome=outcome)
        assert isinstance(stored, Stored)
        assert stored.entry.stamps.embedder == f"rotated#{flips + 1}"
        assert cache.core.store.stats().vectors == 0
        assert isinstance(cache.lookup(STORED), Hit)


def test_a_vector_is_not_compared_with_those_of_another_generation() -> None:
    embedder = Rotated()
    with open_cache("memory://", embedder=embedder, calibration=0.9) as cache:
        cache.update(STORED, "As a cat.")
        ask = cache.core.intake.ask(ASKED, can_retrieve=False)
        embedder._turn = 1
        assert suspected(cache)  # another thread found it out meanwhile
        outcome = run(cache.core.lookup_now(ask), cache.core.ports)
        assert outcome.reason is Reason.EMBEDDER_CHANGED
        assert "it is rotated#2 by now" in outcome.trace[-1].detail
        assert isinstance(outcome, Miss)
        assert outcome.vector is None


def test_a_vector_that_was_made_while_a_generation_began_is_not_used(url: str) -> None:
    class Slow(Rotated):
        def embed(self, texts: Sequence[str]) -> Vector:
            vectors = super().embed(texts)
            if texts == [ASKED.question] and not self.down:
                self.hook()
            return vectors

        def hook(self) -> None:
            assert suspected(cache)  # another thread looks at it first

    filled(url, Rotated())
    embedder = Slow(turn=1)
    embedder.down = True
    with open_cache(url, embedder=embedder, calibration=0.9) as cache:
        embedder.down = False
        assert cache.lookup(ASKED).reason is Reason.EMBEDDER_ERROR


def test_a_suspicion_that_was_false_changes_nothing() -> None:
    embedder, clock = Rotated(), FakeClock()
    with open_cache(
        "memory://", embedder=embedder, calibration=0.9, ttl_s=100, clock=clock
    ) as cache:
        cache.update(STORED, "As a cat.")
        clock.advance(200)
        canary = embedder._norm
        embedder._longer = {STORED.question: 1.01 * canary}
        outcome = cache.lookup(STORED)
        assert cache.core.counters.of(None)["embedder.suspected"] == 1
        cache.update(STORED, "anew", outcome=outcome if isinstance(outcome, Stale) else None)
        assert cache.core.store.stats().vectors == 1
        assert isinstance(cache.lookup(ASKED), Hit)


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
