"""Effects on watched corpora (pure; ADR 0020)."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from stampcache.corpora import Change, Chunk, Committed, Corpora, Intent, Reach, Standing
from stampcache.effects.base import Effect
from stampcache.model import Entry

Result = TypeVar("Result")


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
