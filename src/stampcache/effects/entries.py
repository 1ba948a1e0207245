"""Effects on entries, their vectors and their changes, and on the models beside them (pure)."""

from collections.abc import Sequence

from stampcache.corpora import Reach
from stampcache.effects.base import Effect
from stampcache.model import Candidate, Entry, Evidence, Selector, Vector
from stampcache.ports import Asking, Embedded, Forgotten, Receipt


class Fetch(Effect[Entry | None], frozen=True):
    """The entry at an address."""

    partition: str
    key: str


class Touch(Effect[None], frozen=True):
    """Note that an entry was served to the question with ExactKey ``asked``."""

    entry: Entry
    asked: str


class Renew(Effect[None], frozen=True):
    """Let an entry, whose lifetime slides, live until then."""

    entry: Entry
    expires_at: float


class Remove(Effect[bool], frozen=True):
    """Purge this very entry."""

    entry: Entry


class Purge(Effect[int], frozen=True):
    """Delete whatever can no longer be served."""

    now: float


class Fence(Effect[int], frozen=True):
    """The fence: the sequence of the last change."""


class Embed(Effect[Embedded], frozen=True):
    """The vector of a question."""

    question: str


class Suspect(Effect[bool], frozen=True):
    """Find out whether the embedder is still the one that made the store's vectors."""


class Nearest(Effect[Sequence[Candidate]], frozen=True):
    """Live neighbours by falling similarity."""

    partition: str
    vector: Vector
    k: int
    asked: str
    now: float


class Verify(Effect[float], frozen=True):
    """The probability that two questions are the same."""

    asked: str
    stored: str


class Read(Effect[Asking], frozen=True):
    """A question as the verifier sees it."""

    question: str


class Compare(Effect[float], frozen=True):
    """The probability that a question is the same as a stored one, of which something was seen."""

    asking: Asking
    stored: str
    seen: bytes
    similarity: float


class Because(Effect[Sequence[str]], frozen=True):
    """What moves that probability most, where the verifier can say so."""

    asking: Asking
    stored: str
    seen: bytes
    similarity: float


class Retrieve(Effect[Sequence[Evidence]], frozen=True):
    """What a question retrieves now."""

    question: str


class Put(Effect[Receipt], frozen=True):
    """Store an entry unless its fence refuses it."""

    entry: Entry
    vector: Vector | None
    fence: int
    reach: Reach | None = None


class Fenced(Effect[str], frozen=True):
    """Which change after its fence touches an entry that will not be stored; empty: none."""

    entry: Entry
    fence: int


class Invalidate(Effect[int], frozen=True):
    """Mark what a change made stale."""

    selector: Selector


class Clear(Effect[int], frozen=True):
    """Delete all entries of a scope."""

    scope: str


class Forget(Effect[Forgotten], frozen=True):
    """Remove everything that is kept of a tenant, by its digest."""

    tenant: str


class ReportBad(Effect[bool], frozen=True):
    """Delete an entry and never serve it again to the questions it was wrongly served to."""

    entry_id: str
