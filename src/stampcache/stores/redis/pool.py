"""Connections to one server: a command costs half of what the client of redis-py takes.

A connection that failed, or was left in the middle of a reply, is closed; so is then every idle one,
since what broke one has mostly broken all.
"""

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import redis
from redis.exceptions import RedisError, ResponseError

from stampcache.stores.redis.asking import Word


class ExhaustedError(RedisError):
    """All connections were in use for too long: the application's load, not the server's absence."""


class Pool:
    """At most ``size`` connections; who finds all of them in use waits ``timeout_s`` for one."""

    def __init__(self, factory: redis.ConnectionPool, *, size: int, timeout_s: float) -> None:
        """``factory`` makes connections, each of which the pool closes itself."""
        self._factory = factory
        self._timeout_s = timeout_s
        self._free = threading.BoundedSemaphore(size)
        self._idle: deque[Any] = deque()

    def execute(self, words: Sequence[Word]) -> Any:
        """Return the reply to a command.

        Raises:
            redis.RedisError: there is none, or it is an error.
        """
        if not self._free.acquire(timeout=self._timeout_s):
            raise ExhaustedError("all connections are in use; raise connections=")
        try:
            return self._execute(words)
        finally:
            self._free.release()

    def _execute(self, words: Sequence[Word]) -> Any:
        connection = self._take()
        try:
            connection.send_packed_command(connection.pack_command(*words), check_health=False)
            reply = connection.read_response()
        except ResponseError:
            self._idle.append(connection)
            raise
        except BaseException:
            connection.disconnect()
            self.disconnect()
            raise
        self._idle.append(connection)
        return reply

    def _take(self) -> Any:
        try:
            return self._idle.pop()
        except IndexError:
            connection: Any = self._factory.make_connection()
            connection.connect()
            return connection

    def disconnect(self) -> None:
        """Close all connections that are idle."""
        while self._idle:
            try:
                self._idle.pop().disconnect()
            except IndexError:  # another thread took the last one
                return
