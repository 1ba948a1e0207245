"""Keys for encryption at rest: how they are given, and which store is opened with which (ADR 0027)."""

import base64
import binascii
import hashlib
import importlib
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, TypeAlias

from msgspec import Struct

from stampcache.errors import CodecError, ConfigError
from stampcache.stores.codec import Codec, Seal

EncryptionKey: TypeAlias = bytes | str | Sequence[bytes | str]
"""One key, or several: 32 bytes each, or these as URL-safe base64 text."""

_KEY_BYTES = 32
_FORM = (
    "give 32 random bytes, or these as URL-safe base64 text, such as"
    " base64.urlsafe_b64encode(secrets.token_bytes(32))"
)
_FACT = "encryption"
_PLAIN = "none"


class Key(Struct, frozen=True):
    """A key of 32 bytes, and the digest by which what it hid is known."""

    ID_BYTES: ClassVar[int] = 8
    raw: bytes

    @property
    def id(self) -> bytes:
        """The digest; it tells nothing of the key."""
        return hashlib.blake2b(key=self.raw, digest_size=self.ID_BYTES, person=b"seal id").digest()

    def __repr__(self) -> str:
        return f"Key(id={self.id.hex()})"


class Opened(Struct, frozen=True):
    """How a store reads and writes, and the secret of its tenants, if it keeps that hidden, as hex."""

    codec: Codec
    secret: str | None = None


def keys_from(given: EncryptionKey | None) -> tuple[Key, ...]:
    """Return the keys that a user gives; none for ``None``.

    Raises:
        ConfigError: one is no key.
    """
    if given is None:
        return ()
    each: Iterable[object] = (
        (given,) if isinstance(given, (bytes, bytearray, str)) else _listed(given)
    )
    keys = tuple(dict.fromkeys(_key(one) for one in each))
    if not keys:
        raise ConfigError(f"encryption_key= is an empty list; {_FORM}, or leave it out.")
    return keys


def open_codec(
    given: EncryptionKey | None,
    *,
    name: str,
    claim: Callable[[str, str], str],
    fact: Callable[[str], str | None],
) -> Opened:
    """Return how a store is read and written; whoever opens it first decides whether it is encrypted.

    Args:
        given: the key, or keys: the first one hides, all of them open. ``None``: in plain.
        name: the store, as people know it.
        claim: see `Store.claim`; called before the store is used for anything else.
        fact: returns what was claimed, if anything was.

    Raises:
        ConfigError: this is no key, not the one of this store, or the store is not encrypted; or the
            library `cryptography` is missing.
    """
    keys = keys_from(given)
    if not keys:
        if (fact(_FACT) or claim(_FACT, _PLAIN)) != _PLAIN:
            raise ConfigError(f"{name} is encrypted: give the key as encryption_key=.")
        return Opened(Codec())
    seal_of = _seals()
    founder = fact(_FACT) or claim(_FACT, keys[0].id.hex())
    if founder == _PLAIN:
        raise ConfigError(
            f"{name} is kept in plain, and encryption_key= is for new stores only: name another one,"
            " or delete this one first."
        )
    secret = _secret(keys, founder, claim, fact, seal_of)
    if secret is None:
        raise ConfigError(
            f"{name} is encrypted under another key than encryption_key=: give the one that it was"
            " opened with, also behind a new one in a list."
        )
    if fact(_fact_of(keys[0])) is None:
        claim(_fact_of(keys[0]), _hidden(secret, keys[0], seal_of))
    return Opened(Codec(seal_of(keys), secret=bytes.fromhex(secret)), secret)


def _secret(
    keys: Sequence[Key],
    founder: str,
    claim: Callable[[str, str], str],
    fact: Callable[[str], str | None],
    seal_of: Callable[[Sequence[Key]], Seal],
) -> str | None:
    """Return the tenants' secret, which is kept hidden under every key that ever came first."""
    for key in keys:
        if key.id.hex() == founder:  # two processes may be the first at once
            fresh = _hidden(secrets.token_hex(32), key, seal_of)
            kept = fact(_fact_of(key)) or claim(_fact_of(key), fresh)
        else:
            kept = fact(_fact_of(key)) or ""
        if kept:
            try:
                return seal_of((key,)).open(bytes.fromhex(kept), (_FACT, "secret")).decode()
            except (CodecError, ValueError) as error:
                raise ConfigError(
                    "What the store keeps of its encryption was changed; delete the store."
                ) from error
    return None


def _fact_of(key: Key) -> str:
    return f"{_FACT}:{key.id.hex()}"


def _hidden(secret: str, key: Key, seal_of: Callable[[Sequence[Key]], Seal]) -> str:
    return seal_of((key,)).close(secret.encode(), (_FACT, "secret")).hex()


def _seals() -> Callable[[Sequence[Key]], Seal]:
    try:
        seal: Callable[[Sequence[Key]], Seal] = importlib.import_module(
            "stampcache.stores.aes"
        ).AesSeal
    except ImportError as error:
        raise ConfigError(
            'encryption_key= needs the library cryptography: pip install "stampcache[encryption]".'
        ) from error
    return seal


def _listed(given: object) -> Iterable[object]:
    if not isinstance(given, Sequence):
        raise ConfigError(f"encryption_key= is of type {type(given).__name__}; {_FORM}.")
    return given


def _key(given: object) -> Key:
    """Return a key; what is wrong with one is said without showing it."""
    if isinstance(given, str):
        try:
            raw = base64.b64decode(
                given.strip() + "=" * (-len(given.strip()) % 4), b"-_", validate=True
            )
        except (ValueError, binascii.Error) as error:
            raise ConfigError(f"encryption_key= is a text that is no base64; {_FORM}.") from error
    elif isinstance(given, (bytes, bytearray)):
        raw = bytes(given)
    else:
        raise ConfigError(f"encryption_key= is of type {type(given).__name__}; {_FORM}.")
    if len(raw) != _KEY_BYTES:
        raise ConfigError(f"encryption_key= has {len(raw)} bytes; {_FORM}.")
    return Key(raw)
