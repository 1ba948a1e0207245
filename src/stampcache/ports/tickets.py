"""Tickets of a shared store: equal requests of all processes cost one making (ADR 0026)."""

from typing import Protocol

from msgspec import Struct


class Ticket(Struct, frozen=True):
    """The right to make something: for which tenant (its digest), what, and who has it, by a token.

    Without a name it is only its holder's own.
    """

    tenant: str = ""
    name: str = ""
    token: str = ""


class Making(Struct, frozen=True):
    """How a making stands: whether its ticket is still held, whether it ended, and how it failed."""

    under_way: bool
    ended: bool
    failure: str = ""


class Tickets(Protocol):
    """What a store for many processes may have beside its entries, as ``tickets``: who makes what.

    A ticket is given to one at a time. When its tenant is forgotten, so are its tickets, and how the
    makings ended that they were taken for. All verbs raise `StoreError` only.
    """

    def take(self, ticket: Ticket, *, longest_s: float) -> str:
        """Take the ticket, if it is free; return the token of who has it.

        It is kept for its holder while the process of that one lives, for ``longest_s`` at most.
        """
        ...

    def see(self, ticket: Ticket) -> Making:
        """Return how the making of this holder stands."""
        ...

    def give(self, ticket: Ticket, failure: str) -> None:
        """Give the ticket back; an empty ``failure``: what it was taken for is made.

        One who does not have it any more tells nothing.
        """
        ...

    def let_go(self, ticket: Ticket) -> None:
        """Give the ticket back without an end: somebody else may take it."""
        ...


class AsyncTickets(Protocol):
    """`Tickets` for tasks, beside the async face of a store."""

    async def take(self, ticket: Ticket, *, longest_s: float) -> str: ...

    async def see(self, ticket: Ticket) -> Making: ...

    async def give(self, ticket: Ticket, failure: str) -> None: ...

    async def let_go(self, ticket: Ticket) -> None: ...
