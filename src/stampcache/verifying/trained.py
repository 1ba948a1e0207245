"""The trained verifier: how probably two questions are the same one, from features of the pair (pure)."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from stampcache.errors import VerifierError
from stampcache.guards.signs import apart, signs
from stampcache.languages import ENGLISH
from stampcache.verifying import reading
from stampcache.verifying.pair import NAMES, asking, compared, ready
from stampcache.verifying.reading import Side
from stampcache.verifying.table import Table
from stampcache.verifying.trees import Packed, Trees

SHOWN = 3


class Weights(Struct, frozen=True, omit_defaults=True):
    """What training wrote: the word table, the trees, the names of their features, the threshold."""

    name: str
    words: Sequence[str]
    rarity: bytes
    vectors: bytes
    trees: Packed
    features: Sequence[str]
    usual: Sequence[float]
    threshold: float
    language: str = ENGLISH


class Language(Struct, frozen=True):
    """How questions of one language are read and compared.

    ``names`` are those of the features. ``reader`` gives what reads a question, by a table of words;
    ``against`` what compares a side with stored ones, each with their cosine.
    """

    name: str
    names: Sequence[str]
    reader: Callable[[Table], Callable[[str], Side]]
    against: Callable[[Side, Table], Callable[[Side, float], list[float]]]


def _reader(table: Table) -> Callable[[str], Side]:
    return lambda question: reading.read(question, table)


def _against(side: Side, table: Table) -> Callable[[Side, float], list[float]]:
    here = asking(side, table)
    return lambda stored, similarity: compared(here, ready(stored, table), similarity)


IN_ENGLISH = Language(ENGLISH, NAMES, _reader, _against)


class TrainedVerifier:
    """Scores whether two questions of one language are the same one, as a calibrated probability.

    It was fitted beside the cosine of one embedder, that for English beside all-MiniLM-L6-v2: with
    another one the order of its scores may still hold, and its probabilities and its threshold do not
    (docs/reference/verifier.md). ``name`` carries the digest of its weights: two verifiers of one name
    score alike.
    """

    def __init__(self, weights: Weights, table: Table, language: Language = IN_ENGLISH) -> None:
        self._weights = weights
        self._means = Means(
            language, language.reader(table), table, Trees(weights.trees), weights.usual
        )

    @property
    def name(self) -> str:
        """The name of the weights with their digest, such as ``plain-1f3a5b7c``."""
        return self._weights.name

    @property
    def threshold(self) -> float:
        """Scores at or above it count as the same question; chosen on data that was fitted."""
        return self._weights.threshold

    def asking(self, question: str) -> "Asking":
        """Return a question that is to be compared with stored ones; it is read once."""
        return Asking(question, self._means)


class Means(Struct, frozen=True):
    """What a question is compared by; ``usual`` are the features' values where questions are the same."""

    language: Language
    read: Callable[[str], Side]
    table: Table
    trees: Trees
    usual: Sequence[float]


class Asking:
    """A question that is compared with stored ones.

    Scores are symmetric: whoever asks first makes no difference.
    """

    def __init__(self, question: str, means: Means) -> None:
        self._means = means
        self._side: Side | None = None
        self._signs = signs(question)
        self._refused = ""
        try:
            self._side = means.read(question)
            self._against = means.language.against(self._side, means.table)
        except VerifierError as error:
            self._refused = str(error)

    @property
    def seen(self) -> bytes:
        """This question's side of the features, to be stored with an entry; empty: it abstains."""
        return reading.encode(self._side) if self._side else b""

    def score(self, stored_question: str, stored_seen: bytes, similarity: float) -> float:
        """Return the probability in [0, 1] that the stored question is the same as this one.

        ``stored_seen`` is what `seen` was when it was stored; the stored question is read again if
        that is empty, damaged or of other weights. ``similarity`` is the cosine of the two questions.
        It is 0 where the questions differ in signs that are no words, as in "x > 5" and "x < 5".

        Raises:
            VerifierError: it abstains: a question is empty, too long or in another language, or the
                similarity is no cosine.
        """
        own, stored = self._sides(stored_question, stored_seen, similarity)
        if self._is_apart(stored_question, own, stored):
            return 0.0
        return self._means.trees.probability(self._against(stored, similarity))

    def explain(
        self, stored_question: str, stored_seen: bytes, similarity: float
    ) -> tuple[str, ...]:
        """Return the few features that move this score most, each with how far it moves it.

        A feature's weight is how much the score changes when the feature has its usual value among
        pairs that are the same question.

        Raises:
            VerifierError: as `score`.
        """
        means = self._means
        own, stored = self._sides(stored_question, stored_seen, similarity)
        if self._is_apart(stored_question, own, stored):
            here, there = (" ".join(one) or "none" for one in (self._signs, signs(stored_question)))
            return (f"signs: asked {here}, stored {there}",)
        values = self._against(stored, similarity)
        score = means.trees.probability(values)
        moved: list[tuple[float, str]] = []
        for at, (value, usual) in enumerate(zip(values, means.usual, strict=True)):
            if value != usual:
                other = means.trees.probability([*values[:at], usual, *values[at + 1 :]])
                moved.append((score - other, f"{means.language.names[at]} {value:.4g}"))
        moved.sort(key=lambda one: (-abs(one[0]), one[1]))
        return tuple([f"{shown} ({by:+.3f})" for by, shown in moved[:SHOWN] if abs(by) >= 0.0005])

    def _sides(self, question: str, seen: bytes, similarity: float) -> tuple[Side, Side]:
        """Return what was read in this question and in the stored one."""
        if self._side is None:
            raise VerifierError(self._refused)
        if not -1.001 <= similarity <= 1.001:
            raise VerifierError(f"The similarity {similarity} is no cosine; give one in [-1, 1].")
        means = self._means
        return self._side, reading.decode(seen, means.table.version) or means.read(question)

    def _is_apart(self, question: str, own: Side, stored: Side) -> bool:
        return apart(self._signs, signs(question), same_words=own.words == stored.words)
