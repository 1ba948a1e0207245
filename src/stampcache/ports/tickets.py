"""Tickets of a shared store: equal requests of all processes cost one making (ADR 0026)."""

from typing import Protocol

from msgspec import Struct


class Making(Struct, frozen=True):
    """How a making stands: whether its ticket is still held, whether it ended, and how it failed."""

    under_way: bool
    ended: bool
    failure: str = ""


class Tickets(Protocol):
    """What a store for many processes may have beside its entries, as ``tickets``: who makes what.

    A ticket is given to one at a time, and for a limited time. All verbs raise `StoreError` only.
    """

    def take(self, name: str, token: str) -> str:
        """Take the ticket, if it is free; return the token of who has it."""
        ...

    def see(self, name: str, holder: str) -> Making:
        """Return how the making of this holder stands."""
        ...

    def give(self, name: str, token: str, failure: str) -> None:
        """Give the ticket back; an empty ``failure``: what it was taken for is made."""
        ...

    def let_go(self, name: str, token: str) -> None:
        """Give the ticket back without an end: somebody else may take it."""
        ...


class AsyncTickets(Protocol):
    """`Tickets` for tasks, beside the async face of a store."""

    async def take(self, name: str, token: str) -> str: ...

    async def see(self, name: str, holder: str) -> Making: ...

    async def give(self, name: str, token: str, failure: str) -> None: ...

    async def let_go(self, name: str, token: str) -> None: ...
