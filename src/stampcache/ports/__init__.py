"""What the cache needs from outside, as Protocols: store, embedder, tokenizer, verifier, judge, clock."""

from stampcache.ports.models import (
    Asking,
    AsyncEmbedder,
    Clock,
    Embedded,
    Embedder,
    EquivalenceJudge,
    Explaining,
    Facts,
    Judge,
    ReadingVerifier,
    Sameness,
    Tokenizer,
    Verifier,
)
from stampcache.ports.store import (
    AsyncStore,
    Following,
    Forgotten,
    Lag,
    Receipt,
    Store,
    StoreStats,
)
from stampcache.ports.tickets import (
    AsyncTickets,
    Making,
    Ticket,
    Tickets,
)

__all__ = [
    "Asking",
    "AsyncEmbedder",
    "AsyncStore",
    "AsyncTickets",
    "Clock",
    "Embedded",
    "Embedder",
    "EquivalenceJudge",
    "Explaining",
    "Facts",
    "Following",
    "Forgotten",
    "Judge",
    "Lag",
    "Making",
    "ReadingVerifier",
    "Receipt",
    "Sameness",
    "Store",
    "StoreStats",
    "Ticket",
    "Tickets",
    "Tokenizer",
    "Verifier",
]
