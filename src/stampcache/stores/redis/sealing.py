"""What a store of others keeps of us: bytes under a seal that nobody without the key can make.

    offset  size  meaning
    0       4     b"SCS" and the format version, 1
    4       16    HMAC-SHA-256 of the rest, the first 16 bytes
    20      -     what was sealed

The seal shows damage and forgery alike. It does not hide anything, and does not show that bytes which
were valid once were put back.
"""

import hashlib
import hmac

from stampcache.errors import CodecError

_HEAD = b"SCS\x01"
_MAC_BYTES = 16
_BODY_AT = len(_HEAD) + _MAC_BYTES


class Seal:
    """Closes and opens bytes with one key of 16 to 64 bytes."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def close(self, raw: bytes) -> bytes:
        """Return the bytes under a seal."""
        return _HEAD + self._mac(raw) + raw

    def open(self, sealed: bytes) -> bytes:
        """Return what was sealed.

        Raises:
            CodecError: the seal is none of this key, or the bytes are damaged.
        """
        if sealed[: len(_HEAD)] != _HEAD:
            raise CodecError(
                f"An entry has the unknown seal {bytes(sealed[:4])!r}; it was dropped."
            )
        body = sealed[_BODY_AT:]
        if not hmac.compare_digest(sealed[len(_HEAD) : _BODY_AT], self._mac(body)):
            raise CodecError("An entry is damaged, or sealed with another key; it was dropped.")
        return body

    def _mac(self, raw: bytes) -> bytes:
        return hmac.digest(self._key, raw, "sha256")[:_MAC_BYTES]


def seal_key(secret: bytes | str) -> bytes:
    """Return the key of the seal that belongs to a cache's secret."""
    raw = secret.encode() if isinstance(secret, str) else secret
    return hashlib.blake2b(raw, digest_size=32, person=b"sealing key").digest()
