"""From a URL to a server and the settings of a store.

redis://user:password@host:6379/0?prefix=app&strict=1    TCP; the path is the database
rediss://host:6379?ssl_ca_certs=/etc/ca.pem              TLS
unix:///run/redis.sock?db=0                              a socket
redis://host:6379?cluster=1                              one node of a cluster; the rest is found out

Whatever is none of the settings below is handed to redis-py, such as ``ssl_ca_certs``.
"""

from collections.abc import Callable, Mapping
from math import isfinite
from types import MappingProxyType
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from stampcache.errors import ConfigError
from stampcache.stores.redis.names import base_of

SCHEMES = ("redis", "rediss", "unix")
_YES, _NO = ("1", "true", "yes"), ("0", "false", "no")


class Settings(Struct, frozen=True, kw_only=True):
    """How a store uses its server; times are in seconds.

    ``prefix`` names the cache in the server. With ``strict`` every hit is verified by a round trip; else
    what is kept in the process may be ``staleness_s`` old. A server is ``durable`` that loses no write
    that it acknowledged: then what was stored outlives its restarts. ``timeout_s`` bounds a read or a
    small write, ``slow_timeout_s`` a verb that may touch many entries. Who makes what others wait for
    is replaced ``lease_s`` after its process was killed or stopped. ``connections`` bounds each pool.

    Raises:
        ConfigError: one is out of range.
    """

    prefix: str = "default"
    strict: bool = False
    staleness_s: float = 0.1
    durable: bool = False
    timeout_s: float = 0.5
    slow_timeout_s: float = 5.0
    lease_s: float = 30.0
    connections: int = 50
    cluster: bool = False

    def __post_init__(self) -> None:
        base_of(self.prefix)
        for name in ("staleness_s", "timeout_s", "slow_timeout_s", "lease_s"):
            seconds = getattr(self, name)
            if not (seconds > 0 and isfinite(seconds)):
                raise ConfigError(f"{name}= is {seconds}; give a finite number of seconds above 0.")
        if self.connections < 1:
            raise ConfigError(f"connections= is {self.connections}; give 1 or more.")


class Address(Struct, frozen=True):
    """A server as redis-py is told of it, how it is named to people, and the settings."""

    server: str
    shown: str
    settings: Settings


def read_address(url: str, settings: Settings | None = None) -> Address:
    """Return what a URL says; settings in it stand over those given.

    Raises:
        ConfigError: it is malformed, or a setting in it is.
    """
    try:
        parts = urlsplit(url)
        named = {
            "host": parts.hostname,
            "port": parts.port,
        }
    except ValueError as error:
        raise ConfigError(f"{_hidden(url)} is no URL ({error}).") from error
    if parts.scheme not in SCHEMES or not (named["host"] or parts.path.strip("/")):
        raise ConfigError(
            f"{_hidden(url)} names no server; write redis://host:6379/0 or unix:///path/to.sock."
        )
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    ours = {name: given.pop(name) for name in list(given) if name in _READERS}
    told = {name: _READERS[name](name, text) for name, text in ours.items()}
    known = replace(settings or Settings(), **told)
    if known.cluster and (parts.scheme == "unix" or parts.path.strip("/") not in ("", "0")):
        raise ConfigError("A cluster has no database but 0 and no socket; leave that out.")
    place = url.partition("#")[0].partition("?")[0]
    server = f"{place}?{urlencode(given)}" if given else place
    return Address(server, f"{_hidden(url)}?prefix={known.prefix}", known)


def _hidden(url: str) -> str:
    """Return a URL without password and options."""
    scheme, _, rest = url.partition("://")
    place = rest.split("?", 1)[0].rpartition("@")[2]
    return f"{scheme}://{place}"


def _yes(name: str, text: str) -> bool:
    if text.lower() in (*_YES, *_NO):
        return text.lower() in _YES
    raise ConfigError(f"{name}={text} says neither yes nor no; write 1 or 0.")


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(f"{name}={text} is no number of seconds.") from error


def _whole(name: str, text: str) -> int:
    if not text.isdecimal():
        raise ConfigError(f"{name}={text} is no whole number.")
    return int(text)


def _text(name: str, text: str) -> str:  # noqa: ARG001 - one shape for all readers
    return text


_READERS: Mapping[str, Callable[[str, str], object]] = MappingProxyType(
    {
        "prefix": _text,
        "strict": _yes,
        "durable": _yes,
        "cluster": _yes,
        "staleness_s": _number,
        "timeout_s": _number,
        "slow_timeout_s": _number,
        "lease_s": _number,
        "connections": _whole,
    }
)
