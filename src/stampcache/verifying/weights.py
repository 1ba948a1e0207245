"""Reads the weights of the trained verifier, which are files of this package (the edge)."""

import hashlib
import zlib
from importlib import resources

import msgspec

from stampcache.errors import ConfigError
from stampcache.verifying.chinese import IN_CHINESE
from stampcache.verifying.reading import FORMAT
from stampcache.verifying.table import unpack
from stampcache.verifying.trained import IN_ENGLISH, TrainedVerifier, Weights

NAMES = ("plain", "chinese")
_LANGUAGES = {one.name: one for one in (IN_ENGLISH, IN_CHINESE)}
FOLDER = resources.files("stampcache.verifying") / "data"
_SUFFIX = ".msgpack.z"


def load(name: str = "plain") -> TrainedVerifier:
    """Return the verifier of this name: "plain" is for English, "chinese" for Chinese.

    Raises:
        ConfigError: no weights of that name are shipped.
    """
    if name not in NAMES:
        raise ConfigError(f"There is no verifier {name!r}; the names are: {', '.join(NAMES)}.")
    return opened((FOLDER / f"{name}{_SUFFIX}").read_bytes(), name)


def opened(raw: bytes, name: str) -> TrainedVerifier:
    """Return the verifier of packed weights; its name is this one and the digest of the weights.

    Raises:
        ConfigError: these are no weights of this version.
    """
    digest = hashlib.blake2b(raw, digest_size=4).hexdigest()
    try:
        weights = msgspec.msgpack.decode(zlib.decompress(raw), type=Weights)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ConfigError(f"The weights of the verifier {name!r} are damaged: {error}.") from error
    language = _LANGUAGES.get(weights.language)
    if language is None or tuple(weights.features) != language.names:
        raise ConfigError(
            f"The weights of the verifier {name!r} were trained on other features than this version "
            "of stampcache computes; train them again."
        )
    named = msgspec.structs.replace(weights, name=f"{name}-{digest}")
    table = unpack(f"{FORMAT}-{digest}", weights.words, weights.rarity, weights.vectors)
    return TrainedVerifier(named, table, language)
