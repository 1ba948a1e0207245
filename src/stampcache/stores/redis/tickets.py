"""Tickets in a Redis store: who makes what, and how it ended, told to all processes."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from stampcache.errors import CodecError
from stampcache.ports import Making, Ticket
from stampcache.stores.redis.asking import Run, Verb, Word
from stampcache.stores.redis.leases import Leases
from stampcache.stores.redis.secrets import Facts

_TOLD_MS = 5_000
_DONE, _FAILED = b"done", b"failed:"
_MS = 1_000


class TicketVerbs:
    """The verbs of tickets. A lease lasts ``lease_s``; then another one may take the ticket."""

    def __init__(self, facts: Facts, *, lease_s: float) -> None:
        self._facts = facts
        self._lease_ms = max(1, round(lease_s * _MS))

    def take(self, ticket: Ticket) -> Verb[str]:
        """See `Tickets.take`."""
        holder: bytes = yield Run("take", (*_words(ticket), self._lease_ms), once=True)
        return holder.decode()

    def renew(self, tickets: Sequence[Ticket]) -> Verb[Collection[Ticket]]:
        """Give these tickets a new lease each; return those that their holders do not have any more."""
        words: list[Word] = [self._lease_ms]
        for ticket in tickets:
            words += _words(ticket)
        held = yield Run("renew-tickets", tuple(words))
        return [one for one, there in zip(tickets, held, strict=True) if not there]

    def see(self, ticket: Ticket) -> Verb[Making]:
        """See `Tickets.see`."""
        now, end = yield Run("ticket", _words(ticket))
        failure = ""
        if end.startswith(_FAILED):
            keeper = yield from self._facts.keeper()
            try:
                raw = keeper.open(end.removeprefix(_FAILED), "failure", *_place(ticket))
                failure = raw.decode()
            except CodecError:
                failure = "its error cannot be read"
        return Making(under_way=now == ticket.token.encode(), ended=bool(end), failure=failure)

    def give(self, ticket: Ticket, failure: str) -> Verb[None]:
        """See `Tickets.give`."""
        end = _DONE
        if failure:
            keeper = yield from self._facts.keeper()
            said = failure.encode(errors="replace")
            end = _FAILED + keeper.close(said, "failure", *_place(ticket))
        yield Run("give", (*_words(ticket), end, _TOLD_MS))

    def let_go(self, ticket: Ticket) -> Verb[None]:
        """See `Tickets.let_go`."""
        yield Run("give", (*_words(ticket), b"", 0))


def _words(ticket: Ticket) -> tuple[str, str, str]:
    return (ticket.tenant, ticket.name, ticket.token)


def _place(ticket: Ticket) -> tuple[str, str]:
    return (ticket.tenant, ticket.name)


class RedisTickets:
    """See `stampcache.ports.Tickets`."""

    def __init__(self, run: Callable[[Verb[Any]], Any], verbs: TicketVerbs, leases: Leases) -> None:
        self._run = run
        self._verbs = verbs
        self._leases = leases

    def take(self, ticket: Ticket, *, longest_s: float) -> str:
        """See `Tickets.take`."""
        holder: str = self._run(self._verbs.take(ticket))
        if holder == ticket.token:
            self._leases.add(ticket, longest_s)
        return holder

    def see(self, ticket: Ticket) -> Making:
        """See `Tickets.see`."""
        making: Making = self._run(self._verbs.see(ticket))
        return making

    def give(self, ticket: Ticket, failure: str) -> None:
        """See `Tickets.give`."""
        self._leases.drop(ticket)
        self._run(self._verbs.give(ticket, failure))

    def let_go(self, ticket: Ticket) -> None:
        """See `Tickets.let_go`."""
        self._leases.drop(ticket)
        self._run(self._verbs.let_go(ticket))


class AsyncRedisTickets:
    """See `stampcache.ports.AsyncTickets`."""

    def __init__(
        self, run: Callable[[Verb[Any]], Awaitable[Any]], verbs: TicketVerbs, leases: Leases
    ) -> None:
        self._run = run
        self._verbs = verbs
        self._leases = leases

    async def take(self, ticket: Ticket, *, longest_s: float) -> str:
        """See `Tickets.take`."""
        holder: str = await self._run(self._verbs.take(ticket))
        if holder == ticket.token:
            self._leases.add(ticket, longest_s)
        return holder

    async def see(self, ticket: Ticket) -> Making:
        """See `Tickets.see`."""
        making: Making = await self._run(self._verbs.see(ticket))
        return making

    async def give(self, ticket: Ticket, failure: str) -> None:
        """See `Tickets.give`."""
        self._leases.drop(ticket)
        await self._run(self._verbs.give(ticket, failure))

    async def let_go(self, ticket: Ticket) -> None:
        """See `Tickets.let_go`."""
        self._leases.drop(ticket)
        await self._run(self._verbs.let_go(ticket))
