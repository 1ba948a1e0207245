"""The story that the demo plays, as data, and what each step must come to (pure)."""

import enum
from collections.abc import Sequence
from statistics import median
from typing import TypeAlias

from msgspec import Struct

from stampcache.demo.app import Reply
from stampcache.model import Level, Reason

ACME, GLOBEX = "acme", "globex"
BREAK = "What does the break statement do in a while loop?"
LAMBDA = "What does a lambda expression create?"

_TOLD_APART = (Reason.GUARD.value, Reason.VERIFIER.value)


class Expected(enum.Enum):
    """What a step says will happen; the value is for tables."""

    MISS = "miss"
    TOLD_APART = "miss, told apart"
    EXACT = "exact hit"
    SEMANTIC = "semantic hit"
    REMADE = "made anew"


class Question(Struct, frozen=True):
    """Somebody asks; ``why`` says to people what the step shows."""

    why: str
    tenant: str
    text: str
    expected: Expected


class Edit(Struct, frozen=True):
    """A document changes: ``old`` is written as ``new`` in it."""

    why: str
    source: str
    old: str
    new: str


Step: TypeAlias = Question | Edit

STORY: tuple[Step, ...] = (
    Question("a first question", ACME, BREAK, Expected.MISS),
    Question("the same again", ACME, BREAK, Expected.EXACT),
    Question(
        "a near copy",
        ACME,
        "Please tell me what the break statement does in a while loop.",
        Expected.SEMANTIC,
    ),
    Question(
        "another keyword",
        ACME,
        "What does the break statement do in a for loop?",
        Expected.TOLD_APART,
    ),
    Question(
        "a negation",
        ACME,
        "What does the break statement not do in a while loop?",
        Expected.TOLD_APART,
    ),
    Question("another tenant", GLOBEX, BREAK, Expected.MISS),
    Question("another topic", ACME, LAMBDA, Expected.MISS),
    Edit("a document changes", "break", "keeps its current value", "is deleted"),
    Question("it was made from that", ACME, BREAK, Expected.REMADE),
    Question("it was not", ACME, LAMBDA, Expected.EXACT),
)


class Played(Struct, frozen=True):
    """A question that was asked, what came back, and the milliseconds it took."""

    question: Question
    reply: Reply
    elapsed_ms: float

    @property
    def hit(self) -> bool:
        """Whether the answer came from the cache."""
        return self.reply.cache["hit"]

    @property
    def kept(self) -> bool:
        """Whether the step did what it says."""
        return fulfils(self.reply, self.question.expected)

    @property
    def tokens_saved(self) -> int:
        """Input and output tokens that the hit did not spend."""
        saved = self.reply.cache["saved"] if self.hit else {}
        return int(saved.get("input_tokens", 0) + saved.get("output_tokens", 0))

    @property
    def seconds_saved(self) -> float:
        """What making the answer had taken."""
        return self.reply.cache["saved"].get("latency_s", 0.0) if self.hit else 0.0


def fulfils(reply: Reply, expected: Expected) -> bool:
    """Tell whether a reply is what a step says."""
    cache = reply.cache
    if not reply.text.strip():
        return False
    match expected:
        case Expected.EXACT:
            return cache["hit"] and cache["level"] == Level.EXACT.value
        case Expected.SEMANTIC:
            return cache["hit"] and cache["level"] == Level.SEMANTIC.value
        case Expected.TOLD_APART:
            return not cache["hit"] and cache["reason"] in _TOLD_APART
        case Expected.REMADE:
            return not cache["hit"] and cache["reason"] == Reason.EVIDENCE_CHANGED.value
        case Expected.MISS:
            return not cache["hit"]


class Summary(Struct, frozen=True, kw_only=True):
    """A whole story in figures; a median is ``None`` where there was nothing to take it of."""

    asked: int
    hits: int
    failed: int
    tokens_saved: int
    seconds_saved: float
    hit_ms: float | None
    miss_ms: float | None


def summary(played: Sequence[Played]) -> Summary:
    """Return the figures of a story. Seconds saved are net of what the hits took themselves."""
    hits = [one for one in played if one.hit]
    misses = [one for one in played if not one.hit]
    spent_s = sum(one.elapsed_ms for one in hits) / 1000
    return Summary(
        asked=len(played),
        hits=len(hits),
        failed=sum(not one.kept for one in played),
        tokens_saved=sum(one.tokens_saved for one in hits),
        seconds_saved=sum(one.seconds_saved for one in hits) - spent_s,
        hit_ms=median(one.elapsed_ms for one in hits) if hits else None,
        miss_ms=median(one.elapsed_ms for one in misses) if misses else None,
    )
