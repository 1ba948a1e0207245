"""The records that everything else passes around: frozen, slotted, without behaviour of their own.

The words are those of docs/glossary.md. Nothing here reads a clock, an environment or a store.
"""

import enum
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TypeAlias

import numpy as np
from msgspec import Struct, field
from msgspec.structs import force_setattr, replace
from numpy.typing import NDArray

from stampcache import canonical
from stampcache.errors import CanonicalError, ConfigError

Vector: TypeAlias = NDArray[np.float32]


class Level(enum.Enum):
    """At which level a hit was found."""

    EXACT = "exact"
    SEMANTIC = "semantic"


class Seam(enum.Enum):
    """What an answer is an answer of; part of the Partition, so the two are never mixed.

    ``ANSWER`` is an application's final answer; ``MODEL`` one call of a model, where an answer that
    asks for tools is complete.
    """

    ANSWER = "answer"
    MODEL = "model"


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
    UNSCOPED = "no tenant in scope"
    BEYOND_WINDOW = "beyond the embedder's window"
    EVIDENCE_UNKNOWN = "evidence unknown"
    # a miss of an equal request that was under way: its answer is this one's too
    SHARED = "shared with an equal request"
    # misses: something failed; the application runs as if there were no cache
    STORE_ERROR = "store failed"
    EMBEDDER_ERROR = "embedder failed"
    CORRUPT = "entry was damaged"
    # stale: there was an entry, it no longer holds
    EXPIRED = "expired"
    EVIDENCE_CHANGED = "evidence changed"
    # updates: not stored
    EMPTY = "answer is empty"
    TRUNCATED = "answer was cut off"
    REFUSED = "answer is a refusal"
    FAILED = "answer is an error"
    ABORTED = "answer was aborted"
    PENDING_TOOLS = "answer waits for tools"
    TOO_LARGE = "answer is too large"
    FENCED = "a source changed meanwhile"


class Scope(Struct, frozen=True, gc=False):
    """Who asks. All three are a hard boundary.

    ``audience`` is a user or the fingerprint of an ACL set; empty means the whole tenant.
    """

    tenant: str = "default"
    namespace: str = "default"
    audience: str = ""


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


class Settings(Struct, frozen=True, kw_only=True):
    """What would be run, apart from the question: digested once, here, and kept by adapters.

    ``digest`` is empty where a parameter has no canonical form; ``problem`` then says which, and
    requests with these settings are not cached.
    """

    model: str = ""
    endpoint: str = ""
    params: Mapping[str, object] = {}
    tools: Sequence[object] = ()
    system: str = ""
    stamps: Stamps = Stamps()
    seam: Seam = Seam.ANSWER
    digest: str = ""
    problem: str = ""

    def __post_init__(self) -> None:
        try:
            parts = [
                canonical.encode(self.model),
                canonical.encode(self.endpoint),
                canonical.value(self.params),
                canonical.value(self.tools),
                canonical.encode(self.system),
                canonical.encode(self.seam.value),
                *(canonical.encode(stamp) for stamp in stamp_values(self.stamps)),
            ]
        except CanonicalError as error:
            force_setattr(self, "problem", str(error))
            force_setattr(self, "digest", "")
        else:
            force_setattr(self, "problem", "")
            force_setattr(self, "digest", canonical.digest(parts, person=b"settings"))


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

    ``payload`` is the result as its framework made it, in the encoding named ``format``; both are
    the adapter's affair. ``latency_s`` and ``cost`` are what making it took (seconds, and the
    currency of the user's choice).
    """

    text: str
    payload: bytes = b""
    format: str = "text"
    finish_reason: str = ""
    tool_calls: tuple[Mapping[str, object], ...] = ()
    usage: Usage = Usage()
    cost: float = 0.0
    latency_s: float = 0.0

    def __post_init__(self) -> None:
        if type(self.tool_calls) is not tuple:
            force_setattr(self, "tool_calls", tuple(self.tool_calls))
        if not 0.0 <= self.latency_s < float("inf"):  # not a number, or a clock that went back
            force_setattr(self, "latency_s", 0.0)


_NOTHING_SHORT: tuple[object, ...] = ("", "", {}, (), "", Stamps())


class Request(Struct, frozen=True, kw_only=True):
    """What an application is about to run.

    Give ``settings`` where many requests share them (they are digested once); ``model``, ``params``,
    ``tools``, ``system``, ``endpoint`` and ``stamps`` are the short way for one request.
    ``prompt`` is the rendered prompt or the messages, keyed byte by byte; ``question`` is keyed in
    its canonical form and is the only text that is ever embedded. ``evidence`` is what has been
    retrieved already (an empty tuple: nothing was found; ``None``: not retrieved).

    Raises:
        ConfigError: ``settings`` and the short way are both given and contradict each other.
    """

    question: str = ""
    model: str = ""
    params: Mapping[str, object] = {}
    tools: Sequence[object] = ()
    system: str = ""
    endpoint: str = ""
    stamps: Stamps = Stamps()
    prompt: object = None
    history: Sequence[object] = ()
    evidence: tuple[Evidence, ...] | None = None
    scope: Scope | None = None
    settings: Settings | None = None

    def __post_init__(self) -> None:
        if type(self.question) is not str and isinstance(self.question, str):
            force_setattr(self, "question", str.__str__(self.question))  # not what it prints as
        if self.evidence is not None and type(self.evidence) is not tuple:
            force_setattr(self, "evidence", tuple(self.evidence))
        given = self.settings
        short = (self.model, self.endpoint, self.params, self.tools, self.system, self.stamps)
        if given is not None and short == _NOTHING_SHORT:
            return
        settings = Settings(
            model=self.model,
            endpoint=self.endpoint,
            params=self.params,
            tools=self.tools,
            system=self.system,
            stamps=self.stamps,
            seam=Seam.ANSWER if given is None else given.seam,
        )
        if given is not None and given.digest != settings.digest:
            raise ConfigError(
                "The request has settings= and a model, params, tools, system, endpoint or stamps "
                "that say something else; give all of them in settings=."
            )
        force_setattr(self, "settings", settings)

    @property
    def runs(self) -> Settings:
        """The settings of this request, whichever way they were given."""
        assert self.settings is not None
        return self.settings


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


class Entry(Struct, frozen=True, kw_only=True):
    """A stored answer with all that decides whether it may be served. Its vector lives in the index."""

    id: str
    identity: Identity
    question: str
    answer: Answer
    signature: Signature
    evidence: tuple[Evidence, ...] | None
    stamps: Stamps
    created_at: float
    expires_at: float | None

    @property
    def place(self) -> tuple[str, str]:
        """Partition and ExactKey: the address under which a store keeps it."""
        return (self.identity.partition, self.identity.key)


class Candidate(Struct, frozen=True):
    """A neighbour found by vector search; ``similarity`` is the cosine in [-1, 1], higher is closer."""

    entry: Entry
    similarity: float
    reported_bad: bool = False


class Check(Struct, frozen=True):
    """One step of a lookup as `Cache.explain` shows it."""

    step: str
    passed: bool
    detail: str = ""
    entry_id: str = ""


class Saved(Struct, frozen=True, kw_only=True):
    """What a hit saved: the tokens, cost and seconds that making the answer had taken.

    ``cached_tokens`` and ``reasoning_tokens`` are parts of the others; ``None`` where unknown.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float = 0.0
    latency_s: float = 0.0


def saved_by(answer: Answer) -> Saved:
    """Return what is saved by not making this answer again."""
    return Saved(
        input_tokens=answer.usage.input_tokens or 0,
        output_tokens=answer.usage.output_tokens or 0,
        cached_tokens=answer.usage.cached_tokens,
        reasoning_tokens=answer.usage.reasoning_tokens,
        cost=answer.cost,
        latency_s=answer.latency_s,
    )


class Hit(Struct, frozen=True, kw_only=True):
    """A cached answer that still holds."""

    entry: Entry
    level: Level
    similarity: float
    reason: Reason
    trace: tuple[Check, ...] = ()

    @property
    def answer(self) -> Answer:
        """The cached answer, as the caller's own copy."""
        kept = self.entry.answer
        return replace(kept, tool_calls=deepcopy(kept.tool_calls)) if kept.tool_calls else kept

    @property
    def entry_id(self) -> str:
        """What `Cache.report_bad` and ``invalidate(entry=)`` take."""
        return self.entry.id

    @property
    def saved(self) -> Saved:
        """What serving it saved."""
        return saved_by(self.entry.answer)


class Miss(Struct, frozen=True, kw_only=True):
    """Nothing can be served. Hand it to `Cache.update`: it carries the vector and the fence.

    ``identity`` is ``None`` where the cache does not take part (uncacheable, unscoped).
    """

    reason: Reason
    detail: str = ""
    identity: Identity | None = None
    scope: Scope | None = None
    vector: Vector | None = field(default=None)
    norm: str = ""
    fence: int = 0
    trace: tuple[Check, ...] = ()


class Stale(Struct, frozen=True, kw_only=True):
    """There is an entry, but what it was made from no longer holds. Update as after a Miss."""

    reason: Reason
    entry: Entry
    detail: str = ""
    identity: Identity | None = None
    scope: Scope | None = None
    vector: Vector | None = field(default=None)
    norm: str = ""
    fence: int = 0
    trace: tuple[Check, ...] = ()


Outcome: TypeAlias = Hit | Stale | Miss


class Stored(Struct, frozen=True):
    """An update was acknowledged by the store."""

    entry: Entry
    evicted: int = 0


class Refused(Struct, frozen=True):
    """An update was not stored; the application's answer is unaffected."""

    reason: Reason
    detail: str = ""


Update: TypeAlias = Stored | Refused


class Selector(Struct, frozen=True, kw_only=True):
    """Which entries to invalidate: those that match every field that is given.

    ``corpus``, ``source`` and ``chunk`` match entries that cite such evidence; they need no tenant.
    """

    corpus: str | None = None
    source: str | None = None
    chunk: str | None = None
    entry: str | None = None
    stamps: Stamps | None = None
    scope: str | None = None
