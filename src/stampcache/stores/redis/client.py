"""The sync edge to a server: connections, timeouts, one retry of a broken one, and the breaker."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import MovedError, ReadOnlyError
from redis.retry import Retry

from stampcache.errors import ConfigError, StoreError
from stampcache.stores.redis import failures
from stampcache.stores.redis.address import Address
from stampcache.stores.redis.asking import Ask, Command, Run, Word
from stampcache.stores.redis.breaker import Breaker
from stampcache.stores.redis.names import base_of
from stampcache.stores.redis.pool import ExhaustedError, Pool
from stampcache.stores.redis.scripts import load_scripts
from stampcache.stores.redis.whereabouts import Host, Whereabouts, options_of

_FAILURES = 3
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 10.0
TRIES = 3


class Client:
    """Carries out what verbs ask for; used by any number of threads."""

    def __init__(
        self,
        address: Address,
        *,
        lost: Callable[[], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connect to nothing yet; ``lost`` is called when a connection broke."""
        self.address = address
        self.base = base_of(address.settings.prefix).encode()
        self.scripts = load_scripts()
        self.breaker = Breaker(
            failures=_FAILURES, pause_s=_PAUSE_S, longest_s=_LONGEST_PAUSE_S, now=now
        )
        self._lost = lost
        self._pid = os.getpid()
        self._opening = threading.Lock()
        self.where = Whereabouts(address, self.base)
        self._pools: dict[tuple[Host, bool], Pool] = {}
        self._closed = False
        self._said = "it failed"

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
        self._pools = {}
        self.where = Whereabouts(self.address, self.base)
        return True

    def answer(self, ask: Ask) -> Any:
        """Return what the server replies.

        Raises:
            StoreError: it did not, or refused.
        """
        self.check_open()
        if not self.breaker.lets_through():
            raise StoreError(self.left_alone)
        tries = 1 if isinstance(ask, Run) and ask.once else TRIES
        while True:
            tries -= 1
            try:
                reply = self._send(ask)
            except failures.ALL as error:
                if self.failed(error) and tries:
                    continue
                raise failures.store_error(error) from error
            self.breaker.succeeded()
            return reply

    def failed(self, error: Exception) -> bool:
        """Take note of a failure; tell whether asking again may do."""
        if isinstance(error, ExhaustedError):
            return False
        if isinstance(error, MovedError):
            self._lost()
            self.where.moved(error.host, error.port)
            return True
        if not isinstance(error, failures.AWAY):
            self.breaker.succeeded()  # it said no, but it said something
            return False
        self._lost()
        self.where.lost()
        self._said = str(failures.store_error(error))
        if isinstance(error, ReadOnlyError):  # a name may lead to another server by now
            for pool in list(self._pools.values()):
                pool.disconnect()
        self.breaker.failed()
        return isinstance(error, failures.REPEATABLE) and not self.breaker.is_open

    @property
    def left_alone(self) -> str:
        """What is said while nobody asks the server."""
        return f"{self.address.shown} is left alone for a while: {self._said}"

    def check_open(self) -> None:
        """Refuse to go on after `close`."""
        if self._closed:
            raise StoreError("The Redis store is closed; open the cache again.")

    def close(self) -> None:
        """Let go of all connections."""
        self._closed = True
        with self._opening:
            for pool in self._pools.values():
                pool.disconnect()
            self._pools.clear()

    def plain(self, *words: str) -> Any:
        """Return the reply to a command that names no key, such as ``INFO memory``.

        Raises:
            StoreError: there is none.
        """
        self.check_open()
        try:
            return self._pool(slow=True).execute(words)
        except failures.ALL as error:
            raise failures.store_error(error) from error

    def words_of(self, ask: Ask) -> tuple[Word, ...]:
        """Return what is sent for an ask, of a script its digest."""
        if isinstance(ask, Command):
            return (ask.name, self.base + ask.key, *ask.args)
        return ("EVALSHA", self.scripts[ask.verb].sha, 1, self.base, *ask.args)

    def source_words(self, ask: Run) -> tuple[Word, ...]:
        """Return what is sent where a server does not know a script."""
        return ("EVAL", self.scripts[ask.verb].source, 1, self.base, *ask.args)

    def _send(self, ask: Ask) -> Any:
        pool = self._pool(slow=isinstance(ask, Run) and ask.slow)
        try:
            return pool.execute(self.words_of(ask))
        except failures.NoScript:
            assert isinstance(ask, Run)
            return pool.execute(self.source_words(ask))

    def _pool(self, *, slow: bool) -> Pool:
        host = self.where.known or self.where.find()
        pool = self._pools.get((host, slow))
        if pool is None:
            with self._opening:
                pool = self._pools.setdefault((host, slow), self._opened(host, slow=slow))
        return pool

    def _opened(self, host: Host, *, slow: bool) -> Pool:
        settings = self.address.settings
        try:
            factory = redis.ConnectionPool(
                **{
                    **options_of(self.address),
                    **host.options,
                    **common_options(self.address, slow=slow),
                }
            )
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{self.address.shown} cannot be used ({error}).") from error
        return Pool(factory, size=settings.connections, timeout_s=settings.timeout_s)


def common_options(address: Address, *, slow: bool) -> Mapping[str, Any]:
    """Return what every connection is told, whatever the URL says."""
    settings = address.settings
    return {
        "socket_timeout": settings.slow_timeout_s if slow else settings.timeout_s,
        "socket_connect_timeout": settings.timeout_s,
        "protocol": 2,
        "driver_info": None,
        "retry": Retry(NoBackoff(), 0),
    }
