"""The sync edge to a server: pools, timeouts, one retry of a broken connection, and the breaker."""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import redis
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

from stampcache.errors import ConfigError, StoreError
from stampcache.stores.redis import failures
from stampcache.stores.redis.address import Address
from stampcache.stores.redis.asking import Ask, Command, Run
from stampcache.stores.redis.breaker import Breaker
from stampcache.stores.redis.names import base_of
from stampcache.stores.redis.scripts import load_scripts

_FAILURES = 3
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 10.0
_TRIES = 2


class Client:
    """Carries out what verbs ask for; used by any number of threads."""

    def __init__(self, address: Address, *, lost: Callable[[], None]) -> None:
        """Connect to nothing yet; ``lost`` is called when a connection broke."""
        self.address = address
        self.base = base_of(address.settings.prefix).encode()
        self.scripts = load_scripts()
        self.breaker = Breaker(
            failures=_FAILURES, pause_s=_PAUSE_S, longest_s=_LONGEST_PAUSE_S, now=time.monotonic
        )
        self._lost = lost
        self._pid = os.getpid()
        self._opening = threading.Lock()
        self._clients: dict[bool, Any] = {}
        self._closed = False

    @property
    def pid(self) -> int:
        """The process that its connections belong to."""
        return self._pid

    def check_process(self) -> bool:
        """Start anew in a forked child, which shares no connection; tell whether this is one."""
        if os.getpid() == self._pid:
            return False
        self._pid = os.getpid()
        self._opening = threading.Lock()
        self._clients = {}
        return True

    def answer(self, ask: Ask) -> Any:
        """Return what the server replies.

        Raises:
            StoreError: it did not, or refused.
        """
        self.check_open()
        if not self.breaker.lets_through():
            raise StoreError("The Redis store is left alone for a while, since it failed just now.")
        tries = 1 if isinstance(ask, Run) and ask.once else _TRIES
        while True:
            tries -= 1
            try:
                reply = self._send(ask)
            except failures.ALL as error:
                if self.failed(error) and tries and isinstance(error, failures.REPEATABLE):
                    continue
                raise failures.store_error(error) from error
            self.breaker.succeeded()
            return reply

    def failed(self, error: Exception) -> bool:
        """Count a failure; tell whether it is of a server that was there a moment ago."""
        if not isinstance(error, failures.AWAY):
            self.breaker.succeeded()  # it said no, but it said something
            return False
        self._lost()
        self.breaker.failed()
        return not self.breaker.is_open

    def check_open(self) -> None:
        """Refuse to go on after `close`."""
        if self._closed:
            raise StoreError("The Redis store is closed; open the cache again.")

    def close(self) -> None:
        """Let go of all connections."""
        self._closed = True
        with self._opening:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def plain(self, *words: str) -> Any:
        """Return the reply to a command that names no key, such as ``INFO memory``."""
        self.check_open()
        try:
            client = self._client(slow=True)
            if self.address.settings.cluster:
                slot = client.keyslot(self.base)
                node = client.nodes_manager.get_node_from_slot(slot)
                return client.execute_command(*words, target_nodes=node)
            return client.execute_command(*words)
        except failures.ALL as error:
            raise failures.store_error(error) from error

    def _send(self, ask: Ask) -> Any:
        client = self._client(slow=isinstance(ask, Run) and ask.slow)
        if isinstance(ask, Command):
            return client.execute_command(ask.name, self.base + ask.key, *ask.args)
        script = self.scripts[ask.verb]
        try:
            return client.execute_command("EVALSHA", script.sha, 1, self.base, *ask.args)
        except failures.NoScript:
            return client.execute_command("EVAL", script.source, 1, self.base, *ask.args)

    def _client(self, *, slow: bool) -> Any:
        client = self._clients.get(slow)
        if client is None:
            with self._opening:
                client = self._clients.get(slow)
                if client is None:
                    client = self._clients[slow] = _connected(self.address, slow=slow)
        return client


def _connected(address: Address, *, slow: bool) -> Any:
    settings = address.settings
    timeout_s = settings.slow_timeout_s if slow else settings.timeout_s
    common: dict[str, Any] = {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": settings.timeout_s,
        "protocol": 2,
        "driver_info": None,
    }
    try:
        if settings.cluster:
            backoff = ExponentialBackoff(cap=settings.timeout_s, base=0.02)
            return RedisCluster.from_url(address.server, retry=Retry(backoff, 3), **common)
        pool = redis.BlockingConnectionPool.from_url(
            address.server,
            max_connections=settings.connections,
            timeout=settings.timeout_s,
            retry=Retry(NoBackoff(), 0),
            **common,
        )
        return redis.Redis.from_pool(pool)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{address.shown} cannot be used ({error}).") from error
