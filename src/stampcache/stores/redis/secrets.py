"""Facts that a server keeps for all processes, and the seal among them.

A server that lost everything gets back what this process knows, so that others do not draw it anew.
"""

import secrets

from stampcache.stores.redis.asking import Command, Verb
from stampcache.stores.redis.sealing import Seal

_SEAL = "seal"


class Facts:
    """What was claimed of a store in this process."""

    def __init__(self, seal_key: bytes | None) -> None:
        """Without a key one is drawn, and kept in the server."""
        self._claimed: dict[str, str] = {}
        self._given = None if seal_key is None else Seal(seal_key)
        self._seal = self._given

    @property
    def known(self) -> Seal | None:
        """The seal in force, where nobody has to be asked for it."""
        return self._seal

    def claim(self, name: str, value: str) -> Verb[str]:
        """Record a fact once; return the value in force."""
        yield Command("HSETNX", b"facts", (name, value))
        raw: bytes = yield Command("HGET", b"facts", (name,))
        self._claimed[name] = raw.decode()
        return self._claimed[name]

    def seal(self) -> Verb[Seal]:
        """Return the seal in force."""
        if self._seal is None:
            key = yield from self.claim(_SEAL, self._claimed.get(_SEAL) or secrets.token_hex(32))
            self._seal = Seal(bytes.fromhex(key))
        return self._seal

    def claim_again(self) -> Verb[None]:
        """Give back to a server what it may have lost."""
        self._seal = self._given
        for name, value in list(self._claimed.items()):
            yield Command("HSETNX", b"facts", (name, value))
