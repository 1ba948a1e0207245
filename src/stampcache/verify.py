"""The edge to verifiers: which one is meant, and for which embedder the shipped one was trained."""

from collections.abc import Set
from types import MappingProxyType
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from stampcache.calibration import MINILM, MULTILINGUAL, Calibration, calibration_for
from stampcache.errors import ConfigError
from stampcache.flows.comparing import COSINE
from stampcache.languages import CHINESE
from stampcache.ports import Embedder, ReadingVerifier, Verifier
from stampcache.verifying import load

AnyVerifier: TypeAlias = Verifier | ReadingVerifier
GivenVerifier: TypeAlias = AnyVerifier | Literal["trained"] | None

TRAINED = "trained"


class Shipped(Struct, frozen=True):
    """A verifier that stampcache ships: its name, and from which cosine on it is asked.

    ``languages`` are those that it decides in beside its embedder, where that has a calibration for
    others; none: it decides alone, and abstains from what it cannot read.
    """

    name: str
    floor: float
    languages: Set[str] = frozenset()


SHIPPED = MappingProxyType(
    {
        MINILM: Shipped("plain", 0.5),
        MULTILINGUAL: Shipped("chinese", 0.85, frozenset({CHINESE})),
    }
)
"""Which verifier was trained beside which embedder."""


def as_verifier(given: GivenVerifier, embedder: Embedder | None) -> AnyVerifier | None:
    """Return the verifier that a user means; ``None`` where there is none.

    ``"trained"`` is the one that stampcache ships, where one was trained beside this embedder: its
    probabilities mean nothing beside the cosine of another one.

    Raises:
        ConfigError: it is no verifier.
    """
    if given is None or isinstance(given, str):
        if given not in (None, TRAINED):
            raise ConfigError(f'verifier= is {given!r}; give "trained", None or a verifier.')
        known = shipped(given, embedder)
        return load(known.name) if known is not None else None
    missing = [name for name in ("name", "threshold") if not hasattr(given, name)]
    if missing or not (hasattr(given, "score") or isinstance(given, ReadingVerifier)):
        raise ConfigError(
            f"A {type(given).__name__} is no verifier; give one with a name, a threshold and "
            "score(asked, stored)."
        )
    if not isinstance(given.name, str) or given.name.partition("+")[0] in ("", COSINE):
        raise ConfigError(
            f"The verifier's name is {given.name!r}; give one that tells its scores from those of others."
        )
    if not 0 < given.threshold <= 1:
        raise ConfigError(
            f"The verifier's threshold is {given.threshold!r}; give a probability above 0, up to 1."
        )
    return given


def shipped(given: GivenVerifier, embedder: Embedder | None) -> Shipped | None:
    """Return what is known of the verifier that is meant, if it is the one that stampcache ships."""
    return SHIPPED.get(embedder.name) if given == TRAINED and embedder is not None else None


def calibrated(given: GivenVerifier, embedder: Embedder) -> Calibration | None:
    """Return from which cosine on candidates are looked at beside this embedder, where it is known.

    A verifier that reads questions once is so fast that it is asked from a lower cosine on than would be
    safe without one.
    """
    measured = calibration_for(embedder.name)
    known = SHIPPED.get(embedder.name)
    reads = given == TRAINED or isinstance(given, ReadingVerifier)
    if known is None or not reads:
        return measured
    if measured is None or not known.languages:
        return Calibration(known.floor)
    floors = dict.fromkeys(sorted(known.languages), known.floor)
    return replace(measured, languages={**measured.languages, **floors})
