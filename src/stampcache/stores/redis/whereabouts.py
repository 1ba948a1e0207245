"""Where the server is: named by the URL, or in a cluster the primary of the one slot that a cache has."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.connection import parse_url
from redis.retry import Retry

from stampcache.errors import ConfigError
from stampcache.stores.redis.address import Address

_TRIES = 1
node: Callable[[str, int], Any] = ClusterNode
parse: Callable[[str], Mapping[str, Any]] = parse_url


class Host(Struct, frozen=True):
    """A server by name and port; without them the one that the URL names."""

    name: str = ""
    port: int = 0

    @property
    def options(self) -> Mapping[str, Any]:
        """What to tell redis-py beside what the URL says."""
        return {"host": self.name, "port": self.port} if self.name else {}


class Whereabouts:
    """Finds the server, and remembers the others of its cluster in case it goes."""

    def __init__(self, address: Address, base: bytes) -> None:
        self._address = address
        self._base = base
        self._lock = threading.Lock()
        self._known: Host | None = None if address.settings.cluster else Host()
        self._others: tuple[Host, ...] = ()

    @property
    def known(self) -> Host | None:
        """The server, where nobody has to be asked for it."""
        return self._known

    def find(self) -> Host:
        """Return the server; in a cluster ask its nodes, unless that was done.

        Raises:
            redis.RedisError: no node answers, or none has the slot.
        """
        with self._lock:
            if self._known is None:
                self._known = self._asked()
            return self._known

    def moved(self, host: str, port: int) -> None:
        """Note that a node said where the slot is now."""
        self._known = Host(host, port)

    def lost(self) -> None:
        """Ask again next time."""
        if self._address.settings.cluster:
            self._known = None

    def _asked(self) -> Host:
        settings = self._address.settings
        given = options_of(self._address)
        given.pop("connection_class", None)
        first = Host(given.pop("host", "localhost"), given.pop("port", 6379))
        given.pop("db", None)
        if self._address.server.startswith("rediss"):
            given["ssl"] = True
        given |= {
            "startup_nodes": [node(one.name, one.port) for one in (*self._others, first)],
            "retry": Retry(NoBackoff(), _TRIES),
            "socket_timeout": settings.timeout_s,
            "socket_connect_timeout": settings.timeout_s,
            "protocol": 2,
        }
        cluster: Any = RedisCluster(**given)
        try:
            self._others = tuple(Host(one.host, one.port) for one in cluster.get_nodes())
            slot = cluster.keyslot(self._base)
            found = cluster.nodes_manager.get_node_from_slot(slot)
            return Host(found.host, found.port)
        finally:
            cluster.close()


def options_of(address: Address) -> dict[str, Any]:
    """Return what the URL says as redis-py's options.

    Raises:
        ConfigError: it says something that redis-py does not know.
    """
    try:
        return dict(parse(address.server))
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{address.shown} cannot be used ({error}).") from error
