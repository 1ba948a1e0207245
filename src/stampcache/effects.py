"""The effects that flows ask for: requests for IO, as values (pure; ADR 0002).

A flow is a generator that yields effects and returns an outcome. Inside a flow,
``entry = yield from Fetch(...)`` has the type that the effect answers with. A driver
(`stampcache.drivers`) performs each effect and sends the answer back; what fails comes back into the
flow at that place, so that what a failure means is decided once, for sync and async alike.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from stampcache.corpora import (
    Change,
    Chunk,
    Committed,
    Corpora,
    Intent,
    Reach,
    Standing,
)
from stampcache.errors import RetrieverError
from stampcache.freshness import Observed
from stampcache.journal import Journal, Observation, Verdict
from stampcache.model import Candidate, Entry, Evidence, Scope, Selector, Vector
from stampcache.ports import Embedded, Facts, Receipt

Result = TypeVar("Result")
Done = TypeVar("Done")


class Effect(Struct, Generic[Result], frozen=True):
    """A request for IO; ``yield from`` it to get its typed answer."""

    def __iter__(self) -> "Generator[Effect[Any], Any, Result]":
        answer: Result = yield self
        return answer


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


class ReportBad(Effect[bool], frozen=True):
    """Delete an entry and never serve it again to the questions it was wrongly served to."""

    entry_id: str


class StandingOf(Effect[Standing | None], frozen=True):
    """How a watched corpus stands now."""

    corpus: str


class OnCorpora(Effect[Result], frozen=True):
    """Something about the watched corpora of the store that may take its time."""

    def on(self, corpora: Corpora) -> Result:
        """Do it."""
        raise NotImplementedError


class Declare(OnCorpora[Standing], frozen=True):
    """Watch a corpus from now on."""

    corpus: str
    now: float
    silence_s: float | None

    def on(self, corpora: Corpora) -> Standing:
        """See `Corpora.declare`."""
        return corpora.declare(self.corpus, now=self.now, silence_s=self.silence_s)


class Begin(OnCorpora[None], frozen=True):
    """Write down that a write begins."""

    corpus: str
    intent: Intent

    def on(self, corpora: Corpora) -> None:
        """See `Corpora.begin`."""
        corpora.begin(self.corpus, self.intent)


class Commit(OnCorpora[Committed], frozen=True):
    """Take over what was written, and resolve the intent."""

    corpus: str
    intent: str
    change: Change
    now: float

    def on(self, corpora: Corpora) -> Committed:
        """See `Corpora.commit`."""
        return corpora.commit(self.corpus, self.intent, self.change, now=self.now)


class KnownChunks(OnCorpora[Mapping[str, Chunk]], frozen=True):
    """What is known of chunks; of all where no ids are given."""

    corpus: str
    ids: tuple[str, ...] | None

    def on(self, corpora: Corpora) -> Mapping[str, Chunk]:
        """See `Corpora.chunks`."""
        return corpora.chunks(self.corpus, self.ids)


class Alike(OnCorpora[Mapping[str, Chunk]], frozen=True):
    """What is known of chunks, and of what an index may confuse them with."""

    corpus: str
    ids: tuple[str, ...]

    def on(self, corpora: Corpora) -> Mapping[str, Chunk]:
        """See `Corpora.alike`."""
        return corpora.alike(self.corpus, self.ids)


class Block(OnCorpora[None], frozen=True):
    """Serve nothing from a corpus any more, or with no problem, serve again."""

    corpus: str
    problem: str

    def on(self, corpora: Corpora) -> None:
        """See `Corpora.block`."""
        corpora.block(self.corpus, self.problem)


class Heard(OnCorpora[None], frozen=True):
    """The watch of a corpus is alive."""

    corpus: str
    now: float

    def on(self, corpora: Corpora) -> None:
        """See `Corpora.heard`."""
        corpora.heard(self.corpus, now=self.now)


class Swept(OnCorpora[None], frozen=True):
    """What a sweep found."""

    corpus: str
    now: float
    checked: int
    drifted: int

    def on(self, corpora: Corpora) -> None:
        """See `Corpora.swept`."""
        corpora.swept(self.corpus, now=self.now, checked=self.checked, drifted=self.drifted)


class Sample(OnCorpora[Sequence[Entry]], frozen=True):
    """Entries that hold, made under one set of settings."""

    corpus: str
    settings: str
    count: int
    after: str

    def on(self, corpora: Corpora) -> Sequence[Entry]:
        """See `Corpora.sample`."""
        return corpora.sample(self.corpus, self.settings, self.count, after=self.after)


class ReachOf(OnCorpora[Reach | None], frozen=True):
    """What a write must reach to change an entry."""

    entry: Entry

    def on(self, corpora: Corpora) -> Reach | None:
        """See `Corpora.reach`."""
        return corpora.reach(self.entry)


class OnJournal(Effect[Result], frozen=True):
    """Something about the journal of the store that may take its time."""

    def on(self, journal: Journal) -> Result:
        """Do it."""
        raise NotImplementedError


class Observe(OnJournal[None], frozen=True):
    """Add what was seen of sources."""

    observations: Sequence[Observation]
    now: float

    def on(self, journal: Journal) -> None:
        """See `Journal.observe`."""
        journal.observe(self.observations, now=self.now)


class ObservedOf(OnJournal[Mapping[str, Observed]], frozen=True):
    """What was seen of sources."""

    corpus: str
    sources: tuple[str, ...]

    def on(self, journal: Journal) -> Mapping[str, Observed]:
        """See `Journal.observed`."""
        return journal.observed(self.corpus, self.sources)


class Confirm(OnJournal[None], frozen=True):
    """An entry was found fresh."""

    entry: Entry
    at: float
    doubtful_at: float | None

    def on(self, journal: Journal) -> None:
        """See `Journal.confirm`."""
        journal.confirm(self.entry, at=self.at, doubtful_at=self.doubtful_at)


class Judged(OnJournal[None], frozen=True):
    """Keep a verdict."""

    verdict: Verdict

    def on(self, journal: Journal) -> None:
        """See `Journal.judged`."""
        journal.judged(self.verdict)


class VerdictOn(OnJournal[Verdict | None], frozen=True):
    """The latest verdict on an entry."""

    entry_id: str

    def on(self, journal: Journal) -> Verdict | None:
        """See `Journal.verdict`."""
        return journal.verdict(self.entry_id)


class AskJudge(Effect[Verdict], frozen=True):
    """Ask the judge whether an entry is still fresh; it never fails but by its verdict."""

    facts: Facts


class MarkDue(Effect[bool], frozen=True):
    """Let an entry be looked after by whoever works; tell whether it may be served once more."""

    entry: Entry
    scope: Scope
    early: bool


class Note(Effect[None], frozen=True):
    """Count and log a failure that the application must not see."""

    what: str
    error: Exception


class Step(Effect[Result], frozen=True):
    """IO of somebody else's code, a framework's for example, in its sync and its async form."""

    sync: Callable[[], Result]
    aio: Callable[[], Awaitable[Result]]


Flow: TypeAlias = Generator[Effect[Any], Any, Done]


def answered(
    flow: Flow[Done], retrieve: Callable[[str], Flow[Sequence[Evidence]]] | None
) -> Flow[Done]:
    """Run a flow inside another one, which answers its `Retrieve` effects by a flow of its own.

    Whatever fails in ``retrieve`` comes into the flow as a `RetrieverError`.
    """
    if retrieve is None:
        return (yield from flow)
    try:
        effect = next(flow)
        while True:
            try:
                if type(effect) is Retrieve:
                    answer: object = yield from _retrieved(retrieve, effect.question)
                else:
                    answer = yield effect
            except Exception as error:  # noqa: BLE001 - the inner flow decides what it means
                effect = flow.throw(error)
            else:
                effect = flow.send(answer)
    except StopIteration as end:
        done: Done = end.value
        return done
    finally:
        flow.close()


def _retrieved(
    retrieve: Callable[[str], Flow[Sequence[Evidence]]], question: str
) -> Flow[tuple[Evidence, ...]]:
    try:
        return tuple((yield from retrieve(question)))
    except RetrieverError:
        raise
    except Exception as error:
        raise RetrieverError(f"{type(error).__name__}: {error}") from error
