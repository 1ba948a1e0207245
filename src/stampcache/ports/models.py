"""Models and the clock: embedder, tokenizer, verifier, judges."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from stampcache.freshness import Observed
from stampcache.journal import Verdict
from stampcache.model import Entry, Vector


class Embedded(Struct, frozen=True):
    """A question's unit vector, and its norm before normalisation ("" where it is hidden).

    ``embedder`` is the stamp of the generation that made it: vectors of two are never compared.
    """

    vector: Vector
    norm: str
    embedder: str = ""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of shape (n, d), float32, not normalised."""

    @property
    def name(self) -> str:
        """Names the weights: two embedders of one name give the same vectors."""
        ...

    def embed(self, texts: Sequence[str]) -> Vector:
        """Return one row per text.

        Raises:
            WindowError: a text is longer than the model reads.
        """
        ...


class AsyncEmbedder(Protocol):
    """An embedder that also answers without blocking the event loop."""

    async def aembed(self, texts: Sequence[str]) -> Vector: ...


@runtime_checkable
class Tokenizer(Protocol):
    """Gives the canonical token sequence of a text, whose digest is the ExactKey."""

    @property
    def stamp(self) -> str:
        """Digest of the tokenizer's own definition."""
        ...

    def tokens(self, text: str) -> bytes:
        """Return the token sequence as bytes; equal bytes mean equal token sequences."""
        ...


class Verifier(Protocol):
    """Scores whether two questions are the same."""

    @property
    def name(self) -> str: ...

    @property
    def threshold(self) -> float:
        """Scores at or above it count as the same question."""
        ...

    def score(self, asked: str, stored: str) -> float:
        """Return the probability in [0, 1] that both questions have the same answer.

        Raises:
            VerifierError: it could not say; the candidate is then rejected.
        """
        ...


class Asking(Protocol):
    """One question as a verifier sees it, to be compared with stored ones."""

    @property
    def seen(self) -> bytes:
        """What the verifier saw of it: stored with its entry. Empty: it has nothing to say of it."""
        ...

    def score(self, stored: str, seen: bytes, similarity: float) -> float:
        """Return the probability in [0, 1] that it has the same answer as a stored question.

        ``seen`` is what was stored with that question, maybe by another version or not at all;
        ``similarity`` the cosine of both.

        Raises:
            VerifierError: it has nothing to say of one of them; the candidate is then rejected.
        """
        ...


@runtime_checkable
class Explaining(Protocol):
    """An `Asking` that can also say why: only `Cache.explain` asks it."""

    def explain(self, stored: str, seen: bytes, similarity: float) -> Sequence[str]:
        """Return the few things that move this score most, as words for a person.

        Raises:
            VerifierError: as `Asking.score`.
        """
        ...


@runtime_checkable
class ReadingVerifier(Protocol):
    """A verifier that reads each question once and then compares in microseconds, without any IO."""

    @property
    def name(self) -> str: ...

    @property
    def threshold(self) -> float:
        """See `Verifier.threshold`."""
        ...

    def asking(self, question: str) -> Asking:
        """Return the question as this verifier sees it, which may be found out when it is needed."""
        ...


class Facts(Struct, frozen=True, kw_only=True):
    """What a judge is told of an entry: it was made, and so last compared, at ``updated_at``.

    ``observed`` says how often what it cites was seen to change. Times are in epoch seconds.
    """

    entry: Entry
    updated_at: float
    now: float
    observed: Observed


class Judge(Protocol):
    """Says whether an entry is still fresh; `stampcache.judging` makes one of a language model.

    It never raises: whatever fails is a verdict with its ``failure``.
    """

    @property
    def name(self) -> str: ...

    def may_ask(self) -> bool:
        """Tell whether the budget allows another call now."""
        ...

    def judge(self, facts: Facts) -> Verdict:
        """Return the verdict, within the deadline."""
        ...

    async def ajudge(self, facts: Facts) -> Verdict:
        """See `judge`."""
        ...


class Sameness(Struct, frozen=True):
    """Whether one answer serves two questions, and why; ``failure`` where a judge did not say.

    A failure is no verdict, though ``same`` is false then: nobody should learn from it.
    """

    same: bool
    reason: str
    failure: str = ""

    def __str__(self) -> str:
        return self.failure or f"{'the same' if self.same else 'not the same'}: {self.reason}"


class EquivalenceJudge(Protocol):
    """Says of pairs of questions whether they are the same; `stampcache.judging` makes one of a model.

    It never raises: whatever fails is a `Sameness` with its ``failure``.
    """

    @property
    def name(self) -> str: ...

    def may_ask(self) -> bool:
        """Tell whether the budget allows another call now."""
        ...

    def compare(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Sameness]:
        """Return one result for each pair (asked, stored), in their order.

        One call is about several pairs, and what one question says may mislead a model about the
        others: give those of one scope together.
        """
        ...

    async def acompare(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Sameness]:
        """See `compare`."""
        ...


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...
