"""Facts that a server keeps for all processes: the seal, how it is encrypted, what was claimed.

A server that lost everything gets back what this process knows, so that others do not draw it anew.
"""

import secrets

from stampcache.errors import StoreError
from stampcache.stores.keys import EncryptionKey, Opened, open_codec
from stampcache.stores.redis.asking import Command, Verb
from stampcache.stores.redis.keeping import Keeper
from stampcache.stores.redis.sealing import Seal

_SEAL, _SECRET = "seal", "secret"
_TRIES = 5


class Facts:
    """What was claimed of a store in this process, and how its contents are kept."""

    def __init__(
        self,
        name: str,
        *,
        seal_key: bytes | None,
        encryption_key: EncryptionKey | None,
        durable: bool,
    ) -> None:
        """Without a key of the seal one is drawn, and kept in the server."""
        self._name = name
        self._seal_key = seal_key
        self._encryption_key = encryption_key
        self._durable = durable
        self._claimed: dict[str, str] = {}
        self._keeper: Keeper | None = None
        self._opened: Opened | None = None

    @property
    def known(self) -> Keeper | None:
        """How contents are kept, where nobody has to be asked for it."""
        return self._keeper

    def claim(self, name: str, value: str) -> Verb[str]:
        """Record a fact once; return the value in force."""
        yield from self.keeper()
        if name == _SECRET and self._opened is not None and self._opened.secret is not None:
            return self._opened.secret
        yield Command("HSETNX", b"facts", (name, value))
        raw: bytes = yield Command("HGET", b"facts", (name,))
        self._claimed[name] = raw.decode()
        return self._claimed[name]

    def keeper(self) -> Verb[Keeper]:
        """Return how contents are kept; whoever opens a store first decides that.

        Raises:
            ConfigError: the store is encrypted under another key, or is not.
        """
        if self._keeper is None:
            for _ in range(_TRIES):
                self._keeper = yield from self._agreed()
                if self._keeper is not None:
                    break
            else:
                raise StoreError("The Redis store failed (its facts change); open it again.")
        return self._keeper

    def _agreed(self) -> Verb[Keeper | None]:
        """Claim what is not there yet; ``None`` where another process was faster."""
        raw = yield Command("HGETALL", b"facts")
        pairs = zip(raw[::2], raw[1::2], strict=True)
        facts = {name.decode(): value.decode() for name, value in pairs}
        new = {name: value for name, value in self._claimed.items() if name not in facts}
        facts |= new

        def claim(name: str, value: str) -> str:
            new[name] = facts[name] = value
            return value

        opened = open_codec(self._encryption_key, name=self._name, claim=claim, fact=facts.get)
        if self._seal_key is None and _SEAL not in facts:
            claim(_SEAL, secrets.token_hex(32))
        won = True
        for name, value in new.items():
            won &= bool((yield Command("HSETNX", b"facts", (name, value))))
        if not won:
            return None
        yield Command("HSET", b"meta", ("durable", str(int(self._durable))))
        self._claimed |= facts
        self._opened = opened
        key = bytes.fromhex(facts[_SEAL]) if self._seal_key is None else self._seal_key
        return Keeper(Seal(key), opened.codec)

    def agree_again(self) -> Verb[None]:
        """Give back to a server what it may have lost."""
        if self._keeper is not None:
            keeper = yield from self._agreed()
            self._keeper = keeper or self._keeper
