"""The records that everything else passes around: frozen, slotted, without behaviour of their own.

The words are those of docs/glossary.md. Nothing here reads a clock, an environment or a store.
"""

import enum
from collections.abc import Mapping
from sys import float_info
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, force_setattr
from numpy.typing import NDArray

from stampcache import canonical
from stampcache.errors import ConfigError

Vector: TypeAlias = NDArray[np.float32]


class Level(enum.Enum):
    """At which level a hit was found."""

    EXACT = "exact"
    SEMANTIC = "semantic"


class Reason(enum.Enum):
    """Why an outcome is what it is. The value is a short phrase for tables and logs."""

    # hits
    SAME_TOKENS = "same tokens"
    SAME_QUESTION = "same question"
    # misses: nothing to serve
    NOT_FOUND = "not found"
    BELOW_THRESHOLD = "below threshold"
    GUARD = "guard saw a difference"
    VERIFIER = "verifier said no"
    REPORTED_BAD = "reported bad"
    # misses: the cache does not take part
    UNCACHEABLE = "uncacheable"
    UNCALIBRATED = "embedder not calibrated"
    UNPROVED = "not proved to be right often enough"
    UNSCOPED = "no tenant in scope"
    NOT_DETERMINISTIC = "settings are not deterministic"
    BEYOND_WINDOW = "beyond the embedder's window"
    EVIDENCE_UNKNOWN = "evidence unknown"
    EMBEDDER_CHANGED = "embedder changed"
    # a miss of an equal request that was under way: its answer is this one's too
    SHARED = "shared with an equal request"
    # misses: something failed; the application runs as if there were no cache
    STORE_ERROR = "store failed"
    EMBEDDER_ERROR = "embedder failed"
    CORRUPT = "entry was damaged"
    # stale: there was an entry, it no longer holds
    EXPIRED = "expired"
    EVIDENCE_CHANGED = "evidence changed"
    INVALIDATED = "what it was made from changed"
    REVISION_CHANGED = "model revision changed"
    # it may have become untrue by itself, or a judge says that it has
    DOUBTFUL = "may have changed since"
    JUDGED = "judge said no"
    # the corpus is watched, and what is known of it cannot be trusted now
    BEING_WRITTEN = "documents are being written"
    UNWATCHED = "corpus is not watched"
    WATCH_BROKEN = "watch is broken"
    # updates: not stored
    EMPTY = "answer is empty"
    TRUNCATED = "answer was cut off"
    REFUSED = "answer is a refusal"
    FAILED = "answer is an error"
    ABORTED = "answer was aborted"
    PENDING_TOOLS = "answer waits for tools"
    TOO_LARGE = "answer is too large"
    FENCED = "a source changed meanwhile"
    # told so for this one request
    NO_CACHE = "told not to look up"
    NO_STORE = "told not to store"


BY_JUDGE = "the judge found it no longer fresh"
"""How the mark of an entry begins that a judge found untrue."""


class Scope(Struct, frozen=True, gc=False):
    """Who asks. All three are a hard boundary.

    ``audience`` is a user or the fingerprint of an ACL set; empty means the whole tenant.
    """

    tenant: str = "default"
    namespace: str = "default"
    audience: str = ""


class Controls(Struct, frozen=True, kw_only=True, gc=False):
    """What one request is to do otherwise than the cache's settings say (ADR 0016).

    With ``no_cache`` it is not answered from the cache, but its answer is stored; with ``no_store`` it
    may be answered, but nothing is stored. ``ttl_s``: seconds that its answer lives at most.
    ``variety``: so many answers are made before the first one is given again.

    Raises:
        ConfigError: a number is out of range.
    """

    no_cache: bool = False
    no_store: bool = False
    ttl_s: float | None = None
    variety: int = 1

    def __post_init__(self) -> None:
        for name, told in (("no_cache", self.no_cache), ("no_store", self.no_store)):
            if type(told) is not bool:  # of a text nobody knows which it is
                raise ConfigError(f"{name}= is {told!r}; give True or False.")
        if self.ttl_s is not None and not _is_duration(self.ttl_s):
            raise ConfigError(f"ttl_s= is {self.ttl_s!r}; give a finite number of seconds above 0.")
        if type(self.variety) is not int or self.variety < 1:
            raise ConfigError(f"variety= is {self.variety!r}; give a whole number, 1 or more.")

    def over(self, other: "Controls") -> "Controls":
        """Return these controls together with the other's; of two numbers, these."""
        return Controls(
            no_cache=self.no_cache or other.no_cache,
            no_store=self.no_store or other.no_store,
            ttl_s=other.ttl_s if self.ttl_s is None else self.ttl_s,
            variety=other.variety if self.variety == 1 else self.variety,
        )


def _is_duration(seconds: object) -> bool:
    if type(seconds) not in (int, float):
        return False
    return 0 < seconds <= float_info.max  # type: ignore[operator]  # a number, by its type


AS_SET = Controls()
"""Nothing otherwise: what nearly every request has, by identity."""


class Stamps(Struct, frozen=True, kw_only=True, gc=False):
    """Versions of what makes an answer; empty means unknown. All of them are a hard boundary."""

    model: str = ""
    tokenizer: str = ""
    embedder: str = ""
    prompt: str = ""
    index: str = ""

    def over(self, other: "Stamps") -> "Stamps":
        """Return these stamps, with the other's where these are unknown."""
        return Stamps(
            model=self.model or other.model,
            tokenizer=self.tokenizer or other.tokenizer,
            embedder=self.embedder or other.embedder,
            prompt=self.prompt or other.prompt,
            index=self.index or other.index,
        )


def stamp_values(stamps: Stamps) -> tuple[str, str, str, str, str]:
    """Return the five stamps in the order in which they are digested and stored."""
    return (stamps.model, stamps.tokenizer, stamps.embedder, stamps.prompt, stamps.index)


class Evidence(Struct, frozen=True, kw_only=True):
    """One chunk that an answer was made from.

    ``digest`` stands for what reaches the model; it is computed from ``text`` and ``metadata`` when
    it is not given. Ids never enter it: the same text under a new id is the same evidence. A chunk
    of which only ids are given has none: it can be invalidated by them, but not be rechecked.
    """

    corpus: str = ""
    source: str = ""
    chunk: str = ""
    text: str = ""
    metadata: Mapping[str, object] | None = None
    digest: str = ""
    score: float | None = None
    rank: int = 0

    def __post_init__(self) -> None:
        if not self.digest and (self.text or self.metadata):
            parts = [canonical.encode(self.text), canonical.value(self.metadata or {})]
            force_setattr(self, "digest", canonical.digest(parts, person=b"chunk"))

    def sealed(self) -> "Evidence":
        """Return it as an entry keeps it: the digest without the text it was taken over."""
        if not self.text and self.metadata is None:
            return self
        return Evidence(
            corpus=self.corpus,
            source=self.source,
            chunk=self.chunk,
            digest=self.digest,
            score=self.score,
            rank=self.rank,
        )


class Usage(Struct, frozen=True, kw_only=True, gc=False):
    """Tokens that making an answer took; ``None`` means the provider did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def total(self) -> int:
        """Input and output tokens together, unknown ones as 0."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)


class Answer(Struct, frozen=True, kw_only=True):
    """A generated result.

    ``revision`` is by what the provider says the model was served (``system_fingerprint``).
    ``payload`` is the result as its framework made it, in the encoding named ``format``; both are
    the adapter's affair. ``latency_s`` and ``cost`` are what making it took (seconds, and the
    currency of the user's choice).
    """

    text: str
    payload: bytes = b""
    format: str = "text"
    finish_reason: str = ""
    revision: str = ""
    tool_calls: tuple[Mapping[str, object], ...] = ()
    usage: Usage = Usage()
    cost: float = 0.0
    latency_s: float = 0.0

    def __post_init__(self) -> None:
        if type(self.tool_calls) is not tuple:
            force_setattr(self, "tool_calls", tuple(self.tool_calls))
        if not 0.0 <= self.latency_s < float("inf"):  # not a number, or a clock that went back
            force_setattr(self, "latency_s", 0.0)


class Identity(Struct, frozen=True, gc=False):
    """Where a request lives in a store: all four are digests keyed with the tenant's secret."""

    partition: str
    key: str
    scope: str
    tenant: str


class Signature(Struct, frozen=True, gc=False):
    """What an entry was made from: its validity stamp (not a key).

    ``norm`` is the embedding norm before normalisation with 3 decimals, empty where the embedder
    hides it; ``evidence`` the digest over the chunks in rank order; ``created`` epoch seconds at the
    granularity of the entry's freshness class.
    """

    norm: str
    evidence: str
    created: int

    def __str__(self) -> str:
        """Print as ``3.872_9f86d081884c7d65_1764430000``."""
        return f"{self.norm}_{self.evidence.removeprefix(canonical.FORMAT)[:16]}_{self.created}"


class Dependency(Struct, frozen=True, gc=False):
    """A part of a corpus; an empty name stands for any, since what is not known may be anything."""

    corpus: str = ""
    source: str = ""
    chunk: str = ""


EARLY = 0.75
"""In this last part of the time until its doubt an answer may be looked after ahead of it."""


class Entry(Struct, frozen=True, kw_only=True):
    """A stored answer with all that decides whether it may be served. Its vector lives in the index.

    ``corpus`` is the body of documents that was asked, cited or not; ``whole_corpus`` is set where any
    write to it makes the answer stale, not only one to a cited source. ``kind`` is the kind of data
    whose lifetime it has. ``invalidated`` says which change made it stale; empty while none did.
    ``lifetime_s`` is what it was given to live, where that adapts; ``None`` where its request said so, or
    nothing was found to make it from. From ``doubtful_at`` on it may have become untrue by
    itself; ``confirmed_at`` says when a judge last found that it has not, and from ``early_at`` on,
    which follows from these, it may be looked after ahead of its doubt (ADR 0022). ``seen`` is what
    the verifier of this cache saw of the question, in a form of its own; empty where there is none.
    """

    id: str
    identity: Identity
    question: str
    answer: Answer
    signature: Signature
    evidence: tuple[Evidence, ...] | None
    stamps: Stamps
    created_at: float
    expires_at: float | None
    kind: str = ""
    corpus: str = ""
    whole_corpus: bool = False
    invalidated: str = ""
    lifetime_s: float | None = None
    doubtful_at: float | None = None
    confirmed_at: float | None = None
    seen: bytes = b""
    early_at: float | None = None

    def __post_init__(self) -> None:
        early_at = None
        if self.doubtful_at is not None:
            since = self.created_at if self.confirmed_at is None else self.confirmed_at
            early_at = self.doubtful_at - EARLY * max(0.0, self.doubtful_at - since)
        force_setattr(self, "early_at", early_at)

    @property
    def dependencies(self) -> frozenset[Dependency]:
        """What a write must touch to make this answer stale; an empty name stands for any.

        An answer that cites nothing, or of which it is not known what it cites, depends on the whole
        of the corpus that was asked; one that asked no corpus depends on none.
        """
        cited = {Dependency(one.corpus, one.source, one.chunk) for one in self.evidence or ()}
        unknown = self.evidence is None and bool(self.corpus)
        if self.whole_corpus or self.evidence == () or unknown:
            cited.add(Dependency(self.corpus))
        return frozenset(cited)

    @property
    def place(self) -> tuple[str, str]:
        """Partition and ExactKey: the address under which a store keeps it."""
        return (self.identity.partition, self.identity.key)


class Candidate(Struct, frozen=True):
    """A neighbour found by vector search; ``similarity`` is the cosine in [-1, 1], higher is closer."""

    entry: Entry
    similarity: float
    reported_bad: bool = False


class Selector(Struct, frozen=True, kw_only=True):
    """What changed: entries are invalidated that match every field that is given.

    ``corpus``, ``source`` and ``chunk`` match entries that depend on such a part (see
    `Entry.dependencies`); they need no tenant. A selector that gives nothing matches nothing.
    ``because`` is no field to match: it says why, in the place of what was selected.
    """

    corpus: str | None = None
    source: str | None = None
    chunk: str | None = None
    entry: str | None = None
    stamps: Stamps | None = None
    scope: str | None = None
    because: str = ""

    def __str__(self) -> str:
        """Say what changed, as ``source 'leave.md' of corpus 'handbook'``."""
        if self.because:
            return self.because
        named = (("chunk", self.chunk), ("source", self.source), ("corpus", self.corpus))
        parts = [f"{name} {value!r}" for name, value in named if value is not None]
        if parts:
            return " of ".join(parts) + " changed"
        stamps = () if self.stamps is None else asdict(self.stamps).items()
        versions = ", ".join(f"{name} {value!r}" for name, value in stamps if value)
        return f"invalidated by {versions or ('its id' if self.entry else 'its scope')}"
