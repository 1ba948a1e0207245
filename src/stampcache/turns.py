"""One making for equal requests of all processes that share a store with tickets (ADR 0026).

Whoever takes the ticket makes; others look how it ends. Tickets only save work: whether an answer may be
stored is decided by its fence, and where tickets fail everybody makes its own.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from msgspec import Struct

from stampcache import canonical
from stampcache.effects import Flow, Note, Step
from stampcache.errors import MakingError, StoreError
from stampcache.ports import AsyncTickets, Making, Ticket, Tickets

Value = TypeVar("Value")
_ROUNDS = 2
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.05
_LONGEST_FAILURE = 500


class Turn(Struct, Generic[Value], frozen=True):
    """What another process made, or the ticket to make it."""

    found: Value | None
    ticket: Ticket = Ticket()


class Both(Struct, frozen=True):
    """Tickets in both forms."""

    sync: Tickets
    aio: AsyncTickets


class Turns:
    """Takes turns with other processes; without tickets it is everybody's turn at once."""

    def __init__(
        self, tickets: Both | None, *, timeout_s: float, event: Callable[[str], None]
    ) -> None:
        self._tickets = tickets
        self._timeout_s = timeout_s
        self._event = event
        self._held: set[str] = set()
        self._letting_go: set[asyncio.Task[None]] = set()

    def turn(
        self, tenant: str, key: tuple[str, ...], again: Callable[[], Flow[Value | None]]
    ) -> Flow[Turn[Value]]:
        """Wait for one's turn; ``again`` looks whether somebody else has made it meanwhile.

        ``tenant`` is the digest of whose it is.

        Raises:
            MakingError: an equal request failed in another process while this one waited for it.
        """
        tickets, name = self._tickets, _name(key)
        if (
            tickets is None or name in self._held
        ):  # who waits for its own process shares in it already
            return Turn(None)
        try:
            return (yield from self._taken(tickets, tenant, name, again))
        except StoreError as error:
            yield Note("tickets", error)
            return Turn(None)

    def _taken(
        self, tickets: Both, tenant: str, name: str, again: Callable[[], Flow[Value | None]]
    ) -> Flow[Turn[Value]]:
        until = time.monotonic() + self._timeout_s
        for _ in range(_ROUNDS):
            ticket = Ticket(tenant, name, secrets.token_hex(8))
            holder = yield from _took(tickets, ticket, self._timeout_s)
            mine = holder == ticket.token
            if mine:
                self._held.add(name)
            else:
                yield from self._end_of(tickets, Ticket(tenant, name, holder), until)
            found = yield from self._found(ticket if mine else Ticket(), again)
            if found is not None:
                return Turn(found)
            if mine:
                return Turn(None, ticket)
        return Turn(None)

    def _found(self, ticket: Ticket, again: Callable[[], Flow[Value | None]]) -> Flow[Value | None]:
        """Look again; where that finds something, or fails, a ticket is of no use."""
        try:
            found = yield from again()
        except BaseException:
            self.let_go(ticket)
            raise
        if found is not None:
            self._event("tickets.shared")
            yield from self.give(ticket, "")
        return found

    def _end_of(self, tickets: Both, ticket: Ticket, until: float) -> Flow[None]:
        """Wait until a making has ended, its lease has, or the time is over."""
        pause_s = _FIRST_PAUSE_S
        while time.monotonic() < until:
            yield from _pause(pause_s)
            making = yield from _seen(tickets, ticket)
            if making.failure:
                raise MakingError(f"An equal request failed in another process: {making.failure}")
            if making.ended:
                return
            if not making.under_way:
                self._event("tickets.taken_over")
                return
            pause_s = min(_LONGEST_PAUSE_S, pause_s * 1.5)
        self._event("tickets.timeout")

    def held(self, ticket: Ticket, making: Flow[Value]) -> Flow[Value]:
        """Run a making, and say how it ended to all that wait for it."""
        try:
            made = yield from making
        except Exception as error:
            yield from self.give(ticket, said(error))
            raise
        except BaseException:
            self.let_go(ticket)
            raise
        yield from self.give(ticket, "")
        return made

    def give(self, ticket: Ticket, failure: str) -> Flow[None]:
        """Give a ticket back; a failure is that of all who wait."""
        tickets = self._tickets
        if tickets is None or not ticket.name:
            return
        self._held.discard(ticket.name)
        try:
            yield Step(
                sync=lambda: tickets.sync.give(ticket, failure),
                aio=lambda: tickets.aio.give(ticket, failure),
            )
        except StoreError as error:
            yield Note("tickets", error)

    def let_go(self, ticket: Ticket) -> None:
        """Leave the making to another one: the caller was interrupted, and may not wait."""
        tickets = self._tickets
        if tickets is None or not ticket.name:
            return
        self._held.discard(ticket.name)
        self._event("tickets.let_go")
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._quietly(lambda: tickets.sync.let_go(ticket))
            return
        task = loop.create_task(self._alet_go(tickets.aio.let_go(ticket)))
        self._letting_go.add(task)
        task.add_done_callback(self._letting_go.discard)

    def _quietly(self, let_go: Callable[[], None]) -> None:
        try:
            let_go()
        except StoreError:
            self._event("error.tickets")  # its lease ends by itself

    async def _alet_go(self, letting: Coroutine[Any, Any, None]) -> None:
        try:
            await letting
        except StoreError:
            self._event("error.tickets")  # as above


def said(error: Exception) -> str:
    """Return what others are told of a failure."""
    return f"{type(error).__name__}: {error}"[:_LONGEST_FAILURE]


def _name(key: tuple[str, ...]) -> str:
    return canonical.digest([canonical.encode(part) for part in key], person=b"ticket")


def _took(tickets: Both, ticket: Ticket, longest_s: float) -> Step[str]:
    return Step(
        sync=lambda: tickets.sync.take(ticket, longest_s=longest_s),
        aio=lambda: tickets.aio.take(ticket, longest_s=longest_s),
    )


def _seen(tickets: Both, ticket: Ticket) -> Step[Making]:
    return Step(sync=lambda: tickets.sync.see(ticket), aio=lambda: tickets.aio.see(ticket))


def _pause(seconds: float) -> Step[None]:
    return Step(sync=lambda: time.sleep(seconds), aio=lambda: asyncio.sleep(seconds))
