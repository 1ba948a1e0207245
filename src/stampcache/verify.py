"""The edge to verifiers: which one is meant, and for which embedder the shipped one was trained."""

from types import MappingProxyType
from typing import Literal, TypeAlias

from stampcache.calibration import MINILM
from stampcache.errors import ConfigError
from stampcache.flows.comparing import COSINE
from stampcache.ports import Embedder, ReadingVerifier, Verifier
from stampcache.verifying import load

AnyVerifier: TypeAlias = Verifier | ReadingVerifier
GivenVerifier: TypeAlias = AnyVerifier | Literal["trained"] | None

TRAINED = "trained"
FLOORS = MappingProxyType({MINILM: 0.5})
"""For which embedders the shipped verifier was trained, and from which cosine on it is asked."""


def as_verifier(given: GivenVerifier, embedder: Embedder | None) -> AnyVerifier | None:
    """Return the verifier that a user means; ``None`` where there is none.

    ``"trained"`` is the one that stampcache ships, where it was trained beside this embedder: its
    probabilities mean nothing beside the cosine of another one.

    Raises:
        ConfigError: it is no verifier.
    """
    if given is None or isinstance(given, str):
        if given not in (None, TRAINED):
            raise ConfigError(f'verifier= is {given!r}; give "trained", None or a verifier.')
        trained = given is not None and embedder is not None and embedder.name in FLOORS
        return load() if trained else None
    missing = [name for name in ("name", "threshold") if not hasattr(given, name)]
    if missing or not (hasattr(given, "score") or isinstance(given, ReadingVerifier)):
        raise ConfigError(
            f"A {type(given).__name__} is no verifier; give one with a name, a threshold and "
            "score(asked, stored)."
        )
    if not isinstance(given.name, str) or given.name in ("", COSINE):
        raise ConfigError(
            f"The verifier's name is {given.name!r}; give one that tells its scores from those of others."
        )
    if not 0 < given.threshold <= 1:
        raise ConfigError(
            f"The verifier's threshold is {given.threshold!r}; give a probability above 0, up to 1."
        )
    return given


def floor_of(verifier: AnyVerifier | None, embedder: Embedder) -> float | None:
    """Return from which cosine on this verifier is asked, where that is known."""
    if isinstance(verifier, ReadingVerifier):
        return FLOORS.get(embedder.name)
    return None
