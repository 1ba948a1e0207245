"""Connections to one server: a command costs half of what the client of redis-py takes.

A connection that failed, or was left in the middle of a reply, is closed; so is then every idle one,
since what broke one has mostly broken all.
"""

import threading
import time
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
        self._slots: deque[Any] = deque([None] * size)  # at its right end connections that are idle
        self._returned = threading.Condition()
        self._waiting = 0

    def execute(self, words: Sequence[Word]) -> Any:
        """Return the reply to a command.

        Raises:
            redis.RedisError: there is none, or it is an error.
        """
        kept = None
        slot = self._take()
        try:
            connection = self._opened() if slot is None else slot
            try:
                connection.send_packed_command(connection.pack_command(*words), check_health=False)
                reply = connection.read_response()
            except ResponseError:
                kept = connection
                raise
            except BaseException:
                connection.disconnect()
                self.disconnect()
                raise
            kept = connection
            return reply
        finally:
            self._give_back(kept)

    def _opened(self) -> Any:
        connection: Any = self._factory.make_connection()
        connection.connect()
        return connection

    def _take(self) -> Any:
        """Return a connection, or ``None``: then one may be opened. A semaphore would cost more."""
        try:
            return self._slots.pop()
        except IndexError:
            return self._waited_for()

    def _waited_for(self) -> Any:
        until = time.monotonic() + self._timeout_s
        with self._returned:
            self._waiting += 1
            try:
                while True:
                    try:
                        return self._slots.pop()
                    except IndexError:
                        left_s = until - time.monotonic()
                        if left_s <= 0 or not self._returned.wait(left_s):
                            raise ExhaustedError(
                                "all connections are in use; raise connections="
                            ) from None
            finally:
                self._waiting -= 1

    def _give_back(self, connection: Any) -> None:
        if connection is None:
            self._slots.appendleft(None)
        else:
            self._slots.append(connection)
        if self._waiting:
            with self._returned:
                self._returned.notify()

    def disconnect(self) -> None:
        """Close all connections that are idle."""
        for _ in range(len(self._slots)):
            try:
                connection = self._slots.pop()
            except IndexError:  # others took the rest
                return
            if connection is not None:
                connection.disconnect()
            self._slots.appendleft(None)
