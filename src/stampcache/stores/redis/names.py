"""How the keys of a Redis store are named: all in one slot, none a prefix of another's by chance.

``stampcache:{app}:`` is the base of all names of the cache ``app``: the braces are a hash tag, so that a
cluster keeps them together. The functions of ``lua/`` make the same names.
"""

import hashlib

from stampcache.errors import ConfigError
from stampcache.stores.pending_uses import Place

_FORBIDDEN = "{}*?[]\\"
_LONGEST = 100


def base_of(prefix: str) -> str:
    """Return the base of all names of a cache.

    Raises:
        ConfigError: the prefix cannot stand in a hash tag or an ACL pattern.
    """
    wrong = [one for one in prefix if one in _FORBIDDEN or not one.isprintable() or one.isspace()]
    if not prefix or wrong or len(prefix) > _LONGEST:
        raise ConfigError(
            f"prefix= is {prefix!r}; give 1 to {_LONGEST} characters without spaces and {_FORBIDDEN}."
        )
    return f"stampcache:{{{prefix}}}:"


def pair(first: str, second: str) -> bytes:
    """Return two texts as one, so that no other pair gives the same."""
    raw = first.encode()
    return b"%d:%b%b" % (len(raw), raw, second.encode())


def spot(place: Place) -> bytes:
    """Return an address as a part of a name."""
    return pair(*place)


def imprint(vector: bytes) -> bytes:
    """Return what stands for a chunk's vector in a name; empty for none."""
    return hashlib.blake2b(vector, digest_size=12).hexdigest().encode() if vector else b""
