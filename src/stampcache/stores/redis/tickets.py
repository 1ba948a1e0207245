"""Tickets in a Redis store: who makes what, and how it ended, told to all processes."""

from collections.abc import Awaitable, Callable
from typing import Any

from stampcache.errors import CodecError
from stampcache.ports import Making
from stampcache.stores.redis.asking import Run, Verb
from stampcache.stores.redis.secrets import Facts

_TOLD_MS = 60_000
_DONE, _FAILED = b"done", b"failed:"
_MS = 1_000


class TicketVerbs:
    """The verbs of tickets; a making may take ``lease_s`` before another one may take its place."""

    def __init__(self, facts: Facts, *, lease_s: float) -> None:
        self._facts = facts
        self._lease_ms = max(1, round(lease_s * _MS))

    def take(self, name: str, token: str) -> Verb[str]:
        """See `Tickets.take`."""
        holder: bytes = yield Run("take", (name, token, self._lease_ms), once=True)
        return holder.decode()

    def see(self, name: str, holder: str) -> Verb[Making]:
        """See `Tickets.see`."""
        now, end = yield Run("ticket", (name, holder))
        failure = ""
        if end.startswith(_FAILED):
            keeper = yield from self._facts.keeper()
            try:
                failure = keeper.open(end.removeprefix(_FAILED), "failure", name).decode()
            except CodecError:
                failure = "its error cannot be read"
        return Making(under_way=now == holder.encode(), ended=bool(end), failure=failure)

    def give(self, name: str, token: str, failure: str) -> Verb[None]:
        """See `Tickets.give`."""
        end = _DONE
        if failure:
            keeper = yield from self._facts.keeper()
            end = _FAILED + keeper.close(failure.encode(errors="replace"), "failure", name)
        yield Run("give", (name, token, end, _TOLD_MS))

    def let_go(self, name: str, token: str) -> Verb[None]:
        """See `Tickets.let_go`."""
        yield Run("give", (name, token, b"", 0))


class RedisTickets:
    """See `stampcache.ports.Tickets`."""

    def __init__(self, run: Callable[[Verb[Any]], Any], verbs: TicketVerbs) -> None:
        self._run = run
        self._verbs = verbs

    def take(self, name: str, token: str) -> str:
        """See `Tickets.take`."""
        holder: str = self._run(self._verbs.take(name, token))
        return holder

    def see(self, name: str, holder: str) -> Making:
        """See `Tickets.see`."""
        making: Making = self._run(self._verbs.see(name, holder))
        return making

    def give(self, name: str, token: str, failure: str) -> None:
        """See `Tickets.give`."""
        self._run(self._verbs.give(name, token, failure))

    def let_go(self, name: str, token: str) -> None:
        """See `Tickets.let_go`."""
        self._run(self._verbs.let_go(name, token))


class AsyncRedisTickets:
    """See `stampcache.ports.AsyncTickets`."""

    def __init__(self, run: Callable[[Verb[Any]], Awaitable[Any]], verbs: TicketVerbs) -> None:
        self._run = run
        self._verbs = verbs

    async def take(self, name: str, token: str) -> str:
        """See `Tickets.take`."""
        holder: str = await self._run(self._verbs.take(name, token))
        return holder

    async def see(self, name: str, holder: str) -> Making:
        """See `Tickets.see`."""
        making: Making = await self._run(self._verbs.see(name, holder))
        return making

    async def give(self, name: str, token: str, failure: str) -> None:
        """See `Tickets.give`."""
        await self._run(self._verbs.give(name, token, failure))

    async def let_go(self, name: str, token: str) -> None:
        """See `Tickets.let_go`."""
        await self._run(self._verbs.let_go(name, token))
