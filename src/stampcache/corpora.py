"""A watched corpus: its chunks, the writes to it, and what a write must reach to change an answer.

These are the records and the port of ADR 0020. Whoever writes documents says so first (`Intent`), then
writes, then tells what was written (`Change`); the store marks the answers whose retrieval that
changes. An answer says how its question was retrieved for (`Reading`, from which comes its `Reach`).
Nothing here reads a clock or a store.
"""

import enum
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from stampcache.model import Entry, Selector

_NAMED = 3


class Metric(enum.Enum):
    """How an index compares vectors. Every score is such that higher is closer.

    ``COSINE`` and ``DOT`` are what they say; ``L2`` is the negative squared distance.
    """

    COSINE = "cosine"
    DOT = "dot"
    L2 = "l2"


class Chunk(Struct, frozen=True, kw_only=True):
    """One chunk as its index holds it.

    ``digest`` stands for its text and metadata; ``vector`` is its embedding in the index's own space,
    float32 as bytes, not normalised; empty where nobody saw it.
    """

    id: str
    source: str = ""
    digest: str
    vector: bytes = b""


class Change(Struct, frozen=True, kw_only=True):
    """What one write did to a corpus.

    ``added`` are chunks that are there now, new or in the place of others of their ids; ``removed``
    are the ids of chunks that are not. ``unknown`` says that anything may have changed besides; with
    ``beyond`` not the chunks, but what stands beside them. ``emptied`` says that no chunk is left but
    those added, ``unfinished`` that more of the same write is told afterwards: its intent stays.
    """

    added: tuple[Chunk, ...] = ()
    removed: tuple[str, ...] = ()
    unknown: bool = False
    emptied: bool = False
    beyond: bool = False
    unfinished: bool = False

    @property
    def doubts(self) -> bool:
        """Whether what was known of other chunks may be wrong now."""
        return self.unknown and not self.beyond


class Written(Struct, frozen=True, kw_only=True):
    """A change as it came out against what was known: only what differs.

    ``unseen`` are the ids of removed chunks of which nothing was known.
    """

    added: tuple[Chunk, ...] = ()
    removed: tuple[Chunk, ...] = ()
    unseen: tuple[str, ...] = ()
    unknown: bool = False

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.added or self.removed or self.unseen or self.unknown)


class Trace(Struct, frozen=True, kw_only=True, array_like=True):
    """What the change log keeps of a write, for answers that were being made meanwhile.

    The chunks that it added stand in the store, with the sequence of the write.
    """

    corpus: str
    sources: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()
    unknown: bool = False

    def __str__(self) -> str:
        """Say what was written, as a mark says it."""
        named = [repr(source) for source in self.sources if source]
        if self.unknown or not named:
            return f"corpus {self.corpus!r} was written to"
        others = f" and {len(named) - _NAMED} others" if len(named) > _NAMED else ""
        sources = f"source{'s' if len(named) > 1 else ''} {', '.join(named[:_NAMED])}{others}"
        return f"{sources} of corpus {self.corpus!r} changed"

    @property
    def selectors(self) -> list[Selector]:
        """What of its corpus it concerns, for answers that have no reach."""
        if self.unknown:
            return [Selector(corpus=self.corpus)]
        sources = [Selector(corpus=self.corpus, source=one) for one in self.sources]
        return sources + [Selector(corpus=self.corpus, chunk=one) for one in self.chunks]


class Owner(Struct, frozen=True):
    """Who writes: the cache object ``cache`` of a process, its host, its id there, and when it began."""

    host: str = ""
    process: int = 0
    began: str = ""
    cache: str = ""


class Intent(Struct, frozen=True, kw_only=True):
    """That somebody is about to write: until it is resolved, no answer of the corpus is served.

    ``chunks`` are the ids that will be written, where they are known; ``at`` is in epoch seconds.
    ``contested`` are the ids that others wrote meanwhile (``all_contested``: any), so that nobody knows
    whose write came last; stores note it. With ``beyond`` it writes what the index does not hold, such as
    parent documents: looking into the index does not tell what became of it.
    """

    id: str
    at: float
    owner: Owner = Owner()
    chunks: tuple[str, ...] = ()
    all_known: bool = False
    contested: tuple[str, ...] = ()
    all_contested: bool = False
    beyond: bool = False


class Standing(Struct, frozen=True, kw_only=True):
    """Whether the answers from a corpus may be trusted, as its store knows it.

    ``problem`` says why they may not until somebody resolves it. Where ``silence_s`` is set, somebody
    must be heard of at least that often (seconds); ``heard_at`` says when that was last. ``chunks``
    counts those known, ``complete`` says whether these are all of them; ``swept_at``, ``checked`` and
    ``drifted`` are of the last sweep.
    """

    corpus: str
    intents: tuple[Intent, ...] = ()
    problem: str = ""
    heard_at: float = 0.0
    silence_s: float | None = None
    chunks: int = 0
    complete: bool = False
    swept_at: float | None = None
    checked: int = 0
    drifted: int = 0


class Reading(Struct, frozen=True, kw_only=True):
    """One search of a watched index, as the watch saw it.

    ``vector`` is the question in the index's own space, float32 as bytes; ``chunks`` and ``digests``
    are of what was found, by rank; ``wanted`` is the ``k`` that was asked for. ``relevances`` and
    ``threshold`` are those of the index's own scale, where it cut off by score. ``problem`` says why
    the search is not a plain one of the k nearest; empty where it is. ``unseen`` says why it may find
    something else without any write that is told of, as by metadata that does not count: what is made
    from it is not stored.
    """

    corpus: str
    vector: bytes = b""
    metric: Metric | None = None
    chunks: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    wanted: int = 0
    relevances: tuple[float, ...] = ()
    threshold: float | None = None
    problem: str = ""
    unseen: str = ""


class Reach(Struct, frozen=True, kw_only=True):
    """What a write must reach to change what an answer was made from.

    A chunk that scores ``floor`` or more against ``question`` (float32 as bytes, under ``metric``)
    does; ``within`` is how far computed scores may be off. One that was found stays so while it scores
    ``least``. Without a question any write does, and ``why`` says why that is. ``digests`` and
    ``scores`` are those of the chunks found, by rank. With ``for_good`` nothing brings the answer back.
    ``doubts`` are the ids of chunks found that differ from what the watch knows: whatever is written of
    them next is a difference. ``settings`` is the digest of what was run, for who looks for answers that
    can be made again.
    """

    corpus: str
    question: bytes = b""
    metric: Metric = Metric.COSINE
    floor: float = float("-inf")
    least: float = float("-inf")
    within: float = 0.0
    digests: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    for_good: bool = False
    why: str = ""
    doubts: tuple[str, ...] = ()
    settings: str = ""

    def __str__(self) -> str:
        """Say it for people."""
        if not self.question:
            return f"any write to corpus {self.corpus!r} ends it ({self.why})"
        bound = "any score" if self.floor == float("-inf") else f"{self.floor:.4f} or more"
        more = f"; {self.why}" if self.why else ""
        return f"a write to corpus {self.corpus!r} ends it at {self.metric.value} {bound}{more}"


class Difference(Struct, frozen=True):
    """A chunk in reach of an answer that came or went since it was made.

    Where the answer has no question, what stands for the vector of the chunk is its score; there is
    none where it has no vector.
    """

    digest: str
    score: float | None
    added: bool


class Committed(Struct, frozen=True):
    """What a write came to: how many answers it made stale, and how many hold again."""

    stale: int = 0
    restored: int = 0


class Corpora(Protocol):
    """The watched corpora of a store; their verbs and those of entries are one truth.

    All verbs raise `StoreError` when the store cannot do them, and only that.
    """

    def declare(self, corpus: str, *, now: float, silence_s: float | None) -> Standing:
        """Watch a corpus from now on, or go on with it; somebody was heard of now.

        The first write that is begun or told of watches it, too. Fills that began before are refused:
        nobody saw what was written then.
        """
        ...

    def standing(self, corpus: str) -> Standing | None:
        """Return how a corpus stands; ``None`` where nobody watches it."""
        ...

    def standings(self) -> Sequence[Standing]:
        """Return how all watched corpora stand, by name."""
        ...

    def begin(self, corpus: str, intent: Intent) -> None:
        """Write down that a write begins. When it returns, that is as durable as an entry."""
        ...

    def commit(self, corpus: str, intent: str, change: Change, *, now: float) -> Committed:
        """Take over what was written, and mark what it changes; then the intent is resolved.

        Answers whose retrieval is as it was when they were made hold again. Whoever gives no intent
        (an empty one) is sure that nobody else wrote meanwhile. One that is not there is no error: it
        was resolved by somebody who took its writer for gone, so that others may have written since.
        """
        ...

    def chunks(self, corpus: str, ids: Sequence[str] | None) -> Mapping[str, Chunk]:
        """Return the chunks of these ids that are known, or all of a corpus, by id."""
        ...

    def alike(self, corpus: str, ids: Sequence[str]) -> Mapping[str, Chunk]:
        """Return the chunks of these ids that are known, by id, and what an index may confuse them with.

        That is, for each of them, one of the same vector and another digest, if there is one.
        """
        ...

    def block(self, corpus: str, problem: str) -> None:
        """Serve nothing from a watched corpus, for this reason, until it is blocked with an empty one."""
        ...

    def heard(self, corpus: str, *, now: float) -> None:
        """Note that the watch of a corpus is alive, if it is watched."""
        ...

    def swept(self, corpus: str, *, now: float, checked: int, drifted: int) -> None:
        """Note what a sweep found; somebody was heard of."""
        ...

    def sample(self, corpus: str, settings: str, count: int, *, after: str) -> Sequence[Entry]:
        """Return entries that hold and were made under these settings (a digest), by id.

        Ids are random. The first ``count`` after an id are given, then those from the beginning.
        """
        ...

    def reach(self, entry: Entry) -> Reach | None:
        """Return what a write must reach to change this very entry; ``None`` where it is not watched."""
        ...
