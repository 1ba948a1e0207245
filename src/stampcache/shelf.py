"""Small records that a cache keeps in its store besides entries, by name: a record, and the port (pure).

Pairs of questions that wait for a judge, labels, calibrations with their proofs: what is in a record is
the affair of who keeps it. A store keeps, hands out and forgets them (ADR 0024).
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class Record(Struct, frozen=True, kw_only=True, gc=False):
    """One record of a shelf; ``tenant`` is the digest of the tenant whose words it holds, or empty.

    One that names the id of an ``entry`` is kept only if that entry is there: so nobody writes words of a
    tenant that was forgotten meanwhile. What is handed out names none.
    """

    key: str
    body: bytes
    tenant: str = ""
    entry: str = ""


class Shelf(Protocol):
    """Records by shelf and key, in the order in which they were kept. Verbs raise `StoreError` only."""

    def keep(self, shelf: str, records: Sequence[Record], *, most: int) -> None:
        """Keep records as the newest, each in the place of one of its key; the newest ``most`` stay."""
        ...

    def kept(self, shelf: str, count: int) -> Sequence[Record]:
        """Return the newest records of a shelf, newest first."""
        ...

    def take(self, shelf: str, keys: Sequence[str]) -> Sequence[str]:
        """Remove records; return the keys of those that were there: nobody else has taken these."""
        ...
