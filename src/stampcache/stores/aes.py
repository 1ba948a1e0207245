"""AES-256-GCM by the library `cryptography`: what hides the contents of a store (ADR 0027).

    offset  size  meaning
    0       4     b"SCX" and the format version, 1
    4       8     which key: a digest of it
    12      12    nonce, random
    24      -     ciphertext, then the tag of 16 bytes

The head and the address are authenticated with it, so that what is moved to another address fails.
"""

import os
from collections.abc import Sequence

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from stampcache.errors import CodecError
from stampcache.stores.keys import Key

_MAGIC = b"SCX\x01"
_ID_AT = len(_MAGIC)
_NONCE_AT = _ID_AT + Key.ID_BYTES
_TEXT_AT = _NONCE_AT + 12
_TAG_BYTES = 16


class AesSeal:
    """Hides bytes under the first of the keys; opens what any of them hid."""

    overhead = _TEXT_AT + _TAG_BYTES

    def __init__(self, keys: Sequence[Key]) -> None:
        self._head = _MAGIC + keys[0].id
        self._first = AESGCM(keys[0].raw)
        self._by_head = {_MAGIC + key.id: AESGCM(key.raw) for key in keys}

    def close(self, plain: bytes, address: tuple[str, ...]) -> bytes:
        """See `Seal.close`."""
        nonce = os.urandom(_TEXT_AT - _NONCE_AT)
        return self._head + nonce + self._first.encrypt(nonce, plain, _bound(self._head, address))

    def open(self, sealed: bytes, address: tuple[str, ...]) -> bytes:
        """See `Seal.open`."""
        head = bytes(sealed[:_NONCE_AT])
        key = self._by_head.get(head)
        if key is None:
            known = "under a key that was not given" if head[:_ID_AT] == _MAGIC else "in plain"
            raise CodecError(f"An entry is kept {known}; it was dropped.")
        nonce = bytes(sealed[_NONCE_AT:_TEXT_AT])
        try:
            return key.decrypt(nonce, bytes(sealed[_TEXT_AT:]), _bound(head, address))
        except (InvalidTag, ValueError) as error:  # ValueError: nothing is left behind the head
            raise CodecError(
                "An entry was changed or moved since it was kept; it was dropped."
            ) from error


def _bound(head: bytes, address: tuple[str, ...]) -> bytes:
    return msgspec.msgpack.encode((head, address))
