"""G: the embedder of questions."""

import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from benchmarks.cases.groups.equal import PARAPHRASE
from benchmarks.cases.rig import Rig, Suite
from benchmarks.cases.words import QUESTION, Ability
from stampcache import (
    Cache,
    ConfigError,
    EmbedderError,
    Hit,
    Request,
    StoreError,
    open_cache,
)
from stampcache.model import Vector

SUITE = Suite()
ASKED, STORED = Request(question=PARAPHRASE), Request(question=QUESTION)


class Weights:
    """An embedder of one name, whose weights and width can be others; both questions are near."""

    name = "weights"

    def __init__(self, *, turn: int = 0, width: int = 24) -> None:
        self.width = width
        self._turn = turn

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one row per text."""
        return np.stack([self._one(text) for text in texts])

    def _one(self, text: str) -> Vector:
        alike = text.replace(PARAPHRASE, QUESTION)
        rng = np.random.default_rng(list(alike.encode()))
        return np.roll(rng.normal(size=self.width), self._turn).astype(np.float32)


@contextmanager
def _file() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{Path(folder) / 'cache.db'}"


def _opened(url: str, embedder: Weights, *, strict: bool = False) -> Cache:
    return open_cache(url, embedder=embedder, calibration=0.9, strict=strict)


@SUITE.case("G2", "the embedder says how wide its vectors are", Ability.CORE)
def the_width_of_vectors(rig: Rig) -> None:  # noqa: ARG001 - of the core
    """None is configured beside it, and any is taken."""
    for width in (3, 24, 1_024):
        with _opened("memory://", Weights(width=width)) as cache:
            cache.update(STORED, "Thirty days.")
            assert isinstance(cache.lookup(ASKED), Hit)


@SUITE.case("G4", "a vector of the wrong size is an error", Ability.CORE)
def a_wrong_size(rig: Rig) -> None:  # noqa: ARG001 - of the core
    """It is neither cut nor filled, and nothing is served by it."""
    embedder = Weights()
    with _opened("memory://", embedder) as cache:
        cache.update(STORED, "Thirty days.")
        embedder.width = 12
        try:
            cache.lookup(ASKED)
        except (ConfigError, EmbedderError) as error:
            assert "12" in str(error) and "24" in str(error)
            return
        raise AssertionError("nobody says anything")


@SUITE.case("G5", "a file of another schema is migrated or refused", Ability.CORE)
def another_schema(rig: Rig) -> None:  # noqa: ARG001 - of the core
    """A table that is not as it should be is not read as if it were."""
    with _file() as url:
        with _opened(url, Weights()) as cache:
            cache.update(STORED, "Thirty days.")
        path = url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path)) as file:
            file.execute("ALTER TABLE stampcache_entries RENAME TO something_else")
            file.commit()
        try:
            with _opened(url, Weights()) as cache:
                assert not isinstance(cache.lookup(ASKED), Hit)
        except (ConfigError, StoreError):
            pass


@SUITE.case("G8", "an embedder that changed under its name is noticed", Ability.CORE)
def a_changed_embedder(rig: Rig) -> None:  # noqa: ARG001 - of the core
    """Its old vectors are never compared with new ones, after a restart and in a living process."""
    with _file() as url:
        with _opened(url, Weights()) as cache:
            cache.update(STORED, "Thirty days.")
            assert isinstance(cache.lookup(ASKED), Hit)
        with _opened(url, Weights(turn=7)) as cache:
            assert not isinstance(cache.lookup(ASKED), Hit)
            cache.update(STORED, "Thirty days.")
            assert isinstance(cache.lookup(ASKED), Hit)
        with _opened(url, Weights()) as cache:
            cache.lookup(ASKED)
            assert not cache.core.store.problems()
